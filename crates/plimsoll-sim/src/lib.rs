//! Models of storage systems in virtual time: stations, links, caches, buffers, limits and replicas,
//! composed into a path for each class of operation.

mod buffer;
mod cache;
mod choice;
mod failures;
mod figures;
mod file;
mod fit;
mod flow;
mod fork;
mod hash;
mod instance;
mod library;
mod limit;
mod parse;
mod resolve;
mod service;
mod simulation;
mod spanned;
mod steps;
mod system;
mod system_event;
mod tally;
mod tokens;
mod visit;
mod window;

pub use cache::CacheTotals;
pub use fit::{
    FitError, Fitted, FreeFigure, SENSITIVITY_STEP, Sensitivity, fit, free_figures, sum_of_squares,
    with_figures,
};
pub use flow::{Completion, Operation};
pub use library::{BUILTIN, builtin, find};
pub use parse::{parse, parse_with_events, schema};
pub use simulation::Simulation;
pub use system::{Acknowledgement, Choice, OperationClass, System, WhenDown};
pub use system_event::SystemEvent;
pub use tally::StationTotals;
pub use window::Snapshot;
