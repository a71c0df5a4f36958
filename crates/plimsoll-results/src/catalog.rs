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
mod tests {
    use super::*;
    use crate::{Document, MeasuredRun, RUN_FILE, Repeats, SummaryLatency, Target};
    use plimsoll_plan::Plan;
    use serde_json::json;

    #[test]
    fn words_of_a_status_are_read_back() {
        let words = Status::ALL.map(Status::word);
        assert_eq!(
            words,
            ["valid", "invalid", "failed", "interrupted", "unfinished"]
        );
        for status in Status::ALL {
            assert_eq!(
                (status.word().parse(), status.to_string()),
                (Ok(status), status.word().into())
            );
        }
        assert_eq!(
            "good".parse::<Status>().unwrap_err(),
            "`good` is not a status: expected one of valid, invalid, failed, interrupted, unfinished"
        );
        assert_eq!(format!("{:>8}|", Status::Valid), "   valid|");
        let verdicts = [
            Verdict::Valid,
            Verdict::Invalid,
            Verdict::Failed,
            Verdict::Interrupted,
        ];
        assert_eq!(verdicts.map(Status::from), Status::ALL[..4]);
    }

    /// A directory with a run of one measured window.
    fn run(dir: &Path, change: impl FnOnce(&mut Run)) {
        let target = Target {
            url: "posix".into(),
            description: String::new(),
            system: None,
            testbed: None,
        };
        let measured =
            MeasuredRun::new(Plan::empty("w"), target, std::time::SystemTime::UNIX_EPOCH);
        let mut run = Run::assemble(measured);
        run.window_number = 1;
        run.validity.verdict = Verdict::Valid;
        run.summary = Summary {
            ops: 10,
            ops_per_s: 5.0,
            bytes_per_s: 50.0,
            mean_ms: 2.0,
            p99_ms: 9.0,
            ..Summary::default()
        };
        change(&mut run);
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join(RUN_FILE), run.to_json()).unwrap();
    }

    fn latencies(e: &Entry) -> [Option<f64>; 4] {
        [e.mean_ms, e.p99_ms, e.service_mean_ms, e.service_p99_ms]
    }

    #[test]
    fn a_run_has_the_figures_that_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let entry = |change: fn(&mut Run)| {
            run(dir.path(), change);
            Entry::read(dir.path()).unwrap()
        };
        let measured = entry(|r| {
            r.summary.service = Some(SummaryLatency {
                mean_ms: 1.0,
                p50_ms: 0.5,
                p99_ms: 4.0,
            });
        });
        assert_eq!(
            (measured.ops_per_s, measured.bytes_per_s),
            (Some(5.0), Some(50.0))
        );
        assert_eq!(
            latencies(&measured),
            [Some(2.0), Some(9.0), Some(1.0), Some(4.0)]
        );
        assert_eq!(
            (measured.target.as_str(), measured.started_at.as_str()),
            ("posix", "1970-01-01T00:00:00.000Z")
        );
        let idle = entry(|r| r.summary.ops = 0);
        assert_eq!((idle.ops_per_s, latencies(&idle)), (Some(5.0), [None; 4]));
        let without_window = entry(|r| r.window_number = 0);
        assert_eq!(
            (without_window.ops_per_s, latencies(&without_window)),
            (None, [None; 4])
        );
    }

    #[test]
    fn repeated_runs_have_the_means_of_what_is_known_and_the_first_doubt() {
        let dir = tempfile::tempdir().unwrap();
        let mut repeats = Repeats::new("w", 3);
        let entry = |repeats: &Repeats| {
            std::fs::write(dir.path().join(Repeats::FILE), repeats.to_json()).unwrap();
            Entry::read(dir.path()).unwrap()
        };
        let none = entry(&repeats);
        assert_eq!(
            (none.runs, none.status, none.ops_per_s),
            (0, Status::Unfinished, None)
        );
        assert_eq!((none.target.as_str(), none.started_at.as_str()), ("", ""));
        for (name, ops_per_s) in [("run-01", 4.0), ("run-02", 8.0), ("run-03", 0.0)] {
            run(&dir.path().join(name), |r| {
                r.summary.ops_per_s = ops_per_s;
                r.summary.ops = ops_per_s as u64;
                r.summary.mean_ms = ops_per_s;
            });
            repeats.runs.push(name.into());
        }
        let all = entry(&repeats);
        assert_eq!((all.runs, all.status), (3, Status::Valid));
        // The third did nothing, and has no latency.
        assert_eq!(
            (all.ops_per_s, all.mean_ms, all.service_mean_ms),
            (Some(4.0), Some(6.0), None)
        );
        repeats.requested_runs = 4;
        assert_eq!(entry(&repeats).status, Status::Unfinished);
        run(&dir.path().join("run-02"), |r| {
            r.validity.verdict = Verdict::Invalid
        });
        run(&dir.path().join("run-03"), |r| {
            r.validity.verdict = Verdict::Failed
        });
        assert_eq!(entry(&repeats).status, Status::Invalid);
    }

    #[test]
    fn a_profile_has_the_status_of_its_cases() {
        let dir = tempfile::tempdir().unwrap();
        let entry = |interrupted: bool, cases: &[(&str, Option<&str>)]| {
            let case = |(target, verdict): &(&str, Option<&str>)| json!({"target": target, "verdict": verdict});
            let profile = json!({
                "schema_version": ProfileResults::SCHEMA,
                "profile": "study",
                "started_at": "now",
                "interrupted": interrupted,
                "cases": cases.iter().map(case).collect::<Vec<_>>(),
            });
            std::fs::write(dir.path().join(ProfileResults::FILE), profile.to_string()).unwrap();
            let entry = Entry::read(dir.path()).unwrap();
            (entry.status, entry.runs, entry.target)
        };
        let (valid, invalid) = (("a", Some("valid")), ("a", Some("invalid")));
        let (failed, interrupted) = (("a", Some("failed")), ("b", Some("interrupted")));
        let missing = ("a", None);
        assert_eq!(
            entry(false, &[valid, valid]),
            (Status::Valid, 2, "a".into())
        );
        assert_eq!(
            entry(false, &[valid, invalid]),
            (Status::Invalid, 2, "a".into())
        );
        assert_eq!(
            entry(false, &[invalid, missing]),
            (Status::Unfinished, 1, "a".into())
        );
        assert_eq!(
            entry(true, &[valid, missing]),
            (Status::Interrupted, 1, "a".into())
        );
        assert_eq!(
            entry(false, &[valid, interrupted, missing]),
            (Status::Interrupted, 2, String::new())
        );
        assert_eq!(
            entry(true, &[failed, interrupted]),
            (Status::Failed, 2, String::new())
        );
        assert_eq!(entry(false, &[]), (Status::Valid, 0, String::new()));
    }

    #[test]
    fn curves_and_searches_have_the_status_of_their_end() {
        let dir = tempfile::tempdir().unwrap();
        let curve = |state: &str, verdicts: &[&str]| {
            let points: Vec<_> = verdicts.iter().map(|v| json!({"verdict": v})).collect();
            let curve = json!({
                "schema_version": LoadCurve::SCHEMA,
                "workload": "w",
                "started_at": "now",
                "metric": "streams",
                "state": state,
                "points": points,
                "load_line": 7,
                "ort_ms": 1.5,
                "target": {"url": "posix"},
            });
            std::fs::write(dir.path().join(LoadCurve::FILE), curve.to_string()).unwrap();
            let entry = Entry::read(dir.path()).unwrap();
            assert_eq!(
                (entry.load_line, entry.ort_ms, entry.metric.as_deref()),
                (Some(7), Some(1.5), Some("streams"))
            );
            (entry.status, entry.runs)
        };
        assert_eq!(curve("complete", &["invalid", "valid"]), (Status::Valid, 2));
        assert_eq!(curve("stopped", &["valid"]), (Status::Valid, 1));
        assert_eq!(curve("complete", &["invalid"]), (Status::Invalid, 1));
        assert_eq!(curve("stopped", &[]), (Status::Invalid, 0));
        assert_eq!(curve("unfinished", &["valid"]), (Status::Unfinished, 1));
        assert_eq!(curve("interrupted", &["valid"]), (Status::Interrupted, 1));
        assert_eq!(curve("failed", &["valid"]), (Status::Failed, 1));
    }

    #[test]
    fn directories_are_listed_by_name_without_hidden_ones_files_and_links() {
        let root = tempfile::tempdir().unwrap();
        for name in ["b", "a", ".hidden"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        std::fs::write(root.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.path().join("a"), root.path().join("link")).unwrap();
        let found = directories(root.path()).unwrap();
        assert_eq!(found, ["a", "b"].map(|name| root.path().join(name)));
        assert!(directories(&root.path().join("none")).is_err());
    }
}
