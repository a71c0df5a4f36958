//! `make test` runs all steps, also after a failure, and ends with a list of failures.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs the command lines `lines` in `dir` with `scripts/steps`, as `make test` does.
fn steps(dir: &Path, lines: &[&str]) -> Output {
    let mut command = Command::new(root().join("scripts/steps"));
    command.current_dir(dir).args(lines);
    // The variables that cargo sets for this test would mislead the cargo that `scripts/steps` runs.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_") && name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    command.output().unwrap()
}

const LIBRARY: &str = r#"
//! ```
//! assert!(false);
//! ```
#[test]
fn of_the_library() { panic!("no"); }
"#;

/// Its tests print what looks like a list of failures.
const TWO_OF_THREE: &str = r#"
mod inner {
    #[test]
    fn second() { println!("failures:\n    not_this\n\ntest result: ok\n"); panic!("no"); }
}
#[test]
fn first() { println!("failures:\n---- x ----\n    nor_this"); panic!("no"); }
#[test]
fn third() {}
"#;

const PROJECT: [(&str, &str); 6] = [
    (
        "Cargo.toml",
        "[package]\nname = \"tried\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    ),
    ("src/lib.rs", LIBRARY),
    ("tests/a.rs", TWO_OF_THREE),
    ("tests/b.rs", "#[test] fn dies() { std::process::abort(); }"),
    ("tests/c.rs", "#[test] fn passes() {}"),
    ("tests/d.rs", "#[test] fn last() { panic!(\"no\"); }"),
];

#[test]
fn everything_is_run_and_what_failed_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in PROJECT {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let tests = "cargo test --offline --no-fail-fast";
    let done = steps(dir.path(), &["exit 3", tests, "touch later", "false"]);
    let out = text(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{out}");
    assert!(dir.path().join("later").exists());
    // `scripts/steps` passes on the whole output of each command.
    let printed = "test result: FAILED. 1 passed; 2 failed;";
    assert!(out.contains(printed), "{out}");
    let (_, list) = out.split_once("\nFailed:\n").expect(&out);
    let expected = "exit 3
cargo test --offline --no-fail-fast
    cargo test --lib
        of_the_library
    cargo test --test a
        first
        inner::second
    cargo test --test b
        the program crashed (signal: 6, SIGABRT: process abort signal)
    cargo test --test d
        last
    cargo test --doc
        src/lib.rs - (line 2)
false
";
    assert_eq!(list, expected, "{out}");
}

#[test]
fn what_cannot_be_compiled_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in &PROJECT[..1] {
        std::fs::write(dir.path().join(path), text).unwrap();
    }
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/lib.rs"), "fn f() { 1 }").unwrap();
    let done = steps(dir.path(), &["cargo check --offline"]);
    let out = text(&done.stdout);
    let (_, list) = out.split_once("\nFailed:\n").expect(&out);
    let expected = "cargo check --offline
    could not compile `tried` (lib) due to 1 previous error
";
    assert_eq!(list, expected, "{out}");
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn nothing_failed() {
    let dir = tempfile::tempdir().unwrap();
    let done = steps(dir.path(), &["echo one", "echo two >&2"]);
    let out = text(&done.stdout);
    let (printed, times) = out.split_once("\nTimes:\n").expect(&out);
    assert_eq!(printed, "\n$ echo one\none\n\n$ echo two >&2\ntwo\n");
    let times: Vec<Vec<_>> = times
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    let [one, two, empty, end] = &times[..] else {
        panic!("{out}")
    };
    assert_eq!(one[1..], ["s", "echo", "one"]);
    assert_eq!(two[1..], ["s", "echo", "two", ">&2"]);
    assert!(one[0].parse::<u32>().is_ok() && empty.is_empty(), "{out}");
    assert_eq!(end, &["Nothing", "failed."]);
    assert!(done.status.success());
}

#[test]
fn make_test_goes_on_after_a_failure() {
    for target in ["test", "test-mpi"] {
        let mut make = Command::new("make");
        // Without MAKEFLAGS and MAKELEVEL, make does not print `Entering directory`, even if the tests run below
        // another make.
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        let done = make.arg("-n").arg(target).current_dir(root()).output();
        let done = done.expect("`make` is missing: install the package `make`");
        let lines = text(&done.stdout);
        assert!(done.status.success(), "{}", text(&done.stderr));
        assert!(lines.starts_with("scripts/steps "), "{lines}");
        let tests = lines.matches("cargo test").count();
        assert!(tests > 0, "{lines}");
        assert_eq!(lines.matches("--no-fail-fast").count(), tests, "{lines}");
    }
}
