//! Filesets: time and memory of planning, and choosing a file.

use crate::bench::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::{SilentObserver, plan};
use crate::rounds::{Contender, Figures, interleave};
use crate::table::{Goal, Row, Unit};
use crate::usage::peak_memory;
use plimsoll_engine::{BlockCursor, FilesetState, Settings, Stop, preflight};
use plimsoll_plan::{FilesetId, Overrides, SourceKind};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// Name of the job of a fresh process; its count is the number of files.
pub(crate) const JOB: &str = "planning";

/// Name of the job of a fresh process that runs a mix; its count is the load.
pub(crate) const FORMULA_JOB: &str = "formulas";

/// Operation mix whose filesets are the largest, and files of one of its business metrics.
const FORMULA_MIX: (&str, u64) = ("nfs-sfs2008", 68_000 + 2_000);

/// Load of a published result of 1.59 million operations per second.
const FORMULA_LOAD: u64 = 15_923;

const MIB: f64 = (1 << 20) as f64;

fn workload(entries: u64, size: &str) -> String {
    format!(
        "set $size = {size}
         define fileset name=files, path=/bench, entries={entries}, dirwidth=20, prealloc=80,
                        size=$size
         define process name=p {{ thread name=t {{
           flowop statfile name=op, filesetname=files }} }}
         run 1"
    )
}

/// Prepares a fileset of files of random sizes as a run does: Plan, layout, preflight, and the state shared by workers.
pub(crate) fn in_child(entries: u64) -> Result<serde_json::Value, BenchError> {
    let text = workload(
        entries,
        "cvar(type=cvar-gamma, parameters=mean:131072;gamma:1.5)",
    );
    let before = peak_memory()?;
    let begin = Instant::now();
    let plan = plan(&text, Path::new("/"), Overrides::default())?;
    let settings = Settings {
        target: "null".into(),
        ..Settings::default()
    };
    let preflight = preflight(&plan, &settings)?;
    let state = FilesetState::new(FilesetId(0), preflight.layouts[0].clone());
    let seconds = begin.elapsed().as_secs_f64();
    Ok(serde_json::json!({
        "seconds": seconds,
        "bytes": peak_memory()? - before,
        "files": state.layout.files(),
        "existing": state.existing_count(),
    }))
}

/// Time and memory of planning 10 million files.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let entries = bench.pick(10_000_000, 10_000);
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(3, 1) {
        let report = child::run(JOB, entries, bench)?;
        let number = |name| child::number(&report, name);
        let (files, existing) = (number("files")?, number("existing")?);
        plausible("planning", files as u64 == entries, || {
            format!("{files} files instead of {entries}")
        })?;
        plausible(
            "planning",
            (0.75..0.85).contains(&(existing / files)),
            || format!("{existing} of {files} files exist instead of 80 %"),
        )?;
        seconds.push(number("seconds")?);
        memory.push(number("bytes")? / MIB);
    }
    let what = format!("a fileset of {entries} files of random sizes");
    Ok(vec![
        Row::median(
            format!("{what}: time to plan"),
            Unit::Seconds,
            &Figures::new(seconds),
            Goal::AtMost(3.0),
        ),
        Row::median(
            format!("{what}: memory"),
            Unit::Mebibytes,
            &Figures::new(memory),
            Goal::AtMost(200e6 / MIB),
        ),
    ])
}

/// Plans an operation mix at a load, and runs the mix for a moment of virtual time.
pub(crate) fn formulas_in_child(load: u64) -> Result<serde_json::Value, BenchError> {
    let (name, _) = FORMULA_MIX;
    let text = plimsoll_workload::mix::BUILTINS
        .find(name)
        .expect("the mix is built in");
    let begin = Instant::now();
    let overrides = Overrides {
        dir: Some("/".into()),
        load: Some(load),
        time: Some(Duration::from_millis(100)),
        warmup: Some(plimsoll_plan::Warmup::Fixed(Duration::ZERO)),
        ..Overrides::default()
    };
    let context = plimsoll_workload::mix::Context {
        kind: SourceKind::Builtin,
        temp_dir: Path::new("/").into(),
    };
    let workload = plimsoll_workload::mix::parse(text.text, name)?;
    let plan = plimsoll_workload::mix::lower(&workload, &overrides, &context)?;
    let settings = Settings {
        target: "null:?latency=1ms&clock=virtual".into(),
        ..Settings::default()
    };
    let preflight = preflight(&plan, &settings)?;
    let seconds = begin.elapsed().as_secs_f64();
    let files = preflight.layouts.iter().map(|l| u64::from(l.files()));
    let files: u64 = files.sum();
    drop(preflight);
    let outcome = plimsoll_engine::run(&plan, &settings, &Stop::default(), &mut SilentObserver)?;
    let rows = outcome.windows.last().map(|w| w.totals.rows.as_slice());
    let ops: u64 = rows.unwrap_or_default().iter().map(|row| row.ops).sum();
    Ok(serde_json::json!({
        "seconds": seconds,
        "bytes": peak_memory()?,
        "files": files,
        "ops": ops,
    }))
}

/// Time of planning a billion files, and memory of a run on a billion files.
pub(crate) fn formulas(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let load = bench.pick(FORMULA_LOAD, 20);
    let report = child::run(FORMULA_JOB, load, bench)?;
    let number = |name| child::number(&report, name);
    let (name, files_each) = FORMULA_MIX;
    let (files, ops) = (number("files")?, number("ops")?);
    plausible("formulas", files as u64 == load * files_each, || {
        format!("{files} files at a load of {load}")
    })?;
    plausible("formulas", ops >= load as f64, || {
        format!("{ops} operations at a load of {load}")
    })?;
    let what = format!("{name} at a load of {load}, {files} files, null target");
    Ok(vec![
        Row::plain(
            format!("{what}: time to plan"),
            Unit::Seconds,
            number("seconds")?,
            Goal::AtMost(1.0),
        ),
        Row::plain(
            format!("{what}: memory of a run"),
            Unit::Mebibytes,
            number("bytes")? / MIB,
            Goal::AtMost(2048.0),
        ),
    ])
}

/// Nanoseconds per choice, for one thread and for two at once.
pub(crate) fn choosing(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let entries = bench.pick(1_000_000, 10_000);
    let plan = plan(
        &workload(entries, "4k"),
        Path::new("/"),
        Overrides::default(),
    )?;
    let settings = Settings {
        target: "null".into(),
        ..Settings::default()
    };
    let layout = preflight(&plan, &settings)?.layouts[0].clone();
    let state = Arc::new(FilesetState::new(FilesetId(0), layout));
    let choices = bench.pick(10_000_000, 20_000);
    let threads = |n: usize| -> Contender<'_> {
        let state = state.clone();
        Box::new(move || choose_at_once(&state, n, choices))
    };
    let figures = interleave(bench.rounds() + 2, vec![threads(1), threads(2)])?;
    Ok(vec![
        Row::median(
            "choosing one of 1 M files and releasing it, 1 thread",
            Unit::Nanoseconds,
            &figures[0],
            Goal::None,
        ),
        Row::with_reference(
            "choosing one of 1 M files and releasing it, 2 threads at once, the slower one",
            Unit::Nanoseconds,
            &figures[1],
            "1 thread",
            &figures[0],
            // Each of the threads must make at least 80 % of the choices per second of a single thread.
            Goal::AtMost(1.0 / 0.8),
        ),
    ])
}

/// Nanoseconds per choice of the slowest of some threads.
fn choose_at_once(
    state: &Arc<FilesetState>,
    threads: usize,
    choices: u64,
) -> Result<f64, BenchError> {
    let start = Arc::new(Barrier::new(threads));
    let spawn = |_| {
        let (state, start) = (state.clone(), start.clone());
        std::thread::spawn(move || {
            let mut cursor = BlockCursor::default();
            start.wait();
            let begin = Instant::now();
            let found = (0..choices)
                .filter(|_| std::hint::black_box(state.touch_next(&mut cursor)).is_some())
                .count();
            (begin.elapsed().as_nanos() as f64, found as u64)
        })
    };
    let all: Vec<_> = (0..threads).map(spawn).collect();
    let mut slowest = 0.0f64;
    for thread in all {
        let (time, found) = thread.join().expect("choosing does not panic");
        plausible("choosing", found == choices, || {
            format!("{found} of {choices} choices found a file")
        })?;
        slowest = slowest.max(time);
    }
    Ok(slowest / choices as f64)
}
