//! Unmeasured work on many files at once: populating, checking, removing.

use super::run_target::RunTarget;
use crate::sync::lock;
use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, WindowState};
use plimsoll_plan::{Content, Plan};
use plimsoll_runtime::run_on_threads;
use plimsoll_target::{ContentPool, DataSet, OpError, SessionSpec, SetupSession};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Number of threads of a pool on a target with blocking lanes.
pub(super) const BLOCKING_POOL_THREADS: usize = 16;

/// Number of workers per thread of a pool on any other target.
const WORKERS_PER_LANE: usize = 64;

/// Number of items that a worker takes at a time.
const ITEMS_PER_BATCH: u64 = 16;

/// Interval of the progress reports of a pool.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time without a reply of the server while files are removed or read again.
pub(crate) const MAX_SERVER_SILENCE: Duration = Duration::from_secs(4);

/// Reason why a pool stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SetupError {
    /// A stop was requested before the pool had completed all items.
    Stopped,
    /// An operation on the target outside the load failed, such as the creation or removal of a file.
    Failed {
        /// The operation, as a verb with its object, such as `make directory`.
        action: &'static str,
        /// Path of the operation, relative to the work directory.
        path: String,
        /// Error with which the target failed the operation.
        error: OpError,
    },
}

impl SetupError {
    pub(crate) fn failed(action: &'static str, path: &[u8], error: OpError) -> Self {
        Self::Failed {
            action,
            path: String::from_utf8_lossy(path).into_owned(),
            error,
        }
    }

    /// Whether the file system or a quota is full.
    pub(crate) fn is_lack_of_room(&self) -> bool {
        matches!(
            self,
            Self::Failed {
                error: OpError(Errno::NOSPC | Errno::DQUOT),
                ..
            }
        )
    }

    /// The failure of an operation on the path that `push` composes.
    pub(crate) fn failed_at(
        action: &'static str,
        push: impl FnOnce(&mut Vec<u8>),
        error: OpError,
    ) -> Self {
        let mut path = Vec::new();
        push(&mut path);
        Self::failed(action, &path, error)
    }
}

/// Work on many items, numbered from 0, that the sessions of a pool divide among themselves.
pub(crate) trait BulkTask: Sync {
    /// Executes the task for item `index`.
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError>;

    /// Pool of the bytes that the task writes; `None` for a task without writes.
    fn content(&self) -> Option<&ContentPool> {
        None
    }
}

/// Content pools of a Plan, one for each kind of content; clones share the pools.
#[derive(Clone)]
pub(crate) struct ContentPools(Arc<[(Content, ContentPool)]>);

impl ContentPools {
    /// Fills a pool for each kind of content of the Plan.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    pub(crate) fn new(plan: &Plan) -> io::Result<Self> {
        let fill = |content| Ok((content, ContentPool::new(content, plan.stream("content"))?));
        let pools: io::Result<_> = plan.contents().into_iter().map(fill).collect();
        Ok(Self(pools?))
    }

    /// Pool of a kind of content of the Plan.
    pub(crate) fn of(&self, content: Content) -> &ContentPool {
        let found = self.0.iter().find(|(of, _)| *of == content);
        &found.expect("each content of the Plan has a pool").1
    }

    /// A pool for sessions that write nothing.
    fn any(&self) -> &ContentPool {
        &self.0[0].1
    }
}

/// A target, and the parameters of sessions for unmeasured work.
pub(crate) struct SetupPool {
    pub(crate) target: Arc<dyn RunTarget>,
    pub(crate) contents: ContentPools,
    pub(crate) stop: Arc<AtomicBool>,
    /// Maximum time without a reply of the server before calls fail; `None` for no limit.
    pub(crate) silence: Option<Duration>,
}

/// Clock of the lanes of a pool, and the deadline that ends the lanes' waits.
#[derive(Clone)]
struct PoolClock {
    clock: Clock,
    deadline: Arc<Deadline>,
}

impl PoolClock {
    fn begin() -> Self {
        Self {
            clock: Clock::real(),
            deadline: Arc::default(),
        }
    }

    /// Abandons calls that have no reply yet.
    fn end(&self) {
        self.deadline.bring_forward(self.clock.now());
    }
}

impl SetupPool {
    /// Runs a future on a new session, on this thread.
    pub(crate) fn one<R>(
        &self,
        work: impl AsyncFnOnce(&mut dyn SetupSession) -> R,
    ) -> Result<R, OpError> {
        let (lane, mut session) = self.lane(&PoolClock::begin(), 0, self.contents.any())?;
        let mut result = None;
        let task: Task<'_> = Box::pin(async { result = Some(work(&mut *session).await) });
        // On a real clock, a lane reports no deadlock.
        let _ = lane.run(vec![task]);
        result.ok_or(OpError(rustix::io::Errno::CANCELED))
    }

    /// Runs a future on a new session with `path` located, on this thread.
    pub(crate) fn at<R>(
        &self,
        path: impl AsRef<[u8]>,
        work: impl AsyncFnOnce(&mut dyn SetupSession) -> Result<R, OpError>,
    ) -> Result<R, OpError> {
        self.one(async |session| {
            session.locate(|p| p.extend_from_slice(path.as_ref()));
            work(session).await
        })?
    }

    fn lane(
        &self,
        time: &PoolClock,
        number: u64,
        content: &ContentPool,
    ) -> Result<(Lane, Box<dyn SetupSession>), OpError> {
        let kind = match self.target.lane_kind() {
            LaneKind::Virtual => LaneKind::Reactor,
            kind => kind,
        };
        let lane = Lane::new(kind, time.clock.clone(), time.deadline.clone());
        let session = self
            .target
            .setup_session(&lane, &self.spec(time, number, content))?;
        Ok((lane, session))
    }

    fn spec(&self, time: &PoolClock, number: u64, content: &ContentPool) -> SessionSpec {
        SessionSpec {
            buffer: 4096,
            content: content.clone(),
            clock: time.clock.clone(),
            number,
            process: 0,
            seed: 0,
            data_set: DataSet::default(),
            window: Arc::new(WindowState::new(1)),
            in_flight: Arc::default(),
            rpc: None,
            silence: self.silence,
            unmeasured: true,
        }
    }

    /// Executes a task for `items` items on several threads, and calls `tell` periodically.
    pub(crate) fn all<J: BulkTask>(
        &self,
        items: u64,
        job: &J,
        mut tell: impl FnMut(),
    ) -> Result<(), SetupError> {
        let blocking = self.target.lane_kind() == LaneKind::Blocking;
        let (lanes, workers) = if blocking {
            (BLOCKING_POOL_THREADS, 1)
        } else {
            (2, WORKERS_PER_LANE)
        };
        let lanes = lanes.min(items.div_ceil(ITEMS_PER_BATCH) as usize);
        let next = AtomicU64::new(0);
        let failure: Mutex<Option<SetupError>> = Mutex::new(None);
        let time = &PoolClock::begin();
        let fail = |e: SetupError| {
            lock(&failure).get_or_insert(e);
            next.store(items, Relaxed);
        };
        let work = |number| {
            let done = self.work(number as u64, workers, (items, time), &next, job, &fail);
            if let Err(e) = done {
                fail(SetupError::failed("open a session on", b"", e));
            }
        };
        let started = run_on_threads(lanes, work, PROGRESS_INTERVAL, || {
            tell();
            if self.stop.load(Relaxed) {
                fail(SetupError::Stopped);
                time.end();
            }
        });
        if let Err(e) = started {
            let error = OpError(Errno::from_io_error(&e).unwrap_or(Errno::AGAIN));
            fail(SetupError::failed(
                "start a thread that works on",
                b"",
                error,
            ));
        }
        let failure = lock(&failure).take();
        failure.map_or(Ok(()), Err)
    }

    fn work<J: BulkTask>(
        &self,
        number: u64,
        workers: usize,
        (items, time): (u64, &PoolClock),
        next: &AtomicU64,
        job: &J,
        fail: &impl Fn(SetupError),
    ) -> Result<(), OpError> {
        let content = job.content().unwrap_or_else(|| self.contents.any());
        let (lane, first) = self.lane(time, number, content)?;
        let mut sessions = vec![first];
        for _ in 1..workers {
            sessions.push(
                self.target
                    .setup_session(&lane, &self.spec(time, number, content))?,
            );
        }
        let worker = |session: Box<dyn SetupSession>| -> Task<'_> {
            let mut session = session;
            Box::pin(async move {
                loop {
                    let begin = next.fetch_add(ITEMS_PER_BATCH, Relaxed);
                    if begin >= items {
                        return;
                    }
                    for index in begin..items.min(begin + ITEMS_PER_BATCH) {
                        if let Err(e) = job.item(&mut *session, index).await {
                            return fail(e);
                        }
                    }
                }
            })
        };
        let _ = lane.run(sessions.into_iter().map(worker).collect());
        Ok(())
    }
}
