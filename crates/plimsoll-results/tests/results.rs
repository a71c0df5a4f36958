//! Results directories of runs, through the public functions of the crate.

use crate::fixtures::{SECOND, logged, names};
use plimsoll_measure::{Completions, Interval, Latency, OpTotals, WindowTotals};
use plimsoll_plan::{
    FileRef, OnError, Op, OpKind, Operation, OperationId, Phase, Plan, Program, Step, Value,
    WorkerGroup,
};
use plimsoll_results::{
    ClockKind, Distribution, Failure, LatencyFigures, LatencyKind, MeasuredRun, Outcome,
    PercentileFigure, Percentiles, ResultsError, Run, RunDir, RunWriter, Target, Verdict, tag_of,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

fn operation(name: &str, kind: OpKind) -> Operation {
    Operation {
        name: name.into(),
        kind,
        location: None,
    }
}

/// A Plan of two operations: a read that opens its file implicitly if the file is closed, and a delay.
fn plan() -> Plan {
    let file = FileRef {
        fileset: None,
        slot: 0,
        open_next: false,
        index: None,
        implicit_open: Some(OperationId(1)),
        direct: false,
        dsync: false,
        no_read_ahead: false,
    };
    let step = |row, op| Step::Do {
        row: OperationId(row),
        iters: Value::Const(1),
        op,
    };
    let mut plan = Plan::empty("two, things");
    plan.operations = vec![
        operation("read, all", OpKind::ReadWhole),
        operation("read, all", OpKind::Open),
        operation("pause", OpKind::Delay),
    ];
    plan.groups = vec![WorkerGroup {
        process: "p".into(),
        process_instances: 1,
        thread: "t".into(),
        thread_instances: 3,
        memory: 0,
        nice: 0,
        io_priority: None,
        program: Program::Sequence(vec![
            step(
                0,
                Op::ReadWhole {
                    file,
                    size: Value::Const(0),
                },
            ),
            step(
                2,
                Op::Delay {
                    seconds: Value::Const(1),
                    nanoseconds: 0,
                },
            ),
        ]),
        location: None,
    }];
    plan.script = vec![Phase::Start, Phase::OpenWindow, Phase::CloseWindow];
    plan
}

/// Totals of operations with service times `samples`; as many operations are paced as there are times in `response`.
fn row(samples: &[u64], bytes: u128, response: &[u64]) -> OpTotals {
    OpTotals {
        paced: response.len() as u64,
        ops: samples.len() as u64,
        bytes,
        service: Latency::of(samples.iter().copied()),
        response: Latency::of(response.iter().copied()),
        ..OpTotals::default()
    }
}

fn measured(plan: Plan, rows: Vec<Vec<OpTotals>>) -> MeasuredRun {
    let windows = rows.into_iter().zip(1..).map(|(rows, number)| {
        let totals = WindowTotals {
            number,
            start: u64::from(number) * 10 * SECOND,
            end: (u64::from(number) * 10 + 4) * SECOND,
            rows,
            ..WindowTotals::default()
        };
        totals.into()
    });
    MeasuredRun {
        outcome: Outcome {
            windows: windows.collect(),
            lanes: 1,
            ..Outcome::default()
        },
        ..MeasuredRun::new(
            plan,
            Target {
                url: "posix".into(),
                description: "files of this machine".into(),
                system: None,
            },
            SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250),
        )
    }
}

fn one_window() -> MeasuredRun {
    let mut first = row(&[1_000_000, 3_000_000], 8192, &[]);
    [1000, 2000]
        .into_iter()
        .for_each(|age| first.in_flight.add(age));
    let rows = vec![first, row(&[], 0, &[]), row(&[SECOND], 0, &[])];
    measured(plan(), vec![rows])
}

fn writer(root: &Path, clock: ClockKind, started: SystemTime) -> RunWriter {
    RunWriter::create(root, &plan(), started, clock, None).unwrap()
}

#[test]
fn the_summary_counts_file_operations_only() {
    let run = Run::assemble(one_window());
    assert_eq!(run.started_at, "2023-11-14T22:13:20.250Z");
    assert_eq!((run.workers, run.window_s, run.window_number), (3, 4.0, 1));
    let s = &run.summary;
    assert_eq!((s.ops, s.bytes, s.in_flight), (2, 8192, 2));
    assert_eq!((s.ops_per_s, s.bytes_per_s, s.mean_ms), (0.5, 2048.0, 2.0));
    assert_eq!((s.reads_per_s, s.writes_per_s), (0.5, 0.0));
    assert_eq!(run.validity.verdict, Verdict::Valid);
    // The implicit open never happened and has no row; the delay has a row.
    let rows: Vec<_> = run.operations.iter().map(|o| o.kind).collect();
    assert_eq!(rows, [OpKind::ReadWhole, OpKind::Delay]);
    assert_eq!(run.operations[0].latency.max_ms, 3.0);
    assert_eq!((s.paced_ops, s.service), (0, None));
}

#[test]
fn a_paced_operation_counts_with_its_response_time() {
    let mut m = one_window();
    m.outcome.windows[0].totals.rows[0] =
        row(&[1_000_000, 3_000_000], 8192, &[401_000_000, 3_000_000]);
    let paced = Run::assemble(m.clone());
    let s = &paced.summary;
    assert_eq!((s.mean_ms, s.p99_ms, s.paced_ops), (202.0, 401.0, 2));
    assert_eq!(s.latency_kind(), LatencyKind::Response);
    let service = s.service.unwrap();
    assert_eq!((service.mean_ms, service.p99_ms), (2.0, 3.0));
    let read = &paced.operations[0];
    assert_eq!((read.latency.max_ms, read.service().max_ms), (401.0, 3.0));
    // An implicit open that was not paced counts with its service time.
    m.outcome.windows[0].totals.rows[1] = row(&[8_000_000; 2], 0, &[]);
    let mixed = Run::assemble(m);
    let s = &mixed.summary;
    assert_eq!((s.mean_ms, s.paced_ops, s.ops), (105.0, 2, 4));
    assert_eq!(s.service.unwrap().mean_ms, 5.0);
    assert_eq!(s.latency_kind(), LatencyKind::Mixed);
    assert_eq!(mixed.operations[1].latency_kind(), LatencyKind::Service);
}

#[test]
fn what_is_all_under_way_has_lower_bounds() {
    let mut m = one_window();
    let mut hanging = row(&[], 0, &[]);
    hanging.in_flight.add(3 * SECOND);
    m.outcome.windows[0].totals.rows[0] = hanging;
    let run = Run::assemble(m.clone());
    let read = &run.operations[0];
    assert!(read.has_latencies() && run.summary.has_latencies());
    for figure in Percentiles::kept(None).as_slice() {
        for known in [read.percentile(*figure), run.summary.percentile(*figure)] {
            let known = known.unwrap();
            assert_eq!((known.ms, known.at_least), (3000.0, true), "{known:?}");
        }
    }
    assert!(read.latency.max_at_least);
    // An operation in flight that began at the very end of the window gives no lower bound of the latency.
    m.outcome.windows[0].totals.rows[0] = row(&[], 0, &[]);
    m.outcome.windows[0].totals.rows[0].in_flight.add(0);
    let run = Run::assemble(m);
    assert!(!run.summary.has_latencies());
    assert_eq!(run.operations[0].percentile("99".parse().unwrap()), None);
}

#[test]
fn a_service_time_is_a_lower_bound_by_itself() {
    let mut m = one_window();
    let mut paced = row(&[1_000_000], 1, &[10 * SECOND]);
    paced.in_flight.add(3 * SECOND);
    m.outcome.windows[0].totals.rows[0] = paced;
    let run = Run::assemble(m);
    let read = &run.operations[0];
    let of_all = run.summary.percentile("99".parse().unwrap()).unwrap();
    let p99 = read.percentile("99".parse().unwrap()).unwrap();
    for p99 in [of_all, p99] {
        assert_eq!((p99.ms, p99.at_least), (10_000.0, false), "{p99:?}");
        assert_eq!(
            (p99.service_ms, p99.service_at_least),
            (Some(3000.0), Some(true)),
            "{p99:?}"
        );
    }
    assert!(!read.latency.max_at_least);
    assert!(read.service().max_at_least);
    // Older results have no field `service_at_least`.
    let mut older = serde_json::to_value(p99).unwrap();
    older.as_object_mut().unwrap().remove("service_at_least");
    let older: PercentileFigure = serde_json::from_value(older).unwrap();
    assert_eq!(older.service_at_least, None);
}

#[test]
fn earlier_windows_are_kept() {
    let rows = |ns| vec![row(&[ns], 1, &[]), row(&[], 0, &[]), row(&[], 0, &[])];
    let run = Run::assemble(measured(plan(), vec![rows(1_000_000), rows(2_000_000)]));
    assert_eq!(run.summary.mean_ms, 2.0);
    assert_eq!((run.window_number, run.window_start_s), (2, 20.0));
    let before: Vec<_> = run
        .earlier_windows
        .iter()
        .map(|w| w.summary.mean_ms)
        .collect();
    assert_eq!(before, [1.0]);
}

#[test]
fn verdicts_have_an_order() {
    let mut m = one_window();
    m.plan.options.on_error = OnError::Count;
    m.outcome.windows[0].totals.rows[0].errors = BTreeMap::from([("ENOENT".into(), 2)]);
    let run = Run::assemble(m.clone());
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert_eq!(run.validity.reasons[0].code, "errors");
    assert_eq!((run.summary.errors, run.operations[0].errors), (2, 2));
    m.outcome.interrupted = true;
    assert_eq!(
        Run::assemble(m.clone()).validity.verdict,
        Verdict::Interrupted
    );
    m.outcome.failure = Some(Failure {
        operation: "read, all".into(),
        kind: Some(OpKind::ReadWhole),
        worker: Some("p-1.t-2".into()),
        path: Some("set/00000001".into()),
        error: "EIO: Input/output error".into(),
        location: None,
    });
    let run = Run::assemble(m);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    assert_eq!(
        run.validity.reasons[0].text,
        "read, all (read_whole) on set/00000001: EIO: Input/output error (worker p-1.t-2)"
    );
}

#[test]
fn a_failure_of_no_operation_says_what_happened_and_no_more() {
    let mut failure = Failure {
        operation: "run".into(),
        kind: None,
        worker: None,
        path: None,
        error: "cannot remove the files".into(),
        location: None,
    };
    assert_eq!(failure.to_string(), "cannot remove the files");
    failure.path = Some("set".into());
    assert_eq!(failure.to_string(), "on set: cannot remove the files");
    failure.operation = "populate".into();
    assert_eq!(
        failure.to_string(),
        "populate on set: cannot remove the files"
    );
    // A flowop may have the name `run`, like the step of a failure without an operation.
    failure.operation = "run".into();
    failure.kind = Some(OpKind::Delay);
    assert_eq!(
        failure.to_string(),
        "run (delay) on set: cannot remove the files"
    );
}

#[test]
fn a_run_without_a_window_is_invalid() {
    let mut m = one_window();
    m.outcome.windows.clear();
    let run = Run::assemble(m);
    assert_eq!(
        (run.validity.verdict, run.window_s),
        (Verdict::Invalid, 0.0)
    );
    assert_eq!(run.validity.reasons[0].code, "no_window");
}

#[test]
fn a_root_made_for_nothing_goes_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("results");
    drop(writer(&root, ClockKind::Real, SystemTime::now()));
    assert!(!root.exists());
}

#[test]
fn what_is_written_is_read_back() {
    let root = tempfile::tempdir().unwrap();
    let run = Run::assemble(one_window());
    let now = SystemTime::now();
    let dir = writer(&root.path().join("a/b"), ClockKind::Real, now)
        .finish(&run)
        .unwrap();
    assert_eq!(dir.read().unwrap(), run);
    assert_eq!(
        names(dir.path()),
        ["histograms.hlog", "intervals.csv", "run.json"]
    );
}

#[test]
fn sums_beyond_64_bits_are_written_and_read_back() {
    let root = tempfile::tempdir().unwrap();
    let bytes = 3 << 64;
    let rows = vec![
        row(&[u64::MAX / 2; 4], bytes, &[]),
        row(&[], 0, &[]),
        row(&[], 0, &[]),
    ];
    let mut w = writer(root.path(), ClockKind::Real, SystemTime::now());
    w.interval(&interval(1, 0, rows.clone())).unwrap();
    w.interval(&interval(1, 1, rows.clone())).unwrap();
    let run = Run::assemble(measured(plan(), vec![rows]));
    let dir = w.finish(&run).unwrap();
    let read = dir.read().unwrap();
    assert_eq!(read, run);
    assert_eq!(
        (read.summary.bytes, read.operations[0].bytes),
        (bytes, bytes)
    );
    assert_eq!(read.summary.bytes_per_s, bytes as f64 / 4.0);
    assert_eq!(read.summary.mean_ms, (u64::MAX / 2) as f64 / 1e6);
    let intervals: u128 = dir.read_intervals().unwrap().iter().map(|i| i.bytes).sum();
    assert_eq!(intervals, 2 * bytes);
    let wanted = "42".parse().unwrap();
    let p42 = dir
        .read_with(Some(&wanted))
        .unwrap()
        .summary
        .percentile("42".parse().unwrap());
    assert!((p42.unwrap().ms / read.summary.mean_ms - 1.0).abs() < 1e-3);
}

#[test]
fn files_that_are_missing_are_named() {
    let root = tempfile::tempdir().unwrap();
    let run = Run::assemble(one_window());
    let dir = writer(root.path(), ClockKind::Real, SystemTime::now()).finish(&run);
    let dir = dir.unwrap();
    assert_eq!(dir.lacks(), [""; 0]);
    std::fs::remove_file(dir.intervals_path()).unwrap();
    assert_eq!(dir.lacks(), ["intervals.csv"]);
    std::fs::remove_file(dir.path().join("histograms.hlog")).unwrap();
    let mut both = dir.lacks();
    both.sort_unstable();
    assert_eq!(both, ["histograms.hlog", "intervals.csv"]);
}

#[test]
fn results_are_added_to_and_replaced() {
    use std::io::Write;
    let root = tempfile::tempdir().unwrap();
    let mut run = Run::assemble(one_window());
    let dir = writer(root.path(), ClockKind::Real, SystemTime::now()).finish(&run);
    let dir = dir.unwrap();
    dir.add("ranks/rank-0.json", "one").unwrap();
    assert!(dir.add("ranks/rank-0.json", "two").is_err());
    let text = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(text("ranks/rank-0.json"), "one");
    for line in ["a", "b"] {
        writeln!(dir.commands_log().unwrap(), "{line}").unwrap();
    }
    assert_eq!(text("commands.log"), "a\nb\n");
    run.hung_workers.push("p/t 1".into());
    dir.replace_run(&run).unwrap();
    assert_eq!(dir.read().unwrap(), run);
}

#[test]
fn names_are_taken_in_turn_and_nothing_is_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let run = Run::assemble(one_window());
    let now = SystemTime::now();
    let write = || {
        let dir = writer(root.path(), ClockKind::Real, now)
            .finish(&run)
            .unwrap();
        dir.path().file_name().unwrap().to_str().unwrap().to_owned()
    };
    let first = write();
    assert!(first.starts_with("two--things-20"), "{first}");
    assert_eq!(write(), format!("{first}-2"));
    assert_eq!(write(), format!("{first}-3"));
}

#[test]
fn unfinished_results_leave_nothing() {
    let root = tempfile::tempdir().unwrap();
    let writer = writer(root.path(), ClockKind::Real, SystemTime::now());
    assert_eq!(names(root.path()).len(), 1);
    assert!(names(root.path())[0].starts_with('.'));
    drop(writer);
    assert!(names(root.path()).is_empty());
}

#[test]
fn another_schema_is_refused_by_its_number() {
    let root = tempfile::tempdir().unwrap();
    let dir = RunDir::at(root.path());
    let read = |text: &str| {
        std::fs::write(root.path().join("run.json"), text).unwrap();
        dir.read().unwrap_err()
    };
    let error = read("{\"schema_version\": 99}").to_string();
    assert!(
        error.ends_with("has schema version 99; this program reads version 1"),
        "{error}"
    );
    assert!(matches!(read("{}"), ResultsError::Schema { .. }));
    assert!(matches!(
        read("{\"schema_version\": 1}"),
        ResultsError::Json { .. }
    ));
    assert!(matches!(read("not json"), ResultsError::Json { .. }));
}

#[test]
fn a_damaged_histogram_is_named_by_its_line() {
    let root = tempfile::tempdir().unwrap();
    let log = root.path().join("histograms.hlog");
    std::fs::write(&log, "#a comment\nTag=a,0.000,1.000,5.000,@@@\n").unwrap();
    let error = RunDir::at(root.path())
        .each_histogram(&mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("histograms.hlog:2: the histogram is not base64"),
        "{error}"
    );
}

#[test]
fn virtual_runs_write_the_same_bytes_whenever_they_run() {
    let root = tempfile::tempdir().unwrap();
    let log = |started| {
        let mut w = writer(root.path(), ClockKind::Virtual, started);
        w.interval(&interval(1, 0, vec![row(&[5, 7, 900], 3, &[])]))
            .unwrap();
        let dir = w.finish(&Run::assemble(one_window())).unwrap();
        std::fs::read(dir.path().join("histograms.hlog")).unwrap()
    };
    let now = SystemTime::now();
    assert_eq!(log(now), log(now - Duration::from_secs(77)));
}

#[test]
fn the_series_has_a_line_for_every_operation_that_happened() {
    let root = tempfile::tempdir().unwrap();
    let mut w = writer(root.path(), ClockKind::Real, SystemTime::now());
    let rows = vec![
        row(&[1_500_000], 4096, &[2_500_000]),
        row(&[], 0, &[]),
        row(&[], 0, &[]),
    ];
    w.interval(&interval(1, 3, rows)).unwrap();
    let dir = w.finish(&Run::assemble(one_window())).unwrap();
    assert_eq!(
        std::fs::read_to_string(dir.intervals_path()).unwrap(),
        "window,interval,start_s,length_s,operation,kind,ops,bytes,errors,\
         mean_ms,p50_ms,p99_ms,max_ms,paced_ops,\
         service_mean_ms,service_p50_ms,service_p99_ms,service_max_ms,events\n\
         1,3,3,1,\"read, all\",read_whole,1,4096,0,2.500000,2.500000,2.500000,2.500000,1,\
         1.500000,1.500000,1.500000,1.500000,\n"
    );
    let rows = dir.read_intervals().unwrap();
    assert_eq!((rows[0].mean_ms, rows[0].service_mean_ms), (2.5, Some(1.5)));
    assert_eq!(rows[0].paced_ops, 1);
}

#[test]
fn the_schema_in_the_documents_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run.schema.json");
    let schema = plimsoll_results::schema::<Run>();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == schema,
        "docs/run.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}

fn interval(window: u32, index: u64, rows: Vec<OpTotals>) -> Interval {
    Interval {
        window,
        index,
        opened: u64::from(window) * 10 * SECOND,
        start: index * SECOND,
        length: SECOND,
        rows,
        completions: Completions::default(),
    }
}

type Samples = Vec<(u64, Option<u64>)>;

/// Samples with latencies of up to 20 s, and of up to 30 years, which occur only in virtual time.
fn samples() -> impl Strategy<Value = Vec<Samples>> {
    let time = || prop_oneof![0..20 * SECOND, 0..1_000_000_000 * SECOND];
    let one = (time(), prop::option::of(time()));
    prop::collection::vec(prop::collection::vec(one, 1..40), 1..6)
}

fn totals(samples: &Samples) -> OpTotals {
    let service: Vec<u64> = samples.iter().map(|s| s.0).collect();
    let response: Vec<u64> = samples.iter().map(|s| s.1.unwrap_or(s.0)).collect();
    OpTotals {
        paced: samples.iter().filter(|s| s.1.is_some()).count() as u64,
        ..row(&service, 0, &response)
    }
}

/// Checks that quantiles of the log agree exactly with the figures; minimum and maximum, which are exact in `run.json`,
/// agree to the histogram's three significant digits.
fn agrees(figures: &LatencyFigures, log: &Distribution) {
    let max_ns = (figures.max_ms * 1e6).round() as u64;
    for (q, ms) in [
        (0.5, figures.p50_ms),
        (0.95, figures.p95_ms),
        (0.99, figures.p99_ms),
        (0.999, figures.p999_ms),
    ] {
        assert_eq!(log.quantile(q).min(max_ns) as f64 / 1e6, ms);
    }
    for (exact, found) in [
        (figures.min_ms, log.quantile(0.0) as f64 / 1e6),
        (figures.max_ms, log.quantile(1.0) as f64 / 1e6),
    ] {
        assert!(
            (exact - found).abs() <= exact * 1e-3 + 1e-6,
            "{found} for {exact}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_latency_figure_can_be_recomputed_from_the_histograms(
        windows in prop::collection::vec(samples(), 1..3),
    ) {
        let root = tempfile::tempdir().unwrap();
        let mut w = writer(root.path(), ClockKind::Real, SystemTime::now());
        let mut sums = Vec::new();
        for (number, window) in (1..).zip(&windows) {
            let mut sum = vec![OpTotals::default(); 3];
            for (index, samples) in (0..).zip(window) {
                let rows = vec![totals(samples), OpTotals::default(), OpTotals::default()];
                sum.iter_mut().zip(&rows).for_each(|(s, r)| s.add(r));
                w.interval(&interval(number, index, rows)).unwrap();
            }
            sums.push(sum);
        }
        let written = Run::assemble(measured(plan(), sums.clone()));
        let dir = w.finish(&written).unwrap();
        let run = dir.read().unwrap();
        prop_assert_eq!(&run, &written, "every digit survives");
        // Percentiles that the run did not keep equal the percentiles of a run that kept all of the list.
        let list: Percentiles = "12.5,99.95,100".parse().unwrap();
        let mut kept = measured(plan(), sums);
        kept.percentiles = Some(list.clone());
        let kept = Run::assemble(kept);
        let read = dir.read_with(Some(&list)).unwrap();
        prop_assert_eq!(&read.summary, &kept.summary);
        prop_assert_eq!(&read.operations, &kept.operations);
        prop_assert_eq!(&read.percentiles_shown, &kept.percentiles_shown);
        let log = logged(&dir);
        let earlier = run.earlier_windows.iter().map(|w| (w.number, &w.operations));
        for (number, operations) in earlier.chain([(run.window_number, &run.operations)]) {
            let mut sums = BTreeMap::<&str, Distribution>::new();
            for line in log.iter().filter(|line| line.window == number) {
                sums.entry(&line.tag).or_default().add(&line.histogram);
            }
            for op in operations.iter().filter(|o| o.ops > 0) {
                let tag = tag_of(&op.name, op.kind);
                prop_assert_eq!(sums[&*tag].count(), op.ops);
                agrees(op.service(), &sums[&*tag]);
                prop_assert!(op.percentiles.len() == 7);
                prop_assert_eq!(op.service.is_some(), op.paced_ops > 0);
                if op.paced_ops > 0 {
                    let response = &sums[&*format!("{tag}/response")];
                    prop_assert_eq!(response.count(), op.ops);
                    agrees(&op.latency, response);
                }
            }
        }
    }
}
