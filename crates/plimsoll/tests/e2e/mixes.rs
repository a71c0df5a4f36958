//! Operation mixes in `run`: built-in mixes, `--load`, `--scale`, custom workload files of netmist, and refusals.

use crate::common::{Bench, Ended};
use plimsoll_results::Run;

const VIRTUAL: [&str; 1] = ["--target=null:?latency=2ms&clock=virtual"];

/// Built-in mixes, and their components.
const MIXES: [(&str, &[&str]); 7] = [
    ("ai-image", &["AI_SF", "AI_TF", "AI_TR", "AI_CP"]),
    ("database", &["DB_TABLE", "DB_LOG"]),
    ("eda", &["EDA_FRONTEND", "EDA_BACKEND"]),
    ("genomics", &["GENOMICS"]),
    ("swbuild", &["SWBUILD"]),
    ("vda", &["VDA1", "VDA2"]),
    ("vdi", &["VDI"]),
];

/// Number of completed operations of a run that count for the summary, except the operations of the row `but`.
fn total(run: &Run, but: &str) -> u64 {
    let rows = run.operations.iter().filter(|o| o.kind.counts());
    rows.filter(|o| !o.name.ends_with(but)).map(|o| o.ops).sum()
}

#[test]
fn every_built_in_mix_runs_on_files_and_leaves_nothing() {
    for (name, components) in MIXES {
        let bench = Bench::new();
        // A thousandth of the data, and 40 operations a second of each process.
        let sets = components.iter().map(|c| format!("--set={c}.rate=40000"));
        let sets: Vec<String> = sets.collect();
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
        let scheduled = mix.components.iter().map(|c| c.carried.scheduled);
        assert_eq!(mix.total.scheduled, scheduled.sum::<u64>());
        assert!(total(&run, "-") > 50, "{name}: {:?}", run.summary);
        let left = bench.left_but(&["results"]);
        assert!(left.is_empty(), "{name} left {left:?}");
    }
}

#[test]
fn scaled_results_say_so_everywhere() {
    let bench = Bench::on_tmpfs();
    let mut args = vec!["--scale=0.1", "--time=30s", "--warmup=0s", "--load=5"];
    args.extend(VIRTUAL);
    let text = |more: &[&str]| {
        let all = [&["run", "vda"], more].concat();
        Ended::of(bench.plimsoll(all)).expect_code(0).stdout
    };
    let plan = text(&["--dry-run", "--scale=0.1", "--target=null"]);
    assert!(plan.contains("scaled: not comparable"), "{plan}");
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
    let rate = run.summary.ops_per_s;
    assert!((rate - 5.0).abs() < 0.2, "{rate}");
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
    let wrong = shown.stdout.replace("read_rand = 79", "read_rnad = 79");
    std::fs::write(own, wrong).unwrap();
    let said = bench.run(own, &args).expect_code(2).stderr;
    for part in [
        "unknown key `read_rnad`",
        "did you mean `read_rand`?",
        "mine.toml:",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn parameters_are_shown_and_set() {
    let bench = Bench::on_tmpfs();
    let shown = Ended::of(bench.plimsoll(["workloads", "show", "vda"])).expect_code(0);
    for line in ["VDA1.rate", "VDA2.mix.read_rand", "metric.data"] {
        assert!(shown.stdout.contains(line), "{line}");
    }
}

#[test]
fn options_of_other_workloads_are_refused() {
    let bench = Bench::on_tmpfs();
    for row in [
        "varmail --load=2 => --load is for workloads with a business metric",
        "varmail --scale=0.5 => --scale is for workloads with a business metric",
        "vda --load=0 => at least 1",
        "vda --scale=1.5 => above 0 and at most 1",
        "vda --set=VDA1.raet=3 => did you mean `rate`?",
    ] {
        let (args, says) = row.split_once(" => ").unwrap();
        let (workload, option) = args.split_once(' ').unwrap();
        let said = bench.run(workload, &[option, "--target=null"]).refusal();
        assert!(said.contains(says), "{row}: {said}");
    }
}

const CUSTOM: &str = include_str!("../../../plimsoll-workload/tests/mix/samples/custom.txt");

#[test]
fn custom_workload_files_run_and_are_converted() {
    let bench = Bench::on_tmpfs();
    let export = bench.path("export.txt");
    std::fs::write(&export, CUSTOM).unwrap();
    let export = export.to_str().unwrap();
    let rates = ["--set=TABLE.rate=2000", "--set=OFFICE.rate=2000"];
    let args = [&["--scale=0.1", "--time=2s", "--warmup=0s"], &rates[..]].concat();
    let ended = bench.run(export, &args);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    assert_eq!((run.summary.errors, run.workload.as_str()), (0, "export"));
    assert!(total(&run, "-") > 200, "{:?}", run.summary);
    assert_eq!(run.plan.source.text, CUSTOM);
    assert!(bench.left_but(&["results", "export.txt"]).is_empty());
    // In virtual time, the file that `workloads convert` makes has the same operations and bytes as netmist's file.
    let own = bench.path("own.toml");
    let own = own.to_str().unwrap();
    let convert = ["workloads", "convert", export, "--output", own];
    Ended::of(bench.plimsoll(convert)).expect_code(0);
    let mut args = vec!["--time=20s", "--warmup=1s", "--set=OFFICE.rate=20"];
    args.extend(VIRTUAL);
    let first = bench.run(export, &args).result(0);
    let second = bench.run(own, &args).result(0);
    let figures = |run: Run| run.operations.into_iter().map(|o| (o.name, o.ops, o.bytes));
    assert!(figures(first).eq(figures(second)));
    // `workloads convert --output` refuses an existing file.
    let ended = Ended::of(bench.plimsoll(convert)).expect_code(2);
    assert!(ended.stderr.contains("already exists"), "{}", ended.stderr);
    let ended = Ended::of(bench.plimsoll(["workloads", "convert", own])).expect_code(2);
    let expected = "is not a custom workload file";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}
