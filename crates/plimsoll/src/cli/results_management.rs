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
    /// Tags they get; several with commas between them
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub add: Vec<Tag>,
    /// Tags they lose; one that they do not have is no error
    #[arg(long, value_name = "TAG", value_delimiter = ',')]
    pub remove: Vec<Tag>,
}

/// Arguments of `note`.
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// Results directory
    #[arg(value_name = "RESULTS", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// The note, instead of the one there is; '' removes it. Without a text, the note is printed
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: Option<String>,
}

/// Arguments of `prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Delete results that were begun longer ago than this, such as 12h, 30d or 8w
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
    /// Address on which the server listens; port 0 takes a free one. An address that other machines
    /// reach needs a token
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
    /// Access token, at least 16 characters. Other users of this machine see the arguments of a
    /// program; they do not see the variable PLIMSOLL_TOKEN, which sets the same
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Host name by which clients reach this machine, besides addresses and localhost; repeatable
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub allowed_host: Vec<String>,
    /// File of the index [default: one of its own in the user's cache directory]
    #[arg(allow_hyphen_values = true, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub index: Option<PathBuf>,
    /// Rebuild the index from all results
    #[arg(long)]
    pub rebuild_index: bool,
}
