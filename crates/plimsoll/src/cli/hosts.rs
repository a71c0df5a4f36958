//! Arguments of `systems hosts`, which checks machines before a run with `--hosts`.

use super::HostArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Arguments of `systems hosts`.
#[derive(Debug, Args)]
pub struct HostsCheckArgs {
    /// Hosts, as in --hosts: a list, or @FILE
    #[arg(value_name = "LIST|@FILE")]
    pub hosts: String,
    /// Directory that all hosts must see; a file is created there for a moment
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Measure the bandwidth from each host to each other host, for a second per direction; the receiver opens a
    /// TCP port
    #[arg(long)]
    pub bandwidth: bool,
}

impl HostsCheckArgs {
    /// Hosts to check, converted to the option `--hosts` of commands that make runs.
    pub fn hosts(&self) -> HostArgs {
        HostArgs {
            hosts: Some(self.hosts.clone()),
            ..HostArgs::default()
        }
    }
}
