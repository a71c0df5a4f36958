//! Time and memory that an input may take.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Processor time that an input may take. Waiting does not count, so that a busy machine is no failure.
pub const MAX_TIME: Duration = Duration::from_secs(1);

/// Memory that an input may take at a time, in bytes.
pub const MAX_MEMORY_BYTES: u64 = 1 << 30;

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(now).expect("processor time is not negative")
}

/// Gives an input to a target.
///
/// # Panics
/// If it takes more processor time than [`MAX_TIME`], or more memory than [`MAX_MEMORY_BYTES`]; as the target
/// does.
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
