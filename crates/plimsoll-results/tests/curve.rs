//! The curve directory, through its door.

use plimsoll_measure::system::SystemUse;
use plimsoll_measure::{Bottleneck, Latency, OpTotals, WindowTotals};
use plimsoll_plan::{
    BusinessMetric, Criteria, MixFiles, MixFlags, MixOp, MixRow, OpKind, Operation, OperationId,
    Pacing, Plan, Program, SizeTable, WorkerGroup, WorkingSet,
};
use plimsoll_results::{
    CURVE_FILE, ClockKind, Collection, CurveDir, CurveLoads, CurvePoint, CurveResults,
    CurveSettings, CurveState, CurveWriter, Document, Environment, LoadCurve, LoadTest,
    MeasuredRun, Percentile, ProcessCounts, Reason, ResultsError, Run, RunWriter, ScheduleCounts,
    StopRules, Target, Verdict,
};
use std::path::Path;
use std::time::{Duration, SystemTime};

const SECOND: u64 = 1_000_000_000;

/// Two processes a stream, 10 operations a second each: reads, and read-modify-writes.
fn plan(load: u32) -> Plan {
    let mut plan = Plan::empty("streams");
    let operation = |name: &str, kind| Operation {
        name: name.into(),
        kind,
        location: None,
    };
    plan.operations = vec![
        operation("read", OpKind::Read),
        operation("rmw", OpKind::Rmw),
        operation("prepare", OpKind::Prepare),
        operation("start", OpKind::Start),
    ];
    let row = |op, row| MixRow {
        op,
        percent: 50.0,
        row: OperationId(row),
    };
    let mix = plimsoll_plan::Mix {
        table: vec![row(MixOp::Read, 0), row(MixOp::Rmw, 1)],
        prepare: OperationId(2),
        pacing: Some(Pacing {
            rate: 10.0,
            arrivals: Default::default(),
            start: OperationId(3),
        }),
        delay: std::time::Duration::ZERO,
        reads: SizeTable::fixed(4096),
        writes: SizeTable::fixed(4096),
        files: MixFiles {
            data: plimsoll_plan::FilesetId(0),
            turnover: None,
            empty: None,
            shared: false,
            parts: 20,
        },
        working_set: WorkingSet::default(),
        flags: MixFlags::default(),
    };
    plan.groups = vec![WorkerGroup {
        process: "CAMERA".into(),
        process_instances: 2 * load,
        thread: "worker".into(),
        thread_instances: 1,
        memory: 4096,
        nice: 0,
        io_priority: None,
        program: Program::Mix(Box::new(mix)),
        location: None,
    }];
    plan.metric = Some(BusinessMetric {
        name: "streams".into(),
        load: u64::from(load),
        scale: 0.5,
        data: 1 << 20,
        rate: Some(20.0),
        criteria: Criteria {
            latency: Some(Duration::from_millis(20)),
            ..Criteria::default()
        },
    });
    plan
}

/// A window of 10 s in which so many of the operations due were done, each in `ms`.
fn run(load: u32, done: u64, ms: u64, reasons: &[&str]) -> Run {
    Run::assemble(measured(load, done, ms, reasons))
}

fn measured(load: u32, done: u64, ms: u64, reasons: &[&str]) -> MeasuredRun {
    let row = |ops: u64| OpTotals {
        ops,
        bytes: u128::from(ops) * 4096,
        service: Latency::of((0..ops).map(|_| ms * 500_000)),
        response: Latency::of((0..ops).map(|_| ms * 1_000_000)),
        paced: ops,
        ..OpTotals::default()
    };
    let late = OpTotals {
        ops: done,
        service: Latency::of((0..done).map(|_| 250_000)),
        ..OpTotals::default()
    };
    let totals = WindowTotals {
        number: 1,
        start: SECOND,
        end: 11 * SECOND,
        rows: vec![row(done / 2), row(done / 2), OpTotals::default(), late],
        ..WindowTotals::default()
    };
    let (due, half) = (u64::from(load) * 100, done / 2);
    let process = |done| ProcessCounts {
        group: 0,
        number: 0,
        counts: ScheduleCounts {
            scheduled: due,
            completed: done,
            dropped: 0,
        },
    };
    let reason = |code: &&str| Reason::new(code, format!("{code} was missed"));
    MeasuredRun {
        plan: plan(load),
        target: Target {
            url: "null".into(),
            description: "nothing".into(),
            system: None,
        },
        clock: ClockKind::Virtual,
        lanes: 1,
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        clock_started: None,
        windows: vec![(totals, SystemUse::default())],
        simulated: vec![],
        ranks: 1,
        hosts: vec![],
        starts: None,
        stages: vec![],
        percentiles: None,
        processes: vec![process(half - 10), process(half + 10)],
        schedules: vec![],
        populated: vec![],
        verification: None,
        commands: vec![],
        events: vec![],
        summaries: vec![],
        failure: None,
        interrupted: reasons.contains(&"interrupted"),
        reasons: reasons.iter().map(reason).collect(),
        stuck: vec![],
        notes: vec![],
        variables: vec![],
        environment: Environment::look(None),
    }
}

fn empty() -> LoadCurve {
    let run = run(10, 2000, 1, &[]);
    LoadTest {
        schema_version: LoadCurve::SCHEMA,
        workload: "streams".into(),
        metric: "streams".into(),
        scale: 0.5,
        comparable: false,
        seed: run.seed,
        started_at: run.started_at,
        selection: CurveLoads {
            loads: vec![2, 4, 6, 8, 10],
        },
        warmup_s: 1.0,
        measure_s: 10.0,
        criteria: run.plan.metric.as_ref().unwrap().criteria.clone(),
        results: CurveResults::new(StopRules {
            stop_after_invalid: Some(2),
            stop_past_peak: true,
        }),
        percentiles_shown: None,
        program: run.program,
        target: run.target,
        clock: run.clock,
        lanes: None,
        interval_s: 1.0,
        ranks: 1,
        settings: CurveSettings {
            monitor: None,
            keep: false,
        },
        hooks: None,
        events: vec![],
        notes: vec![],
        environment: run.environment,
        plan: plan(10),
    }
}

fn point_writer(writer: &CurveWriter, load: u32) -> RunWriter {
    let started = SystemTime::now();
    let plan = plan(load);
    let made = writer.point(u64::from(load), &plan, started, ClockKind::Virtual);
    made.unwrap()
}

/// Measures a point as the program does.
fn measure(writer: &mut CurveWriter, load: u32, run: &Run) {
    let dir = point_writer(writer, load).finish(run).unwrap();
    let name = dir.path().file_name().unwrap().to_str().unwrap();
    let point = CurvePoint::of(run, u64::from(load), name);
    writer.add(point).unwrap();
}

#[test]
fn a_point_at_which_nothing_was_done_has_no_latency() {
    let mut run = run(10, 1960, 8, &["total_rate"]);
    run.summary.ops = 0;
    let point = CurvePoint::of(&run, 10, "somewhere");
    let latencies = [
        point.mean_ms,
        point.p50_ms,
        point.p95_ms,
        point.p99_ms,
        point.max_ms,
    ];
    assert_eq!((latencies, point.service_mean_ms), ([None; 5], None));
    let json = serde_json::to_value(&point).unwrap();
    assert!(
        json["latency_ms"].is_null() && json["service_ms"].is_null(),
        "{json}"
    );
}

#[test]
fn a_point_has_the_figures_of_its_run() {
    let run = run(10, 1960, 8, &["latency"]);
    let point = CurvePoint::of(&run, 10, "somewhere");
    assert_eq!((point.load, point.run.as_str()), (10, "somewhere"));
    assert_eq!(point.verdict, Verdict::Invalid);
    assert_eq!(point.achieved_ops_per_s, 196.0);
    assert_eq!(point.offered_ops_per_s, Some(200.0));
    // From the schedule, not from the call.
    assert_eq!(
        (point.mean_ms, point.service_mean_ms),
        (Some(8.0), Some(4.0))
    );
    let p99 = point.p99_ms.unwrap();
    assert!((p99 - 8.0).abs() < 0.01, "{p99}");
    assert_eq!(point.slowest_process_percent, Some(97.0));
    // Half of the operations read, and the other half read and write.
    assert_eq!(point.bytes_per_s, 196.0 * 4096.0);
    assert_eq!(point.read_bytes_per_s, 196.0 * 4096.0);
    assert_eq!(point.write_bytes_per_s, 98.0 * 4096.0);
    let stands: Vec<(&str, bool)> = point
        .criteria
        .iter()
        .map(|c| (c.code.as_str(), c.met))
        .collect();
    assert_eq!(
        stands,
        [
            ("process_rate", true),
            ("total_rate", true),
            ("errors", true),
            ("latency", false),
            ("client_saturated", true),
            ("client_start_delay", true),
            ("stalled", true)
        ]
    );
    let texts: Vec<&str> = point.criteria.iter().map(|c| c.text.as_str()).collect();
    assert_eq!(
        texts[..2],
        [
            "every process completed at least 97.0 % of its scheduled operations; 75 % are required",
            "all processes together completed 98.0 % of their scheduled operations; 95 % are required"
        ]
    );
    assert_eq!(texts[3], "latency was missed");
}

#[test]
fn a_point_of_a_throttled_client_misses_a_criterion() {
    let criterion = |m: MeasuredRun| {
        let point = CurvePoint::of(&Run::assemble(m), 2, "a");
        let found = point.criteria.iter().find(|c| c.code == "client_throttled");
        found.map(|c| c.met)
    };
    assert_eq!(criterion(measured(2, 400, 2, &[])), None);
    // The quota may be that of another machine.
    assert_eq!(
        criterion(measured(2, 400, 2, &["client_throttled"])),
        Some(false)
    );
    let mut kept = measured(2, 400, 2, &[]);
    kept.windows[0].1.quota = Some(plimsoll_measure::control_groups::QuotaUse::default());
    assert_eq!(criterion(kept), Some(true));
}

#[test]
fn a_point_that_stood_still_misses_a_criterion() {
    let point = CurvePoint::of(&run(2, 400, 2, &["stalled"]), 2, "a");
    let stalled = point.criteria.iter().find(|c| c.code == "stalled").unwrap();
    assert_eq!((stalled.met, &*stalled.text), (false, "stalled was missed"));
}

#[test]
fn a_point_whose_operations_hang_has_lower_bounds() {
    let mut m = measured(2, 400, 2, &[]);
    let rows = &mut m.windows[0].0.rows;
    rows[0] = OpTotals::default();
    rows[1] = OpTotals::default();
    rows[0].in_flight.add(3 * SECOND);
    let run = Run::assemble(m.clone());
    let total = &run.mix.as_ref().unwrap().total;
    let response = total.response.unwrap();
    assert_eq!((response.mean_ms, response.p99_ms), (0.0, 3000.0));
    assert!(response.max_at_least && response.is_at_least(response.p50_ms));
    let point = CurvePoint::of(&run, 2, "a");
    assert_eq!((point.mean_ms, point.service_mean_ms), (None, None));
    let bound = Some(3000.0);
    assert_eq!(
        (point.p50_ms, point.p95_ms, point.p99_ms),
        (bound, bound, bound)
    );
    assert_eq!((point.max_ms, point.max_at_least), (bound, true));
    assert!(point.percentile("95".parse().unwrap()).unwrap().at_least);
    // Of those that completed the greatest is exact where it was greater.
    m.windows[0].0.rows[1].response = Latency::of([9 * SECOND]);
    m.windows[0].0.rows[1].service = Latency::of([SECOND]);
    (m.windows[0].0.rows[1].ops, m.windows[0].0.rows[1].paced) = (1, 1);
    let run = Run::assemble(m);
    let response = run.mix.as_ref().unwrap().total.response;
    assert!(!response.unwrap().max_at_least);
    let point = CurvePoint::of(&run, 2, "a");
    assert_eq!((point.max_ms, point.max_at_least), (Some(9000.0), false));
}

#[test]
fn a_curve_is_written_point_by_point_and_its_figures_follow() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("made/on/the/way");
    let mut writer = CurveWriter::create(&root, empty(), SystemTime::now()).unwrap();
    let dir = writer.dir().clone();
    assert_eq!(dir.read().unwrap(), empty());
    // Achieved 40, 80, 120, 150, 150 operations a second.
    let points = [
        (2, 400, 2, vec![]),
        (4, 800, 2, vec![]),
        (6, 1200, 4, vec!["errors"]),
        (8, 1500, 4, vec![]),
        (10, 1400, 30, vec!["latency"]),
    ];
    for (number, (load, done, ms, reasons)) in (1..).zip(&points) {
        measure(&mut writer, *load, &run(*load, *done, *ms, reasons));
        let read = dir.read().unwrap();
        assert_eq!(read.points.len(), number);
        assert_eq!(&read, writer.document());
        let last = read.points.last().unwrap();
        assert_eq!(last.run, format!("point-0{number}-load-{load}"));
        let kept = dir.run(last).read().unwrap();
        assert_eq!(&CurvePoint::of(&kept, last.load, &last.run), last);
    }
    let curve = dir.read().unwrap();
    assert_eq!(
        (curve.load_line, curve.highest_valid_load),
        (Some(4), Some(8))
    );
    assert!(curve.missing().is_empty() && curve.any_valid());
    // Valid: (2, 2 ms), (4, 2 ms), (8, 4 ms): areas of 4 and 12 over a distance of 6.
    assert!((curve.ort_ms.unwrap() - 16.0 / 6.0).abs() < 1e-9);
    // Over 40, 80 and 150 operations a second, from (0, 0): 40 + 80 + 210 over 150.
    assert!((curve.ort_2008_ms.unwrap() - 330.0 / 150.0).abs() < 1e-9);
    assert_eq!(curve.knee, Some(8.0));
    let usl = curve.usl.as_ref().unwrap();
    assert_eq!(usl.residuals.len(), 5);
}

#[test]
fn a_curve_of_few_points_has_few_figures() {
    let mut curve = empty();
    curve.recompute();
    assert_eq!(
        (curve.ort_ms, curve.highest_valid_load, curve.knee),
        (None, None, None)
    );
    curve
        .points
        .push(CurvePoint::of(&run(2, 400, 2, &["errors"]), 2, "a"));
    curve.recompute();
    assert!(!curve.any_valid() && curve.load_line.is_none());
    assert_eq!(curve.missing(), [4, 6, 8, 10]);
}

#[test]
fn a_curve_is_saturated_from_the_first_point_with_a_busy_station() {
    let mut curve = empty();
    assert_eq!(curve.saturated_from(), None);
    for (load, utilisation) in [(2, None), (4, Some(0.94)), (6, Some(0.95)), (8, Some(1.0))] {
        let mut point = CurvePoint::of(&run(load, 400, 2, &[]), u64::from(load), "a");
        point.bottleneck = utilisation.map(|utilisation| Bottleneck {
            station: format!("disk {load}"),
            utilisation,
        });
        curve.points.push(point);
    }
    let (load, station) = curve.saturated_from().unwrap();
    assert_eq!((load, station.station.as_str()), (6, "disk 6"));
    assert!(curve.any_valid());
    assert_eq!(curve.missing(), [10]);
    assert_eq!(curve.directory_name(), "streams-curve");
}

#[test]
fn a_curve_is_continued_unless_it_is_complete_or_was_stopped() {
    use CurveState::{Complete, Failed, Interrupted, Stopped, Unfinished};
    let states = [Unfinished, Complete, Stopped, Interrupted, Failed];
    let can_resume = states.map(CurveState::can_resume);
    assert_eq!(can_resume, [true, false, false, true, true]);
}

#[test]
fn percentiles_of_a_point_are_those_of_its_figures() {
    let mut point = CurvePoint::of(&run(10, 1960, 8, &[]), 10, "x");
    point.percentiles.clear();
    (point.p50_ms, point.p95_ms, point.p99_ms) = (Some(1.0), Some(2.0), Some(3.0));
    let actual = |point: &CurvePoint| {
        use Percentile as P;
        let all = [P::P50, P::P95, P::P99, P::P999];
        all.map(|p| point.percentile(p).map(|f| (f.ms, f.enough_samples)))
    };
    // The 99th needs a hundred operations.
    for (ops_per_s, is_enough) in [(9.9, false), (10.0, true)] {
        (point.achieved_ops_per_s, point.window_s) = (ops_per_s, 10.0);
        let expected = [
            Some((1.0, true)),
            Some((2.0, true)),
            Some((3.0, is_enough)),
            None,
        ];
        assert_eq!(actual(&point), expected);
    }
    // Only lower bounds are known, of no completed operation.
    point.mean_ms = None;
    assert_eq!(actual(&point)[0], Some((1.0, false)));
    point.p50_ms = None;
    assert_eq!(actual(&point), [None; 4]);
}

#[test]
fn a_curve_goes_on_where_its_writer_ended() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = CurveWriter::create(root.path(), empty(), SystemTime::now()).unwrap();
    let dir = writer.dir().clone();
    measure(&mut writer, 2, &run(2, 400, 2, &[]));
    // Killed after the run was written and before the curve was; and in the next run.
    let second = run(4, 800, 2, &[]);
    point_writer(&writer, 4).finish(&second).unwrap();
    let third = point_writer(&writer, 6);
    assert!(matches!(
        CurveWriter::resume(dir.path()),
        Err(ResultsError::InUse { .. })
    ));
    drop(writer);
    let writer = CurveWriter::resume(dir.path()).unwrap();
    // Whether the curve comes to the second run is for its stop rules to say.
    assert_eq!(writer.document().missing(), [4, 6, 8, 10]);
    let unlisted = writer.unlisted_point(4);
    assert_eq!(
        unlisted,
        Some(CurvePoint::of(&second, 4, "point-02-load-4"))
    );
    assert_eq!(writer.unlisted_point(6), None);
    drop(third);
    drop(writer);
    // Nothing but what has a name.
    let mut names: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["curve.json", "point-01-load-2", "point-02-load-4"]);
}

#[test]
fn an_interrupted_run_is_not_a_point() {
    let root = tempfile::tempdir().unwrap();
    let writer = CurveWriter::create(root.path(), empty(), SystemTime::now()).unwrap();
    let path = writer.dir().path().to_owned();
    let run = run(2, 100, 2, &["interrupted"]);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    let dir = point_writer(&writer, 2).finish(&run).unwrap();
    assert!(dir.path().ends_with("point-01-load-2-interrupted"));
    drop(writer);
    let writer = CurveWriter::resume(&path).unwrap();
    assert_eq!(writer.unlisted_point(2), None);
    // The same with a run that has the name of a point.
    std::fs::rename(dir.path(), path.join("point-01-load-2")).unwrap();
    drop(writer);
    let writer = CurveWriter::resume(&path).unwrap();
    assert_eq!(writer.unlisted_point(2), None);
}

#[test]
fn a_curve_that_was_refused_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let results = root.path().join("results");
    let writer = CurveWriter::create(&results, empty(), SystemTime::now()).unwrap();
    assert_eq!(std::fs::read_dir(&results).unwrap().count(), 1);
    writer.withdraw().unwrap();
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn a_curve_of_an_earlier_process_or_with_runs_is_not_withdrawn() {
    let root = tempfile::tempdir().unwrap();
    let writer = CurveWriter::create(root.path(), empty(), SystemTime::now()).unwrap();
    let path = writer.dir().path().to_owned();
    drop(writer);
    let writer = CurveWriter::resume(&path).unwrap();
    assert!(!writer.is_new());
    writer.withdraw().unwrap();
    assert_eq!(CurveDir::at(&path).read().unwrap(), empty());
    // One that is new, with a run that is not listed.
    let writer = CurveWriter::create(root.path(), empty(), SystemTime::now()).unwrap();
    let path = writer.dir().path().to_owned();
    let run = run(2, 400, 2, &[]);
    point_writer(&writer, 2).finish(&run).unwrap();
    writer.withdraw().unwrap();
    let entries = std::fs::read_dir(path).unwrap();
    assert_eq!(entries.count(), 2);
}

#[test]
fn what_is_not_a_curve_is_refused_and_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let error = |text: &str| {
        std::fs::write(root.path().join(CURVE_FILE), text).unwrap();
        let error = CurveWriter::resume(root.path()).err().unwrap();
        assert_eq!(
            CurveDir::at(root.path()).read().unwrap_err().to_string(),
            error.to_string()
        );
        error.to_string()
    };
    let path = root.path().join(CURVE_FILE);
    let path = path.display();
    assert_eq!(
        error("{\"schema\": 7}"),
        format!("{path} has schema version 7; this program reads version 3")
    );
    let cut = error(&empty().to_json()[..400]);
    assert!(
        cut.starts_with(&format!("{path} is not a valid result (curve): EOF")),
        "{cut}"
    );
    assert!(error("{\"schema\": 2}").contains("missing field `workload`"));
    std::fs::remove_file(root.path().join(CURVE_FILE)).unwrap();
    let gone = CurveWriter::resume(root.path()).err().unwrap().to_string();
    assert!(
        gone.ends_with("is not a complete result: it lacks curve.json"),
        "{gone}"
    );
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn the_schema_in_the_documents_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/curve.schema.json");
    let schema = plimsoll_results::schema::<LoadCurve>();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == schema,
        "docs/curve.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}
