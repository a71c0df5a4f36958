//! Arguments of commands that manage results.

use super::examples::SERVE_EXAMPLES;
use super::values::{age, host};
use super::{ImportArgs, SutCommand};
use clap::{Args, Subcommand, ValueHint};
use plimsoll_results::Tag;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Subcommands of `results`.
#[derive(Debug, Subcommand)]
pub enum ResultsCommand {
    /// Serve results and runs in progress to a browser
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Add tags to results, or remove them
    #[command(after_help = "\
Examples:
  plimsoll results tag plimsoll-results/fileserver-20260301-140502 --add baseline,nvme
  plimsoll results tag plimsoll-results/* --remove baseline
  plimsoll results tag plimsoll-results/*            lists the current tags

Tags are stored in annotations.json in the results directory; the results themselves do not change.")]
    Tag(TagArgs),
    /// Write or read a note on results
    #[command(after_help = "\
Examples:
  plimsoll results note plimsoll-results/fileserver-20260301-140502 'with the new firmware'
  plimsoll results note plimsoll-results/fileserver-20260301-140502
  plimsoll results note plimsoll-results/fileserver-20260301-140502 ''")]
    Note(NoteArgs),
    /// Delete old results
    #[command(after_help = "\
Examples:
  plimsoll results prune --older-than 30d --dry-run
  plimsoll results prune --older-than 30d            lists them and asks
  plimsoll results prune --older-than 8w --results /data/results --yes

Deletes only directories that contain nothing but files written by Plimsoll, and none that a run \
is still writing to. Results with tags are kept.
Exit codes: 0 deleted, or nothing to delete; 1 something could not be deleted; 2 refused.")]
    Prune(PruneArgs),
    /// Read a published disclosure report and print its contents
    #[command(after_help = "\
Examples:
  plimsoll results import sfs2014-20160912-00016.txt
  plimsoll results import report.txt --format json > report.json

Reads the ASCII (.txt) form of SPECsfs2008, SPEC SFS 2014 and SPECstorage 2020 reports, and of \
Plimsoll's own reports. Line breaks may have been collapsed to spaces, and an excerpt with the \
title, the metric and all load points is enough; missing sections are listed. The overall response \
time is recomputed; a difference too large to be rounding gives a warning.
Exits with 2 and prints the source location if the text is not a report or its load points are \
incomplete.")]
    Import(ImportArgs),
    /// Describe the system under test, for disclosure reports
    #[command(after_help = "\
Examples:
  plimsoll results sut init --dir /mnt/test
  plimsoll results sut check sut.toml")]
    #[command(subcommand)]
    Sut(SutCommand),
}

/// Arguments of `results tag`.
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

/// Arguments of `results note`.
#[derive(Debug, Args)]
pub struct NoteArgs {
    /// Results directory
    #[arg(value_name = "RESULTS", value_hint = ValueHint::DirPath)]
    pub results: PathBuf,
    /// New note, replacing any existing one; '' removes it. Without TEXT, prints the note
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub text: Option<String>,
}

/// Arguments of `results prune`.
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Delete results whose run or series started longer than TIME ago, such as 12h, 30d or 8w
    #[arg(long, value_name = "TIME", value_parser = age, allow_hyphen_values = true)]
    pub older_than: Duration,
    /// Directory that holds the results directories
    #[arg(
        allow_hyphen_values = true,
        long = "results",
        value_name = "DIR",
        default_value = "plimsoll-results"
    )]
    #[arg(value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
    /// List the results to delete, without deleting any
    #[arg(long)]
    pub dry_run: bool,
    /// Delete the results without asking for confirmation
    #[arg(long, conflicts_with = "dry_run")]
    pub yes: bool,
}

/// Arguments of `results serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address on which the server listens; port 0 selects a free port. An address reachable from
    /// other machines requires a token
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Directory that holds the results directories
    #[arg(
        allow_hyphen_values = true,
        long = "results",
        value_name = "DIR",
        default_value = "plimsoll-results"
    )]
    #[arg(value_hint = ValueHint::DirPath)]
    pub root: PathBuf,
    /// Access token of the server, at least 16 characters. Other users can see command-line arguments, but not the
    /// environment variable PLIMSOLL_TOKEN, which also sets the token
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Host name that clients may use for this machine, in addition to addresses and localhost;
    /// repeatable
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub allowed_host: Vec<String>,
}
