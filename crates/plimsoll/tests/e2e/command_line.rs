//! The command line as a contract: exit codes, what goes to which stream, what is refused.

use crate::common::{Bench, Ended, row, schema, tree};
use plimsoll_results::{Run, Verdict};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// One worker that looks at ten files.
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
    let schema = json(
        &Ended::of(bench.plimsoll(["docs", "schema"]))
            .expect_code(0)
            .stdout,
    );
    let looker = bench.workload(LOOKER);
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
        (looker.as_str(), &["--time=300ms"][..], 0),
        (
            "varmail",
            &["--time=300ms", "--set=nfiles=50", "--interval=50ms"],
            0,
        ),
        (
            "varmail",
            &["--time=1s", "--target=null:?latency=1ms", "--clock=virtual"],
            0,
        ),
        (
            "randomread",
            &["--ops=1", "--set=filesize=64k", "--drop-caches"],
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
        let value = json(&ended.stdout);
        assert_eq!(schema::faults(&schema, &value), [""; 0], "{workload}");
        assert!(ended.stdout.starts_with('{') && ended.stdout.ends_with("}\n"));
    }
}

#[test]
fn the_check_against_the_schema_finds_faults() {
    let bench = Bench::on_tmpfs();
    let schema = json(
        &Ended::of(bench.plimsoll(["docs", "schema"]))
            .expect_code(0)
            .stdout,
    );
    let good = json(
        &bench
            .run("varmail", &["--ops=1", "--target=null:"])
            .expect_code(0)
            .stdout,
    );
    assert_eq!(schema::faults(&schema, &good), [""; 0]);
    for (path, wrong) in [
        ("/seed", json("-1")),
        ("/validity/verdict", json("\"fine\"")),
        ("/summary/ops", json("null")),
        ("/operations/0/kind", json("3")),
        ("/notes", json("{}")),
        ("/plan/options/content", json("\"nothing\"")),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap() = wrong;
        assert!(!schema::faults(&schema, &bad).is_empty(), "{path}");
    }
    let mut bad = good.clone();
    bad.as_object_mut().unwrap().remove("window_s");
    assert!(!schema::faults(&schema, &bad).is_empty());
}

#[test]
fn the_first_line_says_the_place() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    let work = bench.work();
    let work = work.to_str().unwrap();
    let text = |more: &[&str]| {
        let mut args = vec!["run", &looker, "--time=100ms"];
        args.extend(more);
        let out = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
        out.lines().next().unwrap().to_owned()
    };
    let line = text(&["--dir", work]);
    assert!(line.starts_with(&format!("w: files in {work}")), "{line}");
    assert!(line.contains("removed afterwards"), "{line}");
    let line = text(&["--dir", work, "--keep"]);
    assert!(line.contains("kept afterwards"), "{line}");
    // The file's own path, below the current directory.
    let own = bench.path("files").display().to_string();
    let line = text(&[]);
    assert!(line.contains(&own), "{line}");
    let json = bench.run_in_work(&looker, &["--time=100ms"]);
    let first = json.stderr.lines().next().unwrap();
    assert!(first.starts_with(&format!("w: files in {work}")), "{first}");
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
    let virtual_on_null = ["--target=null:?latency=1ms", "--clock=virtual"];
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
            "unknown target `posx`: expected one of posix, null, sim, nfs3, nfs4, did you mean `posix`?",
        ),
        (&["--target=null:?latncy=1ms"], "unknown option `latncy`"),
        (&["--lanes=2"], "--lanes is for targets that share lanes"),
        (
            &["--clock=virtual"],
            "--clock virtual needs a target that supports virtual time",
        ),
        (
            &[virtual_on_null[0], virtual_on_null[1], "--lanes=2"],
            "--clock virtual has a single lane",
        ),
        (&["--cpus=60000"], "--cpus names processor 60000"),
        (&["--set=nthreads=0"], "expected at least 1"),
        (&["--set=nfils=3"], "did you mean `nfiles`?"),
        (&["--set=nfiles=many"], "nfiles"),
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
fn misspellings_get_a_suggestion() {
    let bench = Bench::on_tmpfs();
    for (args, suggestion) in [
        (&["run", "filesrver"][..], "did you mean `fileserver`?"),
        (
            &["workloads", "show", "webservr"],
            "did you mean `webserver`?",
        ),
        (
            &["run", "varmail", "--set=nthread=1"],
            "did you mean `nthreads`?",
        ),
        (&["curv", "varmail"], "'curve'"),
        (&["run", "varmail", "--warmpu=1s"], "'--warmup'"),
        (&["run", "varmail", "--quit=alldon"], "'alldone'"),
        (&["run", "varmail", "--format=jsn"], "'json'"),
    ] {
        let said = Ended::of(bench.plimsoll(args)).refusal();
        assert!(said.contains(suggestion), "{args:?}: {said}");
    }
    assert!(bench.left_but(&[]).is_empty());
}

#[test]
fn a_number_of_operations_is_done_exactly() {
    let bench = Bench::on_tmpfs();
    let many = bench.workload(&LOOKER.replace("nthreads=1", "nthreads=7"));
    let ops = |args: &[&str]| bench.run(&many, args).result(0).summary.ops;
    assert_eq!(ops(&["--ops=1001"]), 1001);
    assert_eq!(ops(&["--ops=100/worker"]), 700);
    assert_eq!(ops(&["--ops=3"]), 3, "fewer operations than workers");
    assert_eq!(
        ops(&["--ops=500", "--warmup=100ms"]),
        500,
        "a warm-up takes none"
    );
    for target in ["null:", "null:?latency=1ms"] {
        let on = format!("--target={target}");
        assert_eq!(ops(&[&on, "--ops=500"]), 500, "{target}");
        assert_eq!(ops(&[&on, "--ops=50/worker"]), 350, "{target}");
    }
    let said = bench.run(&many, &["--ops=0"]).refusal();
    assert!(said.contains("at least one operation"), "{said}");
}

#[test]
fn the_quit_mode_of_the_command_line_wins() {
    let bench = Bench::on_tmpfs();
    // The first worker is done after 3 operations, the second after 30.
    let text = "\
        set mode quit timeout
        define fileset name=s,path=files,entries=4,dirwidth=20,prealloc
        define process name=p {
          thread name=a,memsize=1m { flowop statfile name=one,filesetname=s
            flowop finishoncount name=f1,value=3,target=one }
          thread name=b,memsize=1m { flowop statfile name=two,filesetname=s
            flowop delay name=d,value=1
            flowop finishoncount name=f2,value=2,target=two }
        }
        run 20";
    let workload = bench.workload(text);
    let run = bench.run(&workload, &["--quit=alldone"]).result(0);
    assert_eq!((row(&run, "one").ops, row(&run, "two").ops), (3, 2));
    let run = bench.run(&workload, &["--quit=firstdone"]).result(0);
    assert_eq!(row(&run, "one").ops, 3);
    assert!(
        row(&run, "two").ops <= 1,
        "its second look comes a second later"
    );
    assert!(run.window_s < 1.0, "{}", run.window_s);
}

#[test]
fn counted_errors_are_counted_by_errno() {
    let bench = Bench::on_tmpfs();
    let text = LOOKER.replace(
        "run 1",
        "create files\nsystem \"rm files/s/*/00000003\"\nrun 1",
    );
    let workload = bench.workload(&text);
    let run = bench
        .run(
            &workload,
            &["--allow-commands", "--on-error=count", "--ops=90"],
        )
        .result(3);
    let look = row(&run, "look");
    assert_eq!(run.validity.reasons[0].code, "errors");
    // Every tenth look fails.
    assert_eq!(look.error_codes.keys().collect::<Vec<_>>(), ["ENOENT"]);
    assert_eq!(look.error_codes["ENOENT"], look.errors);
    assert_eq!(run.summary.errors, look.errors);
    assert!((8..=10).contains(&look.errors), "{}", look.errors);
    assert_eq!(run.failure, None);
}

#[test]
fn three_hundred_workers_share_one_file() {
    let bench = Bench::on_tmpfs();
    let args = [
        "--set=nthreads=300",
        "--set=filesize=64k",
        "--set=iosize=1k",
        "--ops=2/worker",
    ];
    let run = bench.run("randomread", &args).result(0);
    assert_eq!((run.workers, run.lanes), (300, 300));
    assert_eq!(run.summary.ops, 600, "each of them did its part");
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
fn a_seed_makes_the_plan_and_the_tree() {
    let bench = Bench::on_tmpfs();
    let plan = |seed: &str| {
        let args = [
            "run",
            "fileserver",
            "--dry-run",
            "--format=json",
            "--dir=x",
            "--seed",
            seed,
        ];
        Ended::of(bench.plimsoll(args)).expect_code(0).stdout
    };
    assert_eq!(plan("7"), plan("7"));
    assert_ne!(plan("7"), plan("8"));
    let files = |seed: &str| {
        let args = [
            "--keep",
            "--ops=1",
            "--set=nfiles=50",
            "--set=nthreads=1",
            "--seed",
            seed,
        ];
        bench.run_in_work("webserver", &args).expect_code(0);
        let files = tree(&bench.work()).0;
        std::fs::remove_dir_all(bench.work()).unwrap();
        files
    };
    let seven = files("7");
    assert_eq!(seven, files("7"));
    assert_ne!(seven, files("8"));
}

#[test]
fn processors_and_cold_files_are_asked_for() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    let run = bench
        .run(&looker, &["--cpus=0", "--drop-caches", "--ops=5"])
        .result(0);
    assert_eq!(run.plan.options.cpus, [0]);
    assert_eq!(run.plan.options.drop_caches, plimsoll_plan::Cold::Files);
}

#[test]
fn documents_are_sensible() {
    let bench = Bench::on_tmpfs();
    let out = |args: &[&str]| Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let bash = out(&["docs", "completions", "bash"]);
    for word in ["--warmup", "--on-error", "firstdone"] {
        assert!(bash.contains(word), "no {word} in the completions");
    }
    let man = out(&["docs", "man"]);
    assert!(
        man.contains(".SH SYNOPSIS") && man.contains("plimsoll"),
        "{man}"
    );
    out(&["docs", "man", "--dir=pages"]);
    let pages = std::fs::read_dir(bench.path("pages")).unwrap().count();
    assert!(pages >= 8, "one for each command: {pages}");
}

fn kept(bench: &Bench, content: &str) -> Vec<u8> {
    let content = format!("--content={content}");
    let args = [
        "--keep",
        "--ops=300",
        "--set=filesize=1m",
        "--set=iosize=64k",
        &content,
    ];
    bench.run_in_work("randomwrite", &args).expect_code(0);
    let files = tree(&bench.work()).0;
    let (path, size) = files.iter().next().unwrap();
    assert_eq!((files.len(), *size), (1, 1 << 20));
    let bytes = std::fs::read(bench.work().join(path)).unwrap();
    std::fs::remove_dir_all(bench.work()).unwrap();
    bytes
}

/// Bytes of `bytes` after gzip, by the system's own program.
fn packed(dir: &Path, bytes: &[u8]) -> usize {
    let path = dir.join("bytes");
    std::fs::write(&path, bytes).unwrap();
    let out = std::process::Command::new("gzip")
        .arg("-c")
        .arg(&path)
        .output()
        .unwrap();
    out.stdout.len()
}

#[test]
fn the_bytes_on_disk_are_of_the_kind_asked_for() {
    let bench = Bench::on_tmpfs();
    assert!(kept(&bench, "zero").iter().all(|b| *b == 0));
    let random = kept(&bench, "random");
    let ratio = |bytes: &[u8]| bytes.len() as f64 / packed(bench.root(), bytes) as f64;
    assert!(ratio(&random) < 1.01, "{}", ratio(&random));
    let blocks: BTreeSet<&[u8]> = random.chunks(4096).collect();
    assert!(
        blocks.len() > 32,
        "{} different blocks of 256",
        blocks.len()
    );
    let compressible = kept(&bench, "compressible:4");
    let found = ratio(&compressible);
    assert!((3.0..5.0).contains(&found), "{found}");
}

#[test]
fn text_and_json_say_the_same() {
    let bench = Bench::on_tmpfs();
    let looker = bench.workload(LOOKER);
    let args = ["run", &looker, "--ops=17", "--results=results"];
    let report = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let run: Run = bench.results()[0].read().unwrap();
    assert_eq!(run.summary.ops, 17);
    let line = report.lines().find(|l| l.starts_with("look ")).unwrap();
    assert_eq!(line.split_whitespace().nth(2), Some("17"), "{line}");
    assert!(report.contains("IO Summary:    17 ops "), "{report}");
}

#[test]
fn buffers_are_only_needed_where_data_moves() {
    let bench = Bench::on_tmpfs();
    let large = ["--set=nthreads=9", "--set=filesize=1m", "--time=1s"];
    // 9 workers with 10 TiB each.
    let text = Ended::of(bench.plimsoll(["workloads", "show", "randomread", "--print-source"]))
        .expect_code(0)
        .stdout;
    let text = with_memsize(&text, "10t");
    let workload = bench.workload(&text);
    let mut args = vec![workload.as_str()];
    args.extend(large);
    both_refuse(&bench, &args, "the workers' buffers take 90 TiB");
    // More than any number holds is refused and does not overflow.
    let workload = bench.workload(&with_memsize(&text, "8000000t"));
    both_refuse(
        &bench,
        &[&workload, "--set=nthreads=100000", large[1]],
        "buffers take",
    );
    let mut args = vec!["--target=null:?latency=1ms", "--clock=virtual"];
    args.extend(large);
    let workload = bench.workload(&text);
    let run = bench.run(&workload, &args).result(0);
    assert!(run.summary.ops > 8000);
}

/// The workload with another `memsize`.
fn with_memsize(text: &str, size: &str) -> String {
    let (before, after) = text.split_once("memsize=").unwrap();
    let (_, after) = after.split_once(',').unwrap();
    format!("{before}memsize={size},{after}")
}

#[test]
fn only_files_that_take_descriptors_count_against_their_limit() {
    let bench = Bench::on_tmpfs();
    let many = [
        "--set",
        "nthreads=200",
        "--set",
        "nfiles=200",
        "--time=100ms",
    ];
    let limited = |more: &[&str]| {
        let command = bench.command(&bench.workload(LOOKER), &[&many, more].concat());
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "ulimit -n 100 && exec \"$0\" \"$@\""])
            .arg(command.get_program())
            .args(command.get_args());
        if let Some(dir) = command.get_current_dir() {
            shell.current_dir(dir);
        }
        Ended::of(shell)
    };
    let refusal = limited(&[]).refusal();
    assert!(
        refusal.contains("needs 264 descriptors (200 for files that the workers hold open,"),
        "{refusal}"
    );
    let run = limited(&["--target", "null:"]).result(0);
    assert!(row(&run, "look").ops > 0);
}
