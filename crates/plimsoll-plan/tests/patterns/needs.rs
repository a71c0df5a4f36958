//! Space and number of files that patterns need on a file system.

use super::*;

fn needs(stages: Vec<Stage>) -> PatternNeeds {
    with_stages(stages).needs(4096)
}

/// Needs of a pattern with twelve data sets whose numbers of objects and bytes are known before the run.
fn known(objects: u64, bytes: u128) -> PatternNeeds {
    PatternNeeds {
        objects,
        sets: 12,
        bytes,
        open_ended: false,
    }
}

#[test]
fn objects_need_whole_blocks_until_they_are_deleted() {
    use ObjectOp::{Delete, Read, Stat};
    // The pattern has four ranks with three data sets each, and every object takes one block.
    let of = |stages: &[(Rounds, &[ObjectOp])]| {
        needs(stages.iter().map(|(r, ops)| objects(*r, ops)).collect())
    };
    let count = Rounds::Count;
    let files = |n: u64| known(n, u128::from(n) * 4096);
    let made = (count(10), &[CREATE][..]);
    assert_eq!(of(&[]), files(0));
    assert_eq!(of(&[made]), files(120));
    assert_eq!(of(&[made, (count(9), &[Stat, Read])]), files(120));
    assert_eq!(of(&[made, (count(9), &[CREATE, Delete])]), files(120));
    assert_eq!(of(&[made, (count(3), &[CREATE, Stat, CREATE])]), files(192));
    assert_eq!(
        of(&[made, (count(4), &[Delete]), (count(5), &[CREATE])]),
        files(132)
    );
    assert_eq!(
        of(&[made, (count(4), &[Delete]), (count(1), &[CREATE])]),
        files(120)
    );
    // A stage that deletes more objects than exist leaves no objects, not a negative number.
    assert_eq!(
        of(&[made, (count(99), &[Delete]), (count(11), &[CREATE])]),
        files(132)
    );
    assert_eq!(
        of(&[made, (Rounds::Made, &[Delete]), (count(11), &[CREATE])]),
        files(132)
    );
    let left = Rounds::Left {
        window: 5,
        deleted_by: RankShift::default(),
        made_by: RankShift::default(),
    };
    assert_eq!(
        of(&[made, (left, &[Delete]), (count(1), &[CREATE])]),
        files(120)
    );
    assert_eq!(
        of(&[made, (Rounds::Made, &[Read]), (count(1), &[CREATE])]),
        files(132)
    );
}

#[test]
fn transfers_need_the_files_and_bytes_that_they_write() {
    // Four ranks transfer five times 1000 bytes each: 20 000 bytes are five blocks of 4096 bytes.
    assert_eq!(needs(vec![transfers(|_| ())]), known(4, 5 * 4096));
    assert_eq!(
        needs(vec![transfers(|t| t.strided = true)]),
        known(1, 5 * 4096)
    );
    assert_eq!(needs(vec![transfers(|t| t.write = false)]), known(0, 0));
    let all = vec![
        transfers(|_| ()),
        transfers(|t| t.strided = true),
        objects(Rounds::Count(1), &[CREATE]),
    ];
    assert_eq!(needs(all), known(4 + 1 + 12, (5 + 5 + 12) * 4096));
    // A repetition writes the same files.
    let again = vec![
        transfers(|_| ()),
        transfers(|t| t.rounds = Rounds::Count(1)),
    ];
    assert_eq!(needs(again), known(4, 5 * 4096));
}

#[test]
fn a_stonewall_makes_the_needs_of_what_adds_open_ended() {
    let limited = |mut stage: Stage| {
        stage.stonewall = stonewall(1000, false);
        needs(vec![stage, objects(Rounds::Count(1), &[CREATE])])
    };
    let known = known(12, 12 * 4096);
    let open_ended = PatternNeeds {
        open_ended: true,
        ..known
    };
    let count = Rounds::Count(100);
    assert_eq!(limited(objects(count, &[CREATE])), open_ended);
    assert_eq!(limited(objects(count, &[ObjectOp::Read])), known);
    assert_eq!(limited(objects(Rounds::Made, &[ObjectOp::Delete])), known);
    assert_eq!(limited(transfers(|_| ())), open_ended);
    assert_eq!(limited(transfers(|t| t.write = false)), known);
    let unknown = needs(vec![transfers(|t| t.rounds = Rounds::Made)]);
    assert!(unknown.open_ended && unknown.objects == 0);
}

#[test]
fn sets_are_made_once_for_each_name() {
    let sets = |change: fn(&mut Pattern)| {
        let mut pattern = pattern();
        change(&mut pattern);
        pattern.needs(4096).sets
    };
    assert_eq!(sets(|_| ()), 12);
    assert_eq!(sets(|p| p.set_name = template("tree.{set}")), 3);
    assert_eq!(sets(|p| p.set_name = template("")), 0);
    assert_eq!(sets(|p| p.root_is = RootHandling::Kept), 0);
}

#[test]
fn needs_do_not_wrap_and_blocks_have_a_byte_at_least() {
    let pattern = with_stages(vec![objects(Rounds::Count(1), &[CREATE])]);
    assert_eq!(pattern.needs(0).bytes, 12 * 3901);
    assert_eq!(pattern.needs(1).bytes, 12 * 3901);
    let vast = |rounds| Pattern {
        object_size: u64::MAX,
        ..with_stages(vec![objects(Rounds::Count(rounds), &[CREATE])])
    };
    assert_eq!(vast(1).needs(4096).bytes, 12 << u64::BITS);
    let most = vast(u64::MAX).needs(4096);
    assert_eq!((most.objects, most.bytes), (u64::MAX, u128::MAX));
}

#[test]
fn directories_need_files_of_the_file_system_and_no_blocks() {
    let of = |ops: &[&[ObjectOp]]| {
        let stages = ops.iter().map(|ops| objects(Rounds::Count(10), ops));
        let pattern = Pattern {
            stages: stages.collect(),
            ..tree_pattern()
        };
        let needs = pattern.needs(4096);
        (needs.objects, needs.sets, needs.bytes)
    };
    // Four ranks share 7 data sets, of which 4 have objects.
    let (make, remove) = (ObjectOp::MakeDir, ObjectOp::RemoveDir);
    assert_eq!(of(&[&[make]]), (160, 7, 0));
    assert_eq!(of(&[&[make], &[CREATE]]), (320, 7, 160 * 4096));
    assert_eq!(of(&[&[make], &[remove], &[CREATE]]), (160, 7, 160 * 4096));
}
