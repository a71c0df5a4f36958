//! Rules for an execution, by an independent calculation.

use crate::execution::Execution;
use crate::scenario::{DisturbanceKind, Scenario};
use crate::violation::{Violation, must};
use crate::workload::{FILE_BYTES, Load, MixSpec, Step};
use crate::{concurrent, ends, files, pattern, results, sessions, stalls};
use plimsoll_engine::Outcome;
use plimsoll_measure::{Interval, OpTotals, WindowTotals};
use plimsoll_plan::{FilesetId, Layout, OpKind};
use plimsoll_runtime::SimulationEnd;

/// Maximum excess over the null target's latency, in nanoseconds: turns of other threads of the simulation, and of
/// other workers of the lane.
pub(crate) const MAX_LATENESS_NS: u64 = 500_000;

/// Maximum number of calls of an operation of a mix, with its preparation.
const CALLS_OF_MIX: u64 = 5;

/// Length of a delay step in nanoseconds.
pub(crate) const DELAY_NS: u64 = 3_000_000;

/// Checks an execution.
///
/// # Errors
/// The first broken rule.
pub fn check(scenario: &Scenario, execution: &Execution) -> Result<(), Violation> {
    check_simulation(&execution.end, &execution.panics)?;
    concurrent::check(scenario, execution)?;
    if concurrent::refuses_ranks(execution) {
        return Ok(());
    }
    if let Some(of_ranks) = concurrent::of_ranks(execution) {
        return check(scenario, &of_ranks);
    }
    ends::check_ranks(scenario, execution)?;
    if let Some(end) = &execution.results {
        results::check(scenario, execution, end)?;
    }
    sessions::check(scenario, execution)?;
    if let Some(spec) = &scenario.files {
        files::check(scenario, spec, execution)?;
    }
    let Some(root) = &execution.ranks[0] else {
        return Ok(());
    };
    let Ok(outcome) = &root.outcome else {
        return Ok(());
    };
    check_figures(scenario, execution, outcome, &root.intervals)?;
    if let Load::Pattern(spec) = &scenario.workload.load {
        pattern::check(scenario, spec, execution, outcome)?;
    }
    check_utilisation(scenario, execution, outcome, &root.intervals)?;
    check_progress(scenario, execution, outcome, &root.intervals)?;
    stalls::check(scenario, execution, outcome)?;
    ends::check_window(scenario, execution, outcome)?;
    check_limit(scenario, execution, outcome)
}

/// All processes of a simulation end, and none panics.
pub(crate) fn check_simulation(end: &SimulationEnd, panics: &[String]) -> Result<(), Violation> {
    must!("no panic", panics.is_empty(), "{}", panics.join("\n"));
    must!(
        "everything ends",
        *end == SimulationEnd::Finished,
        "{end:?}"
    );
    Ok(())
}

/// The measurements match the workload.
pub(crate) fn check_figures(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
    intervals: &[Interval],
) -> Result<(), Violation> {
    for window in &outcome.windows {
        check_sums(scenario, &window.totals, intervals)?;
        check_latencies(scenario, execution, &window.totals)?;
        check_bytes(scenario, execution, &window.totals)?;
    }
    check_rate(scenario, execution, outcome)
}

/// Intervals follow each other and add up to the window, row by row.
fn check_sums(
    scenario: &Scenario,
    window: &WindowTotals,
    all: &[Interval],
) -> Result<(), Violation> {
    let intervals: Vec<&Interval> = all.iter().filter(|i| i.window == window.number).collect();
    let length = scenario.interval_ms * 1_000_000;
    // An interval without completions may be missing.
    let mut next = 0;
    for interval in &intervals {
        must!(
            "intervals follow each other",
            interval.index >= next && interval.start == interval.index * length,
            "index {}, start {}, after index {next}",
            interval.index,
            interval.start
        );
        next = interval.index + 1;
        let is_last = interval.index == intervals.last().map_or(0, |last| last.index);
        must!(
            "intervals have the length that was chosen",
            interval.length == length || is_last && interval.length < length,
            "index {}: {} ns",
            interval.index,
            interval.length
        );
    }
    for (row, totals) in window.rows.iter().enumerate() {
        let mut sum = OpTotals::default();
        intervals.iter().for_each(|i| sum.add(&i.rows[row]));
        let figures = |t: &OpTotals| {
            (
                t.ops,
                t.bytes,
                t.error_count(),
                t.service.count(),
                t.service.sum(),
            )
        };
        must!(
            "intervals add up to the window",
            figures(&sum) == figures(totals),
            "row {row}: {:?} in intervals, {:?} in the window",
            figures(&sum),
            figures(totals)
        );
        let counted: u64 = totals
            .service
            .histogram()
            .iter_recorded()
            .map(|v| v.count_at_value())
            .sum();
        must!(
            "histograms hold every operation",
            counted == totals.ops && totals.service.count() == totals.ops,
            "row {row}: {counted} in the histogram, {} operations",
            totals.ops
        );
    }
    Ok(())
}

/// Maximum number of calls to the target of one operation called `name`: 2 for a whole-file read, whose last read
/// returns end of file.
fn calls(name: &str) -> u64 {
    match name.starts_with("read") {
        true => 2,
        false => 1,
    }
}

/// Operations take exactly the latency of the target, apart from turns of threads.
fn check_latencies(
    scenario: &Scenario,
    execution: &Execution,
    window: &WindowTotals,
) -> Result<(), Violation> {
    if !matches!(scenario.workload.load, Load::Threads(_)) || scenario.files.is_some() {
        return Ok(());
    }
    let latency = scenario.latency_us * 1000;
    let stopped: u64 = scenario
        .disturbances
        .iter()
        .map(|d| match d.kind {
            DisturbanceKind::Stop { for_ms, .. } => for_ms * 1_000_000,
            _ => 0,
        })
        .sum();
    let stalled = scenario
        .stall_ms
        .map_or(0, |(length, _)| length * 1_000_000);
    let rows = execution.plan.operations.iter().zip(&window.rows);
    for (operation, totals) in rows.filter(|(_, totals)| totals.ops > 0) {
        // A delay makes no call.
        let (least, most) = match operation.name.starts_with("pause") {
            true => (DELAY_NS, DELAY_NS),
            false => (latency, latency * calls(&operation.name)),
        };
        let name = &operation.name;
        must!(
            "no operation is faster than the target",
            totals.service.min() >= least,
            "{name}: {} ns, at least {least} ns",
            totals.service.min()
        );
        let most = most + stalled + stopped + MAX_LATENESS_NS;
        must!(
            "no operation is slower than what happened",
            totals.service.max() <= most,
            "{name}: {} ns, at most {most} ns",
            totals.service.max()
        );
    }
    Ok(())
}

/// Operations on whole files move the bytes of a file.
fn check_bytes(
    scenario: &Scenario,
    execution: &Execution,
    window: &WindowTotals,
) -> Result<(), Violation> {
    let Load::Threads(threads) = &scenario.workload.load else {
        return Ok(());
    };
    // Appends make files longer, and faults make transfers shorter.
    if threads.has(Step::Append) || scenario.files.as_ref().is_some_and(|f| !f.is_sound()) {
        return Ok(());
    }
    // A worker may read a file that another worker has created but not yet written.
    let may_be_empty = threads.has(Step::Replace) && threads.has_few_files();
    for (operation, row) in execution.plan.operations.iter().zip(&window.rows) {
        if matches!(operation.kind, OpKind::ReadWhole | OpKind::WriteWhole) {
            let (files, ops) = (row.bytes / u128::from(FILE_BYTES), u128::from(row.ops));
            let has_empty = may_be_empty && operation.kind == OpKind::ReadWhole;
            must!(
                "operations move the bytes of their files",
                row.bytes.is_multiple_of(FILE_BYTES.into())
                    && (files == ops || has_empty && files < ops),
                "{}: {} bytes in {} operations",
                operation.name,
                row.bytes,
                row.ops
            );
        }
    }
    Ok(())
}

/// Workers of closed loops are always in an operation: by Little's law the service times add up to the number of
/// workers times the length of the window.
fn check_utilisation(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
    intervals: &[Interval],
) -> Result<(), Violation> {
    let Load::Threads(threads) = &scenario.workload.load else {
        return Ok(());
    };
    if scenario.files.is_some() {
        return Ok(());
    }
    // Service times add up to less if workers may wait for files (fewer files than workers, or files that are created
    // and deleted), or if a limit on operations ends some workers early.
    let layout = Layout::new(&execution.plan, FilesetId(0)).expect("the workload has a fileset");
    let files = layout.initial_file_ids().count() as u64;
    let may_wait = files < threads.workers() || threads.has(Step::Replace);
    if !scenario.is_calm() || may_wait || threads.ops.is_some() {
        return Ok(());
    }
    let Some(window) = outcome.windows.last() else {
        return Ok(());
    };
    let workers = execution.plan.workers();
    // Operations at both ends of the window are cut, and a turn of threads lies between two operations.
    let longest = (scenario.latency_us * 2000).max(DELAY_NS)
        + MAX_LATENESS_NS
        + scenario
            .stall_ms
            .map_or(0, |(length, _)| length * 1_000_000);
    let number = window.totals.number;
    let of_window = intervals.iter().filter(|i| i.window == number);
    let parts = of_window.map(|i| (i.length, &i.rows));
    let whole = (window.totals.end - window.totals.start, &window.totals.rows);
    for (length, rows) in parts.chain([whole]) {
        let (ops, busy) = rows.iter().fold((0, 0), |(ops, busy), row| {
            (ops + row.ops, busy + row.service.sum())
        });
        let (all, slack) = (u128::from(workers * length), u128::from(workers * longest));
        must!(
            "closed loops follow Little's law",
            busy <= all + slack && busy + slack + u128::from(ops * MAX_LATENESS_NS / 5) >= all,
            "{busy} ns in {ops} operations of {workers} workers in {length} ns"
        );
    }
    Ok(())
}

/// Workers of closed loops continue despite failures, as long as the target answers: no file stays taken for ever.
fn check_progress(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
    intervals: &[Interval],
) -> Result<(), Violation> {
    let Load::Threads(threads) = &scenario.workload.load else {
        return Ok(());
    };
    let answers = scenario.files.as_ref().is_some_and(|files| {
        let f = &files.faults;
        f.outage_ns.is_none() && f.silent_from_ns.is_none() && f.slow.is_none()
    });
    let has_own_end =
        threads.ops.is_some() || outcome.failure.is_some() || outcome.ran_out.is_some();
    let Some(window) = outcome.windows.last().map(|w| &w.totals) else {
        return Ok(());
    };
    if !answers || has_own_end || !execution.is_undisturbed() {
        return Ok(());
    }
    let done = |interval: &Interval| -> u64 {
        interval
            .rows
            .iter()
            .map(|row| row.ops + row.error_count())
            .sum()
    };
    for index in 0..(window.end - window.start) / (scenario.interval_ms * 1_000_000) {
        let mut of_window = intervals.iter().filter(|i| i.window == window.number);
        must!(
            "workers go on after errors",
            of_window.any(|i| i.index == index && done(i) > 0),
            "nothing was done in interval {index}"
        );
    }
    Ok(())
}

/// Operations of a mix start at their rate, and no operation is left out, as long as the target keeps up. If the target
/// does not keep up, response times show the delay, without coordinated omission.
fn check_rate(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    let (Load::Mix(mix), Some(window)) = (&scenario.workload.load, outcome.windows.last()) else {
        return Ok(());
    };
    for (operation, row) in execution.plan.operations.iter().zip(&window.totals.rows) {
        if operation.kind.counts() && row.ops > 0 {
            must!(
                "operations of mixes have an intended start",
                row.paced == row.ops && row.response.sum() >= row.service.sum(),
                "{}: {} of {} operations",
                operation.name,
                row.paced,
                row.ops
            );
        }
    }
    let files = scenario.files.as_ref();
    let has_pauses = scenario.stall_ms.is_some() || files.is_some_and(|files| !files.is_calm());
    if !scenario.is_calm() || has_pauses {
        return Ok(());
    }
    let length = (window.totals.end - window.totals.start) as f64;
    let processes = (mix.load * mix.processes) as f64;
    let expected = processes * mix.rate as f64 * length / 1e9;
    let counted = counted_ops(execution, outcome) as f64;
    let spread = match mix.poisson {
        true => 6.0 * expected.sqrt(),
        false => 0.0,
    };
    // Opening, reading to the end, and closing take several calls.
    let latency_us = files.map_or(scenario.latency_us, |files| files.faults.latency_ns / 1000);
    let busy = mix.rate * latency_us * CALLS_OF_MIX;
    if busy <= 500_000 {
        must!(
            "open loops keep their rate",
            (counted - expected).abs() <= spread + 2.0 * processes,
            "{counted} operations, {expected:.0} expected"
        );
        return check_fractions(mix, execution, &window.totals, counted);
    }
    // On a target that is too slow, the processes fall behind their schedule: at the end of the window by the number of
    // missing operations, and on average by half of that number. Some operations may be missing by chance.
    let missing = 1.0 - counted / expected;
    if missing < 0.3 + spread / expected || counted < 30.0 {
        return Ok(());
    }
    let late: u128 = counted_rows(execution, outcome)
        .map(|row| row.response.sum() - row.service.sum())
        .sum();
    let (mean, minimum) = (late as f64 / counted, 0.2 * missing * length);
    must!(
        "response times count from the intended start",
        mean >= minimum,
        "a start delay of {mean:.0} ns, at least {minimum:.0} ns: {counted} of {expected:.0} in {length} ns"
    );
    Ok(())
}

/// The operations of a mix are drawn with their fractions, including operations that create and remove.
fn check_fractions(
    mix: &MixSpec,
    execution: &Execution,
    window: &WindowTotals,
    counted: f64,
) -> Result<(), Violation> {
    let rows = execution.plan.operations.iter().zip(&window.rows);
    for (operation, row) in rows.filter(|(operation, _)| operation.kind.counts()) {
        let name = operation.name.rsplit('/').next().unwrap_or_default();
        let Some(fraction) = mix.fraction(name) else {
            must!(
                "operations are those of the mix",
                false,
                "{}",
                operation.name
            );
            return Ok(());
        };
        let expected = counted * fraction;
        let spread = (expected * (1.0 - fraction)).sqrt();
        must!(
            "operations of mixes have their fractions",
            // A small expected number is not normally distributed.
            (row.ops as f64 - expected).abs() <= 6.0 * spread + 6.0,
            "{}: {} of {counted} operations, {expected:.1} expected",
            operation.name,
            row.ops
        );
    }
    Ok(())
}

/// Rows of the last window that the summary counts.
fn counted_rows<'a>(
    execution: &'a Execution,
    outcome: &'a Outcome,
) -> impl Iterator<Item = &'a OpTotals> {
    let rows = outcome.windows.last().map_or(&[][..], |w| &w.totals.rows);
    let rows = execution.plan.operations.iter().zip(rows);
    let counted = rows.filter(|(operation, _)| operation.kind.counts());
    counted.map(|(_, row)| row)
}

/// Operations in the last window that the summary counts.
fn counted_ops(execution: &Execution, outcome: &Outcome) -> u64 {
    counted_rows(execution, outcome).map(|row| row.ops).sum()
}

/// A run with a limit on operations never counts more operations than the limit, and exactly the limit if nothing else
/// ended the run.
fn check_limit(
    scenario: &Scenario,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    let limit = scenario.workload.ops_limit();
    let (Some(limit), Some(window)) = (limit, outcome.windows.last()) else {
        return Ok(());
    };
    let counted = counted_ops(execution, outcome);
    must!(
        "limits of operations hold",
        counted <= limit,
        "{counted} operations, of {limit}"
    );
    let length = (window.totals.end - window.totals.start) / 1000;
    let is_cut = length + 1000 < scenario.workload.time_ms * 1000;
    if is_cut && scenario.is_calm() && scenario.workload.warmup_ms == 0 && outcome.ran_out.is_none()
    {
        must!(
            "limits of operations are reached",
            counted == limit,
            "{counted} operations, of {limit}, in {length} us"
        );
    }
    Ok(())
}
