//! The thread pool under load, at shutdown and at dropped sessions.

use super::*;
use crate::ContentPool;
use crate::posix::thread_pool::MAX_POOL_THREADS;
use crate::write_data::WriteData;
use plimsoll_lane::{Deadline, LaneKind, Task};
use plimsoll_plan::{Content, Stream};
use std::cell::RefCell;
use std::time::Duration;

/// Time limit of tests that would otherwise hang forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Zeros to write.
fn zeros() -> WriteData {
    let pool = ContentPool::new(Content::Zero, Stream::new(1)).unwrap();
    WriteData::new(&pool, 0).unwrap()
}

fn file() -> Arc<OwnedFd> {
    Arc::new(tempfile::tempfile_in("/dev/shm").unwrap().into())
}

fn lane(clock: &Clock) -> Lane {
    Lane::new(
        LaneKind::Blocking,
        clock.clone(),
        Arc::new(Deadline::default()),
    )
}

/// Runs `test` on a separate thread and fails if the test does not end in time.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (ended, end) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = ended.send(());
    });
    let timeout = Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    assert_ne!(end.recv_timeout(PATIENCE), timeout, "it hangs");
    thread.join().unwrap();
}

/// One worker: `writes` writes in batches; waits for each batch in pieces.
fn work(pool: Arc<AioThreadPool>, clock: &Clock, mut content: WriteData, writes: u32, batch: u32) {
    let (lane, file) = (lane(clock), file());
    let seen = RefCell::new(Vec::new());
    let task: Task<'_> = Box::pin(async {
        let mut queue = SessionAioQueue::new(pool, clock.clone());
        let mut done = Vec::new();
        for tag in 0..writes {
            queue
                .push(
                    file.clone(),
                    u64::from(tag),
                    1,
                    tag,
                    content.take_detached(1).unwrap(),
                )
                .unwrap();
            if tag % batch == batch - 1 {
                // Each wait for a single write may miss the wakeup by that write.
                while queue.pending() > 0 {
                    queue.take(&lane, 1, &mut done).await.unwrap();
                }
            }
        }
        queue.take(&lane, queue.pending(), &mut done).await.unwrap();
        assert_eq!(queue.pending(), 0);
        seen.borrow_mut().append(&mut done);
    });
    lane.run(vec![task]).unwrap();
    let mut tags: Vec<u32> = seen.borrow().iter().map(|d| d.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..writes), "not every write once");
    assert!(seen.borrow().iter().all(|d| d.result == Ok(1)));
    assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, i64::from(writes));
}

#[test]
fn eight_workers_miss_no_write_and_no_wake() {
    in_time(|| {
        let (pool, clock) = (Arc::new(AioThreadPool::default()), Clock::real());
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let (pool, clock) = (pool.clone(), &clock);
                scope.spawn(move || work(pool, clock, zeros(), 1000, 1 + worker * 3));
            }
        });
        let jobs = lock(&pool.shared.jobs);
        assert!(jobs.queue.is_empty());
        assert!(
            (1..=MAX_POOL_THREADS).contains(&jobs.threads),
            "{} threads",
            jobs.threads
        );
    });
}

#[test]
fn contents_that_are_made_for_each_write_are_those_of_the_write() {
    in_time(|| {
        let content = Content::Blocks {
            compressible_percent: 0.0,
            dedupable_percent: 50.0,
            block: 4096,
            groups: 3,
        };
        let content = ContentPool::new(content, Stream::new(1)).unwrap();
        let mut queue = SessionAioQueue::new(Arc::new(AioThreadPool::default()), Clock::real());
        let mut source = WriteData::new(&content, 0).unwrap();
        let file = file();
        for tag in 0..256_u32 {
            let (at, bytes) = (u64::from(tag) << 14, source.take_detached(1 << 14).unwrap());
            queue.push(file.clone(), at, 1 << 14, tag, bytes).unwrap();
        }
        queue.drain(file.as_raw_fd());
        let mut bytes = vec![0; 256 << 14];
        rustix::io::pread(&*file, &mut bytes, 0).unwrap();
        let mut times = std::collections::HashMap::new();
        for block in bytes.chunks(4096) {
            *times.entry(block).or_insert(0) += 1;
        }
        let again: Vec<u32> = times.into_values().filter(|n| *n > 1).collect();
        assert_eq!(again.len(), 3);
        // Four standard deviations of a binomial distribution with 1024 trials.
        let share = f64::from(again.iter().sum::<u32>()) / 1024.0;
        assert!(
            (share - 0.5).abs() < 4.0 * (0.25_f64 / 1024.0).sqrt(),
            "{share}"
        );
    });
}

#[test]
fn never_more_threads_than_the_most() {
    in_time(|| {
        let (pool, clock, mut content) =
            (Arc::new(AioThreadPool::default()), Clock::real(), zeros());
        let threads = || lock(&pool.shared.jobs).threads;
        let mut queue = SessionAioQueue::new(pool.clone(), clock.clone());
        assert_eq!(threads(), 0, "a thread that no write needed");
        let file = file();
        for tag in 0..5 * MAX_POOL_THREADS as u32 {
            queue
                .push(
                    file.clone(),
                    0,
                    1 << 20,
                    tag,
                    content.take_detached(1 << 20).unwrap(),
                )
                .unwrap();
            assert!(threads() <= MAX_POOL_THREADS);
        }
        assert!(threads() > 1, "one write at a time");
        queue.drain(file.as_raw_fd());
        assert_eq!(
            lock(&queue.completions.state).done.len(),
            5 * MAX_POOL_THREADS
        );
    });
}

#[test]
fn threads_end_with_the_pool_and_finish_what_is_queued() {
    in_time(|| {
        let (pool, clock, mut content) =
            (Arc::new(AioThreadPool::default()), Clock::real(), zeros());
        let shared = Arc::downgrade(&pool.shared);
        let mut queue = SessionAioQueue::new(pool.clone(), clock.clone());
        let file = file();
        for tag in 0..100 {
            let offset = u64::from(tag) << 16;
            queue
                .push(
                    file.clone(),
                    offset,
                    1 << 16,
                    tag,
                    content.take_detached(1 << 16).unwrap(),
                )
                .unwrap();
        }
        drop(pool);
        drop(queue);
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 100 << 16);
        assert_eq!(Arc::strong_count(&file), 1, "a write still has the file");
        // The threads hold the last references.
        while shared.strong_count() > 0 {
            std::thread::yield_now();
        }
    });
}
