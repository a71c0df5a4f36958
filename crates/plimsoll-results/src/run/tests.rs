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
        ..operations.remove(0)
    }
}

#[test]
fn percentiles_of_an_operation_are_known_with_latencies() {
    let mut o = operation();
    assert!(o.percentile(Percentile::P50).is_some());
    assert_eq!(o.percentile("12".parse().unwrap()), None);
    o.service = Some(latency(1.0));
    assert_eq!(
        (o.service().mean_ms, o.latency_kind()),
        (1.0, LatencyKind::Service)
    );
    o.paced_ops = 149;
    assert_eq!(o.latency_kind(), LatencyKind::Mixed);
    o.ops = 0;
    assert_eq!(o.percentile(Percentile::P50), None);
    o.oldest_in_flight_ms = Some(0.5);
    assert!(o.has_latencies() && o.percentile(Percentile::P50).is_some());
}

#[test]
fn the_service_time_of_a_summary_is_the_latency_without_pacing() {
    let mut summary = Summary {
        ops: 99,
        mean_ms: 1.0,
        p50_ms: 2.0,
        p99_ms: 3.0,
        ..Summary::default()
    };
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
        (summary.service().mean_ms, summary.latency_kind()),
        (0.1, LatencyKind::Response)
    );
    summary.ops = 0;
    assert!(!summary.has_latencies());
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
