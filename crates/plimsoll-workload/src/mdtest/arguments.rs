//! The command line of `plimsoll mdtest`.

use crate::md::ApiArguments;
use clap::{ArgAction, Args, ValueHint};
use plimsoll_plan::{parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

/// Options of mdtest 4.0. Options that Plimsoll refuses are hidden, and are in [`Self::refused`].
///
/// The command must have `args_override_self`, because in mdtest the last value of an option counts.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Arguments {
    /// Files and directories of each task, in the whole tree
    #[arg(short = 'n', value_name = "N", help_heading = "Tree")]
    pub items: Option<u64>,
    /// Files and directories of each task in each directory of the tree
    #[arg(short = 'I', value_name = "N", help_heading = "Tree")]
    pub items_per_dir: Option<u64>,
    /// Depth of the tree of directories [default: 0]
    #[arg(short = 'z', value_name = "N", help_heading = "Tree")]
    pub depth: Option<u32>,
    /// Child directories of each directory in the tree [default: 1]
    #[arg(short = 'b', value_name = "N", help_heading = "Tree")]
    pub branch: Option<u32>,
    /// Place files and directories only in the lowest level of the tree
    #[arg(short = 'L', help_heading = "Tree")]
    pub leaf_only: bool,
    /// A tree for each task, instead of one tree that all tasks share
    #[arg(short = 'u', help_heading = "Tree")]
    pub unique_dir: bool,

    /// Work only on directories, not on files
    #[arg(short = 'D', help_heading = "Phases")]
    pub dirs_only: bool,
    /// Work only on files, not on directories
    #[arg(short = 'F', help_heading = "Phases")]
    pub files_only: bool,
    /// Create files and directories; without -C, -T, -E, -r and -U, the tasks do all phases
    #[arg(short = 'C', help_heading = "Phases")]
    pub create: bool,
    /// Stat the files and directories that an earlier run with -C left
    #[arg(short = 'T', help_heading = "Phases")]
    pub stat: bool,
    /// Read the files that an earlier run with -C left
    #[arg(short = 'E', help_heading = "Phases")]
    pub read: bool,
    /// Remove the files and directories that an earlier run with -C left
    #[arg(short = 'r', help_heading = "Phases")]
    pub remove: bool,
    /// Rename each directory to the name of the directory before
    #[arg(short = 'U', help_heading = "Phases")]
    pub rename: bool,
    /// Number of iterations of the phases [default: 1]
    #[arg(short = 'i', value_name = "N", help_heading = "Phases")]
    pub iterations: Option<u32>,
    /// Stonewall: time limit of the creation of files; all tasks then create as many files as the fastest
    #[arg(short = 'W', value_name = "TIME", value_parser = parse_duration, help_heading = "Phases")]
    pub stonewall: Option<Duration>,

    /// Bytes written to each file [default: 0]
    #[arg(short = 'w', value_name = "SIZE", value_parser = parse_size, help_heading = "Access")]
    pub write_bytes: Option<u64>,
    /// Bytes read from each file [default: 0, which opens and closes each file]
    #[arg(short = 'e', value_name = "SIZE", value_parser = parse_size, help_heading = "Access")]
    pub read_bytes: Option<u64>,
    /// Distance in tasks: a task stats the files of the task N further, reads the files of the task 2N further,
    /// and removes the files of the task 3N further [default: 0]
    #[arg(short = 'N', value_name = "N", help_heading = "Access")]
    pub stride: Option<u32>,
    /// Stat and read files and directories in random order
    #[arg(short = 'R', help_heading = "Access")]
    pub random: bool,
    /// Seed of the order of -R [default: 1]
    #[arg(long, value_name = "N", help_heading = "Access")]
    pub random_seed: Option<u64>,
    /// Seed of the contents of the files [default: 1]
    #[arg(short = 'G', value_name = "N", help_heading = "Access")]
    pub signature: Option<u64>,
    /// Compare the data read with the data written
    #[arg(short = 'X', long, help_heading = "Access")]
    pub verify_read: bool,
    /// Flush each file (fsync) after the write
    #[arg(short = 'y', help_heading = "Access")]
    pub sync: bool,

    /// Test directory [default: out]
    #[arg(short = 'd', value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub dir: Option<PathBuf>,
    /// API, or URL of a target.
    #[command(flatten)]
    pub api: ApiArguments,

    /// Print the durations of the phases instead of the rates
    #[arg(short = 'Z', help_heading = "Output")]
    pub print_time: bool,
    /// Print the rates and the durations of the phases
    #[arg(short = 'P', help_heading = "Output")]
    pub print_rate_and_time: bool,
    /// Print the duration and the rate of each phase when the phase ends
    #[arg(short = 'v', action = ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,

    /// Options of mdtest that Plimsoll refuses.
    #[command(flatten)]
    pub refused: Refused,
}

/// Options of mdtest that Plimsoll refuses.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Refused {
    #[arg(short = 'B', hide = true, value_name = "N", num_args = 0..=1, default_missing_value = "1")]
    no_barriers: Option<String>,
    #[arg(short = 'c', hide = true)]
    collective: bool,
    #[arg(short = 'f', hide = true, value_name = "N")]
    first: Option<String>,
    #[arg(short = 'g', hide = true)]
    layout: bool,
    #[arg(short = 'k', hide = true)]
    mknod: bool,
    #[arg(short = 'l', hide = true, value_name = "N")]
    last: Option<String>,
    #[arg(short = 'p', hide = true, value_name = "N")]
    delay: Option<String>,
    #[arg(long = "print-all-procs", hide = true)]
    all_processes: bool,
    #[arg(short = 's', hide = true, value_name = "N")]
    task_stride: Option<String>,
    #[arg(short = 'S', hide = true)]
    shared_file: bool,
    #[arg(short = 't', hide = true)]
    unique_dir_overhead: bool,
    #[arg(short = 'V', hide = true, value_name = "N")]
    verbosity: Option<String>,
    #[arg(short = 'x', hide = true, value_name = "FILE")]
    status_file: Option<String>,
    #[arg(long = "verify-write", hide = true)]
    verify_write: bool,
    #[arg(short = 'Y', hide = true)]
    system_sync: bool,
    #[arg(long = "dataPacketType", hide = true, value_name = "TYPE")]
    packet_type: Option<String>,
    #[arg(long = "run-cmd-before-phase", hide = true, value_name = "COMMAND")]
    prologue: Option<String>,
    #[arg(long = "run-cmd-after-phase", hide = true, value_name = "COMMAND")]
    epilogue: Option<String>,
    #[arg(long = "warningAsErrors", hide = true)]
    warnings: bool,
    #[arg(long = "saveRankPerformanceDetails", hide = true, value_name = "FILE")]
    rank_details: Option<String>,
    #[arg(long = "savePerOpDataCSV", hide = true, value_name = "PREFIX")]
    operations: Option<String>,
    #[arg(long = "showRankStatistics", hide = true)]
    rank_statistics: bool,
}

impl Refused {
    /// Refusal of the first refused option on the command line, as one sentence; `None` without such an option.
    pub(super) fn reason(&self) -> Option<String> {
        const RANKS: &str = "`stages` of run.json has the figures of each rank";
        const TASKS: &str = "--processes N or the launcher sets the number of tasks";
        const COMMANDS: &str = "--event runs commands at the phases of a run";
        let all = [
            (
                self.no_barriers.is_some(),
                "-B",
                "all tasks begin a phase together",
            ),
            (self.collective, "-c", "each task creates its own files"),
            (self.first.is_some(), "-f", TASKS),
            (
                self.layout,
                "-g",
                "the layout of directories is the file system's",
            ),
            (self.mknod, "-k", "files are created by open"),
            (self.last.is_some(), "-l", TASKS),
            (
                self.delay.is_some(),
                "-p",
                "iterations follow each other at once",
            ),
            (self.all_processes, "--print-all-procs", RANKS),
            (self.task_stride.is_some(), "-s", TASKS),
            (self.shared_file, "-S", "tasks do not share files"),
            (
                self.unique_dir_overhead,
                "-t",
                "tasks use paths and change no directory, so there is no overhead",
            ),
            (self.verbosity.is_some(), "-V", "-v prints each phase"),
            (
                self.status_file.is_some(),
                "-x",
                "a phase of a later run needs the number of files of -n or -I",
            ),
            (
                self.verify_write,
                "--verify-write",
                "-X compares what the read phase reads",
            ),
            (
                self.system_sync,
                "-Y",
                "-y flushes each file after its write",
            ),
            (
                self.packet_type.is_some(),
                "--dataPacketType",
                "a file contains the task's number, or with -X random data",
            ),
            (self.prologue.is_some(), "--run-cmd-before-phase", COMMANDS),
            (self.epilogue.is_some(), "--run-cmd-after-phase", COMMANDS),
            (
                self.warnings,
                "--warningAsErrors",
                "failed operations are always errors",
            ),
            (
                self.rank_details.is_some(),
                "--saveRankPerformanceDetails",
                RANKS,
            ),
            (
                self.operations.is_some(),
                "--savePerOpDataCSV",
                "`plimsoll md --latency` records the time of every operation",
            ),
            (self.rank_statistics, "--showRankStatistics", RANKS),
        ];
        let (_, option, why) = all.into_iter().find(|(given, ..)| *given)?;
        Some(format!("{option} of mdtest is not supported: {why}"))
    }
}
