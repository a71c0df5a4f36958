//! Clocks of simulated processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Clock of a simulated process: nanoseconds since the beginning of the simulation.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    pub(super) now: Arc<AtomicU64>,
    /// Drift in millionths; positive if the clock runs fast.
    pub(super) drift_ppm: i64,
}

/// Simulated duration of a clock reading in nanoseconds, which makes all readings distinct.
const READING_NS: u64 = 20;

/// Divisor for drifts, which are in millionths.
const MILLION: i128 = 1_000_000;

impl SimulatedClock {
    /// Reads the clock, which takes 20 ns.
    #[must_use]
    pub fn read(&self) -> u64 {
        let now = self.now.fetch_add(READING_NS, Relaxed) + READING_NS;
        scaled(now, MILLION + i128::from(self.drift_ppm), MILLION)
    }

    /// Clock of the process without the process's drift, which reads simulated time.
    #[must_use]
    pub fn undrifted(self) -> Self {
        Self {
            drift_ppm: 0,
            ..self
        }
    }

    /// Simulated time in which this clock advances by `time`.
    pub(super) fn lasts(&self, time: Duration) -> Duration {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(scaled(ns, MILLION, MILLION + i128::from(self.drift_ppm)))
    }
}

fn scaled(ns: u64, numerator: i128, denominator: i128) -> u64 {
    if numerator == denominator {
        return ns;
    }
    // The duration is rounded up, because a thread that waits until a time must not wake before that time.
    let scaled = (i128::from(ns) * numerator + denominator - 1) / denominator;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
