//! Operation mixes through the command line: the built-in ones, loads, scales, what is refused.

use crate::common::{Bench, Ended};
use plimsoll_results::{Run, Verdict};

const VIRTUAL: [&str; 2] = ["--target=null:?latency=2ms", "--clock=virtual"];

/// Built-in mixes, and their components.
const MIXES: [(&str, &[&str]); 8] = [
    ("ai-image", &["IMAGES", "RECORDS", "TRAINING", "CHECKPOINT"]),
    ("database", &["DB_TABLE", "DB_LOG"]),
    ("eda", &["FRONTEND", "BACKEND"]),
    ("eda-blended", &["EDA"]),
    ("genomics", &["GENOMICS"]),
    ("swbuild", &["SWBUILD"]),
    ("vda", &["VDA1", "VDA2"]),
    ("vdi", &["VDI"]),
];

/// Operations that count, of all rows but one.
fn total(run: &Run, but: &str) -> u64 {
    let rows = run.operations.iter().filter(|o| o.kind.counts());
    rows.filter(|o| !o.name.ends_with(but)).map(|o| o.ops).sum()
}

#[test]
fn every_built_in_mix_runs_on_files_and_leaves_nothing() {
    for (name, components) in MIXES {
        let bench = Bench::new();
        // A thousandth of the data, and 40 operations a second of each process.
        let sets: Vec<String> = components
            .iter()
            .map(|c| format!("--set={c}.rate=40000"))
            .collect();
        let mut args = vec!["--scale=0.001", "--time=2s", "--warmup=200ms"];
        args.extend(sets.iter().map(String::as_str));
        let ended = bench.run(name, &args);
        // A busy machine may be too slow for a criterion; nothing may fail.
        assert!(
            matches!(ended.code, Some(0 | 3)),
            "{name}: {}",
            ended.stderr
        );
        let run = ended.parsed().expect("a result");
        assert_eq!(run.summary.errors, 0, "{name}");
        assert_eq!(run.failure, None, "{name}");
        let mix = run.mix.as_ref().expect("figures of the mix");
        assert_eq!(mix.components.len(), components.len());
        assert_eq!((mix.load, mix.scale), (1, 0.001));
        assert_eq!(
            mix.total.scheduled,
            mix.components
                .iter()
                .map(|c| c.carried.scheduled)
                .sum::<u64>()
        );
        assert!(total(&run, "-") > 50, "{name}: {:?}", run.summary);
        let left = bench.left_but(&["results"]);
        assert!(left.is_empty(), "{name} left {left:?}");
    }
}

#[test]
fn a_video_stream_is_ten_operations_a_second_and_4_61_megabytes() {
    let bench = Bench::on_tmpfs();
    let mut args = vec!["--load=20", "--time=300s", "--warmup=10s"];
    args.extend(VIRTUAL);
    let run = bench.run("vda", &args).result(0);
    assert_eq!(run.workers, 40);
    let (ops, bytes) = (run.summary.ops_per_s / 20.0, run.summary.bytes_per_s / 20.0);
    assert!((ops - 10.0).abs() < 0.01, "{ops} operations a second");
    assert!(
        (bytes / 4.61e6 - 1.0).abs() < 0.02,
        "{bytes} bytes a second"
    );
    // The published load points are multiples of this: 340 streams, 3401 operations a second,
    // 1568 MB/s.
    assert!((340.0 * bytes / 1568e6 - 1.0).abs() < 0.02);
    let mix = run.mix.unwrap();
    assert_eq!(mix.metric, "streams");
    assert_eq!(mix.total.offered_ops_per_s, Some(200.0));
    assert_eq!(mix.total.scheduled, 60_000);
    // One operation of each process may be under way at the end.
    assert!(60_000 - mix.total.completed <= 40, "{:?}", mix.total);
    assert_eq!(mix.total.dropped, 0);
    assert_eq!(mix.total.start_delay.unwrap().max_ms, 0.0);
}

#[test]
fn processes_without_a_rate_rest_after_each_operation() {
    let bench = Bench::on_tmpfs();
    let text = "title = \"resting\"\n[metric]\nname = \"users\"\n[[component]]\nname = \"looker\"\nprocesses = 3\n\
                delay = \"18ms\"\n[component.mix]\nstat = 100\n[component.files]\ncount = 4\nsize = \
                \"4k\"\n";
    let own = bench.root().join("rest.toml");
    std::fs::write(&own, text).unwrap();
    let own = own.to_str().unwrap();
    for (set, turn_ms) in [
        ("looker.delay=18ms", 20.0),
        ("looker.delay=500us", 2.5),
        ("looker.delay=1", 1002.0),
    ] {
        let mut args = vec!["--time=60s", "--warmup=0s", "--set", set];
        args.extend(VIRTUAL);
        let run = bench.run(own, &args).result(0);
        // Each turn of the three is an operation of 2 ms and a delay.
        let expected = 3.0 * 1000.0 / turn_ms;
        let off = run.summary.ops_per_s / expected - 1.0;
        assert!(off.abs() < 0.02, "{set}: {}", run.summary.ops_per_s);
        assert_eq!(run.summary.mean_ms, 2.0, "the delay is no part of it");
    }
    let shown = Ended::of(bench.plimsoll(["run", own, "--dry-run"]))
        .expect_code(0)
        .stdout;
    assert!(
        shown.contains("one operation after the other, 18ms after each"),
        "{shown}"
    );
}

#[test]
fn achieved_mixes_match_the_request() {
    for (name, component) in [
        ("swbuild", "SWBUILD"),
        ("eda-blended", "EDA"),
        ("vdi", "VDI"),
    ] {
        let bench = Bench::on_tmpfs();
        let mut args = vec!["--load=2", "--scale=0.5", "--time=60s", "--warmup=1s"];
        args.extend(VIRTUAL);
        let run = bench.run(name, &args).result(0);
        let mix = run.plan.groups[0].program.mix().unwrap();
        assert_eq!(run.plan.groups[0].process, component);
        let all = total(&run, "-") as f64;
        for row in &mix.table {
            let share = run
                .operations
                .iter()
                .find(|o| o.name == row.op.name())
                .map_or(0.0, |o| o.ops as f64 / all);
            let asked = row.percent / 100.0;
            // Four deviations of a binomial.
            let off = 4.0 * (asked * (1.0 - asked) / all).sqrt();
            assert!(
                (share - asked).abs() < off,
                "{name} {}: {share} of {asked}",
                row.op
            );
        }
    }
}

#[test]
fn a_load_that_is_not_sustained_is_invalid_with_its_reason() {
    let bench = Bench::on_tmpfs();
    // At 200 ms a process does 5 operations a second of the 9 that are due.
    let args = [
        "--time=60s",
        "--warmup=5s",
        "--target=null:?latency=200ms",
        "--clock=virtual",
        "--set=metric.latency=100ms",
    ];
    let ended = bench.run("vda", &args);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    let codes: Vec<&str> = run
        .validity
        .reasons
        .iter()
        .map(|r| r.code.as_str())
        .collect();
    assert_eq!(codes, ["process_rate", "total_rate", "latency"]);
    let first = &run.validity.reasons[0].text;
    assert!(
        first.starts_with("1 of 2 processes did less than 75 %"),
        "{first}"
    );
    assert!(run.mix.unwrap().total.dropped > 100);
}

#[test]
fn scaled_results_say_so_everywhere() {
    let bench = Bench::on_tmpfs();
    let mut args = vec!["--scale=0.1", "--time=30s", "--warmup=0s", "--load=5"];
    args.extend(VIRTUAL);
    let plan =
        Ended::of(bench.plimsoll(["run", "vda", "--dry-run", "--scale=0.1", "--target=null"]));
    assert!(
        plan.stdout.contains("scaled: not comparable"),
        "{}",
        plan.stdout
    );
    let text = |more: &[&str]| {
        let all = [&["run", "vda"], more].concat();
        Ended::of(bench.plimsoll(all)).expect_code(0).stdout
    };
    let report = text(&args);
    for part in [
        ", load 5 streams,",
        "scaled: not comparable (data and rates are 0.1 of",
    ] {
        assert!(report.contains(part), "{report}");
    }
    assert!(!text(&args[1..]).contains("scaled"));
    let run = bench.run("vda", &args).result(0);
    assert_eq!(run.mix.as_ref().unwrap().scale, 0.1);
    assert_eq!(run.plan.metric.as_ref().unwrap().scale, 0.1);
    assert!(
        (run.summary.ops_per_s - 5.0).abs() < 0.2,
        "{}",
        run.summary.ops_per_s
    );
}

#[test]
fn what_needs_nfs_is_refused_on_posix_by_name() {
    let bench = Bench::on_tmpfs();
    let ended = bench.run("nfs-sfs2008", &["--scale=0.001"]).expect_code(2);
    assert_eq!(
        ended.stderr.trim(),
        "error: target `posix` cannot do `lookup`, `readlink`, `readdirplus`: NFS procedures \
         that no system call requests alone need an NFS target"
    );
    let mut args = vec!["--scale=0.01", "--time=60s", "--warmup=0s", "--load=10"];
    args.extend(VIRTUAL);
    bench.run("nfs-sfs2008", &args).result(0);
}

#[test]
fn files_of_ones_own_are_read_and_diagnosed() {
    let bench = Bench::on_tmpfs();
    let shown = Ended::of(bench.plimsoll(["workloads", "show", "database", "--print-source"]))
        .expect_code(0);
    let own = bench.root().join("mine.toml");
    std::fs::write(&own, shown.stdout.replace("rate = 32 ", "rate = 64 ")).unwrap();
    let own = own.to_str().unwrap();
    let mut args = vec!["--scale=0.01", "--time=100s", "--warmup=0s"];
    args.extend(VIRTUAL);
    let run = bench.run(own, &args).result(0);
    assert_eq!(run.workload, "mine");
    let log = &run.mix.unwrap().components[1];
    assert_eq!(log.carried.offered_ops_per_s, Some(0.64));
    std::fs::write(
        own,
        shown.stdout.replace("read_rand = 79", "read_rnad = 79"),
    )
    .unwrap();
    let ended = bench.run(own, &args).expect_code(2);
    assert!(
        ended.stderr.contains("unknown key `read_rnad`"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("did you mean `read_rand`?"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("mine.toml:"), "{}", ended.stderr);
}

#[test]
fn parameters_are_shown_and_set() {
    let bench = Bench::on_tmpfs();
    let shown = Ended::of(bench.plimsoll(["workloads", "show", "vda"]))
        .expect_code(0)
        .stdout;
    for line in ["VDA1.rate", "VDA2.mix.read_rand", "metric.data"] {
        assert!(shown.contains(line), "{line}");
    }
    let args = ["--set=VDA1.raet=3", "--target=null"];
    let ended = bench.run("vda", &args).expect_code(2);
    assert!(
        ended.stderr.contains("did you mean `rate`?"),
        "{}",
        ended.stderr
    );
}

#[test]
fn options_of_other_workloads_are_refused() {
    let bench = Bench::on_tmpfs();
    for (workload, option, says) in [
        (
            "varmail",
            "--load=2",
            "--load is for workloads with a business metric",
        ),
        (
            "varmail",
            "--scale=0.5",
            "--scale is for workloads with a business metric",
        ),
        (
            "vda",
            "--rate=5",
            "--rate is for the limiters of Filebench workloads",
        ),
        ("vda", "--load=0", "at least 1"),
        ("vda", "--scale=1.5", "above 0 and at most 1"),
    ] {
        let ended = bench
            .run(workload, &[option, "--target=null"])
            .expect_code(2);
        assert!(ended.stderr.contains(says), "{option}: {}", ended.stderr);
    }
}

const CUSTOM: &str = include_str!("../../../plimsoll-workload/tests/mix/samples/custom.txt");

#[test]
fn custom_workload_files_run_and_are_converted() {
    let bench = Bench::on_tmpfs();
    let export = bench.path("export.txt");
    std::fs::write(&export, CUSTOM).unwrap();
    let export = export.to_str().unwrap();
    let args = [
        "--scale=0.1",
        "--time=2s",
        "--warmup=0s",
        "--set=TABLE.rate=2000",
        "--set=OFFICE.rate=2000",
    ];
    let ended = bench.run(export, &args);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    assert_eq!((run.summary.errors, run.workload.as_str()), (0, "export"));
    assert!(total(&run, "-") > 200, "{:?}", run.summary);
    assert_eq!(run.plan.source.text, CUSTOM);
    assert!(bench.left_but(&["results", "export.txt"]).is_empty());
    // What it is converted to does the same in virtual time.
    let own = bench.path("own.toml");
    let own = own.to_str().unwrap();
    let convert = ["workloads", "convert", export, "--output", own];
    Ended::of(bench.plimsoll(convert)).expect_code(0);
    let mut args = vec!["--time=20s", "--warmup=1s", "--set=OFFICE.rate=20"];
    args.extend(VIRTUAL);
    let (first, second) = (
        bench.run(export, &args).result(0),
        bench.run(own, &args).result(0),
    );
    let figures = |run: Run| run.operations.into_iter().map(|o| (o.name, o.ops, o.bytes));
    assert!(figures(first).eq(figures(second)));
    // It is not written over.
    let ended = Ended::of(bench.plimsoll(convert)).expect_code(2);
    assert!(ended.stderr.contains("already exists"), "{}", ended.stderr);
    let ended = Ended::of(bench.plimsoll(["workloads", "convert", own])).expect_code(2);
    assert!(
        ended.stderr.contains("is not a custom workload file"),
        "{}",
        ended.stderr
    );
}

#[test]
fn custom_workload_files_are_diagnosed() {
    let bench = Bench::on_tmpfs();
    let export = bench.path("export.txt");
    std::fs::write(
        &export,
        CUSTOM.replacen("Chaff count                    0", "Chaff count 5", 1),
    )
    .unwrap();
    let ended = bench
        .run(export.to_str().unwrap(), &["--target=null"])
        .expect_code(2);
    assert!(
        ended
            .stderr
            .contains("`Chaff count` is 5: no further files are made; only 0 is possible"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("export.txt:"), "{}", ended.stderr);
}
