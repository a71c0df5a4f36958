//! Stand-in for the module `simulation`: no thread belongs to a simulation. The types have the names of the types of
//! `simulation`, and no values.

use crate::DiskCall;
use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant, SystemTime};

/// Clock of a simulated process; never exists without the feature `simulation`.
#[derive(Debug, Clone)]
pub struct SimulatedClock(Infallible);

impl SimulatedClock {
    /// Never called, because a `SimulatedClock` has no values without the feature `simulation`.
    #[must_use]
    pub fn read(&self) -> u64 {
        match self.0 {}
    }
}

/// A thread of a simulation.
#[derive(Debug, Clone)]
pub(crate) struct ThreadRef(Infallible);

/// Always `None`: no thread belongs to a simulation.
pub(crate) const fn current() -> Option<ThreadRef> {
    None
}

/// Methods of `ThreadRef` that can never be called, because a `ThreadRef` has no values.
macro_rules! methods {
    ($($name:ident(&self $(, $arg:ty)*) $(-> $out:ty)?;)*) => {
        impl ThreadRef {
            $(pub(crate) fn $name(&self $(, _: $arg)*) $(-> $out)? {
                match self.0 {}
            })*

            pub(crate) fn main(self, _: impl FnOnce()) {
                match self.0 {}
            }
        }
    };
}

methods! {
    add_thread(&self, String) -> Self;
    clock(&self) -> SimulatedClock;
    disk_call(&self, DiskCall) -> io::Result<()>;
    instant(&self) -> Instant;
    is_alive(&self, usize) -> bool;
    park(&self, Option<Duration>);
    process(&self) -> usize;
    sleep(&self, Duration);
    system_time(&self) -> SystemTime;
    unpark(&self);
    wait(&self, usize, Option<Duration>);
    wake_all(&self, usize);
}
