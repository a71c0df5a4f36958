//! Filesets of operation mixes: operations that change the tree, and files that smaller loads use.

use super::*;

#[test]
fn a_smaller_load_has_fewer_processes_on_the_first_parts_of_the_files() {
    let mut most = plan();
    most.metric.as_mut().unwrap().load = 4;
    for fileset in &mut most.filesets {
        fileset.grows = true;
    }
    for load in 1..=4 {
        let smaller = most.at_load(load).unwrap();
        assert_eq!(smaller.metric.as_ref().unwrap().load, load);
        assert_eq!(smaller.workers(), load);
        // The full load has four processes and filesets of 100, 40 and 20 files; each process uses 25, 10 and 5 files.
        let used = |id| smaller.files_used(FilesetId(id));
        assert_eq!(used(0), 0..25 * load);
        assert_eq!(used(1), 0..10 * load);
        assert_eq!(used(2), 0..5 * load);
    }
    assert_eq!(most.at_load(0), None);
    assert_eq!(most.at_load(5), None);
    let mut fixed = most.clone();
    fixed.filesets[0].grows = false;
    let smaller = fixed.at_load(1).unwrap();
    assert_eq!(smaller.files_used(FilesetId(0)), 0..100);
    fixed.metric = None;
    assert_eq!(fixed.at_load(1), None);
}

#[test]
fn trees_of_a_pool_change_by_the_operations_on_it() {
    let changed = |op: MixOp| {
        let mut plan = plan();
        set_ops(&mut plan, &[op]);
        [0, 1, 2].map(|i| plan.changes_tree(FilesetId(i)))
    };
    assert_eq!(changed(MixOp::Write), [true, false, false]);
    assert_eq!(changed(MixOp::Rmdir), [true, false, false]);
    assert_eq!(changed(MixOp::Rename), [false, true, false]);
    assert_eq!(changed(MixOp::Unlink), [false, false, true]);
    assert_eq!(changed(MixOp::Readdir), [false; 3]);
    assert_eq!(changed(MixOp::Statfs), [false; 3]);
}

#[test]
fn lengths_of_data_files_are_set_by_truncations_and_by_writes_that_do_not_overwrite() {
    let sets = |op: MixOp, overwrite: bool| {
        let mut plan = plan();
        set_ops(&mut plan, &[MixOp::Stat, op]);
        mix(&mut plan).flags.overwrite = overwrite;
        [0, 1, 2].map(|i| plan.sets_lengths(FilesetId(i)))
    };
    assert_eq!(sets(MixOp::Truncate, true), [true, false, false]);
    assert_eq!(sets(MixOp::Write, false), [true, false, false]);
    assert_eq!(sets(MixOp::Write, true), [false; 3]);
    assert_eq!(sets(MixOp::WriteFile, false), [false; 3]);
}

#[test]
fn leaf_directories_grow_with_the_load() {
    let mut plan = plan();
    assert_eq!(plan.leaf_dirs_used(FilesetId(0)), 0..4);
    plan.filesets[0].leaf_dirs = 12;
    plan.filesets[0].grows = true;
    mix(&mut plan).files.parts = 6;
    assert_eq!(plan.leaf_dirs_used(FilesetId(0)), 0..8);
    assert_eq!(plan.files_used(FilesetId(0)), 0..66);
    plan.groups[0].process_instances = 0;
    assert_eq!(plan.files_used(FilesetId(0)), 0..0);
    // A fileset that grows with the load has no files in use if no mix uses the fileset.
    plan.filesets.push(Fileset {
        grows: true,
        ..fileset("other", 10, 0, 100)
    });
    assert_eq!(plan.files_used(FilesetId(3)), 0..0);
}
