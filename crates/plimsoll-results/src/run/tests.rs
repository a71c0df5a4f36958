use super::*;

fn latency(first: f64) -> LatencyFigures {
    LatencyFigures {
        mean_ms: first,
        min_ms: first + 1.0,
        p50_ms: first + 2.0,
        p95_ms: first + 3.0,
        p99_ms: first + 4.0,
        p999_ms: first + 5.0,
        max_ms: first + 6.0,
        max_at_least: false,
    }
}

fn operation() -> OperationFigures {
    let mut plan = plimsoll_plan::Plan::empty("w");
    plan.operations = vec![plimsoll_plan::Operation {
        name: "read".into(),
        kind: plimsoll_plan::OpKind::Read,
        location: None,
    }];
    let rows = [plimsoll_measure::OpTotals::default()];
    let (_, mut operations) = crate::figures(&plan, &rows, 1.0, &Percentiles::kept(None));
    OperationFigures {
        ops: 150,
        latency: latency(10.0),
        percentiles: vec![],
        ..operations.remove(0)
    }
}

#[test]
fn percentiles_of_an_operation_are_those_of_its_figures() {
    let p90 = "90".parse().unwrap();
    let all = [
        Percentile::P50,
        p90,
        Percentile::P95,
        Percentile::P99,
        Percentile::P999,
    ];
    let actual = |o: &OperationFigures| {
        all.map(|p| {
            o.percentile(p)
                .map(|f| (f.ms, f.service_ms, f.enough_samples))
        })
    };
    let mut o = operation();
    let of = |ms, is_enough| Some((ms, None, is_enough));
    assert_eq!(
        actual(&o),
        [
            of(12.0, true),
            None,
            of(13.0, true),
            of(14.0, true),
            of(15.0, false)
        ]
    );
    o.service = Some(latency(1.0));
    assert_eq!(actual(&o)[3], Some((14.0, Some(5.0), true)));
    assert_eq!(
        (o.service().mean_ms, o.latency_kind()),
        (1.0, LatencyKind::Service)
    );
    o.paced_ops = 149;
    assert_eq!(o.latency_kind(), LatencyKind::Mixed);
    o.ops = 0;
    assert_eq!(actual(&o), [None; 5]);
    o.oldest_in_flight_ms = Some(0.5);
    assert!(o.has_latencies() && actual(&o)[0].is_some());
}

#[test]
fn percentiles_of_a_summary_are_known_or_listed() {
    let mut summary = Summary {
        ops: 99,
        mean_ms: 1.0,
        p50_ms: 2.0,
        p99_ms: 3.0,
        ..Summary::default()
    };
    let actual = |s: &Summary, p| {
        s.percentile(p)
            .map(|f| (f.ms, f.service_ms, f.enough_samples))
    };
    assert_eq!(actual(&summary, Percentile::P50), Some((2.0, None, true)));
    assert_eq!(actual(&summary, Percentile::P99), Some((3.0, None, false)));
    assert_eq!(actual(&summary, Percentile::P95), None);
    let service = summary.service();
    assert_eq!(
        (service.mean_ms, service.p50_ms, service.p99_ms),
        (1.0, 2.0, 3.0)
    );
    summary.service = Some(SummaryLatency {
        mean_ms: 0.1,
        p50_ms: 0.2,
        p99_ms: 0.3,
    });
    summary.paced_ops = 99;
    assert_eq!(
        actual(&summary, Percentile::P50),
        Some((2.0, Some(0.2), true))
    );
    assert_eq!(
        actual(&summary, Percentile::P99),
        Some((3.0, Some(0.3), false))
    );
    assert_eq!(
        (summary.service().mean_ms, summary.latency_kind()),
        (0.1, LatencyKind::Response)
    );
    summary.ops = 0;
    assert!(!summary.has_latencies() && actual(&summary, Percentile::P50).is_none());
}

#[test]
fn verdicts_and_the_program_have_names() {
    let verdicts = [
        Verdict::Valid,
        Verdict::Invalid,
        Verdict::Failed,
        Verdict::Interrupted,
    ];
    let words = verdicts.map(|v| v.to_string());
    assert_eq!(words, ["valid", "invalid", "failed", "interrupted"]);
    assert_eq!(format!("{:>7}|", Verdict::Valid), "  valid|");
    assert_eq!(Program::plimsoll().name, "plimsoll");
    assert_eq!(Program::plimsoll().version, env!("CARGO_PKG_VERSION"));
}
