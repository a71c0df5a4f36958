//! Comparison of access paths to a server: runs of a profile that has a file system for each access path.

use plimsoll_report::compare::{Comparison, Metric, ProfileSet, RunSet, distinct, of_runs};
use plimsoll_results::Run;

/// The figures that depend on the cost of opens.
const METRICS: [Metric; 3] = [Metric::OpsPerS, Metric::MeanMs, Metric::CpuUsPerOp];

/// Prefix of the names of rows on delegations among the procedures of a run.
const DELEGATIONS: &str = "delegations";

/// A comparison of the access paths for each configuration with runs: name of the configuration, and comparison.
pub(super) fn comparisons(sets: &[ProfileSet]) -> Vec<(String, Comparison)> {
    let cases = sets.iter().flat_map(|set| &set.cases);
    let names = distinct(cases.map(|(name, _)| name.as_str()));
    let compared = names.into_iter().filter_map(|name| {
        let of_set = |set| {
            let set: &ProfileSet = set;
            RunSet {
                name: &set.name,
                runs: set.runs(name),
            }
        };
        let runs = sets.iter().map(of_set).filter(|set| !set.runs.is_empty());
        let runs: Vec<RunSet<'_>> = runs.collect();
        let mut comparison = (!runs.is_empty()).then(|| of_runs(&runs, None))?;
        comparison.retain_rows(|row| METRICS.contains(&row.metric));
        Some((name.to_owned(), comparison))
    });
    compared.collect()
}

/// Counts of delegation events for each configuration and access path that requested delegations: the label, and the
/// counts as text.
pub(super) fn delegation_counts(sets: &[ProfileSet]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for set in sets {
        for (name, runs) in &set.cases {
            let counts = delegations(runs);
            all.extend(counts.map(|counts| (format!("{name}, {}", set.name), counts)));
        }
    }
    all
}

/// Counts of delegation events as text, such as `delegations 12 granted, 3 recalled`; `None` for runs that requested no
/// delegations.
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
