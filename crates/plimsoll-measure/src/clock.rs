//! The only place that reads the time.

use plimsoll_runtime::SimulatedClock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nanoseconds since the clock was created.
pub type Nanos = u64;

/// A clock that all lanes of a run share.
///
/// The real one counts processor ticks if the processor's counter is invariant: two readings cost a
/// third of two system clock calls. The `quanta` crate checks that, measures the rate, and otherwise
/// uses the system's monotonic clock. The virtual one stands still until a lane advances it.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    /// The processor's counter, read in place.
    Counter {
        /// Reading at zero.
        zero: u64,
        /// Nanoseconds of 2^[`SHIFT`] ticks.
        scale: u64,
    },
    /// The clock that `quanta` chose.
    Quanta {
        /// Calibrated clock.
        ticks: quanta::Clock,
        /// Reading at zero.
        zero: u64,
    },
    /// Time that a lane advances.
    Virtual(Arc<AtomicU64>),
    /// The clock of a simulation of the whole program, which counts as real time, and its reading at zero.
    Simulated(SimulatedClock, u64),
}

/// A tick is known to 1 part in 2^52, more than the precision of its calibration, and ticks of up
/// to 4 µs have a scale of 64 bits.
const SHIFT: u32 = 52;

impl Clock {
    /// A clock of real time. The first one of a process calibrates for up to 0.2 s.
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

    /// A clock of virtual time, at zero.
    #[must_use]
    pub fn simulated() -> Self {
        Self(Source::Virtual(Arc::default()))
    }

    /// Whether time is virtual.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Source::Virtual(_))
    }

    /// Nanoseconds since the clock was created.
    #[inline(always)]
    #[must_use]
    pub fn now(&self) -> Nanos {
        // Read twice per operation: a counter that can be read in place needs no call.
        if let Source::Counter { zero, scale } = self.0 {
            // Counters of two processors may differ by a tick or two.
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

    /// Advances virtual time to `to`; no effect on real time. Only one thread may do so.
    pub fn advance(&self, to: Nanos) {
        if let Source::Virtual(now) = &self.0
            && to > now.load(Relaxed)
        {
            now.store(to, Relaxed);
        }
    }
}

/// The processor's time-stamp counter.
#[cfg(target_arch = "x86_64")]
mod counter {
    /// Ticks since some instant.
    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and it touches no memory. A kernel
        // may forbid it to programs, which kills them; but `is_read_by` is called before the first
        // reading, and `quanta` has read the counter in this way by then.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Whether this clock reads the same counter, as it does if the counter is invariant.
    pub(super) fn is_read_by(clock: &quanta::Clock) -> bool {
        // A clock that does not count ticks does not scale them.
        let ticks = 1 << super::SHIFT;
        if clock.delta_as_nanos(0, ticks) == ticks {
            return false;
        }
        let (before, reading, after) = (read(), clock.raw(), read());
        (before..=after).contains(&reading)
    }
}

/// Other processors' counters are read through `quanta`.
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
        // The two pairs are read a moment apart; a wrong calibration would be off by far more.
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
            // No counter is read in place here: there is nothing that could differ.
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

    /// Where `quanta` scales its readings, it reads the same counter.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn an_invariant_counter_is_read_in_place() {
        let is_scaled = quanta::Clock::new().delta_as_nanos(0, 1 << SHIFT) != 1 << SHIFT;
        assert_eq!(matches!(Clock::real().0, Source::Counter { .. }), is_scaled);
    }
}
