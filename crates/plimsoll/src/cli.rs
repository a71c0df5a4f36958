//! Command line of `plimsoll` for clap: subcommands, their arguments, and the help.

mod ab;
mod check;
mod documents;
mod events;
mod examples;
mod fio;
pub mod foreign_words;
mod hosts;
mod io500;
mod live;
mod load_points;
mod nfs;
mod overview;
mod profile;
mod ranks;
mod results;
mod results_management;
mod settle;
mod systems;
mod values;
mod workloads;

pub use ab::AbArgs;
pub use check::CheckArgs;
pub use documents::{DocsCommand, SchemaForm};
pub use events::EventArgs;
pub use fio::{FIO_COMMAND, FioArgs, options_first};
pub use hosts::HostsCheckArgs;
pub use io500::Io500Args;
pub use load_points::{CriteriaArgs, CurveArgs, FindArgs, MakeRunArgs, ResumeArgs};
pub use nfs::{NfsArgs, WanArgs};
pub use overview::definition;
pub use profile::{FileSystem, ProfileArgs};
pub use ranks::{HostArgs, RankArgs, RankCommandArgs};
pub use results::{CompareArgs, CompareFormat, ImportArgs, ReportArgs, ReportFormat, SutCommand};
pub use results_management::{NoteArgs, PruneArgs, ResultsCommand, ServeArgs, TagArgs};
pub use settle::Settle;
pub use systems::{FitArgs, SystemsCommand, SystemsListArgs};
pub use workloads::{
    CommonRunArgs, ConvertArgs, FilesArgs, ListArgs, PopulateArgs, ShowArgs, WorkloadArgs,
    WorkloadsCommand,
};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use examples::{
    AB_EXAMPLES, CHECK_EXAMPLES, CURVE_EXAMPLES, FIND_EXAMPLES, FIO_EXAMPLES, IO500_EXAMPLES,
    IOR_EXAMPLES, MD_EXAMPLES, MDTEST_EXAMPLES, PROFILE_EXAMPLES, RESUME_EXAMPLES, RUN_EXAMPLES,
};
use plimsoll_workload::{ior, md, mdtest};
use std::path::PathBuf;

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// A benchmark for file systems and NFS servers: finds the highest load that a system sustains, and proves the figure.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, styles = STYLES, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  plimsoll workloads list                    the built-in workloads
  plimsoll run fileserver --time 10s         run one in a fresh temporary directory
  plimsoll run webserver --dir /mnt/test     run one on a file system of your choice
  plimsoll run my.f --dry-run                what running a file would do

A command NAME outside the list runs the program plimsoll-NAME from the directory of this program or the PATH: \
`plimsoll testbed` starts real storage systems on this machine. `plimsoll docs` prints manual pages, shell \
completions, JSON schemas and the reference.
Exit codes: 0 valid, 1 failed, 2 bad usage or input, 3 the result is invalid, \
130 interrupted by a signal.")]
pub struct Cli {
    /// Parsed subcommand with its arguments; a missing subcommand prints the help.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands of `plimsoll`, with the arguments of each.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload and report the results
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Measure a load curve, or a workload at the values of parameters
    #[command(after_help = CURVE_EXAMPLES)]
    Curve(Box<CurveArgs>),
    /// Make one run of a series; started by `curve --jobs`
    #[command(name = "make-run", hide = true)]
    MakeRun(MakeRunArgs),
    /// Find the load line: the highest load, or value, that is sustained
    #[command(after_help = FIND_EXAMPLES)]
    Find(Box<FindArgs>),
    /// Compare two variants of a run in pairs of runs
    #[command(after_help = AB_EXAMPLES)]
    Ab(Box<AbArgs>),
    /// Check a new mount or server in about a minute
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Box<CheckArgs>),
    /// Run a Filebench profile on one or several file systems
    #[command(after_help = PROFILE_EXAMPLES)]
    Profile(Box<ProfileArgs>),
    /// Measure metadata and small objects: MD-Workbench, mdtest and IOR
    #[command(args_override_self = true, after_help = MD_EXAMPLES)]
    Md(Box<PatternArgs<md::Arguments>>),
    /// Run the phases of IO500 from its configuration file, with scores
    #[command(hide = true, after_help = IO500_EXAMPLES)]
    Io500(Box<Io500Args>),
    /// Run a command line of IOR: parallel reads and writes of files
    #[command(args_override_self = true, hide = true, after_help = IOR_EXAMPLES)]
    Ior(Box<PatternArgs<ior::Arguments>>),
    /// Run a command line of mdtest: creation, stat, read and removal of files and directories
    #[command(args_override_self = true, hide = true, after_help = MDTEST_EXAMPLES)]
    Mdtest(Box<PatternArgs<mdtest::Arguments>>),
    /// Run job files and command lines of fio
    #[command(after_help = FIO_EXAMPLES)]
    Fio(Box<FioArgs>),
    /// Make the missing runs of a series, such as a curve or a profile
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(Box<ResumeArgs>),
    /// Be a rank; started by `--hosts` on other machines
    #[command(name = plimsoll_ranks::RANK_COMMAND, hide = true)]
    Rank(RankCommandArgs),
    /// Create the files of a workload, for a run in the same directory
    #[command(after_help = "\
Examples:
  plimsoll populate fileserver --dir /mnt/test
  plimsoll run fileserver --dir /mnt/test

A run with the same workload, parameters, seed and load finds the files and uses them, \
also over another access path to the same directory: a server's files can be created on its own disk, \
and read by a client whose caches do not have them.")]
    Populate(Box<PopulateArgs>),
    /// Remove the files of an interrupted run
    #[command(after_help = "\
Examples:
  plimsoll clean /mnt/test
  plimsoll clean out

Removes only what the marker lists. If DIR has no marker, up to three levels below it are searched \
for marked directories; if none is found, nothing is removed and the exit code is 2.")]
    Clean(CleanArgs),
    /// List the built-in workloads, show or convert a workload
    #[command(after_help = "\
Examples:
  plimsoll workloads list
  plimsoll workloads show varmail
  plimsoll workloads convert export.txt --output mine.toml")]
    #[command(subcommand)]
    Workloads(WorkloadsCommand),
    /// Report results as text, tables, a page or images
    #[command(after_help = "\
Examples:
  plimsoll report plimsoll-results/fileserver-20260301-140502
  plimsoll report plimsoll-results/* --format html --output report.html
  plimsoll report plimsoll-results/* --format csv > figures.csv
  plimsoll report plimsoll-results/vda-curve-20260301-140502 --format svg --output images
  plimsoll report plimsoll-results/vda-curve-20260301-140502 --format disclosure --sut sut.toml

A page is one file that needs no network. Images are written one file per chart, in a directory. \
Exits with 2 if a directory contains no results, or damaged results.")]
    Report(ReportArgs),
    /// Compare results; test differences for significance
    #[command(after_help = "\
Examples:
  plimsoll compare before after
  plimsoll compare before after --fail-if 'p99 > +10%' --fail-if 'read1:ops/s < -5%'
  plimsoll compare ext4 xfs btrfs --format html --output file-systems.html
  plimsoll compare vda-curve-20260301-140502 sfs2014-20160912-00016.txt

Results are directories of a run, of repeated runs (run --repeat) or of a load curve, or published \
disclosure reports; changes are relative to the first. Only repeated runs can be tested for \
significance: for them, --fail-if ignores changes that may be due to chance.
Exit codes: 0 no --fail-if condition is met, 2 a figure that no result has, 3 a condition of --fail-if \
is met, only one of the results has its figure, or a result after the first is not valid.")]
    Compare(CompareArgs),
    /// Serve, tag, annotate, delete, import; describe the tested system
    #[command(after_help = "\
Examples:
  plimsoll results serve
  plimsoll results tag plimsoll-results/fileserver-20260301-140502 --add baseline
  plimsoll results prune --older-than 30d --dry-run
  plimsoll results import sfs2014-20160912-00016.txt
  plimsoll results sut init --dir /mnt/test")]
    #[command(subcommand)]
    Results(ResultsCommand),
    /// Models of systems; emulated NFS server and WAN; check of hosts
    #[command(after_help = "\
Examples:
  plimsoll systems list
  plimsoll systems show edge-32 > mine.toml       a copy to change
  plimsoll curve vda --load 170..1700/170 --target sim:flash-2-replicas --time 10s")]
    #[command(subcommand)]
    Systems(SystemsCommand),
    /// Print manual pages, completions, schemas and the reference
    #[command(hide = true, subcommand)]
    Docs(DocsCommand),
}

/// Arguments of a command that runs a pattern with the options `T` of another tool.
#[derive(Debug, Args)]
pub struct PatternArgs<T: Args> {
    #[command(flatten)]
    pub tool: T,
    #[command(flatten)]
    pub root: ResultsRoot,
    /// Output format; json prints run.json alone, and the lines of the phases go to standard error
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print the Plan without executing the Plan
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    #[command(flatten)]
    pub ranks: RankArgs,
    #[command(flatten)]
    pub events: EventArgs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub workload: WorkloadArgs,
    #[command(flatten)]
    pub root: ResultsRoot,
    #[command(flatten)]
    pub manner: OutputArgs,
    /// Run N times, each with the next seed, and keep the runs as one result, for `compare`
    #[arg(long, value_name = "N", value_parser = values::repeats)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub repeat: Option<u32>,
    /// Print the line `IO Summary` of Filebench after the report, for each measured window, for scripts that read the
    /// line
    #[arg(long, conflicts_with_all = ["repeat", "format"], help_heading = "Output")]
    pub filebench: bool,
    #[arg(long, help = settle::settle_help("before each run of --repeat", "0s"), requires = "repeat")]
    #[arg(value_name = "TIME|auto", value_parser = Settle::parse)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub settle: Option<Settle>,
}

/// Option `--results`: parent directory of the results directory that a command creates.
#[derive(Debug, Clone, Args)]
pub struct ResultsRoot {
    /// Directory in which the results directory is created
    #[arg(allow_hyphen_values = true, value_parser = values::directory(), long, value_name = "DIR")]
    #[arg(default_value = "plimsoll-results", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
}

/// Options of `run`, `curve`, `find`, `ab`, `check`, `profile` and `resume` for the printed report and for the ranks of runs.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Output format of the report; json prints the results file alone: run.json, or series.json
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Show runs in progress on the whole terminal: charts, operations, errors, this machine, events
    #[arg(long, conflicts_with = "quiet", help_heading = "Output")]
    pub live: bool,
    #[command(flatten)]
    pub ranks: RankArgs,
}

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Directory that an interrupted run left, or a parent of such directories
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Clean a directory whose marker names a run on another machine; only if you know that the run has
    /// ended
    #[arg(long)]
    pub force: bool,
    /// Target that holds the directory; on an NFS server, DIR is a path below the export
    #[arg(long, value_name = "URL", default_value = plimsoll_target::DEFAULT_TARGET)]
    pub target: String,
}

/// Values of `--format` of commands that print either text or JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command) {
            for command in command.get_subcommands().filter(|c| !c.is_hide_set()) {
                let after = command.get_after_help().map(ToString::to_string);
                let has_examples = after.is_some_and(|a| a.contains("Examples:\n"));
                assert!(has_examples, "{}", command.get_name());
                check(command);
            }
        }
        check(&Cli::command());
    }

    #[test]
    fn values_that_begin_with_a_dash_are_refused_as_values() {
        for option in ["time", "warmup", "interval", "seed", "ops", "load", "scale"] {
            let option = format!("--{option}");
            let parsed = Cli::try_parse_from(["plimsoll", "run", "varmail", &option, "-1"]);
            let message = parsed.unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("error: invalid value '-1' for '{option} <"))
                    && message.contains("expected"),
                "{message}"
            );
        }
    }
}
