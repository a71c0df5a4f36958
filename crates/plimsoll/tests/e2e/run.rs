//! End-to-end tests of `plimsoll run`: printed texts, files that a run leaves, and exit codes.

use crate::common::{Bench, Ended, row, signal};
use plimsoll_results::{RunDir, Verdict, tag_of};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const SMALL: [&str; 3] = ["--time=300ms", "--interval=100ms", "--set=nfiles=1000"];

/// Executes `plimsoll run WORKLOAD` with results in the directory `results` of the bench and a report as text.
fn run(bench: &Bench, workload: &str, more: &[&str]) -> Ended {
    let first = ["run", workload, "--results=results"];
    Ended::of(bench.plimsoll([&first[..], more].concat()))
}

fn only(bench: &Bench) -> RunDir {
    let mut all = bench.results();
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn a_run_reports_and_leaves_nothing_but_its_results() {
    let bench = Bench::new();
    let more = [&SMALL[..], &["--set=nthreads=2", "--filebench"]].concat();
    let report = run(&bench, "fileserver", &more).expect_code(0).stdout;
    let place = bench.path("plimsoll-fileserver-").display().to_string();
    let first = format!("fileserver: files in {place}");
    assert!(report.starts_with(&first), "{report}");
    for part in [
        "\nfileserver: valid\n",
        "\ncreatefile1 ",
        "\nsummary: ",
        "\nresults in ",
    ] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
    let last = report.lines().last().unwrap();
    assert!(last.starts_with("IO Summary: "), "{last}");
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
    let run = only(&bench).read().unwrap();
    assert_eq!((run.workload.as_str(), run.workers), ("fileserver", 2));
    assert!(run.summary.ops > 0 && run.summary.bytes > 0);
    let layout = plimsoll_plan::Layout::new(&run.plan, plimsoll_plan::FilesetId(0));
    let planned = layout.unwrap().size_summary(true);
    assert_eq!(run.filesets[0].files, planned.files);
}

/// A run with `--quiet` prints only the report, and the report's latencies follow from the histogram log of the run.
#[test]
fn every_latency_of_a_real_run_is_in_its_histograms() {
    let bench = Bench::new();
    let ended = run(&bench, "varmail", &[&SMALL[..], &["--quiet"]].concat()).expect_code(0);
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.starts_with("\nvarmail: valid\n"), "{ended:?}");
    let dir = only(&bench);
    let run = dir.read().unwrap();
    let histograms = crate::common::distributions(&dir, run.window_number);
    for op in &run.operations {
        let histogram = &histograms[&tag_of(&op.name, op.kind)];
        assert_eq!(histogram.count(), op.ops, "{}", op.name);
        let max = (op.latency.max_ms * 1e6).round() as u64;
        for (q, ms) in [(0.5, op.latency.p50_ms), (0.99, op.latency.p99_ms)] {
            let found = histogram.quantile(q).min(max) as f64 / 1e6;
            // The histogram log lacks operations in flight at the end of the window. Operations in flight can only
            // raise a percentile of latency.
            match op.in_flight {
                0 => assert!((found - ms).abs() < 1e-9, "{} {q}: {found} {ms}", op.name),
                _ => assert!(ms > found - 1e-9, "{} {q}: {found} {ms}", op.name),
            }
        }
    }
}

#[test]
fn json_is_the_result_and_nothing_else() {
    let bench = Bench::new();
    let ended = bench.run("varmail", &SMALL);
    assert!(ended.stderr.starts_with("varmail: files in "), "{ended:?}");
    let file = std::fs::read_to_string(only(&bench).path().join("run.json")).unwrap();
    assert_eq!(ended.stdout, file);
    assert_eq!(ended.result(0), only(&bench).read().unwrap());
}

/// Workload whose second operation fails, because the first `openfile` has filled slot 1.
const OPENER: &str = "define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
define process name=p {
  thread name=t,memsize=1m {
    flowop openfile name=gone,filesetname=s,fd=1
  }
}
run 5
";

#[test]
fn a_failed_run_names_the_flowop_and_its_place() {
    let bench = Bench::new();
    let report = run(&bench, &bench.workload(OPENER), &[])
        .expect_code(1)
        .stdout;
    let says = report.contains("w: failed\n") && report.contains("w.f:4:");
    assert!(says, "{report}");
    let run = only(&bench).read().unwrap();
    let failure = run.failure.unwrap();
    assert_eq!(run.validity.verdict, Verdict::Failed);
    assert_eq!(failure.operation, "gone");
    assert_eq!(failure.location.unwrap().line, 4);
}

/// The workload has a worker that runs out of its five files, and a worker that could continue.
#[test]
fn the_command_line_may_change_how_a_run_ends() {
    let bench = Bench::new();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
         define process name=p {
           thread name=t,memsize=1m { flowop deletefile name=gone,filesetname=s }
           thread name=u,memsize=1m { flowop delay name=rest,value=1 }
         }
         run 5",
    );
    let run = bench.run(&workload, &["--quit=alldone"]).result(0);
    assert_eq!(run.summary.ops, 5);
}

#[test]
fn counted_errors_make_the_result_invalid() {
    let bench = Bench::new();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
         define process name=p { thread name=t,memsize=1m {
           flowop statfile name=look,filesetname=s
         } }
         create files
         system \"rm files/s/*/00000003\"
         run 1",
    );
    let args = ["--allow-commands", "--on-error=count", "--time=200ms"];
    let run = bench.run(&workload, &args).result(3);
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert_eq!(run.validity.reasons[0].code, "errors");
    let look = row(&run, "look");
    assert!(look.ops > 0 && look.errors > 0);
    assert_eq!(look.error_codes["ENOENT"], look.errors);
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let bench = Bench::new();
    let letter = bench.path("theirs/letter");
    std::fs::create_dir(bench.path("theirs")).unwrap();
    std::fs::write(&letter, "dear").unwrap();
    for dry in [None, Some("--dry-run")] {
        let mut command = bench.plimsoll(["run", "varmail", "--dir=theirs"]);
        let ended = Ended::of({
            command.args(dry);
            command
        });
        let ended = ended.expect_code(2);
        let reason = "is not empty and was not created by Plimsoll";
        assert!(ended.stderr.contains(reason), "{ended:?}");
        // A dry run begins the message with `refused: `, and prints the Plan, too.
        let begin = ["error: ", "error: refused: "][usize::from(dry.is_some())];
        assert!(ended.stderr.starts_with(begin), "{ended:?}");
        assert_eq!(ended.stdout.contains("\nneeds\n"), dry.is_some());
    }
    assert_eq!(std::fs::read_to_string(&letter).unwrap(), "dear");
    assert_eq!(bench.left_but(&["theirs"]), [""; 0]);
}

#[test]
fn results_that_cannot_be_written_are_refused_before_the_run() {
    let bench = Bench::new();
    std::fs::write(bench.path("taken"), "a file").unwrap();
    let inside = ["--dir=work", "--results=work/results"];
    for args in [&["--results=taken"][..], &inside] {
        let refused = Ended::of(bench.plimsoll([&["run", "varmail"], args].concat())).refusal();
        let hint = "--results chooses another place";
        assert!(refused.contains(hint), "{args:?}: {refused}");
    }
    assert_eq!(bench.left_but(&["taken"]), [""; 0]);
}

#[test]
fn a_third_interrupt_ends_the_program_at_once() {
    let bench = Bench::new();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=1,dirwidth=20,prealloc
         define process name=p { thread name=t,memsize=1m {
           flowop statfile name=s1,filesetname=s
         } }
         echo \"now\"
         system \"sleep 60\"
         run 1",
    );
    let mut command = bench.plimsoll(["run", &workload, "--allow-commands", "--results=results"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line == "now"));
    for _ in 0..2 {
        signal(child.id() as i32, Signal::INT);
        // Two signals of a kind are one to a program that has not yet seen the first.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    signal(child.id() as i32, Signal::INT);
    let begun = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed().as_secs() < 10);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new();
    let mut command = bench.plimsoll(["run", "varmail", "--results=results", "--time=300ms"]);
    command.arg("--set=nfiles=100");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ended::wait(child, std::time::Instant::now()).expect_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}
