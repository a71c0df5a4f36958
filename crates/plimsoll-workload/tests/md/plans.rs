//! The Plans that options become, checked against rules that the tests calculate independently.

use super::common;

use crate::tables::{each_row, halves};
use common::{options, pattern, plan};
use plimsoll_plan::{
    ObjectLoop, ObjectOp, OnError, Phase, Plan, Rounds, Samples, Stage, StageProgress, StageWork,
};
use plimsoll_workload::md::Position;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn objects(stage: &Stage) -> &ObjectLoop {
    match &stage.work {
        StageWork::Objects(work) => work,
        _ => panic!("{} has no operations on objects", stage.name),
    }
}

#[test]
fn plans_are_readable() {
    for (name, line, ranks) in [
        ("md_workbench", "", 2),
        (
            "md_workbench_waiting",
            "-I=10 -P=20 -D=2 -R=1 -T -w=2 -W -X -m=64 -M=32",
            4,
        ),
        (
            "md_workbench_read_only",
            "-2 -R=2 --read-only -M=3 -T -O=2",
            2,
        ),
        ("md_workbench_cleanup", "-3 --start-item=40 -D=2 -P=5", 2),
        ("mdtest_easy", "--pattern=mdtest-easy -n=100 -w=0", 4),
        ("mdtest_hard", "--pattern=mdtest-hard -n=100 -X -O=2", 4),
        ("ior_easy", "--pattern=ior-easy --transfers=16 -w=10", 4),
        ("ior_hard", "--pattern=ior-hard --transfers=16", 4),
    ] {
        insta::assert_snapshot!(name, plan(line, ranks).to_string());
    }
}

#[test]
fn single_phases_keep_the_root_and_go_on_where_the_others_were() {
    each_row(
        r#"
        7 | -R=1 => precreate benchmark cleanup, New, removed, from 0
        7 | -1 => precreate, New, kept, from 0
        7 | -2 -R=1 => benchmark, Kept, kept, from 7
        7 | -3 => cleanup, Kept, removed, from 7
        7 | -3 --start-item=9 => cleanup, Kept, removed, from 9
        7 | -3 --start-item=0 => cleanup, Kept, removed, from 0
        none | -1 --start-item=9 => precreate, New, kept, from 9
        "#,
        |row, expected| {
            let (position, line) = halves(row);
            let position = position.parse().ok().map(|p| Position(vec![p]));
            let options = options(line).unwrap();
            let plan = plimsoll_workload::md::lower(&options, 1, position.as_ref()).unwrap();
            let p = pattern(&plan);
            let stages: Vec<&str> = p.stages.iter().map(|s| s.name.as_str()).collect();
            let objects = if p.leaves_objects { "kept" } else { "removed" };
            let (stages, root) = (stages.join(" "), p.root_is);
            let found = format!("{stages}, {root:?}, {objects}, from {}", p.position);
            assert_eq!(found, expected, "{line}");
            assert_eq!(plan.options.keep, p.leaves_objects, "{line}");
        },
    );
}

#[test]
fn a_warm_up_is_an_iteration_without_a_window() {
    let warmed = plan("-R=1 --warmup=2 -T -I=7", 2);
    let p = pattern(&warmed);
    let [_, first, second, measured, ..] = &p.stages[..] else {
        panic!("{:?}", p.stages);
    };
    for (number, stage) in [first, second].into_iter().enumerate() {
        assert_eq!(
            (&stage.name[..], stage.iteration),
            ("warm-up", number as u32)
        );
        // Warm-up stages have the waiting factor 0, because only measured iterations wait adaptively.
        assert!(stage.warm_up && stage.waiting_factor == 0.0);
    }
    assert!(!measured.warm_up && measured.name == "benchmark");
    assert_eq!(
        (&first.work, first.stonewall),
        (&measured.work, measured.stonewall)
    );
    let windows = |plan: &Plan| {
        let opened = plan.script.iter().filter(|p| **p == Phase::OpenWindow);
        opened.count()
    };
    assert_eq!(windows(&warmed), windows(&plan("-R=1 -T -I=7", 2)));
    let shown = plan("-S=8k -R=2 --warmup=2 --drop-caches --direct", 2).to_string();
    insta::assert_snapshot!("md_workbench_warm_cold_direct", shown);
}

#[test]
fn ranks_go_on_where_each_of_them_was() {
    let kept = Position(vec![7, 4]);
    let lower = |line: &str, ranks| {
        let plan = plimsoll_workload::md::lower(&options(line).unwrap(), ranks, Some(&kept))?;
        Ok::<_, String>(pattern(&plan).clone())
    };
    let p = lower("-2", 2).unwrap();
    assert_eq!([p.position_of(0), p.position_of(1)], [7, 4]);
    for line in ["-1", "-2 --start-item=9"] {
        let p = lower(line, 2).unwrap();
        assert_eq!(p.position_of(0), p.position_of(1), "{line}");
    }
    let refused = lower("-3", 3).unwrap_err();
    assert!(
        refused.contains("the positions of 2 ranks, but there are 3"),
        "{refused}"
    );
    let far = Position(vec![0, u64::MAX]);
    let refused = plimsoll_workload::md::lower(&options("-3").unwrap(), 2, Some(&far)).unwrap_err();
    assert!(refused.contains("more than can be counted"), "{refused}");
}

#[test]
fn stages_follow_the_options() {
    let of = |line: &str| pattern(&plan(line, 1)).clone();
    for (line, samples) in [
        ("", Samples::Off),
        ("-L=x", Samples::First),
        ("-L=x --latency-all", Samples::All),
    ] {
        assert_eq!(of(line).samples, samples, "{line}");
    }
    let (stop, count) = (OnError::Stop, OnError::Count);
    for (line, expected) in [
        ("-R=1", [stop, count, count]),
        ("-R=1 --ignore-precreate-errors", [count; 3]),
    ] {
        let found: Vec<OnError> = of(line).stages.iter().map(|s| s.on_error).collect();
        assert_eq!(found, expected, "{line}");
    }
    // With the time limit 0 (`-w=0`), no stage has a stonewall; by default, only the writing stage has a stonewall.
    for name in ["mdtest-easy", "mdtest-hard", "ior-easy", "ior-hard"] {
        let walls = |more: &str| {
            let stages = of(&format!("--pattern={name} {more}")).stages;
            stages.iter().filter(|s| s.stonewall.is_some()).count()
        };
        assert_eq!((walls(""), walls("-w=0")), (1, 0), "{name}");
    }
}

/// Plays the stages of a pattern without time; returns the objects that exist after each stage.
fn play(plan: &plimsoll_plan::Plan) -> Vec<BTreeSet<(u32, u32, u64)>> {
    let p = pattern(plan);
    let mut there = BTreeSet::new();
    let mut position = vec![p.position; p.ranks as usize];
    let mut after = Vec::new();
    for stage in &p.stages {
        let work = objects(stage);
        let mut done = vec![0; p.ranks as usize];
        let most = match work.rounds {
            Rounds::Count(n) => n,
            Rounds::Left { window, .. } => window,
            Rounds::Made => panic!("not a rule of MD-Workbench"),
        };
        for f in 0..most {
            for rank in 0..p.ranks {
                for set in 0..p.sets {
                    for step in &work.steps {
                        let owner = step.owner.of(rank, set, p.ranks);
                        let i = position[rank as usize] + f + step.offset;
                        let object = (owner, set, i);
                        let found = match step.op {
                            ObjectOp::Create { .. } => {
                                there.insert(object);
                                true
                            }
                            ObjectOp::Delete => there.remove(&object),
                            _ => there.contains(&object),
                        };
                        if !found && step.gates {
                            break;
                        }
                    }
                }
                done[rank as usize] = f + 1;
            }
        }
        if work.advances == StageProgress::Position {
            position.iter_mut().zip(&done).for_each(|(p, d)| *p += d);
        }
        after.push(there.clone());
    }
    after
}

proptest! {
    /// Each data set is a queue of P objects.
    #[test]
    fn each_set_is_a_queue(
        ranks in 1u32..9, p in 1u64..7, share in 0.0f64..=1.0, d in 1u32..5, o in -9i64..10,
        r in 0u32..4, start in 0u64..5,
    ) {
        let i = (share * p as f64) as u64;
        let line = format!("-P={p} -I={i} -D={d} -O={o} -R={r} --start-item={start}");
        let after = play(&plan(&line, ranks));
        prop_assert_eq!(after.len(), 2 + r as usize);
        for (k, there) in (0..).zip(&after) {
            let mut expected = BTreeSet::new();
            if k < after.len() - 1 {
                let first = start + k as u64 * i;
                for rank in 0..ranks {
                    for set in 0..d {
                        expected.extend((first..first + p).map(|n| (rank, set, n)));
                    }
                }
            }
            prop_assert_eq!(there, &expected);
        }
    }

    /// The rank that reads the objects of a data set is as many ranks after the owner of the data set as the rank that
    /// adds objects is before the owner.
    #[test]
    fn readers_and_writers_are_where_the_rule_says(
        ranks in 1u32..9, d in 1u32..5, o in -9i64..10,
    ) {
        let plan = plan(&format!("-D={d} -O={o} -2 -R=1"), ranks);
        let p = pattern(&plan);
        let work = objects(&p.stages[0]);
        let n = i64::from(ranks);
        let steps: BTreeMap<String, _> = work
            .steps
            .iter()
            .map(|s| (plan.operation(s.row).name.clone(), s))
            .collect();
        for rank in 0..ranks {
            for set in 0..d {
                let by = o * (i64::from(set) + 1);
                let read = (i64::from(rank) - by).rem_euclid(n);
                let write = (i64::from(rank) + by).rem_euclid(n);
                for name in ["stat", "read", "delete"] {
                    prop_assert_eq!(i64::from(steps[name].owner.of(rank, set, ranks)), read);
                    prop_assert_eq!(steps[name].offset, 0);
                }
                prop_assert_eq!(i64::from(steps["create"].owner.of(rank, set, ranks)), write);
                prop_assert_eq!(steps["create"].offset, 3000);
            }
        }
    }

    /// The cleanup finds the remaining objects of a data set, even if the ranks that removed objects and added objects
    /// are at different positions.
    #[test]
    fn cleanup_finds_what_is_left(
        ranks in 1u32..9, d in 1u32..5, o in -9i64..10, at in prop::collection::vec(0u64..6, 8),
    ) {
        const P: u64 = 10;
        let plan = plan(&format!("-D={d} -O={o} -P={P} -3"), ranks);
        let p = pattern(&plan);
        let work = objects(&p.stages[0]);
        let Rounds::Left { window, deleted_by, made_by } = work.rounds else {
            panic!("{:?}", work.rounds);
        };
        // Each rank has done its own number of rounds.
        let n = i64::from(ranks);
        let mut there = BTreeSet::new();
        for owner in 0..ranks {
            for set in 0..d {
                there.extend((0..P).map(|i| (owner, set, i)));
            }
        }
        for rank in 0..ranks {
            for set in 0..d {
                let by = o * (i64::from(set) + 1);
                let read = (i64::from(rank) - by).rem_euclid(n) as u32;
                let write = (i64::from(rank) + by).rem_euclid(n) as u32;
                for f in 0..at[rank as usize] {
                    there.remove(&(read, set, f));
                    there.insert((write, set, P + f));
                }
            }
        }
        for owner in 0..ranks {
            for set in 0..d {
                let first = at[deleted_by.of(owner, set, ranks) as usize];
                let end = window + at[made_by.of(owner, set, ranks) as usize];
                for i in first..end {
                    prop_assert!(there.remove(&(owner, set, i)));
                }
            }
        }
        prop_assert!(there.is_empty(), "{there:?}");
    }
}

#[test]
fn a_plan_says_what_it_takes_on_the_file_system() {
    each_row(
        r#"
        // Every queue keeps its length, and an object of 3901 bytes takes a block.
        2 | -R=3 => 60000 objects, 20 sets, 245760000 bytes
        2 | -w=1 => 60000 objects, 20 sets, 245760000 bytes
        1 | -S=4097 -P=3 -I=3 -D=1 => 3 objects, 1 sets, 24576 bytes
        1 | -S=0 -P=3 -I=3 -D=1 => 3 objects, 1 sets, 0 bytes
        2 | -2 => 0 objects, 0 sets, 0 bytes
        2 | -3 => 0 objects, 0 sets, 0 bytes
        4 | --pattern=mdtest-easy -n=10 -w=0 => 40 objects, 4 sets, 0 bytes
        4 | --pattern=mdtest-hard -n=10 -w=0 => 40 objects, 1 sets, 163840 bytes
        4 | --pattern=mdtest-hard -n=10 => 0 objects, 1 sets, 0 bytes, or more
        4 | --pattern=ior-easy --transfers=10 -w=0 => 4 objects, 0 sets, 83886080 bytes
        // 1 880 320 bytes of forty transfers take 460 blocks.
        4 | --pattern=ior-hard --transfers=10 -w=0 => 1 objects, 0 sets, 1884160 bytes
        4 | --pattern=ior-hard => 0 objects, 0 sets, 0 bytes, or more
        "#,
        |row, expected| {
            let (ranks, line) = halves(row);
            let n = pattern(&plan(line, ranks.parse().unwrap())).needs(4096);
            let more = if n.open_ended { ", or more" } else { "" };
            let found = format!(
                "{} objects, {} sets, {} bytes{more}",
                n.objects, n.sets, n.bytes
            );
            assert_eq!(found, expected, "{row}");
        },
    );
}

proptest! {
    /// The calculated needs of a Plan equal the maximum number of objects in the model that plays the stages.
    #[test]
    fn what_is_taken_is_what_there_is_at_most(
        ranks in 1u32..9, p in 1u64..7, d in 1u32..5, r in 0u32..4, o in -9i64..10,
    ) {
        let plan = plan(&format!("-P={p} -I={p} -D={d} -O={o} -R={r} -S=1"), ranks);
        let most = play(&plan).iter().map(BTreeSet::len).max().unwrap();
        let needs = pattern(&plan).needs(512);
        prop_assert_eq!(needs.objects, most as u64);
        prop_assert_eq!(needs.bytes, 512 * most as u128);
    }
}
