//! Filebench's Workload Model Language (WML): parsed, checked, and lowered to a Plan.
//!
//! [`parse`] turns a text into a [`Workload`], a syntax tree with the source location of every part; [`lower`] turns
//! the tree into a [`plimsoll_plan::Plan`], with the changes of a command line. Both functions collect errors in
//! [`Diagnostics`] and never panic on any input. The three dialects of the language (1.0, 1.4 and 1.5) are one grammar,
//! which `docs/wml.md` describes. [`BUILTINS`] are the built-in workloads.
//!
//! | modules | contents |
//! | --- | --- |
//! | `attributes` | the tables of attributes and flowops, for the parser and the reference |
//! | `lexer`, `parser`, `ast` | tokens, recursive descent, syntax tree |
//! | `summary` | title, parameters and usage of a workload that is not lowered |
//! | `lower` | the state of lowering; its errors and the finished Plan |
//! | `lower::statements`, `script` | execution of statements; phases of the run |
//! | `lower::filesets`, `paths`, `processes` | filesets, the work directory, threads |
//! | `lower::flowops`, `operands`, `targets` | flowops, their operands and targets, by `thread_state` |
//! | `lower::values`, `random` | expressions and attributes; random variables |
//!
//! ```
//! use plimsoll_plan::{Overrides, SourceKind};
//! use plimsoll_workload::wml::{BUILTINS, Context, lower, parse};
//!
//! let builtin = BUILTINS.find("webserver").expect("built in");
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
//! # Ok::<(), plimsoll_workload::wml::Diagnostics>(())
//! ```
//!
//! # Differences from Filebench
//! - If another worker holds the chosen file open, `deletefile` deletes the next file. Filebench deletes nothing, so in
//!   Filebench a workload with as many creations as deletions slowly fills its fileset.
//! - A blocking `sempost` waits while more posts than the high water are pending, unless the `semblock` itself waits
//!   for more posts: `oltp` requests 3200 with a high water of 1000. A `wakeup` before its `block` is remembered, not
//!   lost.
//! - Caps charge a worker for its own operations since its last call. The first operation after an `eventlimit` has
//!   a response time from the instant of its event; the latency of any other operation is its service time.
//! - Filebench ends the run when a flowop fails. With `--on-error count`, a flowop on a slot whose open failed is
//!   counted without a time (`NOT_OPEN`): the flowop makes no call to the target, so a time would be no latency and
//!   would hide a stall. A failed open clears the file of its slot.
//! - A working set larger than the file is the whole file, and `opennext` rotates through at most 128 slots. A
//!   timed run whose filesets are exhausted keeps its measurements (`Plan::ends_by_itself`). A whole-file operation
//!   in flight when the run ends is cut short between two calls.

mod ast;
mod attributes;
mod lexer;
mod lower;
mod parser;
mod summary;

pub use attributes::{AttributeInfo, FLOWOPS, FlowopInfo, STATEMENTS, Table};
pub use lower::{Context, lower};
pub use plimsoll_diagnostics::{Diagnostics, Finding};
pub use summary::{parameters, title, usage};

use crate::builtins::{Builtin, Builtins};
use ast::Statement;
use diagnostics::{Problem, Source};
use lexer::Comment;
use parser::Tree;
pub(crate) use plimsoll_diagnostics as diagnostics;
use std::collections::HashMap;
use std::sync::Arc;

/// Built-in workloads in the language of Filebench: the `.f` files of `workloads`.
pub static BUILTINS: Builtins = Builtins(include!(concat!(env!("OUT_DIR"), "/f.rs")));

/// A parsed workload: syntax tree, text and comments.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    source: Arc<Source>,
    statements: Vec<Statement>,
    comments: Vec<Comment>,
    /// Meanings of parameters from comment lines `# $name - meaning`.
    listed: HashMap<String, String>,
    /// Names of the variables that the workload uses but never sets, in the order of their first use. In Filebench 1.x,
    /// profiles set such variables.
    unset: Vec<String>,
}

impl Workload {
    fn of(source: Arc<Source>, tree: Tree) -> Result<Self, Vec<Problem>> {
        if !tree.problems.is_empty() {
            return Err(tree.problems);
        }
        Ok(Self {
            source,
            statements: tree.statements,
            listed: summary::listed(&tree.comments),
            comments: tree.comments,
            unset: tree.unset,
        })
    }

    /// Path of the workload file, or name of the built-in workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// Text of the workload.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.source.text
    }
}

/// Parses a workload. `name` is the name of the text in messages.
///
/// # Errors
/// All errors, at most ten; after an error, parsing continues at the next statement.
pub fn parse(text: &str, name: &str) -> Result<Workload, Diagnostics> {
    let source = Source::new(name, text);
    let tree = parser::parse_text(text, 0);
    Workload::of(source.clone(), tree).map_err(|problems| Diagnostics::new(vec![source], problems))
}
