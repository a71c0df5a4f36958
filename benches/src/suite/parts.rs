//! Parts of an operation, measured by criterion.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::load::plan;
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use criterion::{Bencher, Criterion};
use plimsoll_measure::{Clock, OpTimes, Recorder, RowSpec, WindowState};
use plimsoll_plan::Overrides;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const FILESERVER: &str = include_str!("../../../workloads/fileserver.f");

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let sample_size = bench.pick(50, 10);
    let mut criterion = Criterion::default()
        .without_plots()
        .output_directory(&bench.history())
        .sample_size(sample_size)
        .warm_up_time(bench.time(500))
        .measurement_time(bench.time(1500));
    // Check the text before the measurement: the refusal of a wrong text would be fast.
    plan(FILESERVER, Path::new("/"), Overrides::default())?;
    let clock = Clock::real();
    let measured = [
        (
            "recording an operation",
            Unit::Nanoseconds,
            part(&mut criterion, sample_size, ("record", 1.0), record)?,
        ),
        (
            "reading the clock",
            Unit::Nanoseconds,
            part(&mut criterion, sample_size, ("now", 1.0), |n| {
                timed(n, || black_box(clock.now()))
            })?,
        ),
        (
            "parsing and lowering `fileserver`",
            Unit::Microseconds,
            part(&mut criterion, sample_size, ("wml", 1e3), |n| {
                timed(n, || {
                    black_box(plan(FILESERVER, Path::new("/"), Overrides::default()).is_ok())
                })
            })?,
        ),
    ];
    let row =
        |(what, unit, figures): (_, _, Figures)| Row::median(what, unit, &figures, Goal::None);
    Ok(measured.map(row).into())
}

/// Takes samples of a part with criterion; returns their figures in units of `scale` nanoseconds.
fn part(
    criterion: &mut Criterion,
    sample_size: usize,
    (name, scale): (&str, f64),
    run: impl Fn(u64) -> Duration,
) -> Result<Figures, BenchError> {
    let mut samples = Vec::new();
    criterion.bench_function(name, |b: &mut Bencher<'_>| {
        b.iter_custom(|n| {
            let time = run(n);
            samples.push(time.as_nanos() as f64 / n as f64 / scale);
            time
        });
    });
    // Criterion warms up with growing numbers of calls before it takes its samples.
    let taken = samples.len();
    plausible(name, taken > sample_size, || {
        format!("{taken} samples were taken")
    })?;
    let figures = Figures::new(samples.split_off(taken - sample_size));
    plausible(name, figures.median() > 0.0, || "it took no time".into())?;
    Ok(figures)
}

/// Elapsed time of `n` consecutive calls of `call`.
fn timed<T>(n: u64, mut call: impl FnMut() -> T) -> Duration {
    let begin = Instant::now();
    for _ in 0..n {
        call();
    }
    begin.elapsed()
}

/// Time to record `n` operations of 200 ns to 1.2 µs in an open window.
fn record(n: u64) -> Duration {
    let window = Arc::new(WindowState::new(u64::MAX));
    let recorder = Recorder::new(window.clone(), &[RowSpec::default()]);
    window.open(0, u64::MAX);
    let mut now = 0;
    let time = timed(n, || {
        let start = now;
        now += 200 + (now & 1023);
        recorder.record(0, OpTimes::unpaced(start, black_box(now)), 4096);
    });
    assert_eq!(
        recorder.progress().ops(0),
        n,
        "every call records one operation"
    );
    time
}
