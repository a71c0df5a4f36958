//! The Plans that options become, against rules worked out again here.

use super::common;

use common::{options, pattern, plan};
use plimsoll_plan::{
    ObjectLoop, ObjectOp, OnError, Phase, Plan, RootHandling, Rounds, Samples, Stage,
    StageProgress, StageWork, TransferLoop, Until,
};
use plimsoll_workload::md::Position;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn objects(stage: &Stage) -> &ObjectLoop {
    match &stage.work {
        StageWork::Objects(work) => work,
        StageWork::Transfers(_) => panic!("{} transfers", stage.name),
    }
}

fn transfers(stage: &Stage) -> &TransferLoop {
    match &stage.work {
        StageWork::Transfers(work) => work,
        StageWork::Objects(_) => panic!("{} works on objects", stage.name),
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
fn each_stage_is_a_window_that_ends_by_itself() {
    let plan = plan("-R=2", 3);
    let stages = pattern(&plan).stages.len();
    assert_eq!(stages, 4);
    for (k, phases) in (0..).zip(plan.script.chunks(5)) {
        let expected = [
            Phase::StartStage { stage: k },
            Phase::OpenWindow,
            Phase::Wait {
                until: Until::Done { at_most: None },
                snapshots: None,
            },
            Phase::CloseWindow,
            Phase::Stop,
        ];
        assert_eq!(phases, expected);
    }
    assert_eq!(plan.script.len(), 5 * stages);
    assert_eq!(plan.workers(), 3);
}

#[test]
fn single_phases_keep_the_root_and_go_on_where_the_others_were() {
    let of = |line: &str, position: Option<u64>| {
        let position = position.map(Position::Common);
        let plan =
            plimsoll_workload::md::lower(&options(line).unwrap(), 1, position.as_ref()).unwrap();
        let p = pattern(&plan).clone();
        assert_eq!(plan.options.keep, p.leaves_objects);
        let names: Vec<String> = p.stages.iter().map(|s| s.name.clone()).collect();
        (names.join(" "), p.root_is, p.leaves_objects, p.position)
    };
    let s = |names: &str, root, leaves, position| (names.into(), root, leaves, position);
    let (new, kept) = (RootHandling::New, RootHandling::Kept);
    assert_eq!(
        of("-R=1", Some(7)),
        s("precreate benchmark cleanup", new, false, 0)
    );
    assert_eq!(of("-1", Some(7)), s("precreate", new, true, 0));
    assert_eq!(of("-2 -R=1", Some(7)), s("benchmark", kept, true, 7));
    assert_eq!(of("-3", Some(7)), s("cleanup", kept, false, 7));
    assert_eq!(
        of("-3 --start-item=9", Some(7)),
        s("cleanup", kept, false, 9)
    );
    assert_eq!(
        of("-3 --start-item=0", Some(7)),
        s("cleanup", kept, false, 0)
    );
    assert_eq!(of("-1 --start-item=9", None), s("precreate", new, true, 9));
}

#[test]
fn a_warm_up_is_an_iteration_without_a_window() {
    let warmed = plan("-R=1 --warmup=2 -T -I=7", 2);
    let p = pattern(&warmed);
    let stages: Vec<_> = p
        .stages
        .iter()
        .map(|s| (&s.name[..], s.iteration))
        .collect();
    assert_eq!(
        stages[..4],
        [
            ("precreate", 0),
            ("warm-up", 0),
            ("warm-up", 1),
            ("benchmark", 0)
        ]
    );
    let [first, .., measured] = &p.stages[1..4] else {
        panic!("there are three");
    };
    assert!(first.warm_up && !measured.warm_up);
    assert_eq!(
        (&first.work, first.stonewall),
        (&measured.work, measured.stonewall)
    );
    // Adaptive waiting is what is measured.
    assert_eq!(first.waiting_factor, 0.0);
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
    let kept = Position::PerRank(vec![7, 4]);
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
    let far = Position::PerRank(vec![0, u64::MAX]);
    let refused = plimsoll_workload::md::lower(&options("-3").unwrap(), 2, Some(&far)).unwrap_err();
    assert!(refused.contains("more than can be counted"), "{refused}");
}

#[test]
fn adaptive_waiting_is_eight_runs_of_each_iteration() {
    let plan = plan("-R=2 -T -2", 1);
    let seen: Vec<(u32, f64)> = pattern(&plan)
        .stages
        .iter()
        .map(|s| (s.iteration, s.waiting_factor))
        .collect();
    let factors = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];
    let expected: Vec<(u32, f64)> = (0..2)
        .flat_map(|i| factors.iter().map(move |f| (i, *f)))
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn errors_end_the_run_only_where_objects_are_made_before() {
    let fates = |line| -> Vec<OnError> {
        pattern(&plan(line, 1))
            .stages
            .iter()
            .map(|s| s.on_error)
            .collect()
    };
    let (stop, count) = (OnError::Stop, OnError::Count);
    assert_eq!(fates("-R=1"), [stop, count, count]);
    assert_eq!(fates("-R=1 --ignore-precreate-errors"), [count; 3]);
}

#[test]
fn memory_is_taken_between_phases() {
    let squeezed = |line| -> Vec<Option<u64>> {
        pattern(&plan(line, 1))
            .stages
            .iter()
            .map(|s| s.squeeze_memory)
            .collect()
    };
    let some = Some(3 << 20);
    assert_eq!(squeezed("-R=1 -M=3"), [None, some, some]);
    assert_eq!(squeezed("-2 -R=1 -M=3"), [some]);
    assert_eq!(squeezed("-R=1"), [None; 3]);
    assert_eq!(pattern(&plan("-m=5", 1)).hold_memory, Some(5 << 20));
}

#[test]
fn read_only_stays_where_it_is() {
    let plan = plan("-R=1 --read-only", 2);
    let work = objects(&pattern(&plan).stages[1]);
    let ops: Vec<ObjectOp> = work.steps.iter().map(|s| s.op).collect();
    assert_eq!(ops, [ObjectOp::Stat, ObjectOp::Read]);
    assert_eq!(work.advances, StageProgress::Nothing);
}

#[test]
fn times_of_operations_are_kept_where_they_are_asked_for() {
    let samples = |line| pattern(&plan(line, 1)).samples;
    assert_eq!(samples(""), Samples::Off);
    assert_eq!(samples("-L=x"), Samples::First);
    assert_eq!(samples("-L=x --latency-all"), Samples::All);
}

/// Plays the stages of a pattern without time: which objects there are after each.
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
    /// Worked out from the rules: each data set is a queue of P objects.
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

    /// The reader of an object lies as far behind its set's owner as the one who adds to it lies
    /// before.
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

    /// Cleaning up knows who removed from a set and who added to it, should they have come to
    /// different positions.
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
        // After each rank has done a number of rounds of its own.
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

fn name(plan: &plimsoll_plan::Plan, rank: u32, object: u64) -> String {
    let mut path = Vec::new();
    pattern(plan).push_object(rank, 0, object, &mut path);
    String::from_utf8(path).unwrap()
}

#[test]
fn files_have_the_names_that_mdtest_and_ior_give_them() {
    let named = |line: &str, rank, object| name(&plan(line, 16), rank, object);
    assert_eq!(named("-o=x", 3, 12), "x/3_0/file-12");
    assert_eq!(
        named("--pattern=mdtest-easy", 3, 12),
        "mdtest-easy/test-dir.0-0/mdtest_tree.3.0/file.mdtest.3.12"
    );
    assert_eq!(
        named("--pattern=mdtest-hard", 3, 12),
        "mdtest-hard/test-dir.0-0/mdtest_tree.0/file.mdtest.3.12"
    );
    assert_eq!(
        named("--pattern=ior-easy", 3, 0),
        "ior-easy/ior_file_easy.00000003"
    );
    assert_eq!(named("--pattern=ior-hard", 3, 0), "ior-hard/file");
}

#[test]
fn mdtest_moves_on_by_a_stride_from_phase_to_phase() {
    let shifts = |line: &str| -> Vec<(String, i64)> {
        let plan = plan(line, 16);
        let stages = pattern(&plan).stages.iter();
        let with_steps = stages.filter(|s| !objects(s).steps.is_empty());
        with_steps
            .map(|s| (s.name.clone(), objects(s).steps[0].owner.constant))
            .collect()
    };
    let named = |of: &[(&str, i64)]| -> Vec<(String, i64)> {
        of.iter().map(|(n, s)| ((*n).into(), *s)).collect()
    };
    assert_eq!(
        shifts("--pattern=mdtest-easy"),
        named(&[
            ("mdtest-easy-write", 0),
            ("mdtest-easy-stat", 1),
            ("mdtest-easy-delete", 3)
        ])
    );
    assert_eq!(
        shifts("--pattern=mdtest-hard -O=5"),
        named(&[
            ("mdtest-hard-write", 0),
            ("mdtest-hard-stat", 5),
            ("mdtest-hard-read", 10),
            ("mdtest-hard-delete", 15),
        ])
    );
}

#[test]
fn io500_writes_until_the_stonewall_and_then_evens_out() {
    for name in ["mdtest-easy", "mdtest-hard", "ior-easy", "ior-hard"] {
        let of = |more: &str| plan(&format!("--pattern={name} {more}"), 4);
        let default = of("");
        let walls = pattern(&default)
            .stages
            .iter()
            .filter_map(|s| Some((&s.name, s.stonewall?)));
        let walls: Vec<_> = walls.collect();
        assert_eq!(walls.len(), 1, "{name}");
        assert_eq!(*walls[0].0, format!("{name}-write"));
        assert_eq!(walls[0].1.after.as_secs(), 300);
        assert!(walls[0].1.wear_out);
        assert!(
            pattern(&of("-w=0"))
                .stages
                .iter()
                .all(|s| s.stonewall.is_none())
        );
    }
}

#[test]
fn ior_reads_what_another_rank_wrote_and_flushed() {
    for (line, size, strided) in [
        ("--pattern=ior-easy --transfers=9", 2 << 20, false),
        (
            "--pattern=ior-easy --transfers=9 --transfer-size=64k",
            64 << 10,
            false,
        ),
        ("--pattern=ior-hard --transfers=9", 47_008, true),
    ] {
        let plan = plan(line, 4);
        let [write, read] = &pattern(&plan).stages[..] else {
            panic!("{line}");
        };
        let (write, read) = (transfers(write), transfers(read));
        assert!(write.write && write.sync.is_some() && !read.write && read.sync.is_none());
        assert_eq!(
            (write.rounds, read.rounds),
            (Rounds::Count(9), Rounds::Made)
        );
        assert_eq!((write.owner.constant, read.owner.constant), (0, 1));
        for t in [write, read] {
            assert_eq!((t.size, t.strided), (size, strided), "{line}");
        }
    }
}

#[test]
fn a_plan_says_what_it_takes_on_the_file_system() {
    let needs = |line: &str, ranks| {
        let n = pattern(&plan(line, ranks)).needs(4096);
        (n.objects, n.sets, n.bytes, n.open_ended)
    };
    // Every queue keeps its length, and an object of 3901 bytes takes a block.
    assert_eq!(needs("", 2), (60_000, 20, 60_000 * 4096, false));
    assert_eq!(needs("-w=1", 2), (60_000, 20, 60_000 * 4096, false));
    assert_eq!(needs("-S=4097 -P=3 -I=3 -D=1", 1), (3, 1, 3 * 8192, false));
    assert_eq!(needs("-S=0 -P=3 -I=3 -D=1", 1), (3, 1, 0, false));
    assert_eq!(needs("-2", 2), (0, 0, 0, false));
    assert_eq!(needs("-3", 2), (0, 0, 0, false));
    assert_eq!(
        needs("--pattern=mdtest-easy -n=10 -w=0", 4),
        (40, 4, 0, false)
    );
    assert_eq!(
        needs("--pattern=mdtest-hard -n=10 -w=0", 4),
        (40, 1, 40 * 4096, false)
    );
    assert_eq!(needs("--pattern=mdtest-hard -n=10", 4), (0, 1, 0, true));
    let bytes = 4 * 10 * (2 << 20);
    assert_eq!(
        needs("--pattern=ior-easy --transfers=10 -w=0", 4),
        (4, 0, bytes, false)
    );
    let bytes = (4u128 * 10 * 47_008).div_ceil(4096) * 4096;
    assert_eq!(
        needs("--pattern=ior-hard --transfers=10 -w=0", 4),
        (1, 0, bytes, false)
    );
    assert_eq!(needs("--pattern=ior-hard", 4), (0, 0, 0, true));
}

proptest! {
    /// The model that plays the stages knows how many objects there are.
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
