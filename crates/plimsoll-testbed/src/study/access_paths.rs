//! Access paths to a server side by side: the runs of a profile with a file system for each access path.

use plimsoll_report::compare::{Comparison, Metric, ProfileSet, RunSet, distinct, of_runs};
use plimsoll_results::Run;

/// Figures that opens change.
const METRICS: [Metric; 3] = [Metric::OpsPerS, Metric::MeanMs, Metric::CpuUsPerOp];

/// Prefix of the rows of delegations among the procedures of a run.
const DELEGATIONS: &str = "delegations";

/// One comparison for each configuration of the profile that was run, with the name of the configuration.
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

/// Counts of what happened to delegations, for each access path that requested them.
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
