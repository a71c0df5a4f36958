//! The program as a person or a script calls it.

use assert_cmd::Command;
use std::path::Path;

fn plimsoll(args: &[&str]) -> std::process::Output {
    Command::cargo_bin("plimsoll")
        .unwrap()
        .args(args)
        .env_remove("NO_COLOR")
        .output()
        .unwrap()
}

fn stdout(args: &[&str]) -> String {
    let out = plimsoll(args);
    let error = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{args:?}: {error}");
    String::from_utf8(out.stdout).unwrap()
}

/// Code and standard error of a call that is refused; nothing goes to standard output.
fn refused(args: &[&str]) -> (i32, String) {
    let out = plimsoll(args);
    assert!(out.stdout.is_empty(), "{args:?}");
    (
        out.status.code().unwrap(),
        String::from_utf8(out.stderr).unwrap(),
    )
}

fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_list_has_name_size_source_and_meaning() {
    let list = stdout(&["workloads", "list"]);
    let line = list.lines().find(|l| l.starts_with("fileserver ")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(&words[2..6], ["GiB", "built-in", "A", "file"], "{line}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["workloads", "list", "--format=json"])).unwrap();
    let server = json
        .as_array()
        .unwrap()
        .iter()
        .find(|w| w["name"] == "fileserver")
        .unwrap();
    assert_eq!(server["files"], 10_000);
    assert!(server["bytes"].as_u64().unwrap() > 1 << 30);
}

#[test]
fn show_prints_parameters_and_the_text() {
    let shown = stdout(&["workloads", "show", "varmail"]);
    assert!(shown.starts_with("varmail: A mail server"), "{shown}");
    assert!(shown.contains("\n  nthreads        16 "), "{shown}");
    let text = stdout(&["workloads", "show", "varmail", "--print-source"]);
    assert!(shown.ends_with(&text) && text.contains("define fileset"));
}

#[test]
fn a_plan_shows_what_the_command_line_changed() {
    let plan = stdout(&[
        "run",
        "varmail",
        "--dry-run",
        "--dir",
        "/somewhere",
        "--set",
        "nthreads=3",
        "--time",
        "5s",
        "--warmup",
        "2s",
        "--seed",
        "9",
        "--target",
        "null:",
    ]);
    for part in [
        "seed      9",
        "/somewhere",
        "workers: 3\n",
        "run 5s",
        "run 2s",
        "instead of 16",
    ] {
        assert!(plan.contains(part), "no `{part}` in\n{plan}");
    }
}

#[test]
fn a_plan_in_json_is_the_plan() {
    let args = [
        "run",
        "varmail",
        "--dry-run",
        "--format",
        "json",
        "--ops",
        "5/worker",
        "--drop-caches",
        "--target=null",
    ];
    let plan: plimsoll_plan::Plan = serde_json::from_str(&stdout(&args)).unwrap();
    assert_eq!(plan.name, "varmail");
    assert_eq!(
        plan.options.ops,
        Some(plimsoll_plan::OpsLimit::PerWorker(5))
    );
    assert_eq!(plan.options.drop_caches, plimsoll_plan::Cold::Files);
}

#[test]
fn a_misspelt_name_is_refused_with_a_hint() {
    let (code, error) = refused(&["run", "fileserve", "--dry-run"]);
    assert_eq!(code, 2);
    assert_eq!(
        error,
        "error: `fileserve` is not a workload: did you mean `fileserver`?\n"
    );
}

#[test]
fn a_missing_file_is_refused() {
    let (code, error) = refused(&["workloads", "show", "./none.f"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("cannot read the workload ./none.f: No such file"),
        "{error}"
    );
}

#[test]
fn an_error_in_a_workload_is_shown_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = write(
        dir.path(),
        "bad.f",
        "set $a=1\ndefine fileset nmae=x,path=/tmp\n",
    );
    let (code, error) = refused(&["run", &path, "--dry-run"]);
    assert_eq!(code, 2);
    assert!(error.contains("bad.f:2:"), "{error}");
    assert!(error.contains("did you mean `name`?"), "{error}");
    assert!(!error.contains('\x1b'), "colours without a terminal");
}

#[test]
fn wrong_options_say_what_is_expected() {
    for (args, expected) in [
        (
            ["run", "varmail", "--dry-run", "--time=5x"],
            "is not a duration",
        ),
        (
            ["run", "varmail", "--dry-run", "--ops=many"],
            "expected a whole number",
        ),
        (
            ["run", "varmail", "--dry-run", "--content=junk"],
            "compressible:RATIO",
        ),
        (
            ["run", "varmail", "--dry-run", "--cpus=3-1"],
            "processor numbers",
        ),
        (["run", "varmail", "--dry-run", "--set=x"], "NAME=VALUE"),
        (
            ["run", "varmail", "--dry-run", "--rate=-1"],
            "events per second",
        ),
        (
            ["run", "varmail", "--dry-run", "--interval=0s"],
            "at least 10ms",
        ),
        (["run", "varmail", "--dry-run", "--lanes=0"], "at least 1"),
        (["run", "varmail", "--dry-run", "--tme=5s"], "--time"),
        (["run", "varmail", "--dry-run", "--set=nosuch=1"], "nosuch"),
    ] {
        let (code, error) = refused(&args);
        assert_eq!(code, 2, "{args:?}");
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn a_loaded_workload_is_found_beside_the_file_and_among_the_built_in() {
    let dir = tempfile::tempdir().unwrap();
    let inner = "define fileset name=s,path=/tmp,entries=7,dirwidth=20\n\
                 define process name=p { thread name=t { flowop statfile filesetname=s } }\n";
    write(dir.path(), "inner.f", inner);
    for (name, found) in [("inner", "    7 files"), ("varmail", "    1 000 files")] {
        let path = write(dir.path(), "outer.f", &format!("load {name}\nrun 1\n"));
        let plan = stdout(&["run", &path, "--dry-run", "--dir", "/x", "--target", "null"]);
        assert!(plan.contains(found), "{plan}");
    }
}

#[test]
fn every_command_explains_itself_with_examples() {
    for command in [
        &["run"][..],
        &["workloads"],
        &["workloads", "list"],
        &["workloads", "show"],
        &["docs", "schema"],
        &["docs", "completions"],
        &["docs", "man"],
    ] {
        let help = stdout(&[command, &["--help"]].concat());
        assert!(help.contains("Examples:\n  plimsoll "), "{command:?}");
    }
}

#[test]
fn documents_are_generated() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    stdout(&["docs", "man", "--dir", dir]);
    let page = std::fs::read_to_string(format!("{dir}/plimsoll-run.1")).unwrap();
    assert!(page.contains("warmup"));
    assert!(stdout(&["docs", "man"]).contains(".TH plimsoll 1"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            stdout(&["docs", "completions", shell]).contains("plimsoll"),
            "{shell}"
        );
    }
    let schema: serde_json::Value = serde_json::from_str(&stdout(&["docs", "schema"])).unwrap();
    assert!(schema["properties"]["summary"].is_object());
}
