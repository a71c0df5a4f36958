//! `io=uring`: files through io_uring. On a machine without io_uring, the tests check that a run is refused with a
//! message that says why.

use crate::common::{Bench, Ended, row, started, tree};
use crate::verify::mix;
use plimsoll_results::{Run, RunDir, Verdict};
use std::process::Command;

const URING: &str = "--target=posix:?io=uring";

/// Workers that read a file at random past the page cache, 4 KiB at a time.
fn direct_reads(workers: u32) -> String {
    format!(
        "define file name=file, path=files, size=4m, prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={workers} {{
           flowop read name=read, filename=file, iosize=4k, random, directio }} }}
         run 1"
    )
}

/// Whether the machine has io_uring; if not, asserts that runs that need it are refused with the reason.
fn has_uring(bench: &Bench) -> bool {
    let Some(why) = plimsoll_target::uring_unavailable() else {
        return true;
    };
    let said = bench.run_in_work("varmail", &[URING]).refusal();
    let expected = format!("io=uring: {why}; io=sync needs none");
    assert!(said.contains(&expected), "{said}");
    false
}

/// A run that was made through io_uring, and in which all went well.
#[track_caller]
fn through_uring(ended: Ended) -> Run {
    // A busy machine may be too slow for a criterion of a mix.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    let target = &run.target;
    assert!(target.url.starts_with("posix:?io=uring"), "{}", target.url);
    for part in [", io_uring (", "threads execute "] {
        assert!(target.description.contains(part), "{}", target.description);
    }
    let summary = &run.summary;
    assert!(summary.ops > 0 && summary.errors == 0, "{summary:?}");
    assert!(run.lanes <= std::thread::available_parallelism().unwrap().get() as u64);
    run
}

/// Asserts that completions were counted, and that the delays until they were seen are plausible.
#[track_caller]
fn assert_delays(run: &Run) {
    let delay = run
        .completion_delay
        .as_ref()
        .expect("delays of completions");
    assert!(delay.ops > 0 && delay.errors == 0 && delay.bytes == 0);
    let longest = delay.latency.max_ms;
    assert!(longest <= run.window_s * 1e3 + 1e3, "{longest} ms");
}

#[test]
fn workloads_run_as_they_do_by_system_calls() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let few = "--set=nfiles=100 --set=nthreads=8";
    let mix = mix(&bench, true);
    for (workload, more) in [
        ("fileserver", few),
        ("varmail", few),
        ("makedirs", "--set=ndirs=200"),
        ("removedirs", "--set=ndirs=200"),
        ("listdirs", "--set=nfiles=200"),
        ("openfiles", "--set=nfiles=200"),
        (
            "oltp",
            "--set=filesize=2m --set=logfilesize=2m --set=nshadows=4",
        ),
        (&mix, "--seed=1"),
    ] {
        let mut all = vec![URING, "--time=300ms", "--warmup=0s"];
        all.extend(more.split(' '));
        let run = through_uring(bench.run_in_work(workload, &all));
        // Workloads that list directories have completion delays, too, although threads, not io_uring, list
        // directories.
        assert_delays(&run);
        assert_eq!(run.hung_workers, [""; 0], "{workload}");
        assert!(tree(&bench.work()).0.is_empty(), "{workload}");
    }
}

#[test]
fn contents_are_verified() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let pool = "--target=posix:?io=uring&depth=3&pool=open+delete";
    let small = ["--set=nfiles=100", "--set=nthreads=6"];
    for io in [URING, pool] {
        let args = [io, "--verify", "--time=500ms", "--warmup=0s"];
        let args = [&args[..], &small].concat();
        // Only `fileserver` has the parameters `nfiles` and `nthreads`, so the mix runs without settings.
        for (workload, args) in [("fileserver", &args[..]), (&mix(&bench, true), &args[..4])] {
            let run = through_uring(bench.run_in_work(workload, args));
            let found = run.verification.expect("it was verified");
            assert!(found.is_good(), "{workload}: {found:?}");
            assert!(found.reads > 0 && found.files > 0, "{workload}: {found:?}");
        }
    }
}

#[test]
fn many_workers_share_a_thread_and_a_queue_of_the_device() {
    let bench = Bench::on_disk();
    if !has_uring(&bench) {
        return;
    }
    let workload = bench.workload(&direct_reads(300));
    let args = ["--target=posix:?io=uring&lanes=1", "--time=500ms"];
    let ended = bench.run_in_work(&workload, &args);
    if ended.code == Some(2) {
        // The file system of temporary files has no direct I/O.
        assert!(ended.stderr.contains("direct I/O"), "{}", ended.stderr);
        return;
    }
    let run = through_uring(ended);
    assert_eq!((run.lanes, run.workers), (1, 300));
    let reads = row(&run, "read:read");
    assert_eq!(reads.bytes, u128::from(reads.ops) * 4096);
    assert_delays(&run);
    // A read may be seen before the window opens, and end in it.
    let seen = run.completion_delay.as_ref().map_or(0, |delay| delay.ops);
    assert!(seen + run.workers >= reads.ops, "every read is seen");
}

/// The program as a user who may lock 512 KiB, if that can be had: root is exempt, unless it gives up the
/// capability. Other users share their limit with the tests beside this one, and keep it.
fn with_little_memory(run: &Command) -> Command {
    let mut command = Command::new("prlimit");
    if rustix::process::geteuid().is_root() {
        command = Command::new("setpriv");
        let without = ["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"];
        command.args(without).args(["prlimit", "--memlock=524288"]);
    }
    command.arg(run.get_program()).args(run.get_args());
    command.current_dir(run.get_current_dir().expect("the directory of the test"));
    command
}

/// The kernel counts the memory of a ring for a while after it was closed.
#[test]
fn many_runs_follow_each_other_with_little_locked_memory() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let few = ["--set=nfiles=200", "--set=nthreads=8"];
    let two = "--target=posix:?io=uring&lanes=2";
    let args = [&[two, "--time=50ms", "--warmup=0s"], &few[..]].concat();
    let run = bench.command_in_work("varmail", &args);
    for _ in 0..12 {
        let run = through_uring(Ended::of(with_little_memory(&run)));
        assert_eq!(run.hung_workers, [""; 0]);
    }
    assert!(tree(&bench.work()).0.is_empty());
}

/// Workers that compute keep their lane from looking: their reads complete unseen meanwhile.
#[test]
fn reads_of_a_busy_lane_are_delayed_by_it() {
    let bench = Bench::on_disk();
    if !has_uring(&bench) {
        return;
    }
    let computing = direct_reads(16).replace(
        "random, directio }",
        "random, directio
           flowop hog name=compute, value=200000 }",
    );
    let workload = bench.workload(&computing);
    let args = ["--target=posix:?io=uring&lanes=1", "--time=2s"];
    let ended = bench.run_in_work(&workload, &args);
    if ended.code == Some(2) {
        assert!(ended.stderr.contains("direct I/O"), "{}", ended.stderr);
        return;
    }
    let run = through_uring(ended);
    let delay = run.completion_delay.as_ref().expect("the delays");
    let [read, compute] = ["read:read", "compute"].map(|name| row(&run, name).latency.mean_ms);
    let delay = delay.latency.mean_ms;
    // A read is submitted before the other fifteen workers compute. The device has done it long before.
    assert!(read > 8.0 * compute, "read {read} ms, compute {compute} ms");
    assert!(delay > 0.75 * read, "delay {delay} ms of {read} ms");
}

/// Ends while hundreds of operations are in the kernel: all of them come back, nothing hangs or stays.
#[test]
fn an_interrupt_with_operations_in_flight_ends_the_run() {
    let bench = Bench::new();
    if !has_uring(&bench) {
        return;
    }
    let text = direct_reads(200)
        .replace(", directio", "")
        .replace("run 1", "run 3600");
    let workload = bench.workload(&text);
    let command = bench.command_in_work(&workload, &[URING]);
    let going = started(command, "measuring");
    std::thread::sleep(std::time::Duration::from_millis(300));
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!(run.hung_workers, [""; 0]);
    assert!(row(&run, "read:read").ops > 0);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

#[test]
fn auto_decides_by_workers_and_direct_io() {
    let (bench, in_memory) = (Bench::on_disk(), Bench::on_tmpfs());
    let has_uring = has_uring(&bench);
    let on_device = plimsoll_target::is_on_block_device(bench.root());
    let note_in = |bench: &Bench, workload: &str| {
        let workload = bench.workload(workload);
        let ended = bench.run_in_work(
            &workload,
            &["--target=posix:?io=auto&lanes=2", "--time=200ms"],
        );
        if ended.code == Some(2) {
            assert!(ended.stderr.contains("direct I/O"), "{}", ended.stderr);
            return None;
        }
        let run = ended.result_on_disk();
        let notes = run.notes.iter().map(|n| n.text.as_str());
        let notes: Vec<&str> = notes
            .filter(|n| n.starts_with("io=auto selects "))
            .collect();
        assert_eq!(notes.len(), 1);
        Some((run.target.url.clone(), notes[0].to_owned()))
    };
    let note = |workload: &str| note_in(&bench, workload);
    let system_calls = |why: &str| {
        let said = format!("io=auto selects system calls: {why}");
        Some(("posix".to_owned(), said))
    };
    let buffered = direct_reads(65).replace(", directio", "");
    let why = "no operation of the workload uses direct I/O";
    assert_eq!(note(&buffered), system_calls(why));
    // tmpfs has direct I/O from Linux 6.6 on.
    let no_device = "the work directory is not on a block device";
    if let Some(said) = note_in(&in_memory, &direct_reads(65)) {
        assert_eq!(Some(said), system_calls(no_device));
    }
    let Some(few) = note(&direct_reads(64)) else {
        return;
    };
    assert_eq!(Some(few), system_calls("there are at most 64 workers"));
    let (url, said) = note(&direct_reads(65)).expect("direct I/O, as before");
    if !on_device {
        assert_eq!(Some((url, said)), system_calls(no_device));
    } else if has_uring {
        assert_eq!(url, "posix:?io=uring&lanes=2");
        let expected = "io=auto selects io_uring: 65 workers use direct I/O on a block device";
        assert_eq!(said, expected);
    } else {
        assert_eq!(url, "posix");
    }
}

#[test]
fn other_targets_refuse_the_option() {
    let bench = Bench::on_tmpfs();
    for target in ["null", "sim:edge-32", "nfs3://host/export"] {
        let url = format!("--target={target}?io=auto").replace("null?", "null:?");
        let said = bench.run("varmail", &[&url]).refusal();
        assert!(said.contains("unknown option"), "{url}: {said}");
    }
}

#[test]
fn every_command_that_runs_workloads_takes_it() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let profile = "DEFAULTS { runtime = 0.3; filesystem = any; stats = stats; nfiles = 20; }
        CONFIG mail { function = generic; personality = varmail; }";
    std::fs::write(bench.path("mail.prof"), profile).unwrap();
    // Each command that makes runs accepts the target `posix:?io=uring`; `profile` has `--filesystem` instead of
    // `--dir`.
    for call in [
        "profile mail.prof --target=posix:?io=uring --filesystem=any=work --quiet --results=results",
        "md --target=posix:?io=uring -P=20 -D=2 -I=10 -R=1 --dir=work --results=results",
        "curve vda --load=1..2 --target=posix:?io=uring --scale=0.001 --time=300ms --warmup=0s --dir=work --results=results",
        "find vda --max-load=2 --target=posix:?io=uring --scale=0.001 --time=300ms --warmup=0s --dir=work --results=results",
        "run varmail --dry-run --target=posix:?io=uring --dir=work",
    ] {
        let ended = Ended::of(bench.plimsoll(call.split(' ')));
        // The loads may be invalid on a busy machine.
        assert!(
            matches!(ended.code, Some(0 | 3)),
            "{call}: {}",
            ended.stderr
        );
    }
    // Runs of curves, searches and profiles are in directories of their own.
    let results = bench.path("results");
    let (files, _) = tree(&results);
    let runs = files
        .keys()
        .filter_map(|path| path.strip_suffix("/run.json"));
    let runs = runs.filter_map(|path| RunDir::at(&results.join(path)).read().ok());
    let urls: Vec<String> = runs.map(|run| run.target.url).collect();
    assert!(urls.len() >= 5, "{urls:?}");
    assert!(urls.iter().all(|url| url == "posix:?io=uring"), "{urls:?}");
}
