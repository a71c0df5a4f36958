//! Load curves and searches for load lines as comma-separated values and as Markdown.

use crate::csv::{at_least_from, known, line};
use crate::find::{bottleneck, interval, purpose, state};
use crate::format::{inline_latency, mib_per_s, rate};
use crate::markdown::{code, escaped, scaled, table};
use crate::percentiles::{PercentileKind, UNCERTAIN_NOTE, any_doubtful, shown_inline};
use crate::simulation::saturation;
use plimsoll_plan::{Count, counted};
use plimsoll_results::{
    Agreement, LoadCurve, LoadSearch, Percentile, PercentileFigure, Percentiles, Series, SeriesOf,
    SeriesRun,
};

/// Default percentiles of the tables of points.
const POINT_PERCENTILES: [Percentile; 3] = [Percentile::P50, Percentile::P95, Percentile::P99];

/// Default percentiles of the tables of a search's runs.
const RUN_PERCENTILES: [Percentile; 1] = [Percentile::P99];

/// Columns of the CSV files.
const HEAD: [&str; 19] = [
    "results",
    "workload",
    "metric",
    "scale",
    "load",
    "verdict",
    "offered_ops_per_s",
    "achieved_ops_per_s",
    "bytes_per_s",
    "latency_mean_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "latency_max_ms",
    "service_mean_ms",
    "slowest_process_percent",
    "errors",
    "window_s",
    "run",
];

/// Names of the columns, with those of additional percentiles, and of the first percentile that is a
/// lower bound.
fn names(more: &[Percentile]) -> Vec<String> {
    let more = more.iter().map(|p| format!("latency_{p}_ms"));
    let names = HEAD.map(str::to_owned).into_iter().chain(more);
    names.chain(["latency_at_least_from".to_owned()]).collect()
}

/// A line of names, and one per load point of each curve, with the figures of `series.json`; what was
/// not measured is empty, and so are additional percentiles of too few operations, unless they are
/// lower bounds.
#[must_use]
pub fn csv(curves: &[(&str, SeriesOf<'_, LoadCurve>)]) -> String {
    let requested = curves
        .iter()
        .filter_map(|(_, c)| c.percentiles_shown.as_ref());
    let more = Percentiles::extra(requested, &POINT_PERCENTILES);
    let mut out = line(&names(&more));
    for (name, curve) in curves {
        for run in curve.measured() {
            out.push_str(&line(
                &[&facts(name, curve)[..], &values(run, &more)].concat(),
            ));
        }
    }
    out
}

/// A line of names, and one per run of each search: the columns of [`csv`], and purpose, verdict and
/// margin of the run.
#[must_use]
pub fn search_csv(searches: &[(&str, SeriesOf<'_, LoadSearch>)]) -> String {
    let own = ["number", "purpose", "passed", "margin"];
    let requested = searches
        .iter()
        .filter_map(|(_, s)| s.percentiles_shown.as_ref());
    let more = Percentiles::extra(requested, &POINT_PERCENTILES);
    let mut head = names(&more);
    head.extend(own.map(str::to_owned));
    let mut out = line(&head);
    for (name, search) in searches {
        for (number, run) in (1u64..).zip(search.measured()) {
            let of = facts(name, search);
            let own = [
                number.to_string(),
                purpose(run),
                run.is_valid().to_string(),
                run.margin.map_or_else(String::new, |m| m.to_string()),
            ];
            out.push_str(&line(&[&of[..], &values(run, &more), &own].concat()));
        }
    }
    out
}

/// The first cells of each line of a series.
fn facts(name: &str, series: &Series) -> [String; 4] {
    [
        name.to_owned(),
        series.name.clone(),
        series.metric_name().to_owned(),
        series.scale().to_string(),
    ]
}

/// The load of a run of a curve or a search.
fn load_of(run: &SeriesRun) -> u64 {
    run.load.unwrap_or_default()
}

fn values(p: &SeriesRun, more: &[Percentile]) -> Vec<String> {
    let number = |n: Option<f64>| n.map_or_else(String::new, |n| n.to_string());
    let figures = Percentiles::new(more.iter().copied().chain(POINT_PERCENTILES));
    let figures = figures.as_slice().iter().map(|at| p.percentile(*at));
    let figures: Vec<PercentileFigure> = figures.flatten().collect();
    let known =
        |at: &Percentile| known(p.percentile(*at), PercentileKind::Latency).unwrap_or_default();
    let mut values = vec![
        load_of(p).to_string(),
        p.verdict.to_string(),
        number(p.offered_ops_per_s),
        p.achieved_ops_per_s.to_string(),
        p.bytes_per_s.to_string(),
        number(p.mean_ms),
        number(p.p50_ms),
        number(p.p95_ms),
        number(p.p99_ms),
        number(p.max_ms),
        number(p.service_mean_ms),
        number(p.slowest_process_percent),
        p.errors.to_string(),
        p.window_s.to_string(),
        p.directory.clone(),
    ];
    values.extend(more.iter().map(known));
    values.push(at_least_from(
        &figures,
        PercentileKind::Latency,
        p.max_at_least,
    ));
    values
}

/// Heading, figures of the curve and the table of its points. `name` is that of the results
/// directory.
#[must_use]
pub fn markdown(name: &str, curve: SeriesOf<'_, LoadCurve>) -> String {
    let known = |text: Option<String>| text.unwrap_or_else(|| "none".into());
    let mut out = format!("## {}, load curve\n\n", escaped(&curve.name));
    if !curve.is_comparable() {
        out.push_str(&format!("**{}**\n\n", scaled(curve.scale())));
    }
    out.push_str(&format!(
        "Load line {} {}, overall response time {}; seed {}, target {}; results {}, started {}.\n\n",
        known(curve.figures.load_line.map(|l| Count(l).to_string())),
        escaped(curve.metric_name()),
        known(curve.figures.ort_ms.map(inline_latency)),
        curve.seed(),
        escaped(&curve.first_target().url),
        code(name),
        curve.started_at,
    ));
    if let Some(text) = saturation(&curve) {
        out.push_str(&format!("Bottleneck: {}.\n\n", escaped(&text)));
    }
    let mut head = point_head(&curve);
    head.push("errors".into());
    let row = |p: &SeriesRun| {
        let mut cells = point_cells(&curve, p);
        cells.push(Count(p.errors).to_string());
        cells
    };
    let rows: Vec<Vec<String>> = curve.measured().map(row).collect();
    let shown = curve.shown_percentiles(&POINT_PERCENTILES);
    out + &table(&head, &rows) + &doubt(curve.measured(), shown)
}

/// The note below a table in which percentiles have too few operations.
fn doubt<'a>(mut points: impl Iterator<Item = &'a SeriesRun>, shown: &[Percentile]) -> String {
    let doubtful = |p: &SeriesRun| any_doubtful(shown.iter().map(|at| p.percentile(*at)));
    match points.any(doubtful) {
        true => format!("\n{UNCERTAIN_NOTE}\n"),
        false => String::new(),
    }
}

/// A load, and the runs that passed or failed at it.
#[must_use]
pub fn agreement_text(agreement: Option<Agreement>, metric: &str) -> String {
    agreement.map_or("none".into(), |a| {
        let runs = counted(u64::from(a.runs), "run", "runs");
        format!("{} {metric} (passed {} of {runs})", Count(a.load), a.passed)
    })
}

/// Heading, the load line with the runs that support it, and the table of the runs. `name` is that of
/// the results directory.
#[must_use]
pub fn search_markdown(name: &str, search: SeriesOf<'_, LoadSearch>) -> String {
    let mut out = format!(
        "## {}, search for the load line: {}\n\n",
        escaped(&search.name),
        state(search)
    );
    if let Some(why) = &search.stop_reason {
        let (code, text) = (escaped(&why.code), escaped(&why.text));
        out.push_str(&format!("- **{code}**: {text}\n\n"));
    }
    if !search.is_comparable() {
        out.push_str(&format!("**{}**\n\n", scaled(search.scale())));
    }
    let load = |s| agreement_text(s, &escaped(search.metric_name()));
    out.push_str(&format!(
        "Sustained: {}; not sustained: {}; seed {}, target {}; results {}, started {}.\n\n",
        load(search.figures.load_line.sustained),
        load(search.figures.load_line.not_sustained),
        search.seed(),
        escaped(&search.first_target().url),
        code(name),
        search.started_at,
    ));
    if let Some(text) = interval(search) {
        out.push_str(&format!("Not found: {}.\n\n", escaped(&text)));
    }
    if let Some(text) = bottleneck(search) {
        out.push_str(&format!(
            "Bottleneck where it is not sustained: {}.\n\n",
            escaped(&text)
        ));
    }
    let rows = (1..).zip(search.measured());
    let rows: Vec<_> = rows.map(|(n, run)| run_cells(&search, n, run)).collect();
    let head = run_head(&search);
    out + &table(&head, &rows)
        + &doubt(
            search.measured(),
            search.shown_percentiles(&RUN_PERCENTILES),
        )
}

/// Names of the columns of [`point_cells`].
#[must_use]
pub fn point_head(curve: &Series) -> Vec<String> {
    let head = ["load", "verdict", "offered ops/s", "ops/s", "MiB/s", "mean"];
    let shown = curve
        .shown_percentiles(&POINT_PERCENTILES)
        .iter()
        .map(Percentile::to_string);
    head.map(str::to_owned).into_iter().chain(shown).collect()
}

/// A load point in a table: offered and achieved rate, and latencies.
#[must_use]
pub fn point_cells(curve: &Series, p: &SeriesRun) -> Vec<String> {
    let mut cells = vec![
        Count(load_of(p)).to_string(),
        p.verdict.to_string(),
        p.offered_ops_per_s.map_or("–".into(), rate),
        rate(p.achieved_ops_per_s),
        mib_per_s(p.bytes_per_s),
        time_cell(p.mean_ms),
    ];
    let shown = curve.shown_percentiles(&POINT_PERCENTILES).iter();
    cells.extend(shown.map(|at| shown_inline(p.percentile(*at), PercentileKind::Latency, "–")));
    cells
}

/// A time in milliseconds in a cell of a table.
#[must_use]
pub fn time_cell(ms: Option<f64>) -> String {
    ms.map_or("–".into(), inline_latency)
}

/// Names of the columns of [`run_cells`].
#[must_use]
pub fn run_head(search: &Series) -> Vec<String> {
    let head = "run|load|purpose|verdict|margin|offered ops/s|ops/s|MiB/s|mean";
    let mut head: Vec<String> = head.split('|').map(str::to_owned).collect();
    head.extend(
        search
            .shown_percentiles(&RUN_PERCENTILES)
            .iter()
            .map(Percentile::to_string),
    );
    head.push("errors".into());
    head
}

/// A run of a search in a table; `number` counts from 1.
#[must_use]
pub fn run_cells(search: &Series, number: usize, run: &SeriesRun) -> Vec<String> {
    let p = run;
    let mut cells = vec![
        number.to_string(),
        Count(load_of(p)).to_string(),
        purpose(run),
        if run.is_valid() { "pass" } else { "fail" }.into(),
        run.margin
            .map_or("–".into(), |m| format!("{:+.1} %", 100.0 * m)),
        p.offered_ops_per_s.map_or("–".into(), rate),
        rate(p.achieved_ops_per_s),
        mib_per_s(p.bytes_per_s),
        time_cell(p.mean_ms),
    ];
    let shown = search.shown_percentiles(&RUN_PERCENTILES).iter();
    cells.extend(shown.map(|at| shown_inline(p.percentile(*at), PercentileKind::Latency, "–")));
    cells.push(Count(p.errors).to_string());
    cells
}
