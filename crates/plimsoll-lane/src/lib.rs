//! Lanes: OS threads, each of which drives one or many workers.
//!
//! A worker is an `async` block. A [`Lane`] polls its workers until all have ended. Through the lane, workers read the
//! time, sleep, and wait for a descriptor to become ready. The waits are the same on three kinds of lane:
//!
//! - **blocking lane**: one worker, whose operations block the thread. The compiled worker is a plain loop; the lane
//!   only matters when the worker waits for another worker or for the time.
//! - **reactor lane**: many workers, whose operations wait for readiness ([`Lane::readable`]), for completions (a
//!   [`CompletionSource`] that is attached to the lane) or timers.
//! - **virtual lane**: many workers; when no worker can proceed, time jumps to the next timer or to the next of the
//!   [`TimedEvents`] that are attached to the lane.
//!
//! [`EventQueue`] holds the timers of a lane, and the events of a simulation. [`Deadline`] is the instant at which all
//! lanes of a run stop; the deadline ends the waits of workers.
//!
//! # Design
//! All kinds of lane have a common loop (`driver`) and differ in the action of the loop when no worker is ready: park,
//! spin for the last 50 µs before a timer, wait for descriptors or completions, or advance the clock.
//!
//! A lane with a completion source waits only in the completion source. Once per turn of the loop, after the ready
//! workers, the completion source submits queued operations, waits if no worker is ready, and takes completions, which
//! wake tasks by number. A lane with a completion source watches no descriptors; other threads wake the lane through a
//! counter (eventfd) that the completion source watches.
//!
//! A virtual lane with timed events executes the events up to the next timer in one turn, until an event wakes a task.
//! A worker that never waits would stop virtual time for all workers, so a worker waits 1 µs after 128 operations
//! without a wait.
//! The states of thousands of workers do not fit the caches of a processor, so when a timer fires, the task of the
//! timer after the next timer is prefetched.

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
