//! Report on a series of any kind, and parts that reports on all kinds share.

use crate::compare::ProfileSet;
use crate::document::{Block, Document, Figure, Line, Table, Tone};
use crate::format::{clock_note, duration_text, latency, mib_per_s, or_dash, rate};
use crate::percentiles::{PercentileKind, UNCERTAIN_NOTE, any_doubtful, bounded, shown};
use crate::{ab, client, curve, find, profile, repeats, suite, sweep};
use plimsoll_measure::Stationarity;
use plimsoll_plan::{Count, scaled};
use plimsoll_results::{
    Percentile, Qualifier, QualifierKind, Reason, ResultsError, Series, SeriesDir, SeriesKind,
    SeriesRun, SeriesState, read_runs,
};
use std::collections::BTreeSet;

/// Default percentiles of the tables of runs.
const PERCENTILES: [Percentile; 1] = [Percentile::P99];

/// The report on a series of any kind.
///
/// # Errors
/// An error if a run cannot be read.
pub fn document(series: &Series, dir: &SeriesDir) -> Result<Document, ResultsError> {
    let shown = series.percentiles_shown.as_ref();
    let document = match &series.kind {
        SeriesKind::Repeats(figures) => {
            let runs = read_runs(dir.path(), shown)?;
            repeats::document(series.with(figures), &runs.iter().collect::<Vec<_>>())
        }
        SeriesKind::Curve(figures) => curve::document(series.with(figures)),
        SeriesKind::Search(figures) => find::document(series.with(figures)),
        SeriesKind::Sweep(figures) => sweep::document(series.with(figures)),
        SeriesKind::Suite(figures) => suite::document(series.with(figures)),
        SeriesKind::Profile(figures) => {
            let results = series.with(figures);
            profile::document(results, &ProfileSet::read(results, dir, shown)?)
        }
        SeriesKind::Ab(figures) => {
            let of = series.with(figures);
            ab::document(of, &ab::read_effects(of, dir, shown)?, vec![])
        }
    };
    Ok(document.of_series(series, Some(dir)))
}

/// State of a series in words, such as `unfinished`, with the tone of its colour.
pub(crate) fn state(series: &Series) -> (&'static str, Tone) {
    match series.state {
        SeriesState::Complete => ("complete", Tone::Good),
        SeriesState::Stopped => ("stopped by its rule", Tone::Good),
        SeriesState::Unfinished => ("unfinished", Tone::Doubtful),
        SeriesState::Interrupted => ("interrupted", Tone::Doubtful),
        SeriesState::Failed => ("failed", Tone::Bad),
    }
}

/// Lines on the reason of the end, facts about the series, and notes.
pub(crate) fn head(series: &Series, requested: String) -> Vec<Block> {
    let mut head: Vec<Block> = Block::reasons(series.stop_reason.as_slice()).collect();
    if !series.is_comparable() {
        head.push(Block::warning(scaled(series.scale())));
    }
    let own = [
        Figure::new("seed", series.seed().to_string()),
        Figure::new("target", &series.first_target().url),
    ];
    head.extend(facts(series, requested, "in each", own));
    head
}

/// A line with facts about a series, and the notes on the series. `per` ends the phrase on the times of each run, such as
/// `in each run`; `own` are further facts, which depend on the kind of the series.
pub(crate) fn facts(
    series: &Series,
    requested: String,
    per: &str,
    own: impl IntoIterator<Item = Figure>,
) -> Vec<Block> {
    let (warmup_s, window_s) = series.times_s();
    let measured = format!(
        "{}{} {per}",
        duration_text(window_s),
        clock_note(series.clock)
    );
    let mut facts = vec![
        Figure::new("requested", requested),
        Figure::new("measured", measured),
        Figure::new("warm-up", duration_text(warmup_s)),
    ];
    facts.extend(own);
    if series.ranks > 1 {
        facts.push(Figure::count(series.ranks.into(), "rank", "ranks"));
    }
    facts.push(Figure::time("started", &series.started_at));
    facts.push(Figure::new(&series.program.name, &series.program.version));
    let unremoved = series.unremoved.iter();
    std::iter::once(Block::facts(facts))
        .chain(Block::notes(&series.notes))
        .chain(unremoved.map(|text| Line::of("note", text)))
        .collect()
}

/// Adds details of the runs, the environment and the text of the workload.
pub(crate) fn append(document: &mut Document, series: &Series) {
    let source = &series.first_plan().source;
    let text = (!source.text.is_empty()).then(|| Block::Source(source.clone()));
    let environment = vec![client::environment(&series.environment)];
    let details = Block::table(details(series)).into_iter().collect();
    document
        .append("details", "Runs in detail", details)
        .append("environment", "Environment", environment)
        .append("source", "Workload", text.into_iter().collect());
}

/// A table of the measured runs. `head` names the first columns; `cells` returns their cells from a run and its number,
/// from 1.
pub(crate) fn runs(
    series: &Series,
    caption: &str,
    head: &[&str],
    cells: impl Fn(usize, &SeriesRun) -> Vec<String>,
) -> Table {
    let measured = || series.measured();
    let percentiles = series.shown_percentiles(&PERCENTILES);
    let errors = measured().any(|r| r.errors > 0);
    let mut names: Vec<String> = head.iter().map(|h| (*h).to_owned()).collect();
    names.extend(["offered/s", "ops/s", "mean"].map(str::to_owned));
    names.extend(percentiles.iter().map(Percentile::to_string));
    names.push("max".into());
    let breaks = vec![names.len()];
    names.extend(["read MiB/s", "write MiB/s"].map(str::to_owned));
    names.extend(errors.then(|| "errors".to_owned()));
    let row = |(number, run): (usize, &SeriesRun)| {
        let mut row = cells(number, run);
        row.extend([
            run.offered_ops_per_s.map_or("-".into(), rate),
            rate(run.achieved_ops_per_s),
            time(run.mean_ms),
        ]);
        let percentiles = percentiles.iter();
        row.extend(percentiles.map(|p| shown(run.percentile(*p), PercentileKind::Latency)));
        let max = run.max_ms.map(|ms| bounded(ms, run.max_at_least));
        row.push(max.unwrap_or("-".into()));
        row.push(mib_per_s(run.read_bytes_per_s));
        row.push(mib_per_s(run.write_bytes_per_s));
        row.extend(errors.then(|| Count(run.errors).to_string()));
        row
    };
    let rows = (1..).zip(measured()).map(row);
    let mut table = Table::new(caption, names).with_rows(rows);
    table.breaks = breaks;
    let mut figures = measured().flat_map(|r| percentiles.iter().map(|p| r.percentile(*p)));
    table
        .notes
        .extend(any_doubtful(figures.by_ref()).then(|| UNCERTAIN_NOTE.to_owned()));
    table
}

/// A table of further figures, for which the table of [`runs`] has no room, and of the directory of each run.
fn details(series: &Series) -> Table {
    let head = "run|load|p50|p95|service mean|slowest process|rate over time|results";
    let load = |run: &SeriesRun| match (run.load, run.value) {
        (None, None) => or_dash(series.configuration(run.configuration).label()),
        (None, Some(value)) => series.load_words(value),
        (Some(load), _) => Count(load).to_string(),
    };
    let percentile = |run: &SeriesRun, at| shown(run.percentile(at), PercentileKind::Latency);
    let row = |(number, run): (usize, &SeriesRun)| {
        let process = run.slowest_process_percent;
        vec![
            number.to_string(),
            load(run),
            percentile(run, Percentile::P50),
            percentile(run, Percentile::P95),
            time(run.service_mean_ms),
            process.map_or("-".into(), |s| format!("{s:.1} %")),
            or_dash(run.stationarity.as_ref().map(Stationarity::to_string)),
            run.directory.clone(),
        ]
    };
    let rows = (1..).zip(series.measured()).map(row);
    Table::new("Runs in detail", head.split('|')).with_rows(rows)
}

/// Formats a mean latency; `-` for a run without completed operations.
fn time(ms: Option<f64>) -> String {
    ms.map_or("-".into(), latency)
}

/// Lines on the runs of a series: reasons against single runs, and qualifiers.
pub(crate) fn remarks(series: &Series) -> Vec<Block> {
    let mut remarks = reasons(series);
    remarks.extend(qualifiers(series));
    remarks
}

/// Lines with the reasons of runs that are not valid. Runs of one load or configuration with the same reason share a
/// line.
pub(crate) fn reasons(series: &Series) -> Vec<Block> {
    let has_values = series.as_sweep().is_some() || series.searched().is_some();
    let condition = |run: &SeriesRun| {
        let label = || series.configuration(run.configuration).label();
        match run.load {
            Some(load) => format!(", load {}", Count(load)),
            None => label()
                .filter(|_| has_values)
                .map_or_else(String::new, |label| format!(", {label}")),
        }
    };
    let mut lines: Vec<(Vec<usize>, String, &Reason)> = Vec::new();
    let runs = (1..).zip(series.measured());
    for (number, run) in runs.filter(|(_, run)| !run.is_valid()) {
        let condition = condition(run);
        for reason in &run.reasons {
            let same =
                |(_, of, with): &&mut (_, String, &Reason)| *of == condition && *with == reason;
            match lines.iter_mut().find(same) {
                Some((numbers, ..)) => numbers.push(number),
                None => lines.push((vec![number], condition.clone(), reason)),
            }
        }
    }
    let line = |(numbers, condition, reason): (Vec<usize>, String, &Reason)| {
        let runs = if numbers.len() == 1 { "run" } else { "runs" };
        let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
        let label = format!("{runs} {}{condition}, {}", numbers.join(", "), reason.code);
        Line::of(label, &reason.text)
    };
    lines.into_iter().map(line).collect()
}

/// A line for each kind of qualifier of the runs: the number of runs, and the qualifier with the largest figure.
pub(crate) fn qualifiers(series: &Series) -> Vec<Block> {
    let numbered = || (1..).zip(series.measured());
    let all = || {
        let of_runs =
            numbered().map(|(n, run)| (n, Qualifier::beside(&run.qualifiers, &run.reasons)));
        of_runs.flat_map(|(number, qualifiers): (usize, _)| qualifiers.map(move |q| (number, q)))
    };
    let kinds: BTreeSet<QualifierKind> = all().map(|(_, q)| q.kind).collect();
    let line = |kind: QualifierKind| {
        let of_kind = || all().filter(|(_, q)| q.kind == kind);
        let runs: BTreeSet<usize> = of_kind().map(|(number, _)| number).collect();
        let largest = |a: &(usize, &Qualifier), b: &(usize, &Qualifier)| {
            let share = |q: &Qualifier| q.share.unwrap_or_default();
            share(a.1).total_cmp(&share(b.1))
        };
        let (number, most) = of_kind().max_by(largest)?;
        let (count, measured) = (runs.len(), numbered().count());
        let text = format!("{count} of {measured} runs; run {number}: {}", most.text);
        Some(Line::of(kind.to_string(), text))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// A line for each run before which the machine was not at rest; `label` makes the label of the line from the run's
/// number in the document, from 1, and the run.
pub(crate) fn settled(series: &Series, label: impl Fn(usize, &SeriesRun) -> String) -> Vec<Block> {
    let line = |(number, run): (usize, &SeriesRun)| {
        let settling = run.settling.as_ref()?;
        let restless = !(settling.waited_for.is_empty() && settling.remaining.is_empty());
        let words = settling.words().filter(|_| restless)?;
        Some(Line::of(label(number, run), words))
    };
    (1..).zip(&series.runs).filter_map(line).collect()
}

/// Offered load of a run of a curve or a search, or the value of the searched parameter.
pub(crate) fn load_of(run: &SeriesRun) -> Count {
    Count(run.load_or_value().unwrap_or_default())
}

/// Achieved and offered rate, and mean latency.
pub(crate) fn rate_and_mean(run: &SeriesRun) -> String {
    let offered = run.offered_ops_per_s;
    let offered = offered.map_or_else(String::new, |offered| format!(" of {}", rate(offered)));
    let (achieved, mean) = (rate(run.achieved_ops_per_s), time(run.mean_ms));
    format!("{achieved}{offered} ops/s, mean {mean}")
}
