//! Locking a mutex whose data stays valid when a thread panics.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, at most for `timeout` if given.
pub(crate) fn wait<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Option<Duration>,
) -> MutexGuard<'a, T> {
    match timeout {
        None => condition
            .wait(guard)
            .unwrap_or_else(PoisonError::into_inner),
        Some(timeout) => {
            let waited = condition.wait_timeout(guard, timeout);
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}
