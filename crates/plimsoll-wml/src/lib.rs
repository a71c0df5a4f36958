//! Filebench's workload model language (WML): read, checked, and lowered to a Plan.
//!
//! [`parse`] turns a text into a [`Workload`], a syntax tree in which every part knows its
//! place; [`lower`] turns that into a [`plimsoll_plan::Plan`] under the changes of a command
//! line. Both collect what is wrong in [`Diagnostics`] and never panic on any input. The three
//! dialects of the language (1.0, 1.4 and 1.5) are one grammar here; `docs/wml.md` describes it.
//! [`library`] holds the workloads that are compiled in.
//!
//! ```
//! use plimsoll_plan::{Overrides, SourceKind};
//! use plimsoll_wml::{Context, library, lower, parse};
//!
//! let builtin = library::find("webserver").expect("built in");
//! let workload = parse(builtin.text, builtin.name)?;
//! let context = Context {
//!     kind: SourceKind::Builtin,
//!     temp_dir: "/tmp/plimsoll-1234".into(),
//!     current_dir: "/home/user".into(),
//!     load: &|_| None,
//!     date: "2026-01-02".into(),
//!     hostname: "client".into(),
//! };
//! let overrides = Overrides {
//!     sets: vec![("nthreads".into(), "8".into())],
//!     ..Overrides::default()
//! };
//! let plan = lower(&workload, &overrides, &context)?;
//! assert_eq!(plan.workers(), 8);
//! # Ok::<(), plimsoll_wml::Diagnostics>(())
//! ```

mod ast;
mod attributes;
mod lexer;
pub mod library;
mod lower;
mod parser;
mod summary;
mod variable_reads;

pub use lower::{Context, Loaded, lower};
pub use plimsoll_diagnostics::{Diagnostics, Finding};
pub use summary::{parameters, title, usage};

use ast::Statement;
use diagnostics::Source;
use lexer::Comment;
pub(crate) use plimsoll_diagnostics as diagnostics;
use std::collections::HashMap;
use std::sync::Arc;

/// A workload as it was written: its syntax tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    source: Arc<Source>,
    statements: Vec<Statement>,
    comments: Vec<Comment>,
    /// Meanings of parameters that comments list.
    listed: HashMap<String, String>,
}

impl Workload {
    /// Name the text was given: a path, or the name of a built-in workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The text itself.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }
}

/// Reads a workload. `name` stands for the text in messages.
///
/// # Errors
/// Every error found, at most ten; reading goes on at the next statement after each.
pub fn parse(text: &str, name: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new(name, text);
    let tree = parser::parse_text(text, 0);
    if tree.problems.is_empty() {
        Ok(Workload {
            source,
            statements: tree.statements,
            listed: summary::listed(&tree.comments),
            comments: tree.comments,
        })
    } else {
        Err(Diagnostics::new(vec![source], tree.problems))
    }
}
