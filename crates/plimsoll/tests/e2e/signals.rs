//! Ctrl-C, and ends that must not be waited for.

use crate::common::{Bench, Ended, MARKER, row, started};
use plimsoll_results::Verdict;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time within which a run that was told to stop must be over, on a machine that does much else.
const PROMPTLY: Duration = Duration::from_secs(20);

/// One worker that waits for nobody's wakeup, beside one that works.
const WAITS_FOR_EVER: &str = "\
set mode quit alldone
define fileset name=s,path=files,entries=5,dirwidth=20,size=4k,prealloc
define process name=p {
  thread name=works,memsize=1m {
    flowop statfile name=look,filesetname=s
    flowop delay name=pause,value=1
  }
  thread name=waits,memsize=1m {
    flowop block name=gate
  }
}
run
";

#[test]
fn one_interrupt_ends_a_sleeping_worker() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WAITS_FOR_EVER);
    let run = started(bench.command_in_work(&workload, &[]), "measuring");
    std::thread::sleep(Duration::from_millis(200));
    run.interrupt();
    let asked = Instant::now();
    let run = run.end().result(130);
    assert!(asked.elapsed() < PROMPTLY, "took {:?}", asked.elapsed());
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!(run.hung_workers, [""; 0]);
    assert!(row(&run, "look").ops > 0 && row(&run, "gate").ops == 0);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

#[test]
fn an_interrupted_run_says_what_it_measured() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=1h", "--interval=50ms", "--set=nfiles=50"];
    let going = started(bench.command_in_work("varmail", &args), "measuring");
    std::thread::sleep(Duration::from_millis(400));
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    let has_measured = run.summary.ops > 0 && run.window_s > 0.1;
    assert!(has_measured, "{:?}", run.summary);
    let dir = &bench.results()[0];
    assert_eq!(dir.read().unwrap(), run);
    // The series has every operation of the window, up to the moment of the interruption.
    let text = std::fs::read_to_string(dir.intervals_path()).unwrap();
    let ops = text.lines().skip(1).filter(|l| l.contains(",fsyncfile2,"));
    let ops: u64 = ops
        .map(|l| l.split(',').nth(6).unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(ops, row(&run, "fsyncfile2").ops);
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

#[test]
fn an_interrupted_run_that_keeps_its_files_leaves_a_tree_that_the_next_run_replaces() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=1h", "--keep", "--set=nfiles=50", "--set=nthreads=2"];
    let going = started(bench.command_in_work("varmail", &args), "measuring");
    going.interrupt();
    going.end().expect_code(130);
    assert!(bench.work().join(MARKER).exists());
    let args = ["--ops=50", "--set=nfiles=50", "--set=nthreads=2"];
    let run = bench.run_in_work("varmail", &args).result(0);
    assert!(!run.filesets[0].reused, "its files were changed");
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

/// Whether there is a file below a directory; looks no further than the first entries.
fn has_a_file(dir: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return false;
    };
    let mut entries = entries.flatten().take(2);
    entries.any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => has_a_file(&entry.path()),
        kind => kind.is_ok_and(|k| k.is_file()),
    })
}

#[test]
fn an_interrupt_while_files_are_made_removes_them() {
    let bench = Bench::on_tmpfs();
    let args = [
        "--set=nfiles=200000",
        "--set=filesize=0",
        "--set=nthreads=1",
    ];
    let going = started(bench.command_in_work("fileserver", &args), "making");
    while !has_a_file(&bench.work().join("bigfileset")) {
        std::thread::sleep(Duration::from_millis(1));
    }
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!((run.window_number, run.summary.ops), (0, 0));
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

/// Workers that wait in every way there is, when the time is up.
#[test]
fn the_end_of_the_time_ends_every_wait() {
    let bench = Bench::on_tmpfs();
    let wait = |name: &str, flowop: &str| {
        format!(
            "thread name={name},memsize=1m {{
               flowop statfile name={name}1,filesetname=s
               flowop {flowop}
             }}\n"
        )
    };
    let threads = [
        wait("sem", "semblock name=never,value=1000000,highwater=1"),
        wait("post", "sempost name=full,target=other,value=2,blocking"),
        wait("gate", "block name=closed"),
        wait("sleep", "delay name=long,value=3600"),
        wait("paced", "eventlimit name=slow"),
        wait("count", "opslimit name=slower"),
    ];
    let other = "thread name=o,memsize=1m {
        flowop delay name=first,value=3600
        flowop semblock name=other,value=5,highwater=1 }";
    let text = format!(
        "eventgen rate=1
         define fileset name=s,path=files,entries=50,dirwidth=20,prealloc
         define process name=p {{ {}{other} }}
         run 1",
        threads.concat()
    );
    let workload = bench.workload(&text);
    for target in ["posix", "null:", "null:?latency=1ms"] {
        let target = format!("--target={target}");
        let ended = bench.run(&workload, &[&target]);
        let took = ended.took;
        let run = ended.result(0);
        let limit = Duration::from_secs(1) + PROMPTLY;
        assert!(took < limit, "{target}: {took:?}");
        assert_eq!(run.hung_workers, [""; 0], "{target}");
        for name in ["sem1", "post1", "gate1", "sleep1", "paced1", "count1"] {
            assert!(row(&run, name).ops > 0, "{target}: {name}");
        }
        // Operations that wait for longer than the run are interrupted, and do not count as completed.
        for name in ["never", "closed", "long", "first", "other"] {
            assert_eq!(row(&run, name).ops, 0, "{target}: {name}");
        }
        let window_s = run.window_s;
        assert!((0.9..3.0).contains(&window_s), "{target}: {window_s}");
    }
}

#[test]
fn workers_that_wait_for_each_other_end_the_run() {
    let bench = Bench::on_tmpfs();
    // The block is reached by all, the wakeup by nobody.
    let workload = bench.workload(
        "set mode quit alldone
         define fileset name=s,path=files,entries=5,dirwidth=20,prealloc
         define process name=p { thread name=t,memsize=1m,instances=3 {
           flowop statfile name=look,filesetname=s
           flowop block name=gate
           flowop wakeup name=wake,target=gate
         } }
         run",
    );
    let virtually = ["--target=null:?latency=1ms&clock=virtual"];
    for args in [&["--target=posix"][..], &virtually[..1], &virtually] {
        let run = bench.run(&workload, args).result(1);
        let failure = run.failure.unwrap();
        let expected = "deadlock: all 3 workers that are left wait for each other";
        assert_eq!((&*failure.operation, &*failure.error), ("run", expected));
        assert_eq!(run.hung_workers, [""; 0], "{args:?}: they came back");
        assert_eq!(run.notes.len(), 0, "{args:?}: {:?}", run.notes);
    }
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

#[test]
fn a_terminated_run_ends_like_an_interrupted_one() {
    let bench = Bench::on_tmpfs();
    let args = ["--time=1h", "--set=nfiles=50", "--set=nthreads=2"];
    let going = started(bench.command_in_work("varmail", &args), "measuring");
    going.terminate();
    let ended: Ended = going.end().expect_code(130);
    let run = ended.parsed().unwrap();
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

#[test]
fn a_worker_that_does_not_come_back_is_named_and_the_results_are_written() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define file name=f,path=files,size=1m,prealloc\n\
         define process name=p { thread name=t,memsize=1m { \
         flowop read name=r,filename=f,iosize=4k,random } }\nrun 1\n",
    );
    let ended = bench.run(&workload, &["--target=null:?latency=40s"]);
    let run = ended.result(3);
    assert_eq!(run.hung_workers, ["p-1/t-1"]);
    let codes: Vec<_> = run.validity.reasons.iter().map(|r| &r.code[..]).collect();
    assert!(codes.contains(&"hung_workers"), "{codes:?}");
}

/// If the program prints that the third interrupt ends the program, the exit code is 130, however late the interrupt
/// comes.
#[test]
fn a_third_interrupt_has_its_code() {
    for n in 0..60u64 {
        let bench = Bench::on_tmpfs();
        let args = ["--time=50ms", "--set=nfiles=50", "--set=nthreads=2"];
        let command = bench.command_in_work("varmail", &args);
        let going = started(command, "removing the files");
        for _ in 0..3 {
            // Sending a signal succeeds even if the child has ended, because the test has not yet waited for the child.
            going.interrupt();
            std::thread::sleep(Duration::from_micros(80 * n));
        }
        let ended = going.end();
        let code = if ended.stderr.contains("\nended") {
            130
        } else {
            0
        };
        assert_eq!(ended.code, Some(code), "{n}: {}", ended.stderr);
    }
}
