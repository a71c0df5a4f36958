//! Loading of a run's figures, timeline and latency distributions for HTML pages, from the run's results directory.

use crate::html::latency_distribution::{
    LatencyDistribution, LatencyDistributions, MAX_HEAT_COLUMNS,
};
use crate::html::op_name::{OpName, RowName, label};
use crate::html::timeline::{Timeline, WindowSpan};
use crate::run::grouped;
use plimsoll_results::{
    Annotations, Distribution, OperationFigures, Percentiles, ResultsError, Run, RunDir,
};
use std::path::Path;

/// A run with its time series and distributions, for pages.
#[derive(Debug, Clone)]
pub struct LoadedResult {
    /// Content of `run.json`.
    pub run: Run,
    /// Name of the results directory.
    pub name: String,
    /// The user's tags and note.
    pub annotations: Annotations,
    /// Operations that count in the summary and that occurred, the most frequent first; similar rows are one operation.
    pub operations: Vec<OpName>,
    /// Throughput and latency over time for [`LoadedResult::operations`].
    pub timeline: Timeline,
    /// Latency distributions of [`LoadedResult::operations`].
    pub distributions: Vec<LatencyDistribution>,
}

impl LoadedResult {
    /// Reads a results directory, with the requested percentiles.
    ///
    /// # Errors
    /// An error if a file cannot be read or is damaged.
    pub fn read(dir: &RunDir, percentiles: Option<&Percentiles>) -> Result<Self, ResultsError> {
        let run = dir.read_with(percentiles)?;
        let rows = dir.read_intervals()?;
        let (spans, origin_s) = spans(&run);
        let operations = operations(&run);
        let timeline = Timeline::of(&rows, &spans, &operations);
        let columns = columns(&timeline);
        let mut distributions = LatencyDistributions::new(&spans, origin_s, &operations, &columns);
        dir.each_histogram(&mut |line| distributions.add(&line))?;
        let name = name_of(dir.path());
        Ok(Self {
            run,
            name,
            annotations: Annotations::read(dir.path())?,
            operations,
            timeline,
            distributions: distributions.finish(),
        })
    }

    /// Latencies of all operations together.
    #[must_use]
    pub fn latencies(&self) -> Distribution {
        let mut all = Distribution::default();
        for operation in &self.distributions {
            all.merge(&operation.latency);
        }
        all
    }
}

/// Windows of the run's figures, and the time at which the first window opened, in seconds of the run's clock.
pub(crate) fn spans(run: &Run) -> (Vec<WindowSpan>, f64) {
    let windows: Vec<(u32, f64, f64)> = if run.stages.is_empty() {
        match run.window_number {
            0 => vec![],
            n => vec![(n, run.window_start_s, run.window_s)],
        }
    } else {
        let windows = run.stages.iter().map(|s| &s.window);
        windows.map(|w| (w.number, w.start_s, w.window_s)).collect()
    };
    let origin = windows.first().map_or(0.0, |w| w.1);
    let spans = windows
        .into_iter()
        .map(|(number, start, length_s)| WindowSpan {
            number,
            start_s: start - origin,
            length_s,
        });
    (spans.collect(), origin)
}

fn operations(run: &Run) -> Vec<OpName> {
    let mut found = grouped(run);
    let names: Vec<String> = found.iter().map(|(o, _)| o.name.clone()).collect();
    found.retain(|(o, _)| o.kind.counts() && o.ops + o.errors > 0);
    found.sort_by_key(|(o, _)| std::cmp::Reverse(o.ops));
    let name = |row: &OperationFigures| RowName {
        name: row.name.clone(),
        latency: row.latency_kind(),
    };
    let operation = |(o, rows): &(OperationFigures, Vec<&OperationFigures>)| OpName {
        rows: match &rows[..] {
            [] => vec![name(o)],
            rows => rows.iter().map(|row| name(row)).collect(),
        },
        kind: o.kind.to_string(),
        label: {
            let is_shared = names.iter().filter(|name| **name == o.name).count() > 1;
            label(&o.name, &o.kind.to_string(), is_shared)
        },
        latency: o.latency_kind(),
    };
    found.iter().map(operation).collect()
}

/// Columns of heat maps: the points of the timeline, merged if there are many.
fn columns(timeline: &Timeline) -> Vec<(f64, f64)> {
    let points: Vec<(f64, f64)> = timeline
        .start_s
        .iter()
        .zip(&timeline.length_s)
        .map(|(start, length)| (*start, start + length))
        .collect();
    let per_column = points.len().div_ceil(MAX_HEAT_COLUMNS).max(1);
    let whole = |c: &[(f64, f64)]| Some((c.first()?.0, c.last()?.1));
    points.chunks(per_column).filter_map(whole).collect()
}

/// Last component of a path, as text.
pub(crate) fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_name().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    )
}
