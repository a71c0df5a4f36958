//! The measured window: two instants shared by all lanes.

use crate::Nanos;
use plimsoll_runtime::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use plimsoll_runtime::sync::atomic::{Ordering::Release, fence};
use plimsoll_runtime::sync::{Mutex, lock};

/// Number and instants of a measured window, read consistently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBounds {
    /// Number of the window, from 1; 0 before the first window.
    pub number: u32,
    /// First instant of the window, in nanoseconds of the run's clock.
    pub start: Nanos,
    /// First instant after the window; [`Nanos::MAX`] while unknown.
    pub end: Nanos,
}

impl WindowBounds {
    /// Whether an instant is inside the window.
    #[inline]
    #[must_use]
    pub fn contains(&self, at: Nanos) -> bool {
        self.number > 0 && at >= self.start && at < self.end
    }
}

/// The measured window of a run, set by the controller and read by every lane.
///
/// An operation belongs to the window in which it completes. Lanes read [`WindowState::epoch`] after each operation, so
/// a change takes effect with the next completed operation.
#[derive(Debug)]
pub struct WindowState {
    /// Sequence lock of the three words below: odd during a change.
    epoch: AtomicU32,
    number: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
    interval: Nanos,
    writers: Mutex<()>,
}

impl WindowState {
    /// State before the first window; `interval` is the length of the series' intervals in nanoseconds.
    #[must_use]
    pub fn new(interval: Nanos) -> Self {
        Self::following(interval, 0)
    }

    /// State after `windows` windows of an earlier part of the same run; the next window has the number `windows + 1`.
    #[must_use]
    pub fn following(interval: Nanos, windows: u32) -> Self {
        Self {
            epoch: AtomicU32::new(0),
            number: AtomicU32::new(windows),
            start: AtomicU64::new(Nanos::MAX),
            end: AtomicU64::new(Nanos::MAX),
            interval: interval.max(1),
            writers: Mutex::new(()),
        }
    }

    /// Length of an interval in nanoseconds.
    #[must_use]
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// Opens the next window, from `start` until `end` ([`Nanos::MAX`] if unknown). Returns the window's number, from
    /// 1.
    ///
    /// # Panics
    /// If `start` is not before `end`.
    pub fn open(&self, start: Nanos, end: Nanos) -> u32 {
        assert!(start < end, "a window of {start} to {end} has no instant");
        self.change(|| {
            let number = self.number.load(Relaxed) + 1;
            self.number.store(number, Relaxed);
            self.start.store(start, Relaxed);
            self.end.store(end, Relaxed);
            number
        })
    }

    /// Ends the window at `end`, unless the window has ended earlier.
    pub fn close(&self, end: Nanos) {
        self.change(|| self.end.fetch_min(end, Relaxed));
    }

    /// Changes the three words; readers retry during the change.
    fn change<T>(&self, change: impl FnOnce() -> T) -> T {
        let _writer = lock(&self.writers);
        let before = self.epoch.load(Relaxed);
        self.epoch.store(before.wrapping_add(1), Relaxed);
        fence(Release);
        let result = change();
        self.epoch.store(before.wrapping_add(2), Release);
        result
    }

    /// Sequence number that changes whenever a window is opened or closed.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// Number, start and end of the latest window, read consistently while the controller changes the window.
    #[must_use]
    pub fn bounds(&self) -> WindowBounds {
        self.read().1
    }

    /// The latest window, with the epoch at which it was read.
    pub(crate) fn read(&self) -> (u32, WindowBounds) {
        loop {
            let epoch = self.epoch.load(Acquire);
            let bounds = WindowBounds {
                number: self.number.load(Relaxed),
                start: self.start.load(Relaxed),
                end: self.end.load(Relaxed),
            };
            fence(Acquire);
            if epoch.is_multiple_of(2) && self.epoch.load(Relaxed) == epoch {
                return (epoch, bounds);
            }
            plimsoll_runtime::sync::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn lanes_see_that_a_window_has_changed() {
        let window = WindowState::new(1);
        let before = window.epoch();
        window.open(10, 20);
        let open = window.epoch();
        window.close(15);
        let closed = window.epoch();
        assert!(before != open && open != closed && closed != before);
        assert_eq!(window.bounds().end, 15);
    }

    /// In this test, each window's end follows from its start, and its start from its number.
    #[test]
    fn bounds_are_never_those_of_two_windows() {
        let window = WindowState::new(1);
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    while !done.load(Relaxed) {
                        let seen = window.bounds();
                        if seen.number > 0 {
                            assert_eq!(seen.start, u64::from(seen.number) * 10);
                            assert_eq!(seen.end, seen.start + 5);
                        }
                    }
                });
            }
            for number in 1..=200_000 {
                window.open(number * 10, number * 10 + 5);
            }
            done.store(true, Relaxed);
        });
    }

    #[test]
    fn a_window_contains_its_first_instant_and_not_its_end() {
        let window = WindowState::new(1);
        assert!(!window.bounds().contains(Nanos::MAX - 1));
        window.open(10, 20);
        window.close(15);
        window.close(18);
        let inside: Vec<_> = (0..30).filter(|at| window.bounds().contains(*at)).collect();
        assert_eq!(inside, [10, 11, 12, 13, 14]);
    }

    #[test]
    fn windows_are_numbered_on_from_those_of_an_earlier_part() {
        let window = WindowState::following(0, 4);
        assert_eq!((window.interval(), window.bounds().number), (1, 4));
        assert_eq!((window.open(1, 2), window.open(3, 4)), (5, 6));
        let (epoch, bounds) = window.read();
        assert_eq!((epoch, bounds.number), (window.epoch(), 6));
        assert_eq!(WindowState::new(7).interval(), 7);
    }

    #[test]
    #[should_panic(expected = "a window of 5 to 5 has no instant")]
    fn a_window_has_an_instant() {
        WindowState::new(1).open(5, 5);
    }
}
