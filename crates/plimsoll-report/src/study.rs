//! The study of NFS opens: versions of NFS side by side, for each workload and round trip.
//!
//! Its results are those of a profile whose file systems are access paths to a server. The report
//! shows the figures that opens change: operations per second and their change, milliseconds per
//! operation, and processor time of the client.

use crate::compare::{self, Comparison, Metric, ProfileSet, RunSet, distinct, of_runs};
use crate::profile_parts::{headline, reasons};
use crate::terminal::Layout;
use crate::text::{Paint, paragraph, series_location};
use plimsoll_plan::show_duration;
use plimsoll_results::{Percentiles, Profile, Run, SeriesDir, SeriesOf};
use std::time::Duration;

/// Name of the study, and of the profile that it runs.
pub const NFS4_OPENS: &str = "nfs4-opens";

/// Separator between an access path and a round trip.
const RTT_LABEL_SEPARATOR: &str = ", round trip ";

/// Figures of the report.
const METRICS: [Metric; 3] = [Metric::OpsPerS, Metric::MeanMs, Metric::CpuUsPerOp];

/// Name of a profile's file system that is this access path to the server, such as `v4.1`, with this
/// round trip.
#[must_use]
pub fn label(access_path: &str, round_trip: Duration) -> String {
    let trip = match round_trip.is_zero() {
        true => "0ms".to_owned(),
        false => show_duration(round_trip),
    };
    format!("{access_path}{RTT_LABEL_SEPARATOR}{trip}")
}

/// Whether the results of a profile are those of a study.
#[must_use]
pub fn is_study(profile: SeriesOf<'_, Profile>) -> bool {
    let mut systems = profile.filesystems().into_iter();
    profile.name == NFS4_OPENS && systems.all(|s| s.contains(RTT_LABEL_SEPARATOR))
}

/// One comparison for each workload and round trip, with their names.
#[must_use]
pub fn comparisons(
    sets: &[ProfileSet],
    percentiles: Option<&Percentiles>,
) -> Vec<(String, Comparison)> {
    let mut all = Vec::new();
    let split = |s| {
        let set: &ProfileSet = s;
        let (access_path, trip) = set.name.split_once(RTT_LABEL_SEPARATOR)?;
        Some((access_path, trip, set))
    };
    let paths: Vec<(&str, &str, &ProfileSet)> = sets.iter().filter_map(split).collect();
    let cases = paths.iter().flat_map(|(.., set)| &set.cases);
    let trips = distinct(paths.iter().map(|(_, trip, _)| *trip));
    for name in distinct(cases.map(|(name, _)| name.as_str())) {
        for trip in &trips {
            let of_trip = paths.iter().filter(|(_, t, _)| t == trip);
            let runs: Vec<RunSet<'_>> = of_trip
                .map(|(access_path, _, set)| RunSet {
                    name: access_path,
                    runs: set.runs(name),
                })
                .filter(|set| !set.runs.is_empty())
                .collect();
            if runs.is_empty() {
                continue;
            }
            let mut comparison = of_runs(&runs, percentiles);
            // Percentiles are shown only if some were requested.
            let shown = |metric: Metric| {
                METRICS.contains(&metric)
                    || (percentiles.is_some() && matches!(metric, Metric::PercentileMs(_)))
            };
            comparison.retain_rows(|r| shown(r.metric));
            all.push((format!("{name}{RTT_LABEL_SEPARATOR}{trip}"), comparison));
        }
    }
    all
}

/// The whole report.
#[must_use]
pub fn render(
    profile: SeriesOf<'_, Profile>,
    sets: &[ProfileSet],
    dir: Option<&SeriesDir>,
    layout: Layout,
) -> String {
    let paint = Paint(layout.color);
    let mut out = String::new();
    headline(&mut out, profile, layout);
    for (of, comparison) in comparisons(sets, profile.percentiles_shown.as_ref()) {
        out.push_str(&format!("\n{}\n", paint.bold(&of)));
        out.push_str(&compare::text(&comparison, layout));
    }
    for (what, counts) in delegation_counts(sets) {
        paragraph(&mut out, &format!("{what}: "), &counts, layout.columns());
    }
    reasons(&mut out, sets, layout);
    series_location(&mut out, &profile, dir, paint);
    out
}

/// Counts of what happened to delegations, for each workload and access path that requested them.
#[must_use]
pub fn delegation_counts(sets: &[ProfileSet]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for set in sets {
        for (name, runs) in &set.cases {
            let counts = delegations(runs);
            all.extend(counts.map(|counts| (format!("{name}, {}", set.name), counts)));
        }
    }
    all
}

/// Counts of what happened to delegations; `None` for runs that requested none.
fn delegations(runs: &[Run]) -> Option<String> {
    let rows = runs.iter().flat_map(|r| &r.procedures);
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for row in rows {
        let Some(event) = row.name.strip_prefix(DELEGATIONS).map(str::trim) else {
            continue;
        };
        match counts.iter_mut().find(|(e, _)| *e == event) {
            Some((_, count)) => *count = count.saturating_add(row.ops),
            None => counts.push((event, row.ops)),
        }
    }
    let counts: Vec<String> = counts.iter().map(|(e, n)| format!("{n} {e}")).collect();
    (!counts.is_empty()).then(|| format!("{DELEGATIONS} {}", counts.join(", ")))
}

/// Prefix of the rows of delegations.
const DELEGATIONS: &str = "delegations";
