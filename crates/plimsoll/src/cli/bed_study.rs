//! Arguments of `study`: those on a server of the user, and those on test beds.

use super::values::{directory, duration, window};
use super::{Format, StudyArgs};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// The studies.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Opens of NFS versions 3, 4.0 and 4.1 on a server: with one and with many open owners, with and
    /// without delegations
    #[command(after_help = NFS4_OPENS_EXAMPLES)]
    Nfs4Opens(Box<StudyArgs>),
    /// A caching edge filer before a core filer that is far away, and the core filer without it
    #[command(after_help = BED_STUDY_HELP)]
    Edge(Box<EdgeStudyArgs>),
    /// Cluster file systems with one copy of each file and with two, and with a server killed
    #[command(after_help = BED_STUDY_HELP)]
    Replicas(Box<ReplicasStudyArgs>),
    /// What delegations save: the study nfs4-opens on a server that grants them
    #[command(after_help = BED_STUDY_HELP)]
    Delegations(Box<DelegationsStudyArgs>),
}

const NFS4_OPENS_EXAMPLES: &str = "\
Examples:
  plimsoll study nfs4-opens --nfs3 nfs3://filer/vol1 --nfs4 nfs4://filer/vol1 --dry-run
  plimsoll study nfs4-opens --nfs3 nfs3://filer/vol1 --nfs4 nfs4://filer/vol1 --added-rtt 0ms,20ms --time 10s
  plimsoll study nfs4-opens --nfs4 nfs4://filer/vol1 --only webserver --repeat 5

This study is a profile (`plimsoll profile nfs4-opens --print-source`) over several access paths to one server: `report`, \
`compare` and `profile --resume` accept its results like those of any profile.
Exit codes: the same as for `profile`.";

const BED_STUDY_HELP: &str = "\
Starts test beds on this machine (`plimsoll testbed list` says what they need), loads them one after the other, and \
ends them, whatever happens. --dry-run prints every command, to be typed by hand.
Exit codes: 0 every step was done, 1 a step or a bed failed, 2 bad usage or input, 130 interrupted.";

/// Arguments of every study on test beds.
#[derive(Debug, Args)]
pub struct BedStudyArgs {
    /// Length of each measured window [default: that of the study]
    #[arg(long, value_name = "TIME", value_parser = window, help_heading = "Load")]
    pub time: Option<Duration>,
    /// Print the commands without running them
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Do the remaining steps of the study in this directory, as it was begun
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Behaviour")]
    pub resume: Option<PathBuf>,
    /// Directory in which the results directory is created
    #[arg(allow_hyphen_values = true, value_parser = directory(), long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    #[arg(default_value = "plimsoll-results")]
    pub results: PathBuf,
    /// Output format of the report; json prints study.json alone
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Arguments of `study edge`.
#[derive(Debug, Args)]
pub struct EdgeStudyArgs {
    /// Round-trip times of the line between edge and core
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "0ms,30ms,150ms"
    )]
    #[arg(value_parser = duration, help_heading = "Target")]
    pub rtt: Vec<Duration>,
    /// Size of the edge's cache, from 16m; the working sets are half and twice its size
    #[arg(long, value_name = "SIZE", value_parser = plimsoll_plan::parse_size)]
    #[arg(default_value = "32m", help_heading = "Target")]
    pub cache_size: u64,
    /// Time after its last change at which the edge writes a file to the core
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5s", help_heading = "Target")]
    pub write_back: Duration,
    /// Workloads
    #[arg(
        long,
        value_name = "WORKLOAD",
        value_enum,
        value_delimiter = ',',
        help_heading = "Load"
    )]
    #[arg(default_value = "nfs-sfs2008,fileserver")]
    pub only: Vec<EdgeWorkload>,
    #[command(flatten)]
    pub study: BedStudyArgs,
}

/// Workloads of `study edge`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EdgeWorkload {
    /// NFS procedures at a rate
    #[value(name = "nfs-sfs2008")]
    NfsSfs2008,
    /// Whole files, as fast as it goes
    Fileserver,
}

/// Arguments of `study replicas`.
#[derive(Debug, Args)]
pub struct ReplicasStudyArgs {
    /// Cluster file systems: moosefs, gluster, ceph; those that are not installed are left out
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "moosefs,gluster,ceph"
    )]
    #[arg(help_heading = "Target")]
    pub software: Vec<String>,
    /// Numbers of copies of each file
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2",
        help_heading = "Target"
    )]
    pub copies: Vec<u32>,
    /// Number of servers that store data
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Target")]
    pub servers: u32,
    /// Maximum time after the load until all copies are there again, in whole seconds; 0s does not wait
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    #[arg(help_heading = "Load")]
    pub wait: Duration,
    /// Number of load points of vda
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Load")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub points: u64,
    /// Highest load of vda, in streams
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Load")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub max_load: u64,
    /// Workloads
    #[arg(
        long,
        value_name = "WORKLOAD",
        value_enum,
        value_delimiter = ',',
        help_heading = "Load"
    )]
    #[arg(default_value = "vda,fileserver")]
    pub only: Vec<ReplicasWorkload>,
    #[command(flatten)]
    pub study: BedStudyArgs,
}

/// Workloads of `study replicas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplicasWorkload {
    /// Streams, as a load curve
    Vda,
    /// Whole files, also while a server is killed
    Fileserver,
}

/// Arguments of `study delegations`.
#[derive(Debug, Args)]
pub struct DelegationsStudyArgs {
    /// Round-trip times added to that of the network
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "0ms,30ms"
    )]
    #[arg(value_parser = duration, help_heading = "Target")]
    pub added_rtt: Vec<Duration>,
    /// Workloads
    #[arg(
        long,
        value_name = "WORKLOAD",
        value_enum,
        value_delimiter = ',',
        help_heading = "Load"
    )]
    #[arg(default_value = "webserver,fileserver")]
    pub only: Vec<DelegationsWorkload>,
    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 500, help_heading = "Load")]
    #[arg(value_parser = clap::value_parser!(u64).range(300..=1_000_000))]
    pub files: u64,
    #[command(flatten)]
    pub study: BedStudyArgs,
}

/// Workloads of `study delegations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DelegationsWorkload {
    /// Reads of whole files, and one log that all write
    Webserver,
    /// Files that are created, extended, read and removed
    Fileserver,
}

impl DelegationsWorkload {
    /// The name of the workload.
    pub fn name(self) -> &'static str {
        match self {
            Self::Webserver => "webserver",
            Self::Fileserver => "fileserver",
        }
    }
}
