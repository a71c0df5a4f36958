//! Custom workload files of netmist: every value is used or refused by name.

#[path = "netmist/values.rs"]
mod values;

use crate::tables::each_row;
use plimsoll_plan::{
    Choice, Content, Letters, Mix, MixOp, Overrides, Plan, SizeSlot, SourceKind, Value,
};
use plimsoll_workload::mix::{Context, lower, netmist, parse, to_toml};
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

/// The sample with another value in line number `nth`, from 0, of the lines with this key.
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
    let mut expected = plan_of(SAMPLE).unwrap();
    expected.source.text = renamed.clone();
    assert_eq!(plan_of(&renamed), Ok(expected));
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
    each_row(
        r#"
        Percent Custom1 5 => `Custom1` is an operation of a user's own program
        Percent Custom2 5 => `Custom2` is an operation of a user's own program
        Background 1 => `Background` is 1: there are no background processes
        Rand dist behavior 2 => `Rand dist behavior` is 2
        Cipher behavior 1 => `Cipher behavior` is 1: nothing is encrypted
        Notification percent 3 => `Notification percent` is 3
        Init rate throttle 100 => `Init rate throttle` is 100
        Init read flag 1 => `Init read flag` is 1
        Extra dir levels 2 => `Extra dir levels` is 2
        Chaff count 7 => `Chaff count` is 7: no further files are made
        Shared buckets 1 => `Shared buckets` is 1
        Pattern version 2 => `Pattern version` is 2
        Percent dedup_within 50 => `Percent dedup_within` is 50
        Percent dedup_across 40 => `Percent dedup_across` is 40
        Dedup gran rep limit 9 => `Dedup gran rep limit` is 9
        Dedupe group count 100 => `Dedupe group count` is 100
        Dedup Granule size 4096 => must be the same
        Use file size dist 0 => `Use file size dist` is 0
        Uniform size dist 0 => `Uniform size dist` is 0
        Spot shape 2 => `Spot shape` must be a whole number from 0 to 1
        Sharemode 3 => `Sharemode` must be a whole number from 0 to 1
        Percent direct 101 => `Percent direct` must be 0 to 100, is 101
        Percent osync -1 => `Percent osync` must be 0 to 100, is -1
        Percent write commit x => `Percent write commit` must be a number, is `x`
        Align -8 => `Align` must be a whole number
        Min_pre_name_length 9 => `Min_pre_name_length` is above `Max_pre_name_length`
        Max_post_name_length 200 => `Max_post_name_length` must be a whole number from 0 to 120
        Percent Random_read 60 => must sum to 100, sum to 90
        Percent affinity 0 => no transfer goes to a spot
        Percent per_spot 0 => there is no spot to go to
        Min acc_per_spot 0 => a spot gets at least one transfer
        Acc mult_spot 0 => a spot gets at least one transfer
        Read elem 6 percent 90 => the table of `Read elem` must sum to 100 percent, sums to 91
        Write elem 6 xfer min size 9000 => has a slot whose min (9000) is above its max (8192)
        File size elem 0 percent 50 => the table of `File size elem`
        "#,
        |line, says| {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let text = with(key, 0, value);
            let all = errors(&text);
            assert!(all.iter().any(|e| e.contains(says)), "{line}: {all:?}");
            // The error is at the changed line, except for errors of a whole table or of both workloads.
            let number = text.lines().position(|l| l == line).unwrap() + 1;
            let at_line = all.iter().any(|e| e.starts_with(&format!("{number} ")));
            let of_many = says.contains("sum")
                || says.contains("table")
                || says.contains("slot")
                || says.contains("same");
            assert!(at_line || of_many, "{key}: line {number}, {all:?}");
        },
    );
}

#[test]
fn a_workload_with_another_content_keeps_its_content() {
    let workload = netmist::parse(&with("Percent compress", 1, "10"), "x").unwrap();
    let file = workload.file();
    let [first, second] = &file.component[..] else {
        panic!("{:?}", file.component);
    };
    assert_eq!(first.content, Default::default());
    assert_eq!(second.content.compressible, Some(10.0));
    let own = second.content.over(file.content);
    assert_ne!(own.compressible, file.content.compressible);
    assert_eq!(
        (own.dedupable, own.block, own.groups),
        (
            file.content.dedupable,
            file.content.block,
            file.content.groups
        )
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

proptest! {
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
        // The percentages of the first workload's operations are made to sum to 100.
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
        let given: Vec<(MixOp, f64)> = workload.file().component[0].mix.given().collect();
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
