//! Errors in a user-written text: source location, expectation and help.
//!
//! Every parser of a text collects [`Problem`]s, each with the [`Span`] at fault, and returns [`Diagnostics`], which
//! renders message, source line, underline, label and help. [`nearest`] finds the known name that a misspelt name
//! probably meant.
//!
//! ```
//! use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
//!
//! let text = "points = [10, 20]\nlaod = 3\n";
//! let span = Span::of(0, 18..22, text);
//! let problem = Problem::new(span, "unknown key `laod`", "not a key here")
//!     .suggest("laod", ["load", "points"]);
//! let wrong = Diagnostics::new(vec![Source::new("w.toml", text)], vec![problem]);
//! assert_eq!(wrong.findings()[0].line, 2);
//! assert_eq!(wrong.findings()[0].help.as_deref(), Some("did you mean `load`?"));
//! ```

mod diagnostics;
mod excerpt;
pub mod foreign;
mod source;
mod toml_text;

pub use diagnostics::{Diagnostics, Finding, MAX_ERRORS, Problem, nearest};
pub use source::{Source, Span};
pub use toml_text::read_toml;
