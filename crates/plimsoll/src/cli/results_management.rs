//! Arguments of commands that manage results.

use super::values::{age, host};
use clap::{Args, ValueHint};
use plimsoll_results::Tag;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `tag`.
#[derive(Debug, Args)]
pub struct TagArgs {
    /// Results directories
    #[arg(value_name = "RESULTS", required = true, value_hint = ValueHint::DirPath)]
    pub results: Vec<PathBuf>,
    /// Tags to add, comma-separated
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub add: Vec<Tag>,
    /// Tags to remove, comma-separated; absent tags are ignored
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub remove: Vec<Tag>,
}

/// Arguments of `note`.
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// Results directory
    #[arg(value_name = "RESULTS", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// New note, replacing any existing one; '' removes it. Without TEXT, prints the note
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: Option<String>,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Delete results that started longer ago than this, such as 12h, 30d or 8w
    #[arg(long, value_name = "TIME", value_parser = age, allow_hyphen_values = true)]
    pub older_than: Duration,
    /// Directory that holds the results directories
    #[arg(
        allow_hyphen_values = true,
        long,
        value_name = "DIR",
        default_value = "plimsoll-results"
    )]
    #[arg(value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
    /// Delete tagged results too
    #[arg(long)]
    pub include_tagged: bool,
    /// Only list what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Delete without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address on which the server listens; port 0 selects a free port. An address reachable from
    /// other machines requires a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Directory that holds the results directories
    #[arg(
        allow_hyphen_values = true,
        long,
        value_name = "DIR",
        default_value = "plimsoll-results"
    )]
    #[arg(value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
    /// Access token, at least 16 characters. Other users can see command-line arguments; the
    /// environment variable PLIMSOLL_TOKEN, which they cannot see, sets it too
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Host name that clients may use for this machine, in addition to addresses and localhost;
    /// repeatable
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub allowed_host: Vec<String>,
}
