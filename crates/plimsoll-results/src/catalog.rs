//! The list of the results below a root: an [`Entry`] per results directory of any kind.

use crate::document::read_part;
use crate::{
    Annotations, CurveState, Kind, LoadCurve, LoadSearch, ProfileResults, RepeatsDir, ResultsError,
    Run, StudyDir, Summary, Validity, Verdict,
};
use plimsoll_points::{LoadLine, SearchEnd};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Whether the figures of results may be used, and whether there will be more of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A run as its Plan says; repeated runs and profiles whose runs all are; a curve with a valid
    /// point; a search that found what it looked for.
    Valid,
    /// It ended, but not so.
    Invalid,
    /// An error ended it.
    Failed,
    /// The user ended it.
    Interrupted,
    /// Loads are missing: they are being measured, or the process was killed.
    Unfinished,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Valid,
        Self::Invalid,
        Self::Failed,
        Self::Interrupted,
        Self::Unfinished,
    ];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Unfinished => "unfinished",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|s| s.word() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(Self::word).join(", ");
            format!("`{text}` is not a status: expected one of {all}")
        })
    }
}

impl From<Verdict> for Status {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Valid,
            Verdict::Invalid => Self::Invalid,
            Verdict::Failed => Self::Failed,
            Verdict::Interrupted => Self::Interrupted,
        }
    }
}

/// The entry of results in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the directory.
    pub name: String,
    /// Kind of the results.
    pub kind: Kind,
    /// Name of the workload, of the profile or of the study.
    pub workload: String,
    /// Target as given on the command line; empty if no run states it, or if runs of a profile differ
    /// in it.
    pub target: String,
    /// When it was begun: RFC 3339, in UTC; empty if no run states it.
    pub started_at: String,
    /// Whether the figures may be used.
    pub status: Status,
    /// Runs: one, those that were repeated, those at the loads of a curve or a search, the configurations
    /// of a profile that have ended, or the results of a study.
    pub runs: u64,
    /// Operations per second: of a run, or the mean over repeated runs.
    pub ops_per_s: Option<f64>,
    /// Bytes per second: of a run, or the mean over repeated runs.
    pub bytes_per_s: Option<f64>,
    /// Mean latency in milliseconds: response time of paced operations, service time of the others.
    pub mean_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub p99_ms: Option<f64>,
    /// Mean service time in milliseconds, of a load that was paced.
    pub service_mean_ms: Option<f64>,
    /// 99th percentile of the service time in milliseconds, of a load that was paced.
    pub service_p99_ms: Option<f64>,
    /// The load line of a curve or a search.
    pub load_line: Option<u64>,
    /// Unit of loads, such as `streams`.
    pub metric: Option<String>,
    /// Overall response time of a curve in milliseconds.
    pub ort_ms: Option<f64>,
    /// Tags and note.
    #[serde(flatten)]
    pub said: EntryAnnotations,
}

/// Tags and note of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryAnnotations {
    /// Tags, in the order of their letters.
    pub tags: Vec<String>,
    /// A text for people; empty if there is none.
    pub note: String,
}

/// The part of `run.json` that is read; skipping the rest is much faster.
#[derive(Deserialize)]
struct RunPart {
    workload: String,
    started_at: String,
    validity: Validity,
    summary: Summary,
    target: TargetPart,
    window_number: u32,
}

#[derive(Deserialize)]
struct TargetPart {
    url: String,
}

#[derive(Deserialize)]
struct CurvePart {
    workload: String,
    started_at: String,
    metric: String,
    state: CurveState,
    points: Vec<PointPart>,
    load_line: Option<u64>,
    ort_ms: Option<f64>,
    target: TargetPart,
}

#[derive(Deserialize)]
struct PointPart {
    verdict: Verdict,
}

#[derive(Deserialize)]
struct SearchPart {
    workload: String,
    started_at: String,
    metric: String,
    load_line: LoadLine,
    failure: Option<serde::de::IgnoredAny>,
    runs: Vec<serde::de::IgnoredAny>,
    target: TargetPart,
}

#[derive(Deserialize)]
struct ProfilePart {
    profile: String,
    started_at: String,
    interrupted: bool,
    cases: Vec<CasePart>,
}

#[derive(Deserialize)]
struct CasePart {
    target: String,
    verdict: Option<Verdict>,
}

impl Entry {
    /// Reads the entry of the results in a directory.
    ///
    /// # Errors
    /// [`ResultsError`] if it holds none, or damaged ones, or those of another version.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        let mut entry = match Kind::of(dir)? {
            Kind::Run => of_run(dir)?,
            Kind::Curve => of_curve(dir)?,
            Kind::Search => of_search(dir)?,
            Kind::Repeats => of_repeats(dir)?,
            Kind::Profile => of_profile(dir)?,
            Kind::Study => of_study(dir)?,
        };
        entry.name = dir
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let annotations = Annotations::read(dir)?;
        entry.said = EntryAnnotations {
            tags: annotations.tags.into_iter().map(String::from).collect(),
            note: annotations.note,
        };
        Ok(entry)
    }

    fn new(kind: Kind, workload: String, status: Status) -> Self {
        Self {
            name: String::new(),
            kind,
            workload,
            target: String::new(),
            started_at: String::new(),
            status,
            runs: 1,
            ops_per_s: None,
            bytes_per_s: None,
            mean_ms: None,
            p99_ms: None,
            service_mean_ms: None,
            service_p99_ms: None,
            load_line: None,
            metric: None,
            ort_ms: None,
            said: EntryAnnotations::default(),
        }
    }
}

fn of_run(dir: &Path) -> Result<Entry, ResultsError> {
    let run: RunPart = read_part::<Run, _>(dir)?;
    let measured = run.window_number > 0;
    let figure = |f: f64| measured.then_some(f);
    let moved = |f: f64| (measured && run.summary.ops > 0).then_some(f);
    Ok(Entry {
        target: run.target.url,
        started_at: run.started_at,
        ops_per_s: figure(run.summary.ops_per_s),
        bytes_per_s: figure(run.summary.bytes_per_s),
        mean_ms: moved(run.summary.mean_ms),
        p99_ms: moved(run.summary.p99_ms),
        service_mean_ms: run.summary.service.map(|s| s.mean_ms),
        service_p99_ms: run.summary.service.map(|s| s.p99_ms),
        ..Entry::new(Kind::Run, run.workload, run.validity.verdict.into())
    })
}

fn of_curve(dir: &Path) -> Result<Entry, ResultsError> {
    let curve: CurvePart = read_part::<LoadCurve, _>(dir)?;
    let any_valid = curve.points.iter().any(|p| p.verdict == Verdict::Valid);
    let status = match curve.state {
        CurveState::Complete | CurveState::Stopped if any_valid => Status::Valid,
        CurveState::Complete | CurveState::Stopped => Status::Invalid,
        CurveState::Unfinished => Status::Unfinished,
        CurveState::Interrupted => Status::Interrupted,
        CurveState::Failed => Status::Failed,
    };
    Ok(Entry {
        target: curve.target.url,
        started_at: curve.started_at,
        runs: curve.points.len() as u64,
        load_line: curve.load_line,
        metric: Some(curve.metric),
        ort_ms: curve.ort_ms,
        ..Entry::new(Kind::Curve, curve.workload, status)
    })
}

fn of_search(dir: &Path) -> Result<Entry, ResultsError> {
    let search: SearchPart = read_part::<LoadSearch, _>(dir)?;
    let status = match search.load_line.termination {
        _ if search.failure.is_some() => Status::Failed,
        SearchEnd::Found | SearchEnd::MaxLoadSustained => Status::Valid,
        SearchEnd::NoneSustained | SearchEnd::MaxRunsReached => Status::Invalid,
        SearchEnd::Interrupted => Status::Interrupted,
        SearchEnd::Unfinished => Status::Unfinished,
    };
    Ok(Entry {
        target: search.target.url,
        started_at: search.started_at,
        runs: search.runs.len() as u64,
        load_line: search.load_line.sustained.map(|c| c.load),
        metric: Some(search.metric),
        ..Entry::new(Kind::Search, search.workload, status)
    })
}

fn of_repeats(dir: &Path) -> Result<Entry, ResultsError> {
    let repeats = RepeatsDir::at(dir);
    let head = repeats.read()?;
    let runs: Vec<Entry> = repeats
        .runs()?
        .iter()
        .map(|r| of_run(r.path()))
        .collect::<Result<_, _>>()?;
    let mean = |pick: fn(&Entry) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(pick).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    // The first status that is not valid is that of all.
    let doubtful = runs.iter().map(|r| r.status).find(|s| *s != Status::Valid);
    let status = match doubtful {
        Some(status) => status,
        None if (runs.len() as u64) < u64::from(head.requested_runs) => Status::Unfinished,
        None => Status::Valid,
    };
    let first = runs.first();
    Ok(Entry {
        target: first.map_or_else(String::new, |r| r.target.clone()),
        started_at: first.map_or_else(String::new, |r| r.started_at.clone()),
        runs: runs.len() as u64,
        ops_per_s: mean(|r| r.ops_per_s),
        bytes_per_s: mean(|r| r.bytes_per_s),
        mean_ms: mean(|r| r.mean_ms),
        p99_ms: mean(|r| r.p99_ms),
        service_mean_ms: mean(|r| r.service_mean_ms),
        service_p99_ms: mean(|r| r.service_p99_ms),
        ..Entry::new(Kind::Repeats, head.workload, status)
    })
}

fn of_profile(dir: &Path) -> Result<Entry, ResultsError> {
    let profile: ProfilePart = read_part::<ProfileResults, _>(dir)?;
    let ended: Vec<Verdict> = profile.cases.iter().filter_map(|c| c.verdict).collect();
    let any = |v: Verdict| ended.contains(&v);
    let status = if any(Verdict::Failed) {
        Status::Failed
    } else if profile.interrupted || any(Verdict::Interrupted) {
        Status::Interrupted
    } else if ended.len() < profile.cases.len() {
        Status::Unfinished
    } else if any(Verdict::Invalid) {
        Status::Invalid
    } else {
        Status::Valid
    };
    let first = profile.cases.first().map(|c| c.target.clone());
    let first = first.unwrap_or_default();
    let same = profile.cases.iter().all(|c| c.target == first);
    Ok(Entry {
        target: if same { first } else { String::new() },
        started_at: profile.started_at,
        runs: ended.len() as u64,
        ..Entry::new(Kind::Profile, profile.profile, status)
    })
}

fn of_study(dir: &Path) -> Result<Entry, ResultsError> {
    let study = StudyDir::at(dir).read()?;
    let done = study.steps.iter().filter(|s| s.results.is_some()).count();
    Ok(Entry {
        runs: done as u64,
        started_at: study.started_at.clone(),
        ..Entry::new(Kind::Study, study.study.clone(), study.status())
    })
}

/// Directories below a results root, in the order of their names. Links are not followed, and
/// hidden names are passed over: they are runs in progress.
///
/// # Errors
/// [`ResultsError::Io`] if the root cannot be listed.
pub fn directories(root: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let failed = || ResultsError::io("list", root);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let visible = !entry.file_name().as_encoded_bytes().starts_with(b".");
        if visible && entry.file_type().is_ok_and(|t| t.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests;
