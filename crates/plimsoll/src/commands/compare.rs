//! `compare`: differences between the figures of two or more results, and the statistical significance of differences.

use super::import::{read as read_report, remark};
use super::report::write_output;
use crate::cli::{CompareArgs, CompareFormat};
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use crate::new_file;
use crate::workload::diagnosed;
use plimsoll_measure::curve::{Curve, CurveError, Point};
use plimsoll_report::compare::{self, Comparison, CurveSet, Results, side_by_side};
use plimsoll_report::disclosure::{Disclosure, LoadPoint};
use plimsoll_report::html::chart::standalone;
use plimsoll_report::html::{charts, page};
use plimsoll_report::{markdown, terminal};
use plimsoll_results::{Percentile, Percentiles, Verdict};
use std::path::Path;

/// Compares the first result with each further result, and prints the differences; the exit code is 3 if a condition of
/// `--fail-if` is met.
pub fn run(args: &CompareArgs) -> Result<Exit, CommandError> {
    if let Some(file) = &args.output {
        new_file::refuse_existing(file)?;
    }
    let percentiles = percentiles(args);
    let results = args.results.iter().map(|p| read(p, percentiles.as_ref()));
    let results: Vec<Results> = results.collect::<Result<_, _>>()?;
    if args.percentiles.is_some() && results.iter().any(|r| matches!(r, Results::Curve(_))) {
        return Err(CommandError::usage(
            "load curves are compared by their mean response times: --percentiles is for runs and \
             profiles",
        ));
    }
    let mut comparison =
        side_by_side(results, percentiles.as_ref()).map_err(CommandError::usage)?;
    if args.format == CompareFormat::Html {
        comparison.read_latencies(&args.results);
    }
    let mut broken = Vec::new();
    for condition in &args.fail_if {
        let met = condition.check(&comparison, args.allow_invalid);
        broken.extend(met.map_err(|e| CommandError::usage(format!("`{condition}`: {e}")))?);
    }
    write(&comparison, args)?;
    for b in &broken {
        console::err(&format!("failed: {b}\n"));
    }
    Ok(match broken.is_empty() {
        true => Exit::Valid,
        false => Exit::Invalid,
    })
}

/// Extra percentiles to compare, from `--percentiles` or a `--fail-if` condition; `None` for the default percentiles.
fn percentiles(args: &CompareArgs) -> Option<Percentiles> {
    let conditions: Vec<Percentile> = args.fail_if.iter().filter_map(|c| c.percentile()).collect();
    let asked = args.percentiles.as_ref();
    // A condition on a percentile that totals lack by default selects the default percentiles of operations, which
    // include the default percentiles of totals.
    let more = conditions
        .iter()
        .any(|p| !compare::TOTAL_PERCENTILES.contains(p));
    let listed = match asked {
        Some(list) => list.as_slice(),
        None if more => &compare::OPERATION_PERCENTILES,
        None => return None,
    };
    let all = listed.iter().copied().chain(conditions);
    Some(Percentiles::new(all))
}

fn write(comparison: &Comparison, args: &CompareArgs) -> Result<(), CommandError> {
    let mut layout = Stream::Out.layout();
    layout.color &= args.output.is_none();
    let text = match args.format {
        CompareFormat::Text => terminal::render(&compare::document(comparison), layout),
        CompareFormat::Markdown => markdown::render(&compare::document(comparison)),
        CompareFormat::Html => page::report(&[compare::document(comparison)]),
        CompareFormat::Svg => picture(comparison)?,
        CompareFormat::Json => {
            let json = serde_json::to_string_pretty(comparison);
            json.map_err(|e| CommandError::failed(format!("cannot print the comparison: {e}")))?
                + "\n"
        }
    };
    write_output(&text, args.output.as_deref()).map(drop)
}

/// SVG picture of the compared load curves; other results are a usage error, because their figures have no chart.
fn picture(comparison: &Comparison) -> Result<String, CommandError> {
    let chart = charts::of_comparison(comparison).ok_or_else(|| {
        CommandError::usage(
            "pictures show load curves, and these results are none: expected --format text, \
             markdown, html or json",
        )
    })?;
    Ok(standalone(&chart))
}

/// Reads a results directory of any kind, or a published report.
fn read(path: &Path, percentiles: Option<&Percentiles>) -> Result<Results, CommandError> {
    let name = path.display().to_string();
    if path.is_file() {
        return published(path, &name);
    }
    Results::read(path, &name, percentiles).map_err(CommandError::usage)
}

fn published(path: &Path, name: &str) -> Result<Results, CommandError> {
    let bytes =
        read_report(path).map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let imported = plimsoll_report::disclosure::import(&bytes, name).map_err(diagnosed)?;
    remark(&imported, name);
    let d = imported.disclosure;
    let ours = d.remark.starts_with("Measured with Plimsoll");
    let scale = scale_of(&d.remark);
    let ending = match (ours, scale == 1.0) {
        (false, _) => "published".into(),
        (true, true) => "report of Plimsoll".into(),
        (true, false) => format!("report of Plimsoll, scaled to {scale}: not comparable"),
    };
    let curve = curve_with_zero_points(&d);
    Ok(Results::Curve(CurveSet {
        name: name.to_owned(),
        workload: d.metric.clone(),
        metric: d.metric,
        unit: d.unit,
        ending,
        verdict: Verdict::Valid,
        scale,
        published: !ours,
        curve: curve.map_err(|e| CommandError::usage(format!("{name}: {e}")))?,
        left_out: vec![],
    }))
}

/// Load curve of a disclosure report. A load point without response time gets an achieved rate of 0, so that a chart
/// draws no line across the load point.
fn curve_with_zero_points(d: &Disclosure) -> Result<Curve, CurveError> {
    let point = |p: &LoadPoint| Point {
        load: p.load,
        achieved: match p.latency_ms {
            Some(_) => p.ops_per_s.unwrap_or(p.load),
            None => 0.0,
        },
        latency_ms: p.latency_ms.unwrap_or(0.0),
        verdict: p.verdict,
    };
    Curve::new(d.points.iter().map(point).collect())
}

/// Scale of a disclosed curve, from the remark `0.1 of the full …` that Plimsoll writes; 1 if the remark states no
/// scale.
fn scale_of(remark: &str) -> f64 {
    // Disclosure reports of all Plimsoll versions state the scale as `0.1 of the full …`.
    let told = remark.split_once(" of the full");
    let number = told.and_then(|(before, _)| before.split_whitespace().next_back());
    number.and_then(|n| n.parse().ok()).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::curve::PointVerdict;

    #[test]
    fn the_scale_is_that_of_the_remark() {
        for (remark, scale) in [
            ("", 1.0),
            (
                "Measured with Plimsoll 1: an open equivalent, not a SPEC result.",
                1.0,
            ),
            (
                "Scaled to 0.25 of the full data and rates: not comparable.",
                0.25,
            ),
            (
                "scaled: not comparable (data and rates are 0.1 of the full ones).",
                0.1,
            ),
        ] {
            assert_eq!(scale_of(remark), scale, "{remark}");
        }
    }

    #[test]
    fn a_point_at_which_nothing_was_done_stays_in_the_curve() {
        // Read at run time, because the file belongs to another crate.
        let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let text = std::fs::read(format!(
            "{crates}/plimsoll-report/tests/published/vda2014.txt"
        ));
        let mut d = plimsoll_report::disclosure::import(&text.unwrap(), "vda2014.txt")
            .unwrap()
            .disclosure;
        (d.points[1].latency_ms, d.points[1].verdict) = (None, PointVerdict::Invalid);
        let curve = curve_with_zero_points(&d).unwrap();
        assert_eq!(curve.points().len(), d.points.len());
        assert_eq!(
            (curve.points()[1].load, curve.points()[1].achieved),
            (340.0, 0.0)
        );
        assert_eq!(curve.points()[0].achieved, 1700.0);
    }
}
