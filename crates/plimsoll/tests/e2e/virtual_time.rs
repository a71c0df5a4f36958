//! Virtual time: exact, repeatable, and the same engine as on the other lanes.

use crate::common::{Bench, row};
use plimsoll_results::{ClockKind, Run};
use std::path::Path;

/// Workers that look at files, as many as asked for.
const LOOKERS: &str = "\
set $nthreads=1
set $runtime=1
define fileset name=s,path=files,entries=10000,dirwidth=100,prealloc
define process name=p {
  thread name=t,memsize=1k,instances=$nthreads {
    flowop statfile name=look,filesetname=s
  }
}
run $runtime
";

const VIRTUAL: [&str; 1] = ["--target=null:?latency=10ms&clock=virtual"];

fn read(bench: &Bench, run: usize, file: &str) -> Vec<u8> {
    let results = bench.results();
    std::fs::read(results[run].path().join(file)).unwrap()
}

/// Virtual seconds of the large run: a minute, unless the program is not optimised.
const LARGE_RUN_S: u64 = if cfg!(debug_assertions) { 6 } else { 60 };

#[test]
fn five_thousand_workers_do_what_arithmetic_says() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKERS);
    let time = format!("--time={LARGE_RUN_S}s");
    let mut args = vec!["--set=nthreads=5000", &time];
    args.extend(VIRTUAL);
    let run = bench.run(&workload, &args).result(0);
    // The last of each worker ends at the instant the window does, which is not in it.
    let ideal = 5000 * 100 * LARGE_RUN_S;
    let ops = run.summary.ops;
    assert!((ideal - 5000..=ideal).contains(&ops), "{ops} of {ideal}");
    assert_eq!(run.clock, ClockKind::Virtual);
    assert_eq!((run.workers, run.lanes), (5000, 1));
    let off = run.window_s - LARGE_RUN_S as f64;
    assert!(off.abs() < 1e-9, "{}", run.window_s);
    let look = row(&run, "look").latency;
    assert_eq!((look.min_ms, look.mean_ms, look.max_ms), (10.0, 10.0, 10.0));
}

/// Trees of operation mixes are formulas: a billion files take no memory of their own.
#[test]
fn a_billion_files_take_less_than_a_byte_each() {
    const LOAD: u64 = 15_923;
    let bench = Bench::on_tmpfs();
    let load = format!("--load={LOAD}");
    let target = ["--target=null:?latency=1ms&clock=virtual"];
    let args = [&target[..], &["--time=100ms", "--warmup=0s", &load]].concat();
    let run = bench.run("nfs-sfs2008", &args).result(0);
    let data = &run.filesets[0];
    assert_eq!(data.files, 68_000 * LOAD);
    // 34 files in each directory that holds files, and 34 directories in the others.
    let holders = data.files.div_ceil(34);
    let dirs = holders..holders + holders / 30;
    assert!(dirs.contains(&data.dirs), "{} of {dirs:?}", data.dirs);
    // The mean of the table of sizes is 172.3 KiB; an estimate has a standard error of 0.6.
    assert!(data.bytes_estimated);
    let mean = data.bytes as f64 / data.files as f64 / 1024.0;
    assert!((168.0..177.0).contains(&mean), "{mean} KiB");
    // Each process is to do ten operations.
    let (ops, ideal) = (run.summary.ops, 10 * LOAD);
    assert!((ideal * 9 / 10..=ideal).contains(&ops), "{ops} of {ideal}");
    let process = run.system.process.expect("a process knows its memory");
    let memory = process.max_rss_bytes;
    assert!(memory < data.files, "{memory} B");
    assert!(memory < 2 << 30, "{memory} B");
}

#[test]
fn delays_take_the_time_that_their_unit_says() {
    let bench = Bench::on_tmpfs();
    let text = "set $pause=1s
define fileset name=s,path=files,entries=4,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1k {
  flowop statfile name=look,filesetname=s
  flowop delay name=rest,value=$pause
} }
";
    let workload = bench.workload(text);
    // A turn is a look of 10 ms and a delay.
    for (value, delay_ms, time, turns) in [
        ("30ms", 30.0, "40s", 1000),
        ("250us", 0.25, "41s", 4000),
        ("1.5s", 1500.0, "151s", 100),
        ("2m", 120_000.0, "1201s", 10),
        ("1", 1000.0, "101s", 100),
    ] {
        let (set, time) = (format!("--set=pause={value}"), format!("--time={time}"));
        let mut args = vec![set.as_str(), &time];
        args.extend(VIRTUAL);
        let run = bench.run(&workload, &args).result(0);
        let rest = row(&run, "rest").latency;
        assert_eq!((rest.min_ms, rest.max_ms), (delay_ms, delay_ms), "{value}");
        let looks = row(&run, "look").ops;
        assert!((turns..=turns + 1).contains(&looks), "{value}: {looks}");
        let noted = run.notes.iter().any(|n| n.text.contains("is 2 minutes"));
        assert_eq!(noted, value == "2m", "{:?}", run.notes);
    }
    // Attributes other than `value` of `delay` refuse a time, and the message shows the time as written.
    let wrong = text.replace("value=$pause", "value=1,iters=10ms");
    let said = bench.run(&bench.workload(&wrong), &VIRTUAL).refusal();
    let expected = "`iters` takes a whole number; `10ms` is the time 10ms";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn runs_of_one_seed_are_the_same_to_the_byte() {
    let bench = Bench::on_tmpfs();
    // Draws sizes, positions, files and times of events.
    let text = "\
        set $size=randvar(type=gamma, min=1k, mean=16k, gamma=1500)
        set $index=randvar(type=uniform, min=0, mean=25)
        set $think=randvar(type=uniform, min=0, mean=2)
        eventgen rate=5
        define fileset name=s,path=files,entries=50,dirwidth=5,size=$size,prealloc=70
        define process name=p { thread name=t,memsize=1m,instances=20 {
          flowop openfile name=open,filesetname=s,indexed=$index,fd=1
          flowop read name=read,fd=1,iosize=$size
          flowop closefile name=close,fd=1
          flowop delay name=think,value=$think
          flowop eventlimit name=pace
        } }
        run 30";
    let workload = bench.workload(text);
    let run = |seed: &str| {
        let mut args = vec!["--interval=500ms", "--seed", seed];
        args.extend(VIRTUAL);
        bench.run(&workload, &args).result(0)
    };
    let (first, again, other) = (run("1"), run("1"), run("2"));
    assert_eq!(first.operations, again.operations);
    assert_ne!(first.operations, other.operations);
    for file in ["histograms.hlog", "intervals.csv"] {
        let [text, same, other] = [0, 1, 2].map(|run| read(&bench, run, file));
        assert!(text.len() > 1000, "{file} has {} bytes", text.len());
        assert!(text == same, "{file} differs");
        assert!(text != other, "{file} does not depend on the seed");
    }
}

fn fixture(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/flowops");
    dir.join(name).to_str().unwrap().to_owned()
}

/// Operations by name and kind.
fn counts(run: &Run) -> Vec<(String, String, u64)> {
    let count =
        |o: &plimsoll_results::OperationFigures| (o.name.clone(), o.kind.to_string(), o.ops);
    run.operations.iter().map(count).collect()
}

const LANES: [&[&str]; 4] = [
    &["--target=null:"],
    &["--target=null:?latency=1ms"],
    &["--target=null:?latency=1ms&lanes=2"],
    &["--target=null:?latency=1ms&clock=virtual"],
];

/// A workload that ends by counts executes the same operations on every kind of lane and clock.
#[test]
fn workers_that_meet_do_the_same_on_every_lane() {
    let bench = Bench::on_tmpfs();
    for name in [
        "semaphore_pingpong.f",
        "semaphore_all.f",
        "block_wakeup.f",
        "finishoncount.f",
        "composite.f",
        "createfile.f",
        "deletefile_all.f",
    ] {
        let fixture = fixture(name);
        let run = |args: &[&str]| counts(&bench.run(&fixture, args).result(0));
        let on_files = run(&["--dir=work"]);
        assert!(on_files.iter().any(|(_, _, ops)| *ops > 0));
        for args in LANES {
            assert_eq!(run(args), on_files, "{name} {args:?}");
        }
    }
}
