//! Report on a profile.

use crate::compare::{self, Metric, ProfileSet, of_profiles};
use crate::document::{Block, Document, Line, Table};
use crate::format::{latency, mib_per_s, rate};
use crate::percentiles::{PercentileKind, UNCERTAIN_NOTE, any_doubtful, marked};
use crate::series::{self, state};
use crate::text::reason_codes;
use plimsoll_plan::counted;
use plimsoll_results::{
    Percentile, PercentileFigure, Profile, Run, SeriesOf, SkippedConfiguration, Verdict,
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
        [one] => figures.extend(Block::table(table(one))),
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

/// A table with a row per configuration, with the means of repeated runs.
fn table(set: &ProfileSet) -> Table {
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
    let columns = head.len();
    let mut table = Table::new("Configurations", head);
    for (name, runs) in &set.cases {
        let mut row = vec![name.clone()];
        match runs.is_empty() {
            true => {
                row.resize(columns - 1, "-".into());
                row.push("not run".into());
            }
            false => row.extend(figures(runs, shown, paced)),
        }
        table.row(row);
    }
    let doubtful = |r: &Run| any_doubtful(shown.iter().map(|p| r.summary.percentile(*p)));
    let doubt = runs().any(doubtful).then(|| UNCERTAIN_NOTE.to_owned());
    table.notes.extend(doubt);
    table
}

/// Figures of a configuration: means over its runs.
fn figures(runs: &[Run], shown: &[Percentile], paced: bool) -> Vec<String> {
    let mean = |pick: &dyn Fn(&Run) -> f64| runs.iter().map(pick).sum::<f64>() / runs.len() as f64;
    let completed = runs.iter().all(|r| r.summary.ops > 0);
    let time = |ms: f64| if completed { latency(ms) } else { "-".into() };
    // The mean of a percentile over the runs counts as uncertain if any run had too few operations for the percentile.
    let percentile = |at: Percentile, of: PercentileKind| {
        let figures: Option<Vec<PercentileFigure>> =
            runs.iter().map(|r| r.summary.percentile(at)).collect();
        let Some(figures) = figures else {
            return "-".to_owned();
        };
        let ms = figures.iter().map(|f| of.ms(f)).sum::<f64>() / figures.len() as f64;
        let at_least = figures.iter().any(|f| of.at_least(f));
        let enough_samples = figures.iter().all(|f| f.enough_samples);
        marked(&latency(ms), at_least, enough_samples)
    };
    let cpu: Option<Vec<f64>> = runs.iter().map(|r| r.summary.cpu_us_per_op).collect();
    let cpu = cpu.map(|all| all.iter().sum::<f64>() / all.len() as f64);
    let worst = runs.iter().map(|r| r.validity.verdict);
    let worst: Verdict = worst.max().expect("there is a run");
    let mut cells = vec![
        rate(mean(&|r| r.summary.ops_per_s)),
        mib_per_s(mean(&|r| r.summary.bytes_per_s)),
        time(mean(&|r| r.summary.mean_ms)),
    ];
    cells.extend(
        shown
            .iter()
            .map(|p| percentile(*p, PercentileKind::Latency)),
    );
    if paced {
        cells.push(time(mean(&|r| r.summary.service().mean_ms)));
        cells.extend(
            shown
                .iter()
                .map(|p| percentile(*p, PercentileKind::Service)),
        );
    }
    cells.push(cpu.map_or("-".into(), |c| Metric::CpuUsPerOp.show(c)));
    cells.push(worst.to_string());
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
