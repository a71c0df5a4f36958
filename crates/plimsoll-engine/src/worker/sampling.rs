//! Processor time of operations, measured for a sample of them.

use plimsoll_lane::Lane;
use plimsoll_measure::{Nanos, Recorder};
use std::num::NonZeroU64;

/// Approximate time between two samples in nanoseconds. A sample reads the thread's processor time
/// twice, each a system call of about 0.7 µs, so sampling takes far less than 1 % of the time.
const SAMPLE_SPACING_NS: Nanos = 5_000_000;

/// Maximum number of operations between two samples.
const MAX_SKIPPED_OPS: Nanos = 100_000;

/// Operations between two samples while nothing is measured: enough that a warm-up is as fast as the
/// measured window, few enough that a rare operation is sampled soon after.
const WARMUP_SKIPPED_OPS: u32 = 255;

/// The first operations of a row are all sampled, so that rare ones have a figure too.
const ALWAYS_SAMPLED_OPS: u64 = 16;

/// Decides which operations of a worker are sampled.
pub(crate) struct CpuSampling {
    /// Operations of each row until the next sample; empty if nothing is sampled.
    left: Box<[u32]>,
    /// Processor time of the two readings.
    overhead: Nanos,
}

impl CpuSampling {
    pub(crate) fn new(lane: &Lane, rows: usize, wanted: bool) -> Self {
        let readings = (0..32).filter_map(|_| {
            let (a, b) = (lane.thread_cpu()?, lane.thread_cpu()?);
            Some(b - a)
        });
        let overhead = readings.min().filter(|_| wanted);
        Self {
            left: overhead.map_or_else(Box::default, |_| vec![0; rows].into()),
            overhead: overhead.unwrap_or(0),
        }
    }

    /// Processor time before an operation that is sampled.
    #[inline]
    pub(crate) fn begin(&mut self, lane: &Lane, row: u32) -> Option<NonZeroU64> {
        let left = self.left.get_mut(row as usize)?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        read(lane)
    }

    /// Records a sample and schedules the next one. `used` is the processor time from before the
    /// operation to after it.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(&mut self, recorder: &Recorder, row: u32, used: Nanos, end: Nanos) {
        let used = used.saturating_sub(self.overhead);
        recorder.record_cpu(row, end, used);
        let (count, mean) = recorder.current_interval_mean(row);
        let skip = SAMPLE_SPACING_NS / mean.max(1);
        self.left[row as usize] = match count {
            0 => WARMUP_SKIPPED_OPS,
            n if n < ALWAYS_SAMPLED_OPS => 0,
            _ => skip.min(MAX_SKIPPED_OPS) as u32,
        };
    }
}

#[cold]
fn read(lane: &Lane) -> Option<NonZeroU64> {
    lane.thread_cpu().and_then(NonZeroU64::new)
}
