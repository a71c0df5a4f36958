//! Errors of the checks of a pattern before a run.

use super::*;

fn refusal(change: impl FnOnce(&mut Plan, &mut Pattern)) -> String {
    let mut pattern = with_stages(vec![
        objects(Rounds::Count(1), &[CREATE]),
        objects(Rounds::Made, &[ObjectOp::Delete]),
    ]);
    let mut plan = plan(pattern.clone());
    assert_eq!(plan.check(), Ok(()));
    change(&mut plan, &mut pattern);
    plan.groups[0].program = Program::Pattern(Box::new(pattern));
    let outcome = plan.check().map_err(|e| e.to_string());
    outcome.expect_err("a pattern that is refused")
}

#[test]
fn a_pattern_is_the_only_workload() {
    let alone = "a pattern is a workload of its own: no other group, no fileset";
    let text = refusal(|plan, _| plan.filesets.push(Fileset::new("set", 1, 0.into())));
    assert_eq!(text, alone);
    let text = refusal(|plan, _| plan.groups.push(plan.groups[0].clone()));
    assert_eq!(text, alone);
    assert_eq!(
        refusal(|plan, _| plan.options.verify = true),
        "a pattern verifies its objects itself, not by the run's option"
    );
}

#[test]
fn a_tree_has_data_sets_with_objects() {
    let changed = |branch, first_set, objects| {
        refusal(|_, p| {
            *p = Pattern {
                tree: Some(SetTree { branch, first_set }),
                objects,
                ..tree_pattern()
            };
        })
    };
    let needs = "a tree of 7 data sets needs at least 1 branch, a data set with objects, and at most 2^62 objects";
    for text in [changed(0, 3, 10), changed(2, 7, 10), changed(2, 3, 1 << 62)] {
        assert!(text.starts_with(needs), "{text}");
    }
    let text = refusal(|_, p| p.read_size = Some(4000));
    assert_eq!(text, "a read of an object cannot exceed the object's size");
}

#[test]
fn stages_on_directories_and_in_other_orders_have_their_rules() {
    let changed = |ops: &[ObjectOp], change: fn(&mut ObjectLoop, &mut Stage)| {
        refusal(|_, p| {
            *p = tree_pattern();
            let mut stage = objects(Rounds::Count(1), ops);
            let StageWork::Objects(mut work) = stage.work.clone() else {
                unreachable!("a stage on objects");
            };
            change(&mut work, &mut stage);
            stage.work = StageWork::Objects(work);
            p.stages = vec![stage; 2];
        })
    };
    for (text, why) in [
        (
            changed(&[ObjectOp::MakeDir, CREATE], |_, _| ()),
            "a stage works on files, or on directories whose names have a template",
        ),
        (
            changed(&[ObjectOp::StatDir], |work, _| work.rounds = Rounds::Made),
            "a stage on directories has a fixed number of rounds",
        ),
        (
            changed(&[ObjectOp::RenameDir], |work, _| {
                work.order = ObjectOrder::Sets;
            }),
            "a rename is the only step, and works on all directories, set by set",
        ),
        (
            changed(&[CREATE], |work, stage| {
                work.order = ObjectOrder::DepthFirst;
                stage.stonewall = stonewall(1, true);
            }),
            "a stonewall ends rounds over all data sets, in order",
        ),
        (
            changed(&[CREATE], |work, _| {
                work.order = ObjectOrder::Shuffled { seed: 1 };
                work.remove_sets = Some(row("rmdir"));
            }),
            "a data set is removed after its rounds only round by round or set by set",
        ),
    ] {
        assert_eq!(text, why);
    }
    let text = refusal(|_, p| {
        if let StageWork::Objects(work) = &mut p.stages[0].work {
            work.order = ObjectOrder::DepthFirst;
        }
    });
    assert_eq!(text, "only data sets in a tree have an order by depth");
}

#[test]
fn a_pattern_has_a_worker_and_a_position_for_each_rank() {
    let workers = |ranks, there| {
        format!("a pattern of {ranks} ranks needs as many workers, at least 1; there are {there}")
    };
    assert_eq!(refusal(|_, p| p.ranks = 5), workers(5, 4));
    let none = refusal(|plan, p| {
        p.ranks = 0;
        plan.groups[0].process_instances = 0;
    });
    assert_eq!(none, workers(0, 0));
    assert_eq!(
        refusal(|_, p| p.positions = vec![1, 2, 3]),
        "a pattern of 4 ranks has 3 positions"
    );
    let with_positions = Pattern {
        positions: vec![1, 2, 3, 4],
        ..pattern()
    };
    assert_eq!(plan(with_positions).check(), Ok(()));
}

#[test]
fn rows_and_stages_of_a_pattern_exist() {
    assert_eq!(
        refusal(|plan, _| plan.operations.truncate(4)),
        "the Plan refers to operation 4, which does not exist"
    );
    assert_eq!(
        refusal(|plan, _| plan.script.push(Phase::StartStage { stage: 2 })),
        "the Plan refers to stage 2, which does not exist"
    );
}

#[test]
fn stages_have_numbers_in_their_ranges() {
    for factor in [-0.5, f64::NAN, f64::INFINITY] {
        assert_eq!(
            refusal(|_, p| p.stages[1].waiting_factor = factor),
            format!("the waiting factor must be 0 or more, is {factor}")
        );
    }
    assert_eq!(
        refusal(|_, p| p.stages.push(transfers(|t| t.size = 0))),
        "a transfer must have at least 1 byte"
    );
    assert_eq!(
        refusal(|_, p| p.stages.push(transfers(|t| t.block = 0))),
        "a block must have at least 1 transfer, and the blocks of all ranks at most 2^62 bytes; the block has 0 \
         transfers"
    );
    let search = TreeSearch {
        top: RelPath::default(),
        name_contains: String::new(),
        size: None,
        changed_since: None,
        list: row("read"),
        stat: row("stat"),
    };
    let walled = |p: &mut Pattern| {
        let mut find = stage("find", StageWork::Search(search));
        find.stonewall = stonewall(1, false);
        p.stages.push(find);
    };
    assert_eq!(
        refusal(|_, p| walled(p)),
        "a search has no stonewall: the ranks search the whole tree"
    );
    let verified = |p: &mut Pattern| {
        p.verify = true;
        p.stages.push(transfers(|_| ()));
    };
    assert_eq!(
        refusal(|_, p| verified(p)),
        "only whole objects can be verified, not transfers"
    );
    let mut pattern = with_stages(vec![transfers(|t| t.size = 1)]);
    pattern.stages[0].waiting_factor = 0.5;
    assert_eq!(plan(pattern).check(), Ok(()));
}
