//! Head, parameters, random variables, script and options in a printed Plan, and the JSON form of a Plan.

use super::*;
use plimsoll_plan::Requirement;

#[test]
fn a_plan_of_several_places_names_them_all() {
    let mut plan = plan();
    plan.work_dir.dir = "/".into();
    plan.work_dir.guards = ["mnt/a", "mnt/b"].map(|g| RelPath::new(g).unwrap()).into();
    assert!(plan.to_string().contains("  place     /mnt/a, /mnt/b (new"));
}

#[test]
fn a_plan_with_dangling_references_still_prints() {
    let mut plan = plan();
    plan.filesets.clear();
    plan.variables.clear();
    plan.operations.clear();
    let text = plan.to_string();
    for found in ["fileset 0", "variable 0", "operation 0"] {
        assert!(text.contains(found), "{found}");
    }
}

#[test]
fn fractions_have_six_digits_and_whole_numbers_all_of_theirs() {
    let row = Row {
        percent: 100.0 / 3.0,
        min: 0.1 + 0.2,
        max: 3_481.600_000_000_000_4,
    };
    let table = Distribution::Table { rows: vec![row] };
    assert_eq!(table.to_string(), "table: 33.3333 % 0.3 to 3481.6");
    let whole = Distribution::Uniform {
        lower: 0.0,
        upper: 1_048_577.0,
    };
    assert_eq!(whole.to_string(), "uniform from 0 to 1048577");
}

#[test]
fn one_of_a_kind_is_singular() {
    let mut plan = Plan::empty("one");
    plan.filesets = vec![Fileset {
        leaf_dirs: 1,
        ..fileset("set", 1, Value::Const(0))
    }];
    plan.script = vec![Phase::Start];
    plan.options.ops = Some(OpsLimit::Total(1));
    let text = plan.to_string();
    for part in [
        "    1 file of",
        "    1 leaf directory\n",
        "end after 1 operation;",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(text.contains("start 0 workers"), "{text}");
}

#[test]
fn the_head_names_source_and_work_directory() {
    let head = |change: fn(&mut Plan)| {
        let mut plan = Plan::empty("name");
        plan.work_dir.dir = "/w".into();
        change(&mut plan);
        let text = plan.to_string();
        let lines = text.lines().take_while(|l| !l.is_empty());
        lines.map(|l| l.trim_start().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        head(|_| ()),
        [
            "name",
            "source    name (built in)",
            "seed      1",
            "place     /w"
        ]
    );
    let other = head(|plan| {
        plan.title = "a title".into();
        plan.source.kind = SourceKind::File;
        plan.source.name = "x.f".into();
        plan.seed = 7;
        plan.work_dir.temporary = true;
        plan.options.keep = true;
        plan.work_dir.guards = vec![RelPath::default(), RelPath::new("a").unwrap()];
    });
    assert_eq!(
        other,
        [
            "name: a title",
            "source    x.f (file)",
            "seed      7",
            "place     /w/a (new)",
        ]
    );
}

#[test]
fn parameters_are_in_columns() {
    let mut plan = plan();
    let long = "v".repeat(30);
    plan.parameters[1].value = long.clone();
    plan.parameters[0].meaning = String::new();
    let text = plan.to_string();
    let gap = " ".repeat(24 - 3);
    let first = format!("\n  nfiles  200{gap}  instead of 10000\n");
    let second = format!("\n  iosize  {long}  instead of 8k\n");
    assert!(text.contains(&first) && text.contains(&second), "{text}");
}

#[test]
fn variables_are_printed_with_their_bounds() {
    let variable = |min, max, round| {
        let mut plan = plan();
        let distribution = Distribution::Exponential { mean: 1.0 };
        plan.variables = vec![Variable {
            min,
            max,
            round,
            ..Variable::new("v", distribution)
        }];
        let text = plan.to_string();
        let line = text.lines().find(|l| l.starts_with("  $v"));
        let bounds = line.and_then(|l| l.strip_prefix("  $v: exponential, mean 1"));
        bounds.map(str::to_owned)
    };
    let expected = |text: &str| Some(text.to_owned());
    assert_eq!(variable(None, None, 0), expected(""));
    assert_eq!(variable(None, None, 1), expected(""));
    assert_eq!(
        variable(Some(0.5), None, 2),
        expected(", at least 0.5, multiples of 2")
    );
    assert_eq!(variable(None, Some(9.0), 0), expected(", at most 9"));
    assert_eq!(variable(Some(1.0), Some(2.0), 0), expected(", from 1 to 2"));
}

#[test]
fn the_end_of_a_run_is_printed_by_its_quit_mode() {
    let end = |quit, ops: Vec<Op>| {
        let mut plan = plan();
        let steps = ops.into_iter().map(|op| Step::Do {
            row: OperationId(0),
            iters: Value::Const(1),
            op,
        });
        plan.groups[0].program = Program::Sequence(steps.collect());
        plan.quit = quit;
        let text = plan.to_string();
        let end = text.lines().skip_while(|l| !l.contains("10. run"));
        end.take(2).last().map(|l| l.trim_start().to_owned())
    };
    let expected = |text: &str| Some(text.to_owned());
    let delete = || vec![Op::Delete(file(Some(SET)))];
    assert_eq!(
        end(QuitMode::Timeout, delete()),
        expected("ends early when its filesets are used up")
    );
    assert_eq!(
        end(QuitMode::Timeout, vec![Op::Stat(file(Some(SET)))]),
        expected("a worker that finds no file to work on makes it invalid")
    );
    assert_eq!(
        end(QuitMode::AllDone, delete()),
        expected("ends early when every worker is done")
    );
}

#[test]
fn options_are_printed_in_one_line() {
    let options = |change: fn(&mut RunOptions)| {
        let mut plan = Plan::empty("options");
        change(&mut plan.options);
        let text = plan.to_string();
        let line = text.lines().last();
        line.map(|l| l.trim_start().to_owned()).unwrap_or_default()
    };
    let blocks = |dedupable_percent, groups| Content::Blocks {
        compressible_percent: 50.0,
        dedupable_percent,
        block: 4096,
        groups,
    };
    let stop = "options: stop at the first error; ";
    let with = |rest: &str| format!("{stop}{rest}");
    assert_eq!(options(|_| ()), with("write random bytes"));
    assert_eq!(options(|o| o.verify = true), with("verify all contents"));
    assert_eq!(options(|o| o.content = Content::Zero), with("write zeros"));
    let text = |content| {
        let mut plan = Plan::empty("options");
        plan.options.content = content;
        plan.to_string()
    };
    let two = {
        let mut plan = Plan::empty("options");
        plan.filesets = vec![Fileset::new("plain", 1, Value::Const(1)); 2];
        plan.filesets[1].name = "zeros".into();
        plan.filesets[1].content = Some(Content::Zero);
        plan.to_string()
    };
    // Contents that differ stand with their filesets.
    assert!(
        two.contains("\n    content: zeros\n")
            && two.ends_with("options: stop at the first error\n"),
        "{two}"
    );
    let unique = "write blocks of 4 KiB, 50 % compressible, 0 % dedupable\n";
    assert!(text(blocks(0.0, 64)).ends_with(unique));
    let copies = "50 % compressible, 25 % dedupable (1 block that comes again)\n";
    assert!(text(blocks(25.0, 1)).ends_with(copies));
    assert_eq!(
        options(|o| {
            o.drop_caches = Cold::System;
            o.keep = true;
        }),
        with("write random bytes; drop all caches of the machine first; keep the files")
    );
    assert_eq!(
        options(|o| {
            o.require = [
                Requirement::Quiet,
                Requirement::Storage,
                Requirement::Steady,
            ]
            .into();
        }),
        with(
            "write random bytes; require a steady rate; require figures of the storage, not of the \
             client's memory; require a machine that is not shared"
        )
    );
}

#[test]
fn a_period_is_that_of_the_whole_window_unless_it_is_cleared() {
    let mut plan = plan();
    let time = Duration::from_secs(60);
    plan.script = vec![Phase::Wait {
        until: Until::Elapsed { time },
        snapshots: Some(Snapshots {
            every: Duration::from_secs(5),
            cleared: false,
        }),
    }];
    let text = plan.to_string();
    assert!(
        text.contains("  1. run 1m, printing all so far every 5s\n"),
        "{text}"
    );
}

#[test]
fn plans_survive_their_json_form() {
    let plan = plan();
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(json.clone()).unwrap(), plan);
    let steps = json["groups"][0]["program"]["sequence"].as_array().unwrap();
    let delays = steps.iter().map(|s| &s["do"]["op"]["delay"]);
    let delays: Vec<String> = delays
        .filter(|d| d.is_object())
        .map(|d| d.to_string())
        .collect();
    assert_eq!(
        delays,
        [
            r#"{"seconds":{"const":1}}"#,
            r#"{"nanoseconds":250000,"seconds":{"const":0}}"#,
        ]
    );
    let note = Note::from("a note".to_owned());
    assert_eq!((note.text.as_str(), note.location), ("a note", None));
}
