//! The behaviour of targets that keep no files.

use crate::support::{Bench, Case, check_null, opened, take_all};
use plimsoll_lane::{LaneKind, Stopped};
use plimsoll_plan::OpKind;
use plimsoll_target::{
    EntryKind, FileOperation, ListTotals, NameOperation, OpenHow, OpenMode, Session, Target,
};

const MS: u64 = 1_000_000;

/// The latency of an operation, in nanoseconds.
struct Latency(u64);

impl Latency {
    /// Asserts that an operation that began at `begun` took at least the latency, and in virtual time exactly the
    /// latency.
    #[track_caller]
    fn passed<T: Target>(&self, at: &Bench<'_, T>, begun: u64) {
        let took = at.clock.now() - begun;
        if at.clock.is_virtual() {
            assert_eq!(took, self.0);
        } else {
            assert!(took >= self.0, "answered after {took} ns");
        }
    }
}

/// Every measured operation succeeds after the latency, with results that let a workload continue; no contents and no
/// entries can be read back.
struct Operations(Latency);

impl Case for Operations {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        assert!(!at.target.keeps_files());
        assert!(at.target.exists());
        assert_eq!(at.target.space(), Ok(None));
        let mut s = at.session();
        macro_rules! takes_time {
            ($operation:expr) => {{
                let begun = at.clock.now();
                let result = $operation.await.unwrap();
                self.0.passed(&at, begun);
                result
            }};
        }
        let how = OpenHow {
            planned_size: 10_000,
            ..OpenHow::plain(OpenMode::ReadWrite)
        };
        s.locate(|_| panic!("nothing has a name"));
        let h = takes_time!(s.open(how));
        for (offset, len, got) in [
            (0, 4096, 4096),
            (8192, 4096, 1808),
            (10_000, 1, 0),
            (u64::MAX, u64::MAX, 0),
            (0, u64::MAX, 10_000),
        ] {
            assert_eq!(
                takes_time!(s.read(&h, offset, len)),
                got,
                "{len} at {offset}"
            );
        }
        takes_time!(s.write(&h, 0, 1 << 40));
        takes_time!(s.append(&h, 1 << 40));
        takes_time!(s.fsync(&h));
        let found = takes_time!(s.stat_handle(&h));
        assert_eq!((found.kind, found.size), (EntryKind::File, 10_000));
        s.on_file(&h, FileOperation::DropCache).await.unwrap();
        takes_time!(s.on_file(&h, FileOperation::Truncate(1)));
        takes_time!(s.on_file(&h, FileOperation::Lock { offset: 0, len: 1 }));
        takes_time!(s.on_file(
            &h,
            FileOperation::WriteStable {
                offset: None,
                len: 1 << 40
            }
        ));
        assert_eq!(
            takes_time!(s.on_file(
                &h,
                FileOperation::Modify {
                    offset: 0,
                    len: 100
                }
            )),
            200
        );
        assert_eq!(takes_time!(s.copy(&h, &h, (8192, 4096))), 1808);
        takes_time!(s.on_file(
            &h,
            FileOperation::MapRead {
                offset: 0,
                len: 1 << 40
            }
        ));
        takes_time!(s.on_file(
            &h,
            FileOperation::MapWrite {
                offset: 0,
                len: 1 << 40,
                flush: true
            }
        ));
        takes_time!(s.close(h));
        s.set_destination();
        takes_time!(s.rename());
        takes_time!(s.on_name(NameOperation::StatMissing));
        takes_time!(s.on_name(NameOperation::Access));
        takes_time!(s.on_name(NameOperation::Chmod(0o600)));
        takes_time!(s.on_name(NameOperation::StatFs));
        takes_time!(s.on_name(NameOperation::PathConf));
        takes_time!(s.on_name(NameOperation::Lookup));
        takes_time!(s.on_name(NameOperation::ReadLink));
        assert_eq!(takes_time!(s.on_name(NameOperation::ListPlus)), 0);
        assert_eq!(at.target.unsupported_reason(OpKind::Lookup), None);
        assert_eq!(takes_time!(s.stat()).kind, kind);
        takes_time!(s.make_dir());
        assert_eq!(takes_time!(s.list()), ListTotals::default());
        takes_time!(s.remove_dir());
        takes_time!(s.unlink());
        s.put(b"x").await.unwrap();
        s.get().await.expect_err("nothing is kept");
        s.entries().await.expect_err("nothing is kept");
        s.remove(EntryKind::File).await.unwrap();
    }
}

/// Queued writes complete one latency after they are queued, all together.
struct Asynchronous(Latency);

impl Case for Asynchronous {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Write)).await;
        let begun = at.clock.now();
        for i in 0..100 {
            s.aio_write(&h, 0, u64::from(i), i).unwrap();
        }
        let mut done = Vec::new();
        s.aio_take(50, &mut done).await.unwrap();
        assert!(done.len() >= 50);
        assert_eq!(s.aio_pending(), 100 - done.len());
        self.0.passed(&at, begun);
        done.extend(take_all(&mut s).await);
        done.sort_by_key(|d| d.tag);
        assert!(
            done.iter().map(|d| d.tag).eq(0..100),
            "not every write once"
        );
        for d in &done {
            assert_eq!(d.result, Ok(u64::from(d.tag)));
            assert_eq!(d.end - d.start, self.0.0);
        }
        s.close(h).await.unwrap();
    }
}

/// A wait for queued writes ends with the run; the writes can be taken later.
struct CutShort;

impl Case for CutShort {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        let h = opened(&mut s, "f", OpenHow::plain(OpenMode::Write)).await;
        at.deadline.bring_forward(at.clock.now());
        s.aio_write(&h, 0, 1, 1).unwrap();
        let mut done = Vec::new();
        assert_eq!(s.aio_take(1, &mut done).await, Err(Stopped));
        assert_eq!((s.aio_pending(), done.len()), (1, 0));
        at.deadline.clear();
        assert_eq!(take_all(&mut s).await.len(), 1);
        // A plain operation takes the whole latency, even after the end of the run.
        at.deadline.bring_forward(at.clock.now());
        let begun = at.clock.now();
        s.close(h).await.unwrap();
        Latency(MS).passed(&at, begun);
    }
}

#[test]
fn at_once() {
    check_null("null", None, Operations(Latency(0)));
    check_null("null:", None, Operations(Latency(0)));
    check_null("null:?latency=0ms", None, Operations(Latency(0)));
    check_null("null", Some(LaneKind::Reactor), Operations(Latency(0)));
    check_null("null", None, Asynchronous(Latency(0)));
}

#[test]
fn after_a_latency() {
    check_null("null:?latency=1ms", None, Operations(Latency(MS)));
    check_null(
        "null:?latency=1ms",
        Some(LaneKind::Blocking),
        Operations(Latency(MS)),
    );
    check_null("null:?latency=1ms", None, Asynchronous(Latency(MS)));
    check_null("null:?latency=1ms", None, CutShort);
}

#[test]
fn after_a_virtual_latency() {
    let kind = Some(LaneKind::Virtual);
    check_null("null:?latency=1ms", kind, Operations(Latency(MS)));
    check_null("null:?latency=1ms", kind, Asynchronous(Latency(MS)));
    check_null("null:?latency=1ms", kind, CutShort);
    check_null(
        "null:?latency=1h",
        kind,
        Operations(Latency(3_600_000 * MS)),
    );
}

/// Expected kind of lane and expected description of a null target.
struct Lanes(LaneKind, &'static str);

impl Case for Lanes {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        assert_eq!(at.target.lane_kind(), self.0);
        assert_eq!(at.target.describe(), self.1);
    }
}

#[test]
fn what_it_says_of_itself() {
    check_null("null", None, Lanes(LaneKind::Blocking, "null"));
    check_null(
        "null:?latency=250us",
        None,
        Lanes(LaneKind::Reactor, "null, latency 250 us"),
    );
}
