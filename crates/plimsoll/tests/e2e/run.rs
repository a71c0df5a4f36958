//! `plimsoll run`, through the program: what it prints, what it leaves, how it ends.

use assert_cmd::cargo::CommandCargoExt;
use plimsoll_results::{Run, RunDir, Verdict, tag_of, window_histograms};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A place for workloads, files and results that goes with the test.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn workload(&self, text: &str) -> String {
        std::fs::write(self.path("w.f"), text).unwrap();
        self.path("w.f").to_str().unwrap().to_owned()
    }

    /// `plimsoll run WORKLOAD` with files and results in this place.
    fn command(&self, workload: &str, more: &[&str]) -> Command {
        let mut command = Command::cargo_bin("plimsoll").unwrap();
        command
            .args(["run", workload, "--results"])
            .arg(self.path("results"));
        command
            .args(more)
            .current_dir(self.dir.path())
            .env("TMPDIR", self.dir.path());
        command
    }

    fn run(&self, workload: &str, more: &[&str]) -> Output {
        self.command(workload, more).output().unwrap()
    }

    fn results(&self) -> Vec<RunDir> {
        let Ok(entries) = std::fs::read_dir(self.path("results")) else {
            return vec![];
        };
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|p| RunDir::at(p)).collect()
    }

    /// The only results there are.
    fn result(&self) -> (RunDir, Run) {
        let mut all = self.results();
        assert_eq!(all.len(), 1);
        let dir = all.remove(0);
        let run = dir.read().unwrap();
        (dir, run)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn code(output: &Output) -> i32 {
    let error = text(&output.stderr);
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("killed: {error}"))
}

const SMALL: [&str; 6] = [
    "--time",
    "300ms",
    "--interval",
    "100ms",
    "--set",
    "nfiles=1000",
];

#[test]
fn a_run_reports_and_leaves_nothing_but_its_results() {
    let bench = Bench::new();
    let out = bench.run(
        "fileserver",
        &[&SMALL[..], &["--set", "nthreads=2"]].concat(),
    );
    assert_eq!(code(&out), 0, "{}", text(&out.stderr));
    let report = text(&out.stdout);
    let first = report.lines().next().unwrap();
    let place = bench.path("plimsoll-fileserver-").display().to_string();
    assert!(
        first.starts_with(&format!("fileserver: files in {place}")),
        "{first}"
    );
    assert!(report.contains("\nfileserver: valid\n"), "{report}");
    for part in [
        "\ncreatefile1 ",
        "\nsummary: ",
        "\nIO Summary: ",
        "\nresults in ",
    ] {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
    let left: Vec<_> = std::fs::read_dir(bench.dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the results: {left:?}");
    let (_, run) = bench.result();
    assert_eq!((run.workload.as_str(), run.workers), ("fileserver", 2));
    assert!(run.summary.ops > 0 && run.summary.bytes > 0);
    assert_eq!(run.filesets[0].files, run.plan_files_made());
}

/// What the test asks of a run beyond its public names.
trait Asked {
    fn plan_files_made(&self) -> u64;
}

impl Asked for Run {
    fn plan_files_made(&self) -> u64 {
        let id = plimsoll_plan::FilesetId(0);
        plimsoll_plan::Layout::new(&self.plan, id)
            .unwrap()
            .size_summary(true)
            .files
    }
}

#[test]
fn every_latency_of_a_real_run_is_in_its_histograms() {
    let bench = Bench::new();
    let out = bench.run("varmail", &[&SMALL[..], &["--quiet"]].concat());
    assert_eq!(code(&out), 0, "{}", text(&out.stderr));
    let (dir, run) = bench.result();
    let log = dir.read_histograms().unwrap();
    let histograms = window_histograms(&log, run.window_number);
    for op in &run.operations {
        let histogram = &histograms[&tag_of(&op.name, op.kind)];
        assert_eq!(histogram.len(), op.ops, "{}", op.name);
        let max = (op.latency.max_ms * 1e6).round() as u64;
        for (q, ms) in [(0.5, op.latency.p50_ms), (0.99, op.latency.p99_ms)] {
            let found = histogram.value_at_quantile(q).min(max) as f64 / 1e6;
            // What was in flight at the end is not in the log, and makes no percentile smaller.
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
    let out = bench.run("varmail", &[&SMALL[..], &["--format", "json"]].concat());
    assert_eq!(code(&out), 0);
    let printed: Run = serde_json::from_slice(&out.stdout).unwrap();
    let (dir, run) = bench.result();
    assert_eq!(printed, run);
    let file = std::fs::read(dir.path().join("run.json")).unwrap();
    assert_eq!(text(&out.stdout), text(&file));
    assert!(text(&out.stderr).starts_with("varmail: files in "));
}

#[test]
fn quiet_says_nothing_on_the_way() {
    let bench = Bench::new();
    let out = bench.run("varmail", &[&SMALL[..], &["--quiet"]].concat());
    assert_eq!(text(&out.stderr), "");
    assert!(
        text(&out.stdout).starts_with("\nvarmail: valid\n"),
        "{}",
        text(&out.stdout)
    );
}

/// Deletes five files, beside a worker that would go on.
const DELETER: &str = "define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
define process name=p {
  thread name=t,memsize=1m {
    flowop deletefile name=gone,filesetname=s
  }
  thread name=u,memsize=1m {
    flowop delay name=rest,value=1
  }
}
run 5
";

/// Opens a file into a slot that is open already, the second time.
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
    let workload = bench.workload(OPENER);
    let out = bench.run(&workload, &[]);
    assert_eq!(code(&out), 1);
    let report = text(&out.stdout);
    assert!(
        report.contains("w: failed\n") && report.contains("w.f:4:"),
        "{report}"
    );
    let (_, run) = bench.result();
    let failure = run.failure.unwrap();
    assert_eq!(
        (run.validity.verdict, failure.operation.as_str()),
        (Verdict::Failed, "gone")
    );
    assert_eq!(failure.location.unwrap().line, 4);
}

#[test]
fn the_command_line_may_change_how_a_run_ends() {
    let bench = Bench::new();
    let workload = bench.workload(DELETER);
    let out = bench.run(&workload, &["--quit", "alldone", "--format", "json"]);
    assert_eq!(code(&out), 0, "{}", text(&out.stderr));
    let run: Run = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(run.summary.ops, 5);
}

#[test]
fn a_run_ends_by_operations() {
    let bench = Bench::new();
    let args = [
        "--set",
        "nfiles=1000",
        "--set",
        "nthreads=1",
        "--ops",
        "26",
        "--format",
        "json",
    ];
    let out = bench.run("varmail", &args);
    assert_eq!(code(&out), 0, "{}", text(&out.stderr));
    let run: Run = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(run.summary.ops, 26);
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
    let args = [
        "--allow-commands",
        "--on-error=count",
        "--time=200ms",
        "--format=json",
    ];
    let out = bench.run(&workload, &args);
    assert_eq!(code(&out), 3, "{}", text(&out.stderr));
    let run: Run = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert_eq!(run.validity.reasons[0].code, "errors");
    let row = run.operations.iter().find(|o| o.name == "look").unwrap();
    assert!(row.ops > 0 && row.errors > 0);
    assert_eq!(row.error_codes["ENOENT"], row.errors);
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let bench = Bench::new();
    let theirs = bench.path("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join("letter"), "dear").unwrap();
    let out = bench.run("varmail", &["--dir", theirs.to_str().unwrap()]);
    assert_eq!(code(&out), 2);
    assert!(text(&out.stderr).contains("is not empty and was not created by Plimsoll"));
    assert_eq!(
        std::fs::read_to_string(theirs.join("letter")).unwrap(),
        "dear"
    );
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 1);
    assert!(out.stdout.is_empty() && !bench.path("results").exists());
}

#[test]
fn results_that_cannot_be_written_are_refused_before_the_run() {
    let bench = Bench::new();
    std::fs::write(bench.path("results"), "a file").unwrap();
    let out = bench.run("varmail", &SMALL);
    assert_eq!(code(&out), 2);
    assert!(text(&out.stderr).contains("--results chooses another place"));
}

#[test]
fn virtual_runs_of_one_seed_have_the_same_histograms() {
    let bench = Bench::new();
    let args = [
        "--target=null:?latency=10ms",
        "--clock=virtual",
        "--time=5s",
        "--quiet",
    ];
    for _ in 0..2 {
        assert_eq!(code(&bench.run("varmail", &args)), 0);
    }
    let logs: Vec<Vec<u8>> = bench
        .results()
        .iter()
        .map(|d| std::fs::read(d.path().join("histograms.hlog")).unwrap())
        .collect();
    assert_eq!(logs.len(), 2);
    assert!(logs[0] == logs[1] && logs[0].len() > 1000);
}

#[test]
fn results_inside_the_work_directory_are_refused() {
    let bench = Bench::new();
    let out = bench.run("varmail", &["--dir", "."]);
    assert_eq!(code(&out), 2);
    let error = text(&out.stderr);
    assert!(error.contains("--results chooses another place"), "{error}");
    assert_eq!(std::fs::read_dir(bench.dir.path()).unwrap().count(), 0);
}

#[test]
fn a_plan_says_what_would_be_refused_and_touches_nothing() {
    let bench = Bench::new();
    std::fs::write(bench.path("letter"), "dear").unwrap();
    let place = bench.dir.path().to_str().unwrap();
    let plan = |more: &[&str]| {
        let mut command = Command::cargo_bin("plimsoll").unwrap();
        command
            .args(["run", "varmail", "--dry-run"])
            .args(more)
            .output()
            .unwrap()
    };
    let out = plan(&["--dir", place]);
    assert_eq!(code(&out), 2);
    assert!(text(&out.stdout).contains("\nneeds\n"));
    let error = text(&out.stderr);
    let reason = "error: refused: ";
    assert!(
        error.starts_with(reason) && error.contains("was not created by Plimsoll"),
        "{error}"
    );
    let new = bench.path("new");
    assert_eq!(code(&plan(&["--dir", new.to_str().unwrap()])), 0);
    assert_eq!(std::fs::read_dir(bench.dir.path()).unwrap().count(), 1);
}

/// Starts a run and waits until it measures.
fn started(mut command: Command) -> Child {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("measuring") {
        line.clear();
        assert!(
            lines.read_line(&mut line).unwrap() > 0,
            "ended before it measured"
        );
    }
    // Later lines must find a reader.
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    child
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

#[test]
fn an_interrupted_run_keeps_what_was_measured() {
    let bench = Bench::new();
    let args = ["--time", "1h", "--format", "json"];
    let mut child = started(bench.command("varmail", &args));
    std::thread::sleep(std::time::Duration::from_millis(300));
    interrupt(&child);
    let mut printed = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{printed}");
    let (_, run) = bench.result();
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert!(
        run.summary.ops > 0 && run.window_s < 60.0,
        "{:?}",
        run.summary
    );
    assert_eq!(serde_json::from_str::<Run>(&printed).unwrap(), run);
    assert_eq!(
        std::fs::read_dir(bench.dir.path()).unwrap().count(),
        1,
        "files are removed"
    );
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
    let mut command = bench.command(&workload, &["--allow-commands"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line == "now"));
    for _ in 0..2 {
        interrupt(&child);
        // Two signals of a kind are one to a program that has not yet seen the first.
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    interrupt(&child);
    let begun = std::time::Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed().as_secs() < 10);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bench = Bench::new();
    let args = [&SMALL[..], &["--set", "nthreads=1"]].concat();
    let mut command = bench.command("varmail", &args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut error = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut error)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{error}");
    assert!(!error.contains("panicked"), "{error}");
}

#[test]
fn kept_files_are_used_again() {
    let bench = Bench::new();
    let dir = bench.path("work");
    let dir = dir.to_str().unwrap();
    let small = [
        "--set",
        "filesize=1m",
        "--time",
        "100ms",
        "--dir",
        dir,
        "--format",
        "json",
    ];
    let reused = |more: &[&str]| {
        let out = bench.run("filemicro_rread", &[&small[..], more].concat());
        assert_eq!(code(&out), 0, "{}", text(&out.stderr));
        serde_json::from_slice::<Run>(&out.stdout).unwrap().filesets[0].reused
    };
    assert!(!reused(&["--keep"]));
    assert!(Path::new(dir).exists());
    assert!(reused(&[]));
    assert!(!Path::new(dir).exists(), "without --keep it goes");
}
