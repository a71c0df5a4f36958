//! The Python module: with real results, and as type checkers see it.

use crate::common::python::{printed, python, source_tree, tool};
use crate::common::{Bench, Ended, load_tests};
use std::path::Path;
use std::process::Command;

const CHECKS: &str = "crates/plimsoll/tests/e2e/python_module";

/// Results of three kinds, and damaged ones, in `all`.
fn results() -> Bench {
    let bench = Bench::on_tmpfs();
    let all = bench.path("all");
    std::fs::create_dir(&all).unwrap();
    let quick = ["--set", "nfiles=50", "--time=200ms", "--interval=100ms"];
    let keep = |name: &str| {
        let made = load_tests::only_results(&bench);
        std::fs::rename(made, all.join(name)).unwrap();
    };
    bench.run_in_work("varmail", &quick).expect_code(0);
    keep("run");
    let mut repeated = quick.to_vec();
    repeated.push("--repeat=2");
    bench.run_in_work("varmail", &repeated).expect_code(0);
    keep("repeats");
    let target = "--target=null:?latency=4ms&servers=8";
    let virtually = ["--time=2s", "--warmup=1s", "--clock=virtual", target];
    let mut curve = load_tests::command(&bench, "curve", &virtually);
    curve.arg("--load=5..10/5");
    Ended::of(curve).expect_code(0);
    keep("curve");
    let copied = Command::new("cp")
        .arg("-r")
        .args([all.join("run"), all.join("damaged")])
        .status();
    assert!(copied.unwrap().success());
    std::fs::write(all.join("damaged/histograms.hlog"), "Tag=x/read,0.0\n").unwrap();
    bench
}

#[test]
fn frames_hold_what_the_results_say() {
    let bench = results();
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut check = python();
    check
        .arg(source_tree().join(CHECKS).join("check.py"))
        .arg(bench.path("all"))
        .env("PYTHONPATH", source_tree().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PATH", format!("{}:{path}", program.display()));
    let said = printed(check);
    assert_eq!(said.trim(), env!("CARGO_BIN_EXE_plimsoll"));
}

#[test]
fn types_are_what_they_are_declared_to_be() {
    let bench = Bench::on_tmpfs();
    let mypy = || {
        let mut command = python();
        command
            .args(["-m", "mypy", "--strict", "--cache-dir"])
            .arg(bench.path("cache"))
            .current_dir(source_tree().join("python"));
        command
    };
    assert!(tool("python").is_dir());
    let mut module = mypy();
    module.args(["--python-version=3.11", "plimsoll"]);
    printed(module);
    let typed = source_tree().join(CHECKS).join("typed.py");
    let mut user = mypy();
    user.arg(&typed)
        .env("MYPYPATH", source_tree().join("python"));
    printed(user);
    // What it checks is not accepted for any type.
    let text = std::fs::read_to_string(&typed).unwrap();
    let wrong = text.replace("polars\").histograms", "pandas\").histograms");
    assert_ne!(wrong, text);
    std::fs::write(bench.path("wrong.py"), wrong).unwrap();
    let mut user = mypy();
    user.arg(bench.path("wrong.py"))
        .env("MYPYPATH", source_tree().join("python"));
    let ended = Ended::of(user);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("assert-type"), "{}", ended.stdout);
}
