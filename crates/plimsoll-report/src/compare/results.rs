//! Results to compare, read from results directories.

use super::{Comparison, CurveSet, ProfileSet, RunSet, of_curves, of_profiles, of_runs};
use plimsoll_results::{
    CurveDir, CurveState, FindDir, LoadCurve, Percentiles, ProfileDir, RepeatsDir, Run, Verdict,
    read_runs, run_dirs,
};
use std::path::Path;

/// One of the results that are compared, by its kind.
#[derive(Debug, Clone)]
pub enum Results {
    /// A run, or repeated ones: their name, and warnings about files that they lack.
    Runs(String, Vec<Run>, Vec<String>),
    /// The runs of a profile: a set for each file system, and warnings about files that they lack.
    Profile(Vec<ProfileSet>, Vec<String>),
    /// A load curve.
    Curve(CurveSet),
}

impl Results {
    /// Reads a results directory of any kind, with the requested percentiles; `name` is its name in
    /// the comparison.
    ///
    /// # Errors
    /// A sentence, if it has no results, damaged ones, or a search, which is not one result.
    pub fn read(
        path: &Path,
        name: &str,
        percentiles: Option<&Percentiles>,
    ) -> Result<Self, String> {
        let dir = CurveDir::at(path);
        if dir.exists() {
            return of_curve(name, &dir.read().map_err(|e| e.to_string())?);
        }
        if FindDir::at(path).exists() {
            return Err(format!(
                "{name} is a search for a load line; compare the runs in it, or load curves"
            ));
        }
        let profile = ProfileDir::at(path);
        if profile.exists() {
            return of_profile(name, &profile, percentiles);
        }
        let runs = read_runs(path, percentiles).map_err(|e| e.to_string())?;
        if runs.is_empty() {
            return Err(format!("{name} has no run in it"));
        }
        let mut warnings = lacking(name, path, [path])?;
        let repeats = RepeatsDir::at(path);
        if repeats.exists() {
            let requested = repeats.read().map_err(|e| e.to_string())?.requested_runs as usize;
            if runs.len() < requested {
                let runs = runs.len();
                warnings.push(format!("{name} has {runs} of {requested} requested runs"));
            }
        }
        Ok(Self::Runs(name.to_owned(), runs, warnings))
    }
}

/// Warnings about the files that runs lack; the figures that are compared need only `run.json`.
/// `parts` are the directories of runs or of repeated ones in `root`.
fn lacking(
    name: &str,
    root: &Path,
    parts: impl IntoIterator<Item = impl AsRef<Path>>,
) -> Result<Vec<String>, String> {
    let mut warnings = Vec::new();
    for part in parts {
        for run in run_dirs(part.as_ref()).map_err(|e| e.to_string())? {
            let lacks = run.lacks().join(" and ");
            let below = run.path().strip_prefix(root).unwrap_or(run.path());
            let name = match below.as_os_str().is_empty() {
                true => name.to_owned(),
                false => format!("{name}/{}", below.display()),
            };
            if !lacks.is_empty() {
                warnings.push(format!("{name} is not a complete result: it lacks {lacks}"));
            }
        }
    }
    Ok(warnings)
}

fn of_curve(name: &str, curve: &LoadCurve) -> Result<Results, String> {
    let state = format!("{:?}", curve.state).to_lowercase();
    let verdict = match curve.state {
        CurveState::Complete | CurveState::Stopped => Verdict::Valid,
        CurveState::Unfinished | CurveState::Interrupted => Verdict::Interrupted,
        CurveState::Failed => Verdict::Failed,
    };
    let scaled = format!("scaled to {}: not comparable", curve.scale);
    let ending = match (curve.comparable, verdict) {
        (true, _) => state,
        (false, Verdict::Valid) => scaled,
        (false, _) => format!("{state}, {scaled}"),
    };
    let left_out = curve.points.iter().filter_map(|p| match p.verdict {
        Verdict::Valid | Verdict::Invalid => None,
        Verdict::Failed => Some((p.load, "failed".to_owned())),
        Verdict::Interrupted => Some((p.load, "was interrupted".to_owned())),
    });
    // A name that no report may have is compared unchanged.
    let metric = plimsoll_disclosure::style(&curve.workload);
    Ok(Results::Curve(CurveSet {
        name: name.to_owned(),
        workload: curve.workload.clone(),
        metric: metric.unwrap_or_else(|_| curve.workload.clone()),
        unit: curve.metric.clone(),
        ending,
        verdict,
        scale: curve.scale,
        published: false,
        curve: curve.curve().map_err(|e| format!("{name}: {e}"))?,
        left_out: left_out.collect(),
    }))
}

/// The runs of a profile, a set for each file system.
fn of_profile(
    name: &str,
    dir: &ProfileDir,
    percentiles: Option<&Percentiles>,
) -> Result<Results, String> {
    let results = dir.read().map_err(|e| e.to_string())?;
    let mut sets = ProfileSet::read(&results, dir, percentiles).map_err(|e| e.to_string())?;
    let none = |s: &ProfileSet| s.cases.iter().all(|(_, r)| r.is_empty());
    if sets.iter().all(none) {
        return Err(format!("{name} has no run in it"));
    }
    let several = sets.len() > 1;
    for set in &mut sets {
        set.name = match several {
            true => format!("{name}, {}", set.name),
            false => name.to_owned(),
        };
    }
    let parts = results.cases.iter().filter_map(|c| dir.results(c));
    Ok(Results::Profile(sets, lacking(name, dir.path(), parts)?))
}

/// Compares results of one kind, with the requested percentiles.
///
/// # Errors
/// A sentence, if they are of different kinds.
pub fn side_by_side(
    results: Vec<Results>,
    percentiles: Option<&Percentiles>,
) -> Result<Comparison, String> {
    let (mut runs, mut curves, mut profiles) = (vec![], vec![], vec![]);
    let mut first: Option<(&str, String)> = None;
    let mut lacking = Vec::new();
    for r in results {
        let (kind, name) = match r {
            Results::Runs(name, set, lacks) => {
                lacking.extend(lacks);
                runs.push((name.clone(), set));
                ("runs", name)
            }
            Results::Curve(set) => {
                let name = set.name.clone();
                curves.push(set);
                ("a load curve", name)
            }
            Results::Profile(sets, lacks) => {
                lacking.extend(lacks);
                let name = sets.first().map(|s| s.name.clone());
                profiles.extend(sets);
                ("a profile", name.expect("a profile has a file system"))
            }
        };
        let (first_kind, first_name) = first.get_or_insert_with(|| (kind, name.clone()));
        if *first_kind != kind {
            return Err(format!(
                "{first_name} holds {first_kind} and {name} {kind}: only results of one kind can \
                 be compared"
            ));
        }
    }
    let sets = runs.iter().map(|(name, runs)| RunSet { name, runs });
    let mut comparison = match (profiles.is_empty(), curves.is_empty()) {
        (false, _) => of_profiles(&profiles, percentiles),
        (true, false) => of_curves(&curves),
        (true, true) => of_runs(&sets.collect::<Vec<_>>(), percentiles),
    };
    comparison.warnings.extend(lacking);
    Ok(comparison)
}
