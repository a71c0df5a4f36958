//! Time, threads and waiting, for all code of a run that is not an operation.
//!
//! In a program these are the system's. In a [`Simulation`] they are its own: one thread runs at a time, the
//! next one is drawn from a seed, and time advances to the next instant at which a thread may continue when
//! none can now. So the same code, with any number of processes, does the same in every repetition, and a
//! minute passes in milliseconds. Deterministic simulation testing of this kind is described by Zhou et al.,
//! *FoundationDB: A Distributed Unbundled Transactional Key Value Store*, SIGMOD 2021, section 4.
//!
//! Outside a simulation every function here is the one of the standard library after a check of a
//! thread-local variable. The clock of operations does not even check: see `Clock` of plimsoll-measure.
//!
//! Results are written to the disk of the process: writers call `disk_call` before each change that takes space and
//! before each sync. Outside a simulation `disk_call` does nothing; in a simulation the call takes the time of the
//! simulated disk and fails when the disk fails.

mod allocator;
mod disk;
mod monitor;
mod processes;
pub mod signals;
mod simulation;
pub mod sync;
mod threads;

pub use allocator::{NotingAllocator, note_failed_allocation, prepare_for_memory_limits};
pub use disk::{DiskCall, DiskFault, SimulatedDisk, disk_call};
pub use monitor::Monitor;
pub use processes::{ProcessSpace, process_id, process_space, process_start};
pub use simulation::{ProcessId, Simulation, SimulationEnd, SimulationHandle};
pub use threads::{THREAD_STACK_BYTES, ThreadHandle, current, park, run_on_threads, spawn};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

/// The current instant.
#[must_use]
pub fn now() -> Instant {
    simulation::current().map_or_else(Instant::now, |thread| thread.instant())
}

/// The time of day.
#[must_use]
pub fn system_time() -> SystemTime {
    simulation::current().map_or_else(SystemTime::now, |thread| thread.system_time())
}

/// Time since an instant that [`now`] returned.
#[must_use]
pub fn elapsed(since: Instant) -> Duration {
    now().saturating_duration_since(since)
}

/// Blocks the calling thread for this time.
pub fn sleep(time: Duration) {
    match simulation::current() {
        Some(thread) => thread.sleep(time),
        None => std::thread::sleep(time),
    }
}

/// Lets a short time pass of which at most `left` is needed, without giving up the processor.
pub fn spin(left: Duration) {
    match simulation::current() {
        Some(thread) => thread.sleep(left),
        None => std::hint::spin_loop(),
    }
}

/// The clock of a process of a simulation: nanoseconds since the simulation began.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    now: Arc<AtomicU64>,
    /// Millionths by which it runs fast.
    drift_ppm: i64,
}

/// Nanoseconds that a reading of a simulated clock takes, so that no two are the same.
const READING_NS: u64 = 20;

/// What clocks drift by is stated in parts of this.
const MILLION: i128 = 1_000_000;

impl SimulatedClock {
    /// Reads the clock, which takes 20 ns.
    #[must_use]
    pub fn read(&self) -> u64 {
        let now = self.now.fetch_add(READING_NS, Relaxed) + READING_NS;
        scaled(now, MILLION + i128::from(self.drift_ppm), MILLION)
    }

    /// The same clock without its drift.
    #[must_use]
    pub fn undrifted(self) -> Self {
        Self {
            drift_ppm: 0,
            ..self
        }
    }

    /// The time that passes while this clock advances by `time`.
    pub(crate) fn lasts(&self, time: Duration) -> Duration {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(scaled(ns, MILLION, MILLION + i128::from(self.drift_ppm)))
    }
}

fn scaled(ns: u64, numerator: i128, denominator: i128) -> u64 {
    if numerator == denominator {
        return ns;
    }
    // Rounded up: who waits until a time does not wake before it.
    let scaled = (i128::from(ns) * numerator + denominator - 1) / denominator;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The time of day at which every simulation begins.
#[must_use]
pub fn simulated_epoch() -> SystemTime {
    simulation::epoch()
}

/// The clock of the simulation that the calling thread belongs to; `None` outside one.
#[must_use]
pub fn simulated_clock() -> Option<SimulatedClock> {
    simulation::current().map(|thread| thread.clock())
}
