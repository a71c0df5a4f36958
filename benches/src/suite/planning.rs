//! Filesets: how long they take to plan, what they take in memory, and choosing from them.

use super::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::plan;
use crate::rounds::{Contender, Figures, interleave};
use crate::table::{Goal, Row, Unit};
use plimsoll_engine::{BlockCursor, FilesetState, Settings, preflight};
use plimsoll_plan::{FilesetId, Overrides};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Instant;

/// Name of the part that a fresh process does.
pub(crate) const JOB: &str = "planning";

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

/// Plans a fileset of so many files, each of its own random size, as a run begins: Plan, layout,
/// what it needs, and the state that workers share.
pub(crate) fn in_child(entries: u64) -> Result<serde_json::Value, BenchError> {
    let text = workload(
        entries,
        "cvar(type=cvar-gamma, parameters=mean:131072;gamma:1.5)",
    );
    let before = child::peak_memory()?;
    let begin = Instant::now();
    let plan = plan(&text, Path::new("/"), Overrides::default())?;
    let settings = Settings {
        target: "null".into(),
        ..Settings::default()
    };
    let look = preflight(&plan, &settings)?;
    let state = FilesetState::new(FilesetId(0), look.layouts[0].clone());
    let seconds = begin.elapsed().as_secs_f64();
    Ok(serde_json::json!({
        "seconds": seconds,
        "bytes": child::peak_memory()? - before,
        "files": state.layout.files(),
        "present": state.existing_count(),
    }))
}

/// Time and memory of planning 10 million files.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let entries = bench.pick(10_000_000, 10_000);
    let (mut seconds, mut memory) = (Vec::new(), Vec::new());
    for _ in 0..bench.pick(3, 1) {
        let report = child::run(JOB, entries, bench)?;
        let number = |name| child::number(&report, name);
        let (files, present) = (number("files")?, number("present")?);
        plausible("planning", files as u64 == entries, || {
            format!("{files} files instead of {entries}")
        })?;
        let share = present / files;
        plausible("planning", (0.75..0.85).contains(&share), || {
            format!("{present} of {files} files exist instead of 80 %")
        })?;
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

/// Nanoseconds a choice, for a thread alone and for two at once.
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
            "choosing one of 1 M files and giving it back, 1 thread",
            Unit::Nanoseconds,
            &figures[0],
            Goal::None,
        ),
        Row::with_reference(
            "the same, 2 threads at once, the slower one",
            Unit::Nanoseconds,
            &figures[1],
            "1 thread",
            &figures[0],
            // A fifth less work in the same time.
            Goal::AtMost(1.0 / 0.8),
        ),
    ])
}

/// Nanoseconds a choice of the slowest of some threads.
fn choose_at_once(
    state: &Arc<FilesetState>,
    threads: usize,
    choices: u64,
) -> Result<f64, BenchError> {
    let start = Arc::new(Barrier::new(threads));
    let spawn = |_| {
        let (state, start) = (state.clone(), start.clone());
        std::thread::spawn(move || {
            let mut hand = BlockCursor::default();
            start.wait();
            let begin = Instant::now();
            let found = (0..choices)
                .filter(|_| std::hint::black_box(state.touch_next(&mut hand)).is_some())
                .count();
            (begin.elapsed().as_nanos() as f64, found as u64)
        })
    };
    let all: Vec<_> = (0..threads).map(spawn).collect();
    let mut slowest = 0.0f64;
    for thread in all {
        let Ok((time, found)) = thread.join() else {
            return Err(BenchError::Implausible {
                what: "choosing".into(),
                reason: "a thread panicked".into(),
            });
        };
        plausible("choosing", found == choices, || {
            format!("{found} of {choices} choices found a file")
        })?;
        slowest = slowest.max(time);
    }
    Ok(slowest / choices as f64)
}
