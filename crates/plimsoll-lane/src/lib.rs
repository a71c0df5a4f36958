//! Lanes: an OS thread that drives one or many workers.
//!
//! A worker is an `async` block. A [`Lane`] polls the workers given to it until all have ended;
//! from it they get the time, sleep, and wait for a descriptor to become ready. There are three
//! kinds, and the workers cannot tell which one they are on:
//!
//! - **blocking**: one worker, whose operations block the thread. The compiled worker is a plain
//!   loop; the lane only matters when the worker waits for another worker or for the time.
//! - **reactor**: many workers; operations wait for readiness ([`Lane::readable`]), for completions (a
//!   [`CompletionSource`] that is attached to the lane) or timers.
//! - **virtual**: many workers; when none can proceed, time jumps to the next timer or to the next of the
//!   [`TimedEvents`] that are attached to the lane.
//!
//! [`EventQueue`] holds the timers of a lane, and the events of a simulation. [`Deadline`] is the instant at
//! which all lanes of a run stop: it ends their waits.

mod completion_source;
mod deadline;
mod driver;
mod event_queue;
mod lane;
mod lane_waker;
#[cfg(all(test, loom))]
mod models;
pub mod os;
mod state;
mod timed_events;
mod waits;

pub use completion_source::CompletionSource;
pub use deadline::{Deadline, Stopped};
pub use driver::Deadlock;
pub use event_queue::EventQueue;
pub use lane::Lane;
pub use state::{LaneKind, Task};
pub use timed_events::TimedEvents;
pub use waits::{FdWatch, Readable, Sleep, Timer, Yield};
