//! Parameters and the settings of the command line (`--set`): order, values, and errors in them.

use super::common;

use crate::tables::each_row;
use common::{context, lower_with, plan, shown};
use plimsoll_plan::{Overrides, Plan, SourceKind};
use plimsoll_workload::wml::{Context, Diagnostics, lower, parameters, parse};

const REST: &str = "define fileset name=f,path=/d,entries=5,dirwidth=5,size=$x\n\
    define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\nrun 1\n";

fn sets(sets: &[(&str, &str)]) -> Overrides {
    Overrides {
        sets: sets
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect(),
        ..Overrides::default()
    }
}

fn with(text: &str, settings: &[(&str, &str)]) -> Result<Plan, Diagnostics> {
    lower_with(text, &sets(settings))
}

/// The errors of a workload with these settings: text, location, message, help.
fn wrong(text: &str, settings: &[(&str, &str)]) -> Vec<String> {
    match with(text, settings) {
        Err(e) => {
            let found = e.findings().into_iter();
            found
                .map(|f| format!("{}:{}", f.file.clone(), shown(f)))
                .collect()
        }
        Ok(_) => panic!("accepted: {settings:?}"),
    }
}

fn listed(plan: &Plan) -> Vec<String> {
    let show = |p: &plimsoll_plan::Parameter| {
        format!("{}={} [{}] {}", p.name, p.value, p.default, p.meaning)
    };
    plan.parameters.iter().map(show).collect()
}

#[test]
fn parameters_show_literals_as_written_and_others_as_values() {
    let text = format!(
        "set $x=4k\nset $m=2m\nset $t=1500ms\nset $b=true\nset $w=word\n\
         set $q=\"$w $m\"\nset $s=$x + 1\nset $r=randvar(type=uniform,  mean=5)\nset $v=$r\nset $n=-2\n{REST}"
    );
    assert_eq!(
        listed(&plan(&text)),
        [
            "x=4k [4k] ",
            "m=2m [2m] ",
            "t=1500ms [1500ms] ",
            "b=true [true] ",
            "w=word [word] ",
            "q=word 2097152 [$w $m] ",
            "s=4097 [$x + 1] ",
            "r=randvar(type=uniform, mean=5) [randvar(type=uniform, mean=5)] ",
            "v=$r [$r] ",
            "n=-2 [-2] "
        ]
    );
}

#[test]
fn the_last_set_gives_the_value_and_the_first_the_default() {
    let text = format!("set $x=1 # first\nset $x=2 # second\n{REST}");
    let both = plan(&text);
    assert_eq!(listed(&both), ["x=2 [1] first"]);
    assert_eq!(both.filesets[0].size.constant(), Some(2));
    let set = with(&text, &[("x", "\"7\" ")]);
    assert_eq!(
        set.unwrap_err().findings()[0].message,
        "`size` takes a whole number; `$x` is the text `7`"
    );
}

#[test]
fn settings_from_outside_are_listed_last() {
    let text = format!("set $y=$z\n{REST}");
    let plan = with(&text, &[("x", "3"), ("z", "4")]).unwrap();
    assert_eq!(listed(&plan), ["z=4 [] ", "y=4 [$z] ", "x=3 [] "]);
    // A setting changes the values of parameters, not the defaults and meanings, which come from the text of the
    // workload.
    let text = format!("set $n=4 # how many\nset $x=$n * 2\n{REST}");
    let expected = ["n=16k [4] how many", "x=32768 [$n * 2] "];
    assert_eq!(listed(&with(&text, &[("n", "16k")]).unwrap()), expected);
    // A variable that the command line sets and a loop uses is listed once among the parameters.
    let text = "foreach $i in 1, 2 { echo \"$o\" }\n".to_string() + &REST.replace("$x", "1");
    assert_eq!(listed(&with(&text, &[("o", "a")]).unwrap()), ["o=a [] "]);
}

#[test]
fn errors_in_a_setting_are_placed_in_it() {
    let text = format!("set $x=1\n{REST}");
    let empty = "--set x:1:1 the setting has no value (an empty text is written \"\")";
    assert_eq!(wrong(&text, &[("x", "")]), [empty]);
    let unset = "--set x:1:1 the variable `$nix` is never set (a profile (`nix = …;`) or --set nix=… may \
        set it, as profiles did for files of Filebench 1.x; or set it before: set $nix=…)";
    assert_eq!(wrong(&text, &[("x", "$nix")]), [unset]);
    each_row(
        r#"
        5 6
            => --set x:1:3 unexpected the number 6 after the value (a text with blanks is written in double quotes)
        5 + => --set x:1:4 expected a number after `+`, found the end of the file
        [ => --set x:1:1 unexpected character `[` (blocks and tables are written in `{ }`)
        5 [ => --set x:1:3 unexpected character `[` (blocks and tables are written in `{ }`)
        1 / 0 => --set x:1:5 division by 0
        "#,
        |value, want| assert_eq!(wrong(&text, &[("x", value)]), [want], "{value}"),
    );
}

#[test]
fn a_value_that_does_not_fit_names_the_setting_that_gave_it() {
    let text = format!("set $x=1\n{REST}");
    assert_eq!(
        wrong(&text, &[("x", "abc")]),
        ["test.f:2:57 `size` takes a whole number; `$x` is the text `abc` (given by --set x=abc)"]
    );
}

#[test]
fn a_wrong_value_is_reported_once_for_each_way_in_which_it_is_wrong() {
    let text = "set $n=abc\ndefine fileset name=f,path=/d,entries=$n,size=$n,dirwidth=5,reuse=$n\n\
                define process name=p { thread name=t { flowop hog value=$n,iters=$n } }";
    assert_eq!(
        common::findings(text),
        ["2:47 `size` takes a whole number; `$n` is the text `abc`"]
    );
    // An invalid value that is written without a variable is reported at every place.
    let written = text
        .replace("$n,", "x,")
        .replace("$n }", "x }")
        .replace("set x", "set $n");
    assert_eq!(common::findings(&written).len(), 2);
}

#[test]
fn settings_that_nothing_reads_are_refused_in_their_order() {
    let text = format!("set $x=1\n{REST}");
    assert_eq!(
        wrong(&text, &[("xx", "1"), ("$x", "2"), ("qqqq", "3")]),
        [
            "--set:1:1 the workload has no parameter `xx` (known here: `x`)",
            "--set:1:1 the workload has no parameter `$x` (without the dollar sign: --set x=…)",
            "--set:1:1 the workload has no parameter `qqqq` (known here: `x`)",
        ]
    );
    assert!(with(&text, &[("x", "2")]).is_ok());
}

#[test]
fn settings_may_depend_on_each_other_but_not_on_themselves() {
    let text = format!("set $x=1\nset $y=2\n{REST}");
    let size =
        |settings: &[(&str, &str)]| with(&text, settings).unwrap().filesets[0].size.constant();
    assert_eq!(
        size(&[("x", "$z + 1"), ("z", "$w * 2"), ("w", "5")]),
        Some(11)
    );
    assert_eq!(
        wrong(&text, &[("x", "$x")]),
        ["--set x:1:1 the setting of `x` depends on itself"]
    );
    let circle = wrong(&text, &[("x", "$a"), ("a", "$b"), ("b", "$a")]);
    assert_eq!(
        circle,
        [
            "--set b:1:1 the setting of `a` depends on itself",
            "--set:1:1 the workload has no parameter `a` (known here: `x`, `y`)",
            "--set:1:1 the workload has no parameter `b` (known here: `x`, `y`)"
        ]
    );
}

#[test]
fn variables_that_are_set_hide_those_of_the_environment() {
    let echo = |text: &str| {
        let plan = plan(&format!("set $x=1\n{text}\n{REST}"));
        match &plan.script[0] {
            plimsoll_plan::Phase::Echo { text } => text.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        echo("echo \"$date $(hostname) $x\""),
        "2026-01-02 client1 1"
    );
    assert_eq!(echo("set $date=never\necho \"$date\""), "never");
    assert_eq!(echo("echo ${hostname}"), "client1");
    assert_eq!(echo("echo word"), "word");
}

#[test]
fn a_missing_variable_offers_the_nearest_one() {
    let found = common::findings("set $nfiles=5\necho \"$nfile\"\necho \"$qqqq\"\necho \"$nfile\"");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with(
            "2:7 the variable `$nfile` is never set (did you mean `$nfiles`? if not, a profile"
        ),
        "{}",
        found[0]
    );
    assert!(
        found[1].starts_with("3:7 the variable `$qqqq` is never set (a profile"),
        "{}",
        found[1]
    );
    // The locals of a composite flowop are suggested in its body.
    let local = "define flowop name=c,$many=2 { flowop hog value=$mny }\n\
                 define process { thread { flowop c } }";
    assert!(common::findings(local)[0].contains("did you mean `$many`?"));
}

#[test]
fn draws_that_are_taken_once_follow_from_the_seed_and_not_from_each_other() {
    let text = |more: &str| {
        format!(
            "set $n=randvar(type=uniform,min=1,mean=1000000)\n\
             define fileset name=f,path=/d,entries=$n,dirwidth=5\n{more}\
             define fileset name=g,path=/e,entries=$n,leafdirs=$n,dirwidth=5\n\
             define process name=p,instances=$n {{ thread name=t {{ flowop hog name=h,value=$n }} }}"
        )
    };
    let numbers = |text: &str, seed: u64| {
        let overrides = Overrides {
            seed: Some(seed),
            ..Overrides::default()
        };
        let plan = lower_with(text, &overrides).unwrap_or_else(|e| panic!("{e}"));
        let mut all: Vec<u64> = plan.filesets.iter().map(|f| f.entries).collect();
        all.push(plan.filesets.last().unwrap().leaf_dirs);
        all.push(u64::from(plan.groups[0].process_instances));
        all
    };
    let one = numbers(&text(""), 5);
    assert_eq!(one, numbers(&text(""), 5));
    assert!(
        one.iter().zip(numbers(&text(""), 6)).all(|(a, b)| *a != b),
        "{one:?}"
    );
    // All draws differ.
    let mut distinct = one.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), one.len(), "{one:?}");
    // An additional draw of the first fileset does not change the draws of other filesets.
    let more = text("").replace("path=/d,entries=$n,", "path=/d,entries=$n,leafdirs=$n,");
    let changed = numbers(&more, 5);
    assert_eq!((changed[0], &changed[1..]), (one[0], &one[1..]));
}

#[test]
fn names_of_plans_are_those_of_the_files() {
    let text = format!("set $x=1\n{REST}");
    let named = |name: &str, kind: SourceKind| {
        let workload = parse(&text, name).unwrap();
        assert_eq!((workload.name(), workload.text()), (name, text.as_str()));
        let context: Context<'_> = context(kind);
        lower(&workload, &Overrides::default(), &context)
            .unwrap()
            .name
    };
    assert_eq!(named("/work/loads/my.load.f", SourceKind::File), "my.load");
    assert_eq!(named("my.load.f", SourceKind::Builtin), "my.load.f");
    assert_eq!(named("", SourceKind::File), "");
    let defaults: Vec<String> = parameters(&parse(&text, "t").unwrap())
        .into_iter()
        .map(|p| format!("{}={}={}", p.name, p.value, p.default))
        .collect();
    assert_eq!(defaults, ["x=1=1"]);
}
