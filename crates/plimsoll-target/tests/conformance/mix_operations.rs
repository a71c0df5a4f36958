//! Operations of mixes other than plain transfers.

use crate::support::{error, making, name, opened, rename};
use plimsoll_plan::OpKind;
use plimsoll_target::{EntryKind, FileOperation, NameOperation, OpenHow, OpenMode, Session};
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;

const BOTH: OpenMode = OpenMode::ReadWrite;

/// Bytes that depend on their position.
fn marked(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7 % 251) as u8).collect()
}

on_files! {
    /// A rename moves a file to the new name.
    async fn renaming(at, s) {
        at.file("f", b"one");
        at.dir("d/e");
        at.file("d/g", b"two");
        rename(&mut s, "f", "d/f").await.unwrap();
        assert_eq!(at.names(""), ["d"]);
        assert_eq!(at.bytes("d/f"), b"one");
        // A rename replaces an existing file, but not a directory.
        rename(&mut s, "d/f", "d/g").await.unwrap();
        assert_eq!(at.names("d"), ["e", "g"]);
        assert_eq!(at.bytes("d/g"), b"one");
        assert_eq!(error(rename(&mut s, "d/g", "d/e").await), Errno::ISDIR);
        assert_eq!(error(rename(&mut s, "missing", "d/e").await), Errno::NOENT);
        assert_eq!(error(rename(&mut s, "d/g", "x/y").await), Errno::NOENT);
        assert_eq!(at.bytes("d/g"), b"one");
    }

    /// A renamed directory keeps its entries, and a rename to the name of a non-empty directory fails without effect.
    /// The claim of a work directory relies on both rules of renames.
    async fn renaming_directories(at, s) {
        at.dir("a/x");
        at.dir("b/y");
        let r = rename(&mut s, "a", "b").await;
        assert!(r.is_err(), "{:?} {:?}", at.names(""), at.names("b"));
        assert_eq!((at.names("a"), at.names("b")), (vec!["x".to_owned()], vec!["y".to_owned()]));
        rename(&mut s, "a", "c").await.unwrap();
        assert_eq!((at.names(""), at.names("c")), (vec!["b".to_owned(), "c".to_owned()], vec!["x".to_owned()]));
        // The second of two renames of one name fails, because the name is gone.
        rename(&mut s, "b/y", "b/z").await.unwrap();
        assert_eq!(error(rename(&mut s, "b/y", "b/w").await), Errno::NOENT);
        assert_eq!(at.names("b"), ["z"]);
        assert!(name(&mut s, "b").remove(EntryKind::Dir).await.is_err());
        assert_eq!(at.names("b"), ["z"]);
    }

    /// A rename moves a symbolic link itself, and replaces a symbolic link itself.
    async fn renaming_links(at, s) {
        at.file("f", b"stays");
        at.link("l", "f");
        rename(&mut s, "l", "m").await.unwrap();
        assert_eq!(at.read_link("m").to_str(), Some("f"));
        at.file("g", b"new");
        rename(&mut s, "g", "m").await.unwrap();
        assert_eq!((at.bytes("f"), at.bytes("m")), (b"stays".to_vec(), b"new".to_vec()));
    }
}

on_posix! {
    /// The parents of both names of a rename are checked for symbolic links.
    async fn parents_of_a_renaming(at, s) {
        at.dir("real");
        at.file("real/f", b"x");
        at.link("out", "real");
        assert_eq!(error(name(&mut s, "out/g").check_parent().await), Errno::LOOP);
        for destination in ["real/g", "top"] {
            name(&mut s, destination).check_parent().await.unwrap();
        }
        s.set_destination();
        // A name that is located later does not change the destination.
        assert_eq!(name(&mut s, "real/f").stat().await.unwrap().size, 1);
        s.check_parent().await.unwrap();
        s.rename().await.unwrap();
        assert_eq!((at.names("real"), at.bytes("top")), (vec![], b"x".to_vec()));
    }
}

on_files! {
    /// `StatMissing` succeeds for a missing name, and fails with `EEXIST` for an existing name.
    async fn finding_nothing(at, s) {
        at.file("f", b"x");
        at.dir("d");
        at.link("dangling", "nowhere");
        name(&mut s, "missing").on_name(NameOperation::StatMissing).await.unwrap();
        name(&mut s, "d/missing").on_name(NameOperation::StatMissing).await.unwrap();
        for there in ["f", "d", "dangling"] {
            assert_eq!(error(name(&mut s, there).on_name(NameOperation::StatMissing).await), Errno::EXIST);
        }
        assert_eq!(error(name(&mut s, "f/missing").on_name(NameOperation::StatMissing).await), Errno::NOTDIR);
    }

    /// An access check applies to the calling user, and to a symbolic link itself.
    async fn asking_for_access(at, s) {
        at.file("f", b"x");
        at.link("dangling", "nowhere");
        name(&mut s, "f").on_name(NameOperation::Access).await.unwrap();
        assert_eq!(error(name(&mut s, "missing").on_name(NameOperation::Access).await), Errno::NOENT);
        // The check applies to the symbolic link, and not to its missing destination.
        name(&mut s, "dangling").on_name(NameOperation::Access).await.unwrap();
        crate::support::obey_permissions();
        at.set_mode("f", 0o444);
        // The check applies to the real user; root is never denied.
        if !rustix::process::getuid().is_root() {
            assert_eq!(error(name(&mut s, "f").on_name(NameOperation::Access).await), Errno::ACCESS);
        }
    }
}

on_posix! {
    /// `Chmod` sets the permissions of files and directories, and follows no symbolic link.
    async fn changing_permissions(at, s) {
        at.file("f", b"x");
        at.dir("d");
        at.link("l", "f");
        at.link("way", "d");
        at.file("d/g", b"x");
        let mode = |path: &str| at.path(path).symlink_metadata().unwrap().mode() & 0o7777;
        for wanted in [0o600, 0o644, 0o755] {
            name(&mut s, "f").on_name(NameOperation::Chmod(wanted)).await.unwrap();
            assert_eq!(mode("f"), wanted);
        }
        // Only the nine permission bits are set.
        name(&mut s, "f").on_name(NameOperation::Chmod(0o7600)).await.unwrap();
        assert_eq!(mode("f"), 0o600);
        name(&mut s, "d").on_name(NameOperation::Chmod(0o700)).await.unwrap();
        assert_eq!(mode("d"), 0o700);
        let before = mode("d/g");
        assert_eq!(error(name(&mut s, "l").on_name(NameOperation::Chmod(0o777)).await), Errno::LOOP);
        assert_eq!(error(name(&mut s, "way/g").on_name(NameOperation::Chmod(0o777)).await), Errno::LOOP);
        assert_eq!(error(name(&mut s, "../x").on_name(NameOperation::Chmod(0o777)).await), Errno::XDEV);
        assert_eq!(error(name(&mut s, "missing").on_name(NameOperation::Chmod(0o777)).await), Errno::NOENT);
        assert_eq!((mode("f"), mode("d/g")), (0o600, before));
    }
}

on_files! {
    /// `StatFs` and `PathConf` succeed and change nothing.
    async fn asking_the_file_system(at, s) {
        at.file("f", b"x");
        s.on_name(NameOperation::StatFs).await.unwrap();
        s.on_name(NameOperation::PathConf).await.unwrap();
        assert_eq!(at.names(""), ["f"]);
    }

    /// `Truncate` shortens or extends a file; an extension reads as zeros.
    async fn setting_a_length(at, s) {
        at.file("f", &marked(10_000));
        let h = opened(&mut s, "f", OpenHow::plain(BOTH)).await;
        s.on_file(&h, FileOperation::Truncate(4000)).await.unwrap();
        assert_eq!(at.bytes("f"), marked(10_000)[..4000]);
        s.on_file(&h, FileOperation::Truncate(9000)).await.unwrap();
        let bytes = at.bytes("f");
        assert_eq!(bytes.len(), 9000);
        assert_eq!(bytes[..4000], marked(10_000)[..4000]);
        assert!(bytes[4000..].iter().all(|b| *b == 0));
        s.on_file(&h, FileOperation::Truncate(0)).await.unwrap();
        assert_eq!(at.bytes("f"), b"");
        s.close(h).await.unwrap();
    }

    /// An open with `truncate` empties an existing file, and with `create` also creates a missing file.
    async fn cutting_while_opening(at, s) {
        at.file("f", &marked(10_000));
        let cut = OpenHow { truncate: true, ..making(OpenMode::Write) };
        for file in ["f", "new"] {
            let h = opened(&mut s, file, cut).await;
            assert_eq!(at.bytes(file), b"");
            s.write(&h, 0, 10).await.unwrap();
            s.close(h).await.unwrap();
            assert_eq!(at.bytes(file).len(), 10);
        }
    }
}

on_posix! {
    /// `Lock` waits for conflicting locks of other handles, and leaves nothing locked; the file must be open for
    /// writing.
    async fn locking(at, s) {
        use std::time::{Duration, Instant};
        at.file("f", b"0123456789");
        let h = opened(&mut s, "f", OpenHow::plain(BOTH)).await;
        let try_lock = |file: &std::fs::File, kind: i32, start: i64, len: i64| {
            let range = libc_range(kind, start, len);
            nix::fcntl::fcntl(file, nix::fcntl::FcntlArg::F_OFD_SETLK(&range))
        };
        let other = std::fs::File::options().read(true).write(true).open(at.path("f")).unwrap();
        s.on_file(&h, FileOperation::Lock { offset: 2, len: 4 }).await.unwrap();
        // Another handle can lock the whole file: nothing is left locked.
        try_lock(&other, WRITE, 0, 0).unwrap();
        try_lock(&other, UNLOCK, 0, 0).unwrap();
        // The operation ignores another handle's lock beside the range, and waits for another handle's lock on the
        // range.
        try_lock(&other, WRITE, 0, 2).unwrap();
        s.on_file(&h, FileOperation::Lock { offset: 2, len: 4 }).await.unwrap();
        try_lock(&other, WRITE, 5, 1).unwrap();
        let held = Duration::from_millis(50);
        let begun = Instant::now();
        let releaser = std::thread::spawn(move || {
            std::thread::sleep(held);
            drop(other);
        });
        s.on_file(&h, FileOperation::Lock { offset: 2, len: 4 }).await.unwrap();
        assert!(begun.elapsed() >= held, "it did not wait");
        releaser.join().unwrap();
        assert_eq!(error(s.on_file(&h, FileOperation::Lock { offset: u64::MAX, len: 1 }).await), Errno::OVERFLOW);
        s.close(h).await.unwrap();
        let reader = opened(&mut s, "f", OpenHow::plain(OpenMode::Read)).await;
        assert_eq!(error(s.on_file(&reader, FileOperation::Lock { offset: 0, len: 1 }).await), Errno::BADF);
        s.close(reader).await.unwrap();
        assert_eq!(at.bytes("f"), b"0123456789");
    }
}

on_files! {
    /// A stable write writes at its offset, or at the end of the file without an offset.
    async fn writing_to_stay(at, s) {
        at.file("f", &marked(8192));
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Write)).await;
        s.on_file(&h, FileOperation::WriteStable { offset: Some(1000), len: 500 }).await.unwrap();
        let bytes = at.bytes("f");
        let before = marked(8192);
        assert_eq!(bytes.len(), 8192);
        assert_eq!((&bytes[..1000], &bytes[1500..]), (&before[..1000], &before[1500..]));
        assert_ne!(bytes[1000..1500], before[1000..1500]);
        s.on_file(&h, FileOperation::WriteStable { offset: None, len: 700 }).await.unwrap();
        let longer = at.bytes("f");
        assert_eq!(longer.len(), 8892);
        assert_eq!(longer[..8192], bytes);
        // A write longer than one piece of the pool is complete.
        s.on_file(&h, FileOperation::WriteStable { offset: Some(0), len: 9 << 20 }).await.unwrap();
        assert_eq!(at.bytes("f").len(), 9 << 20);
        s.close(h).await.unwrap();
    }

    /// `Modify` reads the range, changes its bytes and writes the range back; all other bytes stay the same.
    async fn modifying(at, s) {
        let before = marked(20_000);
        at.file("f", &before);
        let h = opened(&mut s, "f", OpenHow::plain(BOTH)).await;
        assert_eq!(s.on_file(&h, FileOperation::Modify { offset: 1000, len: 10_000 }).await, Ok(20_000));
        let after = at.bytes("f");
        let expected: Vec<u8> = before
            .iter()
            .enumerate()
            .map(|(i, b)| match i.checked_sub(1000) {
                Some(n) if n < 10_000 && n % 4096 < 8 => b.wrapping_add(1),
                _ => *b,
            })
            .collect();
        assert!(after == expected, "other bytes were changed");
        // The range ends at the end of the file.
        assert_eq!(s.on_file(&h, FileOperation::Modify { offset: 19_990, len: 100 }).await, Ok(20));
        assert_eq!(at.bytes("f").len(), 20_000);
        s.close(h).await.unwrap();
    }

    /// `copy` copies a range to the same offset of another file, short at the end of the source.
    async fn copying(at, s) {
        let bytes = marked(3_000_000);
        at.file("from", &bytes);
        let from = opened(&mut s, "from", OpenHow::plain(OpenMode::Read)).await;
        let to = opened(&mut s, "to", making(OpenMode::Write)).await;
        let (mut done, piece) = (0, 1 << 20);
        loop {
            match s.copy(&from, &to, (done, piece)).await.unwrap() {
                0 => break,
                n => done += n,
            }
        }
        assert_eq!(done, 3_000_000);
        s.close(from).await.unwrap();
        s.close(to).await.unwrap();
        assert!(at.bytes("to") == bytes, "the copy differs");
        assert!(at.bytes("from") == bytes, "the original was changed");
    }
}

on_posix! {
    /// A mapped read may begin at any offset, fails with `EFAULT` behind the end of the file, and with `EINVAL` for no
    /// bytes.
    async fn reading_a_mapping(at, s) {
        at.file("f", &marked(3_000_000));
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Read)).await;
        for (offset, len) in [(0, 1), (0, 3_000_000), (4095, 2), (5000, 1_500_000), (2_999_999, 1)] {
            s.on_file(&h, FileOperation::MapRead { offset, len }).await.unwrap_or_else(|e| panic!("{len} at {offset}: {e}"));
        }
        assert_eq!(error(s.on_file(&h, FileOperation::MapRead { offset: 4_000_000, len: 10 }).await), Errno::FAULT);
        assert_eq!(error(s.on_file(&h, FileOperation::MapRead { offset: 0, len: 0 }).await), Errno::INVAL);
        s.close(h).await.unwrap();
        assert!(at.bytes("f") == marked(3_000_000));
    }

    /// If a mapped file is shortened, the operation fails with `EFAULT`, and the process does not crash.
    async fn losing_a_mapping(at, s) {
        at.file("f", &marked(100_000));
        let h = opened(&mut s, "f", OpenHow::plain(BOTH)).await;
        at.file("f", b"short");
        assert_eq!(error(s.on_file(&h, FileOperation::MapRead { offset: 50_000, len: 1000 }).await), Errno::FAULT);
        assert_eq!(error(s.on_file(&h, FileOperation::MapWrite { offset: 50_000, len: 1000, flush: false }).await), Errno::FAULT);
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("f"), b"short");
    }

    /// A mapped write changes exactly the requested range, with bytes of the pool; it fails with `EACCES` if the file
    /// is open only for reading.
    async fn writing_a_mapping(at, s) {
        let before = marked(3_000_000);
        at.file("f", &before);
        let h = opened(&mut s, "f", OpenHow::plain(BOTH)).await;
        let pool = crate::support::pool(plimsoll_plan::Content::Random);
        for (flush, offset, len) in [(false, 5000, 300_000), (true, 1_000_000, 8192), (true, 2_999_999, 1)] {
            s.on_file(&h, FileOperation::MapWrite { offset, len, flush }).await.unwrap();
            let after = at.bytes("f");
            let (a, b) = (offset as usize, (offset + len) as usize);
            assert!(crate::support::is_from(&pool, &after[a..b]), "{len} at {offset}");
        }
        let after = at.bytes("f");
        assert_eq!(after.len(), before.len());
        assert!(after[..5000] == before[..5000]);
        assert!(after[305_000..1_000_000] == before[305_000..1_000_000]);
        assert!(after[1_008_192..2_999_999] == before[1_008_192..2_999_999]);
        s.close(h).await.unwrap();
        let reader = opened(&mut s, "f", OpenHow::plain(OpenMode::Read)).await;
        assert_eq!(error(s.on_file(&reader, FileOperation::MapWrite { offset: 0, len: 1, flush: false }).await), Errno::ACCESS);
        s.close(reader).await.unwrap();
    }

    /// Operations that no system call requests are reported in advance, and are not executed.
    async fn what_cannot_be_done(at, s) {
        at.file("f", b"x");
        at.link("l", "f");
        for kind in [OpKind::Lookup, OpKind::ReadLink, OpKind::ListDirPlus] {
            let why = at.target.unsupported_reason(kind).expect("it cannot");
            assert!(why.contains("NFS"), "{why}");
        }
        for kind in [OpKind::Read, OpKind::Rename, OpKind::MmapWrite, OpKind::PathConf] {
            assert_eq!(at.target.unsupported_reason(kind), None);
        }
        assert_eq!(error(name(&mut s, "f").on_name(NameOperation::Lookup).await), Errno::OPNOTSUPP);
        assert_eq!(error(name(&mut s, "l").on_name(NameOperation::ReadLink).await), Errno::OPNOTSUPP);
        assert_eq!(error(name(&mut s, "").on_name(NameOperation::ListPlus).await), Errno::OPNOTSUPP);
    }
}

const WRITE: i32 = nix::libc::F_WRLCK;
const UNLOCK: i32 = nix::libc::F_UNLCK;

fn libc_range(kind: i32, start: i64, len: i64) -> nix::libc::flock {
    nix::libc::flock {
        l_type: kind as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        l_start: start,
        l_len: len,
        l_pid: 0,
    }
}
