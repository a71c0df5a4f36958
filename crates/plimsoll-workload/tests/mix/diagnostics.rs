//! Diagnostics of invalid workloads: location, message and help.

use super::common;

use crate::tables::{each_row, halves};
use common::{SMALL, refusal, try_plan};
use plimsoll_diagnostics::Diagnostics;
use proptest::prelude::*;

/// `line:column message | help` of each finding.
fn findings(d: &Diagnostics) -> Vec<String> {
    let show = |f: plimsoll_diagnostics::Finding| {
        let help = f.help.map(|h| format!(" | {h}")).unwrap_or_default();
        format!("{}:{} {}{help}", f.line, f.column, f.message)
    };
    d.findings().into_iter().map(show).collect()
}

fn changed(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    SMALL.replacen(from, to, 1)
}

#[test]
fn slips_of_the_hand_are_shown_at_their_place() {
    each_row(
        r#"
        rate = 50 | raet = 50 => 13:1 unknown key `raet` | did you mean `rate`?
        rate = 50 | rate = "fast" => 13:8 expected a number, found string "fast"
        count = 100\n | => 18:1 the key `count` is missing
        size = "4k" | size = "4x"
            => 20:8 `4x` is not a size: expected a whole number with k, m, g or t, such as 16k
        time = "1m" | time = "1y"
            => 8:8 `1y` is not a duration: expected a number and ms, s, m or h, such as 500ms or 10s
        rate = 50 | arrivals = "posson" => 13:12 unknown value `posson` | did you mean `poisson`?
        [component.mix]\nstat = 100 | mix = 3
            => 15:7 expected a table of operations, such as { read = 60, write = 40 }, found integer `3`
        "#,
        |row, says| {
            let (from, to) = halves(row);
            let text = changed(from, to);
            assert_eq!(findings(&refusal(&text)), [says], "{to}");
        },
    );
}

#[test]
fn a_wrong_promise_is_shown_at_its_place() {
    let of = |condition: &str| {
        let promise = format!("[[promise]]\ncondition = \"{condition}\"\n\n[[component]]");
        findings(&refusal(&changed("[[component]]", &promise)))
    };
    let unknown = "`stats:p99 <= 5ms`: the workload has no operation `stats`: did you mean `stat`?";
    assert_eq!(of("stats:p99 <= 5ms"), [format!("11:13 {unknown}")]);
    let wrong = &of("p99 <= 5")[0];
    assert!(
        wrong.starts_with("11:13 `5` is not a time: p99 has a limit such as 5ms"),
        "{wrong}"
    );
    let rate = try_plan(&changed("rate = 50\n", ""), |o| o.rate = Some(5.0)).unwrap_err();
    let expected = "no component has a rate that could be changed";
    assert!(
        findings(&rate)[0].contains(expected),
        "{:?}",
        findings(&rate)
    );
}

#[test]
fn every_key_that_is_not_known_is_shown() {
    let text = changed("rate = 50", "raet = 50")
        .replacen("stat = 100", "stta = 100", 1)
        .replacen("[run]", "[rnu]", 1);
    assert_eq!(
        findings(&refusal(&text)),
        [
            "6:2 unknown key `rnu` | did you mean `run`?",
            "13:1 unknown key `raet` | did you mean `rate`?",
            "16:1 unknown key `stta` | did you mean `stat`?",
        ]
    );
    // Values of a wrong type are shown beside unknown keys.
    let negative = "size = \"4k\"\nturnover = -1";
    let text = changed("rate = 50", "raet = 50").replacen("size = \"4k\"", negative, 1);
    assert_eq!(
        findings(&refusal(&text)),
        [
            "13:1 unknown key `raet` | did you mean `rate`?",
            "21:12 expected a whole number, at least 0, found integer `-1`",
        ]
    );
}

#[test]
fn values_that_the_plan_refuses_are_shown_at_their_own_place() {
    each_row(
        r#"
        rate = 50 | rate = -1 => 13:8 `looker`: a rate must be above 0
        [component.mix] | [component.transfers]\ndirect = 101\n[component.mix]
            => 16:10 `looker`: direct must be 0 to 100 percent, is 101
        count = 100 | count = 100\nspots = { percent = 10, accesses = 0 }
            => 20:9 `looker`: accesses and multiplier of spots must be at least 1
        count = 100 | count = 100\nspots = { percent = 0, accesses = 1 }
            => 20:21 `looker`: a spot must be above 0
        "#,
        |row, says| {
            let (from, to) = halves(row);
            let found = findings(&refusal(&changed(from, to)));
            assert_eq!(found.len(), 1, "{to}: {found:?}");
            assert!(found[0].starts_with(says), "{to}: {found:?}");
        },
    );
}

#[test]
fn what_is_written_is_checked_with_and_without_the_size_of_the_data() {
    let (content, none) = (
        "[content]\nblock = \"3000\"\ncompressible = 200\ngroups = 0\n\n[[component]]",
        "name = \"users\"",
    );
    for data in ["", "\ndata = \"800k\""] {
        let text = changed("[[component]]", content).replacen(none, &format!("{none}{data}"), 1);
        let line = 10 + usize::from(!data.is_empty());
        assert_eq!(
            findings(&refusal(&text)),
            [
                format!("{line}:1 content.compressible must be 0 to 100 percent, is 200"),
                format!("{line}:1 content.groups must be 1 to 64, is 0"),
                format!("{line}:1 content.block must be a power of two from 512 to 64k, is 3000"),
            ]
        );
    }
}

#[test]
fn what_makes_no_sense_is_shown_at_its_place() {
    each_row(
        r#"
        title = "looks" | title = looks => 1:9 
        count = 100 | count = 0 => 19:9 each process needs at least one data file
        stat = 100 | stat = 90 => 15:1 the percentages of a mix must sum to 100, these sum to 90
        stat = 100 | stat = 101 => 16:8 stat must be 0 to 100 percent, is 101
        stat = 100 | stat = 90\ncustom1 = 10
            => 17:11 `custom1` is an operation of a user's own program, which Plimsoll does not load: only 0 is possible
        name = "looker" | name = "a/b" => 11:8 a name has 1 to 64 letters, digits, `-` and `_`
        name = "looker" | name = "metric"
            => 11:8 `metric` is a key of the workload and cannot name a component
        processes = 2 | processes = 0 => 12:13 a load has 1 to 1000000 processes, this has 0
        size = "4k" | size = "4k"\nchoice = "zipf"
            => 21:10 `looker`: a zipf choice needs shared files: over a part of the files it would prefer others than over all, and the working set would depend on the number of processes
        name = "users" | name = "users"\ndata = "1m"
            => 5:8 the components have 800 KiB of data files per metric, not 1 MiB: count × size × processes of all of them
        name = "users" | name = "users"\ntotal_rate = 101
            => 5:14 a part must be 0 to 100 percent, is 101
        size = "4k" | size = [{ size = "4k", percent = 50 }]
            => 20:8 a table of sizes must sum to 100 percent, sums to 50
        size = "4k" | size = [{ min = "4k", percent = 100 }]
            => 20:8 a slot has `size`, or both `min` and `max`
        "#,
        |row, says| {
            let (from, to) = halves(row);
            let text = changed(from, to);
            let all = findings(&refusal(&text));
            assert!(all[0].starts_with(says), "{all:?}\n{says}");
        },
    );
}

/// The errors of the small workload with a change and with options.
fn errors_of(
    from: &str,
    to: &str,
    change: impl FnOnce(&mut plimsoll_plan::Overrides),
) -> Vec<String> {
    match try_plan(&changed(from, to), change) {
        Ok(_) => vec![],
        Err(e) => findings(&e),
    }
}

#[test]
fn bounds_of_options_are_possible_themselves() {
    type Change = fn(&mut plimsoll_plan::Overrides);
    let possible: [Change; 5] = [
        |o| o.scale = Some(1.0),
        |o| o.scale = Some(0.001),
        |o| o.load = Some(500_000),
        |o| (o.load, o.most) = (Some(5), Some(5)),
        |o| o.quit = Some(plimsoll_plan::QuitMode::Timeout),
    ];
    for (number, change) in possible.into_iter().enumerate() {
        assert_eq!(
            errors_of("count = 100", "count = 1", change),
            [""; 0],
            "{number}"
        );
    }
    let refused: [(Change, &str); 9] = [
        (|o| o.scale = Some(2.0), "at most 1, is 2"),
        (
            |o| o.rate = Some(0.0),
            "the rate of a mix must be above 0, is 0",
        ),
        (
            |o| o.quit = Some(plimsoll_plan::QuitMode::FirstDone),
            "--quit firstdone",
        ),
        (|o| o.load = Some(0), "--load must be at least 1"),
        (
            |o| o.scale = Some(0.0),
            "--scale must be above 0 and at most 1, is 0;",
        ),
        (
            |o| o.scale = Some(f64::NAN),
            "--scale must be above 0 and at most 1, is NaN;",
        ),
        (
            |o| o.load = Some(500_001),
            "a load has 1 to 1000000 processes, this has 1000002",
        ),
        (
            |o| (o.load, o.most) = (Some(6), Some(5)),
            "the load is above the maximum load",
        ),
        (
            |o| o.time = Some(std::time::Duration::ZERO),
            "--time must be above 0",
        ),
    ];
    for (change, message) in refused {
        let all = errors_of("count = 100", "count = 1", change);
        assert!(all.len() == 1 && all[0].contains(message), "{all:?}");
    }
    // A time on the command line replaces the invalid time of the workload.
    let no_time = errors_of("time = \"1m\"", "time = 0", |_| ());
    assert!(
        no_time[0].ends_with("run.time must be above 0"),
        "{no_time:?}"
    );
    let time = |o: &mut plimsoll_plan::Overrides| o.time = Some(std::time::Duration::from_secs(1));
    assert_eq!(errors_of("time = \"1m\"", "time = 0", time), [""; 0]);
}

#[test]
fn bounds_of_values_are_possible_themselves() {
    let content = |keys: &str| ("[run]", format!("[content]\n{keys}\n\n[run]"));
    let advice = |mix: &str, advice: &str| {
        let transfers = format!("[component.transfers]\nfadvise = {{ {advice} }}");
        ("stat = 100", format!("{mix}\n\n{transfers}"))
    };
    let component = |keys: &str| ("rate = 50", format!("rate = 50\n{keys}"));
    let metric = |keys: &str| ("name = \"users\"", format!("name = \"users\"\n{keys}"));
    let mix = |keys: &str| ("stat = 100", keys.to_string());
    for ((from, to), is_possible) in [
        (content("compressible = 100\ndedupable = 100"), true),
        (content("compressible = 100.1"), false),
        (content("dedupable = -0.1"), false),
        (content("groups = 1\nblock = 512"), true),
        (content("groups = 64\nblock = \"64k\""), true),
        (content("groups = 65"), false),
        (content("block = \"128k\""), false),
        (
            component("content = { compressible = 100, groups = 64 }"),
            true,
        ),
        (component("content = { dedupable = 101 }"), false),
        (component("content = { block = \"3k\" }"), false),
        (advice("read = 100", "sequential = 100, dontneed = 0"), true),
        (advice("read = 100", "sequential = 101"), false),
        (advice("read = 100", "dontneed = -1"), false),
        // No operation keeps a file open.
        (advice("read_file = 100", "dontneed = 100"), false),
        (metric("process_rate = 0\ntotal_rate = 100"), true),
        (metric("process_rate = -1"), false),
        (metric("total_rate = 100.5"), false),
        (mix("stat = 50\naccess = 50.009"), true),
        (mix("stat = 50\naccess = 49.991"), true),
        (mix("stat = 50\naccess = 50.011"), false),
        (mix("stat = 50\naccess = 49.989"), false),
        (mix("stat = 110\naccess = -10"), false),
        (mix("stat = 100\ncustom2 = -1"), false),
    ] {
        let all = errors_of(from, &to, |_| ());
        assert_eq!(all.is_empty(), is_possible, "{to}: {all:?}");
    }
}

#[test]
fn data_may_differ_by_a_twentieth() {
    // Two processes have 100 files each.
    for (stated, size, fits) in [
        (1_000_000, 4750, true),
        (1_000_000, 4749, false),
        (1_000_000, 5250, true),
        (1_000_000, 5251, false),
    ] {
        let text = changed(
            "name = \"users\"",
            &format!("name = \"users\"\ndata = {stated}"),
        );
        let text = text.replacen("\"4k\"", &size.to_string(), 1);
        assert_eq!(try_plan(&text, |_| ()).is_ok(), fits, "{size}");
    }
}

#[test]
fn a_workload_without_components_is_refused() {
    let head = &SMALL[..SMALL.find("[[component]]").unwrap()];
    let all = findings(&refusal(&format!("component = []\n{head}")));
    let expected = "a workload needs at least one [[component]]";
    assert!(all[0].ends_with(expected), "{all:?}");
}

#[test]
fn values_of_another_type_are_described() {
    each_row(
        r#"
        size = "4k" | size = true
            => 20:8 expected a size such as "64k", or a table such as [{ size = "64k", percent = 100 }], found boolean `true`
        name = "users" | name = "users"\ndata = true
            => 5:8 expected a size such as 4096 or "64k", found boolean `true`
        size = "4k" | size = -5 => 20:8 a size must not be negative, is -5
        time = "1m" | time = true
            => 8:8 expected a time such as 300 or "5m", found boolean `true`
        time = "1m" | time = -1 => 8:8 a time must not be negative, is -1
        title = "looks" | title = 5 => 1:9 expected a text in quotes, found integer `5`
        [metric]\nname = "users" | metric = 5 => 3:10 expected a table, found integer `5`
        processes = 2 | processes = "2"
            => 12:13 expected a whole number, at least 0, found string "2"
        size = "4k" | size = 1\nshared = 1 => 21:10 expected true or false, found integer `1`
        // That the table has no size then follows from it.
        size = "4k" | size = [{ size = true, percent = 100 }]
            => 20:18 expected a size such as 4096 or "64k", found boolean `true`
        "#,
        |row, message| {
            let (from, to) = halves(row);
            assert_eq!(errors_of(from, to, |_| ()), [message], "{to}");
        },
    );
    // An error beside the invalid size is shown.
    let two = "size = [{ size = true, percent = 100 }]\nshared = 1";
    let all = errors_of("size = \"4k\"", two, |_| ());
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[1].starts_with("21:10 "), "{all:?}");
}

#[test]
fn names_have_a_length_and_letters() {
    let longest = "n".repeat(64);
    for name in ["a", "A-b_9", &longest] {
        let text = changed("looker", name);
        assert!(try_plan(&text, |_| ()).is_ok(), "{name}");
    }
    for name in ["", "a b", "a/b", "ä", &format!("{longest}n")] {
        let all = findings(&refusal(&changed("looker", name)));
        assert_eq!(
            all,
            ["11:8 a name has 1 to 64 letters, digits, `-` and `_`"]
        );
    }
}

#[test]
fn two_components_of_one_name_are_shown_both() {
    let second = &SMALL[SMALL.find("[[component]]").unwrap()..];
    let all = refusal(&format!("{SMALL}\n{second}")).render(false, 100);
    insta::assert_snapshot!(all);
}

#[test]
fn settings_that_lead_nowhere_are_shown() {
    let with = |set: (&str, &str)| {
        let sets = vec![(set.0.to_owned(), set.1.to_owned())];
        let refused = try_plan(SMALL, |o| o.sets = sets).err().unwrap();
        (
            refused.findings()[0].file.clone(),
            findings(&refused)[0].clone(),
        )
    };
    let (file, says) = with(("loker.rate", "5"));
    assert_eq!(file, "--set");
    assert_eq!(
        says,
        "1:1 there is no `loker` to change | did you mean `looker`?"
    );
    let (_, says) = with(("looker.raet", "5"));
    assert_eq!(says, "1:1 unknown key `raet` | did you mean `rate`?");
    let (_, message) = with(("run.time.most", "5"));
    assert_eq!(message, "1:1 there is no `time` to change");
    let (_, says) = with(("looker.rate", "fast"));
    assert_eq!(says, "1:1 expected a number, found string \"fast\"");
    // An error of the whole workload is shown in the text after the change.
    let (file, says) = with(("looker.mix.stat", "50"));
    assert!(file.starts_with("test.toml with --set"), "{file}");
    assert!(says.contains("sum to 50"), "{says}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,300}") {
        let _ = try_plan(&text, |_| ());
    }

    #[test]
    fn a_builtin_with_a_hole_is_read_or_refused(which in 0..plimsoll_workload::mix::BUILTINS.all().len(), at in 0.0f64..1.0, length in 0usize..60, with in "[\\]\\[={}\"0-9a-z.,\n -]{0,8}") {
        let text = plimsoll_workload::mix::BUILTINS.all()[which].text;
        let start = text.floor_char_boundary((at * text.len() as f64) as usize);
        let end = text.floor_char_boundary((start + length).min(text.len()));
        let broken = format!("{}{with}{}", &text[..start], &text[end..]);
        if let Err(e) = try_plan(&broken, |o| o.scale = Some(0.01)) {
            prop_assert!(!e.findings().is_empty());
            prop_assert!(!e.render(false, 80).is_empty());
        }
    }

    #[test]
    fn any_setting_is_taken_or_refused(name in "[a-z._A-Z0-9]{0,20}", value in "\\PC{0,20}") {
        let _ = try_plan(SMALL, |o| o.sets = vec![(name, value)]);
    }
}
