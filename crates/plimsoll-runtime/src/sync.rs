//! Atomics, fences, locks and parking, for code that threads share without a common lock.
//!
//! The items are re-exports of [`std`], so that code with this module compiles to the same instructions. Compiled with
//! `--cfg loom`, the items are those of the model checker loom, which executes a model in every order of its threads
//! (up to a number of preemptions) and with every value that a load may return in the memory model of Rust.
//! `docs/testing.md` lists the models.
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

/// The threads of the system, or those of a simulation.
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

/// A mutual exclusion that can be entered.
pub trait Lock {
    /// What is held meanwhile.
    type Guard<'a>
    where
        Self: 'a;

    /// Enters, also if a thread panicked inside.
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

/// Locks `mutex`, also if a thread panicked while it held it: what such locks guard is whole between any
/// two statements, and one failed worker must not hide what the others measured.
#[inline]
pub fn lock<M: Lock>(mutex: &M) -> M::Guard<'_> {
    mutex.enter()
}
