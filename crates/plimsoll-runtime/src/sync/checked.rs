//! What the model checker offers, with the interface of `std`.

use crate::sync::Lock;
pub use loom::hint;
pub use loom::sync::{Mutex, MutexGuard};

impl<T> Lock for Mutex<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn enter(&self) -> Self::Guard<'_> {
        self.lock().expect("a model ends at its first panic")
    }
}

/// Threads of a model.
pub mod thread {
    pub use loom::thread::{Thread, current, park};

    /// Lets others proceed.
    pub fn spin(_: std::time::Duration) {
        loom::hint::spin_loop();
    }

    /// In a model no time passes while others can proceed.
    pub fn park_timeout(_: std::time::Duration) {
        loom::thread::yield_now();
    }
}

/// Atomics. Loom treats sequentially consistent accesses as acquire and release, but fences exactly. So
/// such an access has a fence here: behind a store, before a load, on both sides of a read-modify-write,
/// as processors execute them. That is a little more than the memory model promises between such an access
/// and a weaker one.
pub mod atomic {
    pub use loom::sync::atomic::fence;
    pub use std::sync::atomic::Ordering;

    fn fence_if_seq_cst(order: Ordering) {
        if order == Ordering::SeqCst {
            fence(order);
        }
    }

    macro_rules! atomic {
        ($name:ident, $value:ty, $($rmw:ident),*) => {
            #[doc = concat!("[`std::sync::atomic::", stringify!($name), "`] of a model.")]
            #[derive(Debug, Default)]
            pub struct $name(loom::sync::atomic::$name);

            impl $name {
                /// An atomic of this value.
                #[must_use]
                pub fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                /// Returns the value.
                pub fn load(&self, order: Ordering) -> $value {
                    fence_if_seq_cst(order);
                    self.0.load(order)
                }

                /// Replaces the value.
                pub fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, order);
                    fence_if_seq_cst(order);
                }

                $(
                    /// Changes the value; returns the one before.
                    pub fn $rmw(&self, value: $value, order: Ordering) -> $value {
                        fence_if_seq_cst(order);
                        let before = self.0.$rmw(value, order);
                        fence_if_seq_cst(order);
                        before
                    }
                )*

                /// Changes the value as `next` says, if it does; returns the one before.
                ///
                /// # Errors
                /// The value, if `next` returned none.
                pub fn fetch_update(
                    &self,
                    set: Ordering,
                    fetch: Ordering,
                    next: impl FnMut($value) -> Option<$value>,
                ) -> Result<$value, $value> {
                    fence_if_seq_cst(set);
                    let result = self.0.fetch_update(set, fetch, next);
                    fence_if_seq_cst(set);
                    result
                }
            }
        };
    }

    atomic!(AtomicBool, bool, swap, fetch_or, fetch_and);
    atomic!(
        AtomicU32, u32, swap, fetch_add, fetch_sub, fetch_or, fetch_and, fetch_min, fetch_max
    );
    atomic!(
        AtomicU64, u64, swap, fetch_add, fetch_sub, fetch_or, fetch_and, fetch_min, fetch_max
    );
    atomic!(
        AtomicUsize,
        usize,
        swap,
        fetch_add,
        fetch_sub,
        fetch_or,
        fetch_and,
        fetch_min,
        fetch_max
    );
}
