//! Computation of the figures of a [`Run`] from the measurements.

use crate::client_cache::ClientCache;
use crate::events::{self, RunEvent};
use crate::hooks::CommandRun;
use crate::hosts::HostFigures;
use crate::latency::{LatencyFigures, SummaryLatency, per_second};
use crate::mix::MixFigures;
use crate::percentile::{PercentileFigure, Percentiles};
use crate::promise::{PromiseResult, UnstoredFigures};
use crate::publish::timestamp;
use crate::qualifier::Qualifier;
use crate::run::{
    CompletedFigures, OperationFigures, OperationGroup, Program, Run, Stage, Summary, Target,
    Validity, VariableFigures, Verdict, Window,
};
use crate::schedule::EventSchedule;
use crate::simulation::SimulationFigures;
use crate::standstill::{AgeFigure, StallFigure, gaps_ms, oldest_ms};
use crate::{Document, Environment};
use plimsoll_measure::{
    ClockKind, Gap, InFlightAges, IntervalSummary, Latency, MeasuredWindow, Nanos, OpTotals,
    Outcome, RankStall, StageOutcome, Stall, Stationarity, WindowTotals, WorkersDone,
};
use plimsoll_plan::{Note, OnError, OpKind, Operation, OperationId, Pattern, Plan, Reason};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

/// Input from which the figures of a run are computed.
#[derive(Debug, Clone)]
pub struct MeasuredRun {
    /// Plan that the ranks of the run executed.
    pub plan: Plan,
    /// Target of the run's load; the description of the target is known when the run has ended.
    pub target: Target,
    /// Clock by which the run was measured: real or virtual time.
    pub clock: ClockKind,
    /// Time of day at which the run began.
    pub started: SystemTime,
    /// Machine that ran the Plan, and file system of the work directory.
    pub environment: Environment,
    /// Number of ranks: processes that run the Plan together, or the workers of a pattern in virtual time.
    pub ranks: u32,
    /// Percentiles that the user requested for the tables of the run; `None` for the default percentiles.
    pub percentiles: Option<Percentiles>,
    /// Outcome of the run from the engine: measured windows, failure, notes, and reasons why the result is invalid.
    pub outcome: Outcome,
    /// Commands of the user that ran before and after phases of the run, in order.
    pub commands: Vec<CommandRun>,
    /// Events of the system under test during the run, in order of time, without figures.
    pub events: Vec<RunEvent>,
    /// Summaries of all intervals of the run, from which the effects of the events are computed; empty without events.
    pub summaries: Vec<IntervalSummary>,
}

impl MeasuredRun {
    /// Input for a run of one process and one lane in real time, without measurements.
    #[must_use]
    pub fn new(plan: Plan, target: Target, started: SystemTime) -> Self {
        Self {
            plan,
            target,
            clock: ClockKind::Real,
            started,
            environment: Environment::default(),
            ranks: 1,
            percentiles: None,
            outcome: Outcome {
                lanes: 1,
                ..Outcome::default()
            },
            commands: vec![],
            events: vec![],
            summaries: vec![],
        }
    }

    /// Adds the outcome of the engine to a run, and copies the target's description from the outcome.
    #[must_use]
    pub fn with(self, outcome: Outcome) -> Self {
        let target = Target {
            description: outcome.target.clone(),
            ..self.target
        };
        Self {
            target,
            outcome,
            ..self
        }
    }

    /// Time of day at which the run's clock began; `None` in virtual time and without a window.
    fn clock_start(&self) -> Option<SystemTime> {
        let last = self.outcome.windows.last();
        let window = last.filter(|_| self.clock == ClockKind::Real)?;
        let since_start = Duration::from_nanos(window.totals.start);
        window.started?.checked_sub(since_start)
    }
}

impl Run {
    /// Computes all figures of a run and judges the run.
    ///
    /// A run with a failure has failed; otherwise a run that the user ended was interrupted; otherwise a run with any
    /// reason against it is invalid. Failed operations and hung workers are reasons.
    #[must_use]
    pub fn assemble(measured: MeasuredRun) -> Run {
        let m = measured;
        let promised = m.plan.promises.iter();
        let promised = promised.filter_map(|promise| promise.condition.figure.percentile());
        let kept = Percentiles::kept(m.percentiles.as_ref());
        let kept = Percentiles::new(kept.as_slice().iter().copied().chain(promised));
        let windows = m.outcome.windows.iter();
        let mut windows: Vec<Window> = windows.map(|w| window(&m, w, &kept)).collect();
        let (last, stages) = match m.plan.pattern() {
            Some(pattern) => {
                let mut whole = whole(&m, &kept);
                // Each stage has its own simulation figures and its own rate.
                whole.simulation = None;
                whole.stationarity = None;
                whole.client_cache =
                    ClientCache::sum(windows.iter().filter_map(|w| w.client_cache));
                let windows = std::mem::take(&mut windows);
                (whole, stages(pattern, windows, &m.outcome.stages))
            }
            None => (windows.pop().unwrap_or_default(), vec![]),
        };
        let mix = m.outcome.windows.last().and_then(|w| {
            MixFigures::of(&m.plan, &m.outcome.processes, &w.totals.rows, last.window_s)
        });
        let of_hosts: Vec<_> = m.outcome.windows.iter().map(|w| w.hosts.clone()).collect();
        let hosts = match m.plan.pattern() {
            Some(_) => HostFigures::of_windows(&of_hosts),
            None => HostFigures::of_windows(of_hosts.last().map_or(&[], std::slice::from_ref)),
        };
        let validity = validate(&m, &last);
        let unstored = UnstoredFigures::of(&m.outcome);
        let clock_start = m.clock_start();
        let mut notes = m.plan.notes.clone();
        notes.extend(m.outcome.notes.iter().cloned().map(Note::from));
        notes.extend(HostFigures::slow(&hosts).into_iter().map(Note::from));
        notes.extend(m.events.iter().filter_map(RunEvent::remark).map(Note::from));
        let events = RunEvent::judged(m.events, &m.outcome.windows, &m.summaries);
        let mut run = Run {
            schema_version: Self::SCHEMA,
            workload: m.plan.name.clone(),
            seed: m.plan.seed,
            started_at: rfc3339(m.started),
            window_s: last.window_s,
            validity,
            promises: vec![],
            qualifiers: vec![],
            summary: last.summary,
            stationarity: last.stationarity,
            ruled_waits: m.outcome.ruled_waits,
            operations: last.operations,
            groups: last.groups,
            procedures: last.procedures,
            completion_delay: last.completion_delay,
            percentiles_shown: m.percentiles,
            program: Program::plimsoll(),
            target: m.target,
            clock: m.clock,
            workers: m.plan.workers(),
            lanes: m.outcome.lanes as u64,
            nfs_clients: m.outcome.nfs_clients,
            clock_started_at: clock_start.map(|t| format!("{:.6}", timestamp(t))),
            window_start_s: last.start_s,
            window_number: last.number,
            first_done: last.first_done,
            last_done: last.last_done,
            system: last.system,
            client_cache: last.client_cache,
            earlier_windows: windows,
            ranks: m.ranks,
            hosts,
            starts: m.outcome.starts,
            stages,
            simulation: last.simulation,
            mix,
            schedule: EventSchedule::of(&m.plan, &m.outcome.schedules, last.window_s),
            filesets: m.outcome.populated,
            verification: m.outcome.verification,
            commands: m.commands,
            events,
            failure: m.outcome.failure,
            hung_workers: m.outcome.hung_workers,
            variables: m
                .outcome
                .variables
                .iter()
                .map(VariableFigures::of)
                .collect(),
            notes,
            environment: m.environment,
            plan: m.plan,
        };
        run.judge_promises(&unstored);
        run.judge_circumstances();
        run
    }

    /// Judges the run by the promises of its Plan. A run that was not measured to its end breaks no promise.
    fn judge_promises(&mut self, more: &UnstoredFigures) {
        self.promises = PromiseResult::all(self, more);
        if self.validity.verdict.is_measured() {
            let broken = self.promises.iter().filter_map(PromiseResult::reason);
            self.invalidate(broken.collect());
        }
    }

    /// Adds reasons against the run, which is invalid unless a worse verdict applies.
    fn invalidate(&mut self, reasons: Vec<Reason>) {
        if !reasons.is_empty() && self.validity.verdict == Verdict::Valid {
            self.validity.verdict = Verdict::Invalid;
        }
        self.validity.reasons.extend(reasons);
    }

    /// Adds the reasons of requirements on the run's circumstances, and computes the qualifiers.
    fn judge_circumstances(&mut self) {
        self.invalidate(Qualifier::unmet_requirements(self));
        self.qualifiers = Qualifier::all(self);
    }
}

/// Adds up all windows of a pattern's run to one window, which is as long as all windows together.
fn whole(m: &MeasuredRun, kept: &Percentiles) -> Window {
    let Some((first, others)) = m.outcome.windows.split_first() else {
        return Window::default();
    };
    // Workers finish once per stage, so the sum has no finish times.
    let mut all = WindowTotals {
        done: None,
        ..first.totals.clone()
    };
    for totals in others.iter().map(|w| &w.totals) {
        all.number = totals.number;
        let before = all.end - all.start;
        append_standstill(&mut all, totals, before);
        all.end += totals.end.saturating_sub(totals.start);
        all.abandoned += totals.abandoned;
        for (sum, row) in all.rows.iter_mut().zip(&totals.rows) {
            sum.add(row);
        }
    }
    window(m, &all.into(), kept)
}

/// Adds the gaps and stalls of a window that begins `before` nanoseconds after the start of the summed window `all`.
fn append_standstill(all: &mut WindowTotals, totals: &WindowTotals, before: Nanos) {
    let later = |gap: Gap| Gap {
        from: gap.from + before,
        to: gap.to + before,
    };
    let longer = |mine: &mut Gap, theirs: Gap| {
        if theirs.length() > mine.length() {
            *mine = later(theirs);
        }
    };
    longer(&mut all.gaps.all, totals.gaps.all);
    for (mine, theirs) in all.gaps.rows.iter_mut().zip(&totals.gaps.rows) {
        longer(mine, *theirs);
    }
    all.stalls.extend(totals.stalls.iter().map(|s| Stall {
        gap: later(s.gap),
        ..*s
    }));
    all.rank_stalls
        .extend(totals.rank_stalls.iter().map(|s| RankStall {
            stall: Stall {
                gap: later(s.stall.gap),
                ..s.stall
            },
            ..*s
        }));
}

fn stages(pattern: &Pattern, windows: Vec<Window>, ended: &[StageOutcome]) -> Vec<Stage> {
    let stage = |(window, ended): (Window, &StageOutcome)| {
        let stage = pattern.stages.get(ended.stage as usize)?;
        Some(Stage {
            stage: ended.stage,
            name: stage.name.clone(),
            iteration: stage.iteration,
            window,
            ranks: ended.ranks.clone(),
        })
    };
    windows.into_iter().zip(ended).filter_map(stage).collect()
}

/// An instant as RFC 3339 in UTC, to the millisecond.
fn rfc3339(t: SystemTime) -> String {
    format!("{:.3}", timestamp(t))
}

/// Implicit open rows that no operation of the workload uses explicitly: reads, writes and appends open files in
/// passing.
fn unused_implicit_opens(plan: &Plan) -> BTreeSet<OperationId> {
    let (mut implicit, mut explicit) = (BTreeSet::new(), BTreeSet::new());
    for group in &plan.groups {
        for (row, _, op) in group.program.ops() {
            explicit.insert(row);
            implicit.extend(op.file().and_then(|f| f.implicit_open));
        }
    }
    implicit.difference(&explicit).copied().collect()
}

/// Computes the summary and a row per operation of a Plan for a time of `seconds`, with the percentiles `kept`, but
/// without processor time and gaps.
#[must_use]
pub fn figures(
    plan: &Plan,
    rows: &[OpTotals],
    seconds: f64,
    kept: &Percentiles,
) -> (Summary, Vec<OperationFigures>) {
    let (operations, ..) = tables(plan, rows, &[], seconds, kept);
    (summary(plan, rows, seconds, kept), operations)
}

/// Computes the rows of a window: figures of the workload's operations, of the procedures that the target called on a
/// server, and of the completion delays of an io_uring ring (`None` if no completion was recorded).
fn tables(
    plan: &Plan,
    rows: &[OpTotals],
    gaps: &[Gap],
    seconds: f64,
    kept: &Percentiles,
) -> (
    Vec<OperationFigures>,
    Vec<OperationFigures>,
    Option<OperationFigures>,
) {
    let hidden_if_unused = unused_implicit_opens(plan);
    let local_closes = plan.local_closes();
    let is_row_used = |t: &OpTotals| t.ops + t.error_count() + t.in_flight.count() > 0;
    let (mut operations, mut procedures, mut delay) = (vec![], vec![], None);
    for (id, (op, t)) in (0..).zip(plan.operations.iter().zip(rows)) {
        let gap = gaps.get(id as usize).copied();
        let figures = |gap| operation(op, t, gap, seconds, kept);
        let is_used = is_row_used(t);
        let is_hidden = matches!(op.kind, OpKind::Prepare | OpKind::LocalClose)
            || hidden_if_unused.contains(&OperationId(id))
            // All closes of the row are local.
            || local_closes[id as usize].is_some_and(|local| is_row_used(&rows[local.0 as usize]));
        match op.kind {
            OpKind::Rpc if is_used => procedures.push(figures(gap)),
            OpKind::CompletionDelay if is_used => delay = Some(figures(None)),
            // Start delays of paced operations are no row of their own: the figures of the operation mix contain start
            // delays.
            OpKind::Start => {}
            kind if kind.is_of_workload() && (is_used || !is_hidden) => {
                operations.push(figures(gap));
            }
            _ => {}
        }
    }
    (operations, procedures, delay)
}

fn operation(
    op: &Operation,
    t: &OpTotals,
    gap: Option<Gap>,
    seconds: f64,
    kept: &Percentiles,
) -> OperationFigures {
    let service = (t.paced > 0).then_some(&t.service);
    let (longest_gap_ms, likely_gap_ms) = gap
        .map(|gap| gaps_ms(gap, seconds, t.ops + t.error_count()))
        .unzip();
    OperationFigures {
        name: op.name.clone(),
        kind: op.kind,
        class: op.kind.class(),
        ops: t.ops,
        ops_per_s: per_second(t.ops, seconds),
        bytes: t.bytes,
        bytes_per_s: per_second(t.bytes, seconds),
        latency: LatencyFigures::of(t.latency(), &t.in_flight),
        paced_ops: t.paced,
        service: service.map(|s| LatencyFigures::of(s, &t.in_flight)),
        percentiles: PercentileFigure::all(kept, t.latency(), service, &t.in_flight),
        cpu_us_per_op: t.cpu_us_per_op(),
        errors: t.error_count(),
        error_codes: t.errors.clone(),
        in_flight: t.in_flight.count(),
        oldest_in_flight_ms: oldest_ms(&t.in_flight),
        in_flight_ages: AgeFigure::all(&t.in_flight),
        max_gap_ms: longest_gap_ms,
        expected_max_gap_ms: likely_gap_ms,
        confidence: None,
    }
}

/// Groups of similar rows of `operations`.
fn groups(
    plan: &Plan,
    rows: &[OpTotals],
    operations: &[OperationFigures],
    seconds: f64,
    kept: &Percentiles,
) -> Vec<OperationGroup> {
    let mut groups: Vec<OperationGroup> = vec![];
    for first in operations {
        if groups.iter().any(|g| g.contains(first.kind, &first.name)) {
            continue;
        }
        let name = OperationGroup::name_of(&first.name);
        let is_similar = |kind, other| (kind, OperationGroup::name_of(other)) == (first.kind, name);
        let similar = operations.iter().filter(|o| is_similar(o.kind, &o.name));
        let similar = similar.count() as u64;
        if similar < 2 {
            continue;
        }
        let mut sum = OpTotals::default();
        let all = plan.operations.iter().zip(rows);
        let all = all.filter(|(o, _)| is_similar(o.kind, &o.name));
        all.for_each(|(_, totals)| sum.add(totals));
        let together = Operation {
            name: name.to_owned(),
            kind: first.kind,
            location: None,
        };
        groups.push(OperationGroup {
            rows: similar,
            figures: operation(&together, &sum, None, seconds, kept),
        });
    }
    groups
}

fn window(measured: &MeasuredRun, window: &MeasuredWindow, kept: &Percentiles) -> Window {
    let plan = &measured.plan;
    let (totals, system) = (&window.totals, &window.system);
    let length = totals.end.saturating_sub(totals.start);
    let seconds = length as f64 / 1e9;
    let (rows, gaps) = (&totals.rows, &totals.gaps.rows);
    let (mut operations, procedures, completion_delay) = tables(plan, rows, gaps, seconds, kept);
    let mut groups = match plan.pattern() {
        None => groups(plan, rows, &operations, seconds, kept),
        Some(_) => vec![],
    };
    let mut summary = summary(plan, rows, seconds, kept);
    // Stages of a pattern are as long as their work, and have no long-term figures.
    if plan.pattern().is_none() && summary.ops > 0 {
        let of_rows = |is_chosen: &dyn Fn(&Operation) -> bool| {
            let of_row = |row: usize| is_chosen(&plan.operations[row]);
            totals.batches.confidence(of_row, length)
        };
        summary.confidence = Some(of_rows(&|o| o.kind.counts()));
        let of_own = |is_own: &dyn Fn(&Operation) -> bool| {
            Some(of_rows(is_own)).filter(|own| own.doubt.is_none())
        };
        for row in &mut operations {
            row.confidence = of_own(&|o| (o.kind, &o.name) == (row.kind, &row.name));
        }
        for group in &mut groups {
            group.figures.confidence = of_own(&|o| group.contains(o.kind, &o.name));
        }
    }
    if !gaps.is_empty() {
        let (longest, likely) = gaps_ms(totals.gaps.all, seconds, summary.ops + summary.errors);
        summary.max_gap_ms = Some(longest);
        summary.expected_max_gap_ms = Some(likely);
    }
    summary.stalls = StallFigure::all(totals);
    summary.abandoned = totals.abandoned;
    if summary.ops > 0 && plan.cpu_accounting {
        let cpu_s = system.process.as_ref().map(|p| p.cpu_s());
        summary.cpu_us_per_op = cpu_s.map(|s| s * 1e6 / summary.ops as f64);
    }
    let (first_done, last_done) = done(plan, totals, &summary).unzip();
    let simulated = window.simulated.as_ref();
    let simulation =
        simulated.map(|s| SimulationFigures::of(s, plan, |row| rows[row as usize].ops));
    Window {
        number: totals.number,
        start_s: totals.start as f64 / 1e9,
        window_s: seconds,
        summary,
        stationarity: Stationarity::of(&totals.counts, length),
        operations,
        groups,
        procedures,
        completion_delay,
        first_done,
        last_done,
        system: system.clone(),
        client_cache: ClientCache::of(plan, rows, system, &measured.environment),
        simulation,
    }
}

/// Figures of all workers at the first and at the last finish of a worker; `None` for a single worker, and if a worker
/// did not finish in the window.
fn done(
    plan: &Plan,
    totals: &WindowTotals,
    all: &Summary,
) -> Option<(CompletedFigures, CompletedFigures)> {
    let several = |d: &WorkersDone| d.workers > 1 && d.workers == plan.workers();
    let d = totals.done.filter(several)?;
    let at = |after, ops: u64, bytes: u128| {
        let after_s = after as f64 / 1e9;
        CompletedFigures {
            after_s,
            ops,
            ops_per_s: per_second(ops, after_s),
            bytes,
            bytes_per_s: per_second(bytes, after_s),
        }
    };
    Some((
        at(d.first, d.first_ops, d.first_bytes),
        at(d.last, all.ops, all.bytes),
    ))
}

fn summary(plan: &Plan, rows: &[OpTotals], seconds: f64, kept: &Percentiles) -> Summary {
    let rows = || plan.operations.iter().map(|o| o.kind).zip(rows);
    let counted = || rows().filter(|(kind, _)| kind.counts()).map(|(_, t)| t);
    let paced_ops: u64 = counted().map(|t| t.paced).sum();
    let sum = |pick: fn(&OpTotals) -> &Latency| {
        let mut sum = Latency::default();
        counted().for_each(|t| sum.add(pick(t)));
        sum
    };
    let all = sum(OpTotals::latency);
    let service = (paced_ops > 0).then(|| sum(|t| &t.service));
    let mut ages = InFlightAges::default();
    counted().for_each(|t| ages.merge(&t.in_flight));
    let latency = SummaryLatency::of(&all, &ages);
    let ops: u64 = counted().map(|t| t.ops).sum();
    let bytes: u128 = counted().map(|t| t.bytes).sum();
    let ops_where = |wanted: fn(OpKind) -> bool| -> u64 {
        let found = rows().filter(|(kind, _)| wanted(*kind));
        found.map(|(_, t)| t.ops).sum()
    };
    Summary {
        ops,
        ops_per_s: per_second(ops, seconds),
        bytes,
        bytes_per_s: per_second(bytes, seconds),
        mean_ms: latency.mean_ms,
        p50_ms: latency.p50_ms,
        p99_ms: latency.p99_ms,
        paced_ops,
        service: service.as_ref().map(|s| SummaryLatency::of(s, &ages)),
        percentiles: PercentileFigure::all(kept, &all, service.as_ref(), &ages),
        // Errors of procedures are left out: the operations that call the procedures already count the errors.
        errors: rows()
            .filter(|(kind, _)| kind.is_of_workload())
            .map(|(_, t)| t.error_count())
            .sum(),
        reads_per_s: per_second(ops_where(OpKind::reads), seconds),
        writes_per_s: per_second(ops_where(OpKind::writes), seconds),
        in_flight: ages.count(),
        oldest_in_flight_ms: oldest_ms(&ages),
        ..Summary::default()
    }
}

fn validate(m: &MeasuredRun, last: &Window) -> Validity {
    let mut reasons = Vec::new();
    let mut say = |code: &str, text: String| reasons.push(Reason::new(code, text));
    let outcome = &m.outcome;
    if let Some(failure) = &outcome.failure {
        say("failed", failure.to_string());
    }
    if outcome.interrupted {
        say("interrupted", "stopped before its end".into());
    }
    let said = |code: &str| outcome.reasons.iter().any(|r| r.code == code);
    let explained = said("no_window") || said("fileset_exhausted");
    if outcome.windows.is_empty() && outcome.failure.is_none() && !outcome.interrupted && !explained
    {
        say("no_window", "no window was measured".into());
    }
    if m.plan.options.on_error == OnError::Count && last.summary.errors > 0 && !said("errors") {
        say(
            "errors",
            format!("{} operations failed", last.summary.errors),
        );
    }
    if !outcome.hung_workers.is_empty() && !said("hung_workers") {
        let workers = outcome.hung_workers.join(", ");
        say(
            "hung_workers",
            format!("still in an operation long after the end: {workers}"),
        );
    }
    if let Some(text) = events::failures(&m.events) {
        say("event_failed", text);
    }
    reasons.extend(outcome.reasons.iter().cloned());
    let verdict = if outcome.failure.is_some() {
        Verdict::Failed
    } else if outcome.interrupted {
        Verdict::Interrupted
    } else if reasons.is_empty() {
        Verdict::Valid
    } else {
        Verdict::Invalid
    };
    Validity { verdict, reasons }
}

#[cfg(test)]
mod tests;
