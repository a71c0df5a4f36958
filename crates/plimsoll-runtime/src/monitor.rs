//! A value under a lock, for whose changes threads wait, in a program or in a simulation.

use crate::simulation;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A value protected by a lock and a condition variable (Hoare, 1974).
#[derive(Debug, Default)]
pub struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Monitor<T> {
    /// Creates a monitor of `value`; usable in the initialiser of a `static`.
    pub const fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// Locks the value, even if a thread panicked while it held the lock: no partial change matters.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the value and wakes all waiting threads, which check their conditions again.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        if let Some(thread) = simulation::current() {
            thread.wake_all(self.key());
        }
        result
    }

    /// Blocks until `condition` is false, and returns the locked value. The monitor checks `condition` at the call and
    /// after each change of the value.
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

    /// Blocks until `condition` is false or `at_most` has passed, and returns the locked value.
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

    /// Key of this monitor's waiting threads in a simulation.
    fn key(&self) -> usize {
        std::ptr::from_ref(&self.changed).addr()
    }
}
