//! Foreign texts, such as names in workloads and results, with every unprintable character: no output contains such a
//! character unescaped.

use crate::common::pty::{OnTerminal, ended_on_terminal};
use crate::common::series::USERS;
use crate::common::{Bench, Ended};
use crate::serve::serve;
use plimsoll_diagnostics::foreign::is_unprintable;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const WORKLOAD: &str = "\
define fileset name=s,path=files,entries=5,size=4k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m { flowop readwholefile name=r,filesetname=s } }
echo \"begins HOSTILE\"
run 1
";

const VIRTUAL: [&str; 1] = ["--target=null:?latency=1ms&clock=virtual"];

/// A text with escape sequences that set a terminal's title and hide text, and with every unprintable character.
fn hostile() -> String {
    let all = ('\0'..='\u{ffff}').filter(|c| is_unprintable(*c));
    let all: String = all.collect();
    format!("h\u{1b}]0;title\u{7}\u{1b}[8mhidden\u{1b}[1;31m<b>&\"|`{all}\u{fffd}")
}

/// The hostile text without NUL bytes: a series with NUL bytes is refused, because its Plan cannot be run.
fn hostile_text() -> String {
    hostile().replace('\0', "")
}

/// Part of [`hostile`] that can be a command-line argument, a file name and a quoted text in a workload.
fn hostile_name() -> String {
    let fits = |c: &char| !matches!(c, '\0' | '/' | '\n' | '\r' | '"' | '`');
    // A name has at most 255 bytes.
    let some = hostile().chars().filter(fits).take(90).collect::<String>();
    format!("{some}\u{9b}\u{202e}\u{200b}\u{feff}\u{2028}")
}

#[track_caller]
fn printable(what: &str, text: &str) {
    let line = text
        .lines()
        .find(|l| l.contains(|c| is_unprintable(c) && c != '\t'));
    assert_eq!(line, None, "{what}");
    assert!(!text.contains('\r'), "{what}");
}

#[track_caller]
fn call(mut command: Command) -> Ended {
    command.env_remove("CLICOLOR_FORCE");
    let ended = Ended::of(command);
    printable("standard output", &ended.stdout);
    printable("standard error", &ended.stderr);
    ended
}

/// Appends `hostile` to all texts of a JSON document whose keys hold texts of a user or of the system, such as `name`
/// and `kernel`.
fn poison(value: &mut Value, hostile: &str) {
    const GIVEN: &str = "workload name text description url host kernel cpu metric title command \
                         phase error code file filesystem";
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if GIVEN.split(' ').any(|given| given == key) => {
                        text.push_str(hostile)
                    }
                    other => poison(other, hostile),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| poison(v, hostile)),
        _ => {}
    }
}

fn poison_file(path: &Path, hostile: &str) {
    let mut document: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    poison(&mut document, hostile);
    std::fs::write(path, document.to_string()).unwrap();
}

/// The only directory of results below a root.
fn only(root: &Path) -> PathBuf {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0)
}

/// Makes a run whose directory, workload name and note are hostile, with a failing hook, and makes every foreign text
/// in `run.json` hostile; returns the results directory.
fn run(bench: &Bench) -> PathBuf {
    let name = hostile_name();
    let workload = bench.path(&format!("{name}.f"));
    std::fs::write(&workload, WORKLOAD.replace("HOSTILE", &name)).unwrap();
    let root = bench.path(&format!("r{name}"));
    let mut command = bench.plimsoll(["run", "--time=2s"]);
    let after = format!("after sh printf '%s' '{name}'; exit 3");
    command.args(VIRTUAL).arg(&workload);
    command
        .args(["--event", &after])
        .arg("--results")
        .arg(&root);
    let ended = call(command).expect_code(0);
    for text in [
        r"h\u001b]0;title\u0007\u001b[8mhidden",
        r"\u202e\u200b\ufeff",
    ] {
        assert!(ended.stdout.contains(text), "{}", ended.stdout);
    }
    let dir = only(&root);
    for file in ["intervals.csv", "histograms.hlog"] {
        printable(file, &std::fs::read_to_string(dir.join(file)).unwrap());
    }
    poison_file(&dir.join("run.json"), &hostile());
    noted(bench, &dir);
    dir
}

fn noted(bench: &Bench, dir: &Path) {
    let note = hostile_text() + "\r\nsecond\tline\n";
    let mut command = bench.plimsoll(["results", "note"]);
    command.arg(dir).arg(&note);
    call(command).expect_code(0);
    let mut command = bench.plimsoll(["results", "note"]);
    command.arg(dir);
    let said = call(command).expect_code(0).stdout;
    assert!(said.contains("\nsecond\tline\n"), "{said}");
}

/// Every format of a report, and a comparison with itself.
fn reported(bench: &Bench, dir: &Path) {
    for format in [
        "text",
        "json",
        "csv",
        "markdown",
        "html",
        "openmetrics",
        "influx",
        "otlp",
    ] {
        for to in [None, Some("out")] {
            let mut command = bench.plimsoll(["report", "--format", format]);
            command.arg(dir);
            command.args(to.map(|to| format!("--output={to}")));
            let ended = call(command).expect_code(0);
            let text = match to {
                Some(to) => {
                    let text = std::fs::read_to_string(bench.path(to)).unwrap();
                    std::fs::remove_file(bench.path(to)).unwrap();
                    text
                }
                None => ended.stdout,
            };
            printable(format, &text);
            assert!(text.contains("title"), "{format}: {text}");
            if format == "json" {
                let json: Value = serde_json::from_str(&text).unwrap();
                let name = json["workload"].as_str().or(json["name"].as_str());
                let is_it =
                    |text: &str| text.ends_with(&hostile()) || text.ends_with(&hostile_text());
                assert!(name.is_some_and(is_it), "JSON is what it was");
            }
        }
    }
    for format in ["text", "json", "markdown", "html"] {
        let mut command = bench.plimsoll(["compare", "--format", format]);
        command.args([dir, dir]);
        let text = call(command).expect_code(0).stdout;
        assert!(text.contains("title"), "{format}: {text}");
    }
}

fn pictured(bench: &Bench, dir: &Path) {
    let pictures = bench.path("pictures");
    let mut command = bench.plimsoll(["report", "--format=svg", "--output"]);
    command.arg(&pictures).arg(dir);
    call(command).expect_code(0);
    let mut count = 0;
    for entry in std::fs::read_dir(&pictures).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        count += 1;
        printable("svg", &text);
        roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    }
    assert!(count > 0);
    std::fs::remove_dir_all(&pictures).unwrap();
}

#[test]
fn runs_with_hostile_texts_are_shown() {
    let bench = Bench::on_tmpfs();
    let dir = run(&bench);
    reported(&bench, &dir);
    pictured(&bench, &dir);
}

#[test]
fn curves_with_hostile_texts_are_shown() {
    let bench = Bench::on_tmpfs();
    let name = hostile_name();
    let users: String = name.chars().filter(|c| !c.is_control()).collect();
    let path = bench.path(&format!("{name}.toml"));
    std::fs::write(&path, USERS.replace("looks", &users)).unwrap();
    for (kind, more) in [("curve", "--load=1,2"), ("find", "--max-load=2")] {
        let root = bench.path(&format!("{kind}s"));
        let mut command = bench.plimsoll([kind, more, "--time=3s", "--warmup=1s"]);
        command.args(VIRTUAL).arg(&path).arg("--results").arg(&root);
        let ended = call(command);
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        let dir = only(&root);
        poison_file(&dir.join("series.json"), &hostile_text());
        noted(&bench, &dir);
        if kind == "curve" {
            reported(&bench, &dir);
            let mut command = bench.plimsoll(["report", "--format=disclosure"]);
            command.arg(&dir);
            call(command).expect_code(0);
        }
        pictured(&bench, &dir);
    }
}

#[test]
fn pages_of_the_browser_show_them_too() {
    let bench = Bench::on_tmpfs();
    let from = run(&bench);
    std::fs::create_dir(bench.path("results")).unwrap();
    std::fs::rename(&from, bench.path("results").join("one")).unwrap();
    let browser = serve(&bench, &[]);
    for path in [
        "/",
        "/?text=%1b%5d0%e2%80%ae",
        "/results/one",
        "/results/%1b%9b%e2%80%ae",
        "/compare?a=one&b=one",
        "/live",
        "/metrics",
    ] {
        let answer = browser.get(path);
        printable(path, &answer.text);
    }
    let page = browser.get("/results/one");
    assert_eq!(page.status, 200);
    assert!(page.text.contains("title") && page.text.contains('\u{fffd}'));
    let answer = browser.get("/api/v1/results/one/document");
    let workload = answer.json()["workload"].as_str().unwrap().to_owned();
    assert!(workload.ends_with(&hostile()));
}

#[test]
fn a_terminal_gets_no_sequences_but_our_colours() {
    let bench = Bench::on_tmpfs();
    let dir = run(&bench);
    let mut command = bench.plimsoll(["report"]);
    command.arg(&dir);
    let shown = ended_on_terminal(command, OnTerminal::Out, 100, &[]).stdout;
    let colors = regex::Regex::new("\u{1b}\\[(0|1|1;3[123])m").unwrap();
    assert!(colors.is_match(&shown), "{shown}");
    // The pseudo-terminal turns each line feed of the output into carriage return and line feed.
    let rest = colors.replace_all(&shown, "").replace("\r\n", "\n");
    printable("a terminal", &rest);
}

#[test]
fn errors_quote_them_as_escapes() {
    let bench = Bench::on_tmpfs();
    let name = hostile_name();
    let mut quoted = 0;
    let mut odd = b"o\xffdd".to_vec();
    odd.extend(name.as_bytes());
    for args in [
        &["run", &name][..],
        &["report", &name],
        &["workloads", "show", &name],
        &["curve", &name, "--load=1"],
        &["profile", &name],
        &[&name],
        &["run", "varmail", &format!("--{name}")],
        &["run", "varmail", &format!("--set={name}=1")],
        &["run", "varmail", &format!("--target={name}")],
        &["compare", "a", "b", "--fail-if", &name],
        &["run", "varmail", "--content", &name],
        &["report", "x", "--percentiles", &name],
        &["results", "tag", ".", "--add", &name],
    ] {
        let said = call(bench.plimsoll(args)).expect_code(2).stderr;
        // Error messages about a wrong option show unprintable characters of the option as escapes.
        quoted += usize::from([r"\u{1b}", r"\u001b"].iter().any(|e| said.contains(e)));
    }
    assert!(quoted >= 6, "{quoted}");
    let mut command = bench.plimsoll(["report"]);
    command.arg(OsStr::from_bytes(&odd));
    call(command).expect_code(2);
}

#[test]
fn names_of_flowops_with_them_are_refused_at_their_place() {
    let bench = Bench::on_tmpfs();
    for (name, code) in [
        ("a\u{1b}b", "U+001B"),
        ("a\u{202e}b", "U+202E"),
        ("a\\nb", "U+000A"),
        ("a\u{200b}", "U+200B"),
    ] {
        let text = WORKLOAD.replace("name=r,", &format!("name=\"{name}\","));
        let workload = bench.workload(&text);
        let ended = call(bench.plimsoll(["run", &workload, "--dry-run", "--dir=d"])).expect_code(2);
        let wanted = format!("the name of a flowop has the character {code}");
        assert!(ended.stderr.contains(&wanted), "{}", ended.stderr);
        assert!(ended.stderr.contains("w.f:2:78]"), "{}", ended.stderr);
        assert!(ended.stderr.contains("this name"), "{}", ended.stderr);
    }
}

#[test]
fn profiles_with_hostile_texts_are_shown() {
    let bench = Bench::on_tmpfs();
    let text = "DEFAULTS {
  runtime = 1;
  filesystem = a, b;
  dir = d-$filesystem;
  stats = s;
}
CONFIG one {
  function = generic;
  personality = randomread;
  filesize = 64k;
  nthreads = 1;
}
";
    let path = bench.path(&format!("{}.prof", hostile_name()));
    std::fs::write(&path, text).unwrap();
    let mut command = bench.plimsoll(["profile", "--time=100ms", "--results=profiles"]);
    command.arg(&path);
    call(command).expect_code(0);
    let dir = only(&bench.path("profiles"));
    let file = dir.join("series.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    document["description"] = "title".into();
    document["notes"] = json!([{ "text": "" }]);
    std::fs::write(&file, document.to_string()).unwrap();
    poison_file(&file, &hostile_text());
    for case in ["a/one", "b/one"] {
        poison_file(&dir.join(case).join("run.json"), &hostile());
    }
    noted(&bench, &dir);
    reported(&bench, &dir);
}

#[test]
fn commands_that_list_and_print_show_them() {
    let bench = Bench::on_tmpfs();
    let name = hostile_name();
    let dir = run(&bench);
    let workload = bench.path(&format!("{name}.f"));
    let into = format!("--dir=d{name}");
    for args in [
        "run --dry-run",
        "run --format=json --dry-run",
        "workloads show",
        "run --quiet --time=1s",
        "run --format=json --time=1s",
    ] {
        let mut command = bench.plimsoll(args.split(' '));
        command.arg(&workload).env("COLUMNS", "80");
        if args.starts_with("run") {
            let given = VIRTUAL.iter().filter(|_| !args.contains("--dry-run"));
            command.args(given).arg(&into);
        }
        let ended = call(command).expect_code(0);
        if args.contains("--format=json") {
            serde_json::from_str::<Value>(&ended.stdout).unwrap();
        }
    }
    let mut command = bench.plimsoll(["md", "-P=2", "-I=2", "-D=1", "--results=mds", &into]);
    command.arg("--event=before sh printf x");
    call(command).expect_code(0);
    // Plimsoll gives results directories plain names, but a user may rename a directory.
    std::fs::rename(&dir, dir.with_file_name(&name)).unwrap();
    let prune = "results prune --older-than=0m --dry-run --results";
    let mut command = bench.plimsoll(prune.split(' '));
    command.arg(dir.parent().unwrap());
    let said = call(command).expect_code(0).stdout;
    assert!(said.contains(r"\u001b"), "{said}");
}

#[test]
fn the_line_of_progress_is_plain() {
    let bench = Bench::on_tmpfs();
    let name: String = hostile_name().replace(['\\', '$'], "");
    let text = WORKLOAD
        .replace("name=s,", &format!("name=\"{name}\","))
        .replace("filesetname=s", &format!("filesetname=\"{name}\""));
    let path = bench.path(&format!("{name}.f"));
    std::fs::write(&path, text).unwrap();
    let mut command = bench.plimsoll(["run", "--time=300ms", "--interval=100ms", "--dir=d"]);
    command.arg(&path);
    let ended = ended_on_terminal(command, OnTerminal::Err, 100, &[]);
    let shown = ended.stderr + &ended.stdout;
    assert!(shown.contains("making h"), "{shown}");
    // Escape sequences of the program itself: cursor movement, erasure and colours of the live line.
    let own = regex::Regex::new("\u{1b}\\[[0-9;]*[A-DGHJKm]").unwrap();
    assert!(!shown.contains("\u{1b}[8m"), "{shown}");
    let rest = own.replace_all(&shown, "").replace('\r', "");
    printable("the line of progress", &rest);
}

#[test]
fn descriptions_and_published_reports_are_shown() {
    let bench = Bench::on_tmpfs();
    call(bench.plimsoll(["results", "sut", "init"])).expect_code(0);
    let path = bench.path("sut.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let escaped: String = hostile()
        .chars()
        .map(|c| format!("\\U{:08x}", u32::from(c)))
        .collect();
    let said = |field: &str| format!("{field} = \"title{escaped}\"");
    let text = ["vendor", "name", "tested_by"]
        .iter()
        .fold(text, |text, field| {
            text.replacen(&format!("{field} = \"\""), &said(field), 1)
        });
    assert!(text.contains("title"), "{text}");
    std::fs::write(&path, text).unwrap();
    call(bench.plimsoll(["results", "sut", "check", "sut.toml"]));

    std::fs::write(bench.path("u.toml"), USERS).unwrap();
    let mut command = bench.plimsoll(["curve", "u.toml", "--load=1,2", "--time=3s"]);
    command.args(VIRTUAL).arg("--results=curves");
    call(command).expect_code(0);
    let dir = only(&bench.path("curves"));
    for format in ["html", "disclosure"] {
        let mut command = bench.plimsoll(["report", "--sut=sut.toml", "--format", format]);
        command.arg(&dir);
        let said = call(command).expect_code(0).stdout;
        assert!(said.contains("title"), "{format}: {said}");
        std::fs::write(bench.path("report.txt"), said).unwrap();
    }
    let text = std::fs::read_to_string(bench.path("report.txt")).unwrap();
    let text = text.replace("title", &format!("title{}", hostile().replace('\n', "")));
    std::fs::write(bench.path("report.txt"), text).unwrap();
    for args in [
        "results import report.txt",
        "report report.txt",
        "report --format=json report.txt",
        "compare report.txt report.txt",
        "compare --format=html report.txt report.txt",
    ] {
        call(bench.plimsoll(args.split(' '))).expect_code(0);
    }
}
