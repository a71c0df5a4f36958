//! The command line of `plimsoll ior`.

use crate::md::ApiArguments;
use clap::{ArgAction, Args, ValueHint};
use plimsoll_plan::{parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

/// Options of IOR 4.0. Options that Plimsoll refuses are hidden, and have a sentence in [`Self::refused`].
///
/// The command must have `args_override_self`, because in IOR the last value of an option counts.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Arguments {
    /// Bytes that a task writes in a segment: bytes, or with k, m or g [default: 1m]
    #[arg(short = 'b', value_name = "SIZE", value_parser = parse_size, help_heading = "Access")]
    pub block_size: Option<u64>,
    /// Bytes of a transfer [default: 256k]
    #[arg(short = 't', value_name = "SIZE", value_parser = parse_size, help_heading = "Access")]
    pub transfer_size: Option<u64>,
    /// Segments: blocks of each task in a file [default: 1]
    #[arg(short = 's', value_name = "N", help_heading = "Access")]
    pub segment_count: Option<u64>,
    /// A file for each task, instead of one file that all tasks share
    #[arg(short = 'F', help_heading = "Access")]
    pub file_per_proc: bool,
    /// Write; with neither -w nor -r, the tasks write and then read
    #[arg(short = 'w', help_heading = "Access")]
    pub write: bool,
    /// Read; with neither -w nor -r, the tasks write and then read
    #[arg(short = 'r', help_heading = "Access")]
    pub read: bool,
    /// Shuffle the transfers; twice, access blocks at random
    #[arg(short = 'z', action = ArgAction::Count, help_heading = "Access")]
    pub random_offset: u8,
    /// Seed of the order of -z [default: the number of -G]
    #[arg(long, value_name = "N", help_heading = "Access")]
    pub random_offset_seed: Option<u64>,
    /// Read the data of another task, -Q tasks further
    #[arg(short = 'C', help_heading = "Access")]
    pub reorder_tasks: bool,
    /// Distance in tasks from the writer to the reader with -C, and the least distance with -Z [default: 1]
    #[arg(short = 'Q', value_name = "N", help_heading = "Access")]
    pub task_offset: Option<u32>,
    /// Read the data of random tasks; twice, of the tasks in random order
    #[arg(short = 'Z', action = ArgAction::Count, help_heading = "Access")]
    pub reorder_random: u8,
    /// Seed of -Z; a negative seed -N is N plus the number of the repetition [default: 0]
    #[arg(
        short = 'X',
        value_name = "N",
        allow_hyphen_values = true,
        help_heading = "Access"
    )]
    pub reorder_seed: Option<i64>,
    /// Seed of the contents of the files [default: 1]
    #[arg(short = 'G', value_name = "N", help_heading = "Access")]
    pub signature: Option<u64>,

    /// Flush the file (fsync) after a task's last write
    #[arg(short = 'e', help_heading = "Phases")]
    pub fsync: bool,
    /// Repetitions of the test [default: 1]
    #[arg(short = 'i', value_name = "N", help_heading = "Phases")]
    pub repetitions: Option<u32>,
    /// Stonewall: seconds after which tasks begin no further transfer of a phase; 0 for none
    #[arg(short = 'D', value_name = "TIME", value_parser = parse_duration, help_heading = "Phases")]
    pub deadline: Option<Duration>,
    /// Directives, separated by commas: stoneWallingWearOut=1 lets every task transfer as much as the
    /// fastest after the stonewall; stoneWallingWearOutIterations=N ends a phase after N transfers
    #[arg(short = 'O', value_name = "NAME=VALUE", help_heading = "Phases")]
    pub directives: Vec<String>,
    /// Wait for all tasks after the open and before the close
    #[arg(short = 'g', help_heading = "Phases")]
    pub barriers: bool,
    /// Keep the files after the run
    #[arg(short = 'k', help_heading = "Phases")]
    pub keep: bool,
    /// Bypass the page cache (O_DIRECT)
    #[arg(long = "posix.odirect", help_heading = "Phases")]
    pub direct: bool,

    /// Parent of the test file [default: .]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub dir: Option<PathBuf>,
    /// Test file. Plimsoll makes a directory of this name, and the files in the directory
    /// [default: testFile]
    #[arg(short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = "Target")]
    pub test_file: Option<PathBuf>,
    /// API, or URL of a target.
    #[command(flatten)]
    pub api: ApiArguments,

    /// Reference number in the summary [default: 0]
    #[arg(short = 'A', value_name = "N", help_heading = "Output")]
    pub reference: Option<u32>,
    /// Print a line for each task as well
    #[arg(short = 'v', action = ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,

    /// IOR's options that are refused.
    #[command(flatten)]
    pub refused: Refused,
}

/// Options of IOR that Plimsoll refuses.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Refused {
    #[arg(short = 'c', long, hide = true)]
    collective: bool,
    #[arg(short = 'd', hide = true, value_name = "N")]
    inter_test_delay: Option<String>,
    #[arg(short = 'E', hide = true)]
    existing_file: bool,
    #[arg(short = 'f', hide = true, value_name = "FILE")]
    script: Option<String>,
    #[arg(short = 'j', hide = true, value_name = "N")]
    outlier: Option<String>,
    #[arg(short = 'K', hide = true)]
    keep_with_error: bool,
    #[arg(short = 'l', long = "dataPacketType", hide = true, value_name = "TYPE")]
    packet_type: Option<String>,
    #[arg(short = 'm', hide = true)]
    multi_file: bool,
    #[arg(short = 'M', hide = true, value_name = "SIZE")]
    memory_per_node: Option<String>,
    #[arg(short = 'N', hide = true, value_name = "N")]
    tasks: Option<String>,
    #[arg(short = 'R', hide = true)]
    check_read: bool,
    #[arg(short = 'T', hide = true, value_name = "N")]
    max_minutes: Option<String>,
    #[arg(short = 'u', hide = true)]
    unique_dir: bool,
    #[arg(short = 'W', hide = true)]
    check_write: bool,
    #[arg(short = 'x', hide = true)]
    single_attempt: bool,
    #[arg(short = 'y', hide = true)]
    dual_mount: bool,
    #[arg(short = 'Y', hide = true)]
    fsync_per_write: bool,
    #[arg(long = "randomPrefill", hide = true, value_name = "SIZE")]
    prefill: Option<String>,
    #[arg(long = "warningAsErrors", hide = true)]
    warnings: bool,
}

impl Refused {
    /// Refusal of the first refused option on the command line, as one sentence; `None` without such an option.
    pub(super) fn reason(&self) -> Option<String> {
        let all = [
            (
                self.collective,
                "-c",
                "a task's transfers are its own, as with the API POSIX",
            ),
            (
                self.inter_test_delay.is_some(),
                "-d",
                "repetitions follow each other at once",
            ),
            (
                self.existing_file,
                "-E",
                "a write begins without the file; -r reads the files that a run with -k has left",
            ),
            (
                self.script.is_some(),
                "-f",
                "give the options on the command line",
            ),
            (
                self.outlier.is_some(),
                "-j",
                "run.json has the times of every task",
            ),
            (self.keep_with_error, "-K", "data are not compared"),
            (
                self.packet_type.is_some(),
                "-l",
                "contents are random and differ everywhere, as with type `random`",
            ),
            (
                self.multi_file,
                "-m",
                "each repetition writes the same files",
            ),
            (
                self.memory_per_node.is_some(),
                "-M",
                "`plimsoll md` has options that take memory",
            ),
            (
                self.tasks.is_some(),
                "-N",
                "--processes N or the launcher sets the number of tasks",
            ),
            (
                self.check_read,
                "-R",
                "data are not compared; `plimsoll md -X` verifies objects",
            ),
            (
                self.max_minutes.is_some(),
                "-T",
                "-i sets the number of repetitions",
            ),
            (
                self.unique_dir,
                "-u",
                "the files of all tasks are in one directory",
            ),
            (
                self.check_write,
                "-W",
                "data are not compared; `plimsoll md -X` verifies objects",
            ),
            (self.single_attempt, "-x", "a transfer is never repeated"),
            (self.dual_mount, "-y", "all tasks use one mount"),
            (
                self.fsync_per_write,
                "-Y",
                "-e flushes once, after a task's last write",
            ),
            (
                self.prefill.is_some(),
                "--randomPrefill",
                "run a sequential write with -k before",
            ),
            (
                self.warnings,
                "--warningAsErrors",
                "contradictions are always errors",
            ),
        ];
        let (_, option, why) = all.into_iter().find(|(given, ..)| *given)?;
        Some(format!("{option} of IOR is not supported: {why}"))
    }
}
