//! Report on a profile.

use crate::compare::{
    self, FigureOfRuns, Figures, Metric, ProfileSet, of_profiles, operation_names,
};
use crate::document::{Block, Document, Line, Table};
use crate::format::{latency, mib_per_s, or_dash, rate};
use crate::series::{self, state};
use crate::text::reason_codes;
use plimsoll_measure::compare::Spread;
use plimsoll_plan::{OpKind, counted};
use plimsoll_results::{Percentile, Profile, QualifierKind, Run, SeriesOf, SkippedConfiguration};

/// Default percentiles of the table.
const DEFAULT_PERCENTILES: [Percentile; 1] = [Percentile::P99];

/// The report with state and figures of the profile; several file systems are compared.
#[must_use]
pub fn document(profile: SeriesOf<'_, Profile>, sets: &[ProfileSet]) -> Document {
    let mut document = new(profile);
    let measured = sets
        .iter()
        .any(|s| s.cases.iter().any(|(_, r)| !r.is_empty()));
    let mut figures = Vec::new();
    match sets {
        _ if !measured => {}
        [one] => figures.extend(Block::table(table(one, profile.figures.by_operation))),
        several => {
            let mut runs = several.iter().flat_map(|s| &s.cases).flat_map(|(_, r)| r);
            let requested = runs.find_map(|r| r.percentiles_shown.as_ref());
            figures = compare::blocks(&of_profiles(several, requested));
        }
    }
    // A comparison lists the configurations that were not run itself.
    if !(measured && sets.len() > 1) {
        let not_run = profile.figures.not_run.iter();
        let line =
            |left: &SkippedConfiguration| Line::of(format!("not run: {}", left.name), &left.reason);
        document.head.extend(not_run.map(line));
    }
    figures.extend(reasons(sets));
    document.section("figures", "Configurations", figures);
    document
}

/// Name, state and description of the profile.
fn new(profile: SeriesOf<'_, Profile>) -> Document {
    let (state, tone) = state(&profile);
    let systems = profile.filesystems().len() as u64;
    let state = format!(
        "{state}, {} of {} on {}",
        profile.measured().count(),
        counted(profile.requested_runs(), "run", "runs"),
        counted(systems, "file system", "file systems"),
    );
    let mut document = Document::new(format!("profile {}", profile.name), state, tone);
    let description = &profile.figures.description;
    if !description.is_empty() {
        document.head.push(Block::sentence(description));
    }
    let stopped = profile.stop_reason.as_slice();
    document.head.extend(Block::reasons(stopped));
    document.head.extend(series::qualifiers(&profile));
    document.head.extend(Block::notes(&profile.notes));
    document
}

/// The reasons why runs are not valid.
fn reasons(sets: &[ProfileSet]) -> impl Iterator<Item = Block> {
    let cases = sets
        .iter()
        .flat_map(|set| set.cases.iter().map(move |(name, runs)| (set, name, runs)));
    cases.flat_map(|(set, name, runs)| {
        let reasons = runs.iter().flat_map(|r| &r.validity.reasons);
        reasons.map(move |reason| {
            let label = format!("{}/{name}: {}", set.name, reason.code);
            Line::of(label, &reason.text)
        })
    })
}

/// Maximum number of operations of a configuration for which the table has rows of their own.
const MAX_OPERATION_ROWS: usize = 3;

/// A table with a row per configuration, with the means of repeated runs and the qualifiers. With `by_operation`,
/// configurations of a few different operations have a row per operation.
fn table(set: &ProfileSet, by_operation: bool) -> Table {
    let runs = || set.cases.iter().flat_map(|(_, runs)| runs);
    let paced = runs().any(|r| r.summary.service.is_some());
    let shown = runs().next().map_or(&DEFAULT_PERCENTILES[..], |r| {
        r.shown_percentiles(&DEFAULT_PERCENTILES)
    });
    let mut metrics = compare::metrics(shown, paced);
    metrics.retain(|metric| *metric != Metric::Errors);
    let title = |metric: &Metric| match metric {
        Metric::CpuUsPerOp => "CPU µs/op".to_owned(),
        metric => metric.name(),
    };
    let mut head = vec!["configuration".to_owned()];
    head.extend(metrics.iter().map(title));
    head.push("verdict".into());
    let is_qualified = runs().any(|run| !qualifiers(std::slice::from_ref(run)).is_empty());
    if is_qualified {
        head.push("qualifiers".into());
    }
    let columns = head.len();
    let mut table = Table::new("Configurations", head);
    let mut figures = Vec::new();
    for (name, runs) in &set.cases {
        let ends = |verdict: String| {
            let of_runs = is_qualified.then(|| qualifiers(runs));
            std::iter::once(verdict).chain(of_runs)
        };
        let Some(worst) = runs.iter().map(|r| r.validity.verdict).max() else {
            let mut row = vec![name.clone()];
            row.resize(columns - ends(String::new()).count(), "-".into());
            row.extend(ends("not run".into()));
            table.row(row);
            continue;
        };
        let operations = explicit_operations(runs);
        let is_split = by_operation && (2..=MAX_OPERATION_ROWS).contains(&operations.len());
        let rows: Vec<(String, Vec<Option<Figures<'_>>>)> = if is_split {
            let of = |key: &(String, String)| {
                let of_runs = runs
                    .iter()
                    .filter_map(|run| Figures::of_operation(run, key));
                (format!("{name}: {}", key.0), of_runs.map(Some).collect())
            };
            operations.iter().map(of).collect()
        } else {
            let of_runs = runs.iter().map(|run| Some(Figures::of_all(run)));
            vec![(name.clone(), of_runs.collect())]
        };
        for (name, of_runs) in rows {
            let mut row = vec![name];
            for metric in &metrics {
                let figure = FigureOfRuns::of(*metric, &of_runs);
                row.push(cell(*metric, &figure));
                figures.push(figure);
            }
            row.extend(ends(worst.to_string()));
            table.row(row);
        }
    }
    table.notes = FigureOfRuns::notes(figures.iter());
    table
}

/// Names and kinds of the operations of runs, without implicit opens. An implicit open has the name of the operation
/// that opens the file.
fn explicit_operations(runs: &[Run]) -> Vec<(String, String)> {
    let names = operation_names(runs.iter()).into_iter().map(|(_, key)| key);
    let all: Vec<(String, String)> = names.collect();
    let is_implicit = |(name, kind): &(String, String)| {
        *kind == OpKind::Open.to_string() && all.iter().any(|(n, k)| n == name && k != kind)
    };
    all.iter()
        .filter(|key| !is_implicit(key))
        .cloned()
        .collect()
}

/// Qualifiers of runs in words, without the qualifier of every single run; empty without other qualifiers.
fn qualifiers(runs: &[Run]) -> String {
    let kinds = runs.iter().flat_map(|run| &run.qualifiers).map(|q| q.kind);
    let mut kinds: Vec<QualifierKind> = kinds.filter(|k| *k != QualifierKind::OneRun).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let words: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    words.join(", ")
}

/// Cell of a figure: the mean over the runs; `-` unless every run has the figure.
fn cell(metric: Metric, figure: &FigureOfRuns) -> String {
    let values: Option<Vec<f64>> = figure.values.iter().copied().collect();
    let spread = values.and_then(|values| Spread::of(&values));
    or_dash(spread.map(|s| figure.show(metric, s.mean)))
}

/// One line on a run; `number` is its index in the document, from 0.
#[must_use]
pub fn line(profile: SeriesOf<'_, Profile>, number: usize) -> String {
    let run = &profile.runs[number];
    let mean = run.mean_ms.map(latency);
    let mean = mean.map_or_else(String::new, |mean| format!(", mean {mean}"));
    let label = profile.configuration(run.configuration).label();
    format!(
        "run {} of {}, {}: {} ops/s, {} MiB/s{mean}: {}{}",
        number + 1,
        profile.requested_runs(),
        label.unwrap_or_default(),
        rate(run.achieved_ops_per_s),
        mib_per_s(run.bytes_per_s),
        run.verdict,
        reason_codes(&run.reasons)
    )
}
