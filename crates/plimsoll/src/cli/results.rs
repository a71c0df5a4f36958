//! Arguments of commands that read results.

use super::Format;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use plimsoll_report::compare::Condition;
use plimsoll_results::Percentiles;
use std::path::PathBuf;

/// Arguments of `results import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// File of the published report, as HTML or text
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Output format; json prints the whole report
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Results directories of runs or series, such as load curves, or published reports
    #[arg(value_name = "RESULTS", required = true, value_hint = ValueHint::AnyPath)]
    pub results: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Percentiles in tables, instead of the defaults: up to 16, above 0 and at most 100, such as
    /// 50,90,99,99.9,99.99,99.999
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub percentiles: Option<Percentiles>,
    /// Show the details of a page in --format text and markdown, too: each row of the workload, confidence intervals,
    /// resources, ranks, parameters and environment
    #[arg(long)]
    pub details: bool,
    /// First recover the results of killed runs; RESULTS are hidden directories of such runs, or parent directories of
    /// hidden directories
    #[arg(long)]
    pub recover: bool,
    /// Description of the system under test for --format disclosure and html, instead of the one beside the results;
    /// `plimsoll results sut init` creates one
    #[arg(allow_hyphen_values = true, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub sut: Option<PathBuf>,
    /// New file for the output, instead of standard output; for images and parquet, a directory
    #[arg(allow_hyphen_values = true, long, short, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub output: Option<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Results directories or published reports
    #[arg(value_name = "RESULTS", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    pub results: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: CompareFormat,
    /// New file for the output, instead of standard output
    #[arg(allow_hyphen_values = true, long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Percentiles to compare, instead of the defaults: up to 16, above 0 and at most 100, such as
    /// 50,90,99,99.9,99.99,99.999
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub percentiles: Option<Percentiles>,
    /// Exit with 3 if a figure changed by more than this, if a result does not have the figure, or if a
    /// result after the first is not valid; repeatable
    #[arg(long, value_name = "[OPERATION:]FIGURE<|>PERCENT")]
    pub fail_if: Vec<Condition>,
    /// Check --fail-if also in results that are not valid
    #[arg(long, requires = "fail_if")]
    pub allow_invalid: bool,
}

/// Formats of `compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CompareFormat {
    /// A table for each figure
    #[default]
    Text,
    /// Tables for issues and wikis
    Markdown,
    /// A page in one file
    Html,
    /// An image of the load curves, of any size
    Svg,
    /// Everything, including the figures of each run
    Json,
}

/// Formats of `report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ReportFormat {
    /// The report that the command printed
    #[default]
    Text,
    /// The content of run.json or series.json
    Json,
    /// The full disclosure report of a load curve, in ASCII
    Disclosure,
    /// A line for each operation, load point, or run of a search
    Csv,
    /// Tables of operations, intervals and histograms for DuckDB, Spark and pandas, a file each
    Parquet,
    /// Final figures for Prometheus, with times
    Openmetrics,
    /// Final figures in the line protocol of InfluxDB
    Influx,
    /// Final figures for the OpenTelemetry Collector: OTLP as JSON, a request per line
    Otlp,
    /// Tables for issues and wikis
    Markdown,
    /// A page with charts, in one file
    Html,
    /// An image of each chart, of any size
    Svg,
}

/// Subcommands of `results sut`.
#[derive(Debug, Subcommand)]
pub enum SutCommand {
    /// Write a description of this machine, to be completed by hand
    #[command(after_help = "\
Examples:
  plimsoll results sut init
  plimsoll results sut init --output server7.toml --dir /mnt/test

Existing files are never overwritten.")]
    Init {
        /// New file for the description
        #[arg(
            allow_hyphen_values = true,
            long,
            short,
            value_name = "FILE",
            default_value = "sut.toml"
        )]
        #[arg(value_hint = ValueHint::FilePath)]
        output: PathBuf,
        /// Directory on the file system that is measured
        #[arg(allow_hyphen_values = true, long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
    },
    /// Read a description and list the entries still missing
    #[command(after_help = "\
Examples:
  plimsoll results sut check
  plimsoll results sut check server7.toml

Exits with 2 and prints the source location if the file is not a valid description.")]
    Check {
        /// Description to read
        #[arg(value_name = "FILE", default_value = "sut.toml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}
