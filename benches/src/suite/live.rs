//! The screen of a run in progress: processor time that the screen's thread takes from workers.

use crate::bench::Bench;
use crate::child;
use crate::error::BenchError;
use crate::table::{Goal, Row, Unit};
use crate::usage::{process_cpu_s, thread_cpu_s};
use nix::pty::{OpenptyResult, Winsize, openpty};
use plimsoll_report::live_screen::{CHART_SPAN, LiveScreen, LiveView, OperationRow};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

pub(crate) const JOB: &str = "live";

/// Columns and rows of a large terminal.
const SIZE: (u16, u16) = (200, 60);

/// Number of different operations of the workload that the live screen shows.
const OPERATIONS: usize = 30;

/// Time between two updates of the rates, as in a run.
const TICK: Duration = Duration::from_millis(500);

/// Number of updates after which the charts are full.
const FULL_TICKS: u64 = CHART_SPAN.as_millis() as u64 / TICK.as_millis() as u64;

/// Measures the fraction of a processor that the screen takes.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let figures = child::run(JOB, bench.pick(20, 1), bench)?;
    let (columns, rows) = SIZE;
    Ok(vec![Row::plain(
        format!(
            "screen of a run (`--live`), {columns} × {rows}, {OPERATIONS} operations, 5 minutes: part of a processor"
        ),
        Unit::Fraction,
        child::number(&figures, "cpus")?,
        Goal::AtMost(0.01),
    )])
}

/// Shows a screen for `seconds` on a terminal that a thread reads; every figure changes.
pub(crate) fn in_child(seconds: u64) -> Result<serde_json::Value, BenchError> {
    let fail = |reason: String| BenchError::Program {
        program: "plimsoll-benches --child live",
        reason,
    };
    let size = Winsize {
        ws_col: SIZE.0,
        ws_row: SIZE.1,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let OpenptyResult { master, slave } = openpty(&size, None).map_err(|e| fail(e.to_string()))?;
    rustix::stdio::dup2_stderr(&slave).map_err(|e| fail(e.to_string()))?;
    let reader = std::thread::spawn(move || {
        let (mut terminal, mut buffer, mut bytes) = (File::from(master), [0; 1 << 16], 0);
        // Reading fails once no process has the terminal open.
        while let Ok(n @ 1..) = terminal.read(&mut buffer) {
            bytes += n;
        }
        (bytes, thread_cpu_s())
    });
    let screen = LiveScreen::show(view(), true).map_err(|e| fail(e.to_string()))?;
    let (from, before) = (Instant::now(), process_cpu_s());
    let (mut ticks, end) = (FULL_TICKS, Duration::from_secs(seconds));
    while from.elapsed() < end {
        std::thread::sleep(TICK);
        ticks += 1;
        screen.update(|view| change(view, ticks));
    }
    let (elapsed, used) = (from.elapsed(), process_cpu_s() - before);
    drop(screen);
    // The reader sees the end when no descriptor of the slave is left.
    drop(slave);
    let null = File::open("/dev/null").map_err(|e| fail(e.to_string()))?;
    rustix::stdio::dup2_stderr(&null).map_err(|e| fail(e.to_string()))?;
    let (bytes, reading) = reader.join().expect("the reader does not panic");
    if bytes < 1000 * seconds as usize {
        return Err(fail(format!("{bytes} bytes were drawn in {elapsed:?}")));
    }
    let cpus = (used - reading).max(0.0) / elapsed.as_secs_f64();
    Ok(serde_json::json!({ "cpus": cpus }))
}

/// A screen whose charts are full.
fn view() -> LiveView {
    let mut view = LiveView {
        title: vec!["benchmark: files below work, target posix:, intervals of 1s".into()],
        phase: "measuring".into(),
        ..LiveView::default()
    };
    for tick in 0..FULL_TICKS {
        change(&mut view, tick);
    }
    view
}

/// Changes the view as a run does: the rates with every tick, operations and latencies with every interval of a second.
fn change(view: &mut LiveView, tick: u64) {
    let at_s = tick as f64 * TICK.as_secs_f64();
    let figure = |n: u64| 1000.0 + ((tick + n) * 7919 % 1009) as f64;
    view.elapsed = Some(Duration::from_secs_f64(at_s));
    view.bytes_per_s = figure(1) * 4096.0;
    view.push_rate((at_s, figure(0)));
    if tick.is_multiple_of(2) {
        view.push_latency(at_s, figure(2) / 1e3, figure(3) / 5e2);
        let operation = |n: usize| OperationRow {
            name: format!("operation{n}"),
            ops_per_s: figure(n as u64),
            bytes_per_s: figure(n as u64) * 4096.0,
            mean_ms: Some(figure(n as u64) / 1e3),
            p99_ms: Some(figure(n as u64) / 5e2),
            max_ms: Some(figure(n as u64) / 1e2),
            errors: tick * n as u64,
        };
        view.operations = (0..OPERATIONS).map(operation).collect();
    }
}
