//! Variables, arithmetic, random variables, and the settings of the command line.

use super::common;

use crate::tables::{each_row, halves};
use common::{lower_with, messages, plan};
use plimsoll_plan::{Distribution, Overrides, Plan, Variable};
use plimsoll_workload::wml::{parameters, parse};

const REST: &str = "define fileset name=f,path=/d,entries=5,dirwidth=5,size=$x\n\
    define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\nrun 1\n";

fn random(definition: &str) -> Variable {
    plan(&format!("{definition}\n{REST}")).variables.remove(0)
}

/// Distribution and bounds of the random variable `$x` as the Plan prints them.
fn printed(definition: &str) -> String {
    let text = plan(&format!("{definition}\n{REST}")).to_string();
    let line = text.lines().find_map(|l| l.strip_prefix("  $x: "));
    line.unwrap().to_owned()
}

fn size(definitions: &str) -> u64 {
    let plan = plan(&format!("{definitions}\n{REST}"));
    plan.filesets[0].size.constant().unwrap()
}

#[test]
fn values_are_worked_out_from_left_to_right_when_they_are_set() {
    for (definitions, expected) in [
        ("set $x=2 + 3 * 4", 20),
        ("set $a=10\nset $b=4\nset $x=$a / $b", 2),
        ("set $a=10k\nset $x=$a-1", 10239),
        ("set $a=8\nset $x=$a*$a/3", 21),
        ("set $y=3\nset $x=$y\nset $y=4", 3),
        ("set $y=3\nset $x=${y} + $(y)", 6),
    ] {
        assert_eq!(size(definitions), expected, "{definitions}");
    }
    // A fileset that is created by `run` uses the values that its variables have at the `run` statement.
    let late = format!("set $x=1\n{}", REST.replace("run 1", "set $x=9\nrun 1"));
    assert_eq!(plan(&late).filesets[0].size.constant(), Some(9));
}

#[test]
fn random_variables_have_the_parameters_and_defaults_of_filebench() {
    each_row(
        r#"
        set $x=randvar(type=uniform,min=1k,mean=5k,round=512)
            => uniform from 1024 to 9216, at least 1024, multiples of 512
        define randvar name=$x, type=gamma, min=1k, mean=5632, gamma=1500
            => gamma, mean 5632, shape 1.5, above 1024
        // Without a mean the shape is the mean.
        set $x=randvar(type=gamma,gamma=100) => gamma, mean 0.1, shape 0.1
        set $x=randvar(type=tabular,min=1k,randtable={{80,1k,3k},{20,4k,8k}})
            => table: 80 % 1024 to 3072, 20 % 4096 to 8192
        "#,
        |definition, expected| {
            let found = printed(definition);
            assert!(found.starts_with(expected), "{definition}: {found}");
        },
    );
    assert_eq!(random("set $x=randvar(type=uniform,seed=9)").seed, Some(9));
    each_row(
        r#"
        uniform | lower:4;upper:8 => uniform from 4 to 8
        uniform | => uniform from 0 to 1
        normal | mean:100;sigma:2.5 => normal, mean 100, deviation 2.5
        normal | => normal, mean 0, deviation 1
        lognormal | shape:0.5;scale:7 => lognormal, mean of the logarithm 7, deviation 0.5
        lognormal | => lognormal, mean of the logarithm 1, deviation 1
        exponential | mean:30 => exponential, mean 30
        exponential | => exponential, mean 1
        erlang | shape:3;rate:0.5 => gamma, mean 6, shape 3
        gamma | mean:16384;gamma:2.5 => gamma, mean 16384, shape 2.5
        gamma | mean:3000 => gamma, mean 3000, shape 1.5
        gamma | => gamma, mean 4096, shape 1.5
        triangular | lower:1;upper:9;mode:3 => triangular from 1 to 9, peak at 3
        triangular | => triangular from 0 to 1, peak at 0.5
        weibull | shape:2;scale:5 => weibull, shape 2, scale 5
        weibull | => weibull, shape 1, scale 1
        "#,
        |row, expected| {
            let (kind, parameters) = halves(row);
            let parameters = match parameters {
                "" => String::new(),
                given => format!(",parameters={given}"),
            };
            let definition = format!("set $x=cvar(type=cvar-{kind}{parameters})");
            assert_eq!(printed(&definition), expected, "{definition}");
        },
    );
    assert_eq!(
        printed("set $x=cvar(type=cvar-exponential,parameters=mean:100,min=10,max=1k,round=8)"),
        "exponential, mean 100, from 10 to 1024, multiples of 8"
    );
}

#[test]
fn tables_are_stretched_about_min() {
    let v =
        random("set $x=randvar(type=tabular,min=1k,mean=10k,randtable={{80,1k,3k},{20,4k,8k}})");
    assert!((v.distribution.mean() - 10_240.0).abs() < 1e-6);
    let Distribution::Table { rows } = v.distribution else {
        panic!()
    };
    assert_eq!(rows[0].min, 1024.0);
    let ratio = (rows[1].max - 1024.0) / (rows[0].max - 1024.0);
    assert!((ratio - 3.5).abs() < 1e-9, "proportions stay: {ratio}");
}

fn set(text: &str, sets: &[(&str, &str)]) -> Plan {
    let overrides = Overrides {
        sets: sets
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect(),
        ..Overrides::default()
    };
    lower_with(text, &overrides).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn variables_that_are_read_and_never_set_are_parameters_without_a_default() {
    let text = format!("# $x - bytes of each file\nset $n=4\nusage \"for $whom\"\n{REST}");
    let workload = parse(&text, "t").unwrap();
    let shown: Vec<String> = parameters(&workload)
        .iter()
        .map(|p| format!("{}={} ({})", p.name, p.default, p.meaning))
        .collect();
    assert_eq!(
        shown,
        [
            "n=4 ()",
            "whom= (never set in the workload)",
            "x= (bytes of each file (never set in the workload))"
        ]
    );
}

#[test]
fn a_setting_is_taken_where_nothing_that_is_carried_out_reads_it() {
    let composite =
        "define flowop name=unused { flowop read name=r,filesetname=f,iosize=$io,fd=1 }";
    let text = format!("set $x=1\n{composite}\n{REST}");
    let plan = set(&text, &[("io", "8k")]);
    let names: Vec<&str> = plan.parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["x", "io"]);
    let overrides = Overrides {
        sets: vec![("ios".into(), "8k".into())],
        ..Overrides::default()
    };
    let Err(e) = lower_with(&text, &overrides) else {
        panic!("accepted a setting that the file does not read");
    };
    assert_eq!(
        e.findings()[0].message,
        "the workload has no parameter `ios`"
    );
}

#[test]
fn settings_of_the_command_line_win_over_every_set() {
    let text = format!("set $y=2\nset $x=1\nset $x=$y\n{REST}");
    let random = format!("set $x=randvar(type=uniform,mean=9)\n{REST}");
    for (text, settings, size) in [
        (&text, &[("x", "8k")][..], 8192),
        (&text, &[("y", "5")], 5),
        (&text, &[("x", "1"), ("x", "3")], 3),
        (&text, &[("x", "$y * 2")], 4),
        (&random, &[("x", "4k")], 4096),
    ] {
        let plan = set(text, settings);
        assert_eq!(plan.filesets[0].size.constant(), Some(size), "{settings:?}");
    }
    let random = set(&text, &[("x", "cvar(type=cvar-gamma,parameters=mean:100)")]);
    assert_eq!(random.variables[0].distribution.mean(), 100.0);
}

#[test]
fn a_bad_set_does_not_blame_its_uses() {
    assert_eq!(
        messages(&format!("set $x=1 / 0\n{REST}")),
        ["division by 0"]
    );
}
