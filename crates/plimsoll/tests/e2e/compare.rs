//! `compare` with runs and with series of `run --repeat`, and the SVG pictures of `report`.

use crate::common::series::{parsed, runs_of};
use crate::common::{Bench, Ended};
use plimsoll_results::SeriesDir;
use serde_json::Value;
use std::path::PathBuf;

const WORKLOAD: &str = "define fileset name=s,path=files,entries=40,size=8k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m {
  flowop openfile name=open1,filesetname=s,fd=1
  flowop readwholefile name=read1,fd=1,iosize=4k
  flowop closefile name=close1,fd=1
} }
run 60
";

/// Makes a run of [`WORKLOAD`] on the target `null` in virtual time, where every operation takes `latency`; returns the
/// results directory.
fn virtual_run(bench: &Bench, latency: &str, more: &[&str]) -> PathBuf {
    let workload = bench.workload(WORKLOAD);
    let target = format!("--target=null:?latency={latency}&clock=virtual");
    let args = [&*target, "--time=3s"];
    let before = bench.results();
    bench.run(&workload, &[&args, more].concat()).expect_code(0);
    let new = bench.results().into_iter().find(|d| !before.contains(d));
    new.unwrap().path().to_owned()
}

fn call(bench: &Bench, args: &[&str], dirs: &[&PathBuf]) -> Ended {
    let mut command = bench.plimsoll(args);
    command.args(dirs);
    Ended::of(command)
}

/// Value of `metric` for an operation in the JSON of a comparison; `side` is the index, from 0, of the compared result.
fn figure<'a>(comparison: &'a Value, operation: &str, metric: &str, side: usize) -> &'a Value {
    let rows = comparison["rows"].as_array().unwrap();
    let mut rows = rows.iter();
    let row = rows.find(|r| r["operation"] == operation && r["metric"] == metric);
    &row.unwrap_or_else(|| panic!("no {metric} of {operation}"))["values"][side]
}

fn compared(bench: &Bench, results: &[&PathBuf]) -> Value {
    let out = call(bench, &["compare", "--format=json"], results).expect_code(0);
    serde_json::from_str(&out.stdout).unwrap()
}

#[test]
fn a_slower_target_meets_a_condition() {
    let bench = Bench::on_tmpfs();
    let fast = virtual_run(&bench, "1ms", &[]);
    let slow = virtual_run(&bench, "2ms", &[]);
    let comparison = compared(&bench, &[&fast, &slow]);
    for name in ["all", "read1", "close1"] {
        for (metric, expected) in [("ops_per_s", -0.5), ("mean_ms", 1.0)] {
            let change = figure(&comparison, name, metric, 1)["change"].as_f64();
            let off = (change.unwrap() - expected).abs();
            assert!(off < 0.01, "{metric} of {name}: {change:?}");
        }
    }
    let check = |condition: &str, sides: [&PathBuf; 2], code| {
        let condition = format!("--fail-if={condition}");
        call(&bench, &["compare", &condition], &sides).expect_code(code)
    };
    let met = check("p99 > +10%", [&fast, &slow], 3);
    let said = "failed: p99 > +10%: p99 of all in ";
    assert!(met.stderr.starts_with(said), "{}", met.stderr);
    assert!(met.stdout.contains("one run each: no statement"));
    check("p99 > +10%", [&slow, &fast], 0);
    for (args, sides, said) in [
        (
            &["--fail-if=rad1:p99 > 1%"][..],
            [&fast, &slow],
            "there is no p99 of `rad1`; there is of all, ",
        ),
        (&["--allow-invalid"], [&fast, &slow], "--fail-if"),
        (&[], [&fast, &bench.path("nowhere")], "nowhere"),
    ] {
        let refused = call(&bench, &[&["compare"], args].concat(), &sides).refusal();
        assert!(refused.contains(said), "{said}: {refused}");
    }
}

#[test]
fn repeated_runs_are_one_result_and_are_judged() {
    let bench = Bench::on_tmpfs();
    let fast = virtual_run(&bench, "1ms", &["--repeat=4"]);
    let slow = virtual_run(&bench, "2ms", &["--repeat=4"]);
    let seeds: Vec<u64> = runs_of(&SeriesDir::at(&fast))
        .iter()
        .map(|run| run.seed)
        .collect();
    assert_eq!(seeds, [1, 2, 3, 4]);
    let comparison = compared(&bench, &[&fast, &slow]);
    assert_eq!(comparison["sets"][1]["runs"], 4);
    let value = figure(&comparison, "all", "mean_ms", 1);
    assert_eq!(value["statement"], "real", "{value}");
    assert_eq!(value["runs"].as_array().unwrap().len(), 4);
    let warnings = comparison["warnings"].as_array().unwrap();
    // Other programs may use the processors of a test machine.
    let expected = ["the target", "the use of the processors"];
    let is_expected = |warning: &Value| {
        let warning = warning.as_str().unwrap();
        expected.iter().any(|start| warning.starts_with(start))
    };
    assert!(warnings.iter().all(is_expected), "{warnings:?}");
    // A series of `run --repeat` whose process was killed lists fewer runs than were requested.
    let file = slow.join("series.json");
    let listed = std::fs::read_to_string(&file).unwrap();
    let mut killed: Value = serde_json::from_str(&listed).unwrap();
    killed["runs"].as_array_mut().unwrap().pop();
    std::fs::write(&file, killed.to_string()).unwrap();
    let text = call(&bench, &["compare"], &[&fast, &slow])
        .expect_code(0)
        .stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "has 3 of 4 requested runs",
        "too few runs for a test: every figure in ",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn repeated_runs_wait_before_each_run_if_asked() {
    let bench = Bench::on_tmpfs();
    let runs = |wait: &[&str]| {
        let args = [
            "run",
            "randomread",
            "--repeat=2",
            "--target=null",
            "--time=50ms",
        ];
        let mut command = bench.plimsoll(args);
        command
            .args(["--results=results", "--format=json"])
            .args(wait);
        parsed(&Ended::of(command).expect_code(0)).runs
    };
    for run in runs(&["--settle=10ms"]) {
        let settling = run.settling.unwrap();
        assert!(settling.seconds >= 0.01 && settling.waited_for.is_empty());
    }
    assert!(runs(&[]).iter().all(|run| run.settling.is_none()));
}

#[test]
fn pictures_are_a_file_a_chart() {
    let bench = Bench::on_tmpfs();
    let dir = virtual_run(&bench, "1ms", &[]);
    let refused = call(&bench, &["report", "--format=svg"], &[&dir]).refusal();
    assert!(
        refused.contains("--output says which directory"),
        "{refused}"
    );
    let out = bench.path("pictures");
    let mut command = bench.plimsoll(["report", "--format=svg", "--output"]);
    command.arg(&out).arg(&dir);
    let listed = Ended::of(command).expect_code(0).stdout;
    let names: Vec<&str> = listed.lines().collect();
    assert!(
        names.iter().any(|n| n.ends_with("/throughput.svg")),
        "{listed}"
    );
    assert!(
        names.iter().any(|n| n.ends_with("/percentiles.svg")),
        "{listed}"
    );
    for name in &names {
        let svg = std::fs::read_to_string(name).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"),
            "{name}"
        );
        // An SVG picture has colours of its own, not CSS variables of a page.
        assert!(!svg.contains("var(") && svg.contains("#ffffff"), "{name}");
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), names.len());
}

#[test]
fn a_damaged_series_is_refused_with_its_line() {
    let bench = Bench::on_tmpfs();
    let dir = virtual_run(&bench, "1ms", &[]);
    let damage = |file: &str, line: usize, text: &str| {
        let path = dir.join(file);
        let whole = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = whole.lines().collect();
        lines[line - 1] = text;
        std::fs::write(&path, lines.join("\n")).unwrap();
        let refused = call(&bench, &["report", "--format=html"], &[&dir]).refusal();
        std::fs::write(&path, whole).unwrap();
        assert!(refused.contains(&format!("{file}:{line}: ")), "{refused}");
        assert_eq!(refused.lines().count(), 1, "{refused}");
    };
    damage(
        "intervals.csv",
        3,
        "1,0,0,1,read1,read_whole,many,0,0,1,1,1,1",
    );
    damage("intervals.csv", 2, "1,0,0");
    damage(
        "intervals.csv",
        4,
        "1,0,0,-1,read1,read_whole,1,0,0,1,1,1,1",
    );
    damage(
        "histograms.hlog",
        8,
        "Tag=read1/read_whole,0.000,1.000,1.000,SGVsbG8=",
    );
}

#[test]
fn a_measured_curve_is_compared_with_its_own_report_and_with_a_published_one() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["curve", "vda", "--load=2,4", "--scale=0.1", "--quiet"]);
    command.args(["--target=null:?latency=5ms&clock=virtual"]);
    command.args(["--time=3s", "--warmup=1s", "--results=results"]);
    Ended::of(command).expect_code(0);
    let dir = bench.results()[0].path().to_owned();
    Ended::of(bench.plimsoll(["results", "sut", "init"])).expect_code(0);
    let mut command = bench.plimsoll(["report", "--format=disclosure", "--sut=sut.toml", "-o"]);
    Ended::of({
        command.arg("ours.txt").arg(&dir);
        command
    })
    .expect_code(0);
    let ours = bench.path("ours.txt");
    let own = compared(&bench, &[&dir, &ours]);
    assert_eq!(own["warnings"], Value::Array(vec![]), "{own:#}");
    assert_eq!(
        own["sets"][1]["verdict"],
        "report of Plimsoll, scaled to 0.1: not comparable"
    );
    let change = figure(&own, "load 4", "mean_ms", 1)["change"].as_f64();
    assert!(change.unwrap().abs() < 0.001, "the rounding alone: {own:#}");
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let published = crates.join("../plimsoll-report/tests/published/vda2014.txt");
    let theirs = compared(&bench, &[&dir, &published]);
    let warnings: Vec<&str> = theirs["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w.as_str().unwrap())
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("the scale differs: 0.1, but 1 of "));
    assert!(warnings[1].ends_with("an open equivalent, not a SPEC result"));
    assert_eq!(theirs["sets"][1]["verdict"], "published");
}
