//! The syntax tree of a workload, with the source location of every part.

use crate::wml::attributes::Key;
use crate::wml::diagnostics::Span;
use crate::wml::lexer::Piece;
use plimsoll_plan::QuitMode;
use std::time::Duration;

/// A value and its span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprKind {
    Int(i64),
    /// A number with the suffix `m`, before the multiplication by 2²⁰.
    Mega(i64),
    /// A number with a unit of time.
    Time(Duration),
    Bool(bool),
    Word(String),
    Text(Vec<Piece>),
    Var(String),
    /// `first (sign operand)*`, evaluated from left to right.
    Chain(Box<Expr>, Vec<(Spanned<char>, Expr)>),
    /// `randvar(…)` or `cvar(…)`.
    Random(Random),
}

/// Definition of a random variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Random {
    pub(crate) family: Family,
    pub(crate) attrs: Attrs,
}

/// Kinds of random variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// `randvar`: uniform, gamma or tabular.
    Randvar,
    /// `cvar`: distributions that Filebench loads as libraries.
    Cvar,
}

/// An attribute of a statement, a flowop, or a random variable.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Attr {
    pub(crate) key: Key,
    /// Span of the name.
    pub(crate) name_span: Span,
    pub(crate) value: Option<AttrValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AttrValue {
    Expr(Expr),
    /// `{{percent, min, max}, …}`
    Table(Spanned<Vec<[Expr; 3]>>),
}

/// `$name` or `$name=value` in an attribute list: a local of a composite flowop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Local {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) value: Option<Expr>,
}

/// A list of attributes.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Attrs {
    pub(crate) list: Vec<Attr>,
    pub(crate) locals: Vec<Local>,
    /// Span from the statement's keyword to its last attribute.
    pub(crate) span: Span,
}

impl Attrs {
    pub(crate) fn get(&self, key: Key) -> Option<&Attr> {
        self.list.iter().find(|a| a.key == key)
    }
}

/// A use of a flowop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Flowop {
    pub(crate) kind: Spanned<String>,
    pub(crate) attrs: Attrs,
}

/// A block with flowops: `thread … { … }` or a composite flowop `define flowop … { … }`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FlowopList {
    pub(crate) attrs: Attrs,
    pub(crate) flowops: Vec<Flowop>,
}

/// A `define process … { … }` block, with its thread blocks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Process {
    pub(crate) attrs: Attrs,
    pub(crate) threads: Vec<FlowopList>,
}

/// `define file` or `define fileset`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FilesetDef {
    /// Whether the definition is `define file`: a single file.
    pub(crate) single: bool,
    pub(crate) attrs: Attrs,
}

/// A statement and its span.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    /// Span of the statement; for a block, up to the opening brace.
    pub(crate) span: Span,
    /// First words of the statement, for messages, such as `stats directory`.
    pub(crate) title: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatementKind {
    Set {
        name: Spanned<String>,
        value: Expr,
    },
    Fileset(FilesetDef),
    Process(Process),
    Composite(FlowopList),
    Mode(QuitMode),
    NoUsageStats,
    EventGen(Attrs),
    CreateFilesets,
    CreateProcesses,
    Run(Option<Expr>),
    PsRun {
        /// Period in seconds; a negative period clears the statistics in each period.
        period: Expr,
        time: Option<Expr>,
    },
    Sleep(Expr),
    Warmup(Expr),
    Echo(Expr),
    Usage(Expr),
    System(Expr),
    StatsClear,
    /// Any statement that closes the measured window: `stats` with `snap`, `dump`, `multidump` or `xmldump`, or
    /// `statsdump`.
    StatsSnap,
    Load(Expr),
    Foreach {
        name: Spanned<String>,
        values: Vec<Expr>,
        body: Vec<Statement>,
    },
    Shutdown,
    Quit,
    /// A statement without an effect, and the reason.
    Nothing(&'static str),
}
