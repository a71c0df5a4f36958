//! Results of a run that the engine determines: reasons, verification, populated filesets, failures.

use crate::units::ByteSum;
use crate::{OpKind, SourcePosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a result is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// A word for programs, such as `errors`.
    pub code: String,
    /// A sentence for people.
    pub text: String,
}

impl Reason {
    /// Creates a reason with this code and sentence.
    #[must_use]
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            text: text.into(),
        }
    }
}

/// The verification of a run: its reads were checked while it was in progress, and afterwards its files
/// were read again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Reads of the run that were checked, warm-up included.
    pub reads: u64,
    /// Those that returned wrong contents, or fewer bytes than the file has.
    pub wrong_reads: u64,
    /// Files that must exist and were read again after the run.
    pub files: u64,
    /// Bytes that were read again.
    pub bytes: u64,
    /// Files that do not exist.
    pub missing: u64,
    /// Files with fewer bytes than were acknowledged.
    pub short: u64,
    /// Files with wrong contents.
    pub wrong: u64,
    /// Files that could not be read.
    pub unreadable: u64,
    /// Files that may exist or not, because the operation that creates, removes or renames them failed or
    /// did not return. They are not read.
    pub uncertain: u64,
    /// Seconds that reading again took.
    pub seconds: f64,
    /// Why the files were not read again, as a part of a sentence; none if they were.
    pub skipped: Option<String>,
    /// The first failures of each process.
    pub examples: Vec<VerificationFailure>,
}

impl Verification {
    /// Number of files that differ from the acknowledged state: missing, short, wrong or unreadable.
    #[must_use]
    pub fn bad_files(&self) -> u64 {
        self.missing + self.short + self.wrong + self.unreadable
    }

    /// Whether the checks found no loss of acknowledged data.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.wrong_reads == 0 && self.bad_files() == 0
    }

    /// Adds the verification of another process, which ran at the same time: counts are added, and the time is the
    /// maximum.
    pub fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.wrong_reads += other.wrong_reads;
        self.files += other.files;
        self.bytes += other.bytes;
        self.missing += other.missing;
        self.short += other.short;
        self.wrong += other.wrong;
        self.unreadable += other.unreadable;
        self.uncertain += other.uncertain;
        self.seconds = self.seconds.max(other.seconds);
        self.skipped = self.skipped.take().or(other.skipped);
        self.examples.extend(other.examples);
    }
}

/// Something that a verified run lost, or that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationFailure {
    /// Path of the file.
    pub path: String,
    /// Offset of the first wrong or missing byte, if there is one.
    pub offset: Option<u64>,
    /// What is wrong, as a clause.
    pub problem: String,
}

/// A fileset that was created or found before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PopulatedFileset {
    /// Name of the fileset.
    pub fileset: String,
    /// Files that existed when the run began.
    pub files: u64,
    /// Directories, the root among them.
    pub dirs: u64,
    /// Bytes in the files.
    pub bytes: u128,
    /// Whether `bytes` is an estimate from a sample of the files: of more than 2²⁰ files of a tree with
    /// exact widths, sizes are only drawn when they are used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bytes_estimated: bool,
    /// Seconds that populating it took.
    pub seconds: f64,
    /// An identical tree of an earlier run was found and used.
    pub reused: bool,
}

impl PopulatedFileset {
    /// Sum of the file sizes in bytes.
    #[must_use]
    pub fn sum(&self) -> ByteSum {
        ByteSum {
            bytes: self.bytes,
            estimated: self.bytes_estimated,
        }
    }
}

/// The error that ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Name of the operation, or the activity that failed, such as `populate`; `run` for the run as
    /// a whole.
    pub operation: String,
    /// Kind of the operation.
    pub kind: Option<OpKind>,
    /// Worker that met the error.
    pub worker: Option<String>,
    /// Path on which the operation worked.
    pub path: Option<String>,
    /// The error message.
    pub error: String,
    /// Position of the operation in the workload.
    pub location: Option<SourcePosition>,
}

impl Failure {
    /// A failure of an activity, such as `populate`, instead of an operation.
    #[must_use]
    pub fn of(activity: &str, error: String) -> Self {
        Self {
            operation: activity.into(),
            kind: None,
            worker: None,
            path: None,
            error,
            location: None,
        }
    }

    /// The failure with the number of the rank before the error; unchanged for rank 0.
    #[must_use]
    pub fn at_rank(mut self, rank: u32) -> Self {
        if rank > 0 {
            self.error = format!("rank {rank}: {}", self.error);
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut what = match (self.operation.as_str(), self.kind) {
            (operation, Some(kind)) => format!("{operation} ({kind})"),
            // A failure of the whole run has no name before the error.
            ("run", None) => String::new(),
            (operation, None) => operation.to_owned(),
        };
        if let Some(path) = &self.path {
            let space = if what.is_empty() { "" } else { " " };
            what.push_str(&format!("{space}on {path}"));
        }
        if !what.is_empty() {
            write!(f, "{what}: ")?;
        }
        f.write_str(&self.error)?;
        match (&self.worker, &self.location) {
            (Some(w), Some(p)) => write!(f, " (worker {w}, {p})"),
            (Some(w), None) => write!(f, " (worker {w})"),
            (None, Some(p)) => write!(f, " ({p})"),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(path: &str) -> VerificationFailure {
        VerificationFailure {
            path: path.into(),
            offset: None,
            problem: "missing".into(),
        }
    }

    #[test]
    fn verifications_of_processes_add_up_but_in_time() {
        let of = |n: u64, path: &str| Verification {
            reads: n,
            wrong_reads: 2 * n,
            files: 3 * n,
            bytes: 4 * n,
            missing: 5 * n,
            short: 6 * n,
            wrong: 7 * n,
            unreadable: 8 * n,
            uncertain: 9 * n,
            seconds: n as f64,
            skipped: None,
            examples: vec![example(path)],
        };
        let mut sum = of(10, "a");
        sum.add(of(1, "b"));
        let expected = Verification {
            seconds: 10.0,
            examples: vec![example("a"), example("b")],
            ..of(11, "")
        };
        assert_eq!(sum, expected);
        assert_eq!(sum.bad_files(), 26 * 11);
        let skipped = |why: &str| Verification {
            skipped: Some(why.into()),
            ..Verification::default()
        };
        sum.add(skipped("first"));
        sum.add(skipped("second"));
        assert_eq!(sum.skipped.as_deref(), Some("first"));
    }

    #[test]
    fn failures_are_described_as_far_as_they_are_known() {
        let place = SourcePosition {
            file: "x.f".into(),
            line: 3,
            column: 9,
        };
        let whole = Failure::of("run", "no space".into());
        let activity = Failure::of("populate", "no space".into());
        let operation = Failure {
            kind: Some(OpKind::ReadWhole),
            ..Failure::of("read1", "no space".into())
        };
        let on_path = |f: &Failure| Failure {
            path: Some("/w/a".into()),
            ..f.clone()
        };
        let worker = Some("p-0.1".to_owned());
        let by_worker = Failure {
            worker: worker.clone(),
            ..operation.clone()
        };
        let at_place = Failure {
            location: Some(place),
            ..operation.clone()
        };
        let by_both = Failure {
            worker,
            ..at_place.clone()
        };
        for (failure, expected) in [
            (whole.clone(), "no space"),
            (on_path(&whole), "on /w/a: no space"),
            (activity.clone(), "populate: no space"),
            (on_path(&activity), "populate on /w/a: no space"),
            (operation.clone(), "read1 (read_whole): no space"),
            (on_path(&operation), "read1 (read_whole) on /w/a: no space"),
            (by_worker, "read1 (read_whole): no space (worker p-0.1)"),
            (at_place, "read1 (read_whole): no space (x.f:3:9)"),
            (
                by_both,
                "read1 (read_whole): no space (worker p-0.1, x.f:3:9)",
            ),
            (whole.clone().at_rank(0), "no space"),
            (whole.at_rank(3), "rank 3: no space"),
            (activity.at_rank(1), "populate: rank 1: no space"),
        ] {
            assert_eq!(failure.to_string(), expected);
        }
        let reason = Reason::new("errors", "3 operations failed");
        assert_eq!(
            [reason.code, reason.text],
            ["errors", "3 operations failed"]
        );
    }

    #[test]
    fn a_populated_fileset_has_a_sum_that_may_be_an_estimate() {
        let mut set = PopulatedFileset {
            fileset: "set".into(),
            files: 3,
            dirs: 2,
            bytes: 4096,
            bytes_estimated: false,
            seconds: 0.5,
            reused: false,
        };
        assert_eq!(set.sum(), ByteSum::exact(4096));
        let json = serde_json::to_value(&set).unwrap();
        assert!(json.get("bytes_estimated").is_none());
        assert_eq!(
            serde_json::from_value::<PopulatedFileset>(json).unwrap(),
            set
        );
        set.bytes_estimated = true;
        assert_eq!(set.sum().to_string(), "about 4 KiB");
        let json = serde_json::to_value(&set).unwrap();
        assert_eq!(
            serde_json::from_value::<PopulatedFileset>(json).unwrap(),
            set
        );
    }

    #[test]
    fn a_verification_is_good_without_any_loss() {
        let good = Verification {
            reads: 5,
            files: 3,
            uncertain: 1,
            ..Verification::default()
        };
        assert!(good.is_good());
        let losses: [fn(&mut Verification); 5] = [
            |v| v.wrong_reads = 1,
            |v| v.missing = 1,
            |v| v.short = 1,
            |v| v.wrong = 1,
            |v| v.unreadable = 1,
        ];
        for lose in losses {
            let mut bad = good.clone();
            lose(&mut bad);
            assert!(!bad.is_good(), "{bad:?}");
        }
    }
}
