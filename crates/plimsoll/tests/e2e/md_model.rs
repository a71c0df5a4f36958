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

/// Model of MD-Workbench: the objects that must exist after the phases executed so far, and the position of each rank.
struct Model {
    numbers: Numbers,
    objects: Objects,
    /// Position of each rank in its data sets: the index of the object that the rank accesses next.
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

    /// Executes, in the model, `rounds` rounds of each rank in a benchmark phase. Returns the number of objects read
    /// and the number of objects that were missing.
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
            let is_whole = bytes.iter().all(|b| *b == fill);
            assert!(is_whole, "{}", object.path().display());
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

/// Runs `plimsoll md` with the options of `numbers`, and with `more` arguments.
fn md(bench: &Bench, numbers: Numbers, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["md", "-q", "--results=results"]);
    command.arg(format!("--processes={}", numbers.n));
    let Numbers {
        p, i, d, o, r, s, ..
    } = numbers;
    let options = format!("-P={p} -I={i} -D={d} -O={o} -R={r} -S={s}");
    command.args(options.split(' '));
    command.args(more);
    Ended::of(command)
}

/// A number of each line that begins so.
fn numbers_of(text: &str, begins: &str, expression: &str) -> Vec<u64> {
    let expression = Regex::new(expression).unwrap();
    let lines = text.lines().filter(|l| l.starts_with(begins));
    let number = |l: &str| expression.captures(l).expect(l)[1].parse().unwrap();
    lines.map(number).collect()
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

/// Number of rounds of each rank, for each stage named `name`.
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
            // The stonewall of `-w=0.03` stops no rank earlier than 0.03 s after the beginning of the stage.
            prop_assert!(rank.stonewall_ns.is_some_and(|ns| ns >= 30_000_000));
        }
        prop_assert_eq!(ended.stdout.matches("stonewall wear out ").count(), 2);
        let all = rounds(&run, "benchmark");
        prop_assert_eq!(all.len(), 2);
        let printed = numbers_of(&ended.stdout, "benchmark", r" objects:(\d+)");
        for (rounds, printed) in all.iter().zip(printed) {
            prop_assert!(rounds.windows(2).all(|w| w[0] == w[1]), "{rounds:?}");
            prop_assert!(rounds[0] < numbers.i, "no stonewall: {rounds:?}");
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
