//! Studies on test beds of real systems: execution, interruption, resumption and comparison. No study leaves a bed up.

use crate::common::{Beds, only_study};
use plimsoll_results::{Document, Kind, Run, RunDir, SUT_FILE, SeriesDir};
use plimsoll_testbed::study::{
    StepState, StudyAction, StudyDir, StudyResults, StudyState, StudyStep, results_of,
};
use plimsoll_testkit::bench::{Ended, PATIENCE, built_program, signal, wait_until};
use plimsoll_testkit::needs_root;
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Round trip of the line to the core, in milliseconds.
const ROUND_TRIP_MS: f64 = 20.0;

/// A study of one workload, without a line that would make it long.
const EDGE: [&str; 9] = [
    "testbed",
    "study",
    "edge",
    "--rtt=0ms",
    "--only=fileserver",
    "--cache-size=16m",
    "--time=500ms",
    "--write-back=1s",
    "--results=results",
];

/// The run of a step.
fn run_of(dir: &StudyDir, step: &StudyStep) -> Run {
    let path = results_of(dir, step).unwrap();
    assert_eq!(Kind::of(&path).unwrap(), Kind::Run);
    RunDir::at(&path).read().unwrap()
}

fn step<'a>(study: &'a StudyResults, column: &str) -> &'a StudyStep {
    let mut steps = study.steps.iter();
    let found = steps.find(|s| s.column == column);
    found.unwrap_or_else(|| panic!("a step `{column}`"))
}

/// The least latency of the reads of a run, in milliseconds; infinite without reads.
fn least_read_ms(run: &Run) -> f64 {
    let reads = run.operations.iter().filter(|o| o.name == "readfile1");
    reads
        .filter(|o| o.ops > 0)
        .map(|o| o.latency.min_ms)
        .fold(f64::INFINITY, f64::min)
}

/// Checks that no bed is up and no files of beds are left.
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
    let dir = only_study(&beds.bench);
    let study = dir.read().unwrap();
    assert_eq!((study.missing(), study.state()), (0, StudyState::Complete));
    // A read from the core takes a round trip; a read from the edge's cache does not.
    for (column, is_far) in [
        ("core", Some(true)),
        ("edge, cold", None),
        ("edge, warm", Some(false)),
    ] {
        let run = run_of(&dir, step(&study, column));
        let least_ms = least_read_ms(&run);
        let is_known = is_far.is_none_or(|far| far == (least_ms >= ROUND_TRIP_MS));
        assert!(is_known, "{column}: {least_ms} ms");
        let is_of_the_step_before = run.filesets[0].reused;
        assert!(is_of_the_step_before, "{column}");
    }
    // No file is written back before its time, and all files are written back in the end.
    let observed = &step(&study, "edge, warm, after the run").status;
    let waiting = "files that wait to be written to the core: 0";
    assert!(observed.iter().any(|l| l == waiting), "{observed:?}");
    let arrivals = observed
        .iter()
        .find_map(|l| l.split_once("arrival at the core: "));
    let (_, arrivals) = arrivals.unwrap_or_else(|| panic!("{observed:?}"));
    let first: f64 = arrivals.split(' ').next().unwrap().parse().unwrap();
    assert!(first >= 1.0, "{arrivals}");
    // The report has all columns; `study report` prints the same report from the results.
    let head = "\nfileserver, working set half the cache, round trip 20ms\nno statement on the difference of ops/s \
                between core and edge, cold";
    assert!(ended.stdout.contains(head), "{}", ended.stdout);
    let report = |more: &[&str]| {
        let mut report = beds.command(&["testbed", "study", "report"]);
        report.arg(dir.path()).args(more);
        Ended::of(report).expect_code(0).stdout
    };
    assert!(report(&[]).contains(head));
    assert_eq!(
        serde_json::from_str::<StudyResults>(&report(&["--format=json"])).unwrap(),
        study
    );
    // The results of a study's steps are ordinary results directories, which `plimsoll results prune` deletes too. The
    // name of the results directory of a step begins with the step's number.
    let results = plimsoll_results::directories(dir.path()).unwrap();
    let names = results.iter().map(|path| path.file_name().unwrap());
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "03-edge-fileserver-20ms-half-core",
            "04-edge-fileserver-20ms-half-cold",
            "07-edge-fileserver-20ms-half-warm",
            "10-edge-fileserver-20ms-twice-cold",
            "13-edge-fileserver-20ms-twice-warm",
        ]
    );
    let mut disclose = beds.command(&["report", "--format=disclosure"]);
    disclose.arg(&results[0]);
    let disclosed = Ended::of(disclose).expect_code(0).stdout;
    assert!(disclosed.contains("edge test bed"), "{disclosed}");
    for path in &results {
        let run = RunDir::at(path).read().unwrap().to_json();
        let older = run.replace(&started_year(&run), "\"started_at\": \"2020");
        std::fs::write(path.join("run.json"), older).unwrap();
    }
    let mut prune = beds.command(&["results", "prune", "--older-than=1m", "--yes", "--results"]);
    prune.arg(dir.path());
    Ended::of(prune).expect_code(0);
    let left = std::fs::read_dir(dir.path()).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["study.json"]);
    assert!(report(&[]).contains("its results cannot be read"));
}

/// The beginning of the field `started_at` in a `run.json`, to the end of the year.
fn started_year(run: &str) -> String {
    let at = run.find("\"started_at\": \"").unwrap();
    let end = at + "\"started_at\": \"2026".len();
    run[at..end].to_owned()
}

/// The commands that `--dry-run` prints, as a shell executes them.
#[test]
fn the_commands_of_a_dry_run_can_be_typed() {
    let beds = Beds::new();
    let words = [&EDGE[..], &["--dry-run"]].concat();
    let plan = Ended::of(beds.command(&words)).expect_code(0).stdout;
    assert!(!beds.bench.path("results").exists() && beds.left().is_empty());
    let (_, commands) = plan.split_once("\n\n").unwrap();
    // Commands of the first bed.
    let (commands, _) = commands.split_once("\n\n").unwrap();
    assert_eq!(commands.matches(" -- run fileserver ").count(), 3, "{plan}");
    let program = built_program("plimsoll");
    let function = format!("plimsoll() {{ '{}' \"$@\"; }}\n", program.display());
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

/// Waits until `number` steps of the only study have ended.
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
    let mut command = beds.command(&["testbed", "study", "resume"]);
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
    // The bed ends with its study; the next command that looks at beds removes the remains.
    wait_until("the end of its bed", || {
        beds.testbed(&["list"]).stdout.contains("no test bed is up")
    });
    no_bed_is_left(&beds);
    let dir = only_study(&beds.bench);
    let before = dir.read().unwrap();
    assert!(before.missing() > 0 && !before.interrupted);
    assert_eq!(before.state(), StudyState::Unfinished);
    resumed(&beds, &dir).expect_code(0);
    let after = dir.read().unwrap();
    assert_eq!(
        (after.missing(), after.steps.len()),
        (0, before.steps.len())
    );
    for (old, new) in before.steps.iter().zip(&after.steps) {
        // All steps of a unit with a missing step are done again, on a new bed.
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
    let dir = only_study(&beds.bench);
    assert_eq!(dir.read().unwrap().state(), StudyState::Interrupted);
    let mut report = beds.command(&["testbed", "study", "report"]);
    report.arg(dir.path());
    let report = Ended::of(report).expect_code(0).stdout;
    let how = format!(
        "resume with plimsoll testbed study resume {}",
        dir.path().display()
    );
    assert!(report.contains(&how), "{report}");
}

/// One of two beds cannot be started: the other is studied, and the study has failed.
#[test]
fn a_bed_that_cannot_be_started_is_a_failure() {
    let beds = Beds::new();
    let taken = "study-edge-fileserver-0ms-twice";
    beds.testbed(&["up", "nfs", "--name", taken, "--quiet"])
        .expect_code(0);
    let ended = Ended::of(beds.command(&EDGE)).expect_code(1);
    let dir = only_study(&beds.bench);
    let study = dir.read().unwrap();
    assert_eq!(study.state(), StudyState::Failed);
    let failures: Vec<bool> = study.beds.iter().map(|b| b.failure.is_some()).collect();
    assert_eq!(failures, [false, true]);
    assert!(ended.stdout.contains("not measured: ") && ended.stdout.contains(taken));
    let cold = study.steps.iter().filter(|s| s.column == "edge, cold");
    let measured: Vec<bool> = cold.map(|s| results_of(&dir, s).is_some()).collect();
    assert_eq!(measured, [true, false]);
    beds.testbed(&["down", taken]).expect_code(0);
    resumed(&beds, &dir).expect_code(0);
    assert_eq!(dir.read().unwrap().state(), StudyState::Complete);
    no_bed_is_left(&beds);
}

/// A resumed study does the steps that follow from its arguments, and refuses a document with other steps.
#[test]
fn commands_of_others_are_not_executed() {
    let beds = Beds::new();
    let words = [&EDGE[..], &["--dry-run", "--format=json"]].concat();
    let plan = Ended::of(beds.command(&words)).expect_code(0).stdout;
    let dir = beds.bench.path("results/foreign");
    std::fs::create_dir_all(&dir).unwrap();
    let not_its_own = "its steps are not the steps of `plimsoll testbed study edge --rtt=0ms";
    for (old, new, why) in [
        ("\"populate\"", "\"prune\"", not_its_own),
        ("\"--warmup\"", "\"--allow-commands\"", not_its_own),
        (
            "\"name\": \"study-edge",
            "\"name\": \"../study-edge",
            not_its_own,
        ),
        ("\"name\": \"cold\"", "\"name\": \"../cold\"", not_its_own),
        ("\"wait_s\": 61", "\"wait_s\": 62", not_its_own),
        (
            "\"--rtt=0ms\"",
            "\"--rtt=0s,1s\"",
            "its steps are not the steps of",
        ),
        (
            "\"edge\",\n    \"--rtt",
            "\"wedge\",\n    \"--rtt",
            "unrecognized subcommand 'wedge'",
        ),
    ] {
        assert!(plan.contains(old), "{old}: {plan}");
        std::fs::write(dir.join("study.json"), plan.replace(old, new)).unwrap();
        let refusal = resumed(&beds, &StudyDir::at(&dir)).refusal();
        assert!(refusal.contains(why), "{old}: {refusal}");
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
    for (words, expected) in [
        (
            ["replicas", "--software=unknown"],
            "--software unknown: expected one of",
        ),
        (["edge", "--cache-size=1m"], "expected 16m to 1t"),
    ] {
        let refusal = beds.testbed(&[&["study"], &words[..]].concat()).refusal();
        assert!(refusal.contains(expected), "{refusal}");
    }
}

/// With two copies of each file, a server is killed and comes back, and no acknowledged data are lost.
#[test]
fn copies_outlive_a_server() {
    needs_root!();
    let beds = Beds::new();
    let mut command = beds.command(&["testbed", "study", "replicas"]);
    command.args(["--software=moosefs", "--copies=2", "--load=1,2"]);
    command.args(["--time=1s", "--wait=5s", "--results=results"]);
    let ended = Ended::of(command);
    if ended.stderr.contains("/dev/fuse cannot") {
        eprintln!("SKIPPED: {}: `make test-root` runs it", ended.stderr.trim());
        return;
    }
    let ended = ended.expect_code(0);
    no_bed_is_left(&beds);
    let dir = only_study(&beds.bench);
    let study = dir.read().unwrap();
    assert_eq!(study.missing(), 0);
    let curve = study.steps.iter().find(|s| s.group == "vda").unwrap();
    let path = results_of(&dir, curve).unwrap();
    assert_eq!(Kind::of(&path).unwrap(), Kind::Curve);
    assert_eq!(SeriesDir::at(&path).read().unwrap().runs.len(), 2);
    assert!(path.join(SUT_FILE).exists());
    let disclosure = beds.bench.path("disclosure.txt");
    let mut disclose = beds.command(&["report", "--format=disclosure", "--output"]);
    disclose.args([&disclosure, &path]);
    Ended::of(disclose).expect_code(0);
    let text = std::fs::read_to_string(&disclosure).unwrap();
    assert!(
        text.contains("MooseFS") && text.contains("demonstration"),
        "{text}"
    );
    Ended::of(beds.command(&["results", "import", disclosure.to_str().unwrap()])).expect_code(0);
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
    let fault = "sh plimsoll testbed fault study-moosefs-2";
    assert_eq!(
        actions,
        [
            format!("{fault} kill server.1"),
            format!("{fault} restart server.1")
        ]
    );
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

/// Study `nfs4-opens` on the Linux server, which grants delegations only to clients that request delegations.
#[test]
fn a_server_that_delegates_is_studied() {
    let beds = Beds::new();
    let mut command = beds.command(&["testbed", "study", "nfs4-opens", "--added-rtt=0ms"]);
    command.args(["--only=webserver", "--set=nfiles=300"]);
    command.args(["--time=500ms", "--results=results"]);
    Ended::of(command).expect_code(0);
    no_bed_is_left(&beds);
    let dir = only_study(&beds.bench);
    let study = dir.read().unwrap();
    assert!(matches!(study.steps[0].action, StudyAction::Pause { .. }));
    let measured = study.steps.iter().find(|s| s.results.is_some()).unwrap();
    assert!(matches!(
        measured.state,
        Some(StepState::Valid | StepState::Invalid)
    ));
    let profile = SeriesDir::at(&results_of(&dir, measured).unwrap());
    let series = profile.read().unwrap();
    assert_eq!(series.configurations.len(), 6);
    assert_eq!(series.runs.len(), 6);
    for run in &series.runs {
        let filesystem = series
            .configuration(run.configuration)
            .filesystem
            .as_deref();
        let filesystem = filesystem.unwrap();
        assert!(run.is_measured(), "{filesystem}");
        let run = profile.run(run).unwrap().read().unwrap();
        let is_grant = |name: &str| name.starts_with("delegations") && name.ends_with("granted");
        let granted = run.procedures.iter().filter(|p| is_grant(&p.name));
        let granted: u64 = granted.map(|p| p.ops).sum();
        let wanted = filesystem.contains("delegations");
        assert_eq!(granted > 0, wanted, "{filesystem}: {granted}");
    }
}
