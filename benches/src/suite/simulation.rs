//! Virtual time: workers in closed loop and thousands of open-loop processes on one lane, on the null
//! target and on a simulated system.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::load::SilentObserver;
use crate::table::{Goal, Row, Unit};
use plimsoll_engine::{Settings, Stop};
use plimsoll_plan::{Overrides, Plan, SourceKind};
use std::path::Path;
use std::time::Duration;

/// Workers that issue operations one after another, and keep the stations as busy as the open-loop processes do.
const WORKERS: u64 = 300;

/// Processes of a published result of `edge-32`.
const PROCESSES: u64 = 15_923;

/// Operations per second of each process.
const RATE: u64 = 10;

/// Simulated operations per second of processor time through five stations.
const SIMULATED_PER_S: f64 = 1.5e6;

/// A null target with a latency for every operation.
const NULL: &str = "null:?latency=1ms&clock=virtual";

/// Five stations that every operation visits; the busiest station is busy for three quarters of the time.
const SYSTEM: &str = r#"
title = "Five stations"
description = "Every operation visits each of them once."

[station.network]
servers = 64
service = "100us"

[station.processor]
servers = 16
service = "60us"
distribution = "exponential"

[station.lock]
servers = 4
service = "18us"

[station.cache]
count = 8
choose = "file"
servers = 4
service = "100us"
distribution = "exponential"

[station.disk]
count = 64
choose = "block"
servers = 4
service = "1ms"
distribution = "exponential"

[path]
metadata_read = ["network", "processor", "lock", "cache", "disk"]
metadata_change = ["network", "processor", "lock", "cache", "disk"]
data_read = ["network", "processor", "lock", "cache", "disk"]
data_write = ["network", "processor", "lock", "cache", "disk"]
commit = ["network", "processor", "lock", "cache", "disk"]
open = ["network", "processor", "lock", "cache", "disk"]
"#;

/// Workers that request attributes in closed loop, with little work besides the operations.
fn closed_loop(workers: u64, time: Duration) -> Result<Plan, BenchError> {
    let text = format!(
        "define fileset name=files,path=/,entries=10000,dirwidth=100,dirgamma=0,size=64k,prealloc=100\n\
         define process name=client,instances=1 {{\n\
           thread name=worker,memsize=1m,instances={workers} {{\n\
             flowop statfile name=stat,filesetname=files\n  }}\n}}\nrun 60\n"
    );
    let overrides = Overrides {
        time: Some(time),
        warmup: Some(plimsoll_plan::Warmup::Fixed(time / 5)),
        ..Overrides::default()
    };
    crate::load::plan(&text, Path::new("/"), overrides)
}

/// Open-loop processes with a mix of operations on files of their own.
fn open_loop(processes: u64, time: Duration) -> Result<Plan, BenchError> {
    let text = format!(
        "[metric]\nname = \"clients\"\n[[component]]\nname = \"client\"\n\
         processes = {processes}\nrate = {RATE}\n\
         [component.mix]\nstat = 60\nread = 25\nwrite = 15\n\
         [component.transfers]\nread = \"8k\"\nwrite = \"8k\"\n\
         [component.files]\ncount = 10\nsize = \"64k\"\n"
    );
    let overrides = Overrides {
        dir: Some("/".into()),
        time: Some(time),
        warmup: Some(plimsoll_plan::Warmup::Fixed(time / 5)),
        ..Overrides::default()
    };
    let context = plimsoll_workload::mix::Context {
        kind: SourceKind::File,
        temp_dir: Path::new("/").into(),
    };
    let workload = plimsoll_workload::mix::parse(&text, "benchmark.toml")?;
    Ok(plimsoll_workload::mix::lower(
        &workload, &overrides, &context,
    )?)
}

/// Operations per second of processor time, over all threads in the measured window. `due` is the expected number of
/// operations, if known.
fn rate(target: &str, plan: &Plan, due: Option<f64>) -> Result<f64, BenchError> {
    let settings = Settings {
        target: target.into(),
        ..Settings::default()
    };
    let outcome = plimsoll_engine::run(plan, &settings, &Stop::default(), &mut SilentObserver)?;
    if let Some(failure) = &outcome.failure {
        return Err(BenchError::implausible("simulation", failure.to_string()));
    }
    let window = outcome.windows.last();
    let used = window.and_then(|w| w.system.process.as_ref());
    let (Some(window), Some(used)) = (window, used) else {
        let reason = "no window, or no processor time of it";
        return Err(BenchError::implausible("simulation", reason.to_owned()));
    };
    let rows = window.totals.rows.iter().zip(&plan.operations);
    let counted = rows.filter(|(_, o)| o.kind.counts());
    let ops: u64 = counted.map(|(r, _)| r.ops).sum();
    let is_due = due.is_none_or(|due| (ops as f64 / due - 1.0).abs() < 0.02);
    plausible("simulation", ops > 0 && is_due, || {
        format!("{ops} operations completed of {due:?}")
    })?;
    Ok(ops as f64 / (used.user_s + used.system_s))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let processes = bench.pick(PROCESSES, 500);
    let time = Duration::from_secs(bench.pick(20, 2));
    let file = bench.dir("simulation")?.join("five-stations.toml");
    std::fs::write(&file, SYSTEM).map_err(|e| BenchError::io("write", &file, e))?;
    let simulated = format!("sim:{}", file.display());
    let workers = closed_loop(bench.pick(WORKERS, 50), time)?;
    let paced = open_loop(processes, time)?;
    let due = Some(processes as f64 * RATE as f64 * time.as_secs_f64());
    let system = "simulated system of five stations";
    let null = "null target of 1 ms latency";
    let mut rows = vec![];
    for (load, plan, due, goal) in [
        (
            format!("{} workers in closed loop", bench.pick(WORKERS, 50)),
            &workers,
            None,
            Goal::AtLeast(SIMULATED_PER_S),
        ),
        (
            format!("{processes} open-loop processes"),
            &paced,
            due,
            Goal::None,
        ),
    ] {
        for (what, target, goal) in [(null, NULL, Goal::None), (system, &*simulated, goal)] {
            let what =
                format!("{load} in virtual time, {what}: operations per second of processor time");
            let rate = rate(target, plan, due)?;
            rows.push(Row::plain(what, Unit::PerSecond, rate, goal));
        }
    }
    Ok(rows)
}
