//! `plimsoll md` against a model of MD-Workbench's rules: which objects there are after each
//! phase, and who wrote them. The model is written from the rules alone and shares nothing with
//! the program.

use crate::common::{Bench, CLAIM, Ended, MARKER};
use plimsoll_results::Run;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::Path;

/// A run's numbers, by the letters of their options.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    /// Processes.
    n: u32,
    p: u64,
    i: u64,
    d: u32,
    o: i64,
    r: u32,
    s: u64,
    /// First object.
    start: u64,
}

/// Contents of the objects that there should be, by their names below the root: the rank whose
/// number fills each; 0 for objects of no bytes.
type Objects = BTreeMap<String, u32>;

/// What there should be.
struct Model {
    numbers: Numbers,
    objects: Objects,
    /// Where each rank is.
    at: Vec<u64>,
}

fn name(rank: u32, set: u32, index: u64) -> String {
    format!("{rank}_{set}/file-{index}")
}

impl Model {
    fn new(numbers: Numbers) -> Self {
        Self {
            numbers,
            objects: Objects::new(),
            at: vec![numbers.start; numbers.n as usize],
        }
    }

    /// The rank that lies so many times the offset away, counted without end in both directions.
    fn away(&self, rank: u32, times: i64) -> u32 {
        let n = i64::from(self.numbers.n);
        let far = i64::from(rank) + self.numbers.o * times;
        (((far % n) + n) % n) as u32
    }

    fn make(&mut self, name: String, by: u32) {
        let fill = if self.numbers.s > 0 { by } else { 0 };
        self.objects.insert(name, fill);
    }

    fn precreate(&mut self) {
        let Numbers { n, p, d, start, .. } = self.numbers;
        for rank in 0..n {
            for set in 0..d {
                for index in start..start + p {
                    self.make(name(rank, set, index), rank);
                }
            }
        }
    }

    /// Each rank does so many rounds. Returns objects that were read, and those that were missing.
    fn benchmark(&mut self, rounds: &[u64]) -> (u64, u64) {
        let Numbers { n, p, d, .. } = self.numbers;
        let (mut read, mut missing) = (0, 0);
        for rank in 0..n {
            let first = self.at[rank as usize];
            for f in 0..rounds[rank as usize] {
                for set in 0..d {
                    let times = i64::from(set) + 1;
                    let old = name(self.away(rank, -times), set, first + f);
                    if self.objects.remove(&old).is_none() {
                        missing += 1;
                        continue;
                    }
                    read += 1;
                    let new = name(self.away(rank, times), set, p + first + f);
                    self.make(new, rank);
                }
            }
            self.at[rank as usize] = first + rounds[rank as usize];
        }
        (read, missing)
    }
}

/// The objects below a root; every byte of each must be the same. Panics on anything else that is
/// not a data set of these numbers.
fn found(root: &Path, numbers: Numbers) -> Objects {
    let mut objects = Objects::new();
    let mut sets = Vec::new();
    for entry in std::fs::read_dir(root).unwrap().map(Result::unwrap) {
        let set = entry.file_name().into_string().unwrap();
        if set == MARKER || set == CLAIM {
            continue;
        }
        for object in std::fs::read_dir(entry.path()).unwrap().map(Result::unwrap) {
            let bytes = std::fs::read(object.path()).unwrap();
            assert_eq!(bytes.len() as u64, numbers.s, "{}", object.path().display());
            let fill = bytes.first().copied().unwrap_or(0);
            assert!(
                bytes.iter().all(|b| *b == fill),
                "{}",
                object.path().display()
            );
            let name = format!("{set}/{}", object.file_name().into_string().unwrap());
            objects.insert(name, u32::from(fill));
        }
        sets.push(set);
    }
    let mut expected: Vec<String> = (0..numbers.n)
        .flat_map(|rank| (0..numbers.d).map(move |set| format!("{rank}_{set}")))
        .collect();
    expected.sort();
    sets.sort();
    assert_eq!(sets, expected);
    objects
}

/// `plimsoll md` with these numbers and more arguments.
fn md(bench: &Bench, numbers: Numbers, more: &[&str]) -> Ended {
    let Numbers {
        n,
        p,
        i,
        d,
        o,
        r,
        s,
        ..
    } = numbers;
    let mut command = bench.plimsoll(["md", "-q"]);
    command.args([
        format!("--processes={n}"),
        format!("-P={p}"),
        format!("-I={i}"),
        format!("-D={d}"),
        format!("-O={o}"),
        format!("-R={r}"),
        format!("-S={s}"),
        format!("--results={}", bench.path("results").display()),
    ]);
    command.args(more);
    Ended::of(command)
}

/// A number of each line that begins so.
fn numbers_of(text: &str, begins: &str, expression: &str) -> Vec<u64> {
    let expression = Regex::new(expression).unwrap();
    let lines = text.lines().filter(|l| l.starts_with(begins));
    lines
        .map(|l| {
            expression.captures(l).unwrap_or_else(|| panic!("{l}"))[1]
                .parse()
                .unwrap()
        })
        .collect()
}

fn any_numbers(ranks: impl Strategy<Value = u32>) -> impl Strategy<Value = Numbers> {
    let sizes = prop_oneof![Just(0u64), Just(1), Just(3901), 2u64..9000];
    (
        ranks,
        1u64..12,
        0.0f64..=1.0,
        1u32..4,
        -9i64..10,
        0u32..4,
        sizes,
        0u64..5,
    )
        .prop_map(|(n, p, share, d, o, r, s, start)| Numbers {
            n,
            p,
            // Beyond P it is a race whether another rank has made what is to be read.
            i: ((share * p as f64) as u64).max(1),
            d,
            o,
            r,
            s,
            start,
        })
}

/// Checks a property of so many random cases, the same ones in every run.
fn check<T: std::fmt::Debug>(
    cases: u32,
    of: impl Strategy<Value = T>,
    property: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&of, property).unwrap();
}

#[test]
fn phase_by_phase_the_tree_is_the_models() {
    check(8, any_numbers(1u32..9), |numbers| {
        let numbers = Numbers {
            r: numbers.r.max(1),
            i: numbers.i.max(1),
            ..numbers
        };
        let bench = Bench::on_tmpfs();
        let root = bench.path("out");
        let mut model = Model::new(numbers);
        let start = format!("--start-item={}", numbers.start);
        md(&bench, numbers, &["-1", &start]).expect_code(0);
        model.precreate();
        prop_assert_eq!(&found(&root, numbers), &model.objects);
        for _ in 0..2 {
            let ended = md(&bench, numbers, &["-2"]).expect_code(0);
            let read = numbers_of(&ended.stdout, "benchmark", r" objects:(\d+)");
            prop_assert_eq!(read.len() as u32, numbers.r);
            for printed in read {
                let (read, missing) = model.benchmark(&vec![numbers.i; numbers.n as usize]);
                prop_assert_eq!((printed, missing), (read, 0));
            }
            prop_assert_eq!(&found(&root, numbers), &model.objects);
            let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
            prop_assert_eq!(info, format!("pos: {}\n", model.at[0]));
        }
        let ended = md(&bench, numbers, &["-3"]).expect_code(0);
        let deleted = numbers_of(&ended.stdout, "cleanup", r" objects:(\d+)");
        prop_assert_eq!(deleted, vec![model.objects.len() as u64]);
        let sets = numbers_of(&ended.stdout, "cleanup", r" dsets: (\d+)");
        prop_assert_eq!(sets, vec![u64::from(numbers.n * numbers.d)]);
        prop_assert!(!root.exists());
        Ok(())
    });
}

#[test]
fn in_one_go_the_tree_is_the_models_too() {
    check(6, any_numbers(1u32..9), |numbers| {
        let bench = Bench::on_tmpfs();
        let root = bench.path("out");
        let mut model = Model::new(numbers);
        let start = format!("--start-item={}", numbers.start);
        md(&bench, numbers, &["-1", "-2", &start]).expect_code(0);
        model.precreate();
        for _ in 0..numbers.r {
            model.benchmark(&vec![numbers.i; numbers.n as usize]);
        }
        prop_assert_eq!(&found(&root, numbers), &model.objects);
        md(&bench, numbers, &["-2", "-3"]).expect_code(0);
        prop_assert!(!root.exists());

        let ended = md(&bench, numbers, &[&start]).expect_code(0);
        let lines: Vec<&str> = ended.stdout.lines().collect();
        prop_assert_eq!(lines.len(), 2 + numbers.r as usize, "{}", ended.stdout);
        let made = numbers_of(&ended.stdout, "precreate", r" objects:(\d+)");
        let deleted = numbers_of(&ended.stdout, "cleanup", r" objects:(\d+)");
        prop_assert_eq!(made, vec![model.objects.len() as u64]);
        prop_assert_eq!(deleted, vec![model.objects.len() as u64]);
        prop_assert!(!root.exists());
        Ok(())
    });
}

#[test]
fn one_rank_may_read_what_it_made_meanwhile() {
    check(5, (any_numbers(Just(1)), 1u64..30), |(numbers, i)| {
        let numbers = Numbers { i, r: 2, ..numbers };
        let bench = Bench::on_tmpfs();
        let mut model = Model::new(Numbers {
            start: 0,
            ..numbers
        });
        md(&bench, numbers, &["-1", "-2"]).expect_code(0);
        model.precreate();
        prop_assert_eq!(model.benchmark(&[i]).1 + model.benchmark(&[i]).1, 0);
        prop_assert_eq!(&found(&bench.path("out"), numbers), &model.objects);
        Ok(())
    });
}

/// Rounds of each rank in each stage of this name.
fn rounds(run: &Run, name: &str) -> Vec<Vec<u64>> {
    let stages = run.stages.iter().filter(|s| s.name == name);
    stages
        .map(|s| s.ranks.iter().map(|r| r.rounds).collect())
        .collect()
}

fn last_run(bench: &Bench) -> Run {
    bench.results().pop().unwrap().read().unwrap()
}

/// A cleanup has deleted all objects of the model, and nothing is left.
fn everything_deleted(bench: &Bench, ended: &Ended, model: &Model) -> Result<(), TestCaseError> {
    let deleted = numbers_of(&ended.stdout, "cleanup", r" objects:(\d+)");
    prop_assert_eq!(deleted, vec![model.objects.len() as u64]);
    prop_assert!(!bench.path("out").exists());
    Ok(())
}

/// Runs that a short stonewall ends early: each rank waits long after its operations.
const STONEWALL: [&str; 2] = ["-w=0.03", "-t=300"];

fn many(n: u32, d: u32, o: i64) -> Numbers {
    Numbers {
        n,
        p: 150,
        i: 150,
        d,
        o,
        r: 2,
        s: 10,
        start: 0,
    }
}

fn few_ranks() -> impl Strategy<Value = (u32, u32, i64)> {
    (1u32..9, 1u32..4, -9i64..10)
}

#[test]
fn after_a_stonewall_with_wear_out_all_ranks_have_come_as_far() {
    check(4, few_ranks(), |(n, d, o)| {
        let bench = Bench::on_tmpfs();
        let numbers = many(n, d, o);
        let mut model = Model::new(numbers);
        md(&bench, numbers, &["-1"]).expect_code(0);
        model.precreate();
        let stonewall = [&STONEWALL[..], &["-2", "-W"]].concat();
        let ended = md(&bench, numbers, &stonewall).expect_code(0);
        let run = last_run(&bench);
        for rank in run.stages.iter().flat_map(|s| &s.ranks) {
            // It cannot come before it is due, 0.03 s after the beginning.
            prop_assert!(rank.stonewall_ns.is_some_and(|ns| ns >= 30_000_000));
        }
        prop_assert_eq!(ended.stdout.matches("stonewall wear out ").count(), 2);
        let all = rounds(&run, "benchmark");
        prop_assert_eq!(all.len(), 2);
        let printed = numbers_of(&ended.stdout, "benchmark", r" objects:(\d+)");
        for (rounds, printed) in all.iter().zip(printed) {
            prop_assert!(rounds.windows(2).all(|w| w[0] == w[1]), "{rounds:?}");
            prop_assert!(
                rounds[0] < numbers.i,
                "the stonewall did not come: {rounds:?}"
            );
            prop_assert_eq!(model.benchmark(rounds), (printed, 0));
        }
        prop_assert_eq!(&found(&bench.path("out"), numbers), &model.objects);
        let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
        prop_assert_eq!(info, format!("pos: {}\n", model.at[0]));
        let ended = md(&bench, numbers, &["-3"]).expect_code(0);
        everything_deleted(&bench, &ended, &model)?;
        Ok(())
    });
}

#[test]
fn after_a_stonewall_without_wear_out_the_cleanup_knows_where_each_rank_was() {
    check(4, few_ranks(), |(n, d, o)| {
        let bench = Bench::on_tmpfs();
        let numbers = many(n, d, o);
        let mut model = Model::new(numbers);
        let ended = md(&bench, numbers, &STONEWALL).expect_code(0);
        model.precreate();
        let printed = numbers_of(&ended.stdout, "benchmark", r" objects:(\d+)");
        for (rounds, printed) in rounds(&last_run(&bench), "benchmark").iter().zip(printed) {
            prop_assert_eq!(model.benchmark(rounds), (printed, 0));
        }
        everything_deleted(&bench, &ended, &model)?;
        Ok(())
    });
}

#[test]
fn phases_of_their_own_go_on_where_each_rank_stopped_at_the_stonewall() {
    check(4, few_ranks(), |(n, d, o)| {
        let bench = Bench::on_tmpfs();
        let numbers = many(n, d, o);
        let mut model = Model::new(numbers);
        md(&bench, numbers, &["-1"]).expect_code(0);
        model.precreate();
        let alone = [&STONEWALL[..], &["-2"]].concat();
        for _ in 0..2 {
            let ended = md(&bench, numbers, &alone);
            let run = last_run(&bench);
            let warned = run.notes.iter().any(|n| n.text.contains("without -W"));
            prop_assert_eq!(warned, n > 1);
            // A rank may have come past the objects that a slower one has yet to make.
            let mut missed = 0;
            for rounds in rounds(&run, "benchmark") {
                missed += model.benchmark(&rounds).1;
            }
            prop_assert!(missed > 0 || ended.code == Some(0), "{}", ended.stderr);
            prop_assume!(missed == 0);
        }
        prop_assert_eq!(&found(&bench.path("out"), numbers), &model.objects);
        let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
        let each: Vec<String> = model.at.iter().map(u64::to_string).collect();
        let ranks = match model.at.iter().all(|at| *at == model.at[0]) {
            true => String::new(),
            false => format!("ranks: {}\n", each.join(" ")),
        };
        prop_assert_eq!(info, format!("pos: {}\n{ranks}", model.at[0]));
        let ended = md(&bench, numbers, &["-3"]).expect_code(0);
        everything_deleted(&bench, &ended, &model)?;
        Ok(())
    });
}

#[test]
fn one_rank_may_stop_at_a_stonewall_and_go_on_later() {
    let bench = Bench::on_tmpfs();
    let numbers = many(1, 2, 1);
    let mut model = Model::new(numbers);
    let stonewall = [&STONEWALL[..], &["-1", "-2"]].concat();
    md(&bench, numbers, &stonewall).expect_code(0);
    model.precreate();
    for rounds in rounds(&last_run(&bench), "benchmark") {
        assert!(rounds[0] < numbers.i);
        model.benchmark(&rounds);
    }
    assert_eq!(found(&bench.path("out"), numbers), model.objects);
    md(&bench, numbers, &["-3"]).expect_code(0);
    assert!(!bench.path("out").exists());
}
