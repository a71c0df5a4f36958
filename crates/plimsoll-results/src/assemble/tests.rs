use super::{done as done_figures, *};
use crate::Percentile;
use plimsoll_measure::system::SystemUse;

const SECOND: Nanos = 1_000_000_000;

fn measured(plan: Plan) -> MeasuredRun {
    let target = Target {
        url: "posix".into(),
        description: String::new(),
        system: None,
    };
    MeasuredRun::new(plan, target, SystemTime::UNIX_EPOCH)
}

fn plan(kinds: &[OpKind]) -> Plan {
    let mut plan = Plan::empty("w");
    let operation = |kind: &OpKind| Operation {
        name: format!("a {kind}"),
        kind: *kind,
        location: None,
    };
    plan.operations = kinds.iter().map(operation).collect();
    plan
}

/// Totals of `ops` operations of two bytes each, with latencies of 1 ms, 2 ms, and so on up to `ops` ms.
fn row(ops: u64) -> OpTotals {
    OpTotals {
        ops,
        bytes: 2 * u128::from(ops),
        service: Latency::of((1..=ops).map(|n| n * 1_000_000)),
        ..OpTotals::default()
    }
}

fn with(totals: WindowTotals, system: SystemUse) -> MeasuredWindow {
    MeasuredWindow {
        system,
        ..totals.into()
    }
}

fn gap(from: Nanos, to: Nanos) -> Gap {
    Gap { from, to }
}

fn stall(from: Nanos, to: Nanos) -> Stall {
    Stall {
        gap: gap(from, to),
        at_end: false,
        counts: true,
    }
}

#[test]
fn windows_of_stages_are_one_as_long_as_all() {
    let window = |number, start, end, ops, longest, rank| WindowTotals {
        number,
        start,
        end,
        rows: vec![row(ops)],
        gaps: plimsoll_measure::GapWatch::new(vec![true]).finish(longest),
        stalls: vec![stall(1, 3)],
        rank_stalls: vec![RankStall {
            rank,
            stall: stall(2, 4),
        }],
        abandoned: ops,
        ..WindowTotals::default()
    };
    let mut run = measured(plan(&[OpKind::Read]));
    run.outcome.windows = [
        window(1, 10 * SECOND, 14 * SECOND, 3, 2 * SECOND, 0),
        window(2, 100 * SECOND, 106 * SECOND, 5, SECOND, 7),
        window(3, 200 * SECOND, 201 * SECOND, 1, 5 * SECOND, 8),
    ]
    .map(MeasuredWindow::from)
    .to_vec();
    let whole = whole(&run, &Percentiles::kept(None));
    assert_eq!(
        (whole.number, whole.start_s, whole.window_s),
        (3, 10.0, 11.0)
    );
    let summary = &whole.summary;
    assert_eq!((summary.ops, summary.bytes, summary.abandoned), (9, 18, 9));
    // The sum takes its maximum gap from the third window, which begins 10 s into the sum.
    assert_eq!(summary.max_gap_ms, Some(5000.0));
    assert_eq!(whole.operations[0].max_gap_ms, Some(5000.0));
    let at = |seconds: f64, ns: f64| seconds + ns / 1e9;
    let actual: Vec<_> = summary
        .stalls
        .iter()
        .map(|s| (s.start_s, s.end_s, s.rank))
        .collect();
    let expected = [
        (at(0.0, 1.0), at(0.0, 3.0), None),
        (at(4.0, 1.0), at(4.0, 3.0), None),
        (at(10.0, 1.0), at(10.0, 3.0), None),
        (at(0.0, 2.0), at(0.0, 4.0), Some(0)),
        (at(4.0, 2.0), at(4.0, 4.0), Some(7)),
        (at(10.0, 2.0), at(10.0, 4.0), Some(8)),
    ];
    assert_eq!(actual.len(), expected.len());
    for (actual, expected) in actual.iter().zip(expected) {
        assert!((actual.0 - expected.0).abs() < 1e-10 && (actual.1 - expected.1).abs() < 1e-10);
        assert_eq!(actual.2, expected.2);
    }
    run.outcome.windows.clear();
    assert_eq!(
        super::whole(&run, &Percentiles::kept(None)),
        Window::default()
    );
}

#[test]
fn the_longest_gap_of_all_windows_is_where_it_was() {
    let gaps = |longest| plimsoll_measure::GapWatch::new(vec![true]).finish(longest);
    let mut all = WindowTotals {
        gaps: gaps(5),
        ..WindowTotals::default()
    };
    for (length, before, expected) in [(5, 10, gap(0, 5)), (4, 20, gap(0, 5)), (6, 30, gap(30, 36))]
    {
        let next = WindowTotals {
            gaps: gaps(length),
            ..WindowTotals::default()
        };
        append_standstill(&mut all, &next, before);
        assert_eq!((all.gaps.all, all.gaps.rows[0]), (expected, expected));
    }
}

#[test]
fn rows_are_operations_procedures_or_delays_of_completions() {
    let kinds = [
        OpKind::Read,
        OpKind::Rpc,
        OpKind::Start,
        OpKind::Prepare,
        OpKind::CompletionDelay,
        OpKind::Write,
    ];
    let plan = plan(&kinds);
    let kept = Percentiles::kept(None);
    let figures = |ops: [u64; 6]| {
        let rows = ops.map(row);
        let names = |all: Vec<OperationFigures>| {
            all.into_iter().map(|o| (o.kind, o.ops)).collect::<Vec<_>>()
        };
        let (used, called, delay) = tables(&plan, &rows, &[], 1.0, &kept);
        (names(used), names(called), delay.map(|o| o.ops))
    };
    let (used, called, delay) = figures([1, 2, 3, 4, 5, 6]);
    assert_eq!(
        used,
        [(OpKind::Read, 1), (OpKind::Prepare, 4), (OpKind::Write, 6)]
    );
    assert_eq!((called, delay), (vec![(OpKind::Rpc, 2)], Some(5)));
    let (used, called, delay) = figures([0; 6]);
    assert_eq!(used, [(OpKind::Read, 0), (OpKind::Write, 0)]);
    assert_eq!((called, delay), (vec![], None));
    // A row with only failed operations or operations in flight counts as used.
    let mut rows = [0; 6].map(row);
    rows[1].errors.insert("EIO".into(), 1);
    rows[3].in_flight.add(1);
    let (used, called, _) = tables(&plan, &rows, &[], 1.0, &kept);
    assert_eq!((called[0].errors, used[1].in_flight), (1, 1));
}

#[test]
fn figures_of_a_window_follow_from_its_totals() {
    let mut plan = plan(&[OpKind::Read, OpKind::Write, OpKind::Rpc]);
    plan.cpu_accounting = true;
    let mut totals = WindowTotals {
        number: 2,
        start: 3 * SECOND,
        end: 8 * SECOND,
        rows: vec![row(10), row(40), row(1000)],
        gaps: plimsoll_measure::GapWatch::new(vec![true; 3]).finish(SECOND),
        ..WindowTotals::default()
    };
    totals.rows[1].errors.insert("EIO".into(), 5);
    totals.rows[2].errors.insert("EIO".into(), 5);
    let system = SystemUse {
        process: Some(plimsoll_measure::system::ProcessUse {
            user_s: 0.25,
            system_s: 0.75,
            ..Default::default()
        }),
        ..SystemUse::default()
    };
    let run = measured(plan);
    let kept = Percentiles::kept(None);
    let window = window(&run, &with(totals, system), &kept);
    assert_eq!((window.start_s, window.window_s), (3.0, 5.0));
    let s = &window.summary;
    assert_eq!(
        (s.ops, s.ops_per_s, s.bytes, s.bytes_per_s),
        (50, 10.0, 100, 20.0)
    );
    assert_eq!((s.reads_per_s, s.writes_per_s, s.errors), (2.0, 8.0, 5));
    assert_eq!(s.cpu_us_per_op, Some(20_000.0));
    // The summary has 55 completions, of which 45 are writes.
    let likely = |n| Some(plimsoll_measure::expected_max_gap(5 * SECOND, n) / 1e6);
    assert_eq!(
        (s.max_gap_ms, s.expected_max_gap_ms),
        (Some(1000.0), likely(55))
    );
    let writes = &window.operations[1];
    assert_eq!(
        (writes.max_gap_ms, writes.expected_max_gap_ms),
        (Some(1000.0), likely(45))
    );
    assert_eq!(
        (writes.ops_per_s, writes.bytes_per_s, writes.errors),
        (8.0, 16.0, 5)
    );
    assert_eq!((writes.service, writes.paced_ops), (None, 0));
    assert_eq!(window.procedures[0].ops, 1000);
}

#[test]
fn rows_whose_names_differ_in_a_number_are_a_group() {
    let rows = [
        ("read1", OpKind::Read, 10),
        ("read1", OpKind::Open, 1),
        ("read2", OpKind::Read, 40),
        ("write1", OpKind::Write, 5),
        ("7", OpKind::Read, 2),
        ("8", OpKind::Read, 3),
    ];
    let mut plan = plan(&rows.map(|(_, kind, _)| kind));
    for (operation, (name, ..)) in plan.operations.iter_mut().zip(rows) {
        operation.name = name.into();
    }
    let mut totals = WindowTotals {
        end: SECOND,
        rows: rows.map(|(.., ops)| row(ops)).into(),
        ..WindowTotals::default()
    };
    totals.rows[2].errors.insert("EIO".into(), 4);
    let kept = Percentiles::kept(None);
    let of = |plan| window(&measured(plan), &totals.clone().into(), &kept);
    let groups = of(plan.clone()).groups;
    let [group] = &groups[..] else {
        panic!("{groups:?}")
    };
    let figures = &group.figures;
    assert_eq!(
        (&*figures.name, figures.kind, group.rows),
        ("read", OpKind::Read, 2)
    );
    assert_eq!((figures.ops, figures.bytes, figures.errors), (50, 100, 4));
    // Of 1 to 10 ms and 1 to 40 ms, 24 latencies are at most 14 ms, and 25 at most 15 ms.
    let (latency, p50) = (
        &figures.latency,
        figures.percentile(Percentile::P50).unwrap(),
    );
    assert!((latency.mean_ms - (55.0 + 820.0) / 50.0).abs() < 1e-9);
    assert!((p50.ms - 15.0).abs() < 0.02, "{p50:?}");
    assert_eq!((latency.min_ms, latency.max_ms), (1.0, 40.0));
    assert!(group.contains(OpKind::Read, "read2"));
    assert!(!group.contains(OpKind::Open, "read1") && !group.contains(OpKind::Read, "8"));
}

#[test]
fn processor_time_is_reported_only_where_it_is_accounted_for() {
    let cpu = |accounted, ops| {
        let mut plan = plan(&[OpKind::Read]);
        plan.cpu_accounting = accounted;
        let totals = WindowTotals {
            end: SECOND,
            rows: vec![row(ops)],
            ..WindowTotals::default()
        };
        let system = SystemUse {
            process: Some(plimsoll_measure::system::ProcessUse::default()),
            ..SystemUse::default()
        };
        let summary = window(
            &measured(plan),
            &with(totals, system),
            &Percentiles::kept(None),
        )
        .summary;
        assert_eq!(
            (summary.max_gap_ms, summary.expected_max_gap_ms),
            (None, None)
        );
        summary.cpu_us_per_op
    };
    assert_eq!(
        (cpu(true, 5), cpu(false, 5), cpu(true, 0)),
        (Some(0.0), None, None)
    );
}

#[test]
fn paced_operations_have_a_service_time_of_their_own() {
    let plan = plan(&[OpKind::Read, OpKind::Write]);
    let mut paced = row(4);
    paced.paced = 4;
    paced.response = Latency::of([9_000_000; 4]);
    let rows = [paced, row(4)];
    let (summary, operations) = figures(&plan, &rows, 2.0, &Percentiles::kept(None));
    assert_eq!(
        (summary.paced_ops, summary.mean_ms),
        (4, (36.0 + 10.0) / 8.0)
    );
    assert_eq!(summary.service.map(|s| s.mean_ms), Some(2.5));
    assert_eq!(
        (operations[0].latency.mean_ms, operations[0].paced_ops),
        (9.0, 4)
    );
    assert_eq!(operations[0].service.map(|s| s.mean_ms), Some(2.5));
    assert_eq!(
        (operations[1].latency.mean_ms, operations[1].service),
        (2.5, None)
    );
    assert_eq!((per_second(5u64, 2.0), per_second(5u64, 0.0)), (2.5, 0.0));
}

#[test]
fn the_first_and_the_last_worker_finish_where_there_are_several() {
    let all = Summary {
        ops: 90,
        bytes: 900,
        ..Summary::default()
    };
    let of = |of_plan, workers| {
        let mut plan = plan(&[OpKind::Read]);
        let nothing = plimsoll_plan::Program::Sequence(vec![]);
        plan.groups = vec![plimsoll_plan::WorkerGroup::new("p", of_plan, "t", nothing)];
        let done = WorkersDone {
            workers,
            first: 2 * SECOND,
            last: 3 * SECOND,
            first_ops: 50,
            first_bytes: 500,
        };
        let totals = WindowTotals {
            done: Some(done),
            ..WindowTotals::default()
        };
        done_figures(&plan, &totals, &all)
    };
    let at = |after_s, ops, ops_per_s, bytes, bytes_per_s| CompletedFigures {
        after_s,
        ops,
        ops_per_s,
        bytes,
        bytes_per_s,
    };
    let expected = (at(2.0, 50, 25.0, 500, 250.0), at(3.0, 90, 30.0, 900, 300.0));
    assert_eq!(of(3, 3), Some(expected));
    // Finish figures exist only if several workers all finished: not for two of three workers, and not for a single
    // worker.
    assert_eq!(of(3, 2), None);
    assert_eq!(of(1, 1), None);
}

#[test]
fn reasons_are_stated_once() {
    let last = || {
        let mut window = Window::default();
        window.summary.errors = 4;
        window
    };
    let codes = |m: &MeasuredRun, last: &Window| {
        let validity = validate(m, last);
        let codes: Vec<String> = validity.reasons.into_iter().map(|r| r.code).collect();
        (validity.verdict, codes.join(" "))
    };
    let mut m = measured(plan(&[OpKind::Read]));
    assert_eq!(
        codes(&m, &Window::default()),
        (Verdict::Invalid, "no_window".into())
    );
    m.outcome.reasons = vec![Reason::new("fileset_exhausted", String::new())];
    assert_eq!(
        codes(&m, &Window::default()),
        (Verdict::Invalid, "fileset_exhausted".into())
    );
    m.outcome.reasons = vec![Reason::new("no_window", String::new())];
    assert_eq!(
        codes(&m, &Window::default()),
        (Verdict::Invalid, "no_window".into())
    );
    m.outcome.reasons.clear();
    m.outcome.windows = vec![MeasuredWindow::default()];
    assert_eq!(
        codes(&m, &Window::default()),
        (Verdict::Valid, String::new())
    );
    m.plan.options.on_error = OnError::Count;
    assert_eq!(
        codes(&m, &Window::default()),
        (Verdict::Valid, String::new())
    );
    assert_eq!(codes(&m, &last()), (Verdict::Invalid, "errors".into()));
    m.outcome.reasons = vec![Reason::new("errors", String::new())];
    assert_eq!(codes(&m, &last()), (Verdict::Invalid, "errors".into()));
    m.outcome.hung_workers = vec!["p/t 1".into()];
    assert_eq!(
        codes(&m, &last()),
        (Verdict::Invalid, "hung_workers errors".into())
    );
    m.outcome
        .reasons
        .push(Reason::new("hung_workers", String::new()));
    assert_eq!(
        codes(&m, &last()),
        (Verdict::Invalid, "errors hung_workers".into())
    );
    m.outcome.interrupted = true;
    m.outcome.windows.clear();
    m.outcome.hung_workers.clear();
    m.outcome.reasons.clear();
    assert_eq!(
        codes(&m, &Window::default()),
        (Verdict::Interrupted, "interrupted".into())
    );
}
