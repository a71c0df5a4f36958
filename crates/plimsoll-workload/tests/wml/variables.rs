//! Variables, arithmetic, random variables, and the settings of the command line.

use super::common;

use common::{lower_with, messages, plan};
use plimsoll_plan::{Distribution, Overrides, Plan, Row, Variable};
use plimsoll_workload::wml::{parameters, parse};

const REST: &str = "define fileset name=f,path=/d,entries=5,dirwidth=5,size=$x\n\
    define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\nrun 1\n";

fn random(definition: &str) -> Variable {
    plan(&format!("{definition}\n{REST}")).variables.remove(0)
}

fn size(definitions: &str) -> u64 {
    let plan = plan(&format!("{definitions}\n{REST}"));
    plan.filesets[0].size.constant().unwrap()
}

#[test]
fn arithmetic_goes_from_left_to_right_in_whole_numbers() {
    assert_eq!(size("set $x=2 + 3 * 4"), 20);
    assert_eq!(size("set $a=10\nset $b=4\nset $x=$a / $b"), 2);
    assert_eq!(size("set $a=10k\nset $x=$a-1"), 10239);
    assert_eq!(size("set $a=8\nset $x=$a*$a/3"), 21);
}

#[test]
fn values_are_looked_up_when_they_are_used() {
    assert_eq!(size("set $y=3\nset $x=$y\nset $y=4"), 3);
    let late = format!("set $x=1\n{}", REST.replace("run 1", "set $x=9\nrun 1"));
    assert_eq!(plan(&late).filesets[0].size.constant(), Some(9));
}

#[test]
fn names_in_braces_and_parentheses() {
    assert_eq!(size("set $y=3\nset $x=${y} + $(y)"), 6);
}

#[test]
fn randvar_shapes() {
    let v = random("set $x=randvar(type=uniform,min=1k,mean=5k,round=512,seed=9)");
    let want = Distribution::Uniform {
        lower: 1024.0,
        upper: 9216.0,
    };
    assert_eq!((v.distribution, v.round, v.seed), (want, 512, Some(9)));
    assert_eq!((v.name.as_str(), v.min, v.max), ("x", Some(1024.0), None));
    let v = random("define randvar name=$x, type=gamma, min=1k, mean=5632, gamma=1500");
    let Distribution::Gamma {
        offset,
        shape,
        scale,
    } = v.distribution
    else {
        panic!()
    };
    assert_eq!((offset, shape, scale), (1024.0, 1.5, 3072.0));
    // Without a mean the shape is the mean.
    let v = random("set $x=randvar(type=gamma,gamma=100)");
    assert!((v.distribution.mean() - 0.1).abs() < 1e-12);
}

#[test]
fn tables_are_taken_as_they_are_or_stretched_about_min() {
    let v = random("set $x=randvar(type=tabular,min=1k,randtable={{80,1k,3k},{20,4k,8k}})");
    let row = |percent, min, max| Row { percent, min, max };
    let want = Distribution::Table {
        rows: vec![row(80.0, 1024.0, 3072.0), row(20.0, 4096.0, 8192.0)],
    };
    assert_eq!(v.distribution, want);
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

#[test]
fn cvar_shapes() {
    let of = |kind: &str, parameters: &str| {
        random(&format!(
            "set $x=cvar(type=cvar-{kind},parameters={parameters})"
        ))
        .distribution
    };
    use Distribution as D;
    assert_eq!(
        of("uniform", "lower:4;upper:8"),
        D::Uniform {
            lower: 4.0,
            upper: 8.0
        }
    );
    assert_eq!(
        of("normal", "mean:100;sigma:2.5"),
        D::Normal {
            mean: 100.0,
            sigma: 2.5
        }
    );
    assert_eq!(
        of("lognormal", "shape:0.5;scale:7"),
        D::Lognormal {
            mu: 7.0,
            sigma: 0.5
        }
    );
    assert_eq!(of("exponential", "mean:30"), D::Exponential { mean: 30.0 });
    let gamma = |shape, scale| D::Gamma {
        offset: 0.0,
        shape,
        scale,
    };
    assert_eq!(of("erlang", "shape:3;rate:0.5"), gamma(3.0, 2.0));
    assert_eq!(
        of("gamma", "mean:16384;gamma:1.5"),
        gamma(1.5, 16384.0 / 1.5)
    );
    assert_eq!(of("gamma", "mean:3000"), gamma(1.5, 2000.0));
    let triangle = D::Triangular {
        lower: 1.0,
        upper: 9.0,
        mode: 3.0,
    };
    assert_eq!(of("triangular", "lower:1;upper:9;mode:3"), triangle);
    assert_eq!(
        of("weibull", "shape:2;scale:5"),
        D::Weibull {
            shape: 2.0,
            scale: 5.0
        }
    );
}

#[test]
fn cvar_defaults_are_filebenchs() {
    let of = |kind: &str| random(&format!("set $x=cvar(type=cvar-{kind})")).distribution;
    use Distribution as D;
    assert_eq!(
        of("uniform"),
        D::Uniform {
            lower: 0.0,
            upper: 1.0
        }
    );
    assert_eq!(
        of("normal"),
        D::Normal {
            mean: 0.0,
            sigma: 1.0
        }
    );
    assert_eq!(
        of("lognormal"),
        D::Lognormal {
            mu: 1.0,
            sigma: 1.0
        }
    );
    assert_eq!(of("exponential"), D::Exponential { mean: 1.0 });
    assert_eq!(of("gamma").mean(), 4096.0);
    assert_eq!(
        of("weibull"),
        D::Weibull {
            shape: 1.0,
            scale: 1.0
        }
    );
    assert_eq!(of("triangular").mean(), 0.5);
}

#[test]
fn cvar_bounds_and_rounding() {
    let v =
        random("set $x=cvar(type=cvar-normal,parameters=mean:100;sigma:50,min=10,max=1k,round=8)");
    assert_eq!((v.min, v.max, v.round), (Some(10.0), Some(1024.0), 8));
}

#[test]
fn bad_random_variables_are_found_even_when_nothing_draws_from_them() {
    let with = |d: &str| messages(&format!("set $x=1\nset $y={d}\n{REST}"));
    assert_eq!(
        with("randvar(type=tabular,randtable={{50,1,2}})"),
        ["the percentages sum to 50, not to 100"]
    );
    assert_eq!(
        with("cvar(type=cvar-uniform,parameters=lower:9;upper:3)"),
        ["lower (9) must not exceed upper (3)"]
    );
    assert_eq!(
        with("cvar(type=cvar-erlang,parameters=shape:1.5)"),
        ["erlang needs a whole shape of at least 1 and a rate above 0, has 1.5 and 1"]
    );
    assert_eq!(
        with("cvar(type=cvar-gamma,parameters=gamma:0)"),
        ["shape must be above 0, is 0"]
    );
    assert_eq!(
        with("cvar(type=cvar-normal,min=9,max=3)"),
        ["min (9) must not exceed max (3)"]
    );
}

#[test]
fn the_source_of_random_numbers_is_noted() {
    let plan = plan(&format!(
        "set $x=randvar(type=uniform,mean=9,randsrc=urandom)\n{REST}"
    ));
    assert!(
        plan.notes[0]
            .text
            .starts_with("randsrc=urandom has no effect here")
    );
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
fn settings_of_the_command_line_win_over_every_set() {
    let text = format!("set $y=2\nset $x=1\nset $x=$y\n{REST}");
    assert_eq!(
        set(&text, &[("x", "8k")]).filesets[0].size.constant(),
        Some(8192)
    );
    assert_eq!(
        set(&text, &[("y", "5")]).filesets[0].size.constant(),
        Some(5)
    );
    assert_eq!(
        set(&text, &[("x", "1"), ("x", "3")]).filesets[0]
            .size
            .constant(),
        Some(3)
    );
    assert_eq!(
        set(&text, &[("x", "$y * 2")]).filesets[0].size.constant(),
        Some(4)
    );
}

#[test]
fn a_variable_that_is_only_used_may_be_set_from_outside() {
    let plan = set(REST, &[("x", "3k")]);
    assert_eq!(plan.filesets[0].size.constant(), Some(3072));
    let p = &plan.parameters[0];
    assert_eq!(
        (p.name.as_str(), p.value.as_str(), p.default.as_str()),
        ("x", "3k", "")
    );
    assert_eq!(messages(REST), ["the variable `$x` is never set"]);
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
fn a_missing_variable_says_who_may_set_it() {
    let Err(e) = lower_with(REST, &Overrides::default()) else {
        panic!("accepted");
    };
    let help = e.findings()[0].help.clone().unwrap();
    assert!(
        help.contains("a profile (`x = …;`) or --set x=… may set it"),
        "{help}"
    );
}

#[test]
fn a_setting_may_not_lead_in_a_circle() {
    let overrides = Overrides {
        sets: vec![("x".into(), "$y".into()), ("y".into(), "$x".into())],
        ..Overrides::default()
    };
    let Err(e) = lower_with(REST, &overrides) else {
        panic!("accepted");
    };
    let first = &e.findings()[0];
    assert_eq!(first.file, "--set y");
    assert_eq!(first.message, "the setting of `x` depends on itself");
}

#[test]
fn a_setting_may_be_random_or_make_a_random_variable_fixed() {
    let text = format!("set $x=randvar(type=uniform,mean=9)\n{REST}");
    assert_eq!(
        set(&text, &[("x", "4k")]).filesets[0].size.constant(),
        Some(4096)
    );
    let random = set(&text, &[("x", "cvar(type=cvar-gamma,parameters=mean:100)")]);
    assert_eq!(random.variables[0].distribution.mean(), 100.0);
}

#[test]
fn parameters_have_value_default_and_meaning() {
    let text = format!("set $n=4 # how many\nset $x=$n * 2\nset $b=true\n{REST}");
    let shown = |sets: &[(&str, &str)]| -> Vec<String> {
        let plan = set(&text, sets);
        let show = |p: &plimsoll_plan::Parameter| {
            format!("{}={} [{}] {}", p.name, p.value, p.default, p.meaning)
        };
        plan.parameters.iter().map(show).collect()
    };
    assert_eq!(
        shown(&[]),
        ["n=4 [4] how many", "x=8 [$n * 2] ", "b=true [true] "]
    );
    assert_eq!(
        shown(&[("n", "16k")])[..2],
        ["n=16k [4] how many", "x=32768 [$n * 2] "]
    );
    let workload = parse(&text, "t").unwrap();
    let names: Vec<String> = parameters(&workload).into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["n", "x", "b"]);
}

#[test]
fn a_wrong_setting_points_at_itself() {
    let overrides = |n: &str, v: &str| Overrides {
        sets: vec![(n.into(), v.into())],
        ..Overrides::default()
    };
    let text = format!("set $x=1\n{REST}");
    let fail = |n: &str, v: &str| {
        let Err(e) = lower_with(&text, &overrides(n, v)) else {
            panic!("accepted {n}={v}")
        };
        let f = e.findings().remove(0);
        (f.file, f.message, f.help)
    };
    let (file, message, _) = fail("x", "a b");
    assert_eq!(
        (file.as_str(), message.as_str()),
        ("--set x", "unexpected `b` after the value")
    );
    let (_, message, _) = fail("x", "");
    assert_eq!(message, "the setting has no value");
    let (_, message, help) = fail("$x", "1");
    assert_eq!(message, "the workload has no parameter `$x`");
    assert_eq!(help.as_deref(), Some("without the dollar sign: --set x=…"));
}

#[test]
fn one_missing_variable_is_reported_once() {
    let text = "define fileset name=f,path=$dir,entries=$n,dirwidth=5\n\
                define fileset name=g,path=$dir,entries=$n,dirwidth=5\n";
    let text = format!(
        "{text}{}",
        REST.replace(
            "define fileset name=f,path=/d,entries=5,dirwidth=5,size=$x\n",
            ""
        )
    );
    assert_eq!(
        messages(&text),
        [
            "the variable `$dir` is never set",
            "the variable `$n` is never set"
        ]
    );
}

#[test]
fn a_bad_set_does_not_blame_its_uses() {
    assert_eq!(
        messages(&format!("set $x=1 / 0\n{REST}")),
        ["division by 0"]
    );
}
