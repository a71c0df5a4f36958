//! Filesets, groups and choices that lowering makes of a component's files.

use super::common;

use crate::tables::each_row;
use common::{SMALL, plan, refusal};
use plimsoll_plan::{
    Choice, Distribution, FilesetId, Letters, Mix, Overrides, Plan, Row, SourcePosition, Spots,
    Value,
};

/// A fileset's name, entries, leaf directories, percentage of preallocated files, and constant size.
type Set<'a> = (&'a str, u64, u64, u8, Option<u64>);

fn sets(plan: &Plan) -> Vec<Set<'_>> {
    let of = plan.filesets.iter();
    of.map(|f| {
        let size = f.size.constant();
        let name = f.name.as_str();
        (name, f.entries, f.leaf_dirs, f.prealloc_percent, size)
    })
    .collect()
}

/// The small workload with other operations, and more keys of its files.
fn with(mix: &str, files: &str) -> String {
    let text = SMALL.replacen("stat = 100", mix, 1);
    format!("{text}{files}\n")
}

fn mix(plan: &Plan) -> &Mix {
    plan.groups[0].program.mix().unwrap()
}

fn scaled(to: f64) -> impl FnOnce(&mut Overrides) {
    move |o| o.scale = Some(to)
}

#[test]
fn operations_bring_the_files_they_work_on() {
    let given = "turnover = 40\nempty = 20\nspare_directories = 10";
    let data = |dirs| ("looker-data", 200, dirs, 100, Some(4096));
    let turnover = ("looker-turnover", 80, 0, 50, Some(4096));
    let empty = ("looker-empty", 40, 0, 50, Some(0));
    for (op, expected) in [
        ("stat = 100", vec![data(20)]),
        ("mkdir = 100", vec![data(20)]),
        ("unlink2 = 100", vec![data(20), turnover]),
        ("create = 100", vec![data(20), empty]),
        (
            "copyfile = 50\nunlink = 50",
            vec![data(20), turnover, empty],
        ),
        ("stat = 100\nunlink = 0", vec![data(20)]),
    ] {
        let plan = plan(&with(op, given), |_| ());
        assert_eq!(sets(&plan), expected, "{op}");
        let files = &mix(&plan).files;
        let id = |name: &str| {
            let at = expected.iter().position(|set| set.0.ends_with(name))?;
            Some(FilesetId(at as u32))
        };
        assert_eq!(files.data, FilesetId(0));
        assert_eq!((files.turnover, files.empty), (id("turnover"), id("empty")));
    }
    let other = "turnover = 40\nturnover_size = \"1k\"";
    let plan = plan(&with("unlink2 = 100", other), |_| ());
    assert_eq!(sets(&plan)[1], ("looker-turnover", 80, 0, 50, Some(1024)));
}

#[test]
fn operations_are_refused_without_the_files_they_work_on() {
    for (op, what, key) in [
        ("write_file", "files", "turnover"),
        ("rename", "files", "turnover"),
        ("create", "files", "empty"),
        ("unlink", "files", "empty"),
        ("mkdir", "directories", "spare_directories"),
        ("rmdir", "directories", "spare_directories"),
    ] {
        let keys = ["turnover", "empty", "spare_directories"];
        let others = keys.into_iter().filter(|k| *k != key);
        let others: Vec<String> = others.map(|key| format!("{key} = 1")).collect();
        let text = with(&format!("{op} = 100"), &others.join("\n"));
        let message = &refusal(&text).findings()[0].message;
        let expected = format!("`{op}` works on {what} that come and go: `{key}` must be above 0");
        assert_eq!(*message, expected);
    }
}

#[test]
fn files_become_fewer_before_they_become_smaller() {
    // The component has two processes, each with `count` files of 4 KiB.
    for (count, scale, entries, size) in [
        (100, 1.0, 200, 4096),
        (100, 0.5, 100, 4096),
        (100, 0.04, 16, 2048),
        (5, 0.5, 10, 2048),
        (8, 0.25, 16, 1024),
        (16, 0.5, 16, 4096),
        (10, 0.4, 16, 2048),
        (1, 0.0001, 2, 1),
    ] {
        let text = SMALL.replacen("count = 100", &format!("count = {count}"), 1);
        let set = &plan(&text, scaled(scale)).filesets[0];
        let found = (set.entries, set.size.constant());
        assert_eq!(found, (entries, Some(size)), "{count} files at {scale}");
    }
}

#[test]
fn sizes_of_a_table_shrink_but_not_to_nothing() {
    let slots = r#"[{ size = 0, percent = 10 }, { size = 1, percent = 20 }, { min = "1k", max = "2k", percent = 70 }]"#;
    let text = SMALL.replacen("\"4k\"", slots, 1);
    let row = |percent, min, max| Row { percent, min, max };
    // At a scale of 0.04, 100 files become 8 instead of 4, so the sizes are halved.
    for (scale, factor) in [(1.0, 1.0), (0.5, 1.0), (0.04, 0.5)] {
        let plan = plan(&text, scaled(scale));
        let Value::Draw(id) = plan.filesets[0].size else {
            panic!("a table is drawn from")
        };
        let variable = plan.variable(id);
        assert_eq!(variable.name, "looker-data-size");
        let rows = vec![
            row(10.0, 0.0, 0.0),
            row(20.0, 1.0, 1.0),
            row(70.0, 1024.0 * factor, 2048.0 * factor),
        ];
        assert_eq!(variable.distribution, Distribution::Table { rows });
    }
}

#[test]
fn each_fileset_draws_from_a_table_of_its_own() {
    let slot = |max: u32| format!("[{{ min = 1, max = {max}, percent = 100 }}]");
    let keys = format!("turnover = 10\nturnover_size = {}", slot(70));
    let text = with("unlink2 = 100", &keys).replacen("\"4k\"", &slot(90), 1);
    let plan = plan(&text, |_| ());
    let drawn = plan.filesets.iter().map(|set| match set.size {
        Value::Draw(id) => plan.variable(id).name.clone(),
        Value::Const(_) => panic!("{}", set.name),
    });
    assert!(drawn.eq(["looker-data-size", "looker-turnover-size"]));
}

#[test]
fn directories_have_a_mean_number_of_entries() {
    for (directories, mean) in [
        (None, 100.0),
        (Some(4), 25.0),
        (Some(99), 2.0),
        (Some(0), 100.0),
    ] {
        let key = directories.map(|n| format!("directories = {n}"));
        let plan = plan(&with("stat = 100", &key.unwrap_or_default()), scaled(0.5));
        let width = plan.filesets[0].width;
        assert_eq!((width.mean, width.gamma_shape), (mean, None));
    }
}

#[test]
fn names_of_files_have_letters_around_their_numbers() {
    let of = |names| plan(&with("stat = 100", names), |_| ()).filesets[0].letters;
    assert_eq!(of(""), None);
    let letters = Letters {
        before: [1, 4],
        after: [0, 7],
    };
    assert_eq!(
        of("names = { before = [1, 4], after = [0, 7] }"),
        Some(letters)
    );
}

#[test]
fn everything_has_its_place_in_the_text() {
    let place = |line, column| {
        Some(SourcePosition {
            file: "test.toml".into(),
            line,
            column,
        })
    };
    let plan = plan(SMALL, |_| ());
    assert_eq!(plan.groups[0].location, place(11, 8));
    assert_eq!(plan.filesets[0].location, place(18, 1));
    for operation in &plan.operations {
        assert_eq!(operation.location, place(11, 8), "{}", operation.name);
    }
}

#[test]
fn a_worker_has_memory_for_its_largest_transfer() {
    let memory = |transfers: &str| {
        let text = SMALL.replacen(
            "[component.mix]",
            &format!("transfers = {{ {transfers} }}\n[component.mix]"),
            1,
        );
        plan(&text, |_| ()).groups[0].memory
    };
    assert_eq!(memory(""), 65536);
    assert_eq!(memory("read = 5000, write = 100"), 8192);
    assert_eq!(memory("read = 100, write = 4096"), 4096);
    assert_eq!(
        memory(
            "read = [{ min = 1, max = 9000, percent = 50 }, { size = 7, percent = 50 }], write = 1"
        ),
        12288
    );
}

#[test]
fn choices_are_those_of_the_workload() {
    let set = |keys: &str| mix(&plan(&with("stat = 100", keys), |_| ())).working_set;
    let plain = set("");
    assert_eq!(plain.millionths, 1_000_000);
    assert_eq!((plain.choice, plain.spots), (Choice::Uniform, None));
    assert_eq!(set("working_set = 12.5").millionths, 125_000);
    let many = with("stat = 100", "working_set = 0.0001");
    let many = plan(&many.replacen("count = 100", "count = 1000000", 1), |_| ());
    assert_eq!(mix(&many).working_set.millionths, 1);
    each_row(
        r#"
        choice = "geometric" => Geometric { percent: 100.0 }
        choice = "geometric"\ngeometric = 30 => Geometric { percent: 30.0 }
        shared = true\nchoice = "zipf" => Zipf { exponent: 1.0 }
        shared = true\nchoice = "zipf"\nexponent = 0.8 => Zipf { exponent: 0.8 }
        "#,
        |keys, choice| assert_eq!(format!("{:?}", set(keys).choice), choice, "{keys}"),
    );
    let spots = set("spots = { percent = 5, accesses = 7 }").spots;
    let expected = Spots {
        percent: 5.0,
        accesses: 7,
        multiplier: 1,
        affinity: 100.0,
        geometric: false,
    };
    assert_eq!(spots, Some(expected));
    let all =
        "spots = { percent = 5, accesses = 7, multiplier = 3, affinity = 60, geometric = true }";
    let expected = Spots {
        multiplier: 3,
        affinity: 60.0,
        geometric: true,
        ..expected
    };
    assert_eq!(set(all).spots, Some(expected));
}

#[test]
fn choices_that_have_no_effect_are_refused() {
    each_row(
        r#"
        geometric = 30 => this needs choice = "geometric"
        choice = "geometric"\nexponent = 1 => this needs choice = "zipf"
        working_set = 0.00004 => a working set must be above 0 and at most 100 percent, is 0.00004
        working_set = 101 => a working set must be above 0 and at most 100 percent, is 101
        "#,
        |keys, message| {
            let findings = refusal(&with("stat = 100", keys)).findings();
            assert_eq!((findings.len(), findings[0].message.as_str()), (1, message));
        },
    );
}
