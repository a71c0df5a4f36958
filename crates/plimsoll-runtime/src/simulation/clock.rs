//! Clocks of simulated processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The clock of a process of a simulation: nanoseconds since the simulation began.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    pub(super) now: Arc<AtomicU64>,
    /// Millionths by which it runs fast.
    pub(super) drift_ppm: i64,
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
    pub(super) fn lasts(&self, time: Duration) -> Duration {
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
