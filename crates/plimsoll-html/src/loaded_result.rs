//! A results directory, read for looking at it.

use crate::latency_distribution::{LatencyDistribution, LatencyDistributions, MAX_HEAT_COLUMNS};
use crate::timeline::{Timeline, WindowSpan};
use plimsoll_results::{
    Annotations, IntervalRow, LatencyKind, OperationFigures, Percentiles, ResultsError, Run, RunDir,
};

/// A row of the results by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpName {
    /// Name the workload gave it.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How it is called on a page: the name, and the kind if another row has that name.
    pub label: String,
    /// What its latency is.
    pub latency: LatencyKind,
}

impl OpName {
    /// Whether a line of `intervals.csv` is of this operation.
    #[must_use]
    pub fn matches(&self, row: &IntervalRow) -> bool {
        row.operation == self.name && row.kind == self.kind
    }
}

/// A run, and its series as they are shown.
#[derive(Debug, Clone)]
pub struct LoadedResult {
    /// What `run.json` holds.
    pub run: Run,
    /// Name of the results directory.
    pub name: String,
    /// What a person says of it.
    pub annotations: Annotations,
    /// Operations that the summary counts and that happened, the most frequent first.
    pub operations: Vec<OpName>,
    /// Throughput and latency over time, of [`LoadedResult::operations`].
    pub timeline: Timeline,
    /// How latencies are spread, of [`LoadedResult::operations`].
    pub spreads: Vec<LatencyDistribution>,
}

impl LoadedResult {
    /// Reads a results directory, with the requested percentiles.
    ///
    /// # Errors
    /// [`ResultsError`] if a file of it cannot be read or is damaged.
    pub fn read(dir: &RunDir, percentiles: Option<&Percentiles>) -> Result<Self, ResultsError> {
        let run = dir.read_with(percentiles)?;
        let rows = dir.read_intervals()?;
        let (spans, origin_s) = spans(&run);
        let operations = operations(&run);
        let timeline = Timeline::of(&rows, &spans, &operations);
        let columns = columns(&timeline);
        let mut spreads = LatencyDistributions::new(&spans, origin_s, &operations, &columns);
        dir.each_histogram(&mut |line| spreads.add(&line))?;
        let name = crate::run_data::name_of(dir.path());
        Ok(Self {
            run,
            name,
            annotations: Annotations::read(dir.path())?,
            operations,
            timeline,
            spreads: spreads.finish(),
        })
    }
}

/// Windows whose figures are those of the run, and when the first of them opened.
fn spans(run: &Run) -> (Vec<WindowSpan>, f64) {
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
    let counts = |o: &&OperationFigures| o.kind.counts() && o.ops + o.errors > 0;
    let mut found: Vec<&OperationFigures> = run.operations.iter().filter(counts).collect();
    found.sort_by_key(|o| std::cmp::Reverse(o.ops));
    found
        .iter()
        .map(|o| OpName {
            name: o.name.clone(),
            kind: o.kind.to_string(),
            label: label(run, o),
            latency: o.latency_kind(),
        })
        .collect()
}

/// How a row is called on a page.
#[must_use]
pub fn label(run: &Run, operation: &OperationFigures) -> String {
    let same = |o: &&OperationFigures| o.name == operation.name;
    match run.operations.iter().filter(same).count() {
        0 | 1 => operation.name.clone(),
        _ => format!("{} ({})", operation.name, operation.kind),
    }
}

/// Columns of heat maps: points of the timeline, several together if there are many.
fn columns(timeline: &Timeline) -> Vec<(f64, f64)> {
    let points: Vec<(f64, f64)> = timeline
        .start_s
        .iter()
        .zip(&timeline.length_s)
        .map(|(start, length)| (*start, start + length))
        .collect();
    let together = points.len().div_ceil(MAX_HEAT_COLUMNS).max(1);
    let whole = |c: &[(f64, f64)]| Some((c.first()?.0, c.last()?.1));
    points.chunks(together).filter_map(whole).collect()
}
