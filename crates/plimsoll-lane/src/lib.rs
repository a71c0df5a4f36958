//! Lanes: an OS thread that drives one or many workers.
//!
//! A worker is an `async` block. A [`Lane`] polls the workers given to it until all have ended,
//! and is where they get the time, sleep, and wait for a descriptor to become ready. There are
//! three kinds, and the workers cannot tell which one they are on:
//!
//! - **blocking**: one worker, whose operations block the thread. The compiled worker is a plain
//!   loop; the lane only matters when the worker waits for another worker or for the time.
//! - **reactor**: many workers; operations wait for readiness ([`Lane::readable`]) or timers.
//! - **virtual**: many workers; when none can go on, time jumps to the next timer.
//!
//! [`Deadline`] is the instant at which all lanes of a run stop: waits are cut short there.

mod deadline;
mod lane;
mod lane_waker;
pub mod os;
mod waits;

pub use deadline::{Deadline, Stopped};
pub use lane::{Deadlock, Lane, LaneKind, Task};
pub use waits::{FdWatch, Readable, Sleep, Timer, Yield};
