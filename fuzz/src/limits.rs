//! Maximum time and memory for an input.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Maximum processor time for an input. Waiting does not count, so that a busy machine causes no failure.
pub const MAX_TIME: Duration = Duration::from_secs(1);

/// Maximum memory in use at a time for an input, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 1 << 30;

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(now).expect("processor time is not negative")
}

/// Runs `run`, a target on one input, and measures processor time and memory.
///
/// # Panics
/// If `run` takes more processor time than [`MAX_TIME`], or more memory than [`MAX_MEMORY_BYTES`], or panics.
pub fn within(run: impl FnOnce()) {
    let begun = processor_time();
    let memory = allocation_counter::measure(run);
    let taken = processor_time().saturating_sub(begun);
    assert!(taken <= MAX_TIME, "this input takes {taken:?}");
    assert!(
        memory.bytes_max <= MAX_MEMORY_BYTES,
        "this input takes {memory:?}"
    );
}
