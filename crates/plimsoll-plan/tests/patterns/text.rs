//! Patterns in a printed Plan.

use super::*;

/// Lines of a printed Plan about its workers, without indentation.
fn lines(pattern: Pattern) -> Vec<String> {
    let text = plan(pattern).to_string();
    let lines = text.lines().skip_while(|l| !l.starts_with("workers"));
    let program = lines.skip(2).take_while(|l| !l.is_empty());
    program.map(|l| l.trim_start().to_owned()).collect()
}

#[test]
fn a_pattern_is_printed_with_its_names_and_options() {
    assert_eq!(
        lines(pattern()),
        [
            "4 ranks with 3 sets each; objects of 3.81 KiB named md/{rank}_{set}/file-{object}, \
             first 100",
            "md is made; everything is removed at the end",
        ]
    );
    let other = Pattern {
        root_is: RootHandling::Kept,
        leaves_objects: true,
        set_name: template(""),
        ranks: 1,
        sets: 1,
        positions: vec![12],
        content: Some(Content::Zero),
        verify: true,
        direct: true,
        hold_memory: Some(2 << 30),
        ..pattern()
    };
    assert_eq!(
        lines(other),
        [
            "1 rank with 1 set each; objects of 3.81 KiB named md/file-{object}, first 12 to 12 by \
             rank",
            "md is taken as an earlier run left it; objects stay",
            "write zeros",
            "what is read is compared with what was written",
            "files are opened past the page cache",
            "memory is taken until 2 GiB are free",
        ]
    );
    let apart = Pattern {
        positions: vec![100, 103, 90, 100],
        ..pattern()
    };
    assert!(lines(apart)[0].ends_with(", first 90 to 103 by rank"));
}

fn shown(stages: Vec<Stage>) -> Vec<String> {
    lines(with_stages(stages)).split_off(2)
}

#[test]
fn stages_of_objects_are_printed_with_their_steps() {
    let mut work = ObjectLoop::new(
        Rounds::Count(3000),
        vec![step(ObjectOp::Create { sync: true })],
    );
    work.make_sets = Some(row("mkdir"));
    work.order = ObjectOrder::Sets;
    let mut first = stage("precreate", StageWork::Objects(work));
    first.on_error = OnError::Stop;
    let ops = [ObjectOp::Stat, ObjectOp::Read, ObjectOp::Delete, CREATE];
    let mut work = ObjectLoop::new(Rounds::Count(1), ops.map(step).into());
    let shift = |constant, per_set| RankShift { constant, per_set };
    work.steps[1].owner = shift(0, -1);
    work.steps[2].owner = shift(2, 1);
    work.steps[3].owner = shift(-3, 0);
    work.steps[3].offset = 3000;
    work.advances = StageProgress::Position;
    let second = stage("benchmark", StageWork::Objects(work));
    let left = Rounds::Left {
        window: 3000,
        deleted_by: shift(0, 0),
        made_by: shift(0, 0),
    };
    let mut work = ObjectLoop::new(left, vec![step(ObjectOp::Delete)]);
    work.remove_sets = Some(row("rmdir"));
    let third = stage("cleanup", StageWork::Objects(work));
    assert_eq!(
        shown(vec![first, second, third]),
        [
            "precreate: mkdir for each set; 3 000 rounds, set by set: create (make and flush, own); \
             stops at the first error",
            "benchmark: 1 round, over all sets: stat (stat, own), read (read, rank -1·(set+1)), \
             delete (delete, rank +2 +1·(set+1)), create (make, rank -3 +3 000); the position moves \
             on",
            "cleanup: what is left, 3 000 per set, over all sets: delete (delete, own); rmdir for \
             each set",
        ]
    );
}

#[test]
fn stages_without_steps_make_or_remove_sets() {
    let of = |make: bool, remove: bool| {
        let mut work = ObjectLoop::new(Rounds::Made, vec![]);
        work.make_sets = make.then(|| row("mkdir"));
        work.remove_sets = remove.then(|| row("rmdir"));
        shown(vec![stage("sets", StageWork::Objects(work))])
    };
    assert_eq!(of(true, false), ["sets: mkdir for each set"]);
    assert_eq!(of(false, true), ["sets: rmdir for each set"]);
    assert_eq!(
        of(true, true),
        ["sets: mkdir for each set; rmdir for each set"]
    );
}

#[test]
fn stages_of_transfers_are_printed_with_their_order() {
    let shared = transfers(|t| {
        t.strided = true;
        t.rounds = Rounds::Count(1000);
        t.size = 47_008;
        t.sync = Some(row("fsync"));
    });
    let own = transfers(|t| {
        t.write = false;
        t.rounds = Rounds::Made;
        t.owner.constant = 1;
    });
    assert_eq!(
        shown(vec![shared, own]),
        [
            "transfers: 1 000 writes of 45.9 KiB (own), strided over one shared object; then fsync",
            "transfers: as many as were made: reads of 0.98 KiB (rank +1), one after the other",
        ]
    );
}

#[test]
fn stages_that_differ_only_in_number_and_waits_share_a_line() {
    let read = |iteration, waiting_factor| Stage {
        iteration,
        waiting_factor,
        ..objects(Rounds::Made, &[ObjectOp::Read])
    };
    let what = "every object that was made, over all sets: read (read, own)";
    let of = |stages: &[(u32, f64)]| {
        let lines = shown(stages.iter().map(|(n, factor)| read(*n, *factor)).collect());
        let rest = |line: &String| line.replacen(what, "…", 1);
        lines.iter().map(rest).collect::<Vec<_>>()
    };
    assert_eq!(of(&[(0, 0.0)]), ["objects: …"]);
    assert_eq!(
        of(&[(3, 2.5)]),
        ["objects 4: …; waits 2.5 times each operation"]
    );
    assert_eq!(of(&[(0, 0.0), (1, 0.0)]), ["objects 1 to 2: …"]);
    assert_eq!(
        of(&[(0, 2.0), (1, 2.0), (2, 2.0)]),
        ["objects 1 to 3: …; waits 2 times each operation"]
    );
    assert_eq!(
        of(&[(4, 2.0), (5, 0.5), (6, 0.0), (7, 2.0)]),
        ["objects 5 to 8: …; waits 0, 0.5, 2 times each operation, in turn"]
    );
    let mut others = vec![read(0, 0.0), read(1, 0.0), read(2, 0.0)];
    others[1].warm_up = true;
    assert_eq!(
        shown(others),
        [
            format!("objects: {what}"),
            format!("objects 2: {what}; not measured"),
            format!("objects 3: {what}"),
        ]
    );
}

#[test]
fn stages_are_printed_with_their_limits() {
    let read = || objects(Rounds::Made, &[ObjectOp::Read]);
    let mut stages = vec![read(), read()];
    stages[0].stonewall = stonewall(60_000, true);
    stages[0].squeeze_memory = Some(1 << 30);
    stages[1].stonewall = stonewall(500, false);
    stages[1].warm_up = true;
    let lines = shown(stages);
    let limits = |line: &str| line.split_once("; ").map(|(_, rest)| rest.to_owned());
    assert_eq!(
        limits(&lines[0]).as_deref(),
        Some(
            "stonewall after 1m, then all do as many rounds as the fastest; before it memory is \
             taken until 1 GiB are free"
        )
    );
    assert_eq!(
        limits(&lines[1]).as_deref(),
        Some("stonewall after 500ms; not measured")
    );
}

/// Lines of a printed Plan about the phases of its run.
fn run(plan: &Plan) -> Vec<String> {
    let text = plan.to_string();
    let lines = text.lines().skip_while(|l| *l != "run").skip(1);
    lines.map(|l| l.trim_start().to_owned()).collect()
}

#[test]
fn a_script_of_all_stages_is_one_line() {
    let read = || objects(Rounds::Made, &[ObjectOp::Read]);
    let mut plan = plan(with_stages(vec![read(), read()]));
    let two = "2 stages: all ranks begin each one together, and it is measured until the last has \
               ended";
    assert_eq!(run(&plan), [two]);
    plan.options.drop_caches = Cold::Files;
    plan.options.keep = true;
    let options = "options: drop the files from the page cache before each phase; keep the files";
    assert_eq!(run(&plan), [two, options]);
    plan.options = Default::default();
    let phases = |from: usize, stage: &str| {
        let phases = [
            stage,
            "begin to measure",
            "run until done",
            "end of measurement",
            "stop the workers",
        ];
        let number = |(i, phase): (usize, &str)| format!("{}. {phase}", from + i);
        phases
            .into_iter()
            .enumerate()
            .map(number)
            .collect::<Vec<_>>()
    };
    let end = "a worker that finds no file to work on makes it invalid".to_owned();
    // If the script lacks the last stage, or has the stages in another order, all phases of the script are printed.
    let all = plan.script.clone();
    plan.script.truncate(5);
    let first = phases(1, "start objects");
    assert_eq!(run(&plan), [first.clone(), vec![end.clone()]].concat());
    plan.script = [&all[5..], &all[..5]].concat();
    let both = [first, phases(6, "start objects"), vec![end]].concat();
    assert_eq!(run(&plan), both);
    plan.script = [all.clone(), all].concat();
    assert_eq!(run(&plan).len(), 21);
}

#[test]
fn trees_and_stages_on_directories_are_printed() {
    let stage = |op: ObjectOp, order: ObjectOrder| {
        let mut stage = objects(Rounds::Count(10), &[op]);
        if let StageWork::Objects(work) = &mut stage.work {
            work.order = order;
        }
        stage
    };
    let text = plan(Pattern {
        read_size: Some(100),
        set_shift: 2,
        stages: vec![
            stage(ObjectOp::MakeDir, ObjectOrder::DepthFirst),
            stage(ObjectOp::StatDir, ObjectOrder::Shuffled { seed: 5 }),
            stage(ObjectOp::RenameDir, ObjectOrder::Sets),
        ],
        ..tree_pattern()
    })
    .to_string();
    for line in [
        "directories named dir.{rank}.{object}",
        "sets form a tree with 2 children each; 10 objects in each set from set 3 on",
        "reads transfer 100 B of an object",
        "objects lie in the sets of rank +2",
        "objects: 10 rounds, set by set, depth first: mkdir (make directory, own)",
        "objects: 10 rounds, shuffled by seed 5: stat (stat directory, own)",
        "objects: 10 rounds, set by set: stat (rename directory, own)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn orders_of_transfers_and_searches_are_printed() {
    let mut random = transfer_loop(Rounds::Count(9), 4096);
    random.write = false;
    random.block = 3;
    random.order = TransferOrder::Random { seed: 11 };
    random.owner.constant = 2;
    random.barriers = true;
    let mut shuffled = transfer_loop(Rounds::Count(9), 4096);
    shuffled.order = TransferOrder::Shuffled { seed: 5 };
    shuffled.reorder = Some(RankOrder::Shuffled { seed: 6 });
    shuffled.strided = true;
    let mut chosen = transfer_loop(Rounds::Made, 4096);
    chosen.reorder = Some(RankOrder::Random { seed: 7 });
    let find = TreeSearch {
        top: RelPath::default(),
        name_contains: "01".into(),
        size: Some(3901),
        changed_since: Some(RelPath::new("stamp").unwrap()),
        list: row("read"),
        stat: row("stat"),
    };
    let names = TreeSearch {
        top: RelPath::new("md").unwrap(),
        name_contains: String::new(),
        size: None,
        changed_since: None,
        ..find.clone()
    };
    let transfers = [random, shuffled, chosen].map(|t| stage("io", StageWork::Transfers(t)));
    let searches = [find, names].map(|s| stage("find", StageWork::Search(s)));
    assert_eq!(
        shown(transfers.into_iter().chain(searches).collect()),
        [
            "io: 9 reads of 4 KiB (rank +2), one after the other in blocks of 3, blocks at random, seed 11; \
             ranks meet after the open and before the close",
            "io: 9 writes of 4 KiB (ranks shuffled, seed 6), strided over one shared object, shuffled by seed 5",
            "io: as many as were made: writes of 4 KiB (random rank, seed 7), one after the other",
            "find: all ranks together: read of each directory of the work directory; stat of each file that \
             matches; names with `01`; files of 3.81 KiB; not older than stamp",
            "find: all ranks together: read of each directory of md",
        ]
    );
}
