//! Report on a load curve.

use crate::document::{Block, Document, Line, Tone};
use crate::format::{latency, rate};
use crate::html::charts;
use crate::html::page::UNDISCLOSED;
use crate::percentiles::{PercentileKind, shown};
use crate::series::{append, head, load_of, rate_and_mean, remarks, runs, state};
use crate::simulation::saturation;
use crate::suite_rules::{self, RuleCheck};
use crate::text::reason_codes;
use plimsoll_measure::curve::Curve;
use plimsoll_plan::{Count, counted};
use plimsoll_results::{LoadCurve, Percentile, SeriesOf, SeriesRun};

/// Explanation below the heading of the figures of a curve.
const ABOUT: &str = "The load line is the highest load that was valid with all measured loads below it. The \
                     overall response time is the area under mean response time over load, divided by the \
                     range of loads (2008 rule: over throughput, from the origin); only valid points count.";

/// Sentence above the rules of the published suite in a report.
const ABOUT_RULES: &str = "Rules of the published suite, for the points up to the highest valid load (the workload is an \
                           open equivalent, and the curve is never a SPEC result):";

/// The report on a curve.
#[must_use]
pub fn document(curve: SeriesOf<'_, LoadCurve>) -> Document {
    let (words, tone) = state(&curve);
    let (measured, all) = (curve.measured().count(), curve.figures.loads.len());
    let valid = curve.measured().filter(|p| p.is_valid()).count();
    let points = counted(all as u64, "load point", "load points");
    let state = match valid == measured {
        true => format!("{words}, {measured} of {points}"),
        false if measured == all => format!("{words}, {valid} of {points} valid"),
        false => format!("{words}, {measured} of {points}, {valid} valid"),
    };
    let tone = match tone {
        Tone::Good if valid < measured && valid > 0 => Tone::Doubtful,
        Tone::Good if valid < measured => Tone::Bad,
        tone => tone,
    };
    let mut document = Document::new(format!("{}, load curve", curve.name), state, tone);
    document.head = head(&curve, requested(curve));
    if measured > 0 {
        document.explained_section("achieved", "Achieved", ABOUT, achieved(curve));
    }
    let charts = Block::charts(charts::of_series(&curve));
    let table = runs(&curve, "Load points", &["load", "verdict"], |_, p| {
        vec![load_of(p).to_string(), p.verdict.to_string()]
    });
    let table = Block::table(table).into_iter();
    let points = table.chain(remarks(&curve)).collect();
    document
        .section("points", "Load points", points)
        .section("charts", "Load curve", charts);
    let rules = suite_rules::check(curve);
    if !rules.is_empty() {
        let about = Block::sentence(ABOUT_RULES);
        let rules = std::iter::once(about).chain(rules.iter().map(RuleCheck::line));
        document.section("rules", "Rules of the published suite", rules.collect());
    }
    append(&mut document, &curve);
    let commands = [
        (
            "to start a description of the system under test",
            "plimsoll results sut init",
        ),
        (
            "to add the disclosure to this page",
            "plimsoll report … --format html --sut sut.toml",
        ),
    ];
    let commands = commands.map(|(label, command)| Line::code(label, command));
    document.append(UNDISCLOSED, "Full disclosure", commands.into());
    document
}

/// Phrase on the requested loads.
fn requested(curve: SeriesOf<'_, LoadCurve>) -> String {
    let (loads, metric) = (&curve.figures.loads, curve.metric_name());
    match loads[..] {
        [first, .., last] => format!(
            "{} load points from {} to {} {metric}",
            loads.len(),
            Count(first),
            Count(last)
        ),
        [one] => format!("{} {metric}", Count(one)),
        [] => format!("no load in {metric}"),
    }
}

/// One line on a completed load point.
#[must_use]
pub fn line(point: &SeriesRun) -> String {
    let p99 = point.percentile(Percentile::P99);
    format!(
        "load {}: {}, p99 {}: {}{}",
        load_of(point),
        rate_and_mean(point),
        shown(p99, PercentileKind::Latency),
        point.verdict,
        reason_codes(&point.reasons)
    )
}

/// Operations scheduled in the measured window of a point; infinite without a requested rate.
fn scheduled(curve: SeriesOf<'_, LoadCurve>, point: &SeriesRun) -> f64 {
    let rate = point.offered_ops_per_s.unwrap_or(f64::INFINITY);
    rate * curve.times_s().1
}

/// Figures of the whole curve, such as load line and overall response time.
fn achieved(curve: SeriesOf<'_, LoadCurve>) -> Vec<Block> {
    let metric = curve.metric_name();
    let line = match curve.figures.load_line {
        Some(load) => format!("{} {metric}", Count(load)),
        None if curve
            .measured()
            .next()
            .is_some_and(|p| scheduled(curve, p) < 1.0) =>
        {
            "none: fewer than one operation is scheduled at the first load".into()
        }
        None => "none: the first load was not sustained".into(),
    };
    let mut blocks = vec![Line::result("load line", line)];
    if let Some(peak) = curve
        .figures
        .highest_valid_load
        .filter(|p| Some(*p) != curve.figures.load_line)
    {
        let text = format!(
            "{} {metric}, although a lower load was not sustained",
            Count(peak)
        );
        blocks.push(Line::result("highest valid load", text));
    }
    let ort_2008 = |ms| format!("{} (2008 rule)", latency(ms));
    let ort = [
        curve.figures.ort_ms.map(latency),
        curve.figures.ort_2008_ms.map(ort_2008),
    ];
    let ort: Vec<String> = ort.into_iter().flatten().collect();
    if !ort.is_empty() {
        blocks.push(Line::result("overall response time", ort.join(", ")));
    }
    let points = curve.points();
    blocks.extend(points.iter().map(|points| knee(points, metric)));
    if let Some(text) = saturation(&curve) {
        blocks.push(Line::of("bottleneck", text));
    }
    blocks.extend(points.iter().map(|points| scalability_law(points, metric)));
    blocks
}

/// Line on the knee of the load points, or on the reason why they have none.
fn knee(points: &Curve, metric: &str) -> Block {
    let text = match points.knee() {
        Ok(knee) => format!(
            "{} {metric}, where the response time turns up",
            rate(knee.load)
        ),
        Err(reason) => return Line::of("knee", format!("not determined: {reason}")),
    };
    Line::result("knee", text)
}

/// Line on the Universal Scalability Law of the load points, or on the reason why they have none.
fn scalability_law(points: &Curve, metric: &str) -> Block {
    let text = match points.fit_usl() {
        Ok(usl) => {
            let peak = usl.peak_load();
            let peak = peak.map_or("no peak".into(), |p| {
                format!("a peak at {} {metric}", rate(p))
            });
            format!(
                "contention {:.4}, coherency {:.6}, {peak}; within {:.1} % of every load point",
                usl.sigma,
                usl.kappa,
                100.0 * usl.max_deviation(points)
            )
        }
        Err(reason) => format!("not determined: {reason}"),
    };
    Line::of("scalability law", text)
}
