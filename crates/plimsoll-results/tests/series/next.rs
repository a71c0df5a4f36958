//! The rule of each kind, which derives the next run or the end from the listed runs.

use crate::fixtures::{SEED, curve, list, next, paired, plan, profile, repeats, search};
use plimsoll_results::{
    NextRun, Purpose, Repeats, SearchEnd, Series, SeriesKind, SeriesState, SettleRule, Status,
    Step, Verdict,
};

use Verdict::{Failed, Interrupted, Invalid, Valid};

/// Lists a run per verdict; returns the configuration, seed and directory of each run.
fn list_all(series: &mut Series, verdicts: &[Verdict]) -> Vec<(u32, u64, String)> {
    let listed = verdicts.iter().map(|verdict| {
        let next = list(series, *verdict);
        (next.configuration, next.seed, next.directory)
    });
    listed.collect()
}

fn end(series: &Series) -> (SeriesState, Option<String>) {
    match series.next() {
        Step::End(state, reason) => (state, reason.map(|reason| reason.code)),
        Step::Run(next) => panic!("the series goes on with {next:?}"),
    }
}

/// The status of a series once its end is recorded.
fn status(mut series: Series) -> Status {
    let (state, _) = end(&series);
    series.state = state;
    // The writer computes the figures on which the status depends.
    let root = tempfile::tempdir().unwrap();
    crate::fixtures::create(root.path(), series)
        .series()
        .status()
}

#[test]
fn repeated_runs_have_seeds_and_directories_that_follow_each_other() {
    let mut series = repeats(3);
    let listed = list_all(&mut series, &[Valid, Invalid, Valid]);
    let expected = |n: u64| (0, SEED + n - 1, format!("run-0{n}"));
    assert_eq!(listed, [expected(1), expected(2), expected(3)]);
    assert_eq!(end(&series), (SeriesState::Complete, None));
    assert_eq!(status(series), Status::Invalid);
    let mut valid = repeats(2);
    list_all(&mut valid, &[Valid, Valid]);
    assert_eq!(status(valid), Status::Valid);
}

#[test]
fn repeated_runs_wait_as_their_document_says() {
    let mut series = repeats(2);
    assert_eq!(series.kind.strategy().settle(), None);
    let of = |settle| {
        SeriesKind::Repeats(Repeats {
            requested_runs: 2,
            settle: Some(settle),
        })
    };
    series.kind = of(SettleRule::Auto(60.0));
    assert_eq!(
        series.kind.strategy().settle(),
        Some(SettleRule::Auto(60.0))
    );
    assert_eq!(series.kind.strategy().check(&series), Ok(()));
    series.kind = of(SettleRule::Fixed(-1.0));
    let fault = series.kind.strategy().check(&series).unwrap_err();
    assert!(fault.contains("a settling time of -1 s"), "{fault}");
}

#[test]
fn seeds_wrap_around() {
    let mut series = repeats(2);
    series.configurations[0].plan.seed = u64::MAX;
    let seeds: Vec<u64> = list_all(&mut series, &[Valid, Valid])
        .into_iter()
        .map(|(_, seed, _)| seed)
        .collect();
    assert_eq!(seeds, [u64::MAX, 0]);
    assert_eq!(end(&series).0, SeriesState::Complete);
}

#[test]
fn a_curve_measures_its_loads_in_order_with_one_seed() {
    let mut series = curve();
    let listed = list_all(&mut series, &[Valid; 5]);
    let directories: Vec<&str> = listed.iter().map(|run| run.2.as_str()).collect();
    assert_eq!(
        directories,
        [
            "point-01-load-2",
            "point-02-load-4",
            "point-03-load-6",
            "point-04-load-8",
            "point-05-load-10"
        ]
    );
    assert!(listed.iter().all(|run| (run.0, run.1) == (0, SEED)));
    let loads: Vec<Option<u64>> = series.runs.iter().map(|run| run.load).collect();
    assert_eq!(loads, [2, 4, 6, 8, 10].map(Some));
    assert_eq!(end(&series), (SeriesState::Complete, None));
    assert_eq!(status(series), Status::Valid);
}

#[test]
fn a_curve_ends_by_its_rules_and_needs_one_valid_point() {
    let mut series = curve();
    list_all(&mut series, &[Valid, Invalid, Invalid]);
    let stopped = (SeriesState::Stopped, Some("consecutive_invalid".to_owned()));
    assert_eq!(end(&series), stopped);
    assert_eq!(status(series), Status::Valid);
    let mut none = curve();
    list_all(&mut none, &[Invalid, Invalid]);
    assert_eq!(end(&none), stopped);
    assert_eq!(status(none), Status::Invalid);
}

/// A stop rule has no effect after the last load, because every load was measured.
#[test]
fn a_curve_whose_last_points_are_invalid_is_complete() {
    let mut series = curve();
    list_all(&mut series, &[Valid, Valid, Valid, Invalid]);
    list_all(&mut series, &[Invalid]);
    assert_eq!(end(&series), (SeriesState::Complete, None));
}

#[test]
fn a_search_follows_from_its_runs() {
    let mut series = search();
    let mut asked = Vec::new();
    while let Step::Run(next) = series.next() {
        let load = next.load.unwrap();
        assert_eq!(
            next.directory,
            format!("run-{:02}-load-{load}", asked.len() + 1)
        );
        assert_eq!(next.seed, SEED);
        asked.push((load, next.purpose.unwrap()));
        list(&mut series, if load <= 5 { Valid } else { Invalid });
    }
    use Purpose::{Bisection, Confirmation, Doubling};
    let expected = [
        (2, Doubling),
        (4, Doubling),
        (8, Doubling),
        (6, Bisection),
        (5, Bisection),
        (5, Confirmation),
        (5, Confirmation),
        (6, Confirmation),
        (6, Confirmation),
    ];
    assert_eq!(asked, expected);
    assert_eq!(end(&series), (SeriesState::Complete, None));
    assert_eq!(status(series), Status::Valid);
}

#[test]
fn a_search_that_finds_no_sustained_load_is_invalid() {
    let mut series = search();
    while let Step::Run(_) = series.next() {
        list(&mut series, Invalid);
    }
    assert_eq!(end(&series), (SeriesState::Complete, None));
    assert_eq!(status(series.clone()), Status::Invalid);
    let SeriesKind::Search(search) = series.kind else {
        unreachable!("a search");
    };
    let trials: Vec<_> = series
        .runs
        .iter()
        .map(|run| plimsoll_results::TrialRun {
            load: run.load.unwrap(),
            passed: run.is_valid(),
            margin: run.margin,
            ops_per_s: run.achieved_ops_per_s,
            client_limited: run.is_client_limited(),
        })
        .collect();
    let line = search.rules.load_line(&trials);
    assert_eq!(line.termination, SearchEnd::NoneSustained);
}

#[test]
fn a_profile_makes_the_runs_of_each_configuration() {
    let mut series = profile(2, &[("read", "ext4"), ("write", "ext4"), ("read", "xfs")]);
    series.configurations[1].plan.seed = 100;
    let listed = list_all(&mut series, &[Valid; 6]);
    let run = |configuration, seed, directory: &str| (configuration, seed, directory.to_owned());
    assert_eq!(
        listed,
        [
            run(0, SEED, "ext4/read/run-01"),
            run(0, SEED + 1, "ext4/read/run-02"),
            run(1, 100, "ext4/write/run-01"),
            run(1, 101, "ext4/write/run-02"),
            run(2, SEED, "xfs/read/run-01"),
            run(2, SEED + 1, "xfs/read/run-02"),
        ]
    );
    assert_eq!(end(&series), (SeriesState::Complete, None));
    assert_eq!(series.filesystems(), ["ext4", "xfs"]);
    assert_eq!(series.runs_of(1).count(), 2);
    assert_eq!(series.as_profile().unwrap().requested_runs(), 6);
    let mut once = profile(1, &[("read", "ext4")]);
    assert_eq!(list(&mut once, Valid).directory, "ext4/read");
}

#[test]
fn a_profile_goes_on_after_a_failed_run_and_has_failed() {
    let mut series = profile(1, &[("a", "ext4"), ("b", "ext4"), ("c", "ext4")]);
    list_all(&mut series, &[Valid, Failed, Valid]);
    let (state, _) = end(&series);
    assert_eq!(state, SeriesState::Failed);
    let Step::End(_, Some(reason)) = series.next() else {
        panic!("a failed series has a reason");
    };
    assert_eq!(reason.text, "1 run failed");
    assert_eq!(status(series), Status::Failed);
}

#[test]
fn an_interruption_ends_every_kind_and_a_failure_ends_all_but_profiles_and_paired_comparisons() {
    let kinds: [fn() -> Series; 5] = [
        || repeats(3),
        curve,
        search,
        || profile(1, &[("a", "ext4"), ("b", "ext4")]),
        || paired(2, None),
    ];
    for kind in kinds {
        let mut interrupted = kind();
        list(&mut interrupted, Interrupted);
        assert_eq!(end(&interrupted), (SeriesState::Interrupted, None));
        assert_eq!(status(interrupted), Status::Interrupted);
        let mut failed = kind();
        list(&mut failed, Failed);
        match &failed.kind {
            SeriesKind::Profile(_) => assert_eq!(next(&failed).configuration, 1),
            SeriesKind::Ab(_) => assert_eq!(next(&failed).seed, failed.runs[0].seed),
            _ => {
                let expected = (SeriesState::Failed, Some("failed".to_owned()));
                assert_eq!(end(&failed), expected);
                assert_eq!(status(failed), Status::Failed);
            }
        }
    }
}

#[test]
fn a_series_with_missing_runs_can_be_resumed() {
    use SeriesState::{Complete, Failed, Interrupted, Stopped, Unfinished};
    let states = [Unfinished, Complete, Stopped, Interrupted, Failed];
    let can_resume = states.map(SeriesState::can_resume);
    assert_eq!(can_resume, [true, false, false, true, true]);
    assert_eq!(curve().status(), Status::Unfinished);
}

/// `--jobs` makes the independent runs concurrently, so `next` must choose the runs in the order of `independent`.
#[test]
fn independent_runs_are_those_that_next_chooses() {
    let kinds = [
        repeats(3),
        curve(),
        profile(2, &[("a", "ext4"), ("b", "xfs")]),
        paired(3, None),
    ];
    for mut series in kinds {
        loop {
            let independent = series.kind.strategy().independent(&series);
            match series.next() {
                Step::Run(next) => assert_eq!(independent.first(), Some(&next)),
                Step::End(..) => {
                    assert_eq!(independent, []);
                    break;
                }
            }
            list(&mut series, Valid);
            let rest = series.kind.strategy().independent(&series);
            assert_eq!(rest, independent[1..]);
        }
    }
    let search = search();
    assert_eq!(search.kind.strategy().independent(&search), []);
}

#[test]
fn the_plan_of_a_run_has_its_load_and_seed_and_keeps_shared_files() {
    let curve = curve();
    let at = |load| NextRun {
        load: Some(load),
        value: None,
        ..next(&curve)
    };
    let plan_of = |load| curve.plan(&at(load));
    let expected = plimsoll_plan::Plan {
        options: plimsoll_plan::RunOptions {
            keep: true,
            ..plan().options
        },
        ..plan().at_load(4).unwrap()
    };
    assert_eq!(plan_of(4), Ok(expected));
    for wrong in [0, 11] {
        let error = format!("the files are not laid out for load {wrong}");
        assert_eq!(plan_of(wrong), Err(error));
    }
    let mut repeats = repeats(2);
    list(&mut repeats, Valid);
    let second = repeats.plan(&next(&repeats)).unwrap();
    assert_eq!((second.seed, second.options.keep), (SEED + 1, false));
}
