//! A ring with full queues, abandoned operations and wakeups by other threads. On a machine without io_uring, the tests
//! only check the reason.

use super::super::call::RingCalls;
use super::*;
use crate::ContentPool;
use crate::posix::calls::SystemCalls;
use crate::posix::names::LocatedPath;
use crate::session_types::{DataSet, SessionSpec};
use plimsoll_lane::{Deadline, LaneKind, Task};
use plimsoll_measure::{Clock, WindowState};
use plimsoll_plan::{Content, Stream};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Waker;

/// Time limit of tests that would otherwise hang forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of one read operation.
const BLOCK: usize = 4096;

/// A lane with a ring.
struct Bench {
    lane: Lane,
    ring: Rc<Ring>,
}

impl Bench {
    fn new(kernel: Kernel, depth: u32) -> Self {
        let deadline = Arc::new(Deadline::default());
        let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline);
        let ring = Ring::new(&RingSpec {
            kernel,
            depth,
            lockable: Some(Arc::new(LockableMemory::of_process())),
            delays: None,
            lane: &lane,
        });
        let ring = Rc::new(ring.unwrap());
        lane.attach_completions(&ring);
        Self { lane, ring }
    }

    fn run(&self, tasks: Vec<Task<'_>>) {
        self.lane.run(tasks).unwrap();
        assert_eq!(self.ring.in_flight.get(), 0);
    }

    /// Starts to read a block of a file.
    fn read(&self, file: &Arc<RingFile>, offset: u64) -> Operation<'_> {
        let call = RingCall::read(calls(), file, 0..BLOCK, offset);
        self.ring.start(call)
    }
}

fn calls() -> Box<RingCalls> {
    let root = Arc::new(std::fs::File::open("/dev/shm").unwrap().into());
    let spec = SessionSpec {
        buffer: BLOCK as u64,
        content: ContentPool::new(Content::Zero, Stream::new(1)).unwrap(),
        clock: Clock::real(),
        number: 0,
        process: 0,
        seed: 1,
        data_set: DataSet::default(),
        window: Arc::new(WindowState::new(1)),
        in_flight: Arc::default(),
        rpc: None,
        silence: None,
        unmeasured: false,
    };
    Box::new(RingCalls::new(
        SystemCalls::new(root, LocatedPath::default(), &spec).unwrap(),
    ))
}

/// A pipe: the end that the ring reads, a second reader, and the writer.
fn pipe() -> (Arc<RingFile>, std::io::PipeReader, std::io::PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let of_ring = reader.try_clone().unwrap();
    (Arc::new(RingFile::new(of_ring.into())), reader, writer)
}

/// Polls an operation once; the operation is submitted but does not complete.
async fn poll_once(operation: &mut Operation<'_>) {
    poll_fn(|context| {
        assert!(Pin::new(&mut *operation).poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Runs `test` with the kernel's features on a separate thread and fails if the test does not end
/// in time.
fn in_time(test: impl FnOnce(Kernel) + Send + 'static) {
    let kernel = match Kernel::probe() {
        Ok(kernel) => kernel,
        Err(why) => {
            assert!(!why.is_empty());
            return;
        }
    };
    let (ended, end) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        test(kernel);
        let _ = ended.send(());
    });
    let timeout = Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    assert_ne!(end.recv_timeout(PATIENCE), timeout, "it hangs");
    thread.join().unwrap();
}

#[test]
fn operations_beyond_the_depth_and_the_queue_complete_once_each() {
    in_time(|kernel| {
        const BLOCKS: u32 = 3 * QUEUE_ENTRIES;
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        for block in 0..BLOCKS {
            let bytes = block.to_le_bytes().repeat(BLOCK / 4);
            file.write_all_at(&bytes, u64::from(block) * BLOCK as u64)
                .unwrap();
        }
        let file = Arc::new(RingFile::new(file.into()));
        for depth in [1, 16, 2 * BLOCKS] {
            let bench = Bench::new(kernel, depth);
            let (bench, file) = (&bench, &file);
            let worker = |block: u32| -> Task<'_> {
                Box::pin(async move {
                    for _ in 0..2 {
                        let operation = bench.read(file, u64::from(block) * BLOCK as u64);
                        assert!(bench.ring.in_flight.get() <= depth);
                        let (read, held) = operation.await;
                        assert_eq!(read, Ok(BLOCK as u32));
                        let expected = block.to_le_bytes().repeat(BLOCK / 4);
                        assert!(held.into_calls().calls.buffer[..BLOCK] == expected);
                    }
                })
            };
            bench.run((0..BLOCKS).map(worker).collect());
            assert_eq!(bench.ring.slots.borrow().used(), 0, "depth {depth}");
            assert!(bench.ring.backlog.borrow().is_empty());
            assert!(bench.ring.unqueued.borrow().is_empty());
        }
    });
}

#[test]
fn an_operation_that_is_given_up_is_cancelled_and_takes_nothing() {
    in_time(|kernel| {
        // At a depth of 1, the second operation is abandoned before its submission.
        for depth in [1, 8] {
            let bench = Bench::new(kernel, depth);
            let (file, mut reader, mut writer) = pipe();
            let task: Task<'_> = Box::pin(async {
                let mut given_up = [bench.read(&file, 0), bench.read(&file, 0)];
                for operation in &mut given_up {
                    poll_once(operation).await;
                }
                let [first, second] = given_up;
                drop(second);
                drop(first);
                // The lane continues until the kernel has released both operations.
                while bench.ring.slots.borrow().used() > 0 {
                    let until = bench.lane.now() + 1_000_000;
                    bench.lane.uncancellable_sleep_until(until).await;
                }
            });
            bench.run(vec![task]);
            writer.write_all(b"all").unwrap();
            drop(writer);
            let mut found = String::new();
            reader.read_to_string(&mut found).unwrap();
            assert_eq!(found, "all", "depth {depth}");
        }
    });
}

#[test]
fn a_ring_that_is_dropped_waits_until_the_kernel_uses_nothing_of_it() {
    in_time(|kernel| {
        let bench = Bench::new(kernel, 8);
        let (file, mut reader, mut writer) = pipe();
        let task: Task<'_> = Box::pin(async {
            let mut operation = bench.read(&file, 0);
            poll_once(&mut operation).await;
        });
        bench.lane.run(vec![task]).unwrap();
        assert_eq!(bench.ring.slots.borrow().used(), 1);
        drop(bench);
        // Only the test holds the file.
        assert_eq!(Arc::strong_count(&file), 1);
        drop(file);
        writer.write_all(b"all").unwrap();
        drop(writer);
        let mut found = String::new();
        reader.read_to_string(&mut found).unwrap();
        assert_eq!(found, "all");
    });
}

#[test]
fn another_thread_wakes_a_lane_that_waits_for_completions() {
    in_time(|kernel| {
        let bench = Bench::new(kernel, 8);
        let (file, _reader, mut writer) = pipe();
        let (is_set, waker) = (AtomicBool::new(false), Mutex::new(None::<Waker>));
        let reads: Task<'_> = Box::pin(async {
            let (read, held) = bench.read(&file, 0).await;
            assert_eq!(read, Ok(5));
            assert_eq!(&held.into_calls().calls.buffer[..5], b"woken");
        });
        let waits: Task<'_> = Box::pin(async {
            poll_fn(|context| {
                *waker.lock().unwrap() = Some(context.waker().clone());
                match is_set.load(SeqCst) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            })
            .await;
            writer.write_all(b"woken").unwrap();
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // By now the lane sleeps in the kernel; a lane that does not sleep yet needs no
                // wakeup.
                std::thread::sleep(Duration::from_millis(50));
                is_set.store(true, SeqCst);
                if let Some(waker) = waker.lock().unwrap().take() {
                    waker.wake();
                }
            });
            bench.run(vec![reads, waits]);
        });
    });
}
