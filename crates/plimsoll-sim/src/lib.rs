//! Models of storage systems in virtual time: stations, links, caches, buffers, limits and replicas,
//! composed into a path for each class of operation.
//!
//! # Design
//! A simulation belongs to a lane and lives from one load phase of a run to the next, so that caches and logs keep
//! their state. An operation is a *flow* through steps. Replicas and stripes fork a flow, whose time is the time of the
//! slowest awaited branch. Each station instance has integrals over time (utilisation, mean queue) and sums over
//! operations, and by Little's law, an assertion checks that the integrals and the sums agree. Figures of a window are
//! differences between the sums at the window end and at the window start.
//!
//! A flow remembers the step at which it chose each node (`NodeChoice`). If a chosen node goes down, the flow returns
//! to the step that chose the node, with the limits and bytes that the flow had at the choice; a branch that did not
//! choose the node itself ends as displaced, and the branch's parent returns. All simultaneous changes of nodes and
//! stations are applied before any flow continues.
//!
//! A cache that begins full holds each block of the working set with the same probability, without a list of blocks.
//! `fit` does not depend on workloads: the caller computes the residuals of a trial.

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
