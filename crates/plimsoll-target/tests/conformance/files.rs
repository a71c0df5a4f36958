//! Operations on open files.

use crate::support::{
    BUFFER, Bench, Case, check_in, error, in_memory, is_from, making, name, opened, pool, take_all,
};
use plimsoll_plan::Content;
use plimsoll_target::{
    Attributes, EntryKind, FileOperation, OpError, OpenHow, OpenMode, Session, Target,
};
use plimsoll_testkit::is_cached;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::path::Path;
use std::time::Duration;

/// Bytes that depend on their position, none of them zero.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 251 + i) as u8 | 1).collect()
}

/// Flags of a descriptor by which this process has `path` open.
fn flags_of(path: &Path) -> OFlags {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let fd = open
        .map(|e| e.unwrap())
        .find(|e| std::fs::read_link(e.path()).is_ok_and(|to| to == path))
        .expect("an open descriptor");
    let info = Path::new("/proc/self/fdinfo").join(fd.file_name());
    let info = std::fs::read_to_string(info).unwrap();
    let flags = info.lines().find_map(|l| l.strip_prefix("flags:")).unwrap();
    OFlags::from_bits_retain(u32::from_str_radix(flags.trim(), 8).unwrap())
}

on_files! {
    /// An open creates a file only if requested, and does not truncate an existing file.
    async fn opening(at, s) {
        let missing = name(&mut s, "f").open(OpenHow::plain(OpenMode::Write)).await;
        assert_eq!(error(missing), Errno::NOENT);
        assert!(at.names("").is_empty());
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("f"), b"");
        at.file("f", b"stays");
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::ReadWrite] {
            let h = opened(&mut s, "f", making(mode)).await;
            s.close(h).await.unwrap();
        }
        assert_eq!(at.bytes("f"), b"stays");
        let dir = name(&mut s, "f/g").open(making(OpenMode::Write)).await;
        assert_eq!(error(dir), Errno::NOTDIR);
        at.dir("d");
        let dir = name(&mut s, "d").open(OpenHow::plain(OpenMode::Write)).await;
        assert_eq!(error(dir), Errno::ISDIR);
    }

    /// A file can be used only for the operations that it was opened for.
    async fn modes(at, s) {
        at.file("f", b"stays");
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Read)).await;
        assert_eq!(error(s.write(&h, 0, 5).await), Errno::BADF);
        assert_eq!(error(s.append(&h, 5).await), Errno::BADF);
        s.close(h).await.unwrap();
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Write)).await;
        assert_eq!(error(s.read(&h, 0, 5).await), Errno::BADF);
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("f"), b"stays");
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::ReadWrite)).await;
        s.write(&h, 5, 5).await.unwrap();
        assert_eq!(s.read(&h, 0, 100).await.unwrap(), 10);
        s.close(h).await.unwrap();
    }

    /// A read that crosses the end of the file is short; a read that begins at or behind the end returns no bytes.
    async fn reading(at, s) {
        at.file("f", &pattern(10_000));
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Read)).await;
        for (offset, len, got) in [
            (0, 4096, 4096),
            (8192, 4096, 1808),
            (9_999, 1, 1),
            (9_999, 2, 1),
            (10_000, 1, 0),
            (1 << 40, 4096, 0),
            (0, 0, 0),
            (0, 10_001, 10_000),
        ] {
            assert_eq!(s.read(&h, offset, len).await.unwrap(), got, "{len} at {offset}");
        }
        s.close(h).await.unwrap();
    }

    /// The length of a read may exceed the session's buffer and need not be aligned.
    async fn reading_more_than_the_buffer(at, s) {
        at.file("f", &pattern(1_048_581));
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Read)).await;
        assert_eq!(s.read(&h, 0, 1_048_576).await.unwrap(), 1_048_576);
        assert_eq!(s.read(&h, 0, 3 << 20).await.unwrap(), 1_048_581);
        for len in (1..200_000).step_by(997) {
            assert_eq!(s.read(&h, 5, len).await.unwrap(), len);
        }
        s.close(h).await.unwrap();
    }
}

on_posix! {
    /// Offsets and lengths that no file can have are errors, and the session stays usable.
    async fn absurd_numbers(at, s) {
        at.file("f", b"stays");
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::ReadWrite)).await;
        assert_eq!(error(s.read(&h, u64::MAX, 1).await), Errno::INVAL);
        assert_eq!(error(s.read(&h, 0, u64::MAX).await), Errno::NOMEM);
        let e = error(s.write(&h, u64::MAX, 1).await);
        assert!([Errno::INVAL, Errno::FBIG].contains(&e), "{e:?}");
        let e = error(s.write(&h, i64::MAX as u64 - 10, 4096).await);
        assert!([Errno::INVAL, Errno::FBIG].contains(&e), "{e:?}");
        assert_eq!(s.read(&h, 0, 100).await.unwrap(), 5);
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("f"), b"stays");
    }
}

on_files! {
    /// A write changes exactly the requested range, with bytes of the pool.
    async fn writing(at, s) {
        let content = pool(Content::Random);
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        s.write(&h, 0, 10_000).await.unwrap();
        let first = at.bytes("f");
        assert_eq!(first.len(), 10_000);
        assert!(is_from(&content, &first), "the bytes are not the pool's");
        s.write(&h, 3_000, 1_001).await.unwrap();
        let second = at.bytes("f");
        assert_eq!(second.len(), 10_000);
        assert_eq!(second[..3_000], first[..3_000]);
        assert_eq!(second[4_001..], first[4_001..]);
        assert!(is_from(&content, &second[3_000..4_001]));
        s.write(&h, 20_000, 7).await.unwrap();
        let third = at.bytes("f");
        assert_eq!(third.len(), 20_007);
        assert_eq!(third[..10_000], second);
        assert!(third[10_000..20_000].iter().all(|b| *b == 0), "not a hole");
        s.write(&h, 30_000, 0).await.unwrap();
        assert_eq!(at.bytes("f").len(), 20_007, "nothing was to be written");
        s.close(h).await.unwrap();
    }

    /// A transfer that is longer than the longest piece of the pool is complete.
    async fn writing_more_than_the_pool(at, s) {
        let content = pool(Content::Random);
        let len = content.longest() * 2 + 12_345;
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        s.write(&h, 100, len as u64).await.unwrap();
        let bytes = at.bytes("f");
        assert_eq!(bytes.len(), 100 + len);
        assert!(is_from(&content, &bytes[100..]), "the bytes are not the pool's");
        s.append(&h, len as u64).await.unwrap();
        let bytes = at.bytes("f");
        assert_eq!(bytes.len(), 100 + 2 * len);
        assert!(is_from(&content, &bytes[100 + len..]));
        s.close(h).await.unwrap();
    }

    /// Written bytes are as compressible as requested, and consecutive writes differ.
    async fn contents(at, s) {
        for (content, least, most) in [
            (Content::Zero, 0, 0),
            (Content::Compressible { ratio: 4.0 }, 10_000, 10_240),
            (Content::Random, 40_500, 40_960),
        ] {
            let mut s = at.session_with(&pool(content), 0, BUFFER);
            let h = opened(&mut s, "f", making(OpenMode::Write)).await;
            s.write(&h, 0, 40_960).await.unwrap();
            let count = at.bytes("f").iter().filter(|b| **b != 0).count();
            assert!((least..=most).contains(&count), "{content:?}: {count} are not zero");
            s.close(h).await.unwrap();
        }
        let h = opened(&mut s, "g", making(OpenMode::Write)).await;
        s.write(&h, 0, 4096).await.unwrap();
        s.write(&h, 4096, 4096).await.unwrap();
        s.append(&h, 4096).await.unwrap();
        s.append(&h, 4096).await.unwrap();
        let bytes = at.bytes("g");
        let mut pieces: Vec<_> = bytes.chunks(4096).collect();
        pieces.sort();
        pieces.dedup();
        assert_eq!(pieces.len(), 4, "two writes in a row wrote the same");
        s.close(h).await.unwrap();
    }

    /// Two sessions of one seed and number write the same bytes; sessions of different numbers do not.
    async fn contents_repeat(at, s) {
        let content = pool(Content::Random);
        for (file, number) in [("a", 1), ("b", 1), ("c", 2)] {
            let mut s = at.session_with(&content, number, BUFFER);
            let h = opened(&mut s, file, making(OpenMode::Write)).await;
            s.write(&h, 0, 8_192).await.unwrap();
            s.append(&h, 100).await.unwrap();
            s.close(h).await.unwrap();
        }
        assert_eq!(at.bytes("a"), at.bytes("b"));
        assert_ne!(at.bytes("a"), at.bytes("c"));
    }

    /// Each append writes at the current end of the file, even if another session has moved the end.
    async fn appending(at, s) {
        at.file("f", b"head");
        let mut other = at.session();
        let (h, g) = (
            opened(&mut s, "f", OpenHow::plain(OpenMode::Write)).await,
            opened(&mut other, "f", OpenHow::plain(OpenMode::ReadWrite)).await,
        );
        for round in 1..=20 {
            s.append(&h, 100).await.unwrap();
            other.append(&g, 23).await.unwrap();
            assert_eq!(at.bytes("f").len(), 4 + round * 123);
        }
        assert_eq!(&at.bytes("f")[..4], b"head");
        s.write(&h, 0, 2).await.unwrap();
        assert_eq!(at.bytes("f").len(), 4 + 20 * 123, "a write after an append went to the end");
        s.close(h).await.unwrap();
        other.close(g).await.unwrap();
    }

    /// `fsync` succeeds for a file that is open in any mode, and changes no bytes.
    async fn flushing(at, s) {
        at.file("f", b"stays");
        for mode in [OpenMode::Read, OpenMode::Write, OpenMode::ReadWrite] {
            let h = opened(&mut s, "f", OpenHow::plain(mode)).await;
            s.fsync(&h).await.unwrap();
            s.close(h).await.unwrap();
        }
        assert_eq!(at.bytes("f"), b"stays");
    }

    /// The attributes of an open file follow its size, even after its name is removed.
    async fn attributes_of_an_open_file(at, s) {
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        let of = |found: Attributes| (found.kind, found.size);
        let size = |size| (EntryKind::File, size);
        assert_eq!(of(s.stat_handle(&h).await.unwrap()), size(0));
        s.append(&h, 12_345).await.unwrap();
        assert_eq!(of(s.stat_handle(&h).await.unwrap()), size(12_345));
        at.remove_file("f");
        match s.stat_handle(&h).await {
            // A server does not know which files its clients have open, and may have deleted the file.
            Err(OpError(Errno::STALE | Errno::NOENT)) if at.local().is_none() => return,
            found => assert_eq!(of(found.unwrap()), size(12_345)),
        }
        s.close(h).await.unwrap();
    }

    /// Data that are dropped from the page cache are read again unchanged: dirty data are not lost.
    async fn dropping_the_cache(at, s) {
        let h = opened(&mut s, "f", making(OpenMode::ReadWrite)).await;
        s.write(&h, 0, 1 << 20).await.unwrap();
        let before = at.bytes("f");
        let local = at.local().filter(|dir| !in_memory(dir)).map(|dir| dir.join("f"));
        let written = local.inspect(|f| assert!(is_cached(f, 0).unwrap(), "it was written just now"));
        s.on_file(&h, FileOperation::DropCache).await.unwrap();
        if let Some(file) = written {
            assert!(!is_cached(&file, 0).unwrap(), "still in the cache");
        }
        assert_eq!(at.bytes("f"), before);
        s.close(h).await.unwrap();
    }

    /// A close closes exactly its own descriptor: writes to the other files succeed, and no descriptor stays open.
    async fn closing(at, s) {
        let mut handles = Vec::new();
        for i in 0..50 {
            handles.push(opened(&mut s, &format!("f{i}"), making(OpenMode::Write)).await);
        }
        for (i, h) in handles.into_iter().enumerate() {
            if i % 2 == 0 {
                s.close(h).await.unwrap();
            } else {
                s.write(&h, 0, i as u64).await.unwrap();
                s.close(h).await.unwrap();
            }
        }
        for i in 0..50 {
            let len = if i % 2 == 0 { 0 } else { i };
            assert_eq!(at.bytes(&format!("f{i}")).len(), len);
        }
        let open = std::fs::read_dir("/proc/self/fd").unwrap();
        let left = open.filter(|e| {
            let to = std::fs::read_link(e.as_ref().unwrap().path());
            to.is_ok_and(|to| to.starts_with(at.dir.join("f")))
        });
        assert_eq!(left.count(), 0, "a closed file is still open");
    }
}

on_posix! {
    /// The flags of an open reach the operating system.
    async fn ways_to_open(at, s) {
        at.file("f", &pattern(8192));
        let path = at.path("f").canonicalize().unwrap();
        let plain = OpenHow::plain(OpenMode::ReadWrite);
        let h = opened(&mut s, "f", plain).await;
        assert!(!flags_of(&path).intersects(OFlags::DSYNC | OFlags::DIRECT));
        assert!(flags_of(&path).contains(OFlags::CLOEXEC), "children would inherit it");
        s.close(h).await.unwrap();
        let h = opened(&mut s, "f", OpenHow { dsync: true, ..plain }).await;
        assert!(flags_of(&path).contains(OFlags::DSYNC));
        s.close(h).await.unwrap();
        let direct = OpenHow { direct: true, ..plain };
        let h = match name(&mut s, "f").open(direct).await {
            // A file system without direct I/O refuses the open, and the session returns the error.
            Err(e) => return assert_eq!(e.0, Errno::INVAL),
            Ok(h) => h,
        };
        assert!(flags_of(&path).contains(OFlags::DIRECT));
        s.close(h).await.unwrap();
    }

    /// Transfers that bypass the page cache work at every aligned size, even above the size of the buffer.
    async fn direct(at, s) {
        let how = OpenHow { direct: true, ..making(OpenMode::ReadWrite) };
        let Ok(h) = name(&mut s, "f").open(how).await else { return };
        let content = pool(Content::Random);
        // A preceding transfer of an odd length does not spoil the alignment of the following transfers.
        at.file("plain", &pattern(200));
        let plain = opened(&mut s, "plain", OpenHow::plain(OpenMode::Read)).await;
        assert_eq!(s.read(&plain, 0, 101).await.unwrap(), 101);
        s.close(plain).await.unwrap();
        let sizes = [4096, 8192, 65_536, 1 << 20, 2 * content.longest() + 4096];
        let mut end = 0;
        for len in sizes {
            s.write(&h, end, len as u64).await.unwrap();
            assert_eq!(s.read(&h, end, len as u64).await.unwrap(), len as u64);
            end += len as u64;
        }
        s.append(&h, 4096).await.unwrap();
        let bytes = at.bytes("f");
        let mut rest = &bytes[..];
        for len in sizes.into_iter().chain([4096]) {
            assert!(is_from(&content, &rest[..len]), "{len} bytes are not the pool's");
            rest = &rest[len..];
        }
        assert!(rest.is_empty());
        s.close(h).await.unwrap();
    }
}

on_files! {
    /// Advice against read-ahead takes effect where the operating system would read ahead without advice.
    async fn no_read_ahead(at, s) {
        at.file("f", &pattern(4 << 20));
        let read = OpenHow::plain(OpenMode::Read);
        let mut ahead = [None, None];
        let advised = OpenHow { no_read_ahead: true, ..read };
        for (how, ahead) in [read, advised].into_iter().zip(&mut ahead) {
            let h = opened(&mut s, "f", how).await;
            s.on_file(&h, FileOperation::DropCache).await.unwrap();
            for page in 0..4 {
                assert_eq!(s.read(&h, page * 4096, 4096).await.unwrap(), 4096);
            }
            // The operating system may complete read-ahead a moment after the read.
            std::thread::sleep(Duration::from_millis(50));
            *ahead = at.local().map(|dir| is_cached(&dir.join("f"), 5 * 4096).unwrap());
            s.close(h).await.unwrap();
        }
        if ahead[0] == Some(true) && !in_memory(at.dir) {
            assert_eq!(ahead[1], Some(false), "it was read ahead all the same");
        }
    }
}

/// `/dev/full`: every write fails with `ENOSPC`.
struct Full;

impl Case for Full {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        let h = opened(&mut s, "full", OpenHow::plain(OpenMode::Write)).await;
        assert_eq!(error(s.write(&h, 0, 10_000).await), Errno::NOSPC);
        s.aio_write(&h, 0, 10_000, 5).unwrap();
        let done = take_all(&mut s).await;
        assert_eq!((done.len(), done[0].tag), (1, 5));
        assert_eq!(done[0].result, Err(OpError(Errno::NOSPC)));
        s.close(h).await.unwrap();
    }
}

#[test]
fn full() {
    check_in("posix", Path::new("/dev"), None, Full);
}
