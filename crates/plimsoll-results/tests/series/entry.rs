//! The entry of a run in a series.

use crate::fixtures::{SECOND, curve, measured, plan, plan_at, run};
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_measure::{Latency, OpTotals};
use plimsoll_results::{MeasuredRun, NextRun, Percentile, Run, SeriesRun, Verdict};

/// The entry of a run of a curve.
fn entry(run: &Run) -> SeriesRun {
    let next = NextRun {
        configuration: 0,
        load: run.plan.metric.as_ref().map(|metric| metric.load),
        value: None,
        purpose: None,
        seed: 7,
        directory: String::new(),
    };
    SeriesRun::of(run, &next, "somewhere")
}

#[test]
fn a_run_that_completed_nothing_has_no_latency() {
    let mut run = run(plan(), 1960, 8, &["total_rate"]);
    run.summary.ops = 0;
    let entry = entry(&run);
    let latencies = [
        entry.mean_ms,
        entry.p50_ms,
        entry.p95_ms,
        entry.p99_ms,
        entry.max_ms,
    ];
    assert_eq!((latencies, entry.service_mean_ms), ([None; 5], None));
    let json = serde_json::to_value(&entry).unwrap();
    assert!(json["mean_ms"].is_null() && json["service_mean_ms"].is_null());
}

#[test]
fn an_entry_has_the_figures_of_its_run() {
    let entry = entry(&run(plan(), 1960, 8, &["latency"]));
    assert_eq!((entry.load, entry.seed), (Some(10), 7));
    assert_eq!(entry.directory, "somewhere");
    assert_eq!(entry.verdict, Verdict::Invalid);
    assert_eq!(entry.achieved_ops_per_s, 196.0);
    assert_eq!(entry.offered_ops_per_s, Some(200.0));
    // The response time begins at the scheduled time, the service time at the call.
    assert_eq!(
        (entry.mean_ms, entry.service_mean_ms),
        (Some(8.0), Some(4.0))
    );
    let p99 = entry.p99_ms.unwrap();
    assert!((p99 - 8.0).abs() < 0.01, "{p99}");
    assert_eq!(entry.slowest_process_percent, Some(97.0));
    // Half of the operations read, and the other half read and write.
    assert_eq!(entry.bytes_per_s, 196.0 * 4096.0);
    assert_eq!(entry.read_bytes_per_s, 196.0 * 4096.0);
    assert_eq!(entry.write_bytes_per_s, 98.0 * 4096.0);
    let criteria = entry.criteria.iter();
    let results: Vec<(&str, bool)> = criteria.map(|c| (c.code.as_str(), c.met)).collect();
    assert_eq!(
        results,
        [
            ("process_rate", true),
            ("total_rate", true),
            ("errors", true),
            ("latency", false),
            ("client_saturated", true),
            ("client_start_delay", true),
            ("queue_growth", true),
            ("stalled", true)
        ]
    );
    let texts: Vec<&str> = entry.criteria.iter().map(|c| c.text.as_str()).collect();
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
fn a_run_that_stalled_fails_a_criterion() {
    let entry = entry(&run(plan_at(2), 400, 2, &["stalled"]));
    let stalled = entry.criteria.iter().find(|c| c.code == "stalled").unwrap();
    assert_eq!((stalled.met, &*stalled.text), (false, "stalled was missed"));
}

#[test]
fn a_run_of_a_throttled_client_fails_a_criterion() {
    let criterion = |m: MeasuredRun| {
        let entry = entry(&Run::assemble(m));
        let found = entry.criteria.iter().find(|c| c.code == "client_throttled");
        found.map(|c| c.met)
    };
    let of = |reasons: &[&str]| measured(plan_at(2), 400, 2, reasons);
    assert_eq!(criterion(of(&[])), None);
    // The throttled client may be another machine, whose quota is not in the window.
    assert_eq!(criterion(of(&["client_throttled"])), Some(false));
    let mut kept = of(&[]);
    kept.outcome.windows[0].system.quota = Some(QuotaUse::default());
    assert_eq!(criterion(kept), Some(true));
}

#[test]
fn a_run_whose_operations_hang_has_lower_bounds() {
    let mut m = measured(plan_at(2), 400, 2, &[]);
    let rows = &mut m.outcome.windows[0].totals.rows;
    rows[0] = OpTotals::default();
    rows[1] = OpTotals::default();
    rows[0].in_flight.add(3 * SECOND);
    let run = Run::assemble(m.clone());
    let total = &run.mix.as_ref().unwrap().total;
    let response = total.response.unwrap();
    assert_eq!((response.mean_ms, response.p99_ms), (0.0, 3000.0));
    assert!(response.max_at_least && response.is_at_least(response.p50_ms));
    let bounds = entry(&run);
    assert_eq!((bounds.mean_ms, bounds.service_mean_ms), (None, None));
    let bound = Some(3000.0);
    assert_eq!(
        (bounds.p50_ms, bounds.p95_ms, bounds.p99_ms),
        (bound, bound, bound)
    );
    assert_eq!((bounds.max_ms, bounds.max_at_least), (bound, true));
    assert!(bounds.percentile(Percentile::P95).unwrap().at_least);
    // A maximum is exact if a completed operation took longer than the operation in flight.
    m.outcome.windows[0].totals.rows[1].response = Latency::of([9 * SECOND]);
    m.outcome.windows[0].totals.rows[1].service = Latency::of([SECOND]);
    (
        m.outcome.windows[0].totals.rows[1].ops,
        m.outcome.windows[0].totals.rows[1].paced,
    ) = (1, 1);
    let run = Run::assemble(m);
    let response = run.mix.as_ref().unwrap().total.response;
    assert!(!response.unwrap().max_at_least);
    let exact = entry(&run);
    assert_eq!((exact.max_ms, exact.max_at_least), (Some(9000.0), false));
}

#[test]
fn a_margin_has_the_sign_of_the_verdict_and_a_load() {
    let margin = |done, ms, reasons: &[&str]| entry(&run(plan(), done, ms, reasons)).margin;
    // All 2000 scheduled operations completed, and each of 20 processes had one more operation in flight (101 %); 95 %
    // are required.
    let passed = margin(2000, 16, &[]).unwrap();
    assert!((passed - 6.0 / 95.0).abs() < 1e-12, "{passed}");
    // The mean response time is 30 ms; 20 ms is the limit.
    let slow = margin(2000, 30, &["latency"]).unwrap();
    assert!((slow + 0.5).abs() < 1e-12, "{slow}");
    // The verdict counts: a distance with the opposite sign becomes 0.
    assert_eq!(margin(2000, 16, &["process_rate"]), Some(0.0));
    assert_eq!(margin(2000, 30, &[]), Some(0.0));
    for client in ["client_saturated", "client_start_delay"] {
        assert_eq!(margin(2000, 16, &[client]), None, "{client}");
    }
    let next = NextRun {
        load: None,
        value: None,
        ..crate::fixtures::next(&curve())
    };
    let without_load = SeriesRun::of(&run(plan(), 2000, 16, &[]), &next, "x");
    assert_eq!(without_load.margin, None);
}

#[test]
fn a_failed_run_says_why_the_series_ended() {
    let mut failed = measured(plan_at(4), 0, 1, &["errors"]);
    failed.outcome.failure = Some(plimsoll_results::Failure::of(
        "run",
        "the disk is gone".into(),
    ));
    let entry = entry(&Run::assemble(failed));
    assert_eq!(entry.verdict, Verdict::Failed);
    let reason = entry.failure();
    assert_eq!(reason.code, "failed");
    assert!(
        reason.text.starts_with("load 4: ") && reason.text.contains("the disk is gone"),
        "{reason:?}"
    );
}
