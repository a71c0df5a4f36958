//! Rules for the calls of closed-loop workers: the calls follow the worker's program, and a worker pauses only while it
//! waits for other workers.

use crate::check::{DELAY_NS, MAX_LATENESS_NS};
use crate::execution::{Execution, bounds};
use crate::files::FilesSpec;
use crate::scenario::Scenario;
use crate::violation::{Violation, must};
use crate::workload::{Load, Step, ThreadsSpec};
use plimsoll_target::simulated::{Call, CallKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Calls of the workers to the target, in the order of the calls, by session number.
type Sessions<'a> = BTreeMap<u64, Vec<&'a Call>>;

/// Checks the calls of the workers of closed loops, if the target keeps files.
pub(crate) fn check(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    let Load::Threads(threads) = &scenario.workload.load else {
        return Ok(());
    };
    let (Some(spec), Some(end)) = (&scenario.files, &execution.files) else {
        return Ok(());
    };
    // The verification of contents makes additional calls.
    if spec.verifies {
        return Ok(());
    }
    let mut sessions = Sessions::new();
    for call in end.calls.iter().filter(|call| call.of_load) {
        sessions.entry(call.session).or_default().push(call);
    }
    check_order(threads, spec, &sessions)?;
    check_pauses(scenario, spec, execution, threads, &sessions)
}

/// A call at a position of a program.
#[derive(Debug, Clone, Copy)]
struct Position {
    kind: CallKind,
    /// Whether the program may omit the call.
    is_optional: bool,
    /// Whether the program may repeat the call.
    repeats: bool,
    /// Whether the worker has an open file before the call.
    has_open: bool,
    /// Number of positions by which the program advances if the call fails.
    after_failure: usize,
}

impl Position {
    fn once(kind: CallKind) -> Self {
        Self {
            kind,
            is_optional: false,
            repeats: false,
            has_open: false,
            after_failure: 1,
        }
    }

    /// An open call, followed by `further` calls on the open file. A failed open omits the further calls.
    fn opening(further: usize) -> Self {
        Self {
            after_failure: 1 + further,
            ..Self::once(CallKind::Open)
        }
    }

    fn on_open_file(kind: CallKind) -> Self {
        Self {
            has_open: true,
            ..Self::once(kind)
        }
    }
}

/// The calls of a workload's programs, derived from the documentation of the steps.
struct Model<'a> {
    threads: &'a ThreadsSpec,
    /// Whether every file is complete at any time.
    has_whole_files: bool,
    /// Whether a file may be longer than a read, or a read shorter than the file.
    has_more_reads: bool,
    /// Whether all files may be open at the same time, so that no file can be deleted.
    may_keep_all: bool,
}

impl<'a> Model<'a> {
    fn new(threads: &'a ThreadsSpec, spec: &FilesSpec) -> Self {
        Self {
            threads,
            // A new file is empty, and a file whose write failed stays empty.
            has_whole_files: spec.is_sound() && !threads.has(Step::Replace),
            has_more_reads: threads.has(Step::Append) || spec.faults.short_reads > 0,
            // From 8 files per worker on, a closed file always exists, although only four in five files exist at the
            // start, each rank has only a part of the files, and each worker may open a file and delete a file.
            may_keep_all: threads.files < 8 * threads.workers(),
        }
    }

    /// Calls to the target that a step of a worker's program makes, as positions in the program.
    fn positions(&self, step: Step) -> Vec<Position> {
        use CallKind::{Close, Read, Stat, Sync, Unlink, Write};
        match step {
            Step::Delay => vec![],
            Step::Stat => vec![Position::once(Stat)],
            // The read at the end of the file is the last read.
            Step::ReadWhole => {
                let first = Position {
                    after_failure: 2,
                    ..Position::on_open_file(Read)
                };
                let further = Position {
                    is_optional: !self.has_whole_files,
                    repeats: self.has_more_reads,
                    ..Position::on_open_file(Read)
                };
                let close = Position::on_open_file(Close);
                vec![Position::opening(3), first, further, close]
            }
            Step::Replace => {
                let delete = Position {
                    is_optional: self.may_keep_all,
                    ..Position::once(Unlink)
                };
                let on_file = [Write, Close].map(Position::on_open_file);
                vec![delete, Position::opening(2), on_file[0], on_file[1]]
            }
            Step::Append => {
                let on_file = [Write, Sync, Close].map(Position::on_open_file);
                let mut all = vec![Position::opening(3)];
                all.extend(on_file);
                all
            }
        }
    }

    /// The programs of the kinds of threads in the workload.
    fn programs(&self) -> Vec<Vec<Position>> {
        let kinds = self.threads.threads.iter().filter(|(n, _)| *n > 0);
        let program = |steps: &[Step]| steps.iter().flat_map(|s| self.positions(*s)).collect();
        kinds.map(|(_, steps)| program(steps)).collect()
    }
}

/// Number of leading calls that follow a program, which is executed repeatedly. A worker may end at any position, and
/// then closes its open file.
fn followed(program: &[Position], calls: &[&Call]) -> usize {
    // Possible positions of the next call: several after optional or repeated calls.
    let mut next = BTreeSet::from([0]);
    for (number, call) in calls.iter().enumerate() {
        let before = std::mem::take(&mut next);
        for from in before.iter().copied() {
            let mut at = from;
            // At most one round through the program, although a program with only optional calls is never drawn.
            for _ in program {
                let position = program[at];
                if position.kind == call.kind {
                    let step = if call.error.is_some() {
                        position.after_failure
                    } else {
                        1
                    };
                    next.insert((at + step) % program.len());
                    if position.repeats && call.error.is_none() {
                        next.insert(at);
                    }
                }
                if !position.is_optional {
                    break;
                }
                at = (at + 1) % program.len();
            }
        }
        if next.is_empty() {
            let is_last = number + 1 == calls.len() && call.kind == CallKind::Close;
            let closes = is_last && before.iter().any(|at| program[*at].has_open);
            return number + usize::from(closes);
        }
    }
    calls.len()
}

/// The calls of each session follow a program of the workload, regardless of faults and disturbances: a failed call
/// omits the calls that need its result, and a killed, interrupted or hung worker ends in the middle. The thread of a
/// session is unknown, so any program may fit.
fn check_order(
    threads: &ThreadsSpec,
    spec: &FilesSpec,
    sessions: &Sessions<'_>,
) -> Result<(), Violation> {
    let programs = Model::new(threads, spec).programs();
    for (session, calls) in sessions {
        let fits = programs.iter().map(|program| followed(program, calls));
        let best = fits.max().unwrap_or(0);
        let kinds = |range: Range<usize>| -> Vec<_> {
            let calls = &calls[range.start..range.end.min(calls.len())];
            calls.iter().map(|c| (c.kind, c.error)).collect()
        };
        must!(
            "workers follow their program",
            best == calls.len(),
            "session {session}: {:?} at {} ns after {:?}",
            kinds(best..best + 1),
            calls[best].at_ns,
            kinds(best.saturating_sub(8)..best)
        );
    }
    Ok(())
}

/// The longest time between two calls of a worker that only opens files and requests attributes, in nanoseconds. While
/// the worker waits for a file, another worker of its rank releases a file within the time of one call, and waiting
/// workers get files in order of arrival.
fn longest_pause_ns(scenario: &Scenario, spec: &FilesSpec, threads: &ThreadsSpec) -> u64 {
    let slowest = spec.faults.slow.map_or(1, |(_, factor)| factor);
    let call = spec.faults.latency_ns * slowest + MAX_LATENESS_NS;
    let workers = threads.workers().div_ceil(scenario.ranks.into());
    let delays = |(_, steps): &(u32, Vec<Step>)| {
        let delays = steps.iter().filter(|step| **step == Step::Delay);
        delays.count() as u64
    };
    let delays = threads.threads.iter().map(delays).max().unwrap_or(0);
    (workers + 1) * call + delays * (DELAY_NS + MAX_LATENESS_NS)
}

/// Every worker continues while the window is open, as fast as other workers permit.
fn check_pauses(
    scenario: &Scenario,
    spec: &FilesSpec,
    execution: &Execution,
    threads: &ThreadsSpec,
    sessions: &Sessions<'_>,
) -> Result<(), Violation> {
    // Pauses have no simple bound if workers create and delete files: deletion searches for a closed file and may wait
    // at each candidate, and creation waits for deletions, which need a closed file.
    let faults = &spec.faults;
    let is_silent = faults.outage_ns.is_some() || faults.silent_from_ns.is_some();
    let waits_longer = threads.has(Step::Replace) || is_silent;
    // The bounds of windows are times of day.
    let has_own_end = threads.ops.is_some() || scenario.has_other_clocks();
    if waits_longer || has_own_end {
        return Ok(());
    }
    let Some(open) = common_window(execution) else {
        return Ok(());
    };
    let most = longest_pause_ns(scenario, spec, threads);
    if open.end.saturating_sub(open.start) > most {
        let (seen, workers) = (sessions.len() as u64, threads.workers());
        must!(
            "every worker goes on",
            seen == workers,
            "{seen} of {workers} workers have made a call"
        );
    }
    for (session, calls) in sessions {
        let inside = calls.iter().map(|c| c.at_ns).filter(|at| open.contains(at));
        let ends = inside.chain([open.end]);
        let mut last = open.start;
        for at in ends {
            must!(
                "every worker goes on",
                at.saturating_sub(last) <= most,
                "session {session}: no call from {last} to {at} ns, at most {most} ns"
            );
            last = at;
        }
    }
    Ok(())
}

/// The time in which the last windows of all ranks are open, before the first disturbance; `None` if a rank has no
/// window, has failed, or has no more files.
fn common_window(execution: &Execution) -> Option<Range<u64>> {
    let mut common = 0..u64::MAX;
    for rank in &execution.ranks {
        let outcome = rank.as_ref()?.outcome.as_ref().ok()?;
        if outcome.failure.is_some() || outcome.ran_out.is_some() {
            return None;
        }
        let window = bounds(outcome.windows.last()?);
        common = common.start.max(window.start)..common.end.min(window.end);
    }
    let first = execution.applied.iter().flatten().min();
    common.end = common.end.min(first.copied().unwrap_or(u64::MAX));
    Some(common)
}
