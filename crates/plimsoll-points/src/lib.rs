//! Load points: which loads are measured, and what follows from how they went.
//!
//! Everything here is logic without load: nothing is run, no clock is read. [`Loads`] are the
//! loads of a curve as a person writes them, [`StopRules`] say when a curve ends before its last
//! load, [`Search`] looks for the load line, and [`margin`] says how near to a criterion a run
//! came.
//!
//! ```
//! use plimsoll_points::{Search, TrialRun};
//!
//! // A system that carries 37 and no more.
//! let search = Search::new(10, 100).expect("a start below the greatest load");
//! let found = search.run(&[], |load, _| {
//!     Ok::<_, ()>(TrialRun { load, passed: load <= 37, margin: None, client_limited: false })
//! });
//! let (line, trials) = found.expect("measuring never fails here");
//! assert_eq!(line.sustained.map(|s| s.load), Some(37));
//! assert_eq!(line.not_sustained.map(|s| s.load), Some(38));
//! assert_eq!(trials[0].load, 10);
//! ```

mod loads;
mod margin;
mod search;
mod stop;

pub use loads::{Loads, MAX_LOAD, MAX_POINTS};
pub use margin::margin;
pub use search::{Agreement, LoadLine, Purpose, Search, SearchEnd, Step, TrialRun};
pub use stop::{CurveEnd, StopRules};
