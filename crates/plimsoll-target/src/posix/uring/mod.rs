//! Files in a directory, by an io_uring on each lane: many workers share a thread.
//!
//! | modules | contents |
//! | --- | --- |
//! | `kernel` | the io_uring features of the running kernel, and the reasons why io_uring is unavailable |
//! | `lockable` | the amount of memory that may be registered |
//! | `options` | the options of the URL |
//! | `call` | operations, with all memory that the kernel uses for an operation |
//! | `slots`, `ring` | the operations in flight, and the ring of a lane |
//! | `file` | open files, which may be registered with the ring |
//! | `session`, `operations`, `aio` | the operations of a worker, on the ring or in the thread pool |

mod aio;
mod call;
mod file;
mod kernel;
mod lockable;
mod operations;
mod options;
mod ring;
mod session;
mod slots;

use super::{Posix, SCHEME};
use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::posix::block_device::BlockDevice;
use crate::posix::thread_pool::ThreadPool;
use crate::session::{Target, forward_properties};
use crate::session_types::{Descriptors, SessionSpec};
use kernel::Kernel;
use lockable::LockableMemory;
pub use options::IoMethod;
pub(super) use options::{IoOptions, OPTIONS};
use options::{PoolOperation, PoolOperations};
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_plan::{COMPLETION_DELAY, WorkDirSpec};
use ring::{Ring, RingSpec};
use session::{PoolCall, UringSession};
use std::rc::Rc;
use std::sync::Arc;

/// Maximum operations of a lane in the kernel if the device does not state a queue length.
const DEFAULT_DEPTH: u32 = 1024;

/// Maximum operations in the kernel of a lane whose operations are not measured.
const UNMEASURED_DEPTH: u32 = 64;

/// Operations that io_uring does not have.
const WITHOUT_RING: [&str; 8] = [
    "access",
    "chmod",
    "list",
    "lock",
    "mapped reads",
    "mapped writes",
    "pathconf",
    "statfs",
];

/// A work directory or a block device that is accessed through rings.
pub(crate) struct UringPosix {
    posix: Posix,
    kernel: Kernel,
    depth: u32,
    lanes: Option<usize>,
    lockable: Arc<LockableMemory>,
    pool: Arc<ThreadPool<PoolCall>>,
    pooled: PoolOperations,
}

/// How the URL of a `posix` target executes operations; the default if the options cannot be parsed.
pub(crate) fn method(url: &str) -> IoMethod {
    super::options(url).unwrap_or_default().method
}

/// The reason why the machine's kernel does not offer io_uring to this process; `None` if io_uring is available.
#[must_use]
pub(crate) fn unavailable() -> Option<String> {
    Kernel::probe().err()
}

/// Opens the work directory or the device if the kernel has io_uring.
pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
) -> Result<UringPosix, TargetError> {
    let options = super::options(url)?;
    let kernel = Kernel::probe().map_err(|why| {
        TargetError::of(SCHEME.name, format!("io=uring: {why}; io=sync needs none"))
    })?;
    let posix = super::open(url, place, purpose)?;
    let mut pooled = options.pool;
    if !kernel.makes_dirs {
        pooled.insert(PoolOperation::MakeDir);
    }
    if !kernel.truncates {
        pooled.insert(PoolOperation::Truncate);
    }
    let pool = Arc::new(ThreadPool::default());
    pool.start().map_err(|e| {
        let why = format!("io=uring: the pool of threads cannot be started: {e}");
        TargetError::of(SCHEME.name, why)
    })?;
    Ok(UringPosix {
        depth: options
            .depth
            .or_else(|| queued_requests(&posix))
            .unwrap_or(DEFAULT_DEPTH),
        lanes: options.lanes,
        posix,
        kernel,
        lockable: Arc::new(LockableMemory::of_process()),
        pool,
        pooled,
    })
}

/// Maximum requests that the block device queues: the device of a `device` target, or the device of the work directory.
/// Each further operation would block a kernel thread.
fn queued_requests(posix: &Posix) -> Option<u32> {
    let device = match &posix.device {
        None => BlockDevice::of_dir(&posix.root)?,
        Some(device) => device.numbers,
    };
    let requests = device.queued_requests()?;
    Some(requests.clamp(1, DEFAULT_DEPTH))
}

impl Target for UringPosix {
    type Session = UringSession;

    fn describe(&self) -> String {
        let registered = match self.kernel.registers {
            true => ", registered files and buffers",
            false => "",
        };
        let pooled: Vec<&str> = self.pooled.names().chain(WITHOUT_RING).collect();
        format!(
            "{}, io_uring ({}{registered}, at most {} operations of a lane in the kernel); threads \
             execute {}",
            self.posix.describe(),
            self.kernel.setup.flags(),
            self.depth,
            pooled.join(", ")
        )
    }

    fn descriptors(&self) -> Descriptors {
        Descriptors {
            // The ring, and the eventfd with which other threads wake the lane.
            per_lane: 2,
            ..self.posix.descriptors()
        }
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Reactor
    }

    fn requested_lanes(&self) -> Option<usize> {
        self.lanes
    }

    forward_properties!(self => self.posix);

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<UringSession, OpError> {
        let key = Arc::as_ptr(&self.pool) as usize;
        let ring = lane.try_lane_shared(key, || -> Result<_, OpError> {
            let rows = spec.rpc.as_ref();
            let delays = rows.and_then(|rows| Some((rows.clone(), rows.row(COMPLETION_DELAY)?)));
            let ring = Rc::new(Ring::new(&RingSpec {
                kernel: self.kernel,
                depth: match spec.unmeasured {
                    true => self.depth.min(UNMEASURED_DEPTH),
                    false => self.depth,
                },
                lockable: (!spec.unmeasured).then(|| self.lockable.clone()),
                delays,
                lane,
            })?);
            lane.attach_completions(&ring);
            Ok(ring)
        })?;
        let calls = self.posix.calls(spec)?;
        Ok(UringSession::new(
            (lane, spec.clock.clone()),
            ring,
            calls,
            self.pool.clone(),
            self.pooled,
        ))
    }
}
