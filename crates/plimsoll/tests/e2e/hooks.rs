//! Commands of the user before and after phases: `--event 'before …'` and `--event 'after …'`.

use crate::common::series::{self, parsed, resume};
use crate::common::{Bench, Ended, Started, started, wait_until};
use plimsoll_results::{HookTime, Run, RunDir, SeriesState, Verdict};
use std::path::Path;

/// Workload with one worker, whose thread in the system has the name `busybee`, on ten files.
const WORKLOAD: &str = "\
define fileset name=s,path=files,entries=10,dirwidth=20,size=4k,prealloc
define process name=p {
  thread name=busybee,memsize=1m {
    flowop statfile name=look,filesetname=s
  }
}
run 1
";

/// Prints what a command is told, and the threads of the program that calls it.
const TELL: &str = "echo \"$PLIMSOLL_WHEN/$PLIMSOLL_PHASE/$PLIMSOLL_ITERATION\"; \
    echo threads $(cat /proc/$PPID/task/*/comm)";

fn short(bench: &Bench, more: &[&str]) -> Ended {
    let workload = bench.workload(WORKLOAD);
    let short = ["--time=50ms", "--interval=10ms"];
    bench.run_in_work(&workload, &[&short[..], more].concat())
}

fn log(dir: &RunDir) -> String {
    std::fs::read_to_string(dir.path().join("commands.log")).unwrap()
}

/// Hooks of a run in the order of their execution, each as a text of time, phase and status.
fn commands(run: &Run) -> Vec<String> {
    let commands = run.commands.iter();
    let status = |s: Option<i32>| s.map_or("-".to_owned(), |s| s.to_string());
    commands
        .map(|c| {
            format!(
                "{} {} {}",
                c.when,
                c.phase_name(),
                status(c.end.exit_status)
            )
        })
        .collect()
}

#[test]
fn commands_run_around_the_phases_and_never_while_workers_work() {
    let bench = Bench::on_tmpfs();
    let before = format!("before sh {TELL}; ls $PLIMSOLL_DIR; env | grep ^PLIMSOLL_ | sort");
    let after = format!("after sh {TELL}; ls -R $PLIMSOLL_DIR | grep -q 00000001");
    let ended = short(&bench, &["--event", &before, "--event", &after]);
    let run = ended.result(0);
    let phases = "before populate 0, after populate 0, before load 0, after load 0";
    assert_eq!(commands(&run).join(", "), phases);
    let dir = &bench.results()[0];
    assert_eq!(dir.read().unwrap(), run);
    let log = log(dir);
    let told: Vec<&str> = log.lines().filter(|l| l.ends_with('/')).collect();
    let phases = "before/populate/ after/populate/ before/load/ after/load/";
    assert_eq!(told.join(" "), phases);
    let threads: Vec<&str> = log.lines().filter(|l| l.starts_with("threads ")).collect();
    assert_eq!(threads.len(), 4, "{log}");
    assert!(threads.iter().all(|t| t.contains("plimsoll")), "{log}");
    assert!(!threads.iter().any(|t| t.contains("busybee")), "{log}");
    let dir = format!("DIR={}", bench.work().display());
    for said in [
        &*dir,
        "TARGET=posix",
        "WORKLOAD=w",
        "RANKS=1",
        "RUN=1",
        "LOAD=",
        "CONFIGURATION=",
        "WHEN=before",
    ] {
        let said = format!("PLIMSOLL_{said}");
        assert!(log.lines().any(|l| l == said), "{said}\n{log}");
    }
    // The directory has a name of its own only at the end.
    let root = bench.path("results").display().to_string();
    let results = format!("PLIMSOLL_RESULTS={root}/.plimsoll-");
    assert!(log.lines().any(|l| l.starts_with(&results)), "{log}");
    assert_eq!(log.matches("== it ended with exit status 0").count(), 4);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

#[test]
fn a_command_before_a_phase_that_fails_ends_the_run() {
    let bench = Bench::on_tmpfs();
    let before = "before sh echo it is broken; [ $PLIMSOLL_PHASE = populate ] || exit 7";
    let never = "before load sh touch never";
    let events = [before, "after sh true", never].map(|event| format!("--event={event}"));
    let events = events.each_ref().map(String::as_str);
    let run = short(&bench, &events).result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.as_ref().unwrap().to_string();
    let expected = "before load: it ended with exit status 7; commands.log has";
    assert!(failure.contains(expected), "{failure}");
    let done = "before populate 0, after populate 0, before load 7";
    assert_eq!(commands(&run).join(", "), done);
    assert_eq!((run.window_number, run.summary.ops), (0, 0));
    let log = log(&bench.results()[0]);
    let said = log.lines().filter(|l| *l == "it is broken");
    assert_eq!(said.count(), 2, "{log}");
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

#[test]
fn a_command_after_a_phase_that_fails_is_noted() {
    let bench = Bench::on_tmpfs();
    let run = short(&bench, &["--event", "after sh kill -9 $$"]).result(0);
    assert_eq!(commands(&run), ["after populate -", "after load -"]);
    assert!(run.commands.iter().all(|c| c.end.signal == Some(9)));
    let noted = run.notes.iter().filter(|n| {
        let text = &n.text;
        text.contains("the command `kill -9 $$` after") && text.contains("was ended by signal 9")
    });
    assert_eq!(noted.count(), 2, "{:?}", run.notes);
    assert!(run.summary.ops > 0);
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let bench = Bench::on_tmpfs();
    let hangs = ["--event", "before timeout 100ms sh sleep 1000"];
    let run = short(&bench, &hangs).result(1);
    assert!(run.commands[0].end.timed_out && run.commands[0].when == HookTime::Before);
    let failure = run.failure.unwrap().to_string();
    assert!(failure.contains("it was terminated after 0."), "{failure}");
}

/// A run whose command before the load executes `script`, which hangs, and the process ids that the script wrote to the
/// file `running`.
fn hanging(bench: &Bench, script: &str) -> (Started, Vec<String>) {
    let workload = bench.workload(WORKLOAD);
    let before = format!("before load sh {script}");
    let empty = "before populate sh true";
    let args = ["--time=1h", "--event", empty, "--event", &before];
    let going = started(
        bench.command_in_work(&workload, &args),
        "running the command before load",
    );
    wait_until("the command has begun", || bench.path("running").exists());
    let pids = std::fs::read_to_string(bench.path("running")).unwrap();
    (going, pids.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn an_interrupt_ends_the_command_and_what_it_started() {
    let bench = Bench::on_tmpfs();
    let (going, pids) = hanging(&bench, "echo $$ > pid; mv pid running; sleep 1000");
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!(commands(&run), ["before populate 0", "before load -"]);
    assert!(!Path::new("/proc").join(&pids[0]).exists());
    assert_eq!(bench.left_but(&["w.f", "results", "running"]), [""; 0]);
}

/// A command that does not want to end ends with a program that ends at once.
#[test]
fn a_second_interrupt_kills_the_command_and_what_it_started() {
    let bench = Bench::on_tmpfs();
    let (going, pids) = hanging(
        &bench,
        "trap '' TERM INT; sleep 1000 & echo $$ $! > pid; mv pid running; wait; sleep 1000",
    );
    going.interrupt();
    going.interrupt();
    assert_eq!(going.end().code, Some(130));
    assert_eq!(pids.len(), 2);
    for pid in pids {
        // An orphaned process that has ended may still be a zombie.
        wait_until("it is gone", || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |s| s.contains(") Z "))
        });
    }
}

/// The command after a phase stops what the command before the phase started, even if the phase cannot begin.
#[test]
fn a_command_after_a_phase_runs_although_the_phase_failed() {
    let bench = Bench::on_disk();
    let before = "--event=before load sh rm -r \"$PLIMSOLL_DIR\"/s || true";
    let both = [before, "--event=after sh true", "--drop-caches=files"];
    let run = short(&bench, &both).expect_code(1);
    let run = run.parsed().expect("a failed run");
    let last = run.commands.last().expect("commands ran");
    assert_eq!((last.when, last.phase.as_str()), (HookTime::After, "load"));
}

#[test]
fn a_phase_has_several_commands_in_their_order() {
    let bench = Bench::on_tmpfs();
    let events = [
        "--event=after load sh echo second >> told; exit 3",
        "--event=before populate sh echo first >> told",
        "--event=after timeout 60s sh [ $PLIMSOLL_PHASE = populate ] || echo third >> told",
    ];
    let run = short(&bench, &events).result(0);
    let done = "before populate 0, after populate 0, after load 3, after load 0";
    assert_eq!(commands(&run).join(", "), done);
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    assert_eq!(told, "first\nsecond\nthird\n");
    // `results prune` also removes a results directory with the file `commands.log`.
    assert!(bench.results()[0].path().join("commands.log").exists());
    let prune = "results prune --older-than=0m --results=results --yes";
    Ended::of(bench.plimsoll(prune.split(' '))).expect_code(0);
    assert_eq!(bench.results().len(), 0);
}

#[test]
fn what_is_no_command_of_a_phase_is_refused() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let profile = "CONFIG c { personality = varmail; }\n";
    std::fs::write(bench.path("p.prof"), profile).unwrap();
    for call in [
        &["run", &workload][..],
        &["curve", "vda", "--load=1"],
        &["find", "vda", "--max-load=2"],
        &["profile", "p.prof"],
        &["md", "-P=1", "-I=1"],
    ] {
        for (event, why) in [
            ("after sh ", "expected TIME sh COMMAND"),
            ("before", "before [PHASE] sh COMMAND"),
            ("before nowhere sh true", "the run has no such phase"),
        ] {
            let event = format!("--event={event}");
            let refused = Ended::of(bench.plimsoll([call, &[&event]].concat())).refusal();
            assert!(refused.contains(why), "{call:?}: {refused}");
        }
    }
    assert_eq!(bench.left_but(&["w.f", "p.prof"]), [""; 0]);
}

/// Runs a command with load points in virtual time on the target `null`, which keeps no files.
fn points(bench: &Bench, call: &[&str], more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(call);
    command.args(["--target=null:?latency=10ms&clock=virtual", "--time=5s"]);
    command.args(["--warmup=1s", "--format=json", "--results=results"]);
    command.args(more);
    Ended::of(command)
}

#[test]
fn every_load_point_has_its_commands_and_a_curve_goes_on_with_them() {
    let bench = Bench::on_tmpfs();
    let before = "before sh echo $PLIMSOLL_LOAD $PLIMSOLL_RUN >> told; \
                  [ $PLIMSOLL_LOAD != 2 ] || [ -e mended ]";
    let load = ["curve", "vda", "--load=1,2,3"];
    let first = points(&bench, &load, &["--event", before]);
    let curve = parsed(&first.expect_code(1));
    let ended: Vec<_> = curve.runs.iter().map(|r| (r.load, r.verdict)).collect();
    let expected = [(Some(1), Verdict::Valid), (Some(2), Verdict::Failed)];
    assert_eq!(ended, expected);
    assert_eq!(curve.state, SeriesState::Failed);
    let failed = curve.stop_reason.unwrap().text;
    assert!(failed.starts_with("load 2: the command `"), "{failed}");
    std::fs::write(bench.path("mended"), "").unwrap();
    let dir = series::only(&bench);
    // The author of the results, who may be a stranger, wrote the commands, so that `resume` needs `--allow-commands`.
    let refusal = resume(&bench, &dir, &[]).refusal();
    let command = before.trim_start_matches("before sh ");
    let shown = refusal.contains(command) && refusal.contains("--allow-commands");
    assert!(shown, "{refusal}");
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    assert_eq!(told, "1 1\n2 2\n");
    resume(&bench, &dir, &["--allow-commands"]).expect_code(0);
    let curve = dir.read().unwrap();
    assert_eq!(curve.events, [before]);
    assert_eq!(series::loads(&curve), [1, 2, 3]);
    for point in &curve.runs {
        let [command] = &point.commands[..] else {
            panic!("{:?}", point.commands);
        };
        assert!(command.end.succeeded() && command.phase == "load");
        let log = dir.path().join(&point.directory).join("commands.log");
        assert!(log.exists());
    }
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    assert_eq!(told, "1 1\n2 2\n2 2\n3 3\n");

    // The notes in a curve's `series.json` name a command that failed after a phase of a load point.
    let event = ["--event", "after sh exit 3"];
    let ended = points(&bench, &["curve", "vda", "--load=1"], &event);
    let curve = parsed(&ended.expect_code(0));
    let noted = "load 1: the command `exit 3` after load: it ended with exit status 3";
    let has = curve.notes.iter().any(|n| n.text.starts_with(noted));
    assert!(has, "{:?}", curve.notes);
}

#[test]
fn searches_and_profiles_have_commands_too() {
    let bench = Bench::on_tmpfs();
    let after = "after sh echo $PLIMSOLL_LOAD/$PLIMSOLL_RUN/$PLIMSOLL_CONFIGURATION >> told";
    let search = ["find", "vda", "--max-load=2", "--confirm-runs=1"];
    let ended = points(&bench, &search, &["--event", after]).expect_code(0);
    let search = parsed(&ended);
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    let runs = (1..).zip(&search.runs);
    let line = |(n, r): (u32, &plimsoll_results::SeriesRun)| format!("{}/{n}/\n", r.load.unwrap());
    let expected: String = runs.map(line).collect();
    assert_eq!(told, expected);
    assert_eq!(search.events, [after]);

    let profile = "DEFAULTS { runtime = 0.1; }\nCONFIG c {\n  function = generic;\n  \
                   personality = varmail;\n  nfiles = 10;\n  nthreads = 1, 2;\n}\n";
    std::fs::write(bench.path("p.prof"), profile).unwrap();
    std::fs::remove_file(bench.path("told")).unwrap();
    let mut command = bench.plimsoll(["profile", "p.prof", "--results=others"]);
    command.args(["--filesystem", "here=work", "--event", after]);
    Ended::of(command).expect_code(0);
    let told = std::fs::read_to_string(bench.path("told")).unwrap();
    let each = |n: u32| format!("/{n}/c,nthreads={n} on here\n").repeat(2);
    assert_eq!(told, format!("{}{}", each(1), each(2)));
    let profile = series::only_in(&bench.path("others")).read().unwrap();
    assert_eq!(profile.events, [after]);
}

#[test]
fn phases_of_md_have_commands_at_rank_0_alone() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["md", "--processes=2", "--results=results"]);
    command.args(["-P=10", "-I=5", "-D=1", "-R=2", "--warmup=1"]);
    let before = format!("--event=before sh {TELL}; echo run $PLIMSOLL_RUN");
    command.args([&before, "--event=after sh true"]);
    let ended = Ended::of(command).expect_code(0);
    let line = "\nbenchmark process ";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let dir = &bench.results()[0];
    let run = dir.read().unwrap();
    let phases = "precreate,warm-up,benchmark,benchmark 2,cleanup".split(',');
    let expected = phases.map(|p| [format!("before {p} 0"), format!("after {p} 0")]);
    assert_eq!(commands(&run), expected.collect::<Vec<_>>().concat());
    let log = log(dir);
    assert_eq!(log.lines().filter(|l| *l == "run 1").count(), 5, "{log}");
    let told: Vec<&str> = log.lines().filter(|l| l.starts_with("before/")).collect();
    let iterations = [
        "precreate/1",
        "warm-up/1",
        "benchmark/1",
        "benchmark/2",
        "cleanup/1",
    ];
    assert_eq!(told, iterations.map(|i| format!("before/{i}")));
    let page = bench.plimsoll(["report", "--format=html", dir.path().to_str().unwrap()]);
    let page = Ended::of(page).expect_code(0).stdout;
    for line in ["finish times of benchmark 1", "finish times of benchmark 2"] {
        assert_eq!(page.matches(line).count(), 1, "{line}");
    }
}
