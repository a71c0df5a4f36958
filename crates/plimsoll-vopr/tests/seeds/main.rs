//! Seeds, scenarios that once failed, and rules.

mod concurrent;
mod curves;
mod results;
mod workers;

use plimsoll_vopr::{
    Case, Disturbance, DisturbanceKind, Execution, FilesSpec, Load, MixSpec, PatternSpec, Scenario,
    Step, ThreadsSpec, WorkloadSpec, check, run, shrink,
};
use plimsoll_workload::md::PatternName;
use rustix::io::Errno;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// First seed of `no_seed_breaks_a_rule`: the seeds of `make test` begin at 1, and the seeds of `make vopr` at the
/// current time.
const FIRST_SEED: u64 = 1_000_000;

#[test]
fn no_seed_breaks_a_rule() {
    for seed in FIRST_SEED..FIRST_SEED + 60 {
        if let Err(violation) = Case::draw(seed).check() {
            panic!("seed {seed}: {violation}");
        }
    }
}

/// Executes the seeds of `make test`, from 1 on, for about a minute of processor time: each simulation executes one
/// thread at a time. The function is a test, so that no further program must be compiled.
#[test]
#[ignore = "make test runs it by itself"]
fn seeds_for_a_minute() {
    const TIME: Duration = Duration::from_secs(60);
    const MAX_SIMULATIONS: usize = 4;
    let simulations = std::thread::available_parallelism().map_or(1, |n| n.get());
    let simulations = simulations.min(MAX_SIMULATIONS);
    let (begun, next) = (Instant::now(), AtomicU64::new(1));
    let execute = || {
        while begun.elapsed() < TIME / simulations as u32 {
            let seed = next.fetch_add(1, Relaxed);
            if let Err(violation) = Case::draw(seed).check() {
                panic!("{violation}\nagain: cargo run -p plimsoll-vopr -- --seed {seed} --count 1");
            }
        }
    };
    std::thread::scope(|scope| {
        (0..simulations).for_each(|_| {
            scope.spawn(execute);
        });
    });
    println!("{} seeds, no rule broken", next.into_inner() - 1);
}

#[test]
fn a_seed_is_an_execution_to_the_byte() {
    for seed in FIRST_SEED..FIRST_SEED + 20 {
        let case = Case::draw(seed);
        let (one, other) = (case.digest(), case.digest());
        assert!(one == other, "seed {seed} has two executions");
    }
}

fn calm() -> Scenario {
    Scenario {
        seed: 5,
        workload: WorkloadSpec {
            load: Load::Threads(ThreadsSpec {
                files: 50,
                threads: [(4, vec![Step::Stat, Step::ReadWhole]), (0, vec![])],
                ops: None,
            }),
            warmup_ms: 100,
            time_ms: 1000,
        },
        ranks: 2,
        fan_out: 2,
        lanes: 2,
        delay_us: (50, 10),
        latency_us: 1000,
        files: None,
        stall_ms: None,
        interval_ms: 100,
        results: None,
        drift_ppm: 0,
        concurrent_at_us: None,
        disturbances: vec![],
    }
}

/// A mix of six processes with 50 operations per second each, on two ranks, for one second.
fn mix(poisson: bool) -> Scenario {
    let mut scenario = calm();
    scenario.workload.load = Load::Mix(MixSpec {
        load: 2,
        processes: 3,
        rate: 50,
        poisson,
        turns_over: false,
    });
    scenario
}

/// Makes `kind`, at half of the planned time, the only disturbance of the scenario.
fn disturb_in_the_middle(scenario: &mut Scenario, kind: DisturbanceKind) {
    let at_us = scenario.planned_us() / 2;
    scenario.disturbances = vec![Disturbance { at_us, kind }];
}

/// Kills rank 0 at half of the planned time.
fn kill_in_the_middle(scenario: &mut Scenario) {
    disturb_in_the_middle(scenario, DisturbanceKind::Kill { rank: 0 });
}

/// An undisturbed run has the calculated number of operations: four workers, a latency of 1 ms, and five calls per four
/// operations.
#[test]
fn a_calm_run_is_what_arithmetic_says() {
    let scenario = calm();
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let root = execution.ranks[0].as_ref().unwrap();
    let window = &root.outcome.as_ref().unwrap().windows[0].totals;
    let ops: u64 = window.rows.iter().map(|row| row.ops).sum();
    assert!((3040..=3210).contains(&ops), "{ops} operations");
    assert_eq!(root.intervals.len(), 10);
}

#[test]
fn a_calm_mix_keeps_its_rate() {
    let scenario = mix(false);
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let mut broken = execution.clone();
    let end = broken.ranks[0].as_mut().unwrap();
    let window = &mut end.outcome.as_mut().unwrap().windows[0].totals;
    let paced: u64 = window.rows.iter().map(|row| row.paced).sum();
    assert!((290..=310).contains(&paced), "{paced} operations");
    let row = window.rows.iter_mut().find(|row| row.paced > 0).unwrap();
    row.paced -= 1;
    let rule = check(&scenario, &broken).unwrap_err().rule;
    assert_eq!(rule, "operations of mixes have an intended start");
}

/// Exchanges the figures of two operations of a mix with 300 operations: `stat` with a fraction of a half, and `access`
/// with a fraction of a fifth.
#[test]
fn a_mix_has_the_fractions_of_its_operations() {
    let scenario = mix(true);
    let mut execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let row_of = |name: &str| {
        let mut names = execution.plan.operations.iter().map(|o| o.name.as_str());
        names.position(|n| n.ends_with(name)).unwrap()
    };
    let (stat, access) = (row_of("stat"), row_of("access"));
    let end = execution.ranks[0].as_mut().unwrap();
    let window = &mut end.outcome.as_mut().unwrap().windows[0].totals;
    let intervals = end.intervals.iter_mut().map(|i| &mut i.rows);
    for rows in intervals.chain([&mut window.rows]) {
        rows.swap(stat, access);
    }
    let rule = check(&scenario, &execution).unwrap_err().rule;
    assert_eq!(rule, "operations of mixes have their fractions");
}

/// The clock of rank 0 gains half a millisecond in the window, and the clock of rank 1 loses half a millisecond: each
/// rank measures a second by its own clock.
#[test]
fn ranks_may_have_clocks_that_drift_apart() {
    let mut scenario = calm();
    scenario.drift_ppm = 500;
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let ends = execution.ranks.iter().map(|end| end.as_ref().unwrap());
    for end in ends {
        let window = &end.outcome.as_ref().unwrap().windows[0].totals;
        let length_us = (window.end - window.start) / 1000;
        assert!((1_000_000..1_000_100).contains(&length_us), "{length_us}");
    }
}

#[test]
fn wrong_figures_break_rules() {
    let scenario = calm();
    let execution = run(&scenario);
    let broken = |change: &dyn Fn(&mut plimsoll_vopr::RankEnd)| {
        let mut wrong = execution.clone();
        change(wrong.ranks[0].as_mut().unwrap());
        check(&scenario, &wrong).unwrap_err().rule
    };
    assert_eq!(
        broken(&|end| end.intervals[3].rows[0].ops += 1),
        "intervals add up to the window"
    );
    assert_eq!(
        broken(&|end| drop(end.intervals.remove(3))),
        "intervals add up to the window"
    );
    assert_eq!(
        broken(&|end| end.intervals[4].start += 1),
        "intervals follow each other"
    );
    assert_eq!(
        broken(&|end| end.outcome.as_mut().unwrap().interrupted = true),
        "calm runs succeed"
    );
    let mut killed = execution.clone();
    killed.ranks[1] = None;
    let rule = check(&scenario, &killed).unwrap_err().rule;
    assert_eq!(rule, "only killed ranks have no end");
}

/// Found by seed 82: the other ranks ended while one rank was stopped, and the merged interval kept the shorter length
/// of the ranks that had ended.
#[test]
fn intervals_of_ranks_that_end_earlier_have_the_whole_length() {
    let scenario = Scenario {
        seed: 82,
        workload: WorkloadSpec {
            load: Load::Threads(ThreadsSpec {
                files: 82,
                threads: [(7, vec![Step::Replace]), (0, vec![])],
                ops: Some(957),
            }),
            warmup_ms: 0,
            time_ms: 1419,
        },
        ranks: 7,
        fan_out: 5,
        lanes: 1,
        delay_us: (1, 0),
        latency_us: 7926,
        interval_ms: 300,
        disturbances: vec![Disturbance {
            at_us: 71_610,
            kind: DisturbanceKind::Stop {
                rank: 1,
                for_ms: 1226,
            },
        }],
        ..calm()
    };
    check(&scenario, &run(&scenario)).unwrap();
}

#[test]
fn a_failure_is_shrunk_to_what_it_needs() {
    let scenario = Scenario {
        disturbances: vec![
            Disturbance {
                at_us: 1,
                kind: DisturbanceKind::Interrupt { rank: 1 },
            },
            Disturbance {
                at_us: 2,
                kind: DisturbanceKind::Kill { rank: 1 },
            },
        ],
        stall_ms: Some((5, 5)),
        ..calm()
    };
    let kills = |s: &Scenario| {
        let mut kinds = s.disturbances.iter().map(|d| d.kind);
        kinds.any(|k| matches!(k, DisturbanceKind::Kill { .. }))
    };
    let smallest = shrink(&scenario, kills);
    assert_eq!(smallest.disturbances, [scenario.disturbances[1]]);
    assert_eq!((smallest.ranks, smallest.stall_ms), (2, None));
    let Load::Threads(threads) = &smallest.workload.load else {
        panic!("{smallest:?}")
    };
    assert_eq!(threads.threads[0], (2, vec![Step::ReadWhole]));
}

/// A pattern of two ranks with two data sets of three objects each, and one iteration of five rounds, on a target with
/// files.
fn pattern() -> Scenario {
    Scenario {
        workload: WorkloadSpec {
            load: Load::Pattern(PatternSpec {
                name: PatternName::MdWorkbench,
                ranks: 2,
                sets: 2,
                objects: 3,
                rounds: 5,
                iterations: 1,
                offset: 1,
                stonewall_ms: None,
                verifies: true,
            }),
            warmup_ms: 0,
            time_ms: 0,
        },
        files: Some(FilesSpec {
            again_us: vec![0],
            ..FilesSpec::calm(100)
        }),
        ..calm()
    }
}

#[test]
fn a_pattern_executes_what_arithmetic_says() {
    let scenario = pattern();
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let root = execution.ranks[0].as_ref().unwrap();
    let ops = |name: &str| -> Vec<u64> {
        let rows = &execution.plan.operations;
        let row = rows.iter().position(|row| row.name == name).unwrap();
        let windows = root.outcome.as_ref().unwrap().windows.iter();
        windows.map(|w| w.totals.rows[row].ops).collect()
    };
    // The stages are the precreation, the iteration, and the removal.
    assert_eq!(ops("create"), [12, 20, 0]);
    assert_eq!(ops("read"), [0, 20, 0]);
    assert_eq!(ops("delete"), [0, 20, 12]);

    let broken = |change: &dyn Fn(&mut plimsoll_engine::Outcome)| {
        let mut wrong = execution.clone();
        let end = wrong.ranks[0].as_mut().unwrap();
        change(end.outcome.as_mut().unwrap());
        check(&scenario, &wrong).unwrap_err().rule
    };
    assert_eq!(
        broken(&|outcome| outcome.stages[1].ranks[1].rows[1].ops += 1),
        "ranks add up to their stage"
    );
    assert_eq!(
        broken(&|outcome| outcome.stages[1].ranks[1].rounds -= 1),
        "ranks do as many rounds as the fastest"
    );
    assert_eq!(
        broken(&|outcome| drop((outcome.windows.pop(), outcome.stages.pop()))),
        "patterns execute every operation"
    );
}

/// Found by seed 60448: after the loss of a rank, other ranks read objects that the lost rank has not created; the
/// failed reads break no rule.
#[test]
fn a_pattern_that_loses_a_rank_lacks_its_objects() {
    let mut scenario = Scenario {
        seed: 60448,
        ranks: 5,
        lanes: 1,
        delay_us: (95, 11),
        interval_ms: 1000,
        files: Some(FilesSpec::calm(593)),
        ..pattern()
    };
    scenario.workload.load = Load::Pattern(PatternSpec {
        name: PatternName::MdWorkbench,
        ranks: 5,
        sets: 3,
        objects: 1,
        rounds: 17,
        iterations: 2,
        offset: -2,
        stonewall_ms: None,
        verifies: false,
    });
    scenario.disturbances = vec![Disturbance {
        at_us: 497_131,
        kind: DisturbanceKind::Kill { rank: 2 },
    }];
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let calls = &execution.files.unwrap().calls;
    assert!(
        calls
            .iter()
            .any(|c| c.of_load && c.error == Some(Errno::NOENT))
    );
}

/// Found by seed 810089: rank 0 removed files on which the ranks below a killed rank still worked, before these ranks
/// noticed the loss.
#[test]
fn files_stay_where_ranks_below_a_lost_one_may_work_on_them() {
    let mut scenario = Scenario {
        seed: 810_089,
        ranks: 5,
        fan_out: 1,
        lanes: 1,
        delay_us: (1, 0),
        files: Some(FilesSpec::calm(344)),
        ..calm()
    };
    let program = vec![Step::Stat, Step::Stat, Step::Replace, Step::Append];
    scenario.workload.load = Load::Threads(ThreadsSpec {
        files: 385,
        threads: [(1, vec![Step::Append]), (5, program)],
        ops: None,
    });
    for (rank, stay) in [(1, true), (4, false)] {
        disturb_in_the_middle(&mut scenario, DisturbanceKind::Kill { rank });
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        let outcome = execution.ranks[0].as_ref().unwrap().outcome.as_ref();
        let left = &outcome.unwrap().cleanup.unremoved;
        assert_eq!(!left.is_empty(), stay, "{left:?}");
    }
}

/// Rank 0 is killed in the middle of the run, and the next run takes over the remaining files.
#[test]
fn a_second_run_takes_over_what_a_kill_has_left() {
    let mut scenario = Scenario {
        files: pattern().files,
        ..calm()
    };
    kill_in_the_middle(&mut scenario);
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let files = execution.files.as_ref().unwrap();
    let root = "/simulated/f/";
    let left = files.after_run.keys().filter(|path| path.starts_with(root));
    assert!(left.count() > 5, "{:?}", files.after_run.keys());
    let second = files.again[0].outcome.as_ref().unwrap();
    assert!(second.failure.is_none() && second.windows.len() == 1);
    let mut broken = execution.clone();
    let files = broken.files.as_mut().unwrap();
    let second = files.again[0].outcome.as_mut().unwrap();
    second.cleanup.unremoved.push("a file".into());
    let rule = check(&scenario, &broken).unwrap_err().rule;
    assert_eq!(rule, "another run takes the files over");
}

/// A second run refuses the remaining objects of a pattern, because the objects may belong to a phase that a later run
/// continues.
#[test]
fn a_second_run_of_a_pattern_says_how_to_remove_what_a_kill_has_left() {
    let mut scenario = pattern();
    kill_in_the_middle(&mut scenario);
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let files = execution.files.unwrap();
    let refused = files.again[0].outcome.as_ref().unwrap_err().to_string();
    assert!(
        refused.contains("`plimsoll clean /simulated/out`"),
        "{refused}"
    );
}

/// The target completes less than half of the operations.
#[test]
fn an_overloaded_mix_has_response_times_from_the_intended_starts() {
    let mut scenario = mix(true);
    scenario.latency_us = 30_000;
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let mut broken = execution.clone();
    let end = broken.ranks[0].as_mut().unwrap();
    let window = &mut end.outcome.as_mut().unwrap().windows[0].totals;
    for row in &mut window.rows {
        row.response = row.service.clone();
    }
    let rule = check(&scenario, &broken).unwrap_err().rule;
    assert_eq!(rule, "response times count from the intended start");
}

/// One call in a hundred fails from the beginning of the load on.
#[test]
fn failed_calls_are_errors_of_operations() {
    let mut files = FilesSpec::calm(100);
    files.counts_errors = true;
    files.faults.of_load_only = true;
    files.faults.errors = vec![(Errno::IO, 10_000)];
    let scenario = Scenario {
        files: Some(files),
        ..calm()
    };
    let execution = run(&scenario);
    check(&scenario, &execution).unwrap();
    let mut broken = execution.clone();
    let end = broken.ranks[0].as_mut().unwrap();
    let rows = &mut end.outcome.as_mut().unwrap().windows[0].totals.rows;
    let errors: u64 = rows.iter().flat_map(|row| row.errors.values()).sum();
    assert!(errors > 10, "{errors} errors");
    rows.iter_mut().for_each(|row| row.errors.clear());
    let rule = check(&scenario, &broken).unwrap_err().rule;
    assert_eq!(rule, "errors are counted");
    let rule = check(&scenario, &with_later_end(&execution))
        .unwrap_err()
        .rule;
    assert_eq!(rule, "workers go on after errors");
}

/// The execution with an end of rank 0's window that is one second later.
fn with_later_end(execution: &Execution) -> Execution {
    let mut later = execution.clone();
    let end = later.ranks[0].as_mut().unwrap();
    end.outcome.as_mut().unwrap().windows[0].totals.end += 1_000_000_000;
    later
}

#[test]
fn windows_end_soon_after_an_interrupt_or_a_loss() {
    let kinds = [
        (
            DisturbanceKind::Interrupt { rank: 1 },
            "an interrupt ends the window, and is reported",
        ),
        (
            DisturbanceKind::Kill { rank: 1 },
            "a lost rank ends the window",
        ),
    ];
    for (kind, rule) in kinds {
        let mut scenario = calm();
        disturb_in_the_middle(&mut scenario, kind);
        let execution = run(&scenario);
        check(&scenario, &execution).unwrap();
        let broken = check(&scenario, &with_later_end(&execution)).unwrap_err();
        assert_eq!(broken.rule, rule);
        let mut failed = execution.clone();
        let end = failed.ranks[0].as_mut().unwrap();
        end.outcome = Err(plimsoll_engine::EngineError::Failed("wrong".into()));
        let broken = check(&scenario, &failed).map_err(|violation| violation.rule);
        match kind {
            DisturbanceKind::Interrupt { .. } => {
                assert_eq!(broken, Err("an interrupt is not a failure"));
            }
            _ => assert_eq!(broken, Ok(())),
        }
    }
}
