//! Profiles side by side: the configurations are the rows.

use super::runs::{of_all_metrics, row_of_all, side, warnings_of};
use super::{ComparedResult, Comparison, Metric, Row, RunSet};
use plimsoll_results::{Percentiles, Run};

/// The runs of a profile on one file system.
#[derive(Debug, Clone)]
pub struct ProfileSet {
    /// Name of the file system, or of the results.
    pub name: String,
    /// Name of the profile.
    pub profile: String,
    /// Runs by the name of their configuration, in the order of the profile. A configuration that
    /// was not run has none.
    pub cases: Vec<(String, Vec<Run>)>,
    /// Configurations that cannot be run, and why.
    pub not_run: Vec<(String, String)>,
}

impl ProfileSet {
    /// The runs of a configuration; none if it was not run.
    #[must_use]
    pub fn runs(&self, case: &str) -> &[Run] {
        let mut cases = self.cases.iter();
        cases
            .find(|(name, _)| name == case)
            .map_or(&[], |(_, runs)| runs)
    }
}

/// Compares profiles configuration by configuration, by the figures of all operations together, with the
/// requested percentiles, which the runs must have; changes are from the first set.
#[must_use]
pub fn of_profiles(sets: &[ProfileSet], percentiles: Option<&Percentiles>) -> Comparison {
    let names = names(sets);
    let mut rows: Vec<Row> = Vec::new();
    let mut runs = sets.iter().flat_map(|s| &s.cases).flat_map(|(_, r)| r);
    let paced = runs.any(|r| r.summary.service.is_some());
    for metric in of_all_metrics(percentiles, paced) {
        for name in &names {
            let of_sets: Vec<&[Run]> = sets.iter().map(|s| s.runs(name)).collect();
            rows.extend(row_of_all(name, metric, &of_sets));
        }
    }
    // What nobody has is no row of the comparison.
    rows.retain(|r| {
        let zero = r.values.iter().flatten().all(|v| v.mean == 0.0);
        !(zero && matches!(r.metric, Metric::Errors | Metric::MibPerS))
    });
    Comparison {
        sets: sets.iter().map(side_of).collect(),
        warnings: warnings(sets, &names),
        rows,
    }
}

/// Names of the configurations of all sets, in the order of the first set that has each.
fn names(sets: &[ProfileSet]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, _) in sets.iter().flat_map(|s| &s.cases) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn side_of(set: &ProfileSet) -> ComparedResult {
    let runs: Vec<Run> = set.cases.iter().flat_map(|(_, r)| r).cloned().collect();
    ComparedResult {
        workload: format!("profile {}", set.profile),
        ..side(&RunSet {
            name: &set.name,
            runs: &runs,
        })
    }
}

/// What makes the results hard to compare; what is so of several configurations is said once.
fn warnings(sets: &[ProfileSet], names: &[String]) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for name in names {
        let there: Vec<RunSet<'_>> = sets
            .iter()
            .map(|s| RunSet {
                name: &s.name,
                runs: s.runs(name),
            })
            .filter(|s| !s.runs.is_empty())
            .collect();
        let absent = sets.iter().filter(|s| s.runs(name).is_empty());
        let absent = absent.map(|s| format!("{} has no run of it", s.name));
        for text in warnings_of(&there).into_iter().chain(absent) {
            match found.iter_mut().find(|(t, _)| *t == text) {
                Some((_, of)) => of.push(name),
                None => found.push((text, vec![name])),
            }
        }
    }
    let said = found.into_iter().map(|(text, of)| match of[..] {
        [one] => format!("{one}: {text}"),
        _ => format!("{} configurations: {text}", of.len()),
    });
    said.chain(not_run(sets)).collect()
}

/// What was left out because it cannot be run, and where, if not everywhere.
fn not_run(sets: &[ProfileSet]) -> Vec<String> {
    let mut left: Vec<&(String, String)> = Vec::new();
    for one in sets.iter().flat_map(|s| &s.not_run) {
        if !left.contains(&one) {
            left.push(one);
        }
    }
    let say = |one: &&(String, String)| {
        let of: Vec<&str> = sets
            .iter()
            .filter(|s| s.not_run.contains(one))
            .map(|s| s.name.as_str())
            .collect();
        let place = match of.len() == sets.len() {
            true => String::new(),
            false => format!(" in {}", of.join(", ")),
        };
        format!("{} was not run{place}: {}", one.0, one.1)
    };
    left.iter().map(say).collect()
}
