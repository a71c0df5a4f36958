//! Arguments about the processes that run something together.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Processes that run something together.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Start N processes on this machine that share the workers; mpiexec and srun start their own
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    pub processes: Option<u32>,
    /// Keep the results of each rank too, in the subdirectory `ranks` of the results
    #[arg(long, help_heading = "Ranks")]
    pub per_rank: bool,
    #[command(flatten)]
    pub hosts: HostArgs,
    /// Start no workers on this machine: it only coordinates those of the hosts
    #[arg(long, help_heading = "Ranks", conflicts_with = "processes")]
    pub coordinator_only: bool,
}

/// Other machines, and how the program is started there.
#[derive(Debug, Clone, Default, Args)]
pub struct HostArgs {
    /// Start this program on other machines too, by ssh: `[USER@]HOST[:PORT][*RANKS]`, separated by
    /// commas; `client[01-16]` is a range
    #[arg(long, value_name = "LIST", help_heading = "Ranks")]
    pub hosts: Option<String>,
    /// File with a host on each line, with its own dir=DIR, target=URL or program=PATH after it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Ranks")]
    pub hosts_file: Option<PathBuf>,
    #[command(flatten)]
    pub ssh: SshArgs,
    /// The hosts are those that a profile names.
    #[arg(skip)]
    pub is_of_profile: bool,
    /// A directory of a profile, and its name on hosts that have none of their own.
    #[arg(skip)]
    pub profile_dir: Option<(PathBuf, PathBuf)>,
}

/// How the program is started on other machines.
#[derive(Debug, Clone, Default, Args)]
pub struct SshArgs {
    /// The command that connects to a host, with its options, instead of PLIMSOLL_SSH or ssh
    #[arg(long, value_name = "COMMAND", help_heading = "Ranks")]
    pub ssh: Option<String>,
    /// The program on the hosts, instead of `plimsoll`
    #[arg(
        long,
        value_name = "PATH",
        help_heading = "Ranks",
        conflicts_with = "copy_binary"
    )]
    pub remote_program: Option<String>,
    /// Send this program to the hosts, to a temporary directory, and remove it there
    #[arg(long, help_heading = "Ranks")]
    pub copy_binary: bool,
}

impl SshArgs {
    /// An option that was given, by its name.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--ssh", self.ssh.is_some()),
            ("--remote-program", self.remote_program.is_some()),
            ("--copy-binary", self.copy_binary),
        ];
        let given = options.iter().find(|(_, is_given)| *is_given);
        given.map(|(name, _)| *name)
    }
}

/// Arguments of `rank`.
#[derive(Debug, Args)]
pub struct RankCommandArgs {
    /// The file of the program was sent here, to a directory with this in its name, and is to be checked and
    /// removed
    #[arg(long, value_name = "ID")]
    pub copied: Option<String>,
}
