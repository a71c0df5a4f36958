//! `check`: the steps of a check on directories, on an NFS server and in virtual time.

use crate::common::series::{self, only, only_in, parsed, runs_of};
use crate::common::{Bench, Ended};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_results::{Run, Series};
use std::sync::{Arc, Mutex};

/// The steps in their order.
const STEPS: [&str; 11] = [
    "sequential_write",
    "sequential_read",
    "read_4k_depth_1",
    "read_4k_depth_32",
    "write_4k_depth_1",
    "write_4k_depth_32",
    "fsync",
    "create",
    "stat",
    "delete",
    "mail",
];

const SHORT: [&str; 2] = ["--time=200ms", "--results=results"];

fn check(bench: &Bench, place: &str, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["check", place]);
    command.args(more);
    Ended::of(command)
}

fn steps(series: &Series) -> Vec<&str> {
    let made = series.runs.iter().map(|run| run.configuration);
    made.map(|number| series.configuration(number).name.as_str())
        .collect()
}

/// The run of a step.
fn step<'a>(series: &Series, runs: &'a [Run], name: &str) -> &'a Run {
    let at = steps(series).iter().position(|step| *step == name);
    &runs[at.unwrap_or_else(|| panic!("no step {name}"))]
}

/// Value of a parameter of a run.
fn parameter<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    let mut all = run.plan.parameters.iter();
    all.find(|p| p.name == name).map(|p| p.value.as_str())
}

#[test]
fn a_directory_is_checked_and_left_as_it_was() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir_all(bench.path("mnt/lost+found")).unwrap();
    let quiet = [&SHORT[..], &["--quiet"]].concat();
    let text = check(&bench, "mnt", &quiet).expect_code(0).stdout;
    for row in [
        "sequential_write: seqwritefile1",
        "sequential_write: fsyncfile1",
        "sequential_read",
        "read_4k_depth_32",
        "fsync: appendfile1",
        "fsync: sync-file",
        "create: createfile1",
        "stat",
        "delete",
        "mail",
    ] {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{row} ")));
        let line = line.unwrap_or_else(|| panic!("no row {row}: {text}"));
        // The files are in memory.
        assert!(
            line.contains(" valid ") && line.contains("measures memory"),
            "{line}"
        );
    }
    assert!(
        text.contains("complete, 11 of 11 runs on 1 file system"),
        "{text}"
    );
    assert_eq!(bench.left_but(&["results"]), ["mnt"]);
    let left: Vec<_> = std::fs::read_dir(bench.path("mnt")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    let dir = only(&bench);
    let series = dir.read().unwrap();
    assert_eq!(steps(&series), STEPS);
    let runs = runs_of(&dir);
    for run in &runs {
        assert_eq!(run.plan.work_dir.dir, bench.path("mnt/plimsoll-check"));
        assert!(
            run.summary.ops > 0 && run.summary.errors == 0,
            "{}",
            run.workload
        );
    }
    // Tmpfs supports direct I/O since Linux 6.6.
    let note = "the file system does not support direct I/O";
    let is_noted = series.notes.iter().any(|n| n.text.starts_with(note));
    let direct = if is_noted { "0" } else { "1" };
    for name in ["sequential_read", "read_4k_depth_32", "write_4k_depth_1"] {
        assert_eq!(
            parameter(step(&series, &runs, name), "directio"),
            Some(direct)
        );
    }
    let cached = check(
        &bench,
        "mnt",
        &["--time=50ms", "--set=directio=0", "--results=cached"],
    );
    cached.expect_code(0);
    let cached = only_in(&bench.path("cached"));
    let notes = cached.read().unwrap().notes;
    assert!(!notes.iter().any(|n| n.text.starts_with(note)), "{notes:?}");
    let mut compare = bench.plimsoll(["compare"]);
    compare.args([dir.path(), cached.path()]);
    let compared = Ended::of(compare).expect_code(0).stdout;
    for name in STEPS {
        assert!(
            compared.lines().any(|l| l.starts_with(name)),
            "{name}: {compared}"
        );
    }
    let mut page = bench.plimsoll(["report", "--format=html"]);
    page.arg(dir.path());
    let page = Ended::of(page).expect_code(0).stdout;
    assert!(page.contains("measures memory") && page.contains("fsync: sync-file"));
}

#[test]
fn the_depth_of_a_step_is_its_number_of_operations_in_flight() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=2s", "--results=results", "--format=json"];
    let ended = check(&bench, "null:?latency=1ms&clock=virtual", &args).expect_code(0);
    let series = parsed(&ended);
    assert_eq!(steps(&series), STEPS);
    let runs = runs_of(&only(&bench));
    for (name, expected) in [
        ("read_4k_depth_1", 1000.0),
        ("read_4k_depth_32", 32_000.0),
        ("write_4k_depth_1", 1000.0),
        ("write_4k_depth_32", 32_000.0),
        ("fsync", 1000.0),
        ("stat", 1000.0),
    ] {
        let rate = step(&series, &runs, name).summary.ops_per_s;
        assert!((rate / expected - 1.0).abs() < 0.01, "{name}: {rate}");
    }
    // A flush follows every 16 writes of 1 MiB.
    let write = step(&series, &runs, "sequential_write");
    let [writes, flushes] = ["seqwritefile1", "fsyncfile1"].map(|name| {
        let row = write.operations.iter().find(|o| o.name == name).unwrap();
        (row.ops, row.bytes)
    });
    assert_eq!(writes.1, u128::from(writes.0) << 20);
    assert!(
        writes.0.abs_diff(16 * flushes.0) <= 16,
        "{writes:?} {flushes:?}"
    );
    // A target without files has no note about direct I/O.
    assert_eq!(series.notes, []);
}

#[test]
fn a_server_is_checked_and_left_empty() {
    let bench = Bench::on_tmpfs();
    let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(listen, tree.clone(), ServerOptions::default()).unwrap();
    let at = server.address();
    let url = format!("nfs3://{at}/?mountport={}", at.port());
    let series = parsed(
        &check(
            &bench,
            &url,
            &[&SHORT[..], &["--set=filesize=16k", "--format=json"]].concat(),
        )
        .expect_code(0),
    );
    assert_eq!(steps(&series), STEPS);
    assert_eq!(series.filesystems(), ["nfs3"]);
    let tree = tree.lock().unwrap();
    let mut left = 0;
    tree.list(&tree.root(), 2, |_| {
        left += 1;
        true
    })
    .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn steps_that_the_target_cannot_do_are_left_out_and_named() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.path("mnt")).unwrap();
    let huge = ["--time=50ms", "--set=filesize=900t", "--results=results"];
    let text = check(&bench, "mnt", &huge).expect_code(0).stdout;
    let dir = only(&bench);
    let series = dir.read().unwrap();
    assert_eq!(steps(&series), ["fsync", "create", "delete"]);
    let skipped = &series.as_profile().unwrap().figures.not_run;
    assert_eq!(skipped.len(), 8);
    for step in skipped {
        assert!(step.reason.contains("populating takes"), "{step:?}");
        assert!(text.contains(&format!("not run: {}", step.name)), "{text}");
    }
    let none = [&huge[..2], &["--only=stat"]].concat();
    let refused = check(&bench, "mnt", &none).refusal();
    assert!(refused.contains("populating takes"), "{refused}");
}

#[test]
fn a_check_is_resumed() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.path("mnt")).unwrap();
    let only_steps = ["--only=fsync", "--only=stat", "--quiet"];
    check(&bench, "mnt", &[&SHORT[..], &only_steps].concat()).expect_code(0);
    let dir = only(&bench);
    series::cut(&dir, 1);
    let resumed = parsed(&series::resume(&bench, &dir, &[]).expect_code(0));
    assert_eq!(steps(&resumed), ["fsync", "stat"]);
    assert_eq!(bench.left_but(&["results"]), ["mnt"]);
}

#[test]
fn wrong_usage_is_refused_by_name() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("file"), "").unwrap();
    for (place, options, expected) in [
        ("absent", &[][..], "`absent` is not a directory"),
        ("file", &[], "`file` is not a directory"),
        (
            "null",
            &["--only=stats"],
            "has no configuration `stats`: did you mean `stat`?",
        ),
        (
            "null",
            &["--set=depth=3"],
            "no workload of the profile has the parameter `depth`",
        ),
        ("sim:nowhere", &[], "nowhere"),
    ] {
        let refused = check(&bench, place, options).refusal();
        assert!(refused.contains(expected), "{place} {options:?}: {refused}");
    }
    let dry = check(&bench, "null", &["--dry-run"]).expect_code(0).stdout;
    assert!(STEPS.iter().all(|step| dry.contains(step)), "{dry}");
    assert_eq!(bench.left_but(&["file"]), [""; 0]);
}
