//! What is wrong with a text that a person wrote: the place, what was expected, and a way out.
//!
//! Every front end that reads a text collects its [`Problem`]s, each with the [`Span`] it is
//! about, and ends in [`Diagnostics`], which renders them all in one way: message, source line,
//! underline, label and help. [`nearest`] finds the known name that a misspelt one meant.
//!
//! ```
//! use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
//!
//! let text = "points = [10, 20]\nlaod = 3\n";
//! let span = Span { file: 0, start: 18, end: 22 };
//! let problem = Problem::new(span, "unknown key `laod`", "not a key here")
//!     .suggest("laod", ["load", "points"]);
//! let wrong = Diagnostics::new(vec![Source::new("w.toml", text)], vec![problem]);
//! assert_eq!(wrong.findings()[0].line, 2);
//! assert_eq!(wrong.findings()[0].help.as_deref(), Some("did you mean `load`?"));
//! ```

mod diagnostics;
mod excerpt;
pub mod foreign;

pub use diagnostics::{Diagnostics, Finding, MAX_ERRORS, Problem, Source, Span, nearest};
