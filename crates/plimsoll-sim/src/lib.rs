//! Models of storage systems in virtual time: stations, links, caches, buffers, limits and replicas,
//! composed into a path for each class of operation.

mod buffer;
mod cache;
mod failures;
mod figures;
mod file;
mod fit;
mod flow;
mod hash;
mod instance;
mod library;
mod limit;
mod parse;
mod resolve;
mod service;
mod simulation;
mod steps;
mod system;
mod tally;
mod tokens;
mod window;

pub use cache::CacheTotals;
pub use fit::{FitError, Fitted, FreeFigure, fit, free_figures, with_figures};
pub use flow::{Completion, Operation};
pub use library::{BUILTIN, builtin};
pub use parse::parse;
pub use simulation::Simulation;
pub use system::{Acknowledgement, Choice, OperationClass, System, WhenDown};
pub use tally::StationTotals;
pub use window::{
    Bottleneck, BufferFigures, CacheFigures, ClassTime, ElementTime, Snapshot, StationFigures,
    SystemFigures,
};
