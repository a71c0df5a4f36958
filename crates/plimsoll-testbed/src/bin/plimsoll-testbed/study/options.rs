//! Command-line arguments of `study`.

use crate::cli::Format;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use plimsoll_plan::option_values::{directory, setting, window};
use plimsoll_plan::{parse_duration, parse_size};
use plimsoll_results::Loads;
use std::path::PathBuf;
use std::time::Duration;

/// Subcommands of `study`.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    #[command(flatten)]
    Begin(Study),
    /// Do the remaining steps of a study, with the options of its begin
    #[command(after_help = "\
Examples:
  plimsoll testbed study resume plimsoll-results/edge-study-20260301-140502

Steps that depend on each other, because each changes the content of a test bed, are repeated together on a new bed.")]
    Resume {
        /// Directory of the study
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        #[command(flatten)]
        output: StudyOutput,
    },
    /// Print the report of a study again
    #[command(after_help = "\
Examples:
  plimsoll testbed study report plimsoll-results/edge-study-20260301-140502")]
    Report {
        /// Directory of the study
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// Output format; json prints study.json
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// The studies.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// A caching edge filer before a core filer that is far away, and the core filer without it
    #[command(after_help = HELP)]
    Edge(Box<EdgeStudy>),
    /// Cluster file systems with one copy of each file and with two, and with a server killed
    #[command(after_help = HELP)]
    Replicas(Box<ReplicasStudy>),
    /// Opens of NFS versions 3, 4.0 and 4.1, with one and with many open owners, with and without delegations: on a test
    /// bed, or on your own server
    #[command(after_help = NFS4_OPENS_HELP)]
    Nfs4Opens(Box<Nfs4OpensStudy>),
}

impl Study {
    /// Arguments that all studies have in common.
    pub fn common(&self) -> &StudyArgs {
        match self {
            Self::Edge(args) => &args.study,
            Self::Replicas(args) => &args.study,
            Self::Nfs4Opens(args) => &args.study,
        }
    }
}

const HELP: &str = "\
Starts test beds on this machine (`plimsoll testbed list` says what they need), loads them one after the other, and \
ends them, whatever happens. --dry-run prints every command, to be typed by hand.
Exit codes: 0 every step was done, 1 a step or a bed failed, 2 bad usage or input, 130 interrupted.";

const NFS4_OPENS_HELP: &str = "\
Examples:
  plimsoll testbed study nfs4-opens --only webserver
  plimsoll testbed study nfs4-opens --nfs3 nfs3://filer/vol1 --nfs4 nfs4://filer/vol1 --dry-run
  plimsoll testbed study nfs4-opens --nfs4 nfs4://filer/vol1 --added-rtt 0ms,20ms --repeat 5

Each step is a profile (`plimsoll profile nfs4-opens --print-source`) over several access paths to one server: the \
Linux kernel's server on a test bed, or the server of --nfs3 and --nfs4. --dry-run prints every command, to be typed by hand.
Exit codes: 0 every step was done, 1 a step or the bed failed, 2 bad usage or input, 130 interrupted.";

/// Arguments of every study.
#[derive(Debug, Args)]
pub struct StudyArgs {
    /// Length of each measured window [default: that of the study]
    #[arg(long, value_name = "TIME", value_parser = window, help_heading = "Load")]
    pub time: Option<Duration>,
    /// Print the commands without running them
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Directory in which the directory of the study is created
    #[arg(allow_hyphen_values = true, value_parser = PathBufValueParser::new().map(directory), long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    #[arg(default_value = "plimsoll-results")]
    pub results: PathBuf,
    #[command(flatten)]
    pub output: StudyOutput,
}

/// Output options of a study.
#[derive(Debug, Args)]
pub struct StudyOutput {
    /// Output format of the report; json prints study.json
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Arguments of `study edge`.
#[derive(Debug, Args)]
pub struct EdgeStudy {
    /// Round-trip times of the line between edge and core
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "0ms,30ms,150ms"
    )]
    #[arg(value_parser = parse_duration, help_heading = "Target")]
    pub rtt: Vec<Duration>,
    /// Size of the edge's cache, from 16m; the working sets are half and twice its size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[arg(default_value = "32m", help_heading = "Target")]
    pub cache_size: u64,
    /// Time after its last change at which the edge writes a file to the core
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5s", help_heading = "Target")]
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
    pub study: StudyArgs,
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
pub struct ReplicasStudy {
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
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    #[arg(help_heading = "Load")]
    pub wait: Duration,
    /// Loads of vda in streams, in the syntax of `plimsoll curve --load`
    #[arg(
        long,
        value_name = "LOADS",
        default_value = "2..20/2",
        value_parser = loads,
        help_heading = "Load"
    )]
    pub load: Loads,
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
    pub study: StudyArgs,
}

/// Workloads of `study replicas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReplicasWorkload {
    /// Streams, as a load curve
    Vda,
    /// Whole files, also while a server is killed
    Fileserver,
}

/// Arguments of `study nfs4-opens`.
#[derive(Debug, Args)]
pub struct Nfs4OpensStudy {
    /// Export of your own server over NFSv3: nfs3://host/export
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub nfs3: Option<String>,
    /// The directory of --nfs3 over NFSv4: nfs4://host/path
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub nfs4: Option<String>,
    /// NFS versions to compare [default: all versions, or the versions with a URL]
    #[arg(
        long,
        value_name = "VERSION",
        value_enum,
        value_delimiter = ',',
        help_heading = "Target"
    )]
    pub versions: Vec<NfsVersion>,
    /// Round-trip times added to that of the network
    #[arg(
        long,
        value_name = "TIME",
        value_delimiter = ',',
        default_value = "0ms,30ms"
    )]
    #[arg(value_parser = parse_duration, help_heading = "Target")]
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
    pub only: Vec<Nfs4OpensWorkload>,
    /// Change a parameter of the workloads, such as nfiles=100; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,
    /// Repeat each run N times, each with the next seed, to test differences for significance
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub study: StudyArgs,
}

impl Nfs4OpensStudy {
    /// Whether the study starts a bed, because the user names no server.
    pub fn is_on_bed(&self) -> bool {
        self.nfs3.is_none() && self.nfs4.is_none()
    }
}

/// Workloads of `study nfs4-opens`: configurations of the profile `nfs4-opens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Nfs4OpensWorkload {
    /// Reads of whole files, and one log that all write
    Webserver,
    /// Files that are created, extended, read and removed
    Fileserver,
}

impl Nfs4OpensWorkload {
    /// The name of the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Webserver => "webserver",
            Self::Fileserver => "fileserver",
        }
    }
}

/// A version of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NfsVersion {
    /// RFC 1813
    #[value(name = "3")]
    V3,
    /// RFC 7530
    #[value(name = "4.0")]
    V4Minor0,
    /// RFC 8881
    #[value(name = "4.1")]
    V4Minor1,
}

impl NfsVersion {
    /// The name of the version on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V4Minor0 => "4.0",
            Self::V4Minor1 => "4.1",
        }
    }
}

fn loads(text: &str) -> Result<Loads, String> {
    Loads::parse("--load", text).map_err(|e| e.to_string())
}
