//! Arguments of `hosts`.

use super::HostArgs;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// What to do with other machines.
#[derive(Debug, Subcommand)]
pub enum HostsCommand {
    /// Check that hosts can be reached, have this version, and see the same work directory
    Check(HostsCheckArgs),
}

/// Arguments of `hosts check`.
#[derive(Debug, Args)]
pub struct HostsCheckArgs {
    /// Hosts, as in --hosts: a list, or @FILE
    #[arg(value_name = "LIST|@FILE")]
    pub hosts: String,
    /// Directory that all hosts must see; a file is created there for a moment
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Measure how fast each host sends to each other, for a second each way; the receiver opens a TCP port
    /// for that
    #[arg(long)]
    pub bandwidth: bool,
}

impl HostsCheckArgs {
    /// The hosts.
    pub fn hosts(&self) -> HostArgs {
        HostArgs {
            hosts: Some(self.hosts.clone()),
            ..HostArgs::default()
        }
    }
}
