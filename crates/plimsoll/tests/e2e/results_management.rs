//! `results tag`, `results note` and `results prune`: what is done with results that are there.

use crate::common::{Bench, Ended};
use crate::serve::{copy, results};
use serde_json::json;
use std::path::Path;

fn call(bench: &Bench, args: &[&str]) -> Ended {
    let mut command = bench.plimsoll(args);
    command.env("TZ", "UTC");
    Ended::of(command)
}

/// Names below the results root.
fn left(bench: &Bench) -> Vec<String> {
    let results = bench.results();
    let name = |p: &Path| p.file_name().unwrap().to_str().unwrap().to_owned();
    results.iter().map(|r| name(r.path())).collect()
}

#[test]
fn tags_are_added_removed_and_shown() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    copy(&a, "b", &[]);
    let before = std::fs::read_to_string(a.join("run.json")).unwrap();
    for (args, said) in [
        ("results/a --add=y,x", "results/a: x, y\n"),
        ("results/b --add=y,x", "results/b: x, y\n"),
        ("results/b --remove=y,z --add w", "results/b: w, x\n"),
        ("results/a results/b", "results/a: x, y\nresults/b: w, x\n"),
        ("results/b --remove=w,x", "results/b: no tags\n"),
    ] {
        let args = ["results", "tag"].into_iter().chain(args.split(' '));
        let ended = call(&bench, &args.collect::<Vec<_>>()).expect_code(0);
        assert_eq!(ended.stdout, said);
    }
    assert!(!bench.path("results/b/annotations.json").exists());
    assert_eq!(std::fs::read_to_string(a.join("run.json")).unwrap(), before);
}

#[test]
fn what_cannot_be_tagged_is_refused_whole() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    std::fs::create_dir(bench.path("results/empty")).unwrap();
    let tag = |args: &[&str]| {
        let all = [&["results", "tag", "results/a"], args].concat();
        call(&bench, &all).refusal()
    };
    let empty = tag(&["results/empty", "--add=x"]);
    assert_eq!(empty, "error: results/empty holds no results of Plimsoll\n");
    assert!(!a.join("annotations.json").exists(), "all or nothing");
    let both = tag(&["--add=x", "--remove=x"]);
    assert_eq!(both, "error: `x` is both added and removed\n");
}

#[test]
fn a_note_is_written_read_and_removed_and_reports_show_it() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    let note = |more: &[&str]| {
        let args = [&["results", "note", "results/a"], more].concat();
        call(&bench, &args).expect_code(0).stdout
    };
    assert_eq!(note(&[]), "");
    assert_eq!(note(&["-40 °C, <i>new</i> disk\nsecond line"]), "");
    assert_eq!(note(&[]), "-40 °C, <i>new</i> disk\nsecond line\n");
    call(&bench, &["results", "tag", "results/a", "--add=cold"]).expect_code(0);
    let text = call(&bench, &["report", "results/a"]).expect_code(0).stdout;
    assert!(text.contains("tags: cold\n"), "{text}");
    let shown = "  note: -40 °C, <i>new</i> disk\n        second line\n";
    assert!(text.contains(shown), "{text}");
    let html = call(&bench, &["report", "results/a", "--format=html"]);
    let html = html.expect_code(0).stdout;
    assert!(html.contains("-40 °C, &lt;i&gt;new&lt;/i&gt; disk"));
    assert!(html.contains("<strong>tags</strong>: cold"));
    let json = call(&bench, &["report", "results/a", "--format=json"]).expect_code(0);
    let file = std::fs::read_to_string(a.join("run.json")).unwrap();
    assert_eq!(json.stdout, file);
    note(&[""]);
    assert_eq!(note(&[]), "");
    let missing = call(&bench, &["results", "note", "results/b", "x"]).refusal();
    assert_eq!(missing, "error: results/b holds no results of Plimsoll\n");
}

#[test]
fn old_results_are_pruned_and_nothing_else() {
    let bench = Bench::on_tmpfs();
    let new = results(&bench, "new");
    let old = ("/started_at", json!("2020-01-02T03:04:05Z"));
    for name in ["old-1", "old-2", "tagged", "foreign", "linked"] {
        copy(&new, name, std::slice::from_ref(&old));
    }
    let root = bench.path("results");
    std::fs::write(root.join("foreign/thesis.tex"), "").unwrap();
    std::fs::write(bench.path("precious"), "x").unwrap();
    std::os::unix::fs::symlink(bench.path("precious"), root.join("linked/ranks")).unwrap();
    std::fs::create_dir(root.join("not-results")).unwrap();
    std::os::unix::fs::symlink(&new, root.join("link")).unwrap();
    call(&bench, &["results", "tag", "results/tagged", "--add=keep"]).expect_code(0);
    let all = left(&bench);

    let prune = |age: &str, more: &[&str]| {
        let age = format!("--older-than={age}");
        let args = ["results", "prune", &age, "--results=results"];
        call(&bench, &[&args[..], more].concat())
    };
    let listed = prune("30d", &["--dry-run"]).expect_code(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    for (line, name) in lines.iter().zip(["old-1", "old-2"]) {
        let begin = format!("{name}  2020-01-02 03:04  3 files, ");
        assert!(line.starts_with(&begin), "{listed}");
    }
    for part in [
        "kept foreign: results/foreign/thesis.tex is not a file of Plimsoll's\n",
        "kept linked: results/linked/ranks is not a file of Plimsoll's\n",
        "kept tagged: it is tagged keep; `plimsoll results tag --remove` removes tags\n",
        "would delete 2 results, ",
    ] {
        assert!(listed.contains(part), "{listed}");
    }
    let unasked = prune("30d", &[]).refusal();
    let expected = "standard input is not a terminal";
    assert!(unasked.contains(expected), "{unasked}");
    assert_eq!(left(&bench), all, "nothing was deleted so far");

    let done = prune("30d", &["--yes"]).expect_code(0).stdout;
    assert!(done.ends_with("\ndeleted 2 results\n"), "{done}");
    let expected = ["foreign", "link", "linked", "new", "not-results", "tagged"];
    assert_eq!(left(&bench), expected);
    call(
        &bench,
        &["results", "tag", "results/tagged", "--remove=keep"],
    )
    .expect_code(0);
    prune("30d", &["--yes"]).expect_code(0);
    let expected = ["foreign", "link", "linked", "new", "not-results"];
    assert_eq!(left(&bench), expected);
    let again = prune("30d", &["--yes"]).expect_code(0).stdout;
    assert!(again.ends_with("nothing to delete\n"), "{again}");
    assert!(bench.path("precious").exists() && new.join("run.json").exists());
    for age in ["30", "-1d", "1e400w"] {
        let refused = prune(age, &["--yes"]).refusal();
        let part = format!("`{age}` is not an age: expected a number and m, h, d or w");
        assert!(refused.contains(&part), "{refused}");
    }
    let nowhere = "results prune --older-than=1d --results=no --yes";
    let nowhere = Ended::of(bench.plimsoll(nowhere.split(' '))).refusal();
    assert!(nowhere.starts_with("error: cannot list no: "), "{nowhere}");
}
