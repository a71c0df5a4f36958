//! The command line as a contract: exit codes, what goes to which stream, what is refused.

use crate::common::{Bench, Ended, row, schema};
use crate::reliability::limits::limited;
use plimsoll_plan::{Cold, OpsLimit, Plan, QuitMode};
use plimsoll_results::Verdict;
use serde_json::Value;
use std::collections::BTreeSet;

/// Workload with one worker that stats ten files.
pub const LOOKER: &str = "\
set $nfiles=10
set $nthreads=1
define fileset name=s,path=files,entries=$nfiles,dirwidth=20,size=4k,prealloc
define process name=p {
  thread name=t,memsize=1m,instances=$nthreads {
    flowop statfile name=look,filesetname=s
  }
}
run 1
";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn exit_codes_are_the_contract() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    let short = ["--time=100ms"];
    assert_eq!(bench.run(&looker, &short).code, Some(0));
    assert_eq!(bench.run("no-such-workload", &short).code, Some(2));
    let lost =
        bench.workload(&LOOKER.replace("run 1", "create files\nsystem \"rm -r files\"\nrun 1"));
    let run = bench
        .run(&lost, &["--time=100ms", "--allow-commands"])
        .result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let idle = bench.workload(&LOOKER.replace(
        "flowop statfile name=look,filesetname=s",
        "flowop delay name=d,value=1",
    ));
    let run = bench.run(&idle, &["--time=1500ms"]).result(3);
    assert_eq!(run.validity.reasons[0].code, "no_operations");
    assert_eq!(row(&run, "d").ops, 1, "a delay is no operation that counts");
}

#[test]
fn json_alone_is_on_standard_output_and_follows_the_schema() {
    let bench = Bench::on_tmpfs();
    let schema = Ended::of(bench.plimsoll(["docs", "schema"])).expect_code(0);
    let schema = json(&schema.stdout);
    let talker = "\
        define fileset name=s,path=files,entries=3,dirwidth=20,size=4k,prealloc
        define process name=p { thread name=t,memsize=1m {
          flowop read name=r,filesetname=s,iosize=1k,random
          flowop testrandvar name=v,value=7
          flowop print name=say,value=\"hello\"
          flowop eventlimit name=l
        } }
        eventgen rate=2
        echo \"said\"
        psrun 1 1
        run 1";
    let twice = "\
        define fileset name=s,path=files,entries=3,dirwidth=20,size=4k,prealloc
        define process name=p { thread name=t,memsize=1m {
          flowop openfile name=o,filesetname=s,fd=1
        } }
        run 1";
    for (workload, args, code) in [
        (
            "varmail",
            &["--time=1s", "--target=null:?latency=1ms&clock=virtual"][..],
            0,
        ),
        ("deletefiles", &["--set=nfiles=10", "--quit=timeout"], 0),
        ("twice", &[], 1),
        ("talker", &["--cpus=0", "--content=compressible:2"], 0),
    ] {
        let path = match workload {
            "talker" => bench.workload(talker),
            "twice" => bench.workload(twice),
            other => other.to_owned(),
        };
        let ended = bench.run(&path, args).expect_code(code);
        let mut value = json(&ended.stdout);
        assert_eq!(schema::faults(&schema, &value), [""; 0], "{workload}");
        assert!(ended.stdout.starts_with('{') && ended.stdout.ends_with("}\n"));
        if workload != "talker" {
            continue;
        }
        // The test's schema check itself finds wrong and missing fields.
        for (path, wrong) in [
            ("/seed", "-1"),
            ("/validity/verdict", "\"fine\""),
            ("/summary/ops", "null"),
            ("/operations/0/kind", "3"),
            ("/notes", "{}"),
            ("/plan/options/content", "\"nothing\""),
        ] {
            let right = std::mem::replace(value.pointer_mut(path).unwrap(), json(wrong));
            assert!(!schema::faults(&schema, &value).is_empty(), "{path}");
            *value.pointer_mut(path).unwrap() = right;
        }
        value.as_object_mut().unwrap().remove("window_s");
        assert!(!schema::faults(&schema, &value).is_empty());
    }
}

#[test]
fn the_first_line_says_the_place() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    let (work, own) = (bench.work(), bench.path("files"));
    let dir = format!("--dir={}", work.display());
    for (more, place, then) in [
        (&[&*dir][..], &work, "removed afterwards"),
        (&[&dir, "--keep"], &work, "kept afterwards"),
        // Without `--dir`, the path that the workload file states is below the current directory.
        (&[], &own, "removed afterwards"),
    ] {
        let args = [&["run", &looker, "--time=100ms"], more].concat();
        let text = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
        let line = text.lines().next().unwrap();
        let said = format!("w: files in {}", place.display());
        assert!(line.starts_with(&said) && line.contains(then), "{line}");
    }
    let json = bench.run_in_work(&looker, &["--time=100ms"]);
    let said = format!("w: files in {}", work.display());
    assert!(json.stderr.starts_with(&said), "{}", json.stderr);
}

/// Calls `run` with and without `--dry-run`; both must refuse for the same reason.
#[track_caller]
fn both_refuse(bench: &Bench, args: &[&str], reason: &str) {
    for dry in [Some("--dry-run"), None] {
        let mut all = vec!["run"];
        all.extend(args);
        all.extend(dry);
        let ended = Ended::of(bench.plimsoll(all)).expect_code(2);
        // The words of a long message are broken into lines.
        let said = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains(reason), "{dry:?} {args:?}: {}", ended.stderr);
        if dry.is_none() {
            assert_eq!(ended.stdout, "", "{args:?}");
        }
    }
    let left = bench.left_but(&["w.f", "theirs", "file", "locked"]);
    assert!(left.is_empty(), "{args:?} left {left:?}");
}

#[test]
fn a_dry_run_refuses_what_a_run_refuses() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    std::fs::create_dir(bench.path("theirs")).unwrap();
    std::fs::write(bench.path("theirs/letter"), "dear").unwrap();
    std::fs::write(bench.path("file"), "a file").unwrap();
    for (args, reason) in [
        (
            &["--dir=theirs"][..],
            "is not empty and was not created by Plimsoll",
        ),
        (&["--dir=no/such/dir"], "`no/such` does not exist"),
        (&["--dir=file"], "`file` is not a directory"),
        (&["--dir=file/x"], "is not a directory"),
        (
            &["--target=posx"],
            "unknown target `posx`: expected one of posix, device, null, sim, nfs3, nfs4, did you mean `posix`?",
        ),
        (
            &["--target=posix:?lanes=2"],
            "depth, lanes and pool are options of io=uring",
        ),
        (
            &["--target=null:?clock=virtual"],
            "without a latency virtual time does not advance",
        ),
        (&["--cpus=60000"], "--cpus names processor 60000"),
        (&["--set=nfils=3"], "did you mean `nfiles`?"),
        (&["--set=nfiles=99999999999"], "entries"),
    ] {
        let mut all = vec![looker.as_str()];
        all.extend(args);
        both_refuse(&bench, &all, reason);
    }
    let letter = std::fs::read_to_string(bench.path("theirs/letter")).unwrap();
    assert_eq!(letter, "dear");
}

#[test]
fn workloads_that_would_leave_their_directory_are_refused() {
    let bench = Bench::on_tmpfs();
    for (path, reason) in [("../x", ".."), ("a/../../x", "..")] {
        let workload = bench.workload(&LOOKER.replace("path=files", &format!("path={path}")));
        both_refuse(&bench, &[&workload, "--dir=work"], reason);
        both_refuse(&bench, &[&workload], reason);
    }
    let named = bench.workload(&LOOKER.replace("name=s,", "name=../s,"));
    both_refuse(&bench, &[&named, "--dir=work"], "..");
}

#[test]
fn shell_commands_need_permission() {
    let bench = Bench::on_tmpfs();
    let text = LOOKER.replace("run 1", "system \"echo done > proof\"\nrun 1");
    let workload = bench.workload(&text);
    both_refuse(&bench, &[&workload], "--allow-commands");
    assert!(!bench.path("proof").exists());
    bench
        .run(&workload, &["--time=100ms", "--allow-commands"])
        .expect_code(0);
    assert!(bench.path("proof").exists());
}

#[test]
fn mistakes_are_named_with_a_suggestion() {
    let bench = Bench::on_tmpfs();
    std::fs::write(
        bench.path("bad.f"),
        "set $a=1\ndefine fileset nmae=x,path=/tmp\n",
    )
    .unwrap();
    for (args, suggestion) in [
        (&["run", "filesrver"][..], "did you mean `fileserver`?"),
        (
            &["workloads", "show", "webservr"],
            "did you mean `webserver`?",
        ),
        (
            &["workloads", "show", "./none.f"],
            "cannot read the workload ./none.f: No such file",
        ),
        (
            &["run", "varmail", "--set=nthread=1"],
            "did you mean `nthreads`?",
        ),
        (&["run", "bad.f"], "bad.f:2:"),
        (&["run", "bad.f"], "did you mean `name`?"),
        (&["curv", "varmail"], "'curve'"),
        (&["run", "varmail", "--warmpu=1s"], "'--warmup'"),
        (&["run", "varmail", "--quit=alldon"], "'alldone'"),
        (&["run", "varmail", "--format=jsn"], "'json'"),
        (
            &["run", "varmail", "--repeat=1"],
            "expected a number from 2 to ",
        ),
        (&["run", "varmail", "--settle=1s"], "--repeat"),
        (&["run", "varmail", "--repeat=2", "--settle=soon"], "'soon'"),
        (
            &[
                "run",
                "varmail",
                "--repeat=2",
                "--settle=auto",
                "--target=null:?latency=1ms&clock=virtual",
            ],
            "the time of the targets is virtual",
        ),
    ] {
        let said = Ended::of(bench.plimsoll(args)).refusal();
        assert!(said.contains(suggestion), "{args:?}: {said}");
    }
    assert_eq!(bench.left_but(&["bad.f"]), [""; 0]);
}

#[test]
fn a_number_of_operations_is_done_exactly() {
    let bench = Bench::on_tmpfs();
    let many = bench.workload(&LOOKER.replace("nthreads=1", "nthreads=7"));
    for (args, ops) in [
        (&["--ops=1001"][..], 1001),
        (&["--ops=100/worker"], 700),
        (&["--ops=2/worker", "--set=nthreads=300"], 600),
        // `--ops=3` ends a run with more than three workers after three operations.
        (&["--ops=3"], 3),
        // Operations in the warm-up do not count for `--ops`.
        (&["--ops=500", "--warmup=100ms"], 500),
    ] {
        let run = bench.run(&many, args).result(0);
        assert_eq!(run.summary.ops, ops, "{args:?}");
    }
}

#[test]
fn options_are_in_the_plan() {
    let bench = Bench::on_disk();
    let dir = format!("--dir={}", bench.path("work").display());
    let text = LOOKER.replace("set $nfiles", "set mode quit timeout\nset $nfiles");
    let args = [
        "run",
        &bench.workload(&text),
        "--dry-run",
        "--format=json",
        &dir,
        "--ops=5/worker",
        "--drop-caches",
        "--cpus=0",
        "--seed=9",
        "--quit=firstdone",
    ];
    let plan = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let plan: Plan = serde_json::from_str(&plan).unwrap();
    let options = &plan.options;
    assert_eq!(
        (&*plan.name, plan.seed, plan.quit),
        ("w", 9, QuitMode::FirstDone)
    );
    assert_eq!(options.ops, Some(OpsLimit::PerWorker(5)));
    assert_eq!(
        (options.drop_caches, &options.cpus[..]),
        (Cold::Files, &[0][..])
    );
}

#[test]
fn built_in_workloads_are_listed_and_shown() {
    let bench = Bench::new();
    let out = |args: &[&str]| Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let list = out(&["workloads", "list"]);
    let line = list.lines().nth(1).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, rest) = (words[0], &words[2..5]);
    assert_eq!(
        (name, rest),
        ("fileserver", &["GiB", "A", "file"][..]),
        "{line}"
    );
    let list = json(&out(&["workloads", "list", "--format=json"]));
    let mut list = list.as_array().unwrap().iter();
    let server = list.find(|w| w["name"] == "fileserver").unwrap();
    assert_eq!(server["files"], 10_000);
    assert!(server["bytes"].as_u64().unwrap() > 1 << 30);
    let shown = out(&["workloads", "show", "varmail"]);
    assert!(shown.starts_with("varmail: A mail server"), "{shown}");
    assert!(shown.contains("\n  nthreads        16 "), "{shown}");
    let text = out(&["workloads", "show", "varmail", "--print-source"]);
    assert!(shown.ends_with(&text) && text.contains("define fileset"));
}

#[test]
fn a_loaded_workload_is_found_beside_the_file_and_among_the_built_in() {
    let bench = Bench::new();
    let inner = LOOKER
        .replace("nfiles=10", "nfiles=7")
        .replace("run 1\n", "");
    std::fs::write(bench.path("inner.f"), inner).unwrap();
    for (name, found) in [("inner", "    7 files"), ("varmail", "    1 000 files")] {
        let path = bench.workload(&format!("load {name}\nrun 1\n"));
        let args = ["run", &path, "--dry-run", "--dir=/x", "--target=null"];
        let plan = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
        assert!(plan.contains(found), "{plan}");
    }
}

#[test]
fn results_of_runs_never_meet() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    let commands: Vec<_> = (0..4)
        .map(|n| {
            let mut command = bench.command(&looker, &["--ops=5"]);
            command.arg("--dir").arg(bench.path(&format!("work{n}")));
            std::thread::spawn(move || Ended::of(command).result(0))
        })
        .collect();
    for run in commands {
        assert_eq!(run.join().unwrap().summary.ops, 5);
    }
    let results = bench.results();
    let names: BTreeSet<_> = results.iter().map(|d| d.path().to_owned()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for dir in results {
        assert_eq!(dir.read().unwrap().summary.ops, 5);
    }
}

#[test]
fn completions_help_and_man_pages_are_of_the_program() {
    let bench = Bench::on_tmpfs();
    let out = |args: &[&str]| Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    for shell in ["bash", "zsh", "fish"] {
        let completions = out(&["docs", "completions", shell]);
        for word in ["plimsoll", "warmup", "on-error", "firstdone"] {
            assert!(completions.contains(word), "no {word} for {shell}");
        }
    }
    for command in [
        ["workloads", "list"],
        ["workloads", "show"],
        ["docs", "schema"],
        ["docs", "completions"],
        ["docs", "man"],
    ] {
        let help = out(&[&command[..], &["--help"]].concat());
        assert!(help.contains("Examples:\n  plimsoll "), "{command:?}");
    }
    let man = out(&["docs", "man"]);
    for part in [".TH plimsoll 1", ".SH SYNOPSIS"] {
        assert!(man.contains(part), "{part}: {man}");
    }
    out(&["docs", "man", "--dir=pages"]);
    let pages = std::fs::read_dir(bench.path("pages")).unwrap().count();
    assert!(pages >= 8, "a page for each command is expected: {pages}");
    let run = std::fs::read_to_string(bench.path("pages/plimsoll-run.1")).unwrap();
    assert!(run.contains("warmup"), "{run}");
}

#[test]
fn buffers_are_only_needed_where_data_moves() {
    let bench = Bench::on_tmpfs();
    let with_memory = |size: &str| {
        let text = LOOKER.replace("statfile name=look", "read name=look,iosize=4k");
        bench.workload(&text.replace("memsize=1m", &format!("memsize={size}")))
    };
    // A size of all workers' buffers beyond 64 bits does not overflow: the run is refused.
    for (size, threads, reason) in [
        ("8000000t", "--set=nthreads=100000", "buffers take"),
        (
            "10t",
            "--set=nthreads=9",
            "the workers' buffers take 90 TiB",
        ),
    ] {
        both_refuse(&bench, &[&with_memory(size), threads], reason);
    }
    let args = [
        "--target=null:?latency=1ms&clock=virtual",
        "--set=nthreads=9",
    ];
    let run = bench
        .run(&bench.path("w.f").display().to_string(), &args)
        .result(0);
    assert!(run.summary.ops > 8000);
}

#[test]
fn only_files_that_take_descriptors_count_against_their_limit() {
    let bench = Bench::on_tmpfs();
    let many = ["--set=nthreads=200", "--set=nfiles=200", "--time=100ms"];
    let with_few = |more: &[&str]| {
        let opener = LOOKER.replace(
            "flowop statfile name=look,filesetname=s",
            "flowop openfile name=look,filesetname=s\n    flowop closefile name=close",
        );
        let command = bench.command(&bench.workload(&opener), &[&many, more].concat());
        Ended::of(limited(&["--nofile=100:100"], &command))
    };
    let refusal = with_few(&[]).refusal();
    assert!(
        refusal.contains("needs 264 descriptors (200 for files that the workers hold open,"),
        "{refusal}"
    );
    let run = with_few(&["--target", "null:"]).result(0);
    assert!(row(&run, "look").ops > 0);
}
