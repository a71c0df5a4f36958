//! `--io`: files through io_uring. On a machine without it, the message that says why is tested instead.

use crate::common::{Bench, Ended, row, started, tree};
use crate::verify::mix;
use plimsoll_results::{Run, RunDir, Verdict};
use std::process::Command;

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
    let said = bench.run_in_work("varmail", &["--io=uring"]).refusal();
    let expected = format!("io=uring: {why}; io=sync (--io sync) needs none");
    assert!(said.contains(&expected), "{said}");
    false
}

/// A run that was made through io_uring, and in which all went well.
#[track_caller]
fn through_uring(ended: Ended) -> Run {
    // A busy machine may be too slow for a criterion of a mix.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    assert!(
        run.target.url.starts_with("posix:?io=uring"),
        "{}",
        run.target.url
    );
    assert!(
        run.target.description.contains(", io_uring ("),
        "{}",
        run.target.description
    );
    assert!(run.target.description.contains("threads execute "));
    assert!(
        run.summary.ops > 0 && run.summary.errors == 0,
        "{:?}",
        run.summary
    );
    assert!(run.lanes <= std::thread::available_parallelism().unwrap().get() as u64);
    run
}

/// Asserts that completions were counted, and that the delays until they were seen are plausible.
#[track_caller]
fn assert_delays(run: &Run) {
    let delay = run
        .completion_delay
        .as_ref()
        .expect("the delays of completions");
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
    let few = ["--set=nfiles=100", "--set=nthreads=8"];
    for (workload, more) in [
        ("fileserver", &few[..]),
        ("varmail", &few),
        ("webserver", &few),
        ("makedirs", &["--set=ndirs=200"]),
        ("removedirs", &["--set=ndirs=200"]),
        ("listdirs", &["--set=nfiles=200"]),
        ("openfiles", &["--set=nfiles=200"]),
        (
            "oltp",
            &[
                "--set=filesize=2m",
                "--set=logfilesize=2m",
                "--set=nshadows=4",
            ],
        ),
        (&mix(&bench, true), &[]),
    ] {
        let mut all = vec!["--io=uring", "--time=300ms", "--warmup=0s"];
        all.extend(more);
        let run = through_uring(bench.run_in_work(workload, &all));
        // Also those of directories, which threads list.
        assert_delays(&run);
        assert_eq!(run.hung_workers, [""; 0], "{workload}");
        assert!(
            !bench.work().exists() || tree(&bench.work()).0.is_empty(),
            "{workload}"
        );
    }
}

/// Asynchronous writes keep their rows: each that was queued completes, or was in flight at the end.
#[test]
fn asynchronous_writes_complete() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let workload = bench.workload(
        "define file name=file, path=files, size=1m, prealloc
         define process name=p { thread name=t, memsize=64k, instances=3 {
           flowop aiowrite name=aio, filename=file, iosize=8k, random, iters=8
           flowop aiowait name=wait
           flowop finishoncount name=end, value=400, target=aio } }
         set mode quit alldone
         run 30",
    );
    let run = through_uring(bench.run_in_work(&workload, &["--io=uring"]));
    let (queued, completed) = (row(&run, "aio:aio_write"), row(&run, "aio:aio_complete"));
    assert!(queued.ops >= 400, "{}", queued.ops);
    assert_eq!(queued.ops, completed.ops + completed.in_flight);
    assert_eq!(completed.bytes, u128::from(completed.ops) * 8192);
    assert!(row(&run, "wait").ops > 0);
}

#[test]
fn contents_are_verified() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    for io in [
        "--target=posix:?io=uring",
        "--target=posix:?io=uring&depth=3&pool=open+delete",
    ] {
        let args = [
            io,
            "--verify",
            "--time=500ms",
            "--warmup=0s",
            "--set=nfiles=100",
            "--set=nthreads=6",
        ];
        // The parameters are those of the first alone.
        for (workload, args) in [("fileserver", &args[..]), (&mix(&bench, true), &args[..4])] {
            let run = through_uring(bench.run_in_work(workload, args));
            let found = run.verification.expect("it was verified");
            assert!(found.is_good(), "{workload}: {found:?}");
            assert!(found.reads > 0 && found.files > 0, "{workload}: {found:?}");
        }
    }
}

#[test]
fn what_threads_execute_is_named() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let url = "--target=posix:?io=uring&pool=stat+mkdir";
    let args = [url, "--time=200ms", "--set=nfiles=50", "--set=nthreads=4"];
    let run = through_uring(bench.run_in_work("varmail", &args));
    let said = &run.target.description;
    assert!(said.contains("threads execute stat, "), "{said}");
    assert!(
        said.contains("mkdir") && said.contains(" list, lock"),
        "{said}"
    );
}

#[test]
fn many_workers_share_a_thread_and_a_queue_of_the_device() {
    let bench = Bench::on_disk();
    if !has_uring(&bench) {
        return;
    }
    let workload = bench.workload(&direct_reads(300));
    let args = ["--io=uring", "--lanes=1", "--time=500ms"];
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
    let args = [
        "--io=uring",
        "--time=50ms",
        "--warmup=0s",
        "--set=nfiles=200",
        "--set=nthreads=8",
        "--lanes=2",
    ];
    let run = bench.command_in_work("varmail", &args);
    for _ in 0..12 {
        let run = through_uring(Ended::of(with_little_memory(&run)));
        assert_eq!(run.hung_workers, [""; 0]);
    }
    assert!(!bench.work().exists() || tree(&bench.work()).0.is_empty());
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
    let ended = bench.run_in_work(&workload, &["--io=uring", "--lanes=1", "--time=2s"]);
    if ended.code == Some(2) {
        assert!(ended.stderr.contains("direct I/O"), "{}", ended.stderr);
        return;
    }
    let run = through_uring(ended);
    let (reads, computed) = (row(&run, "read:read"), row(&run, "compute"));
    let delay = run.completion_delay.as_ref().expect("the delays");
    let (read, compute, delay) = (
        reads.latency.mean_ms,
        computed.latency.mean_ms,
        delay.latency.mean_ms,
    );
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
    let going = started(
        bench.command_in_work(&workload, &["--io=uring"]),
        "measuring",
    );
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
        let ended = bench.run_in_work(&workload, &["--io=auto", "--time=200ms"]);
        if ended.code == Some(2) {
            assert!(ended.stderr.contains("direct I/O"), "{}", ended.stderr);
            return None;
        }
        let run = ended.result_on_disk();
        let notes = run.notes.iter().map(|n| n.text.as_str());
        let notes: Vec<&str> = notes.filter(|n| n.starts_with("--io auto uses ")).collect();
        assert_eq!(notes.len(), 1);
        Some((run.target.url.clone(), notes[0].to_owned()))
    };
    let note = |workload: &str| note_in(&bench, workload);
    let system_calls = |why: &str| {
        let said = format!("--io auto uses system calls: {why}");
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
        assert_eq!(url, "posix:?io=uring");
        let expected = "--io auto uses io_uring: 65 workers use direct I/O on a block device";
        assert_eq!(said, expected);
    } else {
        assert_eq!(url, "posix");
    }
}

#[test]
fn other_targets_refuse_the_option() {
    let bench = Bench::on_tmpfs();
    for io in ["sync", "uring", "auto"] {
        for target in [
            "null",
            "sim:edge-32",
            "nfs3://host/export",
            "nfs4://host/export",
        ] {
            let args = [&format!("--io={io}"), &format!("--target={target}")];
            let said = bench.run("varmail", &args.map(String::as_str)).refusal();
            let expected =
                format!("--io {io}: target `{target}` does not access files by system calls");
            assert!(said.contains(&expected), "{said}");
        }
    }
    let both = ["--io=uring", "--target=posix:?io=sync"];
    let said = bench.run("varmail", &both).refusal();
    assert!(
        said.contains("the target's URL has the option io, too"),
        "{said}"
    );
    let said = bench.run("varmail", &["--target=posix:?depth=4"]).refusal();
    assert!(
        said.contains("depth and pool are options of io=uring"),
        "{said}"
    );
}

#[test]
fn virtual_time_is_refused() {
    let bench = Bench::on_tmpfs();
    if has_uring(&bench) {
        let said = bench
            .run("varmail", &["--io=uring", "--clock=virtual"])
            .refusal();
        assert!(said.contains("runs in real time"), "{said}");
    }
}

#[test]
fn every_command_that_runs_workloads_takes_it() {
    let bench = Bench::on_tmpfs();
    if !has_uring(&bench) {
        return;
    }
    let work = format!("--dir={}", bench.work().display());
    let profile = "DEFAULTS { runtime = 0.3; filesystem = any; stats = stats; nfiles = 20; }
        CONFIG mail { function = generic; personality = varmail; }";
    std::fs::write(bench.path("mail.prof"), profile).unwrap();
    let on_uring = format!("--filesystem=any={}", bench.work().display());
    let calls: [&[&str]; 5] = [
        &["profile", "mail.prof", "--io=uring", &on_uring, "--quiet"],
        &[
            "md",
            "--io=uring",
            "-P=20",
            "-D=2",
            "-I=10",
            "-R=1",
            "-S=3000",
            "--format=json",
        ],
        &[
            "curve",
            "vda",
            "--load=1..2",
            "--io=uring",
            "--scale=0.001",
            "--time=300ms",
            "--warmup=0s",
        ],
        &[
            "find",
            "vda",
            "--max-load=2",
            "--io=uring",
            "--scale=0.001",
            "--time=300ms",
            "--warmup=0s",
        ],
        &["run", "varmail", "--dry-run", "--io=uring"],
    ];
    for call in calls {
        let mut command = bench.plimsoll(call);
        // A profile has the directories of its file systems.
        if call[0] != "profile" {
            command.arg(&work);
        }
        if !call.contains(&"--dry-run") {
            command.arg("--results=results");
        }
        let ended = Ended::of(command);
        // The loads may be invalid on a busy machine.
        assert!(
            matches!(ended.code, Some(0 | 3)),
            "{call:?}: {}",
            ended.stderr
        );
    }
    // Runs of curves, searches and profiles are in directories of their own.
    let results = bench.path("results");
    let (files, _) = tree(&results);
    let runs = files
        .keys()
        .filter_map(|path| path.strip_suffix("/run.json"));
    let urls: Vec<String> = runs
        .filter_map(|path| RunDir::at(&results.join(path)).read().ok())
        .map(|run| run.target.url)
        .collect();
    assert!(urls.len() >= 5, "{urls:?}");
    assert!(urls.iter().all(|url| url == "posix:?io=uring"), "{urls:?}");
}
