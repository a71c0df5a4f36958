//! Custom workload files of netmist: every value is used or refused by name.
#![allow(missing_docs)]

use plimsoll_mix::{Context, lower, netmist, parse, to_toml};
use plimsoll_plan::{
    Choice, Content, Letters, Mix, MixOp, Overrides, Plan, SizeSlot, SourceKind, Value,
};
use proptest::prelude::*;

const SAMPLE: &str = include_str!("samples/custom.txt");

fn plan_of(text: &str) -> Result<Plan, String> {
    let workload = netmist::parse(text, "custom.txt").map_err(|e| e.to_string())?;
    let overrides = Overrides {
        dir: Some("/work".into()),
        ..Overrides::default()
    };
    let context = Context {
        kind: SourceKind::File,
        temp_dir: "/tmp/fresh".into(),
    };
    lower(&workload, &overrides, &context).map_err(|e| e.to_string())
}

fn mix(plan: &Plan, at: usize) -> &Mix {
    plan.groups[at].program.mix().unwrap()
}

/// The sample with the `nth` line of this key given another value.
fn with(key: &str, nth: usize, value: &str) -> String {
    let mut seen = 0;
    let mut found = false;
    let lines = SAMPLE.lines().map(|line| {
        let is = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let here = is.rsplit_once(' ').is_some_and(|(k, _)| k == key);
        seen += usize::from(here);
        if here && seen == nth + 1 {
            found = true;
            format!("{key} {value}\n")
        } else {
            format!("{line}\n")
        }
    });
    let text: String = lines.collect();
    assert!(found, "{key} is not there {} times", nth + 1);
    text
}

/// `line message` of each error.
fn errors(text: &str) -> Vec<String> {
    let refused = netmist::parse(text, "custom.txt").expect_err("it is refused");
    let show = |f: plimsoll_diagnostics::Finding| format!("{} {}", f.line, f.message);
    refused.findings().into_iter().map(show).collect()
}

#[test]
fn it_is_known_by_its_first_line() {
    assert!(netmist::is_custom_workload(SAMPLE));
    assert!(netmist::is_custom_workload("# x\n\n  workload   NAME 0\n"));
    assert!(!netmist::is_custom_workload("define fileset name=x\n"));
    assert!(!netmist::is_custom_workload(""));
}

#[test]
fn every_value_of_the_sample_is_in_the_plan() {
    let plan = plan_of(SAMPLE).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.source.text, SAMPLE);
    assert!(
        plan.title.contains("release 3, file system type 0"),
        "{}",
        plan.title
    );
    let names: Vec<&str> = plan.groups.iter().map(|g| g.process.as_str()).collect();
    assert_eq!(names, ["TABLE", "OFFICE"]);
    let table = mix(&plan, 0);
    let ops: Vec<(MixOp, f64)> = table.table.iter().map(|r| (r.op, r.percent)).collect();
    assert_eq!(
        ops,
        [
            (MixOp::Read, 5.0),
            (MixOp::ReadRand, 70.0),
            (MixOp::WriteRand, 25.0)
        ]
    );
    let slot = |size, percent| SizeSlot {
        min: size,
        max: size,
        percent,
    };
    assert_eq!(table.reads.0, [slot(8192, 99.0), slot(1 << 20, 1.0)]);
    assert_eq!(table.writes.0, [slot(8192, 90.0), slot(16384, 10.0)]);
    let flags = table.flags;
    assert_eq!(
        (
            flags.direct_percent,
            flags.osync_percent,
            flags.commit_percent,
            flags.align
        ),
        (50.0, 25.0, 5.0, 8192)
    );
    assert!(flags.keep_open && table.files.shared);
    assert_eq!(
        table.working_set.choice,
        Choice::Geometric { percent: 80.0 }
    );
    let spots = table.working_set.spots.unwrap();
    assert_eq!((spots.percent, spots.affinity), (10.0, 60.0));
    assert_eq!(
        (spots.accesses, spots.multiplier, spots.geometric),
        (20, 4, true)
    );
    assert_eq!(
        plan.options.content,
        Content::Blocks {
            compressible_percent: 50.0,
            dedupable_percent: 20.0,
            block: 8192,
            groups: 16
        }
    );
    let data = plan.fileset(table.files.data);
    let letters = Letters {
        before: [1, 8],
        after: [1, 8],
    };
    assert_eq!(data.letters, Some(letters));
    let Value::Draw(size) = data.size else {
        panic!("{:?}", data.size)
    };
    assert_eq!(
        plan.variable(size).distribution.mean(),
        2.5 * f64::from(1 << 20)
    );
    let office = mix(&plan, 1);
    assert_eq!(office.table.len(), 13);
    assert!(!office.flags.keep_open && !office.files.shared);
    assert_eq!(office.working_set.choice, Choice::Uniform);
    assert_eq!(
        office.writes.0[0],
        SizeSlot {
            min: 16385,
            max: 32767,
            percent: 50.0
        }
    );
}

#[test]
fn operations_are_known_by_their_place() {
    let renamed = SAMPLE.replace("Percent Random_read ", "Percent Seek_and_read ");
    assert_eq!(
        plan_of(&renamed),
        plan_of(SAMPLE).map(|mut p| {
            p.source.text = renamed.clone();
            p
        })
    );
}

#[test]
fn what_is_converted_is_the_same_workload() {
    let workload = netmist::parse(SAMPLE, "custom.txt").unwrap();
    let toml = to_toml(workload.file()).unwrap();
    let back = parse(&toml, "custom.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(back.file(), workload.file());
    assert_eq!(to_toml(back.file()).unwrap(), toml);
    insta::assert_snapshot!(toml);
}

#[test]
fn what_is_not_done_is_refused_by_name() {
    for (line, says) in [
        (
            "Percent Custom1 5",
            "`Custom1` is an operation of a user's own program",
        ),
        (
            "Background 1",
            "`Background` is 1: there are no background processes",
        ),
        ("Rand dist behavior 2", "`Rand dist behavior` is 2"),
        (
            "Cipher behavior 1",
            "`Cipher behavior` is 1: nothing is encrypted",
        ),
        ("Notification percent 3", "`Notification percent` is 3"),
        ("Init rate throttle 100", "`Init rate throttle` is 100"),
        ("Init read flag 1", "`Init read flag` is 1"),
        ("Extra dir levels 2", "`Extra dir levels` is 2"),
        (
            "Chaff count 7",
            "`Chaff count` is 7: no further files are made",
        ),
        ("Shared buckets 1", "`Shared buckets` is 1"),
        ("Pattern version 2", "`Pattern version` is 2"),
        ("Percent dedup_within 50", "`Percent dedup_within` is 50"),
        ("Percent dedup_across 40", "`Percent dedup_across` is 40"),
        ("Dedup gran rep limit 9", "`Dedup gran rep limit` is 9"),
        ("Dedupe group count 100", "`Dedupe group count` is 100"),
        ("Dedup Granule size 4096", "must be the same"),
        ("Use file size dist 0", "`Use file size dist` is 0"),
        ("Uniform size dist 0", "`Uniform size dist` is 0"),
        (
            "Spot shape 2",
            "`Spot shape` must be a whole number from 0 to 1",
        ),
        (
            "Sharemode 3",
            "`Sharemode` must be a whole number from 0 to 1",
        ),
        (
            "Percent direct 101",
            "`Percent direct` must be 0 to 100, is 101",
        ),
        (
            "Percent osync -1",
            "`Percent osync` must be 0 to 100, is -1",
        ),
        (
            "Percent write commit x",
            "`Percent write commit` must be a number, is `x`",
        ),
        ("Align -8", "`Align` must be a whole number"),
        (
            "Min_pre_name_length 9",
            "`Min_pre_name_length` is above `Max_pre_name_length`",
        ),
        (
            "Max_post_name_length 200",
            "`Max_post_name_length` must be a whole number from 0 to 120",
        ),
        ("Percent Random_read 60", "must sum to 100, sum to 90"),
        ("Percent affinity 0", "no transfer goes to a spot"),
        ("Percent per_spot 0", "there is no spot to go to"),
        ("Min acc_per_spot 0", "a spot gets at least one transfer"),
        ("Acc mult_spot 0", "a spot gets at least one transfer"),
        (
            "Read elem 6 percent 90",
            "the table of `Read elem` must sum to 100 percent, sums to 91",
        ),
        (
            "Write elem 6 xfer min size 9000",
            "has a slot whose min (9000) is above its max (8192)",
        ),
        (
            "File size elem 0 percent 50",
            "the table of `File size elem`",
        ),
    ] {
        let (key, value) = line.rsplit_once(' ').unwrap();
        let text = with(key, 0, value);
        let all = errors(&text);
        assert!(all.iter().any(|e| e.contains(says)), "{line}: {all:?}");
        // The error is at the line that was changed, unless it is one of a whole table.
        let number = text.lines().position(|l| l == line).unwrap() + 1;
        let at_line = all.iter().any(|e| e.starts_with(&format!("{number} ")));
        let of_many = says.contains("sum")
            || says.contains("table")
            || says.contains("slot")
            || says.contains("same");
        assert!(at_line || of_many, "{key}: line {number}, {all:?}");
    }
}

#[test]
fn contents_of_all_workloads_must_be_the_same() {
    let all = errors(&with("Percent compress", 1, "10"));
    assert!(
        all[0].contains("must be the same for all workloads"),
        "{all:?}"
    );
}

#[test]
fn lines_out_of_order_are_named() {
    let lines: Vec<&str> = SAMPLE.lines().collect();
    let at = lines
        .iter()
        .position(|l| l.starts_with("Percent osync"))
        .unwrap();
    let mut missing = lines.clone();
    missing.remove(at);
    let refused = netmist::parse(&missing.join("\n"), "custom.txt")
        .err()
        .unwrap();
    insta::assert_snapshot!(refused.render(false, 100));
    let mut misspelt = lines.clone();
    misspelt[at] = "Percent osnyc 5";
    let finding = netmist::parse(&misspelt.join("\n"), "x")
        .err()
        .unwrap()
        .findings()[0]
        .clone();
    assert_eq!(finding.line as usize, at + 1);
    assert_eq!(
        finding.help.as_deref(),
        Some("did you mean `Percent osync`?")
    );
}

#[test]
fn a_value_that_is_not_a_number_is_shown_with_its_key() {
    // Operations have their names in their order; the first line of each key is that of the first workload.
    let operations = [
        "Read",
        "Read_file",
        "Mmap_read",
        "Random_read",
        "Write",
        "Write_file",
        "Mmap_write",
        "Random_write",
        "Read_modify_write",
        "Mkdir",
        "Rmdir",
        "Unlink",
        "Unlink2",
        "Create",
        "Append",
        "Lock",
        "Access",
        "Stat",
        "Neg_stat",
        "Chmod",
        "Readdir",
        "Copyfile",
        "Rename",
        "Statfs",
        "Pathconf",
        "Trunc",
        "Custom1",
        "Custom2",
    ]
    .map(|name| format!("Percent {name}"));
    let others = [
        "Read elem 0 xfer min size",
        "Write elem 1 xfer max size",
        "Read elem 2 percent",
        "File size elem 3 min size",
        "File size elem 3 percent",
        "Percent compress",
    ];
    for key in operations.iter().map(String::as_str).chain(others) {
        for value in ["much", "nan", "inf"] {
            let refused = netmist::parse(&with(key, 0, value), "x").err().unwrap();
            let [finding] = &refused.findings()[..] else {
                panic!("{key}: {refused}")
            };
            let message = format!("`{key}` must be a number, is `{value}`");
            assert_eq!(finding.message, message);
            assert_eq!(finding.column as usize, key.len() + 2);
        }
    }
}

/// The sample with the lines of these keys given other values, in both workloads.
fn with_both(changes: &[(&str, &str)]) -> String {
    let lines = SAMPLE.lines().map(|line| {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let key = words.rsplit_once(' ').map_or("", |(key, _)| key);
        match changes.iter().find(|(changed, _)| *changed == key) {
            Some((key, value)) => format!("{key} {value}\n"),
            None => format!("{line}\n"),
        }
    });
    lines.collect()
}

#[test]
fn blocks_of_contents_are_those_that_are_used() {
    let content =
        |changes: &[(&str, &str)]| plan_of(&with_both(changes)).map(|p| p.options.content);
    let blocks = |compressible_percent, dedupable_percent, block| {
        Ok(Content::Blocks {
            compressible_percent,
            dedupable_percent,
            block,
            groups: 16,
        })
    };
    let (no_dedup, no_compress) = (("Percent dedup", "0"), ("Percent compress", "0"));
    // Where nothing is made of blocks or repeated, their figures do not matter.
    let unused = [
        ("Dedup Granule size", "1000"),
        ("Comp Granule size", "1000"),
        ("Dedupe group count", "100"),
    ];
    let plain = [
        no_dedup,
        no_compress,
        unused[0],
        unused[1],
        unused[2],
        ("Percent dedup_across", "40"),
    ];
    assert_eq!(content(&plain), Ok(Content::Random));
    let compressed = content(&[no_dedup, ("Comp Granule size", "4096"), unused[0]]).unwrap();
    assert!(matches!(
        compressed,
        Content::Blocks {
            compressible_percent: 50.0,
            dedupable_percent: 0.0,
            block: 4096,
            ..
        }
    ));
    let repeated = content(&[no_compress, ("Dedup Granule size", "4096"), unused[1]]);
    assert_eq!(repeated, blocks(0.0, 20.0, 4096));
    assert_eq!(
        content(&[("Percent dedup_across", "0")]),
        blocks(50.0, 20.0, 8192)
    );
    let all = errors(&with_both(&[no_dedup, unused[1]]));
    assert!(
        all[0].contains("`Comp Granule size` must be a power of two"),
        "{all:?}"
    );
    let all = errors(&with_both(&[no_compress, unused[0]]));
    assert!(
        all[0].contains("`Dedup Granule size` must be a power of two"),
        "{all:?}"
    );
    for changes in [
        [no_dedup, unused[1]],
        [no_compress, unused[0]],
        [no_compress, unused[2]],
    ] {
        assert!(content(&changes).is_err(), "{changes:?}");
    }
}

#[test]
fn names_sizes_and_versions_may_be_those_of_any_file() {
    let plan = plan_of(&with_both(&[
        ("Min_post_name_length", "0"),
        ("Max_post_name_length", "0"),
        ("FS type", "5"),
        ("Pattern version", "1"),
    ]));
    let plan = plan.unwrap_or_else(|e| panic!("{e}"));
    let letters = plan.fileset(mix(&plan, 0).files.data).letters.unwrap();
    assert_eq!((letters.before, letters.after), ([1, 8], [0, 0]));
    let all = errors(&with_both(&[
        ("Read elem 6 percent", "0"),
        ("Read elem 15 percent", "0"),
    ]));
    assert!(
        all.iter().any(|e| e.contains("the table of `Read elem`")),
        "{all:?}"
    );
}

#[test]
fn only_transfers_are_written_with_and_without_xfer() {
    let renamed = |key: &str, other: &str| SAMPLE.replace(key, other);
    let longer = renamed("Read elem 0 percent", "Read elem 0 xfer percent");
    let shorter = renamed("Write elem 0 xfer min size", "Write elem 0 min size");
    for text in [longer, shorter] {
        assert!(text != SAMPLE && netmist::parse(&text, "x").is_ok());
    }
    let files = renamed(
        "File size elem 0 min size",
        "File size elem 0 xfer min size",
    );
    assert!(files != SAMPLE && netmist::parse(&files, "x").is_err());
}

#[test]
fn bounds_of_values_are_possible_themselves() {
    for (key, possible, not) in [
        ("Percent direct", vec!["0", "100"], vec!["-0.1", "100.1"]),
        ("Percent osync", vec!["0", "100"], vec!["-0.1", "100.1"]),
        ("Percent geometric", vec!["0", "100"], vec!["-0.1", "100.1"]),
        (
            "Percent dedup_across",
            vec!["0", "100"],
            vec!["1", "99", "101"],
        ),
        (
            "Align",
            vec!["0", "1", "1073741824"],
            vec!["1073741825", "1.5"],
        ),
        (
            "Dedupe group count",
            vec!["1", "64"],
            vec!["0", "65", "1.5"],
        ),
        (
            "Min acc_per_spot",
            vec!["1", "1073741824"],
            vec!["1073741825"],
        ),
        ("Acc mult_spot", vec!["1", "1048576"], vec!["1048577"]),
        ("Pattern version", vec!["0", "1"], vec!["2", "0.5"]),
        (
            "Release version",
            vec!["0", "1048576"],
            vec!["1048577", "-1"],
        ),
        ("FS type", vec!["0", "1048576"], vec!["1048577", "-1"]),
        ("Min_pre_name_length", vec!["0", "8"], vec!["9"]),
        ("Max_pre_name_length", vec!["1", "120"], vec!["0", "121"]),
        ("Spot shape", vec!["0", "1"], vec!["2"]),
        ("LRU", vec!["0", "1"], vec!["2"]),
        (
            "Read elem 0 xfer min size",
            vec!["0", "1", "1000000000000000"],
            vec!["-1", "1.5", "2000000000000000"],
        ),
        (
            "Read elem 0 xfer max size",
            vec!["0", "1000000000000000"],
            vec!["-1", "0.5", "2000000000000000"],
        ),
    ] {
        // Both workloads have the same contents.
        let parsed = |value: &str| netmist::parse(&with_both(&[(key, value)]), "x");
        for value in possible {
            assert!(
                parsed(value).is_ok(),
                "{key} {value}: {:?}",
                parsed(value).err()
            );
        }
        for value in not {
            assert!(parsed(value).is_err(), "{key} {value}");
        }
    }
}

#[test]
fn granules_and_groups_have_a_maximum_even_where_they_are_not_used() {
    let unused = [("Percent dedup", "0"), ("Percent compress", "0")];
    for (key, most) in [
        ("Dedup Granule size", (1_u64 << 52) - 1),
        ("Comp Granule size", (1 << 52) - 1),
        ("Dedupe group count", 1 << 20),
    ] {
        for (value, is_possible) in [(most, true), (most + 1, false)] {
            let value = value.to_string();
            let text = with_both(&[unused[0], unused[1], (key, &value)]);
            let parsed = netmist::parse(&text, "x");
            assert_eq!(parsed.is_ok(), is_possible, "{key} {value}");
        }
    }
}

#[test]
fn all_values_that_are_no_numbers_are_shown_up_to_ten() {
    let broken = |count: usize| {
        let mut left = count;
        let lines = SAMPLE.lines().map(|line| match line.rsplit_once(' ') {
            Some((key, _)) if left > 0 && line.starts_with("Percent ") => {
                left -= 1;
                format!("{} x\n", key.trim_end())
            }
            _ => format!("{line}\n"),
        });
        errors(&lines.collect::<String>())
    };
    for (count, shown) in [(1, 1), (2, 2), (9, 9), (10, 10), (12, 10)] {
        assert_eq!(broken(count).len(), shown, "{count}");
    }
}

#[test]
fn percentages_of_operations_sum_to_100() {
    for (value, is_possible) in [
        ("70.009", true),
        ("69.991", true),
        ("70.011", false),
        ("69.989", false),
    ] {
        let parsed = netmist::parse(&with("Percent Random_read", 0, value), "x");
        assert_eq!(parsed.is_ok(), is_possible, "{value}");
    }
    for (value, says) in [
        ("101", "a percentage must be 0 to 100, is 101"),
        ("-1", "a percentage must be 0 to 100, is -1"),
    ] {
        let all = errors(&with("Percent Stat", 0, value));
        assert!(all[0].ends_with(says), "{all:?}");
        assert!(all[1].contains("must sum to 100, sum to "), "{all:?}");
    }
    let all = errors(&with("Percent Custom2", 0, "1"));
    assert!(
        all[0].contains("`Custom2` is an operation of a user's own program"),
        "{all:?}"
    );
}

#[test]
fn a_workload_is_named_by_the_words_of_its_first_line() {
    let long = "n".repeat(70);
    for (name, known_as) in [
        ("DB-1", Some("DB-1")),
        ("of two.words", Some("of_two_words")),
        (long.as_str(), Some(&long[..64])),
        ("metric", None),
        ("", None),
    ] {
        let text = SAMPLE.replacen(
            "Workload name            TABLE",
            &format!("workload NAME {name}"),
            1,
        );
        assert_ne!(text, SAMPLE);
        let parsed = netmist::parse(&text, "x");
        let found = parsed.as_ref().ok().map(|w| {
            let component = w.file().component[0].get_ref();
            component.name.get_ref().as_str()
        });
        assert_eq!(found, known_as);
    }
    assert_eq!(
        errors(&SAMPLE.replacen("Workload name            TABLE", "Workload name metric", 1)),
        ["4 a workload cannot have the name `metric`"]
    );
    for line in ["Name of workload", "Workload no 5", "Some name 5"] {
        let all = errors(&SAMPLE.replacen("Workload name            TABLE", line, 1));
        assert!(
            all[0].starts_with("4 expected a line `Workload name VALUE`"),
            "{all:?}"
        );
    }
}

#[test]
fn only_what_operations_need_is_made() {
    let files = |op: &str| {
        let other = 30;
        let read = ("Percent Random_read", "40");
        let text = with(op, 0, &other.to_string());
        let text = text.replacen(
            "Percent Random_read                         70",
            &format!("{} {}", read.0, read.1),
            1,
        );
        let parsed = netmist::parse(&text, "x").unwrap_or_else(|e| panic!("{e}"));
        let files = parsed.file().component[0].get_ref().files.get_ref().clone();
        (files.turnover, files.empty, files.spare_directories)
    };
    assert_eq!(files("Percent Stat"), (0, 0, 0));
    assert_eq!(files("Percent Copyfile"), (100, 0, 0));
    assert_eq!(files("Percent Create"), (0, 100, 0));
    assert_eq!(files("Percent Mkdir"), (0, 0, 100));
    assert_eq!(files("Percent Rmdir"), (0, 0, 100));
}

#[test]
fn spots_and_geometric_choices_may_be_absent() {
    let text = with_both(&[
        ("Percent per_spot", "0"),
        ("Percent affinity", "0"),
        ("Min acc_per_spot", "0"),
        ("Acc mult_spot", "0"),
        ("Percent geometric", "0"),
    ]);
    let parsed = netmist::parse(&text, "x").unwrap_or_else(|e| panic!("{e}"));
    let files = parsed.file().component[0].get_ref().files.get_ref();
    assert_eq!((files.spots, &files.geometric), (None, &None));
    assert_eq!(files.choice, plimsoll_mix::model::Choice::Uniform);
    // Of a spot that nothing goes to no more is said.
    let without = [
        ("Percent affinity", "0"),
        ("Min acc_per_spot", "0"),
        ("Acc mult_spot", "0"),
    ];
    let all = errors(&with_both(&without));
    assert!(
        all.iter().all(|e| e.contains("no transfer goes to a spot")),
        "{all:?}"
    );
    let names = with_both(&[
        ("Min_pre_name_length", "0"),
        ("Max_pre_name_length", "0"),
        ("Min_post_name_length", "0"),
        ("Max_post_name_length", "0"),
    ]);
    let parsed = netmist::parse(&names, "x").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        parsed.file().component[0].get_ref().files.get_ref().names,
        None
    );
}

#[test]
fn a_file_that_was_cut_says_where() {
    let lines: Vec<&str> = SAMPLE.lines().collect();
    for keep in [5, 40, 100, 170, lines.len() - 1] {
        let all = errors(&lines[..keep].join("\n"));
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("the file ends where `"), "{all:?}");
    }
    assert_eq!(errors("# nothing\n"), ["1 this file has no workload"]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = plan_of(&text);
    }

    #[test]
    fn a_sample_with_another_line_is_read_or_refused(at in 0usize..400, line in "[A-Za-z_ 0-9.-]{0,40}") {
        let mut lines: Vec<&str> = SAMPLE.lines().collect();
        let at = at % lines.len();
        lines[at] = &line;
        let _ = plan_of(&lines.join("\n"));
    }

    #[test]
    fn mixes_survive_the_conversion(
        percents in prop::collection::vec(0u32..20, 26), align in 0u32..100_000,
        direct in 0u32..=100, geometric in 0u32..=100, lru in 0u32..=1,
    ) {
        // The percentages of the operations of the first workload, made to sum to 100.
        let sum: u32 = percents.iter().sum();
        prop_assume!(sum > 0);
        let mut text = String::new();
        let (mut n, mut workload) = (0, 0);
        for line in SAMPLE.lines() {
            workload += u32::from(line.starts_with("Workload name"));
            let key = line.rsplit_once(' ').map_or("", |(k, _)| k).trim_end();
            if workload == 1 && line.starts_with("Percent ") && n < 28 {
                let percent = percents.get(n).map_or(0.0, |p| f64::from(*p) / f64::from(sum) * 100.0);
                text.push_str(&format!("{key} {percent}\n"));
                n += 1;
                continue;
            }
            let number = match key {
                "Align" => Some(align),
                "Percent direct" => Some(direct),
                "Percent geometric" => Some(geometric),
                "LRU" => Some(lru),
                _ => None,
            };
            match number {
                Some(value) => text.push_str(&format!("{key} {value}\n")),
                None => text.push_str(&format!("{line}\n")),
            }
        }
        let workload = netmist::parse(&text, "custom.txt").map_err(|e| TestCaseError::fail(e.to_string()))?;
        let toml = to_toml(workload.file()).unwrap();
        let back = parse(&toml, "custom.toml").map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(back.file(), workload.file());
        let given: Vec<(MixOp, f64)> = workload.file().component[0]
            .get_ref().mix.get_ref().given().map(|(op, p)| (op, *p.get_ref())).collect();
        let asked: Vec<(MixOp, f64)> = MixOp::ALL.into_iter().zip(&percents)
            .filter(|(_, p)| **p > 0)
            .map(|(op, p)| (op, f64::from(*p) / f64::from(sum) * 100.0))
            .collect();
        prop_assert_eq!(given, asked);
    }
}

#[test]
fn two_workloads_of_one_name_are_shown_where_they_are_named() {
    let twice = format!("{SAMPLE}\n{SAMPLE}");
    let said = errors(&twice);
    let names: Vec<usize> = twice
        .lines()
        .enumerate()
        .filter(|(_, l)| l.trim_start().to_lowercase().starts_with("workload name"))
        .map(|(i, _)| i + 1)
        .collect();
    let seconds = &names[names.len() / 2..];
    assert_eq!(said.len(), seconds.len(), "{said:?}");
    for (said, line) in said.iter().zip(seconds) {
        assert!(
            said.starts_with(&format!("{line} two workloads have the name `")),
            "{said}"
        );
    }
}
