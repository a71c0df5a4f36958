//! Command-line arguments of `plimsoll-testbed`.

use crate::study::options::StudyCommand;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use plimsoll_plan::{parse_duration, parse_size};
use plimsoll_testbed::{BedError, BedOptions};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Starts real storage systems on this machine, loads them with plimsoll, injects faults into them, and ends them.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-testbed", bin_name = "plimsoll testbed", version)]
#[command(styles = STYLES, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  plimsoll testbed list
  plimsoll testbed up edge --rtt 150ms
  plimsoll testbed on edge -- run fileserver --time 30s
  plimsoll testbed fault edge cut line
  plimsoll testbed down edge
  plimsoll testbed with replicated -- run fileserver --time 30s
  plimsoll testbed study edge --dry-run

Exit codes: 0 done, 1 failed, 2 bad usage or missing software, 130 interrupted; `on`, `with` and `exec` exit with the \
exit code of the command.")]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: TestbedCommand,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Subcommands.
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
  plimsoll testbed on edge -- run fileserver --time 30s
  plimsoll testbed down edge")]
    Up(UpArgs),
    /// Run a command of plimsoll on a test bed that is up
    #[command(after_help = ON_HELP)]
    On {
        /// Name of the bed
        #[arg(value_name = "NAME")]
        name: String,
        /// The command and its arguments, without the name of the program
        #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
        command: Vec<OsString>,
    },
    /// Start a test bed, run a command of plimsoll on it, and end the bed, whatever happens
    #[command(after_help = "\
Examples:
  plimsoll testbed with nfs --nfs-version 3 -- run varmail --time 10s
  plimsoll testbed with replicated -- curve vda --load 1..4 --scale 0.01 --time 5s

The command gets the bed's target as with `plimsoll testbed on`.")]
    With {
        /// The bed
        #[command(flatten)]
        up: UpArgs,
        /// The command and its arguments, without the name of the program
        #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
        command: Vec<OsString>,
    },
    /// Show the nodes, processes and memory of test beds, and what is degraded
    Status(StatusArgs),
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
  plimsoll testbed fault r1 restart server.2
  plimsoll testbed on r1 -- run fileserver --time 60s \\
    --event '20s sh plimsoll testbed fault $PLIMSOLL_TESTBED kill server.2'")]
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
    /// Run a study: several commands of plimsoll that answer one question
    #[command(subcommand)]
    Study(StudyCommand),
    /// Keep a test bed up; `up` starts this command
    #[command(hide = true)]
    Keep {
        /// Directory of the bed's state
        dir: PathBuf,
    },
    /// Write the manual pages of all commands to a directory
    #[command(hide = true)]
    Man {
        /// The directory
        #[arg(allow_hyphen_values = true, long, value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
    /// Print a completion script for a shell
    #[command(hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the reference of all commands as Markdown
    #[command(hide = true)]
    Reference,
}

const ON_HELP: &str = "\
In a word of COMMAND, {} stands for the bed's first target and {NAME} for the bed's target of that name: a URL, or the \
directory of a mounted file system. Options of a URL may follow: '{v3}?nconnect=2'. {{}} stands for {}. A command \
that loads a target and has neither a placeholder nor a target of its own gets the bed's first target: --target URL, \
or --dir DIRECTORY. The results of run, curve, find, ab and profile get a description of the bed (PLIMSOLL_SUT).

The command runs in the network of the bed and sees the mounts of the bed. The environment variable PLIMSOLL_TESTBED is \
the bed's name.

Examples:
  plimsoll testbed on edge -- run fileserver --time 30s
  plimsoll testbed on nfs -- run varmail --target '{v3}?nconnect=2'
  plimsoll testbed on r1 -- run fileserver --dir {}/work --keep
  plimsoll testbed on edge -- profile fileio --filesystem 'edge={edge}' --filesystem 'core={core}'";

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Names of beds [default: all beds that are up]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Wait at most this time until all copies are made and everything is written back; exit with 1 if copies or
    /// write-backs are still missing then
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub wait: Option<Duration>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Kind of the bed; `list` prints all kinds
    #[arg(value_name = "KIND")]
    pub kind: String,
    /// Name of the bed [default: that of the kind, with a number if it is taken]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Version of NFS of the target: 3, 4.0 or 4.1
    #[arg(long, value_name = "VERSION")]
    pub nfs_version: Option<String>,
    /// Round-trip time of the line, at most 10s
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
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
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Size of the cache of an edge, such as 100m [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub cache_size: Option<u64>,
    /// Time after its last change at which an edge writes a file to the core [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
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
    /// Print only the bed's name and errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// A command line of the arguments of `up` alone.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct UpLine {
    #[command(flatten)]
    up: UpArgs,
}

impl UpArgs {
    /// Parses the arguments of `plimsoll testbed up`, such as the arguments of a bed in a study.
    ///
    /// # Errors
    /// If clap refuses the words; the error has clap's message.
    pub fn of_words(words: &[String]) -> Result<Self, BedError> {
        let line = UpLine::try_parse_from(words);
        line.map(|line| line.up)
            .map_err(|e| BedError::Usage(e.to_string()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
