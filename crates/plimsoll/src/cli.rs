//! The command line: its types and nothing else.

mod values;

pub use values::{ColdKind, CpuList, ErrorPolicy, Quit};

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use plimsoll_nfs::server::FaultRule;
use plimsoll_plan::{Content, OpsLimit};
use plimsoll_report::compare::Condition;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use values::{
    content, cpu_list, duration, interval, lanes, load, ops_limit, rate, scale, seed, setting,
    share, some_runs,
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Finds how much load a file system can carry, and proves it.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, styles = STYLES, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  plimsoll list                              the built-in workloads
  plimsoll run fileserver --time 10s         run one in a fresh temporary directory
  plimsoll run webserver --dir /mnt/test     run one on a file system of your choice
  plimsoll plan my.f                         what running a file would do

Exit codes: 0 valid, 1 failed, 2 bad usage or input, 3 ran but the result is invalid,
130 interrupted (SIGINT, SIGTERM or SIGHUP).")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload and report what was measured
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Measure a workload at several loads, one after the other, on one data set that grows
    #[command(after_help = CURVE_EXAMPLES)]
    Curve(Box<CurveArgs>),
    /// Find the load line of a workload: the highest load that meets its criteria
    #[command(after_help = FIND_EXAMPLES)]
    Find(Box<FindArgs>),
    /// Measure metadata and small objects by many processes: MD-Workbench, mdtest and IOR
    #[command(args_override_self = true, after_help = MD_EXAMPLES)]
    Md(Box<MdArgs>),
    /// Print exactly what `run` would do, without doing it
    #[command(after_help = "\
Examples:
  plimsoll plan fileserver
  plimsoll plan oltp --dir /mnt/test --set nshadows=20
  plimsoll plan my.f --format json

Exits with 2 and the reason if `run` would refuse.")]
    Plan(Box<PlanArgs>),
    /// Remove what an interrupted run left in a directory, by the marker that Plimsoll put there
    #[command(after_help = "\
Examples:
  plimsoll clean /mnt/test
  plimsoll clean out

Only what the marker lists is removed. A directory without a marker is searched for directories
with one, three levels down; if there is none, nothing is done and the exit code is 2.")]
    Clean(CleanArgs),
    /// List the built-in workloads
    #[command(after_help = "\
Examples:
  plimsoll list
  plimsoll list --format json")]
    List(ListArgs),
    /// Show a workload's parameters and its text
    #[command(after_help = "\
Examples:
  plimsoll show varmail
  plimsoll show ./my.f
  plimsoll show varmail --text > my.f        a copy to change")]
    Show(ShowArgs),
    /// Read a published disclosure report and print what it says
    #[command(after_help = "\
Examples:
  plimsoll import sfs2014-20160912-00016.txt
  plimsoll import report.txt --format json > report.json

Reads the ASCII (.txt) form of SPECsfs2008, SPEC SFS 2014 and SPECstorage 2020 reports, and of
Plimsoll's own, with their line breaks or with all of them collapsed to spaces. The overall
response time is computed anew; a difference that rounding does not explain is a warning.
Exits with 2 and the place if the text is no report, or not a whole one.")]
    Import(ImportArgs),
    /// Print results again, or make a page, tables or pictures of them
    #[command(after_help = "\
Examples:
  plimsoll report plimsoll-results/fileserver-20260301-140502
  plimsoll report plimsoll-results/* --format html --output report.html
  plimsoll report plimsoll-results/* --format csv > figures.csv
  plimsoll report plimsoll-results/vda-curve-20260301-140502 --format svg --output pictures
  plimsoll report plimsoll-results/vda-curve-20260301-140502 --format disclosure --sut sut.toml

A page is one file that needs no network. Pictures are one file a chart, in a directory.
Exits with 2 if a directory holds no results, or damaged ones.")]
    Report(ReportArgs),
    /// Show results side by side, and whether their differences are real
    #[command(after_help = "\
Examples:
  plimsoll compare before after
  plimsoll compare before after --fail-if 'p99 > +10%' --fail-if 'read1:ops/s < -5%'
  plimsoll compare ext4 xfs btrfs --format html --output file-systems.html
  plimsoll compare vda-curve-20260301-140502 sfs2014-20160912-00016.txt

Results are directories of a run, of repeated runs (run --repeat) or of a load curve, or published
disclosure reports; changes are from the first. Whether a difference is real can be said of repeated
runs only: there, --fail-if counts no change that may be chance.
Exit codes: 0 nothing failed, 2 no such results or figures, 3 a condition of --fail-if is met.")]
    Compare(CompareArgs),
    /// Describe the system under test, for disclosure reports
    #[command(after_help = "\
Examples:
  plimsoll sut init --dir /mnt/test
  plimsoll sut check sut.toml")]
    #[command(subcommand)]
    Sut(SutCommand),
    /// Convert a custom workload file of netmist to a workload of Plimsoll's own
    #[command(after_help = "\
Examples:
  plimsoll convert export.txt --to toml > mine.toml
  plimsoll convert export.txt --to toml --output mine.toml
  plimsoll run export.txt                    runs without being converted")]
    Convert(ConvertArgs),
    /// Serve files in memory by NFS version 3, for trying the nfs3 target out
    #[command(name = "serve-nfs", after_help = SERVE_EXAMPLES)]
    ServeNfs(ServeArgs),
    /// Print the JSON schema of run.json or of another of our forms
    #[command(after_help = "\
Examples:
  plimsoll schema > run.schema.json
  plimsoll schema disclosure                 what `import --format json` prints")]
    Schema {
        /// The form
        #[arg(value_enum, default_value_t)]
        form: SchemaForm,
    },
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write the pages of all commands to a directory
    #[command(after_help = "\
Examples:
  plimsoll man | man -l -
  plimsoll man --dir ~/.local/share/man/man1")]
    Man {
        /// Directory that the pages of all commands are written to
        #[arg(long, value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll run fileserver --time 10s
      in a fresh directory below the system's temporary directory
  plimsoll run webserver --dir /mnt/test --warmup 5s --time 60s
  plimsoll run my.f --set nthreads=16 --set filesize=1m
  plimsoll run varmail --ops 100000 --quit alldone
  plimsoll run randomread --cold --cpus 0-3 --format json > run.json
  plimsoll run my.f --target 'null:?latency=10ms' --clock virtual
      load on nothing at all, in virtual time
  mpiexec -n 8 plimsoll run fileserver --dir /shared/test
      the workers spread over eight ranks, on as many machines as mpiexec uses

Without --dir, a workload file's own paths are used as they are written, and a built-in workload
gets a fresh directory below the system's temporary directory.
Exit codes: 0 valid, 1 failed, 2 refused, 3 invalid, 130 interrupted (SIGINT, SIGTERM or SIGHUP).";

const CURVE_EXAMPLES: &str = "\
Examples:
  plimsoll curve vda --load 10,20,30 --dir /mnt/test
      ten minutes each: 5 of warm-up and 5 measured, besides making the files
  plimsoll curve swbuild --points 10 --max 50 --dir /mnt/test --latency-limit 20ms
  plimsoll curve vda --load 10..100/10 --scale 0.001 --time 10s --warmup 2s
      a thousandth of data and rates; the result is marked as not comparable
  plimsoll curve vda --load 1..8 --target 'null:?latency=2ms' --clock virtual
  plimsoll curve --resume plimsoll-results/vda-curve-20260101-120000
      goes on with a curve that was interrupted or killed

A point that misses a criterion is invalid; it is kept and shown with its reasons.
Exit codes: 0 some point is valid, 1 failed, 2 refused, 3 no point is valid, 130 interrupted
(SIGINT, SIGTERM or SIGHUP).";

const FIND_EXAMPLES: &str = "\
Examples:
  plimsoll find vda --max 200 --dir /mnt/test
      loads from 25 streams up, ten minutes each: 5 of warm-up and 5 measured
  plimsoll find swbuild --max 40 --start 4 --resolution 1 --latency-limit 20ms --dir /mnt/test
  plimsoll find vda --max 100 --scale 0.001 --time 10s --warmup 2s
      a thousandth of data and rates; the result is marked as not comparable
  plimsoll find vda --max 16 --target 'null:?latency=10ms&servers=1' --clock virtual
  plimsoll find --resume plimsoll-results/vda-find-20260101-120000
      goes on with a search that was interrupted or killed

Loads are doubled until one is not carried, and the interval is halved from there. A load that comes
near to a criterion is run again, and both ends of the interval are confirmed.
Exit codes: 0 a load is carried, 1 failed, 2 refused, 3 no load is carried, 130 interrupted (SIGINT,
SIGTERM or SIGHUP).";

const SERVE_EXAMPLES: &str = "\
Examples:
  plimsoll serve-nfs --listen 127.0.0.1:20490
  plimsoll run fileserver --target 'nfs3://127.0.0.1:20490/?mountport=20490' --time 5s
      in another terminal
  plimsoll serve-nfs --delay 5ms --fail read=io:0.001 --fail commit=swallow:0.01

The URL of the target is printed. Files are lost when the server ends, by Ctrl-C. Permissions are
kept and not enforced.
A fault is a status of NFS, such as io, stale, nospc or jukebox; swallow: the call is carried out
and never answered; close: the connection is closed; garbage: something is sent that is no answer.";

const MD_EXAMPLES: &str = "\
Examples:
  plimsoll md
      MD-Workbench's own defaults, in the directory `out`
  plimsoll md --processes 4 --dir /mnt/test -P=3000 -D=10 -I=1000 -R=3
  plimsoll md -i=posix -P=10 -D=5 -I=3 -S=3901 -- -D=/mnt/test/out
      the same options as MD-Workbench, in its way of writing them
  plimsoll md -1 && plimsoll md -2 -w=60 -W && plimsoll md -3
      one phase after the other; mdtest.status keeps the position
  plimsoll md --pattern mdtest-hard -n 10000 -w 30 --processes 8
  plimsoll md --dry-run
      what would be done

Exit codes: 0 valid, 1 failed, 2 refused, 3 operations failed, 130 interrupted.";

/// Arguments of `md`.
#[derive(Debug, Args)]
pub struct MdArgs {
    /// The pattern and its options.
    #[command(flatten)]
    pub md: plimsoll_md::Arguments,
    /// Directory that the results directory is made in
    #[arg(long, value_name = "DIR", default_value = "plimsoll-results")]
    #[arg(value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
    /// What is printed; json is the content of run.json alone, and the lines of the phases go to
    /// standard error
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print the Plan, and run nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Processes of this machine that are the ranks.
    #[command(flatten)]
    pub ranks: RankArgs,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What is run.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Directory that the results directory is made in
    #[arg(long, value_name = "DIR", default_value = "plimsoll-results")]
    #[arg(value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
    /// What is printed at the end; json is the content of run.json and nothing else
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Run N times, each with the next seed, and keep the runs as one result, for `compare`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub repeat: Option<u32>,
    /// Processes of this machine that run the workload together.
    #[command(flatten)]
    pub ranks: RankArgs,
}

/// Arguments of `curve`.
#[derive(Debug, Args)]
pub struct CurveArgs {
    /// Built-in name, or path of a workload file; one with a business metric, such as vda
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "resume")]
    pub workload: Option<String>,
    /// What every command that runs workloads takes.
    #[command(flatten)]
    pub how: HowArgs,

    /// Loads, in increasing order: 10,20,30, or 10..100/10 for steps of 10, or both
    #[arg(long, value_name = "LOADS", conflicts_with_all = ["points", "max"])]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<String>,
    /// So many loads, evenly spaced up to that of --max
    #[arg(long, value_name = "N", requires = "max", help_heading = "Load")]
    pub points: Option<u64>,
    /// The greatest of the --points loads
    #[arg(long, value_name = "LOAD", requires = "points", help_heading = "Load")]
    pub max: Option<u64>,

    /// When a load counts as carried.
    #[command(flatten)]
    pub criteria: CriteriaArgs,
    /// End after N invalid points in a row; 0 never does
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Criteria")]
    pub after_invalid: u32,
    /// Go on when an invalid point has achieved less than the one before it
    #[arg(long, help_heading = "Criteria")]
    pub past_peak: bool,

    /// Program that is called with workload, load, and INIT, WARM, RUN or END at each point; needs
    /// --allow-system
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    #[arg(help_heading = "Behaviour")]
    pub monitor: Option<PathBuf>,
    /// Go on with the curve in this directory, as it was begun
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Behaviour")]
    #[arg(conflicts_with_all = ["workload", "load", "points", "max", "latency_limit", "rate_share",
        "process_share", "after_invalid", "past_peak", "monitor", "results", "dir", "target", "keep",
        "scale", "time", "warmup", "set", "seed", "on_error", "content", "cold", "cpus",
        "allow_system", "clock", "lanes", "interval"])]
    pub resume: Option<PathBuf>,

    /// Directory that the results directory is made in
    #[arg(long, value_name = "DIR", default_value = "plimsoll-results")]
    #[arg(value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
    /// What is printed at the end; json is the content of curve.json and nothing else
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Processes of this machine that run each point together.
    #[command(flatten)]
    pub ranks: RankArgs,
}

/// When a load counts as carried, instead of what the workload says.
#[derive(Debug, Args)]
pub struct CriteriaArgs {
    /// Greatest mean response time, instead of the workload's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub latency_limit: Option<Duration>,
    /// Least share of all operations that must be done, instead of the workload's, such as 0.95
    #[arg(long, value_name = "SHARE", value_parser = share)]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub rate_share: Option<f64>,
    /// Least share of its operations that each process must do, such as 0.75
    #[arg(long, value_name = "SHARE", value_parser = share)]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub process_share: Option<f64>,
}

/// Arguments of `find`.
#[derive(Debug, Args)]
pub struct FindArgs {
    /// Built-in name, or path of a workload file; one with a business metric, such as vda
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "resume")]
    pub workload: Option<String>,
    /// What every command that runs workloads takes.
    #[command(flatten)]
    pub how: HowArgs,

    /// Greatest load that is tried; the files are laid out for it and made as far as they are
    /// needed
    #[arg(long, value_name = "LOAD", value_parser = load)]
    #[arg(required_unless_present = "resume")]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub max: Option<u64>,
    /// First load [default: an eighth of --max]
    #[arg(long, value_name = "LOAD", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub start: Option<u64>,
    /// Widest interval between the load that is carried and the one that is not [default: 2 % of
    /// the load that is carried]
    #[arg(long, value_name = "LOADS", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub resolution: Option<u64>,
    /// Runs of each end of the interval; a load is carried if it holds in more than half of its
    /// runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = some_runs)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub confirm: u32,
    /// Most runs in all
    #[arg(long, value_name = "N", default_value = "60", value_parser = some_runs)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub runs: u32,

    /// When a load counts as carried.
    #[command(flatten)]
    pub criteria: CriteriaArgs,

    /// Go on with the search in this directory, as it was begun
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Behaviour")]
    #[arg(conflicts_with_all = ["workload", "max", "start", "resolution", "confirm", "runs",
        "latency_limit", "rate_share", "process_share", "results", "dir", "target", "keep", "scale",
        "time", "warmup", "set", "seed", "on_error", "content", "cold", "cpus", "allow_system", "clock",
        "lanes", "interval"])]
    pub resume: Option<PathBuf>,

    /// Directory that the results directory is made in
    #[arg(long, value_name = "DIR", default_value = "plimsoll-results")]
    #[arg(value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
    /// What is printed at the end; json is the content of find.json and nothing else
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Processes of this machine that run each load together.
    #[command(flatten)]
    pub ranks: RankArgs,
}

/// Processes that run something together.
#[derive(Debug, Args)]
pub struct RankArgs {
    /// Start N processes on this machine that share the workers; under mpiexec or srun there are
    /// as many as those start
    #[arg(long, value_name = "N", help_heading = "Ranks")]
    pub processes: Option<u32>,
    /// Keep the results of each rank too, in the directory `ranks` of the results
    #[arg(long, help_heading = "Ranks")]
    pub per_rank: bool,
}

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub struct CleanArgs {
    /// Directory that an interrupted run left, or one that holds such directories
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Clean it too if a run on another machine is said to use it: you know that it has ended
    #[arg(long)]
    pub force: bool,
    /// Where the directory is: on a server, DIR is its path below the export
    #[arg(long, value_name = "URL", default_value = "posix")]
    pub target: String,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What would be run.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// What is printed; json is the whole Plan
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: String,
    /// Print the workload's text and nothing else
    #[arg(long)]
    pub text: bool,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The report
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// What is printed; json is the whole report
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Results directories of runs, load curves or searches, or published reports
    #[arg(value_name = "RESULTS", required = true, value_hint = ValueHint::AnyPath)]
    pub results: Vec<PathBuf>,
    /// What is made of them
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Description of the system under test, for --format disclosure; `plimsoll sut init` begins one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sut: Option<PathBuf>,
    /// File to write instead of standard output; of pictures, the directory
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Results directories or published reports
    #[arg(value_name = "RESULTS", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub results: Vec<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: CompareFormat,
    /// File to write instead of standard output
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// End with code 3 if a figure changed by more; may be given again
    #[arg(long, value_name = "[OPERATION:]FIGURE<|>PERCENT")]
    pub fail_if: Vec<Condition>,
}

/// Formats of `compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CompareFormat {
    /// A table a figure
    #[default]
    Text,
    /// Tables for issues and wikis
    Markdown,
    /// A page in one file
    Html,
    /// Everything, the figures of each run too
    Json,
}

/// Formats of `report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// What the command printed at the end
    #[default]
    Text,
    /// What run.json, curve.json or find.json holds
    Json,
    /// The full disclosure report of a load curve, in ASCII
    Disclosure,
    /// A line an operation, or a load point
    Csv,
    /// Tables for issues and wikis
    Markdown,
    /// A page with charts, in one file
    Html,
    /// A picture of each chart
    Svg,
}

/// Subcommands of `sut`.
#[derive(Debug, Subcommand)]
pub enum SutCommand {
    /// Write a description of this machine, to be completed by hand
    #[command(after_help = "\
Examples:
  plimsoll sut init
  plimsoll sut init --output server7.toml --dir /mnt/test

A file that exists is never overwritten.")]
    Init {
        /// The file
        #[arg(long, short, value_name = "FILE", default_value = "sut.toml")]
        #[arg(value_hint = ValueHint::FilePath)]
        output: PathBuf,
        /// Directory on the file system that is measured
        #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
    /// Read a description and say what is not stated yet
    #[command(after_help = "\
Examples:
  plimsoll sut check
  plimsoll sut check server7.toml

Exits with 2 and the place if the file is not what a disclosure report takes.")]
    Check {
        /// The file
        #[arg(value_name = "FILE", default_value = "sut.toml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// What `run` and `plan` have in common.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: String,
    /// What every command that runs workloads takes.
    #[command(flatten)]
    pub how: HowArgs,

    /// Business metrics to carry, of workloads that have them, such as vda [default: 1]
    #[arg(long, value_name = "N", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<u64>,
    /// End after N operations in all, or of each worker
    #[arg(long, value_name = "N[/worker]", value_parser = ops_limit)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub ops: Option<OpsLimit>,
    /// When the run ends, instead of what the workload says
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Load")]
    pub quit: Option<Quit>,
    /// Events a second for the limiters, instead of the workload's; 0 lifts the limit
    #[arg(long, value_name = "EVENTS", value_parser = rate)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub rate: Option<f64>,
}

/// How a workload is run, whatever its load.
#[derive(Debug, Args)]
pub struct HowArgs {
    /// Directory for the files; every path of the workload is taken to be below it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Place")]
    pub dir: Option<PathBuf>,
    // The brackets are of the URL's form, and no link.
    #[allow(rustdoc::broken_intra_doc_links)]
    /// What the load is put on: posix, nfs3://host[:port]/export, or null:?latency=TIME
    #[arg(
        long,
        value_name = "URL",
        default_value = "posix",
        help_heading = "Place"
    )]
    pub target: String,
    /// Leave the files there afterwards
    #[arg(long, help_heading = "Place")]
    pub keep: bool,

    /// Share of the data and rates of a workload with business metrics; the result is marked as not
    /// comparable [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = scale)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub scale: Option<f64>,
    /// Length of the measured window, such as 500ms, 10s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub time: Option<Duration>,
    /// Run this long before measuring: besides a Filebench workload's own warm-up, instead of an
    /// operation mix's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub warmup: Option<Duration>,
    /// Change a parameter of the workload; may be given again
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,
    /// Root of all random choices [default: 1]
    #[arg(long, value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub seed: Option<u64>,

    /// What an unexpected error does: stop the run, or count and make the result invalid
    /// [default: stop; of load points, count]
    #[arg(long, value_name = "POLICY", value_enum, help_heading = "Behaviour")]
    pub on_error: Option<ErrorPolicy>,
    /// What is written, instead of what the workload says: random, zero, or compressible:RATIO
    /// [default: random]
    #[arg(long, value_name = "KIND", value_parser = content)]
    #[arg(help_heading = "Behaviour")]
    pub content: Option<Content>,
    /// Drop the page cache before the run: of the files, or of the whole system (needs root)
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "files", help_heading = "Behaviour")]
    pub cold: Option<ColdKind>,
    /// Processors that workers are bound to in turn, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpu_list, help_heading = "Behaviour")]
    pub cpus: Option<CpuList>,
    /// Let the workload's `system` statements run shell commands, and load points call a --monitor
    #[arg(long, help_heading = "Behaviour")]
    pub allow_system: bool,

    /// Real time, or virtual time that jumps to the next event (for targets that support it)
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        default_value_t,
        help_heading = "Engine"
    )]
    pub clock: ClockArg,
    /// Threads that drive the workers, for targets that need not have one a worker
    #[arg(long, value_name = "N", value_parser = lanes)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub lanes: Option<u32>,
    /// Length of an interval of the series in the results, at least 10ms; the latencies shown
    /// while the run goes on are those of the last whole interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub interval: Duration,
}

/// Arguments of `serve-nfs`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Time between a call and its answer; calls do not wait for each other
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    #[arg(allow_hyphen_values = true)]
    pub delay: Duration,
    /// Have a share of the calls of a procedure (or all) come to a fault; may be given again, and
    /// the first that applies counts
    #[arg(long, value_name = "PROCEDURE=FAULT:RATE")]
    pub fail: Vec<FaultRule>,
    /// Most memory that files may take, such as 512m
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = plimsoll_plan::parse_size)]
    pub memory: u64,
}

/// Arguments of `convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The custom workload file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: String,
    /// What it is converted to
    #[arg(long, value_enum, default_value_t)]
    pub to: ConvertTo,
    /// File that is written instead of standard output; it must not be there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Values of `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ConvertTo {
    /// An operation mix
    #[default]
    Toml,
}

/// Forms that have a JSON schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaForm {
    /// run.json
    #[default]
    Run,
    /// curve.json, the result of load points
    Curve,
    /// find.json, the search for a load line
    Find,
    /// A disclosure report, as `import` prints it
    Disclosure,
    /// sut.toml, the description of the system under test
    Sut,
    /// A workload as an operation mix
    Mix,
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

/// Values of `--clock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ClockArg {
    /// Time that passes
    #[default]
    Real,
    /// Time that jumps to the next event
    Virtual,
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
        for command in Cli::command().get_subcommands() {
            let after = command.get_after_help().map(ToString::to_string);
            assert!(
                after.is_some_and(|a| a.contains("Examples:\n")),
                "{}",
                command.get_name()
            );
        }
    }

    #[test]
    fn values_that_begin_with_a_dash_are_refused_as_values() {
        for option in [
            "time", "warmup", "interval", "seed", "ops", "rate", "lanes", "load", "scale",
        ] {
            let option = format!("--{option}");
            let parsed = Cli::try_parse_from(["plimsoll", "plan", "varmail", &option, "-1"]);
            let message = parsed.unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("error: invalid value '-1' for '{option} <"))
                    && message.contains("expected"),
                "{message}"
            );
        }
    }
}
