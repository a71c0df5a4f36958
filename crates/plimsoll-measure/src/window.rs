//! The measured window: two instants that all lanes share.

use crate::Nanos;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::Release};

/// The measured window of a run, set by the controller and read by every lane.
///
/// An operation belongs to the window it completes in. Lanes look at [`WindowState::epoch`]
/// after each operation, so a change is noticed by the next operation that completes.
#[derive(Debug)]
pub struct WindowState {
    epoch: AtomicU32,
    number: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
    interval: Nanos,
}

impl WindowState {
    /// No window yet; series will have intervals of this length.
    #[must_use]
    pub fn new(interval: Nanos) -> Self {
        Self::after(interval, 0)
    }

    /// No window yet, but `windows` in an earlier part of the same run: the next one has the
    /// number after them.
    #[must_use]
    pub fn after(interval: Nanos, windows: u32) -> Self {
        Self {
            epoch: AtomicU32::new(0),
            number: AtomicU32::new(windows),
            start: AtomicU64::new(Nanos::MAX),
            end: AtomicU64::new(Nanos::MAX),
            interval: interval.max(1),
        }
    }

    /// Length of an interval.
    #[must_use]
    pub fn interval(&self) -> Nanos {
        self.interval
    }

    /// Opens the next window, from `start` until `end` ([`Nanos::MAX`] if not known yet).
    /// Returns its number, from 1.
    pub fn open(&self, start: Nanos, end: Nanos) -> u32 {
        self.start.store(start, Relaxed);
        self.end.store(end, Relaxed);
        let number = self.number.load(Relaxed) + 1;
        self.number.store(number, Relaxed);
        self.epoch.fetch_add(1, Release);
        number
    }

    /// Ends the window at `end`, unless it ended before.
    pub fn close(&self, end: Nanos) {
        self.end.fetch_min(end, Relaxed);
        self.epoch.fetch_add(1, Release);
    }

    /// Changes whenever a window is opened or closed.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// Number of the latest window, its first instant and the instant it ends before.
    #[must_use]
    pub fn bounds(&self) -> (u32, Nanos, Nanos) {
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        (
            self.number.load(Relaxed),
            self.start.load(Relaxed),
            self.end.load(Relaxed),
        )
    }
}
