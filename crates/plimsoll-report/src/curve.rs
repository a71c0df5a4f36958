//! A load curve in a terminal or a text file.

use crate::format::{clock_note, duration_text, inline, inline_latency, latency, mib_per_s, rate};
use crate::percentiles::{
    self, PercentileKind, UNCERTAIN_NOTE, align_marked, any_doubtful, shown_inline,
};
use crate::simulation::saturation;
use crate::table::Table;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph, reason_codes, series_location};
use plimsoll_plan::{Count, counted, scaled};
use plimsoll_results::{
    LoadCurve, Percentile, SeriesDir, SeriesOf, SeriesRun, SeriesState, Verdict,
};

/// The whole report on a curve; `dir` is its directory.
#[must_use]
pub fn render(curve: SeriesOf<'_, LoadCurve>, dir: Option<&SeriesDir>, layout: Layout) -> String {
    let mut out = String::new();
    let paint = Paint(layout.color);
    headline(&mut out, curve, layout);
    if curve.measured().next().is_some() {
        out.push('\n');
        table(curve).render(&mut out, layout.columns(), paint);
        let shown = curve.shown_percentiles(&[Percentile::P99]);
        doubt(&mut out, curve.measured(), shown, layout);
        reasons(&mut out, curve, layout);
        out.push('\n');
        figures(&mut out, curve, layout);
    }
    series_location(&mut out, &curve, dir, paint);
    out
}

/// A point that has just been measured, in one line.
#[must_use]
pub fn line(point: &SeriesRun) -> String {
    let p99 = point.percentile(Percentile::P99);
    format!(
        "load {}: {}, p99 {}: {}{}",
        Count(point.load.unwrap_or_default()),
        rate_and_mean(point),
        shown_inline(p99, PercentileKind::Latency, "-"),
        point.verdict,
        reason_codes(&point.reasons)
    )
}

/// Achieved and offered rate, and mean latency.
pub(crate) fn rate_and_mean(point: &SeriesRun) -> String {
    let offered = point.offered_ops_per_s;
    let offered = offered.map_or_else(String::new, |offered| format!(" of {}", rate(offered)));
    let mean = inline(&latency_of(point.mean_ms));
    format!(
        "{}{offered} ops/s, mean {mean}",
        rate(point.achieved_ops_per_s)
    )
}

/// A latency of a point; a point at which no operation completed has none.
fn latency_of(ms: Option<f64>) -> String {
    ms.map_or("-".into(), latency)
}

fn headline(out: &mut String, curve: SeriesOf<'_, LoadCurve>, layout: Layout) {
    let paint = Paint(layout.color);
    let (measured, all) = (curve.measured().count(), curve.figures.loads.len());
    let state = match curve.state {
        SeriesState::Complete => paint.good("complete"),
        SeriesState::Stopped => paint.good("stopped by its rule"),
        SeriesState::Unfinished => paint.doubtful("unfinished"),
        SeriesState::Interrupted => paint.doubtful("interrupted"),
        SeriesState::Failed => paint.bad("failed"),
    };
    out.push_str(&format!(
        "{}: {state}, {measured} of {}\n",
        paint.bold(&curve.name),
        counted(all as u64, "load point", "load points")
    ));
    if let Some(why) = &curve.stop_reason {
        let label = format!("  {}: ", why.code);
        paragraph(out, &label, &why.text, layout.columns());
    }
    if !curve.is_comparable() {
        paragraph(out, "  ", &scaled(curve.scale()), layout.columns());
    }
    let (warmup_s, window_s) = curve.times_s();
    let mut facts = format!(
        "load in {}, {} measured after {} of warm-up{} at each, seed {}, target {}",
        curve.metric_name(),
        duration_text(window_s),
        duration_text(warmup_s),
        clock_note(curve.clock),
        curve.seed(),
        curve.first_target().url
    );
    if curve.ranks > 1 {
        facts.push_str(&format!(", {} ranks", curve.ranks));
    }
    paragraph(out, "  ", &facts, layout.columns());
    for note in &curve.notes {
        paragraph(out, "  note: ", &note.text, layout.columns());
    }
}

fn table(curve: SeriesOf<'_, LoadCurve>) -> Table {
    let shown = curve.shown_percentiles(&[Percentile::P99]);
    let mut head = ["load", "offered/s", "ops/s", "mean"]
        .map(str::to_owned)
        .to_vec();
    head.extend(shown.iter().map(Percentile::to_string));
    head.extend(["read MiB/s", "write MiB/s", "verdict"].map(str::to_owned));
    let mut table = Table::new(&head);
    let mut times: Vec<Vec<String>> = curve.measured().map(|p| times(p, shown)).collect();
    align_marked(&mut times.iter_mut().collect::<Vec<_>>());
    for (p, times) in curve.measured().zip(times) {
        let mut row = vec![
            Count(p.load.unwrap_or_default()).to_string(),
            p.offered_ops_per_s.map_or("-".into(), rate),
            rate(p.achieved_ops_per_s),
        ];
        row.extend(times);
        row.extend([
            mib_per_s(p.read_bytes_per_s),
            mib_per_s(p.write_bytes_per_s),
            p.verdict.to_string(),
        ]);
        table.row(row);
    }
    table
}

/// Mean and percentiles of a point, as cells.
pub(crate) fn times(p: &SeriesRun, shown: &[Percentile]) -> Vec<String> {
    let percentile =
        |at: &Percentile| percentiles::shown(p.percentile(*at), PercentileKind::Latency, "-");
    let mean = std::iter::once(latency_of(p.mean_ms));
    mean.chain(shown.iter().map(percentile)).collect()
}

/// The note below a table of points in which percentiles have too few operations.
pub(crate) fn doubt<'a>(
    out: &mut String,
    mut points: impl Iterator<Item = &'a SeriesRun>,
    shown: &[Percentile],
    layout: Layout,
) {
    if points.any(|p| any_doubtful(shown.iter().map(|at| p.percentile(*at)))) {
        paragraph(out, "  ", UNCERTAIN_NOTE, layout.columns());
    }
}

/// The reasons why points are not valid.
fn reasons(out: &mut String, curve: SeriesOf<'_, LoadCurve>, layout: Layout) {
    let bad = |p: &&SeriesRun| p.verdict != Verdict::Valid;
    for (i, point) in curve.measured().filter(bad).enumerate() {
        if i == 0 {
            out.push('\n');
        }
        for reason in &point.reasons {
            let label = format!(
                "  load {}, {}: ",
                Count(point.load.unwrap_or_default()),
                reason.code
            );
            paragraph(out, &label, &reason.text, layout.columns());
        }
    }
}

/// Operations scheduled in the measured window of a point; infinite if no rate is requested.
fn scheduled(curve: SeriesOf<'_, LoadCurve>, point: &SeriesRun) -> f64 {
    let rate = point.offered_ops_per_s.unwrap_or(f64::INFINITY);
    rate * curve.times_s().1
}

fn figures(out: &mut String, curve: SeriesOf<'_, LoadCurve>, layout: Layout) {
    let columns = layout.columns();
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
    paragraph(out, "load line: ", &line, columns);
    if let Some(peak) = curve
        .figures
        .highest_valid_load
        .filter(|p| Some(*p) != curve.figures.load_line)
    {
        let text = format!(
            "{} {metric}, although a lower load was not sustained",
            Count(peak)
        );
        paragraph(out, "highest valid load: ", &text, columns);
    }
    let ort_2008 = |ms| format!("{} (2008 rule)", inline_latency(ms));
    let ort = [
        curve.figures.ort_ms.map(inline_latency),
        curve.figures.ort_2008_ms.map(ort_2008),
    ];
    let ort: Vec<String> = ort.into_iter().flatten().collect();
    if !ort.is_empty() {
        paragraph(out, "overall response time: ", &ort.join(", "), columns);
    }
    if let Some(knee) = curve.figures.knee {
        let text = format!("{} {metric}, where the response time turns up", rate(knee));
        paragraph(out, "knee: ", &text, columns);
    }
    if let Some(text) = saturation(&curve) {
        paragraph(out, "bottleneck: ", &text, columns);
    }
    if let Some(usl) = &curve.figures.usl {
        let peak = usl
            .peak_load()
            .map(|p| format!("a peak at {} {metric}", rate(p)));
        let peak = peak.unwrap_or("no peak".into());
        let text = format!(
            "contention {:.4}, coherency {:.6}, {peak}; it explains {:.1} % of the variance",
            usl.sigma,
            usl.kappa,
            100.0 * usl.r_squared
        );
        paragraph(out, "scalability law: ", &text, columns);
    }
}
