//! Arguments about the processes that execute a run together.

use clap::Args;
use std::path::PathBuf;

/// Processes that run something together.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Start N processes on this machine that share the workers; mpiexec and srun start their own. With
    /// --hosts, 0 leaves all workers to the hosts, which this machine only coordinates
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    pub processes: Option<u32>,
    /// Keep the results of each rank too, in the subdirectory `ranks` of the results
    #[arg(long, help_heading = "Ranks")]
    pub per_rank: bool,
    #[command(flatten)]
    pub hosts: HostArgs,
}

/// Other machines.
#[derive(Debug, Clone, Default, Args)]
pub struct HostArgs {
    /// Start this program on other machines too, by ssh: `[USER@]HOST[:PORT][*RANKS]`, separated by
    /// commas, where `client[01-16]` is a range; or @FILE with a host on each line
    #[arg(long, value_name = "LIST|@FILE", help_heading = "Ranks")]
    pub hosts: Option<String>,
    /// Hosts that a profile names, separated by commas, if the option names none.
    #[arg(skip)]
    pub clients: Option<String>,
    /// A directory of a profile, and its name on hosts that have none of their own.
    #[arg(skip)]
    pub profile_dir: Option<(PathBuf, PathBuf)>,
}

/// Arguments of `rank`.
#[derive(Debug, Args)]
pub struct RankCommandArgs {
    /// The file of the program was sent here, to a directory with this in its name, and is to be checked and
    /// removed
    #[arg(long, value_name = "ID")]
    pub copied: Option<String>,
}
