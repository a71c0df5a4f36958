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
    let tagged = call(
        &bench,
        &["results", "tag", "results/a", "results/b", "--add=y,x"],
    )
    .expect_code(0);
    assert_eq!(tagged.stdout, "results/a: x, y\nresults/b: x, y\n");
    let fewer = call(
        &bench,
        &["results", "tag", "results/b", "--remove=y,z", "--add", "w"],
    )
    .expect_code(0);
    assert_eq!(fewer.stdout, "results/b: w, x\n");
    let shown = call(&bench, &["results", "tag", "results/a", "results/b"]).expect_code(0);
    assert_eq!(shown.stdout, "results/a: x, y\nresults/b: w, x\n");
    let none = call(&bench, &["results", "tag", "results/b", "--remove=w,x"]).expect_code(0);
    assert_eq!(none.stdout, "results/b: no tags\n");
    assert!(!bench.path("results/b/annotations.json").exists());
    assert_eq!(std::fs::read_to_string(a.join("run.json")).unwrap(), before);
}

#[test]
fn what_cannot_be_tagged_is_refused_whole() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    std::fs::create_dir(bench.path("results/empty")).unwrap();
    let empty = call(
        &bench,
        &["results", "tag", "results/a", "results/empty", "--add=x"],
    )
    .refusal();
    assert_eq!(empty, "error: results/empty holds no results of Plimsoll\n");
    assert!(!a.join("annotations.json").exists(), "all or nothing");
    let bad = call(&bench, &["results", "tag", "results/a", "--add=a b"]).refusal();
    assert!(
        bad.contains("`a b` is not a tag: expected at most 64 letters"),
        "{bad}"
    );
    let both = call(
        &bench,
        &["results", "tag", "results/a", "--add=x", "--remove=x"],
    )
    .refusal();
    assert_eq!(both, "error: `x` is both added and removed\n");
    std::fs::write(a.join("annotations.json"), "{}").unwrap();
    let damaged = call(&bench, &["results", "tag", "results/a", "--add=x"]).refusal();
    assert!(
        damaged.contains("annotations.json has no schema version"),
        "{damaged}"
    );
}

#[test]
fn a_note_is_written_read_and_removed_and_reports_show_it() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    let note = |more: &[&str]| {
        let args: Vec<&str> = ["results", "note", "results/a"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        call(&bench, &args).expect_code(0).stdout
    };
    assert_eq!(note(&[]), "");
    assert_eq!(note(&["-40 °C, <i>new</i> disk\nsecond line"]), "");
    assert_eq!(note(&[]), "-40 °C, <i>new</i> disk\nsecond line\n");
    call(&bench, &["results", "tag", "results/a", "--add=cold"]).expect_code(0);
    let text = call(&bench, &["report", "results/a"]).expect_code(0).stdout;
    assert!(text.contains("tags: cold\n"), "{text}");
    assert!(
        text.contains("  note: -40 °C, <i>new</i> disk\n        second line\n"),
        "{text}"
    );
    let html = call(&bench, &["report", "results/a", "--format=html"]);
    let html = html.expect_code(0).stdout;
    assert!(html.contains("-40 °C, &lt;i&gt;new&lt;/i&gt; disk"));
    assert!(html.contains("<strong>tags</strong>: cold"));
    let json = call(&bench, &["report", "results/a", "--format=json"]).expect_code(0);
    assert_eq!(
        json.stdout,
        std::fs::read_to_string(a.join("run.json")).unwrap()
    );
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

    let listed = [
        "results",
        "prune",
        "--older-than=30d",
        "--results=results",
        "--dry-run",
    ];
    let listed = call(&bench, &listed).expect_code(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].starts_with("old-1  2020-01-02 03:04  3 files, "),
        "{listed}"
    );
    assert!(
        lines[1].starts_with("old-2  2020-01-02 03:04  3 files, "),
        "{listed}"
    );
    for part in [
        "kept foreign: results/foreign/thesis.tex is not a file of Plimsoll's\n",
        "kept linked: results/linked/ranks is not a file of Plimsoll's\n",
        "kept tagged: it is tagged keep; --include-tagged deletes it too\n",
        "would delete 2 results, ",
    ] {
        assert!(listed.contains(part), "{listed}");
    }
    let unasked = call(
        &bench,
        &["results", "prune", "--older-than=30d", "--results=results"],
    )
    .refusal();
    assert!(
        unasked.contains("standard input is not a terminal"),
        "{unasked}"
    );
    assert_eq!(left(&bench), all, "nothing was deleted so far");

    let prune = [
        "results",
        "prune",
        "--older-than=30d",
        "--results=results",
        "--yes",
    ];
    let done = call(&bench, &prune).expect_code(0).stdout;
    assert!(done.ends_with("\ndeleted 2 results\n"), "{done}");
    let expected = ["foreign", "link", "linked", "new", "not-results", "tagged"];
    assert_eq!(left(&bench), expected);
    let tagged = [&prune[..], &["--include-tagged"]].concat();
    call(&bench, &tagged).expect_code(0);
    assert_eq!(
        left(&bench),
        ["foreign", "link", "linked", "new", "not-results"]
    );
    let again = call(&bench, &prune).expect_code(0).stdout;
    assert!(again.ends_with("nothing to delete\n"), "{again}");
    assert!(bench.path("precious").exists() && new.join("run.json").exists());
    for (age, part) in [
        (
            "30",
            "`30` is not an age: expected a number and m, h, d or w",
        ),
        ("-1d", "`-1d` is not an age"),
        ("1e400w", "`1e400w` is not an age"),
    ] {
        let age = format!("--older-than={age}");
        let refused = call(
            &bench,
            &["results", "prune", &age, "--results=results", "--yes"],
        )
        .refusal();
        assert!(refused.contains(part), "{refused}");
    }
    let nowhere = call(
        &bench,
        &[
            "results",
            "prune",
            "--older-than=1d",
            "--results=no",
            "--yes",
        ],
    )
    .refusal();
    assert!(nowhere.starts_with("error: cannot list no: "), "{nowhere}");
}

#[test]
fn results_of_every_kind_are_pruned_whole() {
    let bench = Bench::on_tmpfs();
    crate::serve::one_of_each(&bench);
    let workload = bench.workload(crate::serve::WORKLOAD);
    let ranks = ["--processes=2", "--per-rank", "--time=300ms"];
    let null = ["--target=null:?latency=1ms", "--quiet"];
    bench
        .run(&workload, &[&ranks[..], &null].concat())
        .expect_code(0);
    assert_eq!(left(&bench).len(), 5);
    let prune = [
        "results",
        "prune",
        "--older-than=0m",
        "--results=results",
        "--yes",
    ];
    let done = call(&bench, &prune).expect_code(0).stdout;
    assert!(done.ends_with("deleted 5 results\n"), "{done}");
    assert_eq!(left(&bench), [""; 0]);
}
