//! The only place that reads the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nanoseconds since the clock was made.
pub type Nanos = u64;

/// A clock that all lanes of a run share.
///
/// The real one counts processor ticks where the processor's counter is invariant (the
/// `quanta` crate falls back to the system's monotonic clock where it is not): two readings
/// cost a third of two system clock calls. The virtual one stands still until a lane moves it.
#[derive(Debug, Clone)]
pub enum Clock {
    /// Time that passes.
    Real {
        /// Calibrated tick counter.
        ticks: quanta::Clock,
        /// Ticks at zero.
        zero: u64,
    },
    /// Time that a lane moves.
    Virtual(Arc<AtomicU64>),
}

impl Clock {
    /// A clock of real time. Calibrates for up to 0.2 s the first time in a process.
    #[must_use]
    pub fn real() -> Self {
        let ticks = quanta::Clock::new();
        let zero = ticks.raw();
        Self::Real { ticks, zero }
    }

    /// A clock of virtual time that stands at zero.
    #[must_use]
    pub fn simulated() -> Self {
        Self::Virtual(Arc::default())
    }

    /// Whether time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// Nanoseconds since the clock was made.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        match self {
            Self::Real { ticks, zero } => ticks.delta_as_nanos(*zero, ticks.raw()),
            Self::Virtual(now) => now.load(Relaxed),
        }
    }

    /// Moves virtual time forward to `to`; real time moves by itself.
    pub fn advance(&self, to: Nanos) {
        if let Self::Virtual(now) = self {
            now.fetch_max(to, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn real_time_agrees_with_the_system_clock() {
        let clock = Clock::real();
        let (a, i) = (clock.now(), Instant::now());
        std::thread::sleep(Duration::from_millis(100));
        let (b, elapsed) = (clock.now(), i.elapsed().as_nanos() as f64);
        let ratio = (b - a) as f64 / elapsed;
        // The two pairs are read a moment apart; a wrong calibration would be off by far more.
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn virtual_time_only_moves_forward() {
        let clock = Clock::simulated();
        let other = clock.clone();
        clock.advance(50);
        other.advance(20);
        assert_eq!((clock.now(), other.now()), (50, 50));
    }
}
