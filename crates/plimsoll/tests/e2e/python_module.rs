//! The Python module: with real results, and as type checkers see it.

use crate::common::python::{printed, python, source_tree, tool};
use crate::common::{Bench, Ended, series};
use std::path::Path;
use std::process::Command;

const CHECKS: &str = "crates/plimsoll/tests/e2e/python_module";

/// Two configurations of a profile.
const PROFILE: &str = "DEFAULTS {
  runtime = 1;
  filesystem = ext4, xfs;
  dir = files-$filesystem;
}
CONFIG reading {
  function = generic;
  personality = randomread;
  filesize = 256k;
  iosize = 4k;
}
";

/// Results of every kind, and damaged ones, in `all`.
fn results() -> Bench {
    let bench = Bench::on_tmpfs();
    let all = bench.path("all");
    std::fs::create_dir(&all).unwrap();
    let quick = ["--set", "nfiles=50", "--time=200ms", "--interval=100ms"];
    let keep = |name: &str| {
        let made = series::only_results(&bench);
        std::fs::rename(made, all.join(name)).unwrap();
    };
    bench.run_in_work("varmail", &quick).expect_code(0);
    keep("run");
    let mut repeated = quick.to_vec();
    repeated.push("--repeat=2");
    bench.run_in_work("varmail", &repeated).expect_code(0);
    keep("repeats");
    let target = "--target=null:?latency=4ms&servers=8&clock=virtual";
    let virtually = ["--time=2s", "--warmup=1s", target];
    let mut curve = series::command(&bench, "curve", &virtually);
    curve.arg("--load=5..10/5");
    Ended::of(curve).expect_code(0);
    keep("curve");
    let mut find = series::command(&bench, "find", &virtually);
    find.arg("--max-load=16");
    Ended::of(find).expect_code(0);
    keep("search");
    std::fs::write(bench.path("two.prof"), PROFILE).unwrap();
    let mut profile = bench.plimsoll(["profile", "two.prof", "--quiet", "--results=results"]);
    profile.args(virtually);
    Ended::of(profile).expect_code(0);
    keep("profile");
    let (run, damaged) = (all.join("run"), all.join("damaged"));
    let copied = Command::new("cp").arg("-r").args([run, damaged]).status();
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
    check.arg(source_tree().join(CHECKS).join("check.py"));
    check.arg(bench.path("all"));
    check.env("PYTHONPATH", source_tree().join("python"));
    check.env("PYTHONDONTWRITEBYTECODE", "1");
    check.env("PATH", format!("{}:{path}", program.display()));
    let said = printed(check);
    assert_eq!(said.trim(), env!("CARGO_BIN_EXE_plimsoll"));
}

/// The environment's packages without some of them, which is one that they were never installed in.
fn packages_without(missing: &str, dir: &Path) {
    let mut find = python();
    let script = "import sysconfig; print(sysconfig.get_path('purelib'))";
    find.args(["-c", script]);
    let all = printed(find);
    std::fs::create_dir(dir).unwrap();
    for entry in std::fs::read_dir(all.trim()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        if missing.split(' ').all(|m| name != m) {
            std::os::unix::fs::symlink(&path, dir.join(name)).unwrap();
        }
    }
}

#[test]
fn frames_are_of_what_is_installed_and_what_is_missing_is_named() {
    let bench = Bench::on_tmpfs();
    let quick = ["--set", "nfiles=50", "--time=200ms", "--interval=100ms"];
    bench.run_in_work("varmail", &quick).expect_code(0);
    let results = series::only_results(&bench);
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let script = "import sys, plimsoll\n\
                  frames = sys.argv[2] or None\n\
                  try:\n    print(type(plimsoll.load(sys.argv[1], frames).intervals).__module__)\n\
                  except ImportError as e:\n    print(e)\n";
    let pandas_alone = "pyarrow is missing: pip install pyarrow";
    let both = "pandas and pyarrow are missing: pip install pandas pyarrow";
    let polars = "polars.dataframe.frame";
    // With pandas but without pyarrow, `load` raises an error instead of silently returning polars frames.
    let or_polars = format!("{pandas_alone}, or pass frames=\"polars\"");
    let rows = [
        ("pandas", "", polars),
        ("pandas pyarrow", "", polars),
        ("polars", "", "pandas"),
        ("pyarrow", "", &or_polars),
        ("pyarrow", "pandas", pandas_alone),
        ("pyarrow", "polars", polars),
        ("pyarrow polars", "", pandas_alone),
        ("pandas pyarrow polars", "", both),
        ("pandas pyarrow", "pandas", both),
        ("polars", "polars", "polars is missing: pip install polars"),
    ];
    for (number, (missing, frames, expected)) in rows.into_iter().enumerate() {
        let packages = bench.path(&format!("packages-{number}"));
        packages_without(missing, &packages);
        let mut load = python();
        load.args(["-S", "-c", script]).arg(&results).arg(frames);
        let (python, packages) = (source_tree().join("python"), packages.display());
        load.env("PYTHONPATH", format!("{}:{packages}", python.display()));
        load.env("PYTHONDONTWRITEBYTECODE", "1");
        load.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
        let said = printed(load);
        let is_library = !expected.contains(' ');
        let fits = said.trim() == expected || (is_library && said.starts_with(expected));
        assert!(fits, "without {missing:?}, frames {frames:?}: {said}");
    }
}

/// The blocks of Python in a document, or what its text gives an interpreter.
fn examples(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(source_tree().join(document)).unwrap();
    if document.ends_with(".py") {
        let lines = text.lines().filter_map(|l| l.strip_prefix(">>> "));
        return vec![lines.collect::<Vec<_>>().join("\n")];
    }
    let blocks = text.split("\n```python\n").skip(1);
    let end = |b: &str| b.split_once("\n```\n").expect("a block ends").0.to_owned();
    blocks.map(end).collect()
}

#[test]
fn the_examples_in_the_documents_run_as_they_stand() {
    let bench = Bench::on_tmpfs();
    let quick = ["--set", "nfiles=50", "--time=200ms", "--interval=100ms"];
    bench.run_in_work("varmail", &quick).expect_code(0);
    let made = series::only_results(&bench);
    let json = std::fs::read(made.join("run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_slice(&json).unwrap();
    // Where the examples have their results.
    std::fs::create_dir(bench.path("plimsoll-results")).unwrap();
    let place = bench.path("plimsoll-results/varmail-20260301-140502");
    std::fs::rename(&made, place).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let module = "python/plimsoll/__init__.py";
    for document in ["docs/install.md", "python/README.md", module] {
        let examples = examples(document);
        assert_eq!(examples.len(), 1, "{document}");
        for example in examples {
            assert!(example.contains("plimsoll.load("), "{document}");
            let mut python = python();
            python.args(["-c", &example]).current_dir(bench.root());
            python.env("PYTHONPATH", source_tree().join("python"));
            python.env("PYTHONDONTWRITEBYTECODE", "1");
            python.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
            let said = printed(python);
            if example.contains("print(results.run") {
                let first: f64 = said.lines().next().unwrap().parse().unwrap();
                assert_eq!(run["summary"]["ops_per_s"].as_f64(), Some(first));
            }
        }
    }
}

#[test]
fn types_are_what_they_are_declared_to_be() {
    let bench = Bench::on_tmpfs();
    let mypy = || {
        let mut command = python();
        command.args(["-m", "mypy", "--strict", "--cache-dir"]);
        command.arg(bench.path("cache"));
        command.current_dir(source_tree().join("python"));
        command
    };
    assert!(tool("python").is_dir());
    let mut module = mypy();
    module.args(["--python-version=3.11", "plimsoll"]);
    printed(module);
    let typed = source_tree().join(CHECKS).join("typed.py");
    let mut user = mypy();
    user.arg(&typed);
    user.env("MYPYPATH", source_tree().join("python"));
    printed(user);
    // What it checks is not accepted for any type.
    let text = std::fs::read_to_string(&typed).unwrap();
    let wrong = text.replace("polars\").histograms", "pandas\").histograms");
    assert_ne!(wrong, text);
    std::fs::write(bench.path("wrong.py"), wrong).unwrap();
    let mut user = mypy();
    user.arg(bench.path("wrong.py"));
    user.env("MYPYPATH", source_tree().join("python"));
    let ended = Ended::of(user);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stdout.contains("assert-type"), "{}", ended.stdout);
}
