//! A value that threads wait for changes of.

use crate::simulation;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value behind a lock, with a condition variable (Hoare, 1974).
#[derive(Debug, Default)]
pub struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    /// A monitor of this value.
    pub const fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// Locks the value. A thread that panicked with the lock has left no partial change that matters.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value, and lets all threads that wait check their conditions.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        if let Some(thread) = simulation::current() {
            thread.wake_all(self.key());
        }
        result
    }

    /// Waits as long as the condition holds.
    pub fn wait_while(&self, mut condition: impl FnMut(&mut T) -> bool) -> MutexGuard<'_, T> {
        let mut value = self.lock();
        let Some(thread) = simulation::current() else {
            let done = self.changed.wait_while(value, condition);
            return done.unwrap_or_else(PoisonError::into_inner);
        };
        while condition(&mut value) {
            drop(value);
            thread.wait(self.key(), None);
            value = self.lock();
        }
        value
    }

    /// Waits as long as the condition holds, but at most for this time.
    pub fn wait_timeout_while(
        &self,
        at_most: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'_, T> {
        let mut value = self.lock();
        let Some(thread) = simulation::current() else {
            let done = self.changed.wait_timeout_while(value, at_most, condition);
            return done.unwrap_or_else(PoisonError::into_inner).0;
        };
        let end = thread.instant() + at_most;
        while condition(&mut value) {
            drop(value);
            let left = end.saturating_duration_since(thread.instant());
            if !left.is_zero() {
                thread.wait(self.key(), Some(left));
            }
            value = self.lock();
            if left.is_zero() {
                break;
            }
        }
        value
    }

    /// What waiting threads of a simulation are found by.
    fn key(&self) -> usize {
        std::ptr::from_ref(&self.changed).addr()
    }
}
