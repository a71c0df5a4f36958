//! What is reported of values that do not fit: location, message and help.

use super::common;

use crate::tables::each_row;
use common::{fileset_findings as fileset, findings, lower_with, plan};
use plimsoll_plan::{Overrides, Value};

const SET: &str = "define fileset name=set,path=/data,entries=10,dirwidth=5\n";

/// The findings of a workload with `set $x=…` in line 1.
fn set(value: &str) -> Vec<String> {
    findings(&format!(
        "set $x={value}\ndefine process {{ thread {{ flowop hog value=1 }} }}"
    ))
}

#[test]
fn every_type_of_value_is_named_where_it_does_not_fit() {
    for (value, shown) in [
        ("abc", "found the text `abc`"),
        ("\"a b\"", "found the text `a b`"),
        ("true", "`true` is `true`"),
        ("1.5s", "`1.5s` is the time 1.5s"),
    ] {
        assert_eq!(
            fileset(&format!("size={value}")),
            [format!("1:57 `size` takes a whole number; {shown}")],
            "{value}"
        );
    }
    assert_eq!(
        findings(&format!(
            "set $x=10ms\n{SET}define process {{ thread {{\nflowop hog value=$x\n}} }}"
        )),
        ["4:18 `value` takes a whole number; `$x` is the time 10ms"]
    );
    for (value, shown) in [
        ("5", "the number 5"),
        ("2m", "the number 2m"),
        ("3s", "the time 3s"),
        ("maybe", "the text `maybe`"),
    ] {
        assert_eq!(
            fileset(&format!("reuse={value}")),
            [format!(
                "1:58 `reuse` takes `true` or `false`; this is {shown}"
            )]
        );
    }
    assert_eq!(
        findings(
            "set $r=randvar(type=uniform,mean=3)\ndefine fileset name=$r,path=/d,dirwidth=5\nrun 1"
        )[0],
        "2:21 `name` takes a text; this is a random variable"
    );
}

#[test]
fn numbers_times_and_flags_are_texts_too() {
    let name = |value: &str| {
        let text = format!(
            "set $x={value}\n{SET}define process name=$x {{ thread {{ flowop hog value=1 }} }}"
        );
        plan(&text).groups[0].process.clone()
    };
    assert_eq!(name("2k"), "2048");
    assert_eq!(name("2m"), "2097152");
    assert_eq!(name("1500ms"), "1.5s");
    assert_eq!(name("false"), "false");
    assert_eq!(name("\"a$(hostname)b\""), "aclient1b");
    assert_eq!(name("$date"), "2026-01-02");
}

#[test]
fn a_time_for_the_seconds_of_a_statement_is_put_right() {
    let run = |statement: &str| {
        findings(&format!(
            "{SET}define process {{ thread {{ flowop hog value=1 }} }}\n{statement}"
        ))
    };
    assert_eq!(
        run("psrun 2min 9"),
        ["3:7 `psrun` takes a whole number; `2min` is the time 120s (seconds without a unit: 120)"]
    );
    assert_eq!(
        run("sleep 3s\nwarmup 4s"),
        [
            "3:7 `sleep` takes a whole number; `3s` is the time 3s (seconds without a unit: 3)",
            "4:8 `warmup` takes a whole number; `4s` is the time 4s (seconds without a unit: 4)"
        ]
    );
    assert_eq!(
        run("run 1.5s"),
        ["3:5 `run` takes a whole number; `1.5s` is the time 1.5s"]
    );
}

#[test]
fn times_of_statements_have_a_maximum() {
    let run = |statement: &str| {
        let text =
            format!("{SET}define process {{ thread {{ flowop hog value=1 }} }}\n{statement}");
        lower_with(&text, &Overrides::default()).map_err(|e| e.findings().remove(0).message)
    };
    for statement in [
        "run 1000000000",
        "sleep 1000000000",
        "psrun 1000000000 5",
        "psrun -1000000000",
    ] {
        assert!(run(statement).is_ok(), "{statement}");
    }
    assert_eq!(
        run("run 1000000001").unwrap_err(),
        "`run` of 1000000001 seconds"
    );
    assert_eq!(
        run("sleep 1000000001").unwrap_err(),
        "`sleep` of 1000000001 seconds"
    );
    assert_eq!(
        run("warmup 2g").unwrap_err(),
        "`warmup` of 2147483648 seconds"
    );
    assert_eq!(
        run("psrun 5 1000000001").unwrap_err(),
        "`run` of 1000000001 seconds"
    );
    for period in ["1000000001", "-1000000001", "0"] {
        assert_eq!(
            run(&format!("psrun {period} 5")).unwrap_err(),
            format!("the period of `psrun` is {period} seconds")
        );
    }
}

#[test]
fn minutes_of_a_delay_are_noted() {
    let notes = |value: &str| {
        let text = format!("{SET}define process {{ thread {{\nflowop delay value={value}\n}} }}");
        let notes = plan(&text).notes;
        let shown = notes.iter().map(|n| {
            let place = n.location.as_ref().unwrap();
            format!("{}:{} {}", place.line, place.column, n.text)
        });
        shown.collect::<Vec<_>>()
    };
    assert_eq!(notes("2m"), ["3:20 `value` of 2m is 2 minutes"]);
    assert_eq!(notes("1m"), ["3:20 `value` of 1m is 1 minute"]);
    assert_eq!(notes("2min"), [""; 0]);
}

#[test]
fn arithmetic_is_on_numbers_that_fit() {
    each_row(
        r#"
        9223372036854775807 + 1 => 1:8 the result of 9223372036854775807 + 1 is too large
        0 - 9223372036854775807 - 2 => 1:8 the result of -9223372036854775807 - 2 is too large
        4294967296 * 4294967296 => 1:8 the result of 4294967296 * 4294967296 is too large
        1 + true => 1:12 arithmetic needs whole numbers; this is `true`
        5s * 2 => 1:8 arithmetic needs whole numbers; this is the time 5s
        "#,
        |value, want| assert_eq!(set(value), [want], "{value}"),
    );
    let size = |value: &str| {
        let text = format!(
            "set $x={value}\ndefine fileset name=f,path=/d,entries=1,dirwidth=5,size=$x\n\
            define process {{ thread {{ flowop hog value=1 }} }}"
        );
        plan(&text).filesets[0].size
    };
    assert_eq!(size("-7 / -2 * 2m - 1"), Value::Const((3 << 21) - 1));
    assert_eq!(size("-1m + 2m"), Value::Const(1 << 20));
    assert_eq!(size("0 / 5"), Value::Const(0));
}

#[test]
fn random_variables_are_not_numbers_or_texts() {
    let with = |rest: &str| {
        findings(&format!(
            "set $r=randvar(type=uniform,mean=3)\n{rest}\ndefine process {{ thread {{ flowop hog value=1 }} }}"
        ))
    };
    assert_eq!(
        with("set $s=randvar(type=uniform,mean=$r)"),
        ["2:34 `mean` of a random variable must not be random itself"]
    );
    assert_eq!(
        with("define fileset name=f,path=/d,entries=5,dirwidth=5,size=$r,sizegamma=1500"),
        ["2:70 the size is a random variable already (leave out one of the two)"]
    );
}

#[test]
fn definitions_of_random_variables_are_checked() {
    each_row(
        r#"
        randvar(type=cvar-normal)
            => 1:21 unknown type `cvar-normal` of `randvar` (write cvar(type=cvar-normal, parameters=…))
        cvar(type=tabular) => 1:18 unknown type `tabular` of `cvar` (write randvar(type=tabular, …))
        cvar(type=uniform)
            => 1:18 unknown type `uniform` of `cvar` (write type=cvar-uniform, or randvar(type=uniform, …))
        randvar(type=gamma,randtable={{100,1,2}})
            => 1:27 `randtable` requires type=tabular, not type=gamma
        randvar(type=gamma,gamma=0)
            => 1:33 `gamma` must be above 0, is 0 (a shape of 1.5 is written gamma=1500)
        randvar(type=uniform,min=5)
            => 1:8 without `mean` the mean is 1.5, which is below min (5) (add mean=…)
        randvar(type=tabular,min=9,mean=8,randtable={{100,9,9}})
            => 1:40 the mean (8) must not be below min (9)
        randvar(type=tabular,min=9,mean=20,randtable={{100,9,9}})
            => 1:40 the table's own mean (9) is not above min (9): it cannot be stretched to a mean of 20
        randvar(type=tabular,randtable={{-1,1,2},{101,1,2}})
            => 1:41 the row {-1, 1, 2} needs a percentage and 0 ≤ min ≤ max
        randvar(type=tabular,randtable={{100,-1,2}})
            => 1:41 the row {100, -1, 2} needs a percentage and 0 ≤ min ≤ max
        randvar(type=uniform,randsrc=urandm)
            => 1:37 unknown source of random numbers `urandm` (did you mean `urandom`?)
        cvar(type=cvar-normal,parameters=mean:1;mean:2) => 1:41 the parameter `mean` is given twice
        cvar(type=cvar-normal,parameters=sigma)
            => 1:41 the parameter `sigma` of `cvar-normal` takes a number, found `` (write key:value;key:value with plain numbers, such as mean:16384;gamma:1.5)
        cvar(type=cvar-erlang,parameters=shape:0)
            => 1:41 erlang needs a whole shape of at least 1 and a rate above 0, has 0 and 1
        cvar(type=cvar-erlang,parameters=shape:1.5)
            => 1:41 erlang needs a whole shape of at least 1 and a rate above 0, has 1.5 and 1
        cvar(type=cvar-erlang,parameters=rate:0)
            => 1:41 erlang needs a whole shape of at least 1 and a rate above 0, has 1 and 0
        cvar(type=cvar-uniform,parameters=lower:9;upper:3)
            => 1:8 lower (9) must not exceed upper (3)
        cvar(type=cvar-normal,min=9,max=3) => 1:8 min (9) must not exceed max (3)
        randvar(type=uniform,mean=5,round=-1) => 1:42 `round` must not be negative, is -1
        "#,
        |value, want| assert_eq!(set(value), [want], "{value}"),
    );
    // Attributes without an effect on a table are noted.
    let text = "set $x=randvar(type=tabular,gamma=5,randtable={{100,0,2}},randsrc=rand48)\n\
                define process { thread { flowop hog value=1 } }";
    let notes: Vec<String> = plan(text).notes.into_iter().map(|n| n.text).collect();
    assert_eq!(
        notes,
        [
            "`gamma` has no effect on a tabular random variable",
            "randsrc=rand48 has no effect here: all draws come from the Plan's seed"
        ]
    );
}

#[test]
fn texts_have_a_maximum_with_their_variables() {
    let with = |bytes: usize| {
        let text = format!(
            "set $a=\"{}\"\necho \"$a$a\"\ndefine process {{ thread {{ flowop hog value=1 }} }}",
            "x".repeat(bytes)
        );
        findings(&text)
    };
    assert_eq!(with(8 << 10), [""; 0]);
    assert_eq!(
        with((8 << 10) + 1),
        ["2:6 a text has at most 16384 bytes, with its variables"]
    );
    let word = |bytes: usize| {
        findings(&format!(
            "echo {}\ndefine process {{ thread {{ flowop hog value=1 }} }}",
            "x".repeat(bytes)
        ))
    };
    assert_eq!(word(16 << 10), [""; 0]);
    assert_eq!(
        word((16 << 10) + 1),
        ["1:6 a text has at most 16384 bytes, with its variables"]
    );
}

#[test]
fn errors_of_lowering_stop_at_ten() {
    let lines: String = (0..12).map(|i| format!("set $x{i}=5 / 0\n")).collect();
    let found = findings(&lines);
    assert_eq!(found.len(), 10);
    assert_eq!(found[9], "10:13 division by 0");
}
