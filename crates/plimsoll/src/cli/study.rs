//! Arguments of `study nfs4-opens`.

use super::values::{directory, duration, times};
use super::{CommonRunArgs, EventArgs, HookArgs, OutputArgs};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `study nfs4-opens`.
#[derive(Debug, Args)]
pub struct StudyArgs {
    /// The server's export over NFSv3: nfs3://host/export
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "nfs4",
        help_heading = "Target"
    )]
    pub nfs3: Option<String>,
    /// The same directory over NFSv4: nfs4://host/path
    #[arg(long, value_name = "URL", help_heading = "Target")]
    pub nfs4: Option<String>,
    /// NFS versions to compare [default: all whose URL is given]
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
        default_value = "0ms,100ms"
    )]
    #[arg(value_parser = duration, help_heading = "Target")]
    pub added_rtt: Vec<Duration>,
    #[command(flatten)]
    pub how: CommonRunArgs,
    #[command(flatten)]
    pub events: EventArgs,

    /// Run only this workload, fileserver or webserver; repeatable
    #[arg(long, value_name = "WORKLOAD", help_heading = "Load")]
    pub only: Vec<String>,
    /// Repeat each run N times, each with the next seed, to test differences for significance
    #[arg(long, value_name = "N", value_parser = times)]
    #[arg(allow_hyphen_values = true, default_value_t = 1, help_heading = "Load")]
    pub repeat: u32,
    /// List the runs without running them
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Directory in which the results directory is created [default: plimsoll-results]
    #[arg(allow_hyphen_values = true, value_parser = directory(), long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: Option<PathBuf>,
    #[command(flatten)]
    pub manner: OutputArgs,
    #[command(flatten)]
    pub hooks: HookArgs,
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
