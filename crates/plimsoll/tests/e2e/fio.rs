//! `plimsoll fio`: the same jobs under fio and Plimsoll, output, groups, and refusals.

use crate::common::{Bench, Ended, tree};
use plimsoll_results::{Run, Verdict};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A read or write: number of the job and of the file of the job, direction, offset and size.
type Transfer = (u32, u32, char, u64, u64);

fn fio(bench: &Bench, words: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["fio", "--results"]);
    command
        .arg(bench.path("results"))
        .arg("--dir")
        .arg(bench.work());
    command.args(words);
    Ended::of(command)
}

fn only_run(bench: &Bench) -> Run {
    let results = bench.results();
    assert_eq!(results.len(), 1);
    results[0].read_with(None).unwrap()
}

/// Transfers of fio, in the order of each job, from the log that fio writes.
fn by_fio(bench: &Bench, options: &[&str]) -> Vec<Transfer> {
    let dir = bench.path("fio");
    std::fs::create_dir_all(&dir).unwrap();
    let mut command = Command::new("fio");
    command
        .current_dir(&dir)
        .args(["--thread", "--name=a", "--ioengine=psync"])
        .args(options)
        .arg("--write_iolog=log");
    let ended = Ended::of(command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // One job writes `log`, several jobs write `log.0`, `log.1` and so on.
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("log") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, file, way @ ("read" | "write"), offset, len] = words[..] else {
                continue;
            };
            let mut numbers = file.rsplit('.').map(|n| n.parse::<u32>().unwrap());
            let (number, job) = (numbers.next().unwrap(), numbers.next().unwrap());
            let way = way.chars().next().unwrap();
            found.push((
                job,
                number,
                way,
                offset.parse().unwrap(),
                len.parse().unwrap(),
            ));
        }
    }
    found
}

/// Transfers of Plimsoll, in the order of each job, as the kernel sees them. `files` is the number of files of a job,
/// and `largest` the size of the largest transfer. Larger writes, and all writes of a job that only reads, create the
/// files.
fn by_plimsoll(bench: &Bench, options: &[&str], files: u32, largest: u64) -> Vec<Transfer> {
    // With a common file for all threads, strace writes the call of one thread in two parts if another thread makes a
    // call meanwhile.
    let traces = bench.path("traces");
    std::fs::create_dir(&traces).unwrap();
    let mut command = Command::new("strace");
    command
        .args(["-ff", "-y", "-e", "trace=pread64,pwrite64", "-s", "0", "-o"])
        .arg(traces.join("thread"))
        .arg(plimsoll_testkit::bench::built_program("plimsoll"))
        .args(["fio", "--quiet", "--results"])
        .arg(bench.path("results"))
        .arg("--dir")
        .arg(bench.work())
        .args(["--name=a", "--ioengine=psync"])
        .args(options)
        .current_dir(bench.root())
        .env("TMPDIR", bench.root());
    let ended = Ended::of(command);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let call = regex::Regex::new(
        r#"(pread|pwrite)64\(\d+<[^>]*/a/\d{8}/(\d{8})>, ""(?:\.\.\.)?, (\d+), (\d+)"#,
    )
    .unwrap();
    let text: String = std::fs::read_dir(&traces)
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let is_of_reads =
        |option: &&str| option.starts_with("--rw=read") || option.starts_with("--rw=randread");
    let only_reads = options.iter().any(is_of_reads);
    let found = text.lines().filter_map(|line| {
        let found = call.captures(line)?;
        let number = |n: usize| found[n].parse::<u64>().unwrap();
        let file = number(2) as u32 - 1;
        let way = found[1].chars().nth(1).unwrap();
        let is_of_job = number(3) <= largest && (way == 'r' || !only_reads);
        is_of_job.then(|| (file / files, file % files, way, number(4), number(3)))
    });
    found.collect()
}

/// Jobs whose transfers follow from the options alone: in both programs, each job makes the same transfers in the same
/// order.
const SEQUENTIAL: &[(&str, u32)] = &[
    ("--rw=read --bs=4k --size=40k", 1),
    ("--rw=write --bs=4k --size=40k", 1),
    ("--rw=read --bs=8k --size=60k", 1),
    ("--rw=read --bs=4k --size=18k", 1),
    ("--rw=read --bs=4k --size=32k --nrfiles=2", 2),
    (
        "--rw=read --bs=4k --size=48k --nrfiles=2 --file_service_type=roundrobin:3",
        2,
    ),
    (
        "--rw=read --bs=4k --size=32k --nrfiles=2 --file_service_type=sequential",
        2,
    ),
    ("--rw=read --bs=4k --size=18k --filesize=18k --nrfiles=3", 3),
    ("--rw=read --bs=4k --filesize=16k --nrfiles=2", 2),
    ("--rw=read --bs=4k --size=16k --offset=8k", 1),
    ("--rw=read --bs=4k --size=16k --offset=8k --filesize=64k", 1),
    ("--rw=read --bs=4k --size=16k --io_size=24k", 1),
    ("--rw=read --bs=4k --size=16k --io_size=8k --loops=2", 1),
    ("--rw=write --bs=4k --size=16k --loops=2", 1),
    ("--rw=read --bs=4k --size=64k --number_ios=3", 1),
    ("--rw=read:8k --bs=4k --size=64k", 1),
    ("--rw=write --bs=4k --size=20k --fsync=2 --end_fsync=1", 1),
    ("--rw=read --bs=1000 --size=10000", 1),
    ("--rw=write --bs=16k --size=64k --numjobs=3 --offset=16k", 1),
];

#[test]
fn sequential_jobs_make_the_transfers_of_fio_in_the_order_of_fio() {
    for (options, files) in SEQUENTIAL {
        let bench = Bench::new();
        let options: Vec<&str> = options.split(' ').collect();
        let mut expected = by_fio(&bench, &options);
        let mut found = by_plimsoll(&bench, &options, *files, 16 << 10);
        // The transfers of several jobs are interleaved by chance.
        expected.sort_by_key(|t| t.0);
        found.sort_by_key(|t| t.0);
        assert!(!expected.is_empty(), "{options:?}");
        assert_eq!(found, expected, "{options:?}");
    }
}

/// Jobs that visit each block once in a random order, in both programs.
const ONCE: &[(&str, u32)] = &[
    ("--rw=randread --bs=4k --size=256k", 1),
    ("--rw=randwrite --bs=4k --size=256k", 1),
    ("--rw=randread --bs=4k --size=64k --loops=3", 1),
    ("--rw=randread --bs=4k --size=128k --nrfiles=4", 4),
    ("--rw=randread --bs=4k --size=64k --offset=64k", 1),
    ("--rw=randread --bs=4k --size=18k", 1),
    ("--rw=randwrite --bs=8k --size=128k --numjobs=2", 1),
];

#[test]
fn random_jobs_make_the_transfers_of_fio_in_another_order() {
    for (options, files) in ONCE {
        let bench = Bench::new();
        let options: Vec<&str> = options.split(' ').collect();
        let mut expected = by_fio(&bench, &options);
        let mut found = by_plimsoll(&bench, &options, *files, 8 << 10);
        let in_order = found.clone();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{options:?}");
        assert_ne!(in_order, found, "{options:?} is random");
    }
}

/// Number of the transfers by direction and size.
fn counts(transfers: &[Transfer]) -> BTreeMap<(char, u64), f64> {
    let mut counts = BTreeMap::new();
    for (_, _, way, _, len) in transfers {
        *counts.entry((*way, *len)).or_default() += 1.0;
    }
    counts
}

/// Jobs that draw directions or sizes: both programs move as many bytes, and each kind of transfer has the same share.
#[test]
fn drawn_directions_and_sizes_have_the_shares_of_fio() {
    for options in [
        "--rw=randrw --rwmixread=70 --bs=4k --size=8m --norandommap",
        "--rw=rw --rwmixwrite=20 --bs=4k --size=8m",
        "--rw=read --bssplit=4k/60:16k/40 --size=16m",
        "--rw=randread --bsrange=4k-16k --size=16m --norandommap",
        "--rw=randread --bssplit=4k/50:8k/50 --size=16m --norandommap",
    ] {
        let bench = Bench::new();
        let options: Vec<&str> = options.split(' ').collect();
        let fio = by_fio(&bench, &options);
        let own = by_plimsoll(&bench, &options, 1, 16 << 10);
        let (expected, found) = (counts(&fio), counts(&own));
        let kinds: Vec<_> = expected.keys().collect();
        assert_eq!(found.keys().collect::<Vec<_>>(), kinds, "{options:?}");
        let (all, of) = (fio.len() as f64, own.len() as f64);
        for (kind, n) in &expected {
            let (a, b) = (n / all, found[kind] / of);
            // Six standard deviations of the difference of two shares.
            let slack = 6.0 * (a * (1.0 - a) * (1.0 / all + 1.0 / of)).sqrt();
            assert!((a - b).abs() < slack, "{options:?} {kind:?}: {a} {b}");
        }
    }
}

#[test]
fn many_transfers_in_flight_visit_each_block_once() {
    let bench = Bench::new();
    let job = "--name=q --rw=randwrite --bs=4k --size=4m --ioengine=io_uring --iodepth=16 --verify=crc32c";
    let words: Vec<&str> = job.split(' ').collect();
    let ended = fio(&bench, &words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let run = only_run(&bench);
    let writes = run.operations.iter().find(|o| o.name == "q.write").unwrap();
    assert_eq!((writes.ops, writes.bytes), (1024, 4 << 20));
    assert_eq!((run.workers, run.lanes), (16, 1));
    assert!(run.target.url.contains("io=uring"), "{}", run.target.url);
    let verification = run.verification.unwrap();
    assert!(verification.is_good(), "{verification:?}");
    // As many writes as blocks, and every block has verified contents: each block was written once.
    assert_eq!((verification.files, verification.bytes), (1, 4 << 20));
}

#[test]
fn groups_are_runs_of_their_own_in_one_document() {
    let bench = Bench::on_tmpfs();
    let job = "\
[global]
size=64k
bs=4k
[w]
rw=write
end_fsync=1
[r]
stonewall
rw=randread
numjobs=2
[idle]
rw=read
";
    std::fs::write(bench.path("job.fio"), job).unwrap();
    let ended = fio(&bench, &["job.fio", "--output-format=json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let version = document["fio version"].as_str().unwrap();
    assert!(version.starts_with("plimsoll-"), "{version}");
    let jobs = document["jobs"].as_array().unwrap();
    let of = |n: usize, way: &str, field: &str| jobs[n][way][field].clone();
    let names: Vec<&str> = jobs
        .iter()
        .map(|j| j["jobname"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["w", "r", "idle"]);
    let groups: Vec<u64> = jobs
        .iter()
        .map(|j| j["groupid"].as_u64().unwrap())
        .collect();
    assert_eq!(groups, [0, 1, 1]);
    assert_eq!(
        (of(0, "write", "io_bytes"), of(0, "write", "total_ios")),
        (65_536.into(), 16.into())
    );
    assert_eq!(of(0, "read", "total_ios"), 0);
    assert_eq!(jobs[0]["sync"]["total_ios"], 1);
    assert_eq!(
        (of(1, "read", "total_ios"), of(1, "read", "io_kbytes")),
        (32.into(), 128.into())
    );
    assert_eq!(of(1, "read", "clat_ns")["N"], 32);
    assert_eq!(jobs[1]["job options"]["rw"], "randread");
    assert_eq!(bench.results().len(), 2);
    assert_eq!(
        bench.left_but(&["results", "job.fio"]),
        Vec::<String>::new()
    );
    // One section alone is one run.
    let ended = fio(&bench, &["job.fio", "--section=w", "--output=report.txt"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ended.stderr
    );
    let report = std::fs::read_to_string(bench.path("report.txt")).unwrap();
    assert!(
        report.contains("job: valid") && report.contains("w.write"),
        "{report}"
    );
    assert_eq!(bench.results().len(), 3);
}

#[test]
fn rates_hold_and_latencies_count_from_the_intended_start() {
    let bench = Bench::on_tmpfs();
    let ended = fio(
        &bench,
        &[
            "--name=r",
            "--rw=randread",
            "--size=64k",
            "--rate_iops=200",
            "--time_based",
            "--runtime=2",
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let run = only_run(&bench);
    let reads = run.operations.iter().find(|o| o.name == "r.read").unwrap();
    assert_eq!(reads.paced_ops, reads.ops);
    // 400 intended starts are in the window; a slow machine drops starts, and never adds any.
    assert!((100..=402).contains(&reads.ops), "{}", reads.ops);
}

/// Every transfer takes 10 ms of virtual time, so the rate is steady as soon as the rule has judged three seconds.
#[test]
fn a_steady_rate_begins_the_window() {
    let bench = Bench::on_tmpfs();
    let job = "--name=s --rw=randread --size=64k --time_based --runtime=1h --ss=iops:5% --ss_dur=3 --ss_ramp=2 \
               --target=null:?latency=10ms&clock=virtual";
    let words: Vec<&str> = job.split_whitespace().collect();
    let ended = fio(&bench, &words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let run = only_run(&bench);
    let reads = run.operations.iter().find(|o| o.name == "s.read").unwrap();
    assert!((299..=301).contains(&reads.ops), "{}", reads.ops);
    assert!(ended.stdout.contains("deviation=5%/3s"), "{}", ended.stdout);
}

#[test]
fn operations_on_names_touch_every_file_once() {
    for (engine, row) in [
        ("filecreate", "n.create"),
        ("filestat", "n.stat"),
        ("filedelete", "n.delete"),
        ("dircreate", "n.mkdir"),
        ("dirstat", "n.stat"),
        ("dirdelete", "n.rmdir"),
    ] {
        let is_of_dirs = engine.starts_with("dir");
        let bench = Bench::on_tmpfs();
        let engine = format!("--ioengine={engine}");
        let ended = fio(
            &bench,
            &[
                "--name=n",
                &engine,
                "--filesize=4k",
                "--nrfiles=50",
                "--numjobs=2",
                "--keep",
            ],
        );
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let run = only_run(&bench);
        let found = run.operations.iter().find(|o| o.name == row).unwrap();
        assert_eq!(found.ops, 100);
        let (files, dirs) = tree(&bench.work());
        let files = files.keys().filter(|f| !f.contains(".plimsoll")).count();
        let deleted = engine.ends_with("delete");
        let left = if deleted { 0 } else { 100 };
        assert_eq!(files, if is_of_dirs { 0 } else { left }, "{engine}");
        // The directories `n` and `n/00000001` are above the files and the leaf directories.
        assert_eq!(
            dirs.len(),
            if is_of_dirs { left + 2 } else { 2 },
            "{engine}: {dirs:?}"
        );
    }
}

#[test]
fn made_files_are_used_by_a_later_run_of_the_same_job() {
    let bench = Bench::on_tmpfs();
    let job = ["--name=c", "--size=64k", "--nrfiles=4"];
    let make = |more: &[&str]| {
        let ended = fio(&bench, &[&job[..], &["--create_only=1"], more].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stdout
    };
    let reuses = || {
        let runs = bench.results().len();
        let ended = fio(&bench, &[&job[..], &["--keep"]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        bench.results()[runs].read_with(None).unwrap().filesets[0].reused
    };
    let made = make(&[]);
    assert!(made.starts_with("c: 4 files, 64 KiB"), "{made}");
    assert!(bench.results().is_empty(), "nothing was measured");
    assert_eq!(tree(&bench.work()).0.len(), 4);
    assert!(reuses() && reuses());
    assert!(make(&[]).contains("found"));
    // Files without data, and files of zero bytes, are not the files of the reading job.
    for other in ["--rw=write", "--zero_buffers"] {
        assert!(make(&[other]).contains("created"), "{other}");
        assert!(!reuses(), "{other}");
    }
    let refused = fio(
        &bench,
        &[&job[..], &["--create_only=1", "--target=null:"]].concat(),
    );
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("keeps no files"),
        "{}",
        refused.stderr
    );
}

#[test]
fn mapped_null_and_synchronous_jobs_run() {
    for job in [
        "--name=m --ioengine=mmap --rw=randrw --bs=4k --size=128k",
        "--name=n --ioengine=null --rw=write --bs=4k --size=1m --iodepth=4",
        "--name=s --rw=write --bs=4k --size=64k --sync=1 --fdatasync=1",
        "--name=z --rw=randread --bs=4k --size=128k --random_distribution=zipf:1.2 --thinktime=10",
        "--name=v --rw=randwrite --bs=4k --size=128k --verify=md5 --loops=2",
    ] {
        let bench = Bench::new();
        let words: Vec<&str> = job.split(' ').collect();
        let ended = fio(&bench, &words);
        assert_eq!(ended.code, Some(0), "{job}\n{}", ended.stderr);
        assert_eq!(only_run(&bench).validity.verdict, Verdict::Valid, "{job}");
    }
}

#[test]
fn commands_of_a_job_need_permission() {
    let bench = Bench::on_tmpfs();
    let command = format!("--exec_prerun=touch {}", bench.path("touched").display());
    let job = ["--name=c", "--size=4k", &command];
    let refused = fio(&bench, &job);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("--allow-commands"),
        "{}",
        refused.stderr
    );
    assert!(!bench.path("touched").exists());
    let allowed = fio(&bench, &[&job[..], &["--allow-commands"]].concat());
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert!(bench.path("touched").exists());
}

#[test]
fn foreign_files_are_safe() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.work()).unwrap();
    std::fs::write(bench.work().join("mine"), "precious").unwrap();
    let ended = fio(
        &bench,
        &["--name=w", "--rw=write", "--size=64k", "--filename=mine"],
    );
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .stderr
            .contains("is not empty and was not created by Plimsoll"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        std::fs::read(bench.work().join("mine")).unwrap(),
        b"precious"
    );
}

#[test]
fn wrong_options_are_shown_at_their_place() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("j.fio"), "[a]\nsize=64k\nrw=randraed\n").unwrap();
    let ended = fio(&bench, &["j.fio"]);
    assert_eq!(ended.code, Some(2));
    for part in ["`randraed` is no value of `rw`", "j.fio:3:4", "rw=randraed"] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    assert!(bench.results().is_empty());
}

/// A target in virtual time that serves two requests at once, each in 10 ms.
const TWO_SERVERS: &str = "--target=null:?latency=10ms&servers=2&clock=virtual";

#[test]
fn job_files_are_workloads_of_other_commands() {
    let bench = Bench::on_tmpfs();
    let job = "[global]\nsize=64k\nrw=write\n[a]\n[b]\nnumjobs=2\n";
    std::fs::write(bench.path("j.fio"), job).unwrap();
    let run = bench
        .run(bench.path("j.fio").to_str().unwrap(), &["--set=bs=8k"])
        .result(0);
    let row = |name: &str| run.operations.iter().find(|o| o.name == name).unwrap().ops;
    assert_eq!((row("a.write"), row("b.write")), (8, 16));
    let endless = "[r]\nioengine=libaio\nrw=randread\nsize=1m\ntime_based\nruntime=5\n";
    std::fs::write(bench.path("r.fio"), endless).unwrap();
    let sweep = [
        "curve",
        "r.fio",
        "--vary=iodepth=1,2,4",
        TWO_SERVERS,
        "--format=json",
    ];
    let ended = Ended::of(bench.plimsoll(sweep));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let series: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let rates = series["runs"].as_array().unwrap().iter();
    let rates: Vec<f64> = rates
        .map(|r| r["achieved_ops_per_s"].as_f64().unwrap().round())
        .collect();
    // The first operation of each worker follows an open of the same length. An operation that completes at the window
    // end does not count.
    assert_eq!(rates, [100.0, 199.0, 199.0]);
    for (text, option, part) in [
        (
            "[global]\nsize=1m\n[a]\n[b]\nstonewall\n",
            "--time=1s",
            "`plimsoll fio x.fio` runs all groups",
        ),
        (
            "[a]\nsize=1m\nioengine=null\n",
            "--time=1s",
            "the engine of the jobs works on null:",
        ),
        (
            "[a]\nsize=1m\n",
            "--set=iodepht=2",
            "did you mean `iodepth`?",
        ),
        ("[a]\nsize=1m\n", "--load=2", "set `numjobs`"),
    ] {
        std::fs::write(bench.path("x.fio"), text).unwrap();
        let ended = Ended::of(bench.plimsoll(["run", "x.fio", option]));
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
}

#[test]
fn a_latency_target_searches_for_the_depth() {
    let bench = Bench::on_tmpfs();
    let job = [
        "--name=r",
        "--rw=randread",
        "--ioengine=libaio",
        "--iodepth=16",
        "--size=1m",
        "--runtime=100",
        "--time_based",
        "--latency_target=12ms",
        "--latency_window=5s",
        TWO_SERVERS,
    ];
    let ended = fio(&bench, &[&job[..], &["--format=json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let series: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(series["load_line"]["sustained"]["load"], 2, "{series}");
    let refused = fio(&bench, &[&job[..], &["--output-format=json"]].concat());
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("no form for a search"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_plan_is_printed_without_a_run() {
    let bench = Bench::on_tmpfs();
    let job = ["--name=d", "--rw=randread", "--size=64k", "--gtod_reduce=1"];
    for flag in ["--dry-run", "--parse-only"] {
        let ended = fio(&bench, &[&job[..], &[flag]].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for part in [
            "d.read: reads 4 KiB",
            "each block once in a pass",
            "`gtod_reduce` has no effect",
        ] {
            assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
        }
    }
    assert!(!Path::new(&bench.work()).exists());
}

/// The document has what programs that read fio's results look for.
#[test]
fn the_document_has_the_fields_of_fio() {
    let bench = Bench::on_tmpfs();
    let job = [
        "--name=a",
        "--rw=randrw",
        "--bs=4k",
        "--size=256k",
        "--output-format=json",
    ];
    let ended = fio(&bench, &job);
    let own: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut command = Command::new("fio");
    command
        .current_dir(bench.root())
        .args(["--thread"])
        .args(job);
    let theirs: serde_json::Value = serde_json::from_str(&Ended::of(command).stdout).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let (own, theirs) = (&own["jobs"][0], &theirs["jobs"][0]);
    for part in ["read", "write", "trim", "sync"] {
        assert_eq!(keys(&own[part]), keys(&theirs[part]), "{part}");
    }
    for part in ["clat_ns", "lat_ns", "slat_ns"] {
        assert_eq!(
            keys(&own["read"][part]),
            keys(&theirs["read"][part]),
            "{part}"
        );
    }
    for part in ["iodepth_level", "latency_ns", "latency_us", "latency_ms"] {
        assert_eq!(keys(&own[part]), keys(&theirs[part]), "{part}");
    }
    let sum =
        own["read"]["total_ios"].as_u64().unwrap() + own["write"]["total_ios"].as_u64().unwrap();
    assert_eq!(sum, 64);
}
