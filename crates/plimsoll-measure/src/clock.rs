//! The clock of a run, the only reader of time for operations.

use plimsoll_runtime::SimulatedClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A time since the creation of the run's [`Clock`], or a duration, in nanoseconds.
pub type Nanos = u64;

/// A clock shared by all lanes of a run.
///
/// The real clock counts processor ticks if the processor's counter is invariant: two readings cost a third of two
/// system clock calls. The `quanta` crate checks the counter and measures its rate, and otherwise uses the system's
/// monotonic clock. The virtual clock stands still until a lane advances it.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    /// The processor's counter, read without a function call.
    Counter {
        /// Reading of the processor's counter at the creation of the clock, in ticks: zero nanoseconds of the run.
        zero: u64,
        /// Duration of 2^[`SHIFT`] ticks of the processor's counter, in nanoseconds.
        scale: u64,
    },
    /// Clock that the `quanta` crate selects, if the processor has no counter that can be read directly.
    Quanta {
        /// Clock of the `quanta` crate, which converts differences of its readings to nanoseconds.
        ticks: quanta::Clock,
        /// Raw reading of `ticks` at the creation of the run's clock: zero nanoseconds of the run.
        zero: u64,
    },
    /// Virtual time in nanoseconds, which only lanes advance.
    Virtual(Arc<AtomicU64>),
    /// Clock of a simulation of the whole program, treated as real time, and the clock's reading at zero nanoseconds.
    Simulated(SimulatedClock, u64),
}

/// Fixed-point precision of the scale: 1 part in 2^52, finer than the calibration; a scale of 64 bits covers ticks of
/// up to 4 µs.
const SHIFT: u32 = 52;

impl Clock {
    /// A real-time clock. The first clock of a process calibrates for up to 0.2 s.
    #[must_use]
    pub fn real() -> Self {
        if let Some(clock) = plimsoll_runtime::simulated_clock() {
            let zero = clock.read();
            return Self(Source::Simulated(clock, zero));
        }
        let ticks = quanta::Clock::new();
        let zero = ticks.raw();
        if !counter::is_read_by(&ticks) {
            return Self(Source::Quanta { ticks, zero });
        }
        let scale = ticks.delta_as_nanos(0, 1 << SHIFT);
        Self(Source::Counter { zero, scale })
    }

    /// A clock of virtual time, at zero nanoseconds until a lane advances the time.
    #[must_use]
    pub fn simulated() -> Self {
        Self(Source::Virtual(Arc::default()))
    }

    /// Whether the clock is virtual, so that only lanes advance the time.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Source::Virtual(_))
    }

    /// Time since the creation of the clock, in nanoseconds.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Nanos {
        // The clock is read twice per operation; a direct counter reading avoids a call.
        if let Source::Counter { zero, scale } = self.0 {
            // Counters of different processors may differ by a tick or two.
            let ticks = counter::read().saturating_sub(zero);
            return ((u128::from(ticks) * u128::from(scale)) >> SHIFT) as Nanos;
        }
        if let Source::Virtual(now) = &self.0 {
            return now.load(Relaxed);
        }
        self.now_slow()
    }

    #[inline(never)]
    fn now_slow(&self) -> Nanos {
        match &self.0 {
            Source::Quanta { ticks, zero } => ticks.delta_as_nanos(*zero, ticks.raw()),
            Source::Simulated(clock, zero) => clock.read() - zero,
            Source::Virtual(_) | Source::Counter { .. } => unreachable!("read in place"),
        }
    }

    /// Advances virtual time to `to`; no effect on real time. Only one thread may call this method.
    pub fn advance(&self, to: Nanos) {
        if let Source::Virtual(now) = &self.0
            && to > now.load(Relaxed)
        {
            now.store(to, Relaxed);
        }
    }
}

/// Direct readings of the time-stamp counter of x86-64 processors.
#[cfg(target_arch = "x86_64")]
mod counter {
    /// Reading of the time-stamp counter, in ticks since an arbitrary instant.
    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and the instruction accesses no memory. A kernel that
        // forbids the instruction kills the program; but `is_read_by` runs before the first reading, and `quanta` has
        // executed the instruction by then.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Whether `clock` reads the time-stamp counter, as `quanta` does if the counter is invariant.
    pub(super) fn is_read_by(clock: &quanta::Clock) -> bool {
        // A clock that does not count ticks does not scale its readings.
        let ticks = 1 << super::SHIFT;
        if clock.delta_as_nanos(0, ticks) == ticks {
            return false;
        }
        let (before, reading, after) = (read(), clock.raw(), read());
        (before..=after).contains(&reading)
    }
}

/// Counters of other processor architectures are read through `quanta`.
#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub(super) fn read() -> u64 {
        0
    }

    pub(super) fn is_read_by(_: &quanta::Clock) -> bool {
        false
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
        // The two pairs are read a moment apart; a wrong calibration would differ far more.
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }

    /// The clock of processors without an invariant counter.
    #[test]
    fn a_clock_without_a_counter_advances_too() {
        let ticks = quanta::Clock::new();
        let zero = ticks.raw();
        let clock = Clock(Source::Quanta { ticks, zero });
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        let elapsed = clock.now() - first;
        assert!(elapsed >= 1_900_000, "{elapsed} ns");
    }

    #[test]
    fn ticks_are_as_long_as_quanta_says() {
        let Clock(Source::Counter { scale, .. }) = Clock::real() else {
            // This processor has no counter that can be read directly, so no clocks are compared.
            return;
        };
        let quanta = quanta::Clock::new();
        for ticks in [1, 1000, 1 << 32, 1 << 44, 1 << 50] {
            let ours = ((u128::from(ticks) * u128::from(scale)) >> SHIFT) as u64;
            let theirs = quanta.delta_as_nanos(0, ticks);
            assert!(ours.abs_diff(theirs) <= 1, "{ticks}: {ours}, {theirs}");
        }
    }

    #[test]
    fn virtual_time_only_moves_forward() {
        let clock = Clock::simulated();
        let other = clock.clone();
        clock.advance(50);
        other.advance(20);
        assert_eq!((clock.now(), other.now()), (50, 50));
    }

    #[test]
    fn virtual_time_is_distinguished_from_real_time() {
        assert!(Clock::simulated().is_virtual() && !Clock::real().is_virtual());
        let clock = Clock::real();
        let before = clock.now();
        clock.advance(u64::MAX);
        assert!((before..u64::MAX).contains(&clock.now()));
    }

    /// If `quanta` scales its readings, its counter is the counter read directly.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn an_invariant_counter_is_read_in_place() {
        let is_scaled = quanta::Clock::new().delta_as_nanos(0, 1 << SHIFT) != 1 << SHIFT;
        assert_eq!(matches!(Clock::real().0, Source::Counter { .. }), is_scaled);
    }
}
