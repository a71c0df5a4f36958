//! Arguments of `testbed`.

use super::values::duration;
use super::{Command, Format};
use crate::exit::CommandError;
use clap::{Args, Parser, Subcommand};
use plimsoll_results::SeriesDir;
use plimsoll_testbed::{BedOptions, Fault};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Subcommands of `testbed`.
#[derive(Debug, Subcommand)]
pub enum TestbedCommand {
    /// List the kinds of test beds, what is missing for each, and the beds that are up
    List {
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Start a test bed
    #[command(after_help = "\
Examples:
  plimsoll testbed up edge --rtt 150ms
  plimsoll testbed up replicated --servers 3 --copies 2 --name r1
  plimsoll run fileserver --target testbed:edge --time 30s
  plimsoll testbed down edge")]
    Up(UpArgs),
    /// Show the nodes, processes and memory of test beds, and what is degraded
    Status {
        /// Names [default: all that are up]
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Wait until all copies are made and everything is written back, but at most this time; exit
        /// with 1 if they are not
        #[arg(long, value_name = "TIME", value_parser = duration)]
        wait: Option<Duration>,
        /// Output format
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Hurt a node of a test bed, or heal it
    #[command(after_help = "\
Actions:
  kill NODE           kill its processes (SIGKILL)
  stop NODE           stop its processes (SIGSTOP): connections stay, replies do not come
  cont NODE           let them continue (SIGCONT)
  restart NODE        start it again with the same files
  cut NODE            make it unreachable: a line is cut, an address is taken away
  heal NODE           undo cut, fill and slow
  delay TIME [LINE]   change the round-trip time of a line
  fill [NODE]         fill its file system up (beds with --size)
  slow Niops [NODE]   limit the rate of its disk, of reads and of writes each

Examples:
  plimsoll testbed fault r1 kill server.2
  plimsoll testbed fault edge delay 20ms
  plimsoll testbed fault r1 restart server.2")]
    Fault {
        /// Name of the bed
        #[arg(value_name = "NAME")]
        name: String,
        /// What happens, and to which node
        #[arg(value_name = "ACTION", required = true, num_args = 1..)]
        action: Vec<String>,
    },
    /// Print the logs of a test bed's nodes
    Logs {
        /// Name of the bed
        #[arg(value_name = "NAME")]
        name: String,
        /// Nodes [default: all]
        #[arg(value_name = "NODE")]
        nodes: Vec<String>,
    },
    /// Run a program in the network of a test bed, where its mounts are seen
    #[command(after_help = "\
Examples:
  plimsoll testbed exec r1 -- df -h
  plimsoll testbed exec nfs -- ss -tn")]
    Exec {
        /// Name of the bed
        #[arg(value_name = "NAME")]
        name: String,
        /// The program and its arguments
        #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
        command: Vec<OsString>,
    },
    /// End test beds: nothing of them is left
    Down {
        /// Names
        #[arg(value_name = "NAME", required_unless_present = "all")]
        names: Vec<String>,
        /// End all that are up
        #[arg(long, conflicts_with = "names")]
        all: bool,
    },
    /// Start a test bed, run a command of this program on it, and end the bed, whatever happens
    #[command(after_help = "\
Examples:
  plimsoll testbed with nfs --nfs-version 3 -- run varmail --time 10s
  plimsoll testbed with replicated -- curve vda --load 1..4 --scale 0.01 --time 5s

The command gets the option --target with the bed, unless it has one.")]
    With {
        /// The bed
        #[command(flatten)]
        up: UpArgs,
        /// The command and its arguments, without the name of this program
        #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
        command: Vec<OsString>,
    },
    /// Keep a test bed; started by `testbed up`
    #[command(hide = true)]
    Keep {
        /// Directory of the bed's state
        dir: PathBuf,
    },
}

/// Arguments of `testbed up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Kind of the bed; `testbed list` has all
    #[arg(value_name = "KIND")]
    pub kind: String,
    /// Name of the bed [default: that of the kind, with a number if it is taken]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Version of NFS of the target: 3, 4.0 or 4.1
    #[arg(long, value_name = "VERSION")]
    pub nfs_version: Option<String>,
    /// Round-trip time of the line, at most 10s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub rtt: Option<Duration>,
    /// Software that provides it
    #[arg(long, value_name = "NAME")]
    pub software: Option<String>,
    /// Number of servers that store data
    #[arg(long, value_name = "N")]
    pub servers: Option<u32>,
    /// Number of copies of each file
    #[arg(long, value_name = "N")]
    pub copies: Option<u32>,
    /// Size of each file system of the bed, such as 1g; those of servers are in memory then, and can be
    /// filled
    #[arg(long, value_name = "SIZE", value_parser = plimsoll_plan::parse_size)]
    pub size: Option<u64>,
    /// Size of the cache of an edge, such as 100m [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = plimsoll_plan::parse_size)]
    pub cache_size: Option<u64>,
    /// Time after its last change at which an edge writes a file to the core [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub write_back: Option<Duration>,
    /// What an edge speaks to its core: webdav or s3 [default: webdav]
    #[arg(long, value_name = "PROTOCOL")]
    pub core_protocol: Option<String>,
    /// The core filer over the same line, without the edge
    #[arg(long)]
    pub without_edge: bool,
    /// File system: ext4, xfs or btrfs
    #[arg(long, value_name = "NAME")]
    pub file_system: Option<String>,
    /// How the kernel of a server is run: uml (User-Mode Linux) or qemu
    #[arg(long, value_name = "NAME")]
    pub machine: Option<String>,
    /// Print only where the load goes, and errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// A line that has nothing but the arguments of `testbed up`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct UpLine {
    #[command(flatten)]
    up: UpArgs,
}

impl UpArgs {
    /// The arguments of words, such as a study has.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of_words(words: &[String]) -> Result<Self, CommandError> {
        let line = UpLine::try_parse_from(words);
        line.map(|line| line.up).map_err(CommandError::usage)
    }

    /// The options of the bed.
    pub fn options(&self) -> BedOptions {
        BedOptions {
            nfs_version: self.nfs_version.clone(),
            rtt: self.rtt,
            software: self.software.clone(),
            servers: self.servers,
            copies: self.copies,
            size: self.size,
            cache_size: self.cache_size,
            write_back: self.write_back,
            core_protocol: self.core_protocol.clone(),
            without_edge: self.without_edge,
            file_system: self.file_system.clone(),
            machine: self.machine.clone(),
        }
    }
}

impl Command {
    /// Makes this process one of the test bed in the command's target, if it is one: this program is
    /// started again in the bed's network.
    ///
    /// # Errors
    /// If the bed is not up, it cannot be entered, or the targets are in several.
    pub fn enter_test_bed(&self) -> Result<(), CommandError> {
        let mut targets: Vec<String> = match self {
            Self::Run(args) => vec![args.workload.how.target.clone()],
            Self::Plan(args) => vec![args.workload.how.target.clone()],
            Self::Populate(args) => vec![args.workload.how.target.clone()],
            Self::Curve(args) => vec![args.how.target.clone()],
            Self::Find(args) => vec![args.how.target.clone()],
            Self::Resume(args) => targets_of(&args.dir),
            Self::Profile(args) => {
                let all = args.filesystem.iter().filter_map(|f| f.target.clone());
                all.chain([args.how.target.clone()]).collect()
            }
            Self::Md(args) => args
                .md
                .target
                .iter()
                .chain(&args.md.interface)
                .cloned()
                .collect(),
            Self::MakeRun(args) => targets_of(&args.series),
            Self::Clean(args) => vec![args.target.clone()],
            _ => vec![],
        };
        targets.retain(|t| plimsoll_target::testbed::name_of(t).is_some());
        let Some(first) = targets.first() else {
            return Ok(());
        };
        let name = plimsoll_target::testbed::name_of;
        if let Some(other) = targets.iter().find(|t| name(t) != name(first)) {
            return Err(CommandError::usage(format!(
                "{first} and {other} are in networks of their own: one command can load only one of them"
            )));
        }
        targets
            .iter()
            .try_for_each(|target| crate::commands::testbed::enter(target))
    }
}

/// Targets of a series; none if it cannot be read, of which the command itself reports the error.
fn targets_of(dir: &Path) -> Vec<String> {
    let series = SeriesDir::at(dir).read();
    let configurations = series.map_or_else(|_| vec![], |series| series.configurations);
    configurations.into_iter().map(|c| c.target.url).collect()
}

/// The fault of an action's words.
///
/// # Errors
/// What is wrong with it.
pub fn fault(words: &[String]) -> Result<Fault, String> {
    words.join(" ").parse()
}
