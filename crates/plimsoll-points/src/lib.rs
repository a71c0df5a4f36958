//! Load points: the loads to measure, and what follows from the results.
//!
//! Everything here is logic without load: nothing is run, no clock is read. [`Loads`] are the
//! loads of a curve as the user writes them, [`StopRules`] end a curve before its last load,
//! [`Search`] finds the load line, and [`margin`] is the distance of a run from its criteria.
//!
//! ```
//! use plimsoll_points::{Search, TrialRun};
//!
//! // A system that sustains a load of 37 and no more.
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
