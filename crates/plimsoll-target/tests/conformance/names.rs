//! Operations on names and directories.

use crate::support::{error, making, name};
use plimsoll_target::{EntryKind, ListTotals, OpenMode, Session};
use rustix::io::Errno;
use std::os::unix::fs::MetadataExt;

/// Sum of the lengths in bytes of the names' directory records (`struct linux_dirent64`). A record has two fields of 8
/// bytes, a length of 2 bytes, a type of 1 byte, the name and its NUL byte, and is padded to a multiple of 8 bytes.
fn records<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let record = |n: &[u8]| (19 + n.len() + 1).div_ceil(8) * 8;
    names.into_iter().map(|n| record(n) as u64).sum()
}

on_files! {
    /// `stat` returns the kind, the size and the time of change of an entry, and follows no symbolic link at the end of a path.
    async fn attributes(at, s) {
        at.file("f", &[7; 1234]);
        at.dir("d/e");
        at.file("d/e/g", b"x");
        at.link("l", "f");
        at.link("dangling", "nowhere");
        let f = name(&mut s, "f").stat().await.unwrap();
        assert_eq!((f.kind, f.size), (EntryKind::File, 1234));
        if let Some(local) = at.local() {
            let on_disk = std::fs::symlink_metadata(local.join("f")).unwrap();
            let changed_ns = on_disk.ctime() * 1_000_000_000 + on_disk.ctime_nsec();
            assert_eq!(f.changed_ns, Some(changed_ns));
        }
        let g = name(&mut s, "d/e/g").stat().await.unwrap();
        assert_eq!((g.kind, g.size), (EntryKind::File, 1));
        assert_eq!(name(&mut s, "d/e").stat().await.unwrap().kind, EntryKind::Dir);
        assert_eq!(name(&mut s, "").stat().await.unwrap().kind, EntryKind::Dir);
        let l = name(&mut s, "l").stat().await.unwrap();
        assert_eq!((l.kind, l.size), (EntryKind::Link, 1));
        assert_eq!(name(&mut s, "dangling").stat().await.unwrap().kind, EntryKind::Link);
        assert_eq!(error(name(&mut s, "missing").stat().await), Errno::NOENT);
        assert_eq!(error(name(&mut s, "f/g").stat().await), Errno::NOTDIR);
    }

    /// `unlink` removes the name of a file, and fails for a directory.
    async fn unlinking(at, s) {
        at.file("f", b"x");
        at.dir("d");
        name(&mut s, "f").unlink().await.unwrap();
        assert_eq!(at.names(""), ["d"]);
        assert_eq!(error(name(&mut s, "f").unlink().await), Errno::NOENT);
        assert_eq!(error(name(&mut s, "d").unlink().await), Errno::ISDIR);
        assert_eq!(at.names(""), ["d"]);
    }

    /// A directory is created once, in an existing directory.
    async fn making_directories(at, s) {
        name(&mut s, "d").make_dir().await.unwrap();
        name(&mut s, "d/e").make_dir().await.unwrap();
        assert_eq!(at.mode("d/e") & 0o700, 0o700, "we could not use it ourselves");
        assert_eq!(error(name(&mut s, "d").make_dir().await), Errno::EXIST);
        assert_eq!(error(name(&mut s, "x/y").make_dir().await), Errno::NOENT);
        at.file("f", b"x");
        assert_eq!(error(name(&mut s, "f").make_dir().await), Errno::EXIST);
        assert_eq!(error(name(&mut s, "f/d").make_dir().await), Errno::NOTDIR);
        assert_eq!(at.names(""), ["d", "f"]);
        assert_eq!(at.names("d"), ["e"]);
    }

    /// Only empty directories can be removed.
    async fn removing_directories(at, s) {
        at.dir("d/e");
        at.file("f", b"x");
        assert_eq!(error(name(&mut s, "d").remove_dir().await), Errno::NOTEMPTY);
        assert_eq!(error(name(&mut s, "f").remove_dir().await), Errno::NOTDIR);
        assert_eq!(error(name(&mut s, "x").remove_dir().await), Errno::NOENT);
        assert_eq!(at.names(""), ["d", "f"]);
        name(&mut s, "d/e").remove_dir().await.unwrap();
        name(&mut s, "d").remove_dir().await.unwrap();
        assert_eq!(at.names(""), ["f"]);
    }
}

on_posix! {
    /// A listing counts each entry once, and sums the lengths of the directory records.
    async fn listing(at, s) {
        at.dir("d/sub");
        assert_eq!(name(&mut s, "d/sub").list().await.unwrap(), ListTotals::default());
        let long = "n".repeat(255);
        at.file(format!("d/{long}"), b"");
        at.file("d/.hidden", b"");
        at.link("d/link", "nowhere");
        // One system call does not return all entries.
        for i in 0..3000 {
            at.file(format!("d/{:01$}", i, 8 + i % 9), b"");
        }
        let names = at.names("d");
        assert_eq!(names.len(), 3004);
        let listed = name(&mut s, "d").list().await.unwrap();
        let bytes = records(names.iter().map(String::as_bytes));
        assert_eq!(listed, ListTotals { entries: 3004, bytes });
        assert_eq!(name(&mut s, "").list().await.unwrap(), ListTotals { entries: 1, bytes: 24 });
        assert_eq!(error(name(&mut s, "d/.hidden").list().await), Errno::NOTDIR);
        assert_eq!(error(name(&mut s, "missing").list().await), Errno::NOENT);
    }
}

on_files! {
    /// `entries` returns each name with its kind, whatever bytes the name contains.
    async fn entries(at, s) {
        at.file("f", b"x");
        at.dir("d");
        at.link("to_f", "f");
        at.link("to_d", "d");
        let odd = b"odd \xff\n'name";
        at.file(odd, b"");
        let mut all = name(&mut s, "").entries().await.unwrap();
        all.sort();
        let expected = [
            (b"d".to_vec(), EntryKind::Dir),
            (b"f".to_vec(), EntryKind::File),
            (odd.to_vec(), EntryKind::File),
            (b"to_d".to_vec(), EntryKind::Link),
            (b"to_f".to_vec(), EntryKind::Link),
        ];
        assert_eq!(all, expected);
        assert_eq!(name(&mut s, odd).stat().await.unwrap().size, 0);
        assert_eq!(name(&mut s, "d").entries().await.unwrap(), []);
        assert_eq!(error(name(&mut s, "f").entries().await), Errno::NOTDIR);
        assert_eq!(error(name(&mut s, "missing").entries().await), Errno::NOENT);
    }

    /// `put` writes a small file completely, `get` reads it completely, and a second `put` replaces it.
    async fn small_files(at, s) {
        at.dir("d");
        for len in [0, 1, 65_535, 65_536, 65_537, 1 << 20] {
            for file in ["m", "d/m"] {
                let bytes: Vec<u8> = (0..len).map(|i: u32| (i * 7) as u8).collect();
                name(&mut s, file).put(&bytes).await.unwrap();
                assert_eq!(at.bytes(file), bytes);
                assert_eq!(name(&mut s, file).get().await.unwrap(), bytes);
            }
        }
        name(&mut s, "m").put(b"short").await.unwrap();
        assert_eq!(at.bytes("m"), b"short", "the longer one shines through");
        assert_eq!(at.names(""), ["d", "m"]);
        assert_eq!(at.names("d"), ["m"]);
        assert_eq!(error(name(&mut s, "missing").get().await), Errno::NOENT);
        assert_eq!(error(name(&mut s, "d").get().await), Errno::ISDIR);
        assert_eq!(error(name(&mut s, "no/m").put(b"x").await), Errno::NOENT);
        assert_eq!(error(name(&mut s, "m/m").put(b"x").await), Errno::NOTDIR);
    }

    /// `put` replaces a file atomically: a process that has the old file open keeps its complete contents.
    async fn putting_is_atomic(at, s) {
        use std::io::Read;
        at.file("m", b"old and long");
        let old = at.local().map(|dir| std::fs::File::open(dir.join("m")).unwrap());
        name(&mut s, "m").put(b"new").await.unwrap();
        if let Some(mut old) = old {
            let mut bytes = Vec::new();
            old.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, b"old and long");
        }
        assert_eq!(at.bytes("m"), b"new");
    }

    /// A failed `put` changes nothing, and leaves no temporary file.
    async fn putting_in_vain(at, s) {
        at.dir("d/full");
        assert_eq!(error(name(&mut s, "d").put(b"new").await), Errno::ISDIR);
        assert_eq!(at.names(""), ["d"]);
        assert_eq!(at.names("d"), ["full"]);
    }

    /// A temporary file that an interrupted `put` left does not stop the next `put`, which does not write through it.
    async fn putting_after_a_crash(at, s) {
        at.file("theirs", b"not ours");
        at.hard_link("theirs", "m.new");
        name(&mut s, "m").put(b"new").await.unwrap();
        assert_eq!(at.bytes("m"), b"new");
        assert_eq!(at.bytes("theirs"), b"not ours", "a put wrote through another name");
        at.link("n.new", "theirs");
        name(&mut s, "n").put(b"new").await.unwrap();
        assert_eq!(at.bytes("n"), b"new");
        assert_eq!(at.bytes("theirs"), b"not ours", "a put wrote through a link");
        assert_eq!(at.names(""), ["m", "n", "theirs"]);
    }

    /// `remove` removes an entry of the given kind only: a file, or an empty directory.
    async fn removing(at, s) {
        at.dir("d/e");
        at.file("d/f", b"x");
        assert_eq!(error(name(&mut s, "d").remove(EntryKind::Dir).await), Errno::NOTEMPTY);
        assert_eq!(error(name(&mut s, "d/f").remove(EntryKind::Dir).await), Errno::NOTDIR);
        assert_eq!(error(name(&mut s, "d/e").remove(EntryKind::File).await), Errno::ISDIR);
        assert_eq!(error(name(&mut s, "d/x").remove(EntryKind::File).await), Errno::NOENT);
        assert_eq!(at.names("d"), ["e", "f"]);
        name(&mut s, "d/f").remove(EntryKind::File).await.unwrap();
        name(&mut s, "d/e").remove(EntryKind::Dir).await.unwrap();
        name(&mut s, "d").remove(EntryKind::Dir).await.unwrap();
        assert!(at.names("").is_empty());
    }
}

on_posix! {
    /// Names that no file can have are errors, and nothing is created.
    async fn absurd_names(at, s) {
        let long = "n".repeat(256);
        let deep = "d/".repeat(2100) + "f";
        for odd in [long.as_str(), deep.as_str()] {
            let opened = name(&mut s, odd).open(making(OpenMode::Write)).await;
            assert_eq!(error(opened), Errno::NAMETOOLONG);
            assert_eq!(error(name(&mut s, odd).make_dir().await), Errno::NAMETOOLONG);
            assert_eq!(error(name(&mut s, odd).stat().await), Errno::NAMETOOLONG);
            error(name(&mut s, odd).put(b"x").await);
            error(name(&mut s, odd).get().await);
            error(name(&mut s, odd).remove(EntryKind::File).await);
        }
        // A C string ends at its first NUL byte, and would name another file.
        for odd in ["cut\0short", "\0", "cut\0"] {
            error(name(&mut s, odd).open(making(OpenMode::Write)).await);
            error(name(&mut s, odd).make_dir().await);
            error(name(&mut s, odd).put(b"x").await);
            error(name(&mut s, odd).stat().await);
            error(name(&mut s, odd).list().await);
        }
        assert!(at.names("").is_empty());
    }
}

on_files! {
    /// A new name replaces the session's previous name completely, whichever is longer.
    async fn one_name_after_another(at, s) {
        for file in ["a_rather_long_name", "b", "another_long_name_than_that", "c"] {
            name(&mut s, file).put(file.as_bytes()).await.unwrap();
            assert_eq!(at.bytes(file), file.as_bytes());
        }
        assert_eq!(at.names("").len(), 4);
    }
}
