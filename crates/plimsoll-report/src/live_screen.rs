//! The screen of a run in progress (`--live`): rates and latencies over the last minutes as charts, the
//! operations of the last interval as a table, errors, this machine and its disks, events and messages.
//!
//! - `view`: what the screen shows, a value that whoever observes the run keeps up to date.
//! - `draw`: a view as cells of a terminal.
//! - `terminal`: the terminal, which is as it was on every way out.
//! - `capture`: what anything else writes to the terminal meanwhile, which comes after the screen.
//! - `screen`: the thread that draws.
//! - `ignored_signals`: signals that are no way out, because the parent process had them ignored.

mod capture;
mod draw;
mod screen;
mod terminal;
mod view;

pub use screen::{LiveScreen, leave};
pub use view::{CHART_SPAN, LiveView, Machine, OperationRow, Sample};
