//! Screen of a run in progress (`--live`): charts of rates and latencies over the last minutes, a table of the
//! operations of the last interval, errors, this machine and its disks, events and messages.
//!
//! - `view`: the content of the screen, a value that the observer of the run updates.
//! - `draw`: drawing of a view as cells of a terminal.
//! - `fitted`: lines that drop whole parts if the screen is narrow.
//! - `terminal`: the terminal, which is restored on every exit path.
//! - `capture`: other output to the terminal, which is held back until the screen has ended.
//! - `screen`: the drawing thread.

mod capture;
mod draw;
mod fitted;
mod screen;
mod terminal;
mod view;

pub use screen::{LiveScreen, leave};
pub use view::{CHART_SPAN, LiveView, OperationRow};
