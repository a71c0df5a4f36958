//! Errors of the checks of an operation mix before a run.

use super::*;

#[test]
fn tables_must_be_whole() {
    let says = |change: fn(&mut Mix), what: &str| {
        let text = refusal(|p| change(mix(p)));
        assert!(
            text.starts_with("`table`: ") && text.contains(what),
            "{text}"
        );
    };
    says(|m| m.table[0].percent = 49.0, "must sum to 100, sum to 99");
    says(|m| m.table[0].percent = 0.0, "read_rand has 0 percent");
    says(
        |m| m.table[0].percent = f64::NAN,
        "read_rand has NaN percent",
    );
    says(
        |m| m.table[1].op = MixOp::ReadRand,
        "read_rand is in the mix twice",
    );
    says(|m| m.table[0].row = OperationId(99), "operation 99");
    says(
        |m| m.table[0].row = OperationId(1),
        "row `write_rand` is one of write, not of read",
    );
    says(
        |m| m.reads.0[0].percent = 70.0,
        "table of read sizes must sum to 100",
    );
    says(
        |m| m.writes.0.clear(),
        "table of write sizes must have 1 to 16 slots",
    );
}

#[test]
fn filesets_have_one_use() {
    let text = refusal(|p| {
        let again = WorkerGroup {
            process: "again".into(),
            ..p.groups[0].clone()
        };
        p.groups.push(again);
    });
    assert!(
        text.contains("`data` has two uses, in `table` and in `again`"),
        "{text}"
    );
    let text = refusal(|p| {
        let sequence = WorkerGroup {
            program: Program::Sequence(vec![]),
            ..p.groups[0].clone()
        };
        p.groups.push(sequence);
    });
    assert!(text.contains("cannot be in one Plan"), "{text}");
}

#[test]
fn workers_start_once() {
    let text = refusal(|p| p.script.push(Phase::Start));
    assert!(text.contains("only once"), "{text}");
}

#[test]
fn numbers_may_be_at_the_ends_of_their_ranges() {
    let accepted = |change: fn(&mut Mix)| {
        let mut plan = plan();
        change(mix(&mut plan));
        assert_eq!(plan.check(), Ok(()));
    };
    accepted(|m| m.pacing.as_mut().unwrap().rate = 1e6);
    accepted(|m| m.flags.direct_percent = 100.0);
    accepted(|m| m.flags.osync_percent = 0.0);
    accepted(|m| m.flags.align = 1 << 30);
    accepted(|m| m.working_set.millionths = 1_000_000);
    accepted(|m| m.working_set.choice = Choice::Geometric { percent: 100.0 });
    accepted(|m| m.table[0].percent = 50.005);
    accepted(|m| {
        m.working_set.choice = Choice::Zipf { exponent: 10.0 };
        m.files.shared = true;
    });
    accepted(|m| {
        m.working_set.spots = Some(Spots {
            percent: 100.0,
            accesses: 1,
            multiplier: 1,
            affinity: 100.0,
            geometric: false,
        });
    });
    let mut full = plan();
    full.metric.as_mut().unwrap().scale = 1.0;
    full.metric.as_mut().unwrap().load = 1;
    assert_eq!(full.check(), Ok(()));
}

#[test]
fn numbers_beyond_their_ranges_are_named() {
    let refused = |change: &dyn Fn(&mut Mix), expected: &str| {
        assert_eq!(refusal(|p| change(mix(p))), format!("`table`: {expected}"));
    };
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e6 + 0.5] {
        refused(
            &|m| m.pacing.as_mut().unwrap().rate = rate,
            &format!("a rate must be above 0 and at most 1e6, is {rate}"),
        );
    }
    refused(
        &|m| m.table[0].percent = 50.5,
        "the percentages of a mix must sum to 100, sum to 100.5",
    );
    refused(
        &|m| m.flags.direct_percent = 101.0,
        "direct must be 0 to 100 percent, is 101",
    );
    refused(
        &|m| m.flags.osync_percent = -1.0,
        "osync must be 0 to 100 percent, is -1",
    );
    refused(
        &|m| m.flags.commit_percent = f64::NAN,
        "commit must be 0 to 100 percent, is NaN",
    );
    let advice = |sequential, dontneed| {
        Some(Fadvise {
            sequential,
            dontneed,
        })
    };
    refused(
        &|m| m.flags.fadvise = advice(101.0, 0.0),
        "fadvise: sequential must be 0 to 100 percent, is 101",
    );
    refused(
        &|m| m.flags.fadvise = advice(0.0, f64::NAN),
        "fadvise: dontneed must be 0 to 100 percent, is NaN",
    );
    let text = refusal(|p| {
        set_ops(p, &[MixOp::ReadFile]);
        mix(p).flags.fadvise = advice(20.0, 100.0);
    });
    assert!(text.contains("no operation on such a file"), "{text}");
    for align in [0, (1 << 30) + 1] {
        refused(
            &|m| m.flags.align = align,
            &format!("an alignment must be 1 to 1073741824 bytes, is {align}"),
        );
    }
    for millionths in [0, 1_000_001] {
        refused(
            &|m| m.working_set.millionths = millionths,
            &format!("a working set must be 1 to 1000000 millionths, is {millionths}"),
        );
    }
    refused(
        &|m| m.working_set.spots.as_mut().unwrap().percent = 0.0,
        "a spot must be above 0 and at most 100 percent, is 0",
    );
    refused(
        &|m| m.working_set.spots.as_mut().unwrap().affinity = 100.5,
        "the affinity of spots must be above 0 and at most 100 percent, is 100.5",
    );
    for (accesses, multiplier) in [(0, 1), (1, 0)] {
        refused(
            &|m| {
                let spots = m.working_set.spots.as_mut().unwrap();
                (spots.accesses, spots.multiplier) = (accesses, multiplier);
            },
            "accesses and multiplier of spots must be at least 1",
        );
    }
    for exponent in [0.0, 10.5, f64::NAN] {
        refused(
            &|m| {
                m.working_set.choice = Choice::Zipf { exponent };
                m.files.shared = true;
            },
            &format!("the exponent of zipf must be above 0 and at most 10, is {exponent}"),
        );
    }
    let says = |change: fn(&mut Plan), what: &str| {
        let text = refusal(change);
        assert!(text.contains(what), "{text}");
    };
    says(
        |p| mix(p).working_set.choice = Choice::Geometric { percent: 0.0 },
        "geometric choices must be above 0",
    );
    says(
        |p| mix(p).working_set.choice = Choice::Zipf { exponent: 1.0 },
        "the working set would depend on the number of processes",
    );
    says(
        |p| mix(p).delay = std::time::Duration::from_millis(1),
        "a delay must have no rate beside it",
    );
    for scale in [0.0, 1.5, f64::NAN] {
        let text = refusal(|p| p.metric.as_mut().unwrap().scale = scale);
        assert!(text.contains("a scale must be above 0"), "{text}");
    }
    says(
        |p| p.metric.as_mut().unwrap().load = 0,
        "a load must be at least 1",
    );
}

#[test]
fn rows_of_preparation_and_of_starts_have_their_kinds() {
    let prepare = refusal(|p| mix(p).prepare = OperationId(0));
    assert_eq!(
        prepare,
        "`table`: row `read_rand` is one of read, not of prepare"
    );
    let start = refusal(|p| mix(p).pacing.as_mut().unwrap().start = OperationId(1));
    assert_eq!(
        start,
        "`table`: row `write_rand` is one of write, not of start"
    );
    let mut plan = plan();
    // A paced mix of six operations records eight rows: the operations, the preparation and the start delays.
    let rows: Vec<u32> = mix(&mut plan).rows().map(|id| id.0).collect();
    assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6, 7]);
    mix(&mut plan).pacing = None;
    assert_eq!(mix(&mut plan).rows().count(), 7);
}

/// Result of the checks of a Plan whose mix has the operations `ops`, after `change` has changed the Plan.
fn with_ops(ops: &[MixOp], change: impl FnOnce(&mut Plan)) -> Result<(), String> {
    let mut plan = plan();
    set_ops(&mut plan, ops);
    assert_eq!(plan.check(), Ok(()), "{ops:?}");
    change(&mut plan);
    let outcome = plan.check().map_err(|e| e.to_string());
    outcome.map_err(|text| text.replace("`table`: ", ""))
}

fn too_few(what: &str, there: u64) -> Result<(), String> {
    Err(format!(
        "each of 4 processes needs {what} of its own, and there are {there}"
    ))
}

#[test]
fn each_pool_needs_files_for_every_process() {
    let entries = |set: usize, n: u64| move |p: &mut Plan| p.filesets[set].entries = n;
    let rename = [MixOp::Rename, MixOp::ReadRand];
    assert_eq!(with_ops(&rename, entries(1, 8)), Ok(()));
    assert_eq!(
        with_ops(&rename, entries(1, 7)),
        too_few("two turnover files", 7)
    );
    let unlink = [MixOp::Unlink2];
    assert_eq!(with_ops(&unlink, entries(1, 4)), Ok(()));
    assert_eq!(
        with_ops(&unlink, entries(1, 3)),
        too_few("a turnover file", 3)
    );
    let create = [MixOp::Create];
    assert_eq!(with_ops(&create, entries(2, 4)), Ok(()));
    assert_eq!(
        with_ops(&create, entries(2, 3)),
        too_few("an empty file", 3)
    );
    assert_eq!(
        with_ops(&create, |p| p.filesets[2].size = Value::Const(1)),
        Err("the files that create and unlink work on must be empty".into())
    );
    for ops in [[MixOp::Mkdir], [MixOp::Rmdir]] {
        let leaves = |n| with_ops(&ops, |p| p.filesets[0].leaf_dirs = n);
        assert_eq!(leaves(4), Ok(()));
        assert_eq!(leaves(3), too_few("a spare directory", 3));
    }
    // A mix of copies needs data files, which copies read; a mix of statfs and readdir needs no files.
    let none = entries(0, 0);
    assert_eq!(
        with_ops(&[MixOp::Copyfile], none),
        too_few("a file in the working set", 0)
    );
    assert_eq!(with_ops(&[MixOp::Statfs, MixOp::Readdir], none), Ok(()));
    let missing = |pool: &str| {
        Err(format!(
            "the mix needs {pool}, and no fileset is given for them"
        ))
    };
    let nowhere = FilesetId(9);
    assert_eq!(
        with_ops(&[MixOp::Stat], |p| mix(p).files.data = nowhere),
        missing("data files")
    );
    assert_eq!(
        with_ops(&create, |p| mix(p).files.empty = None),
        missing("empty files")
    );
    assert_eq!(
        with_ops(&unlink, |p| mix(p).files.turnover = None),
        missing("turnover files")
    );
    // The working set is 30 percent of 13 files, three files: too few for four processes that do not share files.
    let thirteen = |shared| {
        with_ops(&[MixOp::Stat], |p| {
            p.filesets[0].entries = 13;
            mix(p).files.shared = shared;
        })
    };
    assert_eq!(thirteen(false), too_few("a file in the working set", 3));
    assert_eq!(thirteen(true), Ok(()));
    let text = refusal(|p| p.filesets[0].prealloc_percent = 99);
    assert!(text.contains("prealloc is 99"), "{text}");
}

#[test]
fn parts_are_at_least_as_many_as_processes_and_one() {
    let parts = |parts, processes| {
        with_ops(&[MixOp::Statfs], |p| {
            mix(p).files.parts = parts;
            p.groups[0].process_instances = processes;
        })
    };
    assert_eq!(
        (parts(1, 0), parts(4, 4), parts(9, 4)),
        (Ok(()), Ok(()), Ok(()))
    );
    for (count, processes) in [(0, 0), (3, 4)] {
        let expected =
            format!("the files have {count} parts, fewer than the {processes} processes");
        assert_eq!(parts(count, processes), Err(expected));
    }
    let shared = |entries| {
        with_ops(&[MixOp::Stat], |p| {
            mix(p).files.shared = true;
            mix(p).files.parts = 12;
            mix(p).working_set.millionths = 1_000_000;
            p.filesets[0].entries = entries;
        })
    };
    assert_eq!(shared(3), Ok(()));
    assert_eq!(
        shared(2),
        Err("the working set of the first 4 of 12 processes has no file".into())
    );
}

#[test]
fn shared_files_are_mapped_or_cut_but_not_both() {
    let of = |ops: &[MixOp], overwrite: bool| {
        with_ops(ops, |p| {
            mix(p).files.shared = true;
            mix(p).flags.overwrite = overwrite;
        })
        .is_ok()
    };
    assert!(!of(&[MixOp::MmapWrite, MixOp::Write], false));
    assert!(of(&[MixOp::MmapWrite, MixOp::Write], true));
    assert!(of(&[MixOp::MmapWrite, MixOp::WriteRand], false));
    assert!(!of(&[MixOp::MmapRead, MixOp::Truncate], true));
    assert!(of(&[MixOp::Write, MixOp::Truncate], false));
    assert_eq!(
        with_ops(&[MixOp::MmapRead, MixOp::Truncate], |_| ()),
        Ok(())
    );
}
