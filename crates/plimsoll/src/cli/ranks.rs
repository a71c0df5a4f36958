//! Arguments about the processes that execute a run together.

use clap::Args;
use std::path::PathBuf;

/// Options for the number of ranks, the hosts of the ranks, and results of each rank.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Start N processes on this machine that share the workers; mpiexec and srun start processes themselves. With
    /// --hosts, 0 leaves all workers to the hosts, and this machine only coordinates
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    pub processes: Option<u32>,
    /// Also write the results of each rank, to the subdirectory `ranks` of the results
    #[arg(long, help_heading = "Ranks")]
    pub per_rank: bool,
    #[command(flatten)]
    pub hosts: HostArgs,
}

/// Machines on which ranks run besides this machine, from `--hosts` or from a profile.
#[derive(Debug, Clone, Default, Args)]
pub struct HostArgs {
    /// Start this program on other machines too, by ssh: `[USER@]HOST[:PORT][*RANKS]`, separated by
    /// commas, where `client[01-16]` is a range; or @FILE with a host on each line
    #[arg(long, value_name = "LIST|@FILE", help_heading = "Ranks")]
    pub hosts: Option<String>,
    /// Hosts of a profile's MULTICLIENT block, separated by commas; `None` if `--hosts` or a launcher determines the
    /// machines.
    #[arg(skip)]
    pub clients: Option<String>,
    /// Work directory of a profile: the path on this machine, and the path on hosts for which the hosts file states no
    /// `dir`.
    #[arg(skip)]
    pub profile_dir: Option<(PathBuf, PathBuf)>,
}

/// Arguments of `rank`.
#[derive(Debug, Args)]
pub struct RankCommandArgs {
    /// Report the checksum of the program file and remove the file, which rank 0 sent to a directory with ID in its
    /// name
    #[arg(long, value_name = "ID")]
    pub copied: Option<String>,
}
