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
use crate::posix::calls::SystemCalls;
use crate::posix::thread_pool::ThreadPool;
use crate::session::Target;
use crate::session_types::{Descriptors, DirectIo, SessionSpec, Space};
use crate::verifying::{Ledger, VerifyingTarget};
use kernel::Kernel;
use lockable::LockableMemory;
pub(super) use options::IoOptions;
use options::PoolOperation;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_plan::{COMPLETION_DELAY, OpKind, WorkDirSpec};
use ring::{Ring, RingSpec};
use session::{PoolCall, PoolOperations, UringSession};
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

/// A work directory whose files are accessed through rings.
pub(crate) struct UringPosix {
    posix: Posix,
    kernel: Kernel,
    depth: u32,
    lockable: Arc<LockableMemory>,
    pool: Arc<ThreadPool<PoolCall>>,
    pooled: PoolOperations,
}

/// Whether the URL of a `posix` target requests io_uring; `false` if the options cannot be parsed.
#[must_use]
pub(crate) fn is_requested(url: &str) -> bool {
    IoOptions::parse(url).is_ok_and(|options| options.uring)
}

/// The reason why io_uring is unavailable on this machine; `None` if it is available.
#[must_use]
pub(crate) fn unavailable() -> Option<String> {
    Kernel::probe().err()
}

/// Opens the work directory if the kernel has io_uring.
pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
) -> Result<UringPosix, TargetError> {
    let options = IoOptions::parse(url)?;
    let kernel = Kernel::probe().map_err(|why| {
        let hint = "io=sync (--io sync) needs none";
        TargetError::of(SCHEME.name, format!("io=uring: {why}; {hint}"))
    })?;
    let posix = super::open_work_dir(place, purpose)?;
    let mut pooled = options
        .pool
        .iter()
        .fold(PoolOperations::default(), |p, o| p.with(*o));
    if !kernel.makes_dirs {
        pooled = pooled.with(PoolOperation::MakeDir);
    }
    if !kernel.truncates {
        pooled = pooled.with(PoolOperation::Truncate);
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
        posix,
        kernel,
        lockable: Arc::new(LockableMemory::of_process()),
        pool,
        pooled,
    })
}

/// Maximum requests that the work directory's device queues. Each further operation would block a kernel thread.
fn queued_requests(posix: &Posix) -> Option<u32> {
    let requests = BlockDevice::of_dir(&posix.root)?.queued_requests()?;
    Some(requests.clamp(1, DEFAULT_DEPTH))
}

impl UringPosix {
    /// Names of the operations that the thread pool executes.
    fn pooled_names(&self) -> Vec<&'static str> {
        let chosen = PoolOperation::ALL.into_iter();
        let chosen = chosen
            .filter(|o| self.pooled.has(*o))
            .map(PoolOperation::name);
        chosen.chain(WITHOUT_RING).collect()
    }
}

impl Target for UringPosix {
    type Session = UringSession;
    type Verifying = VerifyingTarget<Self>;

    fn verifying(self, ledger: Arc<Ledger>) -> Self::Verifying {
        VerifyingTarget::new(self, ledger)
    }

    fn describe(&self) -> String {
        let registered = match self.kernel.registers {
            true => ", registered files and buffers",
            false => "",
        };
        format!(
            "{}, io_uring ({}{registered}, at most {} operations of a lane in the kernel); threads \
             execute {}",
            self.posix.describe(),
            self.kernel.setup.flags(),
            self.depth,
            self.pooled_names().join(", ")
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

    fn exists(&self) -> bool {
        self.posix.exists()
    }

    fn created_work_dir(&self) -> bool {
        self.posix.created_work_dir()
    }

    fn remove_work_dir(&self) -> Result<(), OpError> {
        self.posix.remove_work_dir()
    }

    fn writable(&self) -> Result<(), OpError> {
        self.posix.writable()
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        self.posix.space()
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        self.posix.uncacheable_reason()
    }

    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        self.posix.unsupported_reason(kind)
    }

    fn direct_io(&self) -> DirectIo {
        self.posix.direct_io()
    }

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
        let calls = SystemCalls::new(self.posix.root.clone(), spec)?;
        Ok(UringSession::new(
            (lane, spec.clock.clone()),
            ring,
            calls,
            self.pool.clone(),
            self.pooled,
        ))
    }
}
