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
