//! The search for the load line, tested against systems that are only a formula.

use plimsoll_results::{
    Agreement, LoadLine, Purpose, SearchEnd, SearchRules, SearchStep, TrialRun,
};
use proptest::prelude::*;

/// Runs a search against a system; returns the load line, the runs in order, and the load and purpose of each run.
fn found(
    search: &SearchRules,
    mut system: impl FnMut(u64) -> TrialRun,
) -> (LoadLine, Vec<TrialRun>, Vec<(u64, Purpose)>) {
    let (mut asked, mut trials) = (Vec::new(), Vec::new());
    loop {
        match search.next(&trials) {
            SearchStep::Done(line) => return (line, trials, asked),
            SearchStep::Measure(load, purpose) => {
                asked.push((load, purpose));
                trials.push(system(load));
            }
        }
    }
}

/// A system that passes every run up to a load of `limit`, and fails every run above the limit.
fn sharp(limit: u64) -> impl FnMut(u64) -> TrialRun {
    move |load| TrialRun {
        load,
        passed: load <= limit,
        margin: None,
        ops_per_s: 0.0,
        client_limited: false,
    }
}

fn support(load: u64, held: u32, runs: u32) -> Option<Agreement> {
    Some(Agreement {
        load,
        passed: held,
        runs,
    })
}

#[test]
fn a_sharp_limit_is_found_by_doubling_and_halving() {
    use Purpose::{Bisection, Confirmation, Doubling};
    let search = SearchRules::new(4, 1000).unwrap();
    let (line, _, asked) = found(&search, sharp(37));
    assert_eq!(line.termination, SearchEnd::Found);
    assert_eq!(line.sustained, support(37, 3, 3));
    assert_eq!(line.not_sustained, support(38, 0, 3));
    let expected = [
        (4, Doubling),
        (8, Doubling),
        (16, Doubling),
        (32, Doubling),
        (64, Doubling),
        (48, Bisection),
        (40, Bisection),
        (36, Bisection),
        (38, Bisection),
        (37, Bisection),
        (37, Confirmation),
        (37, Confirmation),
        (38, Confirmation),
        (38, Confirmation),
    ];
    assert_eq!(asked, expected);
}

#[test]
fn the_last_doubling_stops_at_the_greatest_load() {
    let search = SearchRules::new(3, 20).unwrap();
    let (line, _, asked) = found(&search, sharp(100));
    assert_eq!(line.termination, SearchEnd::MaxLoadSustained);
    assert_eq!(line.sustained, support(20, 3, 3));
    assert_eq!(line.not_sustained, None);
    let loads: Vec<u64> = asked.iter().map(|a| a.0).collect();
    assert_eq!(loads, [3, 6, 12, 20, 20, 20]);
}

#[test]
fn where_no_load_is_sustained_the_least_load_is_tried() {
    let search = SearchRules::new(8, 20).unwrap();
    let (line, _, asked) = found(&search, sharp(0));
    assert_eq!(line.termination, SearchEnd::NoneSustained);
    assert_eq!(
        (line.sustained, line.not_sustained),
        (None, support(1, 0, 3))
    );
    let loads: Vec<u64> = asked.iter().map(|a| a.0).collect();
    assert_eq!(loads, [8, 4, 2, 1, 1, 1]);
}

#[test]
fn a_load_near_its_criterion_is_judged_by_the_majority() {
    // The runs of load 10 have margins within 1 %: passed, failed, passed.
    let mut tenth = [0.01, -0.005, 0.01].into_iter();
    let mut system = |load: u64| {
        let margin = match load {
            10 => tenth.next().expect("ten is run three times"),
            l if l < 10 => 0.2,
            _ => -0.2,
        };
        TrialRun {
            load,
            passed: margin >= 0.0,
            margin: Some(margin),
            ops_per_s: 0.0,
            client_limited: false,
        }
    };
    let search = SearchRules::new(10, 40).unwrap();
    let (line, _, asked) = found(&search, &mut system);
    assert_eq!(line.sustained, support(10, 2, 3));
    assert_eq!(line.not_sustained, support(11, 0, 3));
    let repeats: Vec<u64> = asked
        .iter()
        .filter(|a| a.1 == Purpose::Repeat)
        .map(|a| a.0)
        .collect();
    assert_eq!(repeats, [10, 10]);
}

#[test]
fn a_spread_seen_in_repeats_makes_more_of_them() {
    // Load 16 is repeated because its margin is within 2 %. The margins of load 16 differ by 0.1, so load 24, with a
    // margin of −0.09, is repeated too.
    let mut at_16 = [0.01, 0.11].into_iter().cycle();
    let mut system = |load: u64| {
        let margin = match load {
            16 => at_16.next().unwrap_or_default(),
            l if l < 16 => 0.2,
            24 => -0.09,
            _ => -0.2,
        };
        TrialRun {
            load,
            passed: margin >= 0.0,
            margin: Some(margin),
            ops_per_s: 0.0,
            client_limited: false,
        }
    };
    let search = SearchRules {
        resolution: Some(8),
        ..SearchRules::new(16, 64).unwrap()
    };
    let (line, _, asked) = found(&search, &mut system);
    assert_eq!(line.sustained, support(16, 3, 3));
    let repeated = asked.contains(&(24, Purpose::Repeat));
    assert!(repeated, "{asked:?}");
}

#[test]
fn a_run_that_the_machine_held_back_is_made_again() {
    // The client limited the first run of load 8; the system sustains load 12.
    let mut runs_of_8 = 0;
    let system = |load: u64| {
        runs_of_8 += u32::from(load == 8);
        let doubtful = load == 8 && runs_of_8 == 1;
        TrialRun {
            load,
            passed: load <= 12 && !doubtful,
            margin: (!doubtful).then_some(if load <= 12 { 0.2 } else { -0.2 }),
            ops_per_s: 0.0,
            client_limited: doubtful,
        }
    };
    let (line, _, asked) = found(&SearchRules::new(4, 100).unwrap(), system);
    use Purpose::{Doubling, Repeat};
    let expected = [
        (4, Doubling),
        (8, Doubling),
        (8, Repeat),
        (8, Repeat),
        (16, Doubling),
    ];
    assert_eq!(asked[..5], expected);
    assert_eq!(line.sustained, support(12, 3, 3));
}

#[test]
fn a_confirmation_that_fails_sends_the_search_down() {
    // Load 8 passes once and never again.
    let mut runs_of_8 = 0;
    let system = |load: u64| {
        runs_of_8 += u32::from(load == 8);
        TrialRun {
            load,
            passed: load < 8 || (load == 8 && runs_of_8 == 1),
            margin: None,
            ops_per_s: 0.0,
            client_limited: false,
        }
    };
    let (line, trials, _) = found(&SearchRules::new(8, 9).unwrap(), system);
    assert_eq!(line.sustained, support(7, 3, 3));
    assert_eq!(line.not_sustained, support(8, 1, 3));
    assert_eq!(trials.iter().filter(|t| t.load == 8).count(), 3);
}

#[test]
fn a_confirmation_that_holds_sends_the_search_up() {
    // Load 8 fails once, by chance, and then passes; the system sustains load 12.
    let mut runs_of_8 = 0;
    let system = |load: u64| {
        runs_of_8 += u32::from(load == 8);
        TrialRun {
            load,
            passed: load <= 12 && !(load == 8 && runs_of_8 == 1),
            margin: None,
            ops_per_s: 0.0,
            client_limited: false,
        }
    };
    let (line, ..) = found(&SearchRules::new(4, 100).unwrap(), system);
    assert_eq!(line.sustained, support(12, 3, 3));
    assert_eq!(line.not_sustained, support(13, 0, 3));
}

#[test]
fn it_goes_on_from_earlier_runs() {
    let search = SearchRules::new(4, 1000).unwrap();
    let (whole, trials, _) = found(&search, sharp(37));
    for cut in 0..trials.len() {
        let SearchStep::Measure(load, _) = search.next(&trials[..cut]) else {
            panic!("the search ends after {cut} runs");
        };
        assert_eq!(load, trials[cut].load);
        let stopped = search.load_line(&trials[..cut]);
        assert_eq!(
            stopped.termination,
            SearchEnd::Unfinished,
            "after {cut} runs"
        );
    }
    assert_eq!(search.load_line(&trials), whole);
}

#[test]
fn the_number_of_runs_is_bounded() {
    let search = SearchRules {
        max_runs: 7,
        ..SearchRules::new(1, 1 << 40).unwrap()
    };
    let (line, trials, _) = found(&search, sharp(1 << 30));
    assert_eq!(trials.len(), 7);
    assert_eq!(line.termination, SearchEnd::MaxRunsReached);
    assert_eq!(
        (line.sustained, line.not_sustained),
        (support(64, 1, 1), None)
    );
}

/// The search bisects the interval from 1000 to 2000 until the interval from 1296 to 1312 is narrower than a fiftieth
/// of the load.
#[test]
fn without_a_resolution_the_search_ends_at_two_per_cent() {
    let (line, ..) = found(&SearchRules::new(1000, 4000).unwrap(), sharp(1300));
    let load = |end: Option<Agreement>| end.unwrap().load;
    let (lower, upper) = (load(line.sustained), load(line.not_sustained));
    assert_eq!((lower, upper), (1296, 1312));
}

#[test]
fn a_search_begins_below_its_end() {
    assert!(SearchRules::new(0, 10).is_err_and(|e| e.contains("at least 1")));
    assert!(SearchRules::new(11, 10).is_err_and(|e| e.contains("11") && e.contains("10")));
    assert!(SearchRules::new(10, 10).is_ok());
}

/// Number of halvings, each rounded up, until a width of `from` is at most `to`.
fn halvings(from: u64, to: u64) -> u32 {
    let mut n = 0;
    let mut width = from;
    while width > to {
        width = width.div_ceil(2);
        n += 1;
    }
    n
}

/// Numbers of passed runs and of all runs at a load, counted independently of the search.
fn count(trials: &[TrialRun], load: u64) -> (u32, u32) {
    let of = trials.iter().filter(|t| t.load == load);
    of.fold((0, 0), |(held, runs), t| {
        (held + u32::from(t.passed), runs + 1)
    })
}

/// Checks that the numbers of runs in a load line agree with the runs, and that a majority supports each end.
fn supported(line: &LoadLine, trials: &[TrialRun]) -> Result<(), TestCaseError> {
    if let Some(s) = line.sustained {
        prop_assert_eq!((s.passed, s.runs), count(trials, s.load));
        prop_assert!(2 * s.passed > s.runs);
    }
    if let Some(s) = line.not_sustained {
        prop_assert_eq!((s.passed, s.runs), count(trials, s.load));
        prop_assert!(2 * s.passed <= s.runs);
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_sharp_limit_is_bracketed(
        start in 1u64..5000,
        more in 0u64..1_000_000,
        limit in 0u64..1_200_000,
        resolution in prop::option::of(1u64..1000),
        confirm_runs in 1u32..6,
    ) {
        let max = start + more;
        let search = SearchRules { resolution, confirm_runs, ..SearchRules::new(start, max).unwrap() };
        let (line, trials, _) = found(&search, sharp(limit));
        supported(&line, &trials)?;
        prop_assert!(trials.iter().all(|t| (1..=max).contains(&t.load)));
        let doublings = halvings(max, start) + 1;
        let width = halvings(max, 1) + 1;
        prop_assert!(trials.len() as u32 <= doublings + width + 2 * confirm_runs);
        if limit >= max {
            prop_assert_eq!(line.termination, SearchEnd::MaxLoadSustained);
            prop_assert_eq!(line.sustained, support(max, confirm_runs, confirm_runs));
            return Ok(());
        }
        let upper = line.not_sustained.expect("a load is not carried");
        prop_assert_eq!((upper.passed, upper.runs), (0, confirm_runs));
        let lower = line.sustained.map_or(0, |c| c.load);
        prop_assert!(lower <= limit && limit < upper.load);
        prop_assert!(upper.load - lower <= resolution.unwrap_or(lower / 50).max(1));
        match line.sustained {
            Some(carried) => {
                prop_assert_eq!(line.termination, SearchEnd::Found);
                prop_assert_eq!((carried.passed, carried.runs), (confirm_runs, confirm_runs));
            }
            None => prop_assert_eq!(line.termination, SearchEnd::NoneSustained),
        }
    }

    #[test]
    fn a_noisy_limit_is_found_within_its_noise(
        limit in 100u64..100_000,
        noise in 0.001f64..0.2,
        draws in prop::collection::vec(-1.0f64..1.0, 200),
    ) {
        let mut draws = draws.into_iter().cycle();
        let system = |load: u64| {
            let wobble = noise * draws.next().unwrap_or_default();
            let margin = (limit as f64 - load as f64) / limit as f64 + wobble;
            TrialRun { load, passed: margin >= 0.0, margin: Some(margin), ops_per_s: 0.0, client_limited: false }
        };
        let search = SearchRules { max_runs: 200, ..SearchRules::new(10, 1_000_000).unwrap() };
        let (line, trials, _) = found(&search, system);
        supported(&line, &trials)?;
        // Loads below the noise pass in every run, loads above the noise fail in every run.
        let (least, most) = (limit as f64 * (1.0 - noise), limit as f64 * (1.0 + noise));
        let (lower, upper) = (line.sustained.unwrap(), line.not_sustained.unwrap());
        prop_assert!(lower.load as f64 <= most, "{lower:?}");
        prop_assert!(upper.load as f64 >= least, "{upper:?}");
        prop_assert_eq!(line.termination, SearchEnd::Found, "{} runs", trials.len());
        prop_assert!(lower.runs == 3 && upper.runs == 3);
        prop_assert!(upper.load - lower.load <= (lower.load / 50).max(1));
    }

    #[test]
    fn whatever_the_system_does_the_search_ends(
        start in 1u64..50,
        more in 0u64..100,
        max_runs in 1u32..100,
        confirm_runs in 1u32..5,
        answers in prop::collection::vec(
            (any::<bool>(), prop::option::of(-2.0f64..2.0), any::<bool>()),
            1..100,
        ),
    ) {
        let max = start + more;
        let mut answers = answers.into_iter().cycle();
        let search = SearchRules { confirm_runs, max_runs, ..SearchRules::new(start, max).unwrap() };
        let (line, trials, asked) = found(&search, |load| {
            let (passed, margin, client_limited) = answers.next().expect("they go round");
            TrialRun { load, passed, margin, ops_per_s: 0.0, client_limited }
        });
        supported(&line, &trials)?;
        prop_assert!(trials.len() as u32 <= max_runs);
        prop_assert!(asked.iter().all(|(load, _)| (1..=max).contains(load)));
        prop_assert!(trials.iter().all(|t| count(&trials, t.load).1 <= confirm_runs));
        if line.termination == SearchEnd::Found {
            let (lower, upper) = (line.sustained.unwrap(), line.not_sustained.unwrap());
            prop_assert!(lower.load < upper.load);
            prop_assert_eq!((lower.runs, upper.runs), (confirm_runs, confirm_runs));
        }
        prop_assert_eq!(search.next(&trials), SearchStep::Done(line));
    }
}

/// Runs a search from value 1 without a highest value that ends where throughput stops growing. `rate` computes the rate
/// of a run from its value and its number among the runs of the value, from 1; values up to `limit` pass.
fn saturating(
    limit: u64,
    mut rate: impl FnMut(u64, u32) -> f64,
) -> (LoadLine, Vec<(u64, Purpose)>) {
    let search = SearchRules {
        until_saturated: true,
        ..SearchRules::new(1, None).unwrap()
    };
    let mut runs = std::collections::BTreeMap::new();
    let (line, _, asked) = found(&search, |load| {
        let number = runs.entry(load).or_insert(0);
        *number += 1;
        TrialRun {
            ops_per_s: rate(load, *number),
            ..sharp(limit)(load)
        }
    });
    (line, asked)
}

#[test]
fn a_search_ends_where_throughput_stops_growing() {
    use Purpose::{Confirmation, Doubling};
    let (line, asked) = saturating(u64::MAX, |load, _| 100.0 * load.min(16) as f64);
    assert_eq!(line.termination, SearchEnd::Saturated);
    assert_eq!(line.saturated_at, Some(16));
    assert_eq!(
        (line.sustained, line.not_sustained),
        (support(64, 3, 3), None)
    );
    let doublings = [1, 2, 4, 8, 16, 32, 64].map(|load| (load, Doubling));
    assert_eq!(asked[..7], doublings);
    assert_eq!(
        asked[7..],
        [
            (16, Confirmation),
            (16, Confirmation),
            (64, Confirmation),
            (64, Confirmation)
        ]
    );
}

#[test]
fn slow_growth_is_no_saturation() {
    // Each doubling adds 4 %, so that two doublings add more than 5 %.
    let rate = |load: u64, _| 1.04f64.powf((load as f64).log2());
    let (line, _) = saturating(1000, rate);
    assert_eq!(line.termination, SearchEnd::Found);
    assert_eq!(line.saturated_at, None);
    // The resolution is 2 % of the value.
    let load = |end: Option<Agreement>| end.unwrap().load;
    let (lower, upper) = (load(line.sustained), load(line.not_sustained));
    assert!(
        lower <= 1000 && upper > 1000 && upper - lower <= 20,
        "{line:?}"
    );
}

#[test]
fn a_promise_that_breaks_first_ends_the_search() {
    let (line, _) = saturating(20, |load, _| load.min(16) as f64);
    assert_eq!(line.termination, SearchEnd::Found);
    assert_eq!(
        (line.sustained, line.not_sustained),
        (support(20, 3, 3), support(21, 0, 3))
    );
}

#[test]
fn chance_in_single_runs_is_no_saturation() {
    // The first run of 4 is as fast as a run of 16 by chance.
    let rate = |load, number| match (load, number) {
        (4, 1) => 160.0,
        (load, _) => load as f64 * 10.0,
    };
    let (line, asked) = saturating(40, rate);
    assert!(asked.contains(&(4, Purpose::Confirmation)), "{asked:?}");
    assert_eq!(line.termination, SearchEnd::Found, "{line:?}");
    assert_eq!(line.sustained.map(|s| s.load), Some(40));
}

#[test]
fn without_a_limit_the_values_are_doubled_to_the_last_number() {
    let search = SearchRules {
        max_runs: 80,
        ..SearchRules::new(1, None).unwrap()
    };
    let (line, trials, _) = found(&search, sharp(u64::MAX));
    assert_eq!(line.termination, SearchEnd::MaxLoadSustained);
    assert_eq!(
        trials.iter().map(|t| t.load).max(),
        Some(plimsoll_results::MAX_LOAD)
    );
}
