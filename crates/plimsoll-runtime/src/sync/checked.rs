//! Items of the model checker loom, with the interface of `std`.

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

    /// Lets other threads proceed.
    pub fn spin(_: std::time::Duration) {
        loom::hint::spin_loop();
    }

    /// Lets other threads proceed; in a model, no time passes while other threads can proceed.
    pub fn park_timeout(_: std::time::Duration) {
        loom::thread::yield_now();
    }
}

/// Atomics. Loom treats sequentially consistent accesses as acquire and release, but models fences exactly. Each
/// sequentially consistent access therefore has a fence, as processors execute it: after a store, before a load, on
/// both sides of a read-modify-write. The fences promise slightly more than the memory model between a sequentially
/// consistent access and a weaker access.
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
                /// Creates an atomic with the value `value`; only code that runs within a loom model may call the
                /// function.
                #[must_use]
                pub fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                /// Returns one of the values that the memory model allows for a load with `order`.
                pub fn load(&self, order: Ordering) -> $value {
                    fence_if_seq_cst(order);
                    self.0.load(order)
                }

                /// Stores a new value in the atomic, visible to other threads according to `order`.
                pub fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, order);
                    fence_if_seq_cst(order);
                }

                $(
                    /// Changes the value; returns the previous value.
                    pub fn $rmw(&self, value: $value, order: Ordering) -> $value {
                        fence_if_seq_cst(order);
                        let before = self.0.$rmw(value, order);
                        fence_if_seq_cst(order);
                        before
                    }
                )*

                /// Replaces the value by the result of `next`, if any; returns the previous value.
                ///
                /// # Errors
                /// The current value, if `next` returned `None`.
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
