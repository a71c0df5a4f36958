//! Arguments of `hosts`.

use super::{HostArgs, SshArgs};
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
    /// Hosts, as those of --hosts
    #[arg(value_name = "LIST", required_unless_present = "hosts_file")]
    pub list: Option<String>,
    /// File with a host on each line, as that of --hosts-file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub hosts_file: Option<PathBuf>,
    /// Directory that all hosts must see; a file is created there for a moment
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Measure how fast each host sends to each other, for a second each way; the receiver opens a TCP port
    /// for that
    #[arg(long)]
    pub bandwidth: bool,
    #[command(flatten)]
    pub ssh: SshArgs,
}

impl HostsCheckArgs {
    /// The hosts.
    pub fn hosts(&self) -> HostArgs {
        HostArgs {
            is_of_profile: false,
            profile_dir: None,
            hosts: self.list.clone(),
            hosts_file: self.hosts_file.clone(),
            ssh: self.ssh.clone(),
        }
    }
}
