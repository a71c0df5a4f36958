//! Time, threads and waiting, for all code of a run except operations.
//!
//! In a program, time and threads are the system's. A `Simulation` has time and threads of its own: one thread runs at
//! a time, the next thread is drawn from a seed, and when no thread can run, time advances to the next instant at which
//! a thread can run. Simulated processes therefore behave identically in every repetition, and a simulated minute takes
//! milliseconds. Deterministic simulation testing of this kind is described by Zhou et al., *FoundationDB: A
//! Distributed Unbundled Transactional Key Value Store*, SIGMOD 2021, section 4.
//!
//! Simulations exist only with the feature `simulation`, which released programs do not have. Without the feature, the
//! functions for time, waits and threads call the standard library. With the feature, each of the functions first
//! checks a thread-local variable, and calls the standard library outside a simulation. The clock of operations makes
//! no check: see `Clock` of plimsoll-measure.
//!
//! Results are written to the disk of the process: writers call `disk_call` before each change that takes space and
//! before each sync. Outside a simulation `disk_call` does nothing; in a simulation `disk_call` takes the time of the
//! simulated disk and fails when the disk fails.

mod allocator;
mod disk;
mod monitor;
mod processes;
pub mod signals;
#[cfg(feature = "simulation")]
mod simulation;
#[cfg(not(feature = "simulation"))]
#[path = "no_simulation.rs"]
mod simulation;
pub mod sync;
mod threads;

pub use allocator::{NotingAllocator, note_failed_allocation, prepare_for_memory_limits};
pub use disk::{DiskCall, disk_call};
pub use monitor::Monitor;
pub use processes::{ProcessSpace, process_id, process_space, process_start};
pub use simulation::SimulatedClock;
#[cfg(feature = "simulation")]
pub use simulation::{
    DiskFault, ProcessId, SimulatedDisk, Simulation, SimulationEnd, SimulationHandle,
};
pub use threads::{THREAD_STACK_BYTES, ThreadHandle, current, park, run_on_threads, spawn};

use std::time::{Duration, Instant, SystemTime};

/// The current instant, of the system or of the simulation.
#[must_use]
pub fn now() -> Instant {
    simulation::current().map_or_else(Instant::now, |thread| thread.instant())
}

/// The time of day, of the system or of the simulation.
#[must_use]
pub fn system_time() -> SystemTime {
    simulation::current().map_or_else(SystemTime::now, |thread| thread.system_time())
}

/// Time since an instant that [`now`] returned; zero if the instant is later than now.
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

/// A single step of a busy wait that ends after at most `left`, without giving up the processor. In a simulation the
/// step takes all of `left`.
pub fn spin(left: Duration) {
    match simulation::current() {
        Some(thread) => thread.sleep(left),
        None => std::hint::spin_loop(),
    }
}

/// The time of day at which every simulation begins: 1 January 2026, 0:00 UTC.
#[cfg(feature = "simulation")]
#[must_use]
pub fn simulated_epoch() -> SystemTime {
    simulation::epoch()
}

/// Clock of the simulation that the calling thread belongs to; `None` outside a simulation.
#[must_use]
pub fn simulated_clock() -> Option<SimulatedClock> {
    simulation::current().map(|thread| thread.clock())
}
