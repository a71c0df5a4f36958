//! Atomics, fences, locks and parking, for code that shares data between threads without a common lock.
//!
//! Except for `thread`, `Lock` and [`lock`], the items are re-exports of [`std`]; `thread` checks first whether the
//! calling thread belongs to a simulation. With `--cfg loom`, the items belong to the model checker loom, which
//! executes a model in every order of its threads (up to a number of preemptions) and with every value that a load may
//! return in Rust's memory model. `docs/testing.md` lists the models. `loom` is no Cargo feature, since Cargo unifies
//! features, and a program with all features must work.
//!
//! Only code that models cover needs this module. A model that holds a lock of `std` must not use an item of this
//! module before the lock is released.

#[cfg(loom)]
mod checked;
#[cfg(loom)]
pub mod model;

#[cfg(loom)]
pub use checked::{Mutex, MutexGuard, atomic, hint, thread};

#[cfg(not(loom))]
pub use std::{
    hint,
    sync::{Mutex, MutexGuard, atomic},
};

/// Threads of the system or of a simulation.
#[cfg(not(loom))]
pub mod thread {
    pub use crate::{ThreadHandle as Thread, current, spin};

    /// Blocks the calling thread until it is unparked; may return earlier.
    pub fn park() {
        crate::park(None);
    }

    /// Blocks the calling thread until it is unparked or the time has passed; may return earlier.
    pub fn park_timeout(timeout: std::time::Duration) {
        crate::park(Some(timeout));
    }
}

/// A mutex of the standard library or of loom, or an `Arc` of a mutex, as [`lock`] accepts.
pub trait Lock {
    /// Guard that holds the lock.
    type Guard<'a>
    where
        Self: 'a;

    /// Acquires the lock, even if a thread panicked while it held the lock.
    fn enter(&self) -> Self::Guard<'_>;
}

impl<T> Lock for std::sync::Mutex<T> {
    type Guard<'a>
        = std::sync::MutexGuard<'a, T>
    where
        T: 'a;

    #[inline]
    fn enter(&self) -> Self::Guard<'_> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<M: Lock> Lock for std::sync::Arc<M> {
    type Guard<'a>
        = M::Guard<'a>
    where
        M: 'a;

    #[inline]
    fn enter(&self) -> Self::Guard<'_> {
        (**self).enter()
    }
}

/// Locks `mutex`, even if a thread panicked while it held the lock: Plimsoll's locked data are consistent between any
/// two statements, and one failed worker must not hide the measurements of other workers.
#[inline]
pub fn lock<M: Lock>(mutex: &M) -> M::Guard<'_> {
    mutex.enter()
}
