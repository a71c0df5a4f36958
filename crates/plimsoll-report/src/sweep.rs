//! Report on a sweep.

use crate::document::{Block, Document, Line, Table};
use crate::format::rate;
use crate::html::charts;
use crate::percentiles::{PercentileKind, shown};
use crate::series::{append, head, rate_and_mean, remarks, runs, state};
use crate::text::reason_codes;
use plimsoll_plan::counted;
use plimsoll_results::{Percentile, SeriesOf, SeriesRun, Sweep, VariedParameter};

/// Explanation below the heading of the figures of a sweep.
const ABOUT: &str = "Each combination of values has one run, which shows no spread between runs. Only valid runs count: \
                     runs that kept every promise and met every criterion.";

/// The report on a sweep.
#[must_use]
pub fn document(sweep: SeriesOf<'_, Sweep>) -> Document {
    let (state, tone) = state(&sweep);
    let (measured, all) = (sweep.measured().count(), sweep.configurations.len() as u64);
    let state = format!("{state}, {measured} of {}", counted(all, "run", "runs"));
    let names: Vec<&str> = parameters(sweep).map(|p| p.name.as_str()).collect();
    let title = format!("{}, sweep over {}", sweep.name, names.join(" and "));
    let mut document = Document::new(title, state, tone);
    let requested: Vec<String> = parameters(sweep)
        .map(|p| format!("{} = {}", p.name, p.values.join(", ")))
        .collect();
    document.head = head(&sweep, requested.join("; "));
    if measured > 0 {
        document.explained_section("achieved", "Achieved", ABOUT, achieved(sweep));
    }
    let charts = Block::charts(charts::of_series(&sweep));
    let mut columns = names;
    columns.push("verdict");
    let combinations = Sweep::cells(&sweep.figures.parameters);
    let table = runs(&sweep, "Runs", &columns, |_, run| {
        let combination = combinations[run.configuration as usize].iter();
        let values = combination.map(|(_, value)| value.clone());
        values.chain([run.verdict.to_string()]).collect()
    });
    let table = Block::table(table).into_iter();
    let runs = table.chain(remarks(&sweep)).collect();
    document
        .section("matrix", "Matrix", matrices(sweep))
        .section("charts", "Over the parameter", charts)
        .section("runs", "Runs", runs);
    append(&mut document, &sweep);
    document
}

fn parameters(sweep: SeriesOf<'_, Sweep>) -> impl Iterator<Item = &VariedParameter> {
    sweep.figures.parameters.iter()
}

/// The valid run with the highest throughput, the valid run with the lowest mean latency, and the number of runs that
/// kept each promise.
fn achieved(sweep: SeriesOf<'_, Sweep>) -> Vec<Block> {
    let valid = || sweep.series.measured().filter(|run| run.is_valid());
    let name = |run: &SeriesRun| sweep.configuration(run.configuration).name.clone();
    let fastest = valid().max_by(|a, b| a.achieved_ops_per_s.total_cmp(&b.achieved_ops_per_s));
    let Some(fastest) = fastest else {
        return vec![Line::result("highest throughput", "none: no run is valid")];
    };
    let text = format!("{} at {}", rate_and_mean(fastest), name(fastest));
    let mut blocks = vec![Line::result("highest throughput", text)];
    let with_mean = valid().filter_map(|run| Some((run.mean_ms?, run)));
    let quickest = with_mean.min_by(|a, b| a.0.total_cmp(&b.0));
    blocks.extend(quickest.map(|(_, run)| {
        let text = format!("{} at {}", rate_and_mean(run), name(run));
        Line::result("lowest mean latency", text)
    }));
    let promises = &sweep.first_plan().promises;
    blocks.extend((0..).zip(promises).map(|(number, promise): (usize, _)| {
        let judged = || sweep.measured().filter_map(|run| run.promises.get(number));
        let kept = judged().filter(|result| result.kept).count();
        let all = counted(judged().count() as u64, "run", "runs");
        Line::of(promise.to_string(), format!("kept in {kept} of {all}"))
    }));
    blocks
}

/// Tables of throughput and 99th percentile, with a row for each value of the first parameter and a column for each value
/// of the second; empty unless the sweep has two parameters.
fn matrices(sweep: SeriesOf<'_, Sweep>) -> Vec<Block> {
    let [rows, columns] = &sweep.figures.parameters[..] else {
        return vec![];
    };
    let run_of = |row: usize, column: usize| {
        let number = sweep.figures.configuration(&[row, column]);
        sweep.series.runs_of(number).find(|run| run.is_measured())
    };
    let table = |figure: &str, cell: &dyn Fn(&SeriesRun) -> String| {
        let caption = format!("{figure}; ! marks a run that is not valid");
        let corner = format!("{}, {}", rows.name, columns.name);
        let names = columns.values.iter().cloned();
        let mut table = Table::new(&caption, std::iter::once(corner).chain(names));
        for (row, value) in rows.values.iter().enumerate() {
            let cells = (0..columns.values.len()).map(|column| match run_of(row, column) {
                None => "-".into(),
                Some(run) if run.is_valid() => cell(run),
                Some(run) => format!("{} !", cell(run)),
            });
            table.row(std::iter::once(value.clone()).chain(cells).collect());
        }
        table
    };
    let p99 = |run: &SeriesRun| shown(run.percentile(Percentile::P99), PercentileKind::Latency);
    let tables = [
        table("Operations per second", &|run| rate(run.achieved_ops_per_s)),
        table("99th percentile of the latency", &p99),
    ];
    tables.into_iter().filter_map(Block::table).collect()
}

/// One line on the completed run with the number `number`, from 0.
#[must_use]
pub fn line(sweep: SeriesOf<'_, Sweep>, number: usize) -> String {
    let run = &sweep.runs[number];
    let p99 = run.percentile(Percentile::P99);
    format!(
        "{}: {}, p99 {}: {}{}",
        sweep.configuration(run.configuration).name,
        rate_and_mean(run),
        shown(p99, PercentileKind::Latency),
        run.verdict,
        reason_codes(&run.reasons)
    )
}
