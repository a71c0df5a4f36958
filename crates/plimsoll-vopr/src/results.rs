//! The results directory of a scenario, written as the program writes its own, and read again when all is over:
//! whatever happened to the processes, it is whole and states how the run ended.

use crate::execution::{Shared, with};
use crate::violation::{Violation, must};
use plimsoll_engine::Outcome;
use plimsoll_measure::system::SystemUse;
use plimsoll_measure::{Interval, OpTotals};
use plimsoll_plan::Plan;
use plimsoll_results::{
    ClockKind, IntervalRow, MeasuredRun, Run, RunDir, RunWriter, Target, Verdict, recover,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tempfile::TempDir;

/// Results that rank 0 writes. They outlive its process, as files do: its threads, which never end if it is killed, only
/// share them.
#[derive(Clone)]
pub(crate) struct ResultsFiles(Shared<Option<Results>>);

struct Results {
    plan: Plan,
    writer: Option<RunWriter>,
    intervals: Vec<Interval>,
    published: Option<(RunDir, Box<Run>)>,
    /// After the writer, which removes its own.
    root: TempDir,
}

impl ResultsFiles {
    /// Begins the results of a run of this number of ranks.
    pub(crate) fn begin(plan: &Plan, ranks: u32) -> Self {
        let root = tempfile::tempdir().expect("there is a temporary directory");
        let started = plimsoll_runtime::simulated_epoch();
        let writer = RunWriter::create(root.path(), plan, started, ClockKind::Real);
        let mut writer = writer.expect("the temporary directory is writable");
        writer.draft(&draft(plan, ranks)).expect("as above");
        Self(Arc::new(Mutex::new(Some(Results {
            plan: plan.clone(),
            writer: Some(writer),
            intervals: vec![],
            published: None,
            root,
        }))))
    }

    fn with<R>(&self, change: impl FnOnce(&mut Results) -> R) -> R {
        with(&self.0, |results| {
            change(results.as_mut().expect("they end when the run has ended"))
        })
    }

    /// Appends an interval.
    pub(crate) fn interval(&self, interval: &Interval) {
        self.with(|results| {
            let writer = results.writer.as_mut().expect("intervals end before");
            writer
                .interval(interval)
                .expect("the directory is writable");
            results.intervals.push(interval.clone());
        });
    }

    /// Publishes the results of a run that is over.
    pub(crate) fn publish(&self, outcome: &Outcome) {
        self.with(|results| {
            let run = assembled(&results.plan, outcome);
            let writer = results.writer.take().expect("a run is over once");
            let dir = writer.finish(&run).expect("the directory is writable");
            results.published = Some((dir, Box::new(run)));
        });
    }

    /// Reads them, when all processes have ended.
    pub(crate) fn end(self) -> ResultsEnd {
        let results = with(&self.0, Option::take);
        results.expect("the run ends once").end()
    }
}

impl Results {
    /// What was published, or what is made of what a killed process left.
    fn end(mut self) -> ResultsEnd {
        let (dir, written) = match self.published.take() {
            Some((dir, run)) => (Ok(dir), Some(run)),
            None => (self.recovered(), None),
        };
        let read = dir.and_then(|dir| {
            let run = dir.read().map_err(|e| e.to_string())?;
            let rows = dir.read_intervals().map_err(|e| e.to_string())?;
            Ok((Box::new(run), rows))
        });
        ResultsEnd {
            intervals: self.intervals,
            written,
            read,
        }
    }

    /// The writer of a process that was killed holds a lock, but not on copies.
    fn recovered(&mut self) -> Result<RunDir, String> {
        let left = self.root.path().join(".plimsoll-copied");
        let writer = self.writer.as_mut().expect("nothing was published");
        writer.flush().expect("the directory is writable");
        copy(writer.path(), &left);
        let mut found = recover(&left).map_err(|e| e.to_string())?;
        found.remove(0).map_err(|e| e.to_string())
    }
}

/// Copies a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("the temporary directory is writable");
    let entries = std::fs::read_dir(from).expect("the directory is there");
    for entry in entries.map(|entry| entry.expect("the directory is there")) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
            continue;
        }
        std::fs::copy(from, to).expect("the temporary directory is writable");
    }
}

/// What became of the results.
#[derive(Debug, Clone)]
pub struct ResultsEnd {
    /// The intervals that were written.
    pub intervals: Vec<Interval>,
    /// What was published; `None` if the process was killed, or its run had no outcome.
    pub written: Option<Box<Run>>,
    /// What is read of the directory, with the rows of its intervals.
    pub read: Result<(Box<Run>, Vec<IntervalRow>), String>,
}

/// What results hold of the target.
pub(crate) fn target(description: String) -> Target {
    Target {
        url: "simulated".into(),
        description,
        system: None,
        testbed: None,
    }
}

fn measured(plan: &Plan, description: String) -> MeasuredRun {
    MeasuredRun::new(plan.clone(), target(description), SystemTime::UNIX_EPOCH)
}

/// The results of a run that begins.
pub(crate) fn draft(plan: &Plan, ranks: u32) -> Run {
    Run::assemble(MeasuredRun {
        ranks,
        interrupted: true,
        ..measured(plan, String::new())
    })
}

/// The results of a run from its outcome.
pub(crate) fn assembled(plan: &Plan, outcome: &Outcome) -> Run {
    let windows = outcome.windows.iter();
    Run::assemble(MeasuredRun {
        windows: windows
            .map(|w| (w.totals.clone(), SystemUse::default()))
            .collect(),
        verification: outcome.verification.clone(),
        failure: outcome.failure.clone(),
        interrupted: outcome.interrupted,
        reasons: outcome.reasons.clone(),
        stuck: outcome.stuck.clone(),
        processes: outcome.processes.clone(),
        populated: outcome.populated.clone(),
        ..measured(plan, outcome.target.clone())
    })
}

/// Operations, bytes and errors of a row in a window.
type Figures = (u64, u64, u64);

/// Checks what is read.
pub(crate) fn check(plan: &Plan, end: &ResultsEnd) -> Result<(), Violation> {
    let (run, rows) = end.read.as_ref().map_err(|e| Violation {
        rule: "results can be read",
        what: e.clone(),
    })?;
    if let Some(written) = &end.written {
        must!(
            "results are those that were written",
            run == written,
            "{run:?}, not {written:?}"
        );
    } else {
        must!(
            "results of a killed run are interrupted",
            run.validity.verdict == Verdict::Interrupted,
            "{:?}",
            run.validity
        );
    }
    let mut passed = BTreeMap::<(u32, &str), Figures>::new();
    let add = |sum: &mut Figures, (ops, bytes, errors): Figures| {
        *sum = (sum.0 + ops, sum.1 + bytes, sum.2 + errors);
    };
    for interval in &end.intervals {
        for (operation, totals) in plan.operations.iter().zip(&interval.rows) {
            let sum = passed.entry((interval.window, &operation.name));
            add(sum.or_default(), figures(totals));
        }
    }
    passed.retain(|_, figures| *figures != Figures::default());
    let mut read = BTreeMap::<(u32, &str), Figures>::new();
    for row in rows {
        let sum = read.entry((row.window, &row.operation)).or_default();
        add(sum, (row.ops, row.bytes, row.errors));
    }
    must!(
        "results have every interval",
        read == passed,
        "{read:?}, not {passed:?}"
    );
    if end.written.is_none() {
        for operation in &run.operations {
            let sum = passed.get(&(run.window_number, operation.name.as_str()));
            let found = (operation.ops, operation.bytes, operation.errors);
            must!(
                "what a killed run has measured is in its results",
                found == sum.copied().unwrap_or_default(),
                "{}: {found:?}, not {sum:?}",
                operation.name
            );
        }
    }
    Ok(())
}

fn figures(totals: &OpTotals) -> Figures {
    (totals.ops, totals.bytes, totals.error_count())
}
