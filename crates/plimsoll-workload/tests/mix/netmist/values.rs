//! Values of netmist's files: bounds, locations of errors, and effects.

use super::{SAMPLE, errors, mix, plan_of, with};
use crate::tables::each_row;
use plimsoll_plan::Content;
use plimsoll_workload::mix::netmist;

#[test]
fn a_value_that_is_not_a_number_is_shown_with_its_key() {
    // The first 28 lines `Percent …` of the sample have the percentages of the operations of the first workload.
    let percents = SAMPLE.lines().filter(|l| l.starts_with("Percent "));
    let operations = percents
        .take(28)
        .map(|l| l.rsplit_once(' ').unwrap().0.trim_end());
    let others = [
        "Read elem 0 xfer min size",
        "Write elem 1 xfer max size",
        "Read elem 2 percent",
        "File size elem 3 min size",
        "File size elem 3 percent",
        "Percent compress",
    ];
    for key in operations.chain(others) {
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

/// The sample with other values for these keys, in both workloads.
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
    // Without compression and deduplication, block sizes and the number of groups have no effect.
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
    for (changes, key) in [
        ([no_dedup, unused[1]], "Comp Granule size"),
        ([no_compress, unused[0]], "Dedup Granule size"),
    ] {
        let all = errors(&with_both(&changes));
        let expected = format!("`{key}` must be a power of two");
        assert!(all[0].contains(&expected), "{all:?}");
    }
    assert!(content(&[no_compress, unused[2]]).is_err());
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
    each_row(
        r#"
        Percent direct => 0 100, not -0.1 100.1
        Percent osync => 0 100, not -0.1 100.1
        Percent geometric => 0 100, not -0.1 100.1
        Percent dedup_across => 0 100, not 1 99 101
        Align => 0 1 1073741824, not 1073741825 1.5
        Dedupe group count => 1 64, not 0 65 1.5
        Min acc_per_spot => 1 1073741824, not 1073741825
        Acc mult_spot => 1 1048576, not 1048577
        Pattern version => 0 1, not 2 0.5
        Release version => 0 1048576, not 1048577 -1
        FS type => 0 1048576, not 1048577 -1
        Min_pre_name_length => 0 8, not 9
        Max_pre_name_length => 1 120, not 0 121
        Spot shape => 0 1, not 2
        LRU => 0 1, not 2
        Read elem 0 xfer min size => 0 1 1000000000000000, not -1 1.5 2000000000000000
        Read elem 0 xfer max size => 0 1000000000000000, not -1 0.5 2000000000000000
        "#,
        |key, values| {
            // The value is set in both workloads: both use every key.
            let parsed = |value: &str| netmist::parse(&with_both(&[(key, value)]), "x");
            let (possible, not) = values.split_once(", not ").unwrap();
            for value in possible.split(' ') {
                let error = parsed(value).err();
                assert!(error.is_none(), "{key} {value}: {error:?}");
            }
            for value in not.split(' ') {
                assert!(parsed(value).is_err(), "{key} {value}");
            }
        },
    );
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
    for (value, message) in [
        ("101", "a percentage must be 0 to 100, is 101"),
        ("-1", "a percentage must be 0 to 100, is -1"),
    ] {
        let all = errors(&with("Percent Stat", 0, value));
        assert!(all[0].ends_with(message), "{all:?}");
        assert!(all[1].contains("must sum to 100, sum to "), "{all:?}");
    }
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
        let found = parsed
            .as_ref()
            .ok()
            .map(|w| w.file().component[0].name.as_str());
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
        let files = parsed.file().component[0].files.clone();
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
    let files = &parsed.file().component[0].files;
    assert_eq!((files.spots, &files.geometric), (None, &None));
    assert_eq!(files.choice, plimsoll_workload::mix::model::Choice::Uniform);
    // If no transfer goes to a spot, the values of the spot cause no further error.
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
    assert_eq!(parsed.file().component[0].files.names, None);
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
