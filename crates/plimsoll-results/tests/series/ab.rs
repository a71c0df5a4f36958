//! The rule of a paired comparison: order, number of pairs, and the effect over the pairs that count.

use crate::fixtures::{Figures, create, list, make, make_all, next, paired, plan, run, write};
use plimsoll_results::{
    MIN_PAIRS_UNTIL, NextRun, Pair, PairedComparison, PrimaryFigure, Series, SeriesState,
    SeriesWriter, Side, Status, Step, Verdict,
};

fn figures(series: &Series) -> &PairedComparison {
    series.as_paired().unwrap().figures
}

/// Makes all runs of a series, with completed operations by pair number and side, and the reasons against a run.
fn made(series: Series, done: impl Fn(u64, Side) -> Figures) -> (tempfile::TempDir, SeriesWriter) {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), series);
    let seed = figures(writer.series()).seed;
    make_all(&mut writer, |next: &NextRun| {
        let side = Side::BOTH[next.configuration as usize];
        Some(done(next.seed - seed + 1, side))
    });
    (root, writer)
}

#[test]
fn each_variant_runs_first_in_one_of_two_successive_pairs() {
    let mut series = paired(20, None);
    let first = figures(&series).first.clone();
    assert_eq!(first.len(), 20);
    for two in first.chunks(2) {
        assert_eq!(two[1], two[0].other());
    }
    // By chance, both orders occur among ten draws.
    assert!(first.chunks(2).any(|two| two[0] == Side::A));
    assert!(first.chunks(2).any(|two| two[0] == Side::B));
    let again = figures(&paired(20, None)).first.clone();
    assert_eq!(again, first);
    let seed = figures(&series).seed;
    for (pair, side) in (0u64..).zip(first) {
        for side in [side, side.other()] {
            let next = list(&mut series, Verdict::Valid);
            assert_eq!(
                (next.configuration, next.seed),
                (side.configuration(), seed + pair)
            );
            assert_eq!(next.directory, format!("pair-{:02}-{side}", pair + 1));
            assert_eq!(series.plan(&next).unwrap().seed, next.seed);
        }
    }
    assert_eq!(series.next(), Step::End(SeriesState::Complete, None));
}

#[test]
fn the_order_differs_between_seeds() {
    let first = |seed| PairedComparison::new(PrimaryFigure::OpsPerS, seed, 40, None, None).first;
    assert_ne!(first(1), first(2));
}

/// The runs of B complete 1200 operations for 1000 of A, apart from a difference of 10 in every second pair.
#[test]
fn the_effect_is_the_ratio_over_the_pairs() {
    let (_root, writer) = made(paired(4, None), |pair, side| match side {
        Side::A => (1000, 10, &[]),
        Side::B => (1200 + 10 * (pair % 2), 10, &[]),
    });
    let effect = figures(writer.series()).effect.unwrap();
    assert_eq!(effect.pairs, 4);
    let expected = (1.2f64 * 1.21).sqrt();
    assert!((effect.ratio - expected).abs() < 1e-9, "{effect:?}");
    assert!(effect.is_significant());
    assert_eq!(writer.series().status(), Status::Valid);
    let read = writer.dir().read().unwrap();
    assert_eq!(&read, writer.series());
}

#[test]
fn a_pair_with_a_run_that_is_not_valid_does_not_count_and_is_named() {
    let (_root, writer) = made(paired(4, None), |pair, side| match (pair, side) {
        (2, Side::B) => (5000, 10, &["errors"]),
        (_, Side::A) => (1000, 10, &[]),
        (_, Side::B) => (1100, 10, &[]),
    });
    let series = writer.series();
    let effect = figures(series).effect.unwrap();
    assert_eq!(effect.pairs, 3);
    assert!((effect.ratio - 1.1).abs() < 1e-9);
    assert_eq!(
        (series.state, series.status()),
        (SeriesState::Complete, Status::Valid)
    );
    let pairs = figures(series).pairs(&series.runs);
    let faults = pairs
        .iter()
        .map(|pair: &Pair<'_>| pair.fault(PrimaryFigure::OpsPerS));
    let faults: Vec<String> = faults.flatten().collect();
    assert_eq!(faults.len(), 1);
    let expected = "pair 2 does not count: the run of B is invalid (";
    assert!(faults[0].starts_with(expected), "{faults:?}");
}

#[test]
fn a_comparison_with_one_pair_that_counts_is_invalid() {
    let (_root, writer) = made(paired(3, None), |pair, _| match pair {
        1 => (1000, 10, &[]),
        _ => (1000, 10, &["errors"]),
    });
    assert_eq!(figures(writer.series()).effect, None);
    assert_eq!(writer.series().state, SeriesState::Complete);
    assert_eq!(writer.series().status(), Status::Invalid);
}

#[test]
fn pairs_are_made_until_the_interval_is_narrow_but_at_least_four() {
    let equal = made(paired(50, Some(0.02)), |_, _| (1000, 10, &[])).1;
    assert_eq!(equal.series().runs.len(), 2 * MIN_PAIRS_UNTIL as usize);
    // Ratios of 1.1 and 1 / 1.1 in turns: the half-width falls below 10 % later.
    let (_root, wide) = made(paired(50, Some(0.1)), |pair, side| match (pair % 2, side) {
        (0, Side::A) | (1, Side::B) => (1100, 10, &[]),
        _ => (1000, 10, &[]),
    });
    let series = wide.series();
    let pairs = series.runs.len() / 2;
    assert!((5..50).contains(&pairs), "{pairs}");
    let effect = figures(series).effect.unwrap();
    assert!(effect.half_width() <= 0.1);
    // One pair fewer was not narrow enough.
    let mut shorter = series.clone();
    shorter.runs.truncate(2 * (pairs - 1));
    assert!(
        matches!(shorter.next(), Step::Run(next) if next.seed == series.runs[2 * pairs - 1].seed)
    );
    assert_eq!(series.kind.strategy().independent(series), []);
}

#[test]
fn pairs_end_at_the_maximum_even_if_the_interval_is_wide() {
    let (_root, writer) = made(paired(6, Some(0.001)), |pair, side| match side {
        Side::A => (1000, 10, &[]),
        Side::B => (1000 + 100 * pair, 10, &[]),
    });
    assert_eq!(writer.series().runs.len(), 12);
    assert_eq!(writer.series().state, SeriesState::Complete);
}

#[test]
fn a_resumed_comparison_repeats_what_was_not_measured_and_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), paired(3, None));
    let path = writer.dir().path().to_owned();
    make(&mut writer, 1000, 10, &[]);
    let interrupted = make(&mut writer, 100, 10, &["interrupted"]);
    writer.end(SeriesState::Interrupted, None).unwrap();
    drop(writer);
    let mut writer = SeriesWriter::resume(&path).unwrap();
    let again = next(writer.series());
    assert_eq!(
        (again.configuration, again.seed),
        (interrupted.configuration, interrupted.seed)
    );
    make(&mut writer, 1000, 10, &[]);
    // The third run is written but not listed, as by a process that was killed in between.
    let third = next(writer.series());
    let results = run(writer.series().plan(&third).unwrap(), 1000, 10, &[]);
    write(&writer, &third, &results);
    let listed = writer.unlisted(&third).unwrap();
    assert_eq!(
        (listed.directory, listed.seed),
        (third.directory, third.seed)
    );
    let series = writer.series();
    let pairs = figures(series).pairs(&series.runs);
    assert_eq!(pairs.len(), 1);
    assert_eq!(
        pairs[0].figures(PrimaryFigure::OpsPerS),
        Some((100.0, 100.0))
    );
}

#[test]
fn a_percentile_of_too_few_operations_is_no_primary_figure() {
    let p99 = PrimaryFigure::of_name("p99").unwrap();
    let entry = |done| {
        let root = tempfile::tempdir().unwrap();
        make(&mut create(root.path(), paired(2, None)), done, 10, &[])
    };
    assert_eq!(p99.of(&entry(50)), None);
    let known = p99.of(&entry(5000)).unwrap();
    assert!((known / 10.0 - 1.0).abs() < 0.01, "{known}");
    assert_eq!(PrimaryFigure::of_name("p77"), None);
    for name in PrimaryFigure::names() {
        assert_eq!(PrimaryFigure::of_name(&name).unwrap().to_string(), name);
    }
}

#[test]
fn differences_between_the_variants_are_named() {
    let mut series = paired(2, None);
    let of = |series: &Series| {
        let paired = series.as_paired().unwrap();
        (paired.is_like_with_like(), paired.differences())
    };
    assert_eq!(of(&series), (true, vec![]));
    series.configurations[1].target.url = "null:?latency=2ms".into();
    series.configurations[1].plan = plan().at_load(5).unwrap();
    series.configurations[0].before = vec!["sync".into()];
    let (is_like, differences) = of(&series);
    assert!(!is_like);
    let shown = differences
        .iter()
        .map(|d| format!("{}: {} / {}", d.what, d.a, d.b));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            "target: null / null:?latency=2ms",
            "load: 10 / 5",
            "command before each run: sync / "
        ]
    );
}

#[test]
fn a_document_with_a_fault_is_refused() {
    let fault = |change: fn(&mut Series, &mut PairedComparison)| {
        let mut series = paired(2, None);
        list(&mut series, Verdict::Valid);
        let mut comparison = figures(&series).clone();
        change(&mut series, &mut comparison);
        series.kind = plimsoll_results::SeriesKind::Ab(comparison);
        series.kind.strategy().check(&series).unwrap_err()
    };
    assert_eq!(
        fault(|series, _| drop(series.configurations.pop())),
        "a paired comparison has 2 configurations, not 1"
    );
    assert!(fault(|_, of| of.first.clear()).contains("expected 1 to 1000"));
    assert!(fault(|_, of| of.until = Some(-1.0)).contains("not a number above 0"));
    assert!(fault(|_, of| of.seed += 7).contains("has the seed of no pair"));
    assert!(
        fault(|_, of| of.settle = Some(plimsoll_results::SettleRule::Fixed(-1.0)))
            .contains("a settling time of -1 s")
    );
}
