//! Report on a profile.

use crate::compare::{self, Metric, ProfileSet, of_profiles, operation_names};
use crate::document::{Block, Document, Line, Table};
use crate::format::{latency, mib_per_s, rate};
use crate::percentiles::{PercentileKind, UNCERTAIN_NOTE, any_doubtful, marked};
use crate::series::{self, state};
use crate::text::reason_codes;
use plimsoll_plan::{OpKind, counted};
use plimsoll_results::{
    OperationFigures, Percentile, PercentileFigure, Profile, QualifierKind, Run, SeriesOf,
    SkippedConfiguration, Summary,
};

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
    let named = |prefix: &str| {
        let percentiles = shown.iter().map(|p| format!("{prefix}{p}"));
        let all = std::iter::once(format!("{prefix}mean")).chain(percentiles);
        all.collect::<Vec<_>>()
    };
    let mut head = ["configuration", "ops/s", "MiB/s"]
        .map(str::to_owned)
        .to_vec();
    head.extend(named(""));
    if paced {
        head.extend(named("service "));
    }
    head.extend(["CPU µs/op", "verdict"].map(str::to_owned));
    let is_qualified = runs().any(|run| !qualifiers(std::slice::from_ref(run)).is_empty());
    if is_qualified {
        head.push("qualifiers".into());
    }
    let columns = head.len();
    let mut table = Table::new("Configurations", head);
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
        let rows: Vec<(String, Vec<RowOfRun<'_>>)> = if is_split {
            let of = |key: &(String, String)| {
                let rows = runs
                    .iter()
                    .filter_map(|run| RowOfRun::of_operation(run, key));
                (format!("{name}: {}", key.0), rows.collect())
            };
            operations.iter().map(of).collect()
        } else {
            vec![(name.clone(), runs.iter().map(RowOfRun::of_all).collect())]
        };
        for (name, of_runs) in rows {
            let mut row = vec![name];
            row.extend(figures(&of_runs, shown, paced));
            row.extend(ends(worst.to_string()));
            table.row(row);
        }
    }
    let doubtful = |r: &Run| any_doubtful(shown.iter().map(|p| r.summary.percentile(*p)));
    let doubt = runs().any(doubtful).then(|| UNCERTAIN_NOTE.to_owned());
    table.notes.extend(doubt);
    table
}

/// Names and kinds of the operations of runs, without the opens that other operations make implicitly, which have the
/// names of the operations.
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

/// Qualifiers of runs in words, without the qualifier that every single run has; empty if the figures of no run are
/// limited.
fn qualifiers(runs: &[Run]) -> String {
    let kinds = runs.iter().flat_map(|run| &run.qualifiers).map(|q| q.kind);
    let mut kinds: Vec<QualifierKind> = kinds.filter(|k| *k != QualifierKind::OneRun).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let words: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    words.join(", ")
}

/// Row of a run: of all operations together, or of one operation.
enum RowOfRun<'a> {
    All(&'a Summary),
    One(&'a OperationFigures),
}

impl<'a> RowOfRun<'a> {
    fn of_all(run: &'a Run) -> Self {
        Self::All(&run.summary)
    }

    /// Row of the operation with a name and kind; `None` if the run has no such operation.
    fn of_operation(run: &'a Run, (name, kind): &(String, String)) -> Option<Self> {
        let mut found = run.operations.iter();
        let found = found.find(|o| o.name == *name && o.kind.to_string() == *kind);
        found.map(Self::One)
    }

    fn ops(&self) -> u64 {
        match self {
            Self::All(s) => s.ops,
            Self::One(o) => o.ops,
        }
    }

    fn ops_per_s(&self) -> f64 {
        match self {
            Self::All(s) => s.ops_per_s,
            Self::One(o) => o.ops_per_s,
        }
    }

    fn bytes_per_s(&self) -> f64 {
        match self {
            Self::All(s) => s.bytes_per_s,
            Self::One(o) => o.bytes_per_s,
        }
    }

    fn mean_ms(&self) -> f64 {
        match self {
            Self::All(s) => s.mean_ms,
            Self::One(o) => o.latency.mean_ms,
        }
    }

    fn service_mean_ms(&self) -> f64 {
        match self {
            Self::All(s) => s.service().mean_ms,
            Self::One(o) => o.service().mean_ms,
        }
    }

    fn percentile(&self, at: Percentile) -> Option<PercentileFigure> {
        match self {
            Self::All(s) => s.percentile(at),
            Self::One(o) => o.percentile(at),
        }
    }

    fn cpu_us_per_op(&self) -> Option<f64> {
        match self {
            Self::All(s) => s.cpu_us_per_op,
            Self::One(o) => o.cpu_us_per_op,
        }
    }
}

/// Figures of a row: means over the runs of a configuration.
fn figures(runs: &[RowOfRun<'_>], shown: &[Percentile], paced: bool) -> Vec<String> {
    let mean = |pick: &dyn Fn(&RowOfRun<'_>) -> f64| {
        runs.iter().map(pick).sum::<f64>() / runs.len() as f64
    };
    let completed = runs.iter().all(|r| r.ops() > 0);
    let time = |ms: f64| if completed { latency(ms) } else { "-".into() };
    // The mean of a percentile over the runs counts as uncertain if any run had too few operations for the percentile.
    let percentile = |at: Percentile, of: PercentileKind| {
        let figures: Option<Vec<PercentileFigure>> =
            runs.iter().map(|r| r.percentile(at)).collect();
        let Some(figures) = figures else {
            return "-".to_owned();
        };
        let ms = figures.iter().map(|f| of.ms(f)).sum::<f64>() / figures.len() as f64;
        let at_least = figures.iter().any(|f| of.at_least(f));
        let enough_samples = figures.iter().all(|f| f.enough_samples);
        marked(&latency(ms), at_least, enough_samples)
    };
    let cpu: Option<Vec<f64>> = runs.iter().map(RowOfRun::cpu_us_per_op).collect();
    let cpu = cpu.map(|all| all.iter().sum::<f64>() / all.len() as f64);
    let mut cells = vec![
        rate(mean(&|r| r.ops_per_s())),
        mib_per_s(mean(&|r| r.bytes_per_s())),
        time(mean(&|r| r.mean_ms())),
    ];
    cells.extend(
        shown
            .iter()
            .map(|p| percentile(*p, PercentileKind::Latency)),
    );
    if paced {
        cells.push(time(mean(&|r| r.service_mean_ms())));
        cells.extend(
            shown
                .iter()
                .map(|p| percentile(*p, PercentileKind::Service)),
        );
    }
    cells.push(cpu.map_or("-".into(), |c| Metric::CpuUsPerOp.show(c)));
    cells
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
