//! Names, rows, sizes and fingerprints of patterns.

use super::*;

#[test]
fn a_plan_knows_its_pattern() {
    let expected = with_stages(vec![objects(Rounds::Count(1), &[CREATE])]);
    let mut plan = plan(expected.clone());
    assert_eq!(plan.pattern(), Some(&expected));
    assert!(!plan.uses_direct_io() && !plan.ends_by_itself());
    let direct = Pattern {
        direct: true,
        ..expected
    };
    plan.groups[0].program = Program::Pattern(Box::new(direct));
    assert!(plan.uses_direct_io());
}

#[test]
fn patterns_survive_their_json_form() {
    let mut full = with_stages(vec![
        objects(Rounds::Made, &[ObjectOp::Read]),
        transfers(|_| ()),
    ]);
    let json = serde_json::to_value(&full).unwrap();
    for omitted in [
        "objects",
        "positions",
        "content",
        "direct",
        "tree",
        "directory_name",
        "read_size",
    ] {
        assert!(json.get(omitted).is_none(), "{omitted} in {json}");
    }
    assert_eq!(serde_json::from_value::<Pattern>(json).unwrap(), full);
    full.objects = 3000;
    full.positions = vec![1, 2, 3, 4];
    full.content = Some(Content::Zero);
    full.direct = true;
    full.tree = tree_pattern().tree;
    full.directory_name = tree_pattern().directory_name;
    full.read_size = Some(10);
    full.stages[0].warm_up = true;
    full.stages[0].stonewall = stonewall(1500, true);
    let json = serde_json::to_value(&full).unwrap();
    assert_eq!(json["objects"], 3000);
    assert_eq!(json["stages"][0]["stonewall"]["after_s"], 1.5);
    assert_eq!(serde_json::from_value::<Pattern>(json).unwrap(), full);
}

#[test]
fn data_sets_of_a_tree_lie_in_each_other() {
    let pattern = tree_pattern();
    let path = |set: u32, object: Option<u64>| {
        let mut out = Vec::new();
        match object {
            None => pattern.push_set(1, set, &mut out),
            Some(object) => pattern.push_directory(1, set, object, &mut out),
        }
        String::from_utf8(out).unwrap()
    };
    assert_eq!(path(0, None), "md/tree.0");
    assert_eq!(path(5, None), "md/tree.0/tree.2/tree.5");
    assert_eq!(path(4, Some(3)), "md/tree.0/tree.1/tree.4/dir.1.43");
    assert_eq!(pattern.sets_with_objects(), 3..7);
    let tree = pattern.tree.unwrap();
    assert_eq!(tree.depth_first(7, false), [0, 1, 3, 4, 2, 5, 6]);
    assert_eq!(tree.depth_first(7, true), [3, 4, 1, 5, 6, 2, 0]);
    let chain = SetTree { branch: 1, ..tree };
    assert_eq!(chain.depth_first(3, true), [2, 1, 0]);
}

#[test]
fn objects_lie_in_the_data_sets_that_the_shift_says() {
    let pattern = Pattern {
        set_shift: 3,
        ..pattern()
    };
    let mut out = Vec::new();
    pattern.push_object(2, 1, 5, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "md/1_1/file-5");
    assert_ne!(pattern.fingerprint(), super::pattern().fingerprint());
}

#[test]
fn paths_have_no_empty_components() {
    let paths = |root: &str, set: &str, object: &str| {
        let pattern = Pattern {
            root: RelPath::new(root).unwrap(),
            set_name: template(set),
            object_name: template(object),
            ..pattern()
        };
        let mut out = [Vec::new(), Vec::new()];
        pattern.push_set(2, 1, &mut out[0]);
        pattern.push_object(2, 1, 34, &mut out[1]);
        out.map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let set_and_object = paths("a/b", "{rank}_{set}", "file-{object}");
    assert_eq!(set_and_object, ["a/b/2_1", "a/b/2_1/file-34"]);
    assert_eq!(paths("", "{set}", "{rank:3}.{object}x"), ["1", "1/002.34x"]);
    assert_eq!(paths("a", "", "file"), ["a", "a/file"]);
    assert_eq!(paths("", "", "file"), ["", "file"]);
}

#[test]
fn templates_that_cannot_be_read_name_what_is_wrong() {
    for (text, expected) in [
        ("x{rank", "`x{rank`: a brace is not closed"),
        ("{rank}{set", "`{rank}{set`: a brace is not closed"),
        ("{who}", "`{who}`: expected rank, set or object, not `who`"),
        (
            "{set:3}",
            "`{set:3}`: expected rank, set or object, not `set:3`",
        ),
        ("{rank:21}", "`{rank:21}`: `21` is not a number of digits"),
        ("{rank:x}", "`{rank:x}`: `x` is not a number of digits"),
    ] {
        assert_eq!(NameTemplate::parse(text), Err(expected.into()));
    }
}

#[test]
fn templates_match_names_of_as_many_digits_as_they_make() {
    let all = template("a{rank:3}b{set}{object}.c");
    assert_eq!(all.to_string(), "a{rank:3}b{set}{object}.c");
    for name in ["a001b12.c", "a1234b123.c"] {
        assert!(all.matches(name.as_bytes()), "{name}");
    }
    // Names that do not fit the template: a rank of two digits, one digit for data set and object together, surplus
    // text, no extension.
    for name in [
        "a01b12.c",
        "a001b1.c",
        "a001b12.cd",
        "xa001b12.c",
        "a001b12",
    ] {
        assert!(!all.matches(name.as_bytes()), "{name}");
    }
    assert!(template("{rank:0}").matches(b"7") && !template("{rank:0}").matches(b""));
    assert_eq!(template("{rank:0}").to_string(), "{rank}");
    let mut name = Vec::new();
    template("{rank:20}-{object}").push(7, 0, u64::MAX, &mut name);
    let expected = format!("{:020}-{}", 7, u64::MAX);
    assert_eq!(String::from_utf8(name).unwrap(), expected);
}

#[test]
fn objects_are_shared_if_no_name_has_the_rank() {
    let shares = |set: &str, object: &str| {
        let pattern = Pattern {
            set_name: template(set),
            object_name: template(object),
            ..pattern()
        };
        pattern.shares_objects()
    };
    assert!(shares("tree", "file-{object}") && shares("", "{set}"));
    assert!(!shares("{rank}", "file") && !shares("tree", "{rank}.{object}"));
    assert!(template("").is_empty() && !template("x").is_empty());
}

#[test]
fn rows_are_those_of_every_part_of_a_stage() {
    let mut work = ObjectLoop::new(Rounds::Made, vec![step(CREATE), step(ObjectOp::Read)]);
    work.make_sets = Some(row("mkdir"));
    work.remove_sets = Some(row("rmdir"));
    let pattern = with_stages(vec![
        stage("objects", StageWork::Objects(work)),
        transfers(|t| t.sync = Some(row("fsync"))),
    ]);
    let mut rows = Vec::new();
    pattern.for_each_row(&mut |id| rows.push(id));
    rows.sort();
    let names: Vec<&str> = rows.iter().map(|id| ROWS[id.0 as usize].0).collect();
    let expected = [
        "mkdir", "create", "stat", "read", "delete", "rmdir", "transfer", "fsync",
    ];
    assert_eq!(names, expected);
}

#[test]
fn sizes_of_transfers_are_different_and_in_order() {
    let pattern = with_stages(vec![
        transfers(|t| t.size = 5000),
        objects(Rounds::Count(1), &[CREATE]),
        transfers(|t| t.size = 47),
        objects(Rounds::Made, &[ObjectOp::Read]),
    ]);
    assert_eq!(pattern.transfer_sizes(), [47, 3901, 5000]);
}

/// FNV-1a hash of a text, computed by its definition.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn a_fingerprint_is_that_of_names_and_contents() {
    let same = with_stages(vec![objects(Rounds::Count(1), &[CREATE])]);
    let expected = fnv1a("md {rank}_{set} file-{object} 4 3 3901 false");
    assert_eq!(same.fingerprint(), expected);
    let other = Pattern {
        position: 7,
        ..pattern()
    };
    assert_eq!(other.fingerprint(), expected);
    let with_content = Pattern {
        content: Some(Content::Zero),
        verify: true,
        ..pattern()
    };
    let expected = fnv1a("md {rank}_{set} file-{object} 4 3 3901 true zero");
    assert_eq!(with_content.fingerprint(), expected);
}

/// A shift with numbers near the limits of 64 bits does not overflow: the rank equals the result of exact arithmetic.
#[test]
fn shifts_of_many_ranks_are_exact() {
    let ranks = 1u32 << 31;
    let numbers = [
        i64::MIN,
        i64::MIN + 1,
        -(1 << 31) - 1,
        -1,
        0,
        1,
        1 << 31,
        i64::MAX,
    ];
    for constant in numbers {
        for per_set in numbers {
            for (rank, set) in [
                (0, 0),
                (ranks - 1, u32::MAX),
                (5, ranks - 2),
                (7, ranks - 1),
            ] {
                let shift = RankShift { constant, per_set };
                let by = i128::from(constant) + i128::from(per_set) * (i128::from(set) + 1);
                let expected = (i128::from(rank) + by).rem_euclid(i128::from(ranks));
                let found = shift.of(rank, set, ranks);
                assert_eq!(i128::from(found), expected, "{shift:?} of {rank}, {set}");
            }
        }
    }
}
