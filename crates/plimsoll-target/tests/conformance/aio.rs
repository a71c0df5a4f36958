//! Asynchronous writes.

use crate::support::{BUFFER, error, is_from, making, name, opened, pool, take_all};
use plimsoll_lane::Stopped;
use plimsoll_plan::Content;
use plimsoll_target::{AioDone, OpError, OpenHow, OpenMode, Session};
use rustix::io::Errno;
use std::time::Duration;

/// Asserts that each write with a tag of `tags` was taken exactly once, wrote `len` bytes, and did not end before its
/// start.
fn all_right(mut done: Vec<AioDone>, tags: std::ops::Range<u32>, len: u64) {
    done.sort_by_key(|d| d.tag);
    assert!(done.iter().map(|d| d.tag).eq(tags), "not every write once");
    for d in &done {
        assert_eq!(d.result, Ok(len));
        assert!(d.start <= d.end, "{d:?} was done before it was queued");
    }
}

on_files! {
    /// A hundred writes are queued. The first wait takes at least the requested number of writes, all writes are taken
    /// exactly once in the end, and each write wrote other bytes of the pool to its own range.
    async fn hundred_writes(at, s) {
        let content = pool(Content::Random);
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        assert_eq!(s.aio_pending(), 0);
        let begun = at.clock.now();
        for i in 0..100 {
            s.aio_write(&h, u64::from(99 - i) * 5000, 5000, i).unwrap();
            assert_eq!(s.aio_pending(), i as usize + 1);
        }
        let mut done = Vec::new();
        s.aio_take(50, &mut done).await.unwrap();
        assert!(done.len() >= 50);
        assert_eq!(s.aio_pending(), 100 - done.len());
        done.extend(take_all(&mut s).await);
        let ended = at.clock.now();
        assert!(done.iter().all(|d| d.start >= begun && d.end <= ended));
        all_right(done, 0..100, 5000);
        let bytes = at.bytes("f");
        assert_eq!(bytes.len(), 500_000);
        for (i, piece) in bytes.chunks(5000).enumerate() {
            assert!(is_from(&content, piece), "write {i} is not from the pool");
        }
        let mut pieces: Vec<_> = bytes.chunks(5000).collect();
        pieces.sort();
        pieces.dedup();
        assert_eq!(pieces.len(), 100, "two writes wrote the same");
        s.close(h).await.unwrap();
    }

    /// `aio_take` appends to the caller's list; if fewer writes are queued than requested, it takes all queued writes.
    async fn taking(at, s) {
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        let mut done = Vec::new();
        s.aio_take(5, &mut done).await.unwrap();
        assert!(done.is_empty(), "nothing was queued");
        s.aio_write(&h, 0, 1, 7).unwrap();
        s.aio_take(1, &mut done).await.unwrap();
        s.aio_write(&h, 1, 1, 8).unwrap();
        s.aio_take(1000, &mut done).await.unwrap();
        let tags: Vec<_> = done.iter().map(|d| d.tag).collect();
        assert_eq!(tags, [7, 8]);
        s.aio_write(&h, 2, 0, 9).unwrap();
        all_right(take_all(&mut s).await, 9..10, 0);
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("f").len(), 2);
    }

    /// A write that is longer than the longest piece of the pool is complete.
    async fn long_writes(at, s) {
        let content = pool(Content::Random);
        let len = content.longest() as u64 + 4321;
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        for i in 0..3 {
            s.aio_write(&h, u64::from(i) * len, len, i).unwrap();
        }
        all_right(take_all(&mut s).await, 0..3, len);
        let bytes = at.bytes("f");
        assert_eq!(bytes.len() as u64, 3 * len);
        for piece in bytes.chunks(len as usize) {
            assert!(is_from(&content, piece));
        }
        s.close(h).await.unwrap();
    }

    /// A close waits for the file's queued writes, which can still be taken afterwards.
    async fn closing_drains(at, s) {
        let content = pool(Content::Random);
        for round in 0..at.rounds() {
            let h = opened(&mut s, "f", making(OpenMode::Write)).await;
            let g = opened(&mut s, "g", making(OpenMode::Write)).await;
            for i in 0..30 {
                s.aio_write(&h, u64::from(i) * 100_000, 100_000, i).unwrap();
                s.aio_write(&g, u64::from(i) * 10, 10, 30 + i).unwrap();
            }
            s.close(h).await.unwrap();
            let bytes = at.bytes("f");
            assert_eq!(bytes.len(), 3_000_000, "round {round}: closed before it was written");
            assert!(bytes.chunks(100_000).all(|piece| is_from(&content, piece)));
            s.close(g).await.unwrap();
            assert_eq!(at.bytes("g").len(), 300);
            assert_eq!(s.aio_pending(), 60);
            let mut done = take_all(&mut s).await;
            done.sort_by_key(|d| d.tag);
            all_right(done.split_off(30), 30..60, 10);
            all_right(done, 0..30, 100_000);
            at.remove_file("f");
            at.remove_file("g");
        }
    }
}

on_posix! {
    /// A failed write returns its error with its tag when it is taken; the other writes succeed.
    async fn failing(at, s) {
        at.file("r", b"stays");
        let r = opened(&mut s, "r", OpenHow::plain(OpenMode::Read)).await;
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        s.aio_write(&h, 0, 10, 1).unwrap();
        s.aio_write(&r, 0, 10, 2).unwrap();
        s.aio_write(&h, u64::MAX, 10, 3).unwrap();
        s.aio_write(&h, 10, 10, 4).unwrap();
        let mut done = take_all(&mut s).await;
        done.sort_by_key(|d| d.tag);
        let results: Vec<_> = done.iter().map(|d| (d.tag, d.result)).collect();
        assert_eq!(results, [
            (1, Ok(10)),
            (2, Err(OpError(Errno::BADF))),
            (3, Err(OpError(Errno::INVAL))),
            (4, Ok(10)),
        ]);
        s.close(r).await.unwrap();
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("r"), b"stays");
        assert_eq!(at.bytes("f").len(), 20);
    }

    /// A dropped session waits for its writes in flight: afterwards nothing writes to the files, which may be removed.
    async fn dropping_the_session(at, s) {
        let content = pool(Content::Random);
        for _ in 0..20 {
            let mut other = at.session();
            let h = opened(&mut other, "f", making(OpenMode::Write)).await;
            for i in 0..50 {
                other.aio_write(&h, u64::from(i) * 50_000, 50_000, i).unwrap();
            }
            drop(other);
            let bytes = at.bytes("f");
            assert_eq!(bytes.len(), 2_500_000, "gone before it was written");
            assert!(bytes.chunks(50_000).all(|piece| is_from(&content, piece)));
            drop(h);
            at.remove_file("f");
        }
    }
}

on_files! {
    /// A handle that is dropped without a close, as by an interrupted worker, still gets its queued writes, and a file
    /// that is opened afterwards gets none of them.
    async fn dropping_the_file(at, s) {
        for _ in 0..at.rounds() {
            let h = opened(&mut s, "f", making(OpenMode::Write)).await;
            for i in 0..100 {
                s.aio_write(&h, u64::from(i) * 50_000, 50_000, i).unwrap();
            }
            drop(h);
            // If the dropped file's descriptor were closed too early, its number would refer to one of the following
            // files.
            let dir = tempfile::tempdir().unwrap();
            let others: Vec<_> = (0..4)
                .map(|i| {
                    let path = dir.path().join(format!("other{i}"));
                    std::fs::write(&path, b"not ours").unwrap();
                    (std::fs::OpenOptions::new().write(true).open(&path).unwrap(), path)
                })
                .collect();
            all_right(take_all(&mut s).await, 0..100, 50_000);
            for (file, path) in others {
                drop(file);
                assert_eq!(std::fs::read(path).unwrap().len(), 8, "written to another file");
            }
            assert_eq!(at.bytes("f").len(), 5_000_000);
            at.remove_file("f");
        }
    }

    /// A wait ends with the run; the queued writes stay queued and can be taken later.
    async fn cut_short(at, s) {
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        let len = 64 << 20;
        let mut cut = false;
        // On a busy machine all writes may have completed before the wait begins.
        for _ in 0..10 {
            at.deadline.bring_forward(at.clock.now());
            for i in 0..8 {
                s.aio_write(&h, 0, len, i).unwrap();
            }
            let mut done = Vec::new();
            cut |= s.aio_take(8, &mut done).await == Err(Stopped);
            assert_eq!(s.aio_pending() + done.len(), 8);
            at.deadline.clear();
            done.extend(take_all(&mut s).await);
            all_right(done, 0..8, len);
            if cut {
                break;
            }
        }
        assert!(cut, "it waited although the run was over");
        s.close(h).await.unwrap();
        assert_eq!(at.bytes("f").len() as u64, len);
    }

    /// A wait in progress ends when the deadline is brought forward to now.
    async fn cut_short_from_outside(at, s) {
        let h = opened(&mut s, "f", making(OpenMode::Write)).await;
        let (deadline, clock) = (at.deadline.clone(), at.clock.clone());
        // The machine cannot write 2 GiB in 20 ms.
        for i in 0..64 {
            s.aio_write(&h, 0, 32 << 20, i).unwrap();
        }
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            deadline.bring_forward(clock.now());
        });
        let mut done = Vec::new();
        assert_eq!(s.aio_take(64, &mut done).await, Err(Stopped));
        stopper.join().unwrap();
        assert!(s.aio_pending() > 0, "too little was queued to see anything");
        at.deadline.clear();
        take_all(&mut s).await;
        s.close(h).await.unwrap();
    }

    /// Each session takes only its own writes.
    async fn sessions_apart(at, s) {
        let content = pool(Content::Random);
        let mut others: Vec<_> = (1..=4).map(|n| at.session_with(&content, n, BUFFER)).collect();
        let mut handles = Vec::new();
        for (n, other) in others.iter_mut().enumerate() {
            let h = opened(other, &format!("f{n}"), making(OpenMode::Write)).await;
            for i in 0..25 {
                other.aio_write(&h, u64::from(i), 1, n as u32 * 100 + i).unwrap();
            }
            handles.push(h);
        }
        for (n, (mut other, h)) in others.into_iter().zip(handles).enumerate() {
            assert_eq!(other.aio_pending(), 25);
            let first = n as u32 * 100;
            all_right(take_all(&mut other).await, first..first + 25, 1);
            other.close(h).await.unwrap();
        }
        assert_eq!(s.aio_pending(), 0);
    }

    /// Queued writes that bypass the page cache are complete, and opening without `create` still fails for a missing
    /// file.
    async fn direct(at, s) {
        let how = OpenHow { direct: true, ..making(OpenMode::Write) };
        let Ok(h) = name(&mut s, "f").open(how).await else { return };
        for i in 0..16 {
            s.aio_write(&h, u64::from(i) * 65_536, 65_536, i).unwrap();
        }
        all_right(take_all(&mut s).await, 0..16, 65_536);
        s.close(h).await.unwrap();
        let content = pool(Content::Random);
        assert!(at.bytes("f").chunks(65_536).all(|piece| is_from(&content, piece)));
        let missing = name(&mut s, "g").open(OpenHow::plain(OpenMode::Write)).await;
        assert_eq!(error(missing), Errno::NOENT);
    }
}
