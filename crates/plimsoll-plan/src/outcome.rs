//! Results of a run that the engine determines: reasons, verification, populated filesets, failures.

use crate::units::ByteSum;
use crate::{OpKind, SourcePosition};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reason why the result of a run is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// Code of the reason, such as `errors`, by which programs recognise the reason.
    pub code: String,
    /// Sentence that explains the reason to people, with the measured figures.
    pub text: String,
}

impl Reason {
    /// Reason of an invalid result with the code `code`, which the sentence `text` explains to people.
    #[must_use]
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            text: text.into(),
        }
    }
}

/// Verification of a run: reads were checked during the run, and files were read again after the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// Number of reads of the run, including the warm-up, whose contents were checked.
    pub reads: u64,
    /// Number of checked reads that returned wrong contents, or fewer bytes than the file has.
    pub wrong_reads: u64,
    /// Number of files that must exist and were checked after the run, including all files with failures.
    pub files: u64,
    /// Number of bytes of files that were read again after the run.
    pub bytes: u64,
    /// Number of files that must exist after the run, but are missing.
    pub missing: u64,
    /// Number of files that are shorter after the run than the writes that the target acknowledged.
    pub short: u64,
    /// Number of files whose contents after the run differ from the acknowledged writes.
    pub wrong: u64,
    /// Number of files that could not be opened or read after the run.
    pub unreadable: u64,
    /// Number of files that may or may not exist, because the operation that creates, removes or renames the file
    /// failed or did not return. Files that may or may not exist are not read.
    pub uncertain: u64,
    /// Duration of the reading of files after the run, in seconds; the maximum of several processes.
    pub seconds: f64,
    /// Reason why the files were not read again, as a part of a sentence; null if the files were read again.
    pub skipped: Option<String>,
    /// First failures that each process found in reads of the run and in reads after the run.
    pub examples: Vec<VerificationFailure>,
}

impl Verification {
    /// Number of files that differ from the acknowledged state: missing, short, wrong or unreadable.
    #[must_use]
    pub fn bad_files(&self) -> u64 {
        self.missing + self.short + self.wrong + self.unreadable
    }

    /// Whether the verification found no loss of acknowledged data; uncertain files are no loss.
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

/// Failure of a verification: acknowledged data of one file are missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerificationFailure {
    /// Path of the file with missing or wrong data.
    pub path: String,
    /// Offset of the first wrong or missing byte in the file; null if the failure has no offset.
    pub offset: Option<u64>,
    /// Description of the missing or wrong data, as a clause.
    pub problem: String,
}

/// A fileset that was created, or found and reused, before the workers started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PopulatedFileset {
    /// Name of the populated fileset.
    pub fileset: String,
    /// Number of files of the fileset that exist when the workers start.
    pub files: u64,
    /// Number of directories of the fileset that exist when the workers start, including the root and leaf directories.
    pub dirs: u64,
    /// Sum of the sizes of the files that exist when the workers start, in bytes.
    pub bytes: u128,
    /// Whether `bytes` is an estimate from a sample of the files: of a tree with exact widths and more than 2²⁰ files,
    /// sizes are drawn only when used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bytes_estimated: bool,
    /// Duration of populating the fileset in seconds.
    pub seconds: f64,
    /// Whether an identical tree of an earlier run was found and reused.
    pub reused: bool,
}

impl PopulatedFileset {
    /// Sum of the sizes of the fileset's files, marked if the sum is an estimate.
    #[must_use]
    pub fn sum(&self) -> ByteSum {
        ByteSum {
            bytes: self.bytes,
            estimated: self.bytes_estimated,
        }
    }
}

/// Error that ended a run, with the operation and the place at which the error occurred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Name of the failed operation, or the failed activity such as `populate`; `run` for the run as a whole.
    pub operation: String,
    /// Kind of the failed operation; null if an activity failed.
    pub kind: Option<OpKind>,
    /// Name of the worker whose operation failed; null if an activity failed.
    pub worker: Option<String>,
    /// Path of the file or directory on which the operation failed; null if the operation has no path.
    pub path: Option<String>,
    /// Error message of the system or of Plimsoll, as a clause.
    pub error: String,
    /// Source location of the failed operation in the workload; null if the operation has no source location.
    pub location: Option<SourcePosition>,
}

impl Failure {
    /// Failure of an activity with the name `activity`, such as `populate`, without worker, path and location.
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

    /// Failure with the number of the rank before the error message; unchanged for rank 0.
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
        let of = |activity: &str, path: Option<&str>| Failure {
            path: path.map(Into::into),
            ..Failure::of(activity, "no space".into())
        };
        let operation = |path, worker: Option<&str>, location| Failure {
            kind: Some(OpKind::ReadWhole),
            worker: worker.map(Into::into),
            location,
            ..of("read1", path)
        };
        let (path, worker, place) = (Some("/w/a"), Some("p-0.1"), || Some(place.clone()));
        for (failure, expected) in [
            (of("run", None), "no space"),
            (of("run", path), "on /w/a: no space"),
            (of("populate", None), "populate: no space"),
            (of("populate", path), "populate on /w/a: no space"),
            (operation(None, None, None), "read1 (read_whole): no space"),
            (
                operation(path, None, None),
                "read1 (read_whole) on /w/a: no space",
            ),
            (
                operation(None, worker, None),
                "read1 (read_whole): no space (worker p-0.1)",
            ),
            (
                operation(None, None, place()),
                "read1 (read_whole): no space (x.f:3:9)",
            ),
            (
                operation(None, worker, place()),
                "read1 (read_whole): no space (worker p-0.1, x.f:3:9)",
            ),
            (of("run", None).at_rank(0), "no space"),
            (of("run", None).at_rank(3), "rank 3: no space"),
            (
                of("populate", None).at_rank(1),
                "populate: rank 1: no space",
            ),
        ] {
            assert_eq!(failure.to_string(), expected);
        }
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
