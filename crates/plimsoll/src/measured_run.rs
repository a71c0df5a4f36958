//! From what the engine hands back to the results.

use plimsoll_engine::Outcome;
use plimsoll_measure::WindowTotals;
use plimsoll_plan::{Note, Plan};
use plimsoll_results::{
    ClockKind, Environment, Failure, MeasuredRun, Percentiles, Populated, ProcessCounts, Reason,
    Target, VariableFigures,
};
use std::time::SystemTime;

/// What is known of a run besides its outcome.
#[derive(Clone)]
pub struct RunMetadata {
    /// What was run.
    pub plan: Plan,
    /// Target as it was asked for.
    pub target: String,
    /// Clock of the run.
    pub clock: ClockKind,
    /// When the run began.
    pub started: SystemTime,
    /// Where the run took place.
    pub environment: Environment,
    /// Processes that run together.
    pub ranks: u32,
    /// Requested percentiles.
    pub percentiles: Option<Percentiles>,
}

/// Puts an outcome into the form that figures are computed from.
pub fn measured(outcome: Outcome, c: RunMetadata) -> MeasuredRun {
    let note = |text: String| Note {
        text,
        location: None,
    };
    let notes = outcome.notes.into_iter().map(note).collect();
    let text = |s: String| (!s.is_empty()).then_some(s);
    MeasuredRun {
        plan: c.plan,
        target: Target {
            url: c.target,
            description: outcome.target,
        },
        clock: c.clock,
        lanes: outcome.lanes as u64,
        started: c.started,
        windows: outcome
            .windows
            .into_iter()
            .map(|w| (w.totals, w.system))
            .collect(),
        ranks: c.ranks,
        percentiles: c.percentiles,
        stages: outcome
            .stages
            .into_iter()
            .map(|s| (s.stage, s.ranks))
            .collect(),
        processes: outcome
            .processes
            .iter()
            .map(|p| ProcessCounts {
                group: p.group,
                scheduled: p.due,
                completed: p.done,
                dropped: p.missed,
            })
            .collect(),
        populated: outcome
            .populated
            .into_iter()
            .map(|p| Populated {
                fileset: p.fileset,
                files: p.files,
                dirs: p.dirs,
                bytes: p.bytes,
                seconds: p.time.as_secs_f64(),
                reused: p.reused,
            })
            .collect(),
        // Added by whoever writes them.
        commands: vec![],
        failure: outcome.failure.map(|f| Failure {
            operation: f.operation,
            kind: f.kind,
            worker: text(f.worker),
            path: text(f.path),
            error: f.error,
            location: f.place,
        }),
        interrupted: outcome.interrupted,
        reasons: outcome
            .reasons
            .into_iter()
            .map(|r| Reason {
                code: r.code.into(),
                text: r.text,
            })
            .collect(),
        stuck: outcome.stuck,
        notes,
        variables: outcome
            .variables
            .into_iter()
            .map(|v| VariableFigures {
                draws: v.stats.count,
                mean: v.stats.mean,
                sigma: v.stats.deviation(),
                name: v.name,
            })
            .collect(),
        environment: c.environment,
    }
}

/// What the workers of this rank measured, of what all ranks measured together.
pub fn own(all: &MeasuredRun, own: Vec<WindowTotals>, lanes: usize) -> MeasuredRun {
    let mut mine = all.clone();
    mine.lanes = lanes as u64;
    // The counters are those of all ranks.
    mine.environment.read_source = None;
    for ((totals, _), own) in mine.windows.iter_mut().zip(own) {
        *totals = own;
    }
    for (_, ranks) in &mut mine.stages {
        ranks.truncate(1);
    }
    mine
}

/// The outcome of a run that ended in an error that is no operation's.
pub fn failed(what: &str, error: String) -> Outcome {
    Outcome {
        failure: Some(plimsoll_engine::Failure {
            operation: what.into(),
            kind: None,
            worker: String::new(),
            path: String::new(),
            error,
            place: None,
        }),
        ..Outcome::default()
    }
}
