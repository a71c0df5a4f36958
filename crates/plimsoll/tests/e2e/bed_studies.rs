//! `plimsoll study` on test beds: the steps are done on real systems, interrupted, resumed and compared, and
//! no bed is left.

use crate::common::{Ended, PATIENCE, signal, wait_until};
use crate::testbed::Beds;
use plimsoll_results::{
    CurveDir, Kind, Run, RunDir, Status, StepState, StudyDir, StudyResults, StudyStep, Verdict,
};
use plimsoll_testkit::needs_root;
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Round trip of the line to the core, in milliseconds.
const ROUND_TRIP_MS: f64 = 20.0;

/// A study of one workload, without a line that would make it long.
const EDGE: [&str; 8] = [
    "study",
    "edge",
    "--rtt=0ms",
    "--only=fileserver",
    "--cache-size=16m",
    "--time=500ms",
    "--write-back=1s",
    "--results=results",
];

/// The directory of the only study.
fn study_dir(beds: &Beds) -> StudyDir {
    let mut entries = std::fs::read_dir(beds.bench.path("results")).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    StudyDir::at(&path)
}

/// The run of a step.
fn run_of(dir: &StudyDir, step: &StudyStep) -> Run {
    let (path, kind) = dir.kind(step).unwrap();
    assert_eq!(kind, Kind::Run);
    RunDir::at(&path).read().unwrap()
}

fn step<'a>(study: &'a StudyResults, column: &str) -> &'a StudyStep {
    let mut steps = study.steps.iter();
    let found = steps.find(|s| s.column == column);
    found.unwrap_or_else(|| panic!("a step `{column}`"))
}

/// The least latency of the reads of a run, in milliseconds; infinite if there was none.
fn least_read_ms(run: &Run) -> f64 {
    let reads = run.operations.iter().filter(|o| o.name == "readfile1");
    reads
        .filter(|o| o.ops > 0)
        .map(|o| o.latency.min_ms)
        .fold(f64::INFINITY, f64::min)
}

/// No bed is up and nothing of one is left.
fn no_bed_is_left(beds: &Beds) {
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

#[test]
fn an_edge_is_compared_with_its_core() {
    let beds = Beds::new();
    let far = EDGE.map(|w| w.replace("--rtt=0ms", "--rtt=20ms").replace("500ms", "1s"));
    let far: Vec<&str> = far.iter().map(String::as_str).collect();
    let ended = Ended::of(beds.command(&far)).expect_code(0);
    no_bed_is_left(&beds);
    let dir = study_dir(&beds);
    let study = dir.read().unwrap();
    assert_eq!((study.missing(), study.status()), (0, Status::Valid));
    // What is at the core takes a round trip; what the edge has in its cache does not.
    let core = run_of(&dir, step(&study, "core"));
    assert!(
        least_read_ms(&core) >= ROUND_TRIP_MS,
        "{}",
        least_read_ms(&core)
    );
    let warm = run_of(&dir, step(&study, "edge, warm"));
    assert!(
        least_read_ms(&warm) < ROUND_TRIP_MS,
        "{}",
        least_read_ms(&warm)
    );
    for column in ["core", "edge, cold", "edge, warm"] {
        let run = run_of(&dir, step(&study, column));
        assert!(
            run.filesets[0].reused,
            "{column}: the files of the step before"
        );
        assert_eq!(run.target.testbed.unwrap().kind, "edge");
    }
    // Nothing is written back before its time, and everything is in the end.
    let observed = &step(&study, "edge, warm, after the run").status;
    let waiting = "files that wait to be written to the core: 0";
    assert!(observed.iter().any(|l| l == waiting), "{observed:?}");
    let arrivals = observed
        .iter()
        .find_map(|l| l.split_once("arrival at the core: "));
    let (_, arrivals) = arrivals.unwrap_or_else(|| panic!("{observed:?}"));
    let first: f64 = arrivals.split(' ').next().unwrap().parse().unwrap();
    assert!(first >= 1.0, "{arrivals}");
    // The report has all columns, is printed again from the results, and is a page.
    let head = "\nfileserver, working set half the cache, round trip 20ms\nA  core: fileserver";
    assert!(ended.stdout.contains(head), "{}", ended.stdout);
    let report = |format: &str| {
        let mut report = beds.command(&["report", format]);
        report.arg(dir.path());
        Ended::of(report).expect_code(0).stdout
    };
    assert!(report("--format=text").contains(head));
    let page = std::fs::read_to_string(dir.path().join("comparison.html")).unwrap();
    assert_eq!(report("--format=html").trim_end(), page.trim_end());
    assert!(page.contains("<h2>fileserver, working set half the cache, round trip 20ms</h2>"));
    assert_eq!(
        serde_json::from_str::<StudyResults>(&report("--format=json")).unwrap(),
        study
    );
    let mut single = beds.command(&["report", "--format=csv"]);
    single.arg(dir.path());
    let refusal = Ended::of(single).refusal();
    assert!(refusal.contains("is made of single results"), "{refusal}");
    // All of it can be deleted, but for what another user has put there.
    let prune = || beds.command(&["prune", "--older-than=1m", "--root=results", "--yes"]);
    let json = std::fs::read_to_string(dir.path().join("study.json")).unwrap();
    let older = json.replace(&study.started_at, "2020-01-01T00:00:00Z");
    std::fs::write(dir.path().join("study.json"), older).unwrap();
    let bed = dir.path().join(&study.beds[0].name);
    let foreign = bed.join("step-1-disclosure.txt");
    std::fs::write(&foreign, "mine").unwrap();
    let refused = Ended::of(prune());
    assert!(
        foreign.exists() && bed.join("step-3").exists(),
        "{}",
        refused.stderr
    );
    std::fs::remove_file(foreign).unwrap();
    let pruned = Ended::of(prune()).expect_code(0);
    assert!(!dir.path().exists(), "{}", pruned.stdout);
}

/// The commands that `--dry-run` prints, as a shell executes them.
#[test]
fn the_commands_of_a_dry_run_can_be_typed() {
    let beds = Beds::new();
    let words = [&EDGE[..], &["--dry-run"]].concat();
    let plan = Ended::of(beds.command(&words)).expect_code(0).stdout;
    assert!(!beds.bench.path("results").exists() && beds.left().is_empty());
    let (_, commands) = plan.split_once("\n\n").unwrap();
    // Those of the first bed.
    let (commands, _) = commands.split_once("\n\n").unwrap();
    assert_eq!(
        commands.matches("plimsoll run fileserver ").count(),
        3,
        "{plan}"
    );
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let function = format!("plimsoll() {{ '{program}' \"$@\"; }}\n");
    let typed = beds.command(&[]);
    let mut shell = Command::new("bash");
    shell.args(["-ec", &(function + commands)]);
    shell.current_dir(typed.get_current_dir().unwrap());
    shell.envs(
        typed
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let ended = Ended::of(shell);
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    no_bed_is_left(&beds);
}

/// Waits until as many steps of the only study have ended.
fn wait_for_steps(beds: &Beds, number: usize, child: &mut Child) {
    let begun = Instant::now();
    loop {
        let results = beds.bench.path("results");
        let found = std::fs::read_dir(results).into_iter().flatten().flatten();
        let dirs = found.filter(|e| !e.file_name().to_string_lossy().starts_with('.'));
        let ended = dirs.filter_map(|e| StudyDir::at(&e.path()).read().ok());
        let ended = ended.map(|s| s.steps.len() - s.missing()).max();
        if ended.unwrap_or(0) >= number {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "the study has ended");
        assert!(begun.elapsed() < PATIENCE, "{number} steps");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn begun(beds: &Beds) -> Child {
    let mut command = beds.command(&EDGE);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

fn resumed(beds: &Beds, dir: &StudyDir) -> Ended {
    let mut command = beds.command(&["study", "edge", "--resume"]);
    command.arg(dir.path());
    Ended::of(command)
}

#[test]
fn a_study_that_was_killed_is_resumed() {
    let beds = Beds::new();
    let mut child = begun(&beds);
    wait_for_steps(&beds, 3, &mut child);
    signal(i32::try_from(child.id()).unwrap(), Signal::KILL);
    child.wait().unwrap();
    // Its bed ends with it; what is left of it, the next command that looks at beds removes.
    wait_until("the end of its bed", || {
        beds.testbed(&["list"]).stdout.contains("no test bed is up")
    });
    no_bed_is_left(&beds);
    let dir = study_dir(&beds);
    let before = dir.read().unwrap();
    assert!(before.missing() > 0 && !before.interrupted);
    assert_eq!(before.status(), Status::Unfinished);
    resumed(&beds, &dir).expect_code(0);
    let after = dir.read().unwrap();
    assert_eq!(
        (after.missing(), after.steps.len()),
        (0, before.steps.len())
    );
    for (old, new) in before.steps.iter().zip(&after.steps) {
        // What was done on a bed of which something is missing is done again, on a new one.
        let mut unit = before.steps.iter().filter(|s| s.unit == old.unit);
        let again = unit.any(StudyStep::is_missing);
        assert!(again || old == new, "{old:?} is as it was");
        assert!(!again || old.results.is_none() || old.results != new.results);
    }
    no_bed_is_left(&beds);
}

#[test]
fn an_interrupted_study_ends_its_bed_and_says_how_it_is_resumed() {
    let beds = Beds::new();
    let mut child = begun(&beds);
    wait_for_steps(&beds, 3, &mut child);
    signal(i32::try_from(child.id()).unwrap(), Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    no_bed_is_left(&beds);
    let dir = study_dir(&beds);
    assert_eq!(dir.read().unwrap().status(), Status::Interrupted);
    let mut report = beds.command(&["report"]);
    report.arg(dir.path());
    let report = Ended::of(report).expect_code(0).stdout;
    let how = format!(
        "resume with plimsoll study edge --resume {}",
        dir.path().display()
    );
    assert!(report.contains(&how), "{report}");
    let mut other = beds.command(&["study", "replicas", "--resume"]);
    other.arg(dir.path());
    let refusal = Ended::of(other).refusal();
    assert!(refusal.contains("is the study edge"), "{refusal}");
}

/// One of two beds cannot be started: the other is studied, and the study has failed.
#[test]
fn a_bed_that_cannot_be_started_is_a_failure() {
    let beds = Beds::new();
    let taken = "study-edge-fileserver-0ms-twice";
    beds.testbed(&["up", "nfs", "--name", taken, "--quiet"])
        .expect_code(0);
    let ended = Ended::of(beds.command(&EDGE)).expect_code(1);
    let dir = study_dir(&beds);
    let study = dir.read().unwrap();
    assert_eq!(study.status(), Status::Failed);
    let failures: Vec<bool> = study.beds.iter().map(|b| b.failure.is_some()).collect();
    assert_eq!(failures, [false, true]);
    assert!(ended.stdout.contains("not measured: ") && ended.stdout.contains(taken));
    let cold = study.steps.iter().filter(|s| s.column == "edge, cold");
    let measured: Vec<bool> = cold.map(|s| dir.kind(s).is_some()).collect();
    assert_eq!(measured, [true, false]);
    beds.testbed(&["down", taken]).expect_code(0);
    resumed(&beds, &dir).expect_code(0);
    assert_eq!(dir.read().unwrap().status(), Status::Valid);
    no_bed_is_left(&beds);
}

/// What a document says is not executed if no study says it.
#[test]
fn commands_of_others_are_not_executed() {
    let beds = Beds::new();
    let words = [&EDGE[..], &["--dry-run", "--format=json"]].concat();
    let plan = Ended::of(beds.command(&words)).expect_code(0).stdout;
    let dir = beds.bench.path("results/foreign");
    std::fs::create_dir_all(&dir).unwrap();
    for (old, new, why) in [
        ("\"populate\"", "\"prune\"", "is not one of populate"),
        (
            "\"--warmup\"",
            "\"--allow-commands\"",
            "has the option --allow-commands",
        ),
        (
            "\"name\": \"study-edge",
            "\"name\": \"../study-edge",
            "cannot be the name",
        ),
    ] {
        assert!(plan.contains(old), "{plan}");
        std::fs::write(dir.join("study.json"), plan.replace(old, new)).unwrap();
        let refusal = resumed(&beds, &StudyDir::at(&dir)).refusal();
        assert!(refusal.contains(why), "{refusal}");
    }
    no_bed_is_left(&beds);
}

#[test]
fn a_study_without_its_software_is_refused_with_what_installs_it() {
    let beds = Beds::new();
    let mut command = beds.command(&EDGE);
    command.env("PATH", beds.bench.path("nothing"));
    let refusal = Ended::of(command).refusal();
    assert!(
        refusal.contains("rclone") && refusal.contains("pip"),
        "{refusal}"
    );
    assert!(!beds.bench.path("results").exists());
    let wrong = ["study", "replicas", "--software=unknown"];
    let refusal = Ended::of(beds.command(&wrong)).refusal();
    assert!(
        refusal.contains("--software unknown: expected one of"),
        "{refusal}"
    );
    let small = ["study", "edge", "--cache-size=1m"];
    let refusal = Ended::of(beds.command(&small)).refusal();
    assert!(refusal.contains("expected 16m to 1t"), "{refusal}");
}

/// Two copies of each file: a server is killed and comes back, and nothing that was acknowledged is lost.
#[test]
fn copies_outlive_a_server() {
    needs_root!();
    let beds = Beds::new();
    let mut command = beds.command(&["study", "replicas", "--software=moosefs", "--copies=2"]);
    command.args([
        "--points=2",
        "--max-load=2",
        "--time=1s",
        "--wait=5s",
        "--results=results",
    ]);
    let ended = Ended::of(command);
    if ended.stderr.contains("/dev/fuse cannot") {
        eprintln!("SKIPPED: {}: `make test-root` runs it", ended.stderr.trim());
        return;
    }
    let ended = ended.expect_code(0);
    no_bed_is_left(&beds);
    let dir = study_dir(&beds);
    let study = dir.read().unwrap();
    assert_eq!(study.missing(), 0);
    let curve = study.steps.iter().find(|s| s.group == "vda").unwrap();
    let (path, kind) = dir.kind(curve).unwrap();
    assert_eq!(kind, Kind::Curve);
    assert_eq!(CurveDir::at(&path).read().unwrap().points.len(), 2);
    let name = path.file_name().unwrap().to_string_lossy();
    let disclosure = path.with_file_name(format!("{name}-disclosure.txt"));
    let text = std::fs::read_to_string(&disclosure).unwrap();
    assert!(
        text.contains("MooseFS") && text.contains("demonstration"),
        "{text}"
    );
    Ended::of(beds.command(&["import", disclosure.to_str().unwrap()])).expect_code(0);
    let hurt = study.steps.iter().filter(|s| s.group.contains("killed"));
    let hurt: Vec<&StudyStep> = hurt.collect();
    assert_eq!(hurt.len(), 3);
    for (step, when) in [(hurt[0], "before"), (hurt[2], "after")] {
        assert!(step.column.ends_with(when));
        let has_two = |l: &String| l.starts_with("chunks with 2 of 2 copies: ");
        assert!(step.status.iter().any(has_two), "{:?}", step.status);
    }
    let run = run_of(&dir, hurt[1]);
    let actions: Vec<&str> = run.events.iter().map(|e| e.action.as_str()).collect();
    assert_eq!(actions, ["kill server.1", "restart server.1"]);
    let verified = run.verification.as_ref().unwrap();
    assert!(
        verified.files > 0 && verified.missing + verified.short + verified.wrong == 0,
        "{verified:?}"
    );
    assert!(
        ended.stdout.contains("kill server.1; begun"),
        "{}",
        ended.stdout
    );
}

/// The server of Linux grants delegations only to those that request them.
#[test]
fn a_server_that_delegates_is_studied() {
    let beds = Beds::new();
    let mut command = beds.command(&[
        "study",
        "delegations",
        "--added-rtt=0ms",
        "--only=webserver",
    ]);
    command.args(["--files=300", "--time=1s", "--results=results"]);
    Ended::of(command).expect_code(0);
    no_bed_is_left(&beds);
    let dir = study_dir(&beds);
    let study = dir.read().unwrap();
    let measured = study.steps.iter().find(|s| s.results.is_some()).unwrap();
    assert!(matches!(
        measured.state,
        Some(StepState::Valid | StepState::Invalid)
    ));
    let (path, kind) = dir.kind(measured).unwrap();
    assert_eq!(kind, Kind::Profile);
    let profile = plimsoll_results::ProfileDir::at(&path);
    let results = profile.read().unwrap();
    assert_eq!(results.cases.len(), 6);
    for case in &results.cases {
        let is_measured = matches!(case.verdict, Some(Verdict::Valid | Verdict::Invalid));
        assert!(is_measured, "{}", case.filesystem);
        let run = profile.runs(case, None).unwrap().remove(0);
        let is_grant = |name: &str| name.starts_with("delegations") && name.ends_with("granted");
        let granted = run.procedures.iter().filter(|p| is_grant(&p.name));
        let granted: u64 = granted.map(|p| p.ops).sum();
        let wanted = case.filesystem.contains("delegations");
        assert_eq!(granted > 0, wanted, "{}: {granted}", case.filesystem);
    }
}
