//! The study of NFS opens: versions of NFS side by side, for each workload and round trip.
//!
//! Its results are those of a profile whose file systems are ways to a server. What is shown are the
//! figures that opens change, as talks on NFSv4 show them: operations a second and their change,
//! milliseconds of each operation, and processor time of the client.

use crate::compare::{self, Comparison, Metric, ProfileSet, RunSet, of_runs};
use crate::profile;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph};
use plimsoll_plan::show_duration;
use plimsoll_results::{Percentiles, ProfileResults, Run};
use std::path::Path;
use std::time::Duration;

/// Name of the study, and of the profile that it runs.
pub const NFS4_OPENS: &str = "nfs4-opens";

/// What stands between a way and a round trip.
const RTT_LABEL_SEPARATOR: &str = ", round trip ";

/// Figures that are shown.
const METRICS: [Metric; 3] = [Metric::OpsPerS, Metric::MeanMs, Metric::CpuUsPerOp];

/// What the file system of a profile is called that is this way to the server, such as `v4.1`,
/// with this round trip.
#[must_use]
pub fn label(way: &str, round_trip: Duration) -> String {
    let trip = match round_trip.is_zero() {
        true => "0ms".to_owned(),
        false => show_duration(round_trip),
    };
    format!("{way}{RTT_LABEL_SEPARATOR}{trip}")
}

/// Whether the results of a profile are those of a study.
#[must_use]
pub fn is_study(results: &ProfileResults) -> bool {
    let mut systems = results.filesystems().into_iter();
    results.profile == NFS4_OPENS && systems.all(|s| s.contains(RTT_LABEL_SEPARATOR))
}

/// One comparison for each workload and round trip, with what it is of.
#[must_use]
pub fn comparisons(
    sets: &[ProfileSet],
    percentiles: Option<&Percentiles>,
) -> Vec<(String, Comparison)> {
    let mut all = Vec::new();
    let mut trips: Vec<&str> = Vec::new();
    let ways: Vec<(&str, &str, &ProfileSet)> = sets
        .iter()
        .filter_map(|s| {
            s.name
                .split_once(RTT_LABEL_SEPARATOR)
                .map(|(way, trip)| (way, trip, s))
        })
        .collect();
    for (_, trip, _) in &ways {
        if !trips.contains(trip) {
            trips.push(trip);
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in ways.iter().flat_map(|(.., s)| &s.cases) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        for trip in &trips {
            let of_trip = ways.iter().filter(|(_, t, _)| t == trip);
            let runs: Vec<RunSet<'_>> = of_trip
                .map(|(way, _, set)| RunSet {
                    name: way,
                    runs: set.runs(name),
                })
                .filter(|set| !set.runs.is_empty())
                .collect();
            if runs.is_empty() {
                continue;
            }
            let mut comparison = of_runs(&runs, percentiles);
            // Percentiles are shown where some were requested.
            let shown = |metric: Metric| {
                METRICS.contains(&metric)
                    || (percentiles.is_some() && matches!(metric, Metric::PercentileMs(_)))
            };
            comparison.rows.retain(|r| shown(r.metric));
            all.push((format!("{name}{RTT_LABEL_SEPARATOR}{trip}"), comparison));
        }
    }
    all
}

/// The whole report.
#[must_use]
pub fn render(
    results: &ProfileResults,
    sets: &[ProfileSet],
    dir: Option<&Path>,
    layout: Layout,
) -> String {
    let paint = Paint(layout.color);
    let mut out = String::new();
    profile::headline(&mut out, results, layout);
    for (of, comparison) in comparisons(sets, results.percentiles_shown.as_ref()) {
        out.push_str(&format!("\n{}\n", paint.bold(&of)));
        out.push_str(&compare::text(&comparison, layout));
    }
    for set in sets {
        for (name, runs) in &set.cases {
            if let Some(said) = delegations(runs) {
                let label = format!("{name}, {}: ", set.name);
                paragraph(&mut out, &label, &said, layout.columns());
            }
        }
    }
    profile::reasons(&mut out, sets, layout);
    profile::place(&mut out, results, dir, layout);
    out
}

/// What became of delegations; nothing of runs that wanted none.
fn delegations(runs: &[Run]) -> Option<String> {
    let rows = runs.iter().flat_map(|r| &r.procedures);
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for row in rows.filter(|r| r.name.starts_with(DELEGATIONS)) {
        let what = row.name[DELEGATIONS.len()..].trim();
        match counts.iter_mut().find(|(w, _)| *w == what) {
            Some((_, count)) => *count += row.ops,
            None => counts.push((what, row.ops)),
        }
    }
    let said: Vec<String> = counts.iter().map(|(w, n)| format!("{n} {w}")).collect();
    (!said.is_empty()).then(|| format!("delegations {}", said.join(", ")))
}

/// How the rows of delegations begin.
const DELEGATIONS: &str = "delegations";
