//! Runs of several processes: what is counted, which files there are, what is refused, and how
//! they end when something goes wrong. What `--processes` and `mpiexec` have in common is in
//! `launchers.rs`.

use crate::common::{
    Bench, Ended, PATIENCE, children_of, rank_of, row, signal, started, tree, wait_until,
};
use plimsoll_results::{OperationFigures, Run, RunDir, Verdict, tag_of};
use plimsoll_testkit::bench::Small;
use plimsoll_testkit::needs_root;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

/// A file server of eight workers with small files.
const SERVER: [&str; 5] = [
    "--set=nfiles=400",
    "--set=filesize=4k",
    "--set=nthreads=8",
    "--interval=50ms",
    "--per-rank",
];

/// Two workers: the first, which is rank 0's, looks; the second, rank 1's, does what is given.
fn looks_and(second: &str, more: &str) -> String {
    format!(
        "{more}
         define fileset name=s,path=files,entries=20,dirwidth=20,size=4k,prealloc
         define process name=p {{
           thread name=looks,memsize=1m {{ flowop statfile name=look,filesetname=s }}
           thread name=second,memsize=1m {{ {second} }}
         }}
         run 3600"
    )
}

/// What one rank measured.
pub fn of_rank(dir: &RunDir, rank: u32) -> Run {
    let path = dir.path().join(format!("ranks/rank-{rank}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Operations, bytes and errors of each row by `intervals.csv`, read as any program would.
fn by_intervals(dir: &RunDir) -> BTreeMap<String, [u128; 3]> {
    let text = std::fs::read_to_string(dir.intervals_path()).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = |name: &str| head.iter().position(|h| *h == name).unwrap();
    let mut sums = BTreeMap::<String, [u128; 3]>::new();
    for line in lines {
        let sum = sums.entry(line[at("operation")].to_owned()).or_default();
        for (sum, name) in sum.iter_mut().zip(["ops", "bytes", "errors"]) {
            *sum += line[at(name)].parse::<u128>().unwrap();
        }
    }
    sums
}

#[test]
fn whatever_the_ranks_every_operation_is_counted_once() {
    let mut plan = None;
    for ranks in [1, 3, 8] {
        let bench = Bench::on_tmpfs();
        std::fs::create_dir(bench.work()).unwrap();
        let processes = format!("--processes={ranks}");
        let args = ["--ops=6001", "--seed=7", "--dir=work", &processes];
        let run = bench.run("fileserver", &[&SERVER[..], &args].concat());
        let run = run.result(0);
        assert_eq!((run.ranks, run.workers, run.summary.ops), (ranks, 8, 6001));
        assert_eq!(run.summary.errors, 0);
        assert_eq!(plan.get_or_insert(run.plan.clone()), &run.plan);

        let dir = &bench.results()[0];
        let each: Vec<Run> = (0..ranks).map(|rank| of_rank(dir, rank)).collect();
        for (rank, own) in (0u64..).zip(&each) {
            let all = u64::from(ranks);
            let share = 6001 / all + u64::from(rank < 6001 % all);
            assert_eq!(own.summary.ops, share, "rank {rank} of {ranks}");
        }
        let intervals = by_intervals(dir);
        let histograms = crate::common::distributions(dir, run.window_number);
        for all in &run.operations {
            let name = all.name.as_str();
            let sum = |of: fn(&OperationFigures) -> u128| {
                each.iter().map(|r| of(row(r, name))).sum::<u128>()
            };
            assert!(all.ops > 0, "{name}");
            assert_eq!(u128::from(all.ops), sum(|o| o.ops.into()), "{name}");
            assert_eq!(all.bytes, sum(|o| o.bytes), "{name}");
            assert_eq!(intervals[name], [all.ops.into(), all.bytes, 0], "{name}");
            let histogram = &histograms[&tag_of(name, all.kind)];
            assert_eq!(histogram.count(), all.ops, "{name}");
            let slowest = |o: &OperationFigures| o.latency.max_ms;
            let of_ranks = each.iter().map(|r| slowest(row(r, name)));
            let of_all = of_ranks.fold(0., f64::max);
            assert!((slowest(all) - of_all).abs() < 1e-9, "{name}");
        }
        assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), 0);
    }
}

#[test]
fn files_that_come_and_go_are_those_of_one_rank() {
    for ranks in [2u64, 3, 8] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(
            "define fileset name=s,path=files,entries=300,dirwidth=7,size=1k,prealloc=50
             define process name=p { thread name=t,memsize=1m,instances=8 {
               flowop createfile name=make,filesetname=s,fd=1
               flowop closefile name=close,fd=1
               flowop openfile name=open,filesetname=s,fd=1
               flowop closefile name=close2,fd=1
               flowop deletefile name=remove,filesetname=s
               flowop statfile name=look,filesetname=s
             } }
             run 60",
        );
        let processes = format!("--processes={ranks}");
        let args = ["--keep", "--ops=6000", &processes];
        let run = bench.run_in_work(&workload, &args).result(0);
        assert_eq!(run.summary.errors, 0);
        let (made, removed) = (row(&run, "make").ops, row(&run, "remove").ops);
        assert!(made >= 900 && removed >= 900, "{made}, {removed}");
        // What a run with nothing but these rules must leave.
        let (files, _) = tree(&bench.work());
        assert_eq!(files.len() as u64, run.filesets[0].files + made - removed);
        // The next run finds all of it, and removes it with what it makes itself.
        let again = bench.run_in_work(&workload, &["--ops=100"]).result(0);
        assert!(!again.filesets[0].reused);
        assert!(!bench.work().exists());
    }
}

/// Reads at random.
const READER: &str = "\
define fileset name=s,path=files,entries=500,dirwidth=10,size=cvar(type=cvar-gamma,parameters=mean:3000;gamma:1.5),prealloc=90
define process name=p { thread name=t,memsize=1m,instances=4 {
  flowop openfile name=open,filesetname=s,fd=1
  flowop readwholefile name=read,fd=1,iosize=64k
  flowop closefile name=close,fd=1
} }
run 60
";

#[test]
fn a_tree_is_the_same_however_many_ranks_make_it() {
    let mut trees = Vec::new();
    for ranks in [1, 3, 4] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(READER);
        let processes = format!("--processes={ranks}");
        let args = ["--keep", "--ops=400", "--seed=3", &processes];
        let run = bench.run_in_work(&workload, &args).result(0);
        assert!(!run.filesets[0].reused);
        let made = tree(&bench.work());
        assert_eq!(made.0.len() as u64, run.filesets[0].files);
        let bytes = u128::from(made.0.values().sum::<u64>());
        assert_eq!(bytes, run.filesets[0].bytes);
        trees.push(made);
        // Other ranks find it whole.
        let args = ["--keep", "--ops=400", "--seed=3", "--processes=2"];
        let run = bench.run_in_work(&workload, &args).result(0);
        assert!(run.filesets[0].reused);
        assert_eq!(Some(&tree(&bench.work())), trees.last());
    }
    assert!(trees.iter().all(|t| *t == trees[0]));
}

#[test]
fn the_ranks_share_the_rate_of_events() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "eventgen rate=100
         define fileset name=s,path=files,entries=20,dirwidth=20,size=0,prealloc
         define process name=p { thread name=t,memsize=1m,instances=8 {
           flowop eventlimit name=pace
           flowop statfile name=look,filesetname=s
         } }
         run 2",
    );
    // A loaded machine may not achieve the rate.
    let run = bench.run(&workload, &["--processes=4", "--per-rank"]);
    let run = run.parsed().expect("a result");
    let looked = row(&run, "look").ops;
    // 200 are due; a machine that does much else may be late, but none comes early.
    assert!((80..=210).contains(&looked), "{looked}");
    let schedule = run.schedule.expect("the rate is a schedule");
    assert_eq!(schedule.offered_events_per_s, 100.0);
    // The first event of each rank follows the rank's start by up to one event spacing of the rank.
    assert!((190..=205).contains(&schedule.scheduled), "{schedule:?}");
    assert!(schedule.completed.abs_diff(looked) <= 8, "{schedule:?}");
    let dir = &bench.results()[0];
    for rank in 0..4 {
        let own = row(&of_rank(dir, rank), "look").ops;
        assert!((10..=54).contains(&own), "rank {rank}: {own}");
    }
}

#[test]
fn the_first_that_is_done_ends_all_ranks() {
    let bench = Bench::on_tmpfs();
    // Rank 1 has a file of its own to make, and then none.
    let workload = bench.workload(&looks_and(
        "flowop createfile name=make,filesetname=few,fd=1
         flowop closefile name=close,fd=1",
        "set mode quit firstdone
         define fileset name=few,path=files,entries=10,dirwidth=20,size=0",
    ));
    let run = bench.run(&workload, &["--processes=2"]).result(0);
    assert_eq!(row(&run, "make").ops, 5, "its half of the files");
    assert!(run.window_s < PATIENCE.as_secs_f64());
}

#[test]
fn what_several_ranks_cannot_do_is_refused_by_name() {
    let bench = Bench::on_tmpfs();
    let group = |flowops: &str, instances: u32| {
        format!(
            "define fileset name=s,path=files,entries=3,dirwidth=20,size=4k,prealloc=60
             define process name=p {{ thread name=t,memsize=1m,instances={instances} {{ {flowops} }} }}
             run 1"
        )
    };
    let look = "flowop statfile name=look,filesetname=s";
    let semaphore = group("flowop semblock name=wait,value=1,highwater=1", 4);
    let block = group("flowop block name=gate", 4);
    let count = group("flowop finishoncount name=enough,value=5", 4);
    let delete = group("flowop deletefile name=d,filesetname=s", 4);
    let looks = group(look, 4);
    let virtually = "--processes=2 --target=null:?latency=1ms&clock=virtual";
    for (text, args, message) in [
        (
            &semaphore,
            "--processes=2",
            "`wait`: semaphores do not work",
        ),
        (&block, "--processes=2", "`gate`: block and wakeup do not"),
        (&count, "--processes=2", "`enough`: finishoncount and"),
        (
            &delete,
            "--processes=4",
            "3 entries, fewer than the 4 ranks",
        ),
        (&looks, "--processes=5", "4 workers, fewer than the 5 ranks"),
        (
            &looks,
            "--processes=4 --ops=3",
            "--ops 3 is less than the 4",
        ),
        (&looks, "--processes=0", "--processes"),
        (&looks, "--processes=5000", "--processes"),
        (&looks, virtually, "virtual time supports only one process"),
    ] {
        let arguments: Vec<&str> = args.split(' ').collect();
        let workload = bench.workload(text);
        let said = bench.run_in_work(&workload, &arguments).refusal();
        assert!(said.contains(message), "{args:?}: {said}");
        assert_eq!(said.matches("error:").count(), 1, "{said}");
        assert!(!bench.work().exists(), "{args:?}");
        assert!(bench.results().is_empty(), "{args:?}");
    }
}

#[test]
fn a_disk_that_is_full_at_one_rank_ends_all_with_their_results() {
    needs_root!();
    let small = Small::new("size=2m");
    let bench = &small.bench;
    let workload = bench.workload(&looks_and(
        "flowop appendfile name=grow,filesetname=log,iosize=16k",
        "define file name=log,path=files,size=0,prealloc",
    ));
    let ended = bench.run_in_work(&workload, &["--processes=2", "--per-rank"]);
    assert_eq!(small.left(), (0, 0));
    let run = ended.result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.clone().unwrap();
    assert_eq!(failure.operation, "grow");
    assert!(failure.error.starts_with("rank 1: "), "{}", failure.error);
    assert!(failure.error.contains("ENOSPC"), "{}", failure.error);
    assert!(failure.path.unwrap().contains("log"));
    assert_eq!(row(&run, "grow:append").error_codes["ENOSPC"], 1);
    let dir = &bench.results()[0];
    assert_eq!(dir.read().unwrap(), run);
    assert_eq!(of_rank(dir, 0).workers, run.workers);
    assert_eq!(row(&of_rank(dir, 0), "grow:append").ops, 0);
}

/// A file server with so many empty files that they take a while to make.
const LARGE: [&str; 6] = [
    "--set=nfiles=400000",
    "--set=filesize=0",
    "--set=meandirwidth=1000",
    "--set=nthreads=4",
    "--processes=3",
    "--time=1h",
];

/// Waits until there is a file below a directory.
fn wait_for_a_file(dir: &Path) {
    let has_one = |dir: &Path| {
        let Ok(dirs) = std::fs::read_dir(dir) else {
            return false;
        };
        let mut files = dirs.flatten().flat_map(|d| std::fs::read_dir(d.path()));
        files.any(|mut entries| entries.next().is_some())
    };
    wait_until("files are made", || has_one(dir));
}

#[test]
fn an_interrupt_of_all_processes_ends_the_run_once() {
    let bench = Bench::on_tmpfs();
    let args = [&SERVER[..], &["--time=1h", "--processes=4"]].concat();
    let mut command = bench.command_in_work("fileserver", &args);
    command.process_group(0);
    let going = started(command, "measuring");
    std::thread::sleep(Duration::from_millis(200));
    let group = Pid::from_raw(going.child.id() as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let ended = going.end();
    assert_eq!(ended.stderr.matches("interrupted").count(), 1, "{ended:?}");
    let run = ended.result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert!(run.summary.ops > 0 && run.failure.is_none());
    assert_eq!(bench.results()[0].read().unwrap(), run);
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

#[test]
fn an_interrupt_of_one_rank_while_files_are_made_removes_them() {
    for rank in [0, 2] {
        let bench = Bench::on_tmpfs();
        let going = started(bench.command_in_work("fileserver", &LARGE), "making");
        wait_for_a_file(&bench.work().join("bigfileset"));
        let pid = match rank {
            0 => going.child.id() as i32,
            rank => rank_of(going.child.id(), rank),
        };
        signal(pid, Signal::INT);
        let run = going.end().result(130);
        assert_eq!(run.validity.verdict, Verdict::Interrupted);
        assert_eq!((run.window_number, run.summary.ops), (0, 0));
        assert_eq!(bench.left_but(&["results"]), [""; 0], "rank {rank}");
    }
}

#[test]
fn a_rank_that_dies_while_files_are_made_ends_all_and_they_are_removed() {
    let bench = Bench::on_tmpfs();
    let going = started(bench.command_in_work("fileserver", &LARGE), "making");
    wait_for_a_file(&bench.work().join("bigfileset"));
    signal(rank_of(going.child.id(), 1), Signal::KILL);
    let run = going.end().result(1);
    let error = run.failure.unwrap().error;
    assert!(error.contains("rank 1: died (signal 9)"), "{error}");
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

#[test]
fn a_rank_that_dies_in_the_run_leaves_no_files() {
    // Others may be at work when rank 0 hears of it: it must not remove files under them.
    for _ in 0..3 {
        let bench = Bench::on_tmpfs();
        let args = [&SERVER[..4], &["--time=1h", "--processes=4"]].concat();
        let going = started(bench.command_in_work("fileserver", &args), "measuring");
        std::thread::sleep(Duration::from_millis(50));
        signal(rank_of(going.child.id(), 2), Signal::KILL);
        let run = going.end().result(1);
        let error = run.failure.unwrap().error;
        assert!(error.contains("rank 2: died (signal 9)"), "{error}");
        assert_eq!(bench.left_but(&["results"]), [""; 0], "{:?}", run.notes);
    }
}

#[test]
fn when_rank_0_dies_the_others_end_and_clean_removes_the_files() {
    let bench = Bench::on_tmpfs();
    let args = [&SERVER[..], &["--time=1h", "--processes=4"]].concat();
    let mut going = started(bench.command_in_work("fileserver", &args), "measuring");
    let others = children_of(going.child.id() as i32);
    assert_eq!(others.len(), 3);
    going.child.kill().unwrap();
    assert_eq!(going.end().code, None);
    let alive = |pid: &i32| {
        // An ended process that its parent has not waited for (a zombie, state `Z`) counts as dead.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !(stat.is_empty() || stat.contains(") Z "))
    };
    wait_until("the ranks end without rank 0", || !others.iter().any(alive));
    assert!(bench.work().exists());
    Ended::of(bench.plimsoll(["clean", "work"])).expect_code(0);
    assert!(!bench.work().exists());
}
