//! Resource usage of this process.

use crate::error::BenchError;
use rustix::time::{ClockId, clock_gettime};

/// Peak resident memory of this process, in bytes (VmHWM).
pub(crate) fn peak_memory() -> Result<u64, BenchError> {
    let status = procfs::process::Process::myself()?.status()?;
    let kib = status.vmhwm.ok_or_else(|| BenchError::Program {
        program: "/proc/self/status",
        reason: "it has no VmHWM".into(),
    })?;
    Ok(kib * 1024)
}

/// Processor time of this process so far, in seconds.
pub(crate) fn process_cpu_s() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// Processor time of this thread so far, in seconds.
pub(crate) fn thread_cpu_s() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
