//! A report page on a long run: processor time and size.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::load::plan;
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use crate::usage::process_cpu_s;
use plimsoll_measure::{Completions, Interval, Latency, OpTotals, WindowTotals};
use plimsoll_plan::{Overrides, Plan};
use plimsoll_report::html::{RunData, page};
use plimsoll_results::{ClockKind, MeasuredRun, Outcome, Run, RunDir, RunWriter, Target};
use std::path::Path;
use std::time::SystemTime;

const SECOND: u64 = 1_000_000_000;

/// Operations of the whole run.
const OPS: u64 = 1_000_000_000;

/// Number of different latencies of an operation in a second.
const VALUES: u64 = 300;

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// A workload of eight operations, each of which has a colour in the charts.
fn workload() -> String {
    let op = |n: usize| format!("flowop statfile name=op{n}, filesetname=files\n");
    format!(
        "define fileset name=files, path=/bench, entries=100, dirwidth=20, prealloc
         define process name=p {{ thread name=t {{ {} }} }}
         run 3600",
        (0..8).map(op).collect::<String>()
    )
}

/// Measures processor time and size of a page on 10⁹ operations in an hour.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let seconds = bench.pick(3600, 20);
    let dir = bench.dir("report")?;
    let results = write(&dir, seconds)?;
    let (mut times, mut bytes) = (Vec::new(), 0);
    for _ in 0..bench.pick(3, 1) {
        let before = process_cpu_s();
        let text = page::report(&[RunData::read(results.path(), None)?.document()]);
        times.push(process_cpu_s() - before);
        bytes = text.len();
        plausible("report", text.contains("Operations per second"), || {
            "the page has no chart".into()
        })?;
    }
    let what = "page on 10⁹ operations and 1 h of intervals";
    Ok(vec![
        Row::median(
            format!("{what}: processor time"),
            Unit::Seconds,
            &Figures::new(times),
            Goal::AtMost(1.0),
        ),
        Row::plain(
            format!("{what}: size"),
            Unit::Mebibytes,
            bytes as f64 / MIB,
            Goal::AtMost(5e6 / MIB),
        ),
    ])
}

/// Writes the results of a run of `seconds` seconds, as a run does.
fn write(dir: &Path, seconds: u64) -> Result<RunDir, BenchError> {
    let plan = plan(&workload(), Path::new("/"), Overrides::default())?;
    let started = SystemTime::UNIX_EPOCH;
    let mut writer = RunWriter::create(dir, &plan, started, ClockKind::Real, None)?;
    let each = OPS / 3600 / plan.operations.len() as u64;
    let mut sums = vec![OpTotals::default(); plan.operations.len()];
    for second in 0..seconds {
        let rows: Vec<OpTotals> = (0..plan.operations.len() as u64)
            .map(|op| totals(each, second, op))
            .collect();
        for (sum, row) in sums.iter_mut().zip(&rows) {
            sum.add(row);
        }
        writer.interval(&Interval {
            window: 1,
            index: second,
            opened: SECOND,
            start: second * SECOND,
            length: SECOND,
            rows,
            completions: Completions::default(),
        })?;
    }
    let window = WindowTotals {
        number: 1,
        start: SECOND,
        end: (seconds + 1) * SECOND,
        rows: sums,
        ..WindowTotals::default()
    };
    Ok(writer.finish(&run(plan, window))?)
}

/// Figures of one operation in a second: latencies over three orders of magnitude, which vary by second.
fn totals(ops: u64, second: u64, op: u64) -> OpTotals {
    let each = ops / VALUES;
    let value = |n: u64| {
        let power = 4.5 + 3.0 * n as f64 / VALUES as f64 + (second % 60) as f64 / 600.0;
        10f64.powf(power + op as f64 / 20.0) as u64
    };
    let counts: Vec<(u64, u64)> = (0..VALUES).map(|n| (value(n), each)).collect();
    let sum: u64 = counts.iter().map(|(v, n)| v * n).sum();
    // The form in which ranks send latencies: recording each sample would take longer than the page.
    let service = serde_json::from_value::<Latency>(serde_json::json!({
        "counts": counts, "sum": sum, "min": value(0), "max": value(VALUES - 1),
    }));
    OpTotals {
        ops: each * VALUES,
        service: service.expect("the form in which ranks send latencies"),
        ..OpTotals::default()
    }
}

fn run(plan: Plan, window: WindowTotals) -> Run {
    Run::assemble(MeasuredRun {
        outcome: Outcome {
            windows: vec![window.into()],
            ..Outcome::default()
        },
        ..MeasuredRun::new(
            plan,
            Target {
                url: "null".into(),
                description: "null".into(),
                system: None,
            },
            SystemTime::UNIX_EPOCH,
        )
    })
}
