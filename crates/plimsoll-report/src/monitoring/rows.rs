//! Samples of results of any kind.

use crate::monitoring::metrics::{LOAD_LINE, METRICS, Metric, ORT, VALID, WINDOW};
use crate::parquet::facts::RunFacts;
use crate::parquet::operations;
use crate::parquet::table::Cell;
use crate::parquet::{ParquetError, RunSource, sources};
use plimsoll_diagnostics::foreign;
use plimsoll_results::{Entry, Kind, Run, RunDir, Status, Verdict};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::PathBuf;

/// Columns of the Parquet tables that are labels, in the order of labels. A label without a value is left out.
const LABELS: [&str; 19] = [
    "run_id",
    "results",
    "results_kind",
    "run_path",
    "workload",
    "load",
    "load_metric",
    "profile_filesystem",
    "profile_case",
    "verdict",
    "target",
    "clock",
    "host",
    "part",
    "stage",
    "iteration",
    "level",
    "operation",
    "kind",
];

/// Parts of a run whose rows are exported: earlier windows and single ranks are in the Parquet tables only.
const PARTS: [&str; 2] = ["run", "stage"];

/// Final figures of results, for monitoring systems.
#[derive(Debug)]
pub struct Export {
    pub(super) rows: Vec<Row>,
}

/// Samples with the same labels and time: of a run, an operation, or a series.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Names and values of the labels; unprintable characters of the values are escaped.
    pub(super) labels: Vec<(&'static str, String)>,
    /// End of the measured window in microseconds since 1970; the start of the run in virtual time, or without a
    /// window; `None` if the results have no valid time.
    pub(super) time_us: Option<i64>,
    pub(super) samples: Vec<Sample>,
    /// Host name of the client, for formats that describe the source of samples.
    pub(super) host: String,
    /// Version of Plimsoll that measured, for formats that describe the source of samples.
    pub(super) program_version: String,
}

/// Value of a metric, with labels in addition to the labels of the row.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) metric: &'static Metric,
    /// Labels of this sample only: quantile and bound.
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: f64,
}

impl Sample {
    fn new(metric: &'static Metric, value: f64) -> Self {
        Self {
            metric,
            labels: vec![],
            value,
        }
    }
}

impl Row {
    /// Labels of the row, followed by labels of `sample`, which belongs to the row.
    pub(super) fn labels_of<'a>(
        &'a self,
        sample: &'a Sample,
    ) -> impl Iterator<Item = (&'static str, &'a str)> {
        let labels = self.labels.iter().chain(&sample.labels);
        labels.map(|(name, value)| (*name, value.as_str()))
    }
}

impl Export {
    /// Reads the final figures of the results in some directories. Figures that are given twice, as in copies of
    /// results, are exported once.
    ///
    /// # Errors
    /// If a directory has no results or no run, or if the results cannot be read.
    pub fn read(results: &[PathBuf]) -> Result<Self, ParquetError> {
        let mut rows = Vec::new();
        for path in results {
            let mut last = None;
            for source in sources(path)? {
                let run = RunDir::at(&source.path).read()?;
                let of_run = of_run(&run, &source);
                last = last.max(of_run.iter().filter_map(|row| row.time_us).max());
                rows.extend(of_run);
            }
            if Kind::of(path)? != Kind::Run {
                rows.push(of_series(&Entry::read(path)?, last));
            }
        }
        let mut known = BTreeSet::new();
        rows.retain(|row| known.insert((row.labels.clone(), row.time_us)));
        Ok(Self { rows })
    }
}

/// Row of a series as a whole. `end_us` is the end of the last run.
fn of_series(entry: &Entry, end_us: Option<i64>) -> Row {
    let mut labels = vec![
        ("results", foreign::escaped(&entry.name).into_owned()),
        ("results_kind", entry.kind.to_string()),
        ("workload", foreign::escaped(&entry.workload).into_owned()),
    ];
    let metric = entry.metric.as_deref().unwrap_or_default();
    labels.push(("load_metric", foreign::escaped(metric).into_owned()));
    labels.push(("verdict", entry.status.to_string()));
    labels.push(("target", foreign::escaped(&entry.target).into_owned()));
    labels.push(("part", "series".to_owned()));
    labels.push(("level", "summary".to_owned()));
    labels.retain(|(_, value)| !value.is_empty());
    let is_valid = entry.status == Status::Valid;
    let mut samples = vec![Sample::new(&VALID, f64::from(is_valid))];
    let load_line = entry.load_line.map(|load| load as f64);
    samples.extend(load_line.map(|load| Sample::new(&LOAD_LINE, load)));
    samples.extend(entry.ort_ms.map(|ms| Sample::new(&ORT, ms / 1e3)));
    Row {
        labels,
        time_us: end_us,
        samples,
        ..Row::default()
    }
}

fn of_run(run: &Run, source: &RunSource) -> Vec<Row> {
    let facts = RunFacts::of(run, source);
    let of_facts = |column| facts.cells.iter().find(|c| c.column() == column);
    let started_us = of_facts("started_at").and_then(Cell::time_us);
    let mut rows = Vec::new();
    let done = operations::rows::<Infallible>(run, |cells| {
        let text = |column| find(cells, column)?.text();
        let number = |column| find(cells, column)?.number();
        if !text("part").is_some_and(|part| PARTS.contains(&&*part)) {
            return Ok(());
        }
        let label = |name| {
            let cell = of_facts(name).or_else(|| find(cells, name))?;
            Some((name, cell.text()?.into_owned()))
        };
        let mut labels: Vec<_> = LABELS.into_iter().filter_map(label).collect();
        let configuration = source.configuration.as_deref().map(foreign::escaped);
        labels.extend(configuration.map(|c| ("configuration", c.into_owned())));
        labels.retain(|(_, value)| !value.is_empty());
        let is_measured = run.window_number > 0;
        let is_summary = text("level").is_some_and(|level| level == "summary");
        let is_run = text("part").is_some_and(|part| part == "run");
        // The length of the whole run is the sum of its stages, between which time passes.
        let last = run.stages.last().filter(|_| is_run).map(|s| &s.window);
        let window = match last {
            Some(last) => Some((last.start_s, last.window_s)),
            None => number("window_start_s").zip(number("window_s")),
        };
        let end_us = window.and_then(|(start_s, s)| facts.time_us(start_s + s));
        let mut samples = Vec::new();
        if is_summary && is_run {
            let is_valid = run.validity.verdict == Verdict::Valid;
            samples.push(Sample::new(&VALID, f64::from(is_valid)));
        }
        if is_measured {
            let window_s = number("window_s").filter(|_| is_summary);
            samples.extend(window_s.map(|s| Sample::new(&WINDOW, s)));
            samples.extend(figures(cells));
        }
        let of_run = |column| Some(of_facts(column)?.text()?.into_owned());
        rows.push(Row {
            labels,
            time_us: end_us.filter(|_| is_measured).or(started_us),
            samples,
            host: of_run("host").unwrap_or_default(),
            program_version: of_run("program_version").unwrap_or_default(),
        });
        Ok(())
    });
    done.expect("making rows does not fail");
    rows
}

fn find<'a>(cells: &'a [Cell], column: &str) -> Option<&'a Cell> {
    cells.iter().find(|cell| cell.column() == column)
}

/// Samples of the figures of a row. A percentile of too few operations is unknown, unless it is a lower bound.
fn figures(cells: &[Cell]) -> impl Iterator<Item = Sample> {
    let number = |column| find(cells, column).and_then(Cell::number);
    let columns = METRICS
        .into_iter()
        .flat_map(|metric| metric.columns.iter().map(move |column| (metric, column)));
    columns.filter_map(move |(metric, column)| {
        let value = number(column.name).filter(|value| value.is_finite())?;
        let bound = match column.name {
            name if name.starts_with("latency_") => number("lower_bound_ms"),
            name if name.starts_with("service_") => number("service_lower_bound_ms"),
            _ => None,
        };
        let is_bound = bound.is_some_and(|bound| value >= bound);
        let mut labels = Vec::new();
        if let Some(percentile) = column.percentile {
            let is_known = number("ops").is_some_and(|ops| ops >= percentile.needs() as f64);
            if !is_known && !is_bound {
                return None;
            }
            labels.push(("quantile", percentile.share().to_string()));
        }
        labels.extend(is_bound.then(|| ("bound", "lower".to_owned())));
        Some(Sample {
            metric,
            labels,
            value: value / column.per_unit,
        })
    })
}
