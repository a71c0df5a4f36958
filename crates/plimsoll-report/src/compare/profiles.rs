//! Comparison of profiles: a row for each configuration.

use super::runs::{of_all_metrics, row_of_all, side, warnings_of};
use super::{ComparedResult, Comparison, Row, RunSet, distinct};
use plimsoll_results::{Percentiles, Profile, ResultsError, Run, SeriesDir, SeriesOf};

/// The runs of a profile on one file system.
#[derive(Debug, Clone)]
pub struct ProfileSet {
    /// Name of the file system, or of the results.
    pub name: String,
    /// Name of the profile.
    pub profile: String,
    /// Runs by name of the configuration, in the order of the profile; no runs for a configuration that was not run.
    pub cases: Vec<(String, Vec<Run>)>,
    /// Configurations that cannot be run, with the reason.
    pub not_run: Vec<(String, String)>,
}

impl ProfileSet {
    /// Reads the runs of a profile by file system, in the order of the profile, with the requested percentiles; `dir`
    /// is the results directory of the profile.
    ///
    /// # Errors
    /// An error if a listed run cannot be read.
    pub fn read(
        profile: SeriesOf<'_, Profile>,
        dir: &SeriesDir,
        percentiles: Option<&Percentiles>,
    ) -> Result<Vec<Self>, ResultsError> {
        let percentiles = percentiles.or(profile.percentiles_shown.as_ref());
        let not_run = profile.figures.not_run.iter();
        let not_run: Vec<(String, String)> = not_run
            .map(|n| (n.name.clone(), n.reason.clone()))
            .collect();
        let runs = |number: u32| -> Result<Vec<Run>, ResultsError> {
            let dirs = profile.runs_of(number).filter_map(|run| dir.run(run));
            dirs.map(|dir| dir.read_with(percentiles)).collect()
        };
        let set = |filesystem: &str| {
            let cases = (0..).zip(&profile.configurations);
            let cases = cases.filter(|(_, c)| c.filesystem.as_deref() == Some(filesystem));
            let cases = cases.map(|(number, c)| Ok((c.name.clone(), runs(number)?)));
            Ok(Self {
                name: filesystem.to_owned(),
                profile: profile.name.clone(),
                cases: cases.collect::<Result<_, ResultsError>>()?,
                not_run: not_run.clone(),
            })
        };
        profile.filesystems().into_iter().map(set).collect()
    }

    /// Runs of a configuration; empty if the configuration was not run.
    #[must_use]
    pub fn runs(&self, case: &str) -> &[Run] {
        let mut cases = self.cases.iter();
        cases
            .find(|(name, _)| name == case)
            .map_or(&[], |(_, runs)| runs)
    }
}

/// Compares profiles configuration by configuration, by the total of all operations, with the requested percentiles,
/// which the runs must have. Changes are relative to the first set.
#[must_use]
pub fn of_profiles(sets: &[ProfileSet], percentiles: Option<&Percentiles>) -> Comparison {
    let cases = sets.iter().flat_map(|s| &s.cases);
    let names = distinct(cases.map(|(name, _)| name.as_str()));
    let mut rows: Vec<Row> = Vec::new();
    let mut runs = sets.iter().flat_map(|s| &s.cases).flat_map(|(_, r)| r);
    let paced = runs.any(|r| r.summary.service.is_some());
    for metric in of_all_metrics(percentiles, paced) {
        for name in &names {
            let of_sets: Vec<&[Run]> = sets.iter().map(|s| s.runs(name)).collect();
            rows.extend(row_of_all(name, metric, &of_sets));
        }
    }
    let sides = sets.iter().map(side_of).collect();
    Comparison {
        has_total: false,
        ..Comparison::new(sides, warnings(sets, &names), None, rows)
    }
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

/// Warnings about differences between the sets that impair the comparison, each once for all configurations.
fn warnings(sets: &[ProfileSet], names: &[&str]) -> Vec<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for name in names {
        let present: Vec<RunSet<'_>> = sets
            .iter()
            .map(|s| RunSet {
                name: &s.name,
                runs: s.runs(name),
            })
            .filter(|s| !s.runs.is_empty())
            .collect();
        let absent = sets.iter().filter(|s| s.runs(name).is_empty());
        let absent = absent.map(|s| format!("{} has no run of it", s.name));
        for text in warnings_of(&present).into_iter().chain(absent) {
            match found.iter_mut().find(|(t, _)| *t == text) {
                Some((_, of)) => of.push(name),
                None => found.push((text, vec![name])),
            }
        }
    }
    let warnings = found.into_iter().map(|(text, of)| match of[..] {
        [one] => format!("{one}: {text}"),
        _ => format!("{} configurations: {text}", of.len()),
    });
    warnings.chain(not_run(sets)).collect()
}

/// Warnings about configurations that cannot be run; a warning names the sets unless it holds for all.
fn not_run(sets: &[ProfileSet]) -> Vec<String> {
    let warning = |one: &(String, String)| {
        let of: Vec<&str> = sets
            .iter()
            .filter(|s| s.not_run.contains(one))
            .map(|s| s.name.as_str())
            .collect();
        let sets = match of.len() == sets.len() {
            true => String::new(),
            false => format!(" in {}", of.join(", ")),
        };
        format!("{} was not run{sets}: {}", one.0, one.1)
    };
    let all = distinct(sets.iter().flat_map(|s| &s.not_run));
    all.into_iter().map(warning).collect()
}
