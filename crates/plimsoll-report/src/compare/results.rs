//! Results to compare, read from results directories.

use super::{Comparison, CurveSet, ProfileSet, RunSet, of_curves, of_profiles, of_runs};
use crate::html::LoadedResult;
use plimsoll_results::{
    Distribution, LoadCurve, Percentiles, ResultsError, Run, RunDir, SeriesDir, SeriesKind,
    SeriesOf, SeriesState, Verdict, read_runs, run_dirs,
};
use std::path::Path;

/// A compared result, by kind.
#[derive(Debug, Clone)]
pub enum Results {
    /// A run or repeated runs: their name, and warnings about missing files.
    Runs(String, Vec<Run>, Vec<String>),
    /// The runs of a profile: a set for each file system, and warnings about missing files.
    Profile(Vec<ProfileSet>, Vec<String>),
    /// A load curve.
    Curve(CurveSet),
}

impl Results {
    /// Reads a results directory of any kind, with the requested percentiles; `name` is the name of the result in the
    /// comparison.
    ///
    /// # Errors
    /// A sentence if the directory holds no results, damaged results, or a search, a paired comparison or a sweep, which
    /// is not one result.
    pub fn read(
        path: &Path,
        name: &str,
        percentiles: Option<&Percentiles>,
    ) -> Result<Self, String> {
        let dir = SeriesDir::at(path);
        let mut requested = None;
        if dir.exists() {
            let series = dir.read().map_err(|e| e.to_string())?;
            match &series.kind {
                SeriesKind::Curve(figures) => return of_curve(name, series.with(figures)),
                SeriesKind::Profile(figures) => {
                    let sets = ProfileSet::read(series.with(figures), &dir, percentiles);
                    return of_profile(name, path, sets.map_err(|e| e.to_string())?);
                }
                SeriesKind::Search(_) => {
                    return Err(format!(
                        "{name} is a search for a load line; compare the runs in it, or load curves"
                    ));
                }
                SeriesKind::Ab(_) => {
                    return Err(format!(
                        "{name} is a paired comparison, which compares its two variants itself; \
                         `plimsoll report` prints the answer"
                    ));
                }
                SeriesKind::Sweep(_) => {
                    return Err(format!(
                        "{name} is a sweep over parameters; compare the runs in it"
                    ));
                }
                SeriesKind::Suite(_) => {
                    return Err(format!(
                        "{name} is an IO500-style suite; compare the runs of its phases"
                    ));
                }
                SeriesKind::Repeats(repeats) => {
                    requested = Some(repeats.requested_runs as usize);
                }
            }
        }
        let runs = read_runs(path, percentiles).map_err(|e| e.to_string())?;
        if runs.is_empty() {
            return Err(format!("{name} has no run in it"));
        }
        let mut warnings = lacking(name, path)?;
        warnings.extend(requested.filter(|n| runs.len() < *n).map(|requested| {
            let runs = runs.len();
            format!("{name} has {runs} of {requested} requested runs")
        }));
        Ok(Self::Runs(name.to_owned(), runs, warnings))
    }
}

/// Warnings about missing files of runs; a comparison only needs `run.json`.
fn lacking(name: &str, root: &Path) -> Result<Vec<String>, String> {
    let warning = |run: &RunDir| {
        let lacks = run.lacks().join(" and ");
        let below = run.path().strip_prefix(root).unwrap_or(run.path());
        let name = match below.as_os_str().is_empty() {
            true => name.to_owned(),
            false => format!("{name}/{}", below.display()),
        };
        (!lacks.is_empty()).then(|| format!("{name} is not a complete result: it lacks {lacks}"))
    };
    let runs = run_dirs(root).map_err(|e| e.to_string())?;
    Ok(runs.iter().filter_map(warning).collect())
}

fn of_curve(name: &str, curve: SeriesOf<'_, LoadCurve>) -> Result<Results, String> {
    let state = curve.state.to_string();
    let verdict = match curve.state {
        SeriesState::Complete | SeriesState::Stopped => Verdict::Valid,
        SeriesState::Unfinished | SeriesState::Interrupted => Verdict::Interrupted,
        SeriesState::Failed => Verdict::Failed,
    };
    let scaled = format!("scaled to {}: not comparable", curve.scale());
    let ending = match (curve.is_comparable(), verdict) {
        (true, _) => state,
        (false, Verdict::Valid) => scaled,
        (false, _) => format!("{state}, {scaled}"),
    };
    let left_out = curve.runs.iter().filter_map(|run| match run.verdict {
        Verdict::Valid | Verdict::Invalid => None,
        Verdict::Failed => Some((run.load?, "failed".to_owned())),
        Verdict::Interrupted => Some((run.load?, "was interrupted".to_owned())),
    });
    // A workload without a permitted report name keeps its own name.
    let metric = crate::disclosure::style(&curve.name);
    Ok(Results::Curve(CurveSet {
        name: name.to_owned(),
        workload: curve.name.clone(),
        metric: metric.unwrap_or_else(|_| curve.name.clone()),
        unit: curve.metric_name().to_owned(),
        ending,
        verdict,
        scale: curve.scale(),
        published: false,
        curve: curve.points().map_err(|e| format!("{name}: {e}"))?,
        left_out: left_out.collect(),
    }))
}

/// The runs of a profile, a set for each file system.
fn of_profile(name: &str, path: &Path, mut sets: Vec<ProfileSet>) -> Result<Results, String> {
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
    Ok(Results::Profile(sets, lacking(name, path)?))
}

/// Latencies of all operations in the runs of a results directory; `None` if a run lacks the log of latencies.
fn latencies(path: &Path) -> Result<Option<Distribution>, ResultsError> {
    let mut latencies = Distribution::default();
    for run in run_dirs(path)? {
        if !run.lacks().is_empty() {
            return Ok(None);
        }
        latencies.merge(&LoadedResult::read(&run, None)?.latencies());
    }
    Ok(Some(latencies))
}

impl Comparison {
    /// Reads the latencies of compared runs for the chart of distributions; `paths` are the results directories, in the
    /// order of the results. Latencies that cannot be read are a warning. Curves and profiles have no such chart.
    pub fn read_latencies(&mut self, paths: impl IntoIterator<Item = impl AsRef<Path>>) {
        if self.load_axis.is_some() || !self.has_total {
            return;
        }
        for (path, set) in paths.into_iter().zip(&self.sets) {
            let read = latencies(path.as_ref());
            self.latencies.push(read.unwrap_or_else(|error| {
                let name = &set.name;
                let warning = format!("the latencies of {name} cannot be read: {error}");
                self.warnings.push(warning);
                None
            }));
        }
    }
}

/// Compares results of one kind, with the requested percentiles.
///
/// # Errors
/// A sentence if the results are of different kinds.
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
