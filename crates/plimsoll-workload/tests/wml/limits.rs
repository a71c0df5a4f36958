//! Limits of a workload: the maximum itself, and one above the maximum.

use super::common;

use common::{context, findings, plan};
use plimsoll_plan::{Overrides, Phase, SourceKind};
use plimsoll_workload::NamedText;
use plimsoll_workload::wml::{Context, lower, parse};

const PROCESS: &str = "define process { thread { flowop hog value=1 } }\n";

#[test]
fn statements_of_all_loops_count() {
    let echoes = |n: usize| {
        let lines = "echo x\n".repeat(n);
        plan(&format!("{PROCESS}{lines}run 1")).script.len()
    };
    assert_eq!(echoes(19_998), 19_998 + 5);
    let text = |n: usize| {
        format!(
            "{PROCESS}foreach $i in 1, 2 {{\n{}}}\nrun 1",
            "echo x\n".repeat(n)
        )
    };
    // With 9999 statements in the loop, the process, the loop and two repetitions are 20 000 statements; the `run`
    // exceeds the limit.
    assert_eq!(findings(&text(9_998)), [""; 0]);
    assert_eq!(
        findings(&text(9_999)),
        ["10003:1 more than 20000 statements are executed"]
    );
}

#[test]
fn filesets_have_a_maximum() {
    let sets = |n: usize| {
        let sets: String = (0..n)
            .map(|i| format!("define fileset name=f{i},path=/d,entries=1,dirwidth=5\n"))
            .collect();
        findings(&format!("{sets}{PROCESS}"))
    };
    assert_eq!(sets(1000), [""; 0]);
    assert_eq!(sets(1001), ["1001:1 more than 1000 filesets are defined"]);
}

/// A composite of `n` steps, and a thread with the flowops `uses`.
fn steps(n: usize, uses: &str) -> String {
    let flowops = "flowop hog name=h,value=1\n".repeat(n);
    format!("define flowop name=c {{\n{flowops}}}\ndefine process {{ thread {{\n{uses}}} }}\n")
}

#[test]
fn steps_of_all_threads_have_a_maximum() {
    let uses = "flowop c name=u\n";
    // Each use of a composite is a step too.
    assert_eq!(findings(&steps(999, &uses.repeat(100))), [""; 0]);
    let over = format!("{}flowop hog value=1\n", uses.repeat(100));
    assert_eq!(
        findings(&steps(999, &over)),
        [
            "1103:8 the threads have more than 100000 steps (composite flowops multiply when they nest)"
        ]
    );
    // Steps of another thread count as well.
    let two =
        steps(999, &uses.repeat(100)) + "define process { thread {\nflowop hog value=1\n} }\n";
    assert_eq!(
        findings(&two),
        [
            "1105:8 the threads have more than 100000 steps (composite flowops multiply when they nest)"
        ]
    );
}

#[test]
fn work_of_all_runs_has_a_maximum() {
    // 20 runs lower 50 uses with 999 steps each, 1 000 000 steps in total; the first use of the next run exceeds the
    // limit.
    let text = steps(999, &"flowop c name=u\n".repeat(50));
    assert_eq!(
        findings(&format!("{text}{}", "run 1\n".repeat(21))),
        ["1003:8 the workload has too many runs, filesets and steps"]
    );
}

#[test]
fn composites_nest_up_to_their_limit() {
    let nested = |depth: usize| {
        let inner: String = (1..depth)
            .map(|i| {
                format!(
                    "define flowop name=c{i} {{ flowop c{} name=n{i} }}\n",
                    i - 1
                )
            })
            .collect();
        findings(&format!(
            "define flowop name=c0 {{ flowop hog value=1 }}\n{inner}\
             define process {{ thread {{ flowop c{} }} }}\n",
            depth - 1
        ))
    };
    assert_eq!(nested(32), [""; 0]);
    assert_eq!(
        nested(33),
        ["2:32 composite flowops lie more than 32 deep in each other"]
    );
}

#[test]
fn loads_nest_up_to_their_limit() {
    let with = |depth: usize| {
        let load = |name: &str| {
            let n: usize = name.parse().unwrap();
            let text = match n {
                1 => "echo \"deepest\"\n".to_string(),
                n => format!("load \"{}\"\n", n - 1),
            };
            let name = format!("l{n}");
            Some(NamedText { name, text })
        };
        let workload = parse(&format!("{PROCESS}load \"{depth}\"\nrun 1"), "main.f").unwrap();
        let context = Context {
            load: &load,
            ..context(SourceKind::File)
        };
        lower(&workload, &Overrides::default(), &context).map_err(|e| {
            let found = e.findings().remove(0);
            (found.file, found.line, found.column, found.message)
        })
    };
    let deepest = Phase::Echo {
        text: "deepest".into(),
    };
    assert_eq!(with(8).unwrap().script[0], deepest);
    let wrong = (
        "l2".to_string(),
        1,
        6,
        "too many workloads are loaded".to_string(),
    );
    assert_eq!(with(9).unwrap_err(), wrong);
}

#[test]
fn texts_of_all_loads_have_a_maximum() {
    let with = |loads: usize| {
        let load = |_: &str| {
            Some(NamedText {
                name: "l".into(),
                text: "echo \"x\"\n".into(),
            })
        };
        let workload = parse(
            &format!("{PROCESS}{}run 1", "load l\n".repeat(loads)),
            "main.f",
        )
        .unwrap();
        let context = Context {
            load: &load,
            ..context(SourceKind::File)
        };
        let result = lower(&workload, &Overrides::default(), &context);
        result.map(|p| p.script.len()).map_err(|e| {
            let found = e.findings().remove(0);
            (found.line, found.message)
        })
    };
    // The workload itself is the first text.
    assert_eq!(with(999), Ok(999 + 5));
    assert_eq!(
        with(1000),
        Err((1001, "too many workloads are loaded".into()))
    );
}
