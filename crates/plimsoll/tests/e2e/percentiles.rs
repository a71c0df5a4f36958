//! `--percentiles`: in every command that makes tables, and in conditions.

use crate::common::{Bench, Ended, row, series};
use plimsoll_results::{Percentile, Run, RunDir, SeriesDir, window_histograms};
use serde_json::Value;
use std::path::PathBuf;

/// Two operations, of which one takes a millisecond and every hundredth of the other is stalled.
const WORKLOAD: &str = "define fileset name=s,path=files,entries=40,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m {
  flowop statfile name=look,filesetname=s
} }
run 60
";

/// A service of a millisecond that stands still for a tenth of a second, for three seconds: 2900
/// operations, one of which takes 101 ms.
const STALLED: [&str; 3] = [
    "--target=null:?latency=1ms&stall=100ms&stall_after=1s",
    "--clock=virtual",
    "--time=3s",
];

const LIST: &str = "--percentiles=99.99,50,99.9,99.999";

fn run(bench: &Bench, more: &[&str]) -> (Run, PathBuf) {
    let workload = bench.workload(WORKLOAD);
    let before = bench.results();
    let run = bench
        .run(&workload, &[&STALLED[..], more].concat())
        .result(0);
    let new = bench.results().into_iter().find(|d| !before.contains(d));
    (run, new.unwrap().path().to_owned())
}

fn call(bench: &Bench, args: &[&str], dirs: &[&PathBuf]) -> Ended {
    let mut command = bench.plimsoll(args);
    command.args(dirs);
    Ended::of(command)
}

fn percentile(text: &str) -> Percentile {
    text.parse().unwrap()
}

#[test]
fn a_run_keeps_percentiles_that_its_histograms_have() {
    let bench = Bench::on_tmpfs();
    let (run, dir) = run(&bench, &[]);
    assert_eq!(run.percentiles_shown, None);
    let look = row(&run, "look");
    let dir = RunDir::at(&dir);
    let sums = window_histograms(&dir.read_histograms().unwrap(), run.window_number);
    for figure in &look.percentiles {
        let share = figure.percentile.share();
        let ms = sums["look/stat"].value_at_quantile(share) as f64 / 1e6;
        assert_eq!(
            figure.ms,
            ms.min(look.latency.max_ms),
            "{}",
            figure.percentile
        );
        assert_eq!(figure.enough_samples, look.ops >= figure.percentile.needs());
        assert_eq!(figure.service_ms, None);
    }
    let at = |text: &str| look.percentile(percentile(text)).unwrap();
    assert!((1.0..1.01).contains(&at("99.9").ms) && at("99.9").enough_samples);
    // One operation in 2900 is not enough to know the slowest in ten thousand.
    assert!((101.0..101.1).contains(&at("99.99").ms) && !at("99.99").enough_samples);
    assert_eq!(
        run.summary.percentile(percentile("99.99")).unwrap().ms,
        at("99.99").ms
    );
}

#[test]
fn tables_of_a_run_show_the_requested_percentiles() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let mut command = bench.plimsoll(["run", &workload, LIST]);
    command
        .args(STALLED)
        .arg("--results")
        .arg(bench.path("results"));
    let shown = Ended::of(command).expect_code(0).stdout;
    let head = shown.lines().find(|l| l.starts_with("operation ")).unwrap();
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(
        columns[7..13],
        ["mean", "p50", "p99.9", "p99.99", "p99.999", "max"]
    );
    let look = shown.lines().find(|l| l.starts_with("look ")).unwrap();
    assert!(look.contains("101 ms?  101 ms?"), "{look}");
    assert!(
        shown.contains("?: fewer operations than the percentile needs"),
        "{shown}"
    );
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("p99.9 1.00 ms, p99.99 101 ms?, p99.999 101 ms?"),
        "{shown}"
    );
    // A report of it has them too.
    let dir = bench.results()[0].path().to_owned();
    let again = call(&bench, &["report"], &[&dir]).expect_code(0).stdout;
    assert!(again.contains(head), "{again}");
}

#[test]
fn a_report_shows_any_percentile_of_a_run_that_did_not_keep_it() {
    let bench = Bench::on_tmpfs();
    let (run, dir) = run(&bench, &["--interval=500ms"]);
    let list = "--percentiles=12.5,99.95,100";
    let report = |format: &str| {
        let format = format!("--format={format}");
        call(&bench, &["report", list, &format], &[&dir])
            .expect_code(0)
            .stdout
    };
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let figures = json["operations"][0]["percentiles"].as_array().unwrap();
    let at = |p: f64| figures.iter().find(|f| f["percentile"] == p).unwrap();
    assert_eq!(at(100.0)["ms"], run.operations[0].latency.max_ms);
    assert!((1.0..1.01).contains(&at(99.95)["ms"].as_f64().unwrap()));
    assert_eq!(at(99.95)["enough_samples"], true);
    assert_eq!(
        json["percentiles_shown"],
        serde_json::json!([12.5, 99.95, 100.0])
    );
    let text = report("text");
    assert!(text.contains("p12.5") && text.contains("p99.95") && text.contains("p100"));
    assert!(!text.contains("p99.9 "), "{text}");
    let markdown = report("markdown");
    assert!(markdown.contains("| p12.5 | p99.95 | p100 |"), "{markdown}");
    let page = report("html");
    assert!(page.contains("<th scope=\"col\">p99.95</th>"));
    let csv = report("csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let at = rows[0]
        .iter()
        .position(|h| *h == "latency_p99.95_ms")
        .unwrap();
    assert!(rows[1][at].starts_with("1.00"), "{csv}");
    for format in ["svg", "png", "disclosure"] {
        let format = format!("--format={format}");
        let refused = call(&bench, &["report", list, &format], &[&dir]).refusal();
        assert!(refused.contains("--percentiles is for tables"), "{refused}");
    }
}

#[test]
fn results_are_compared_by_any_percentile() {
    let bench = Bench::on_tmpfs();
    let (_, stalled) = run(&bench, &[]);
    let workload = bench.workload(WORKLOAD);
    let smooth = ["--target=null:?latency=1ms", "--clock=virtual", "--time=3s"];
    bench.run(&workload, &smooth).expect_code(0);
    let mut dirs: Vec<PathBuf> = bench.results().iter().map(|r| r.path().into()).collect();
    dirs.retain(|d| *d != stalled);
    let smooth = &dirs[0];
    let compare = |more: &[&str]| {
        let args = [&["compare"][..], more].concat();
        call(&bench, &args, &[smooth, &stalled])
    };
    // One operation in 2900 takes 101 ms, which is beyond the 99.96th percentile.
    compare(&["--fail-if", "p99.96 > +10%"]).expect_code(0);
    // A percentile that operations are compared by, and all of them together are not.
    compare(&["--fail-if", "p99.9 > +10%"]).expect_code(0);
    compare(&["--fail-if", "p99.9 > -10%"]).expect_code(3);
    let met = compare(&["--fail-if", "look:p99.95 > -10%"]).expect_code(3);
    assert!(met.stdout.contains("p99.95 latency"), "{}", met.stdout);
    assert!(
        met.stdout.contains("p99 latency"),
        "the usual ones are there too"
    );
    let unknown = compare(&["--fail-if", "p99.999 > +10%"]).refusal();
    assert!(
        unknown.contains("p99.999 of all is not known: it needs 100 000 operations"),
        "{unknown}"
    );
    let text = compare(&["--percentiles=90,99.99"]).expect_code(0).stdout;
    assert!(
        text.contains("p90 latency") && !text.contains("p99 latency"),
        "{text}"
    );
    assert!(text.contains("101 ms?"), "{text}");
    let json = compare(&["--percentiles=99.99", "--format=json"])
        .expect_code(0)
        .stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let row = rows.iter().find(|r| r["metric"] == "p99.99_ms").unwrap();
    assert_eq!(row["values"][1]["enough_samples"], false);
}

#[test]
fn a_list_that_cannot_be_read_is_shown_in_its_place() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let commands: [&[&str]; 7] = [
        &["run", &workload],
        &["curve", "vda", "--load=1"],
        &["find", "vda", "--max-load=4"],
        &["profile", "fileio"],
        &["md"],
        &["report", "nowhere"],
        &["compare", "nowhere", "nowhere"],
    ];
    for command in commands {
        let list = "--percentiles=50,100.5,99";
        let refused = Ended::of(bench.plimsoll([command, &[list]].concat())).refusal();
        let expected = "`100.5` is not a percentile\n  50,100.5,99\n     ^^^^^ expected a number above 0 \
                        and at most 100, such as 99.9";
        assert!(refused.contains(expected), "{command:?}: {refused}");
    }
    let many: Vec<String> = (1..=17).map(|n| n.to_string()).collect();
    let list = format!("--percentiles={}", many.join(","));
    let refused = bench.run(&workload, &[&list]).refusal();
    assert!(
        refused.contains("there are more than 16 percentiles"),
        "{refused}"
    );
}

#[test]
fn load_points_have_the_requested_percentiles() {
    let bench = Bench::on_tmpfs();
    let common = [
        "--scale=0.1",
        "--quiet",
        "--target=null:?latency=5ms",
        "--clock=virtual",
        "--time=3s",
        "--warmup=1s",
        "--percentiles=50,97.5",
        "--results=results",
    ];
    let curve = Ended::of(bench.plimsoll([&["curve", "vda", "--load=1,2"][..], &common].concat()));
    let shown = curve.expect_code(0).stdout;
    let head = shown
        .lines()
        .find(|l| l.starts_with("load  verdict"))
        .unwrap();
    let columns: Vec<&str> = head.split("  ").map(str::trim).collect();
    let columns: Vec<&str> = columns.into_iter().filter(|c| !c.is_empty()).collect();
    assert_eq!(columns[4..8], ["mean", "p50", "p97.5", "max"]);
    let dir = series::only_results(&bench);
    let curve = SeriesDir::at(&dir).read().unwrap();
    for point in &curve.runs {
        let run = series::run_of(&SeriesDir::at(&dir), point);
        assert_eq!(point.percentiles, run.summary.percentiles);
        assert!(point.percentile(percentile("97.5")).is_some());
    }
    // Another list, of which the points have only a part.
    let list = "--percentiles=98.5,99";
    let text = call(&bench, &["report", list], &[&dir])
        .expect_code(0)
        .stdout;
    assert!(text.contains("p98.5"), "{text}");
    let csv = call(&bench, &["report", list, "--format=csv"], &[&dir])
        .expect_code(0)
        .stdout;
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with(",run,latency_p98.5_ms,latency_at_least_from"),
        "{csv}"
    );
    let page = call(&bench, &["report", list, "--format=html"], &[&dir]).expect_code(0);
    assert!(page.stdout.contains("<th scope=\"col\">p98.5</th>"));
    let refused = call(&bench, &["compare", list], &[&dir, &dir]).refusal();
    assert!(
        refused.contains("--percentiles is for runs and profiles"),
        "{refused}"
    );

    let args = [
        &["find", "vda", "--max-load=2", "--confirm-runs=1"][..],
        &common,
    ]
    .concat();
    let shown = Ended::of(bench.plimsoll(args)).stdout;
    assert!(shown.contains("p97.5"), "{shown}");
    let found = bench.results().into_iter().find(|d| d.path() != dir);
    let search = SeriesDir::at(found.unwrap().path()).read().unwrap();
    assert!(search.runs[0].percentile(percentile("97.5")).is_some());
}

#[test]
fn profiles_and_patterns_have_them_too() {
    let bench = Bench::on_tmpfs();
    let args = [
        "md",
        "--pattern=mdtest-easy",
        "-n=30",
        "-w=0",
        "-q",
        LIST,
        "--results=results",
    ];
    Ended::of(bench.plimsoll(args)).expect_code(0);
    let dir = bench.results()[0].path().to_owned();
    let run = RunDir::at(&dir).read().unwrap();
    assert_eq!(run.percentiles_shown.unwrap().as_slice().len(), 4);
    let stage = &run.stages[0].window;
    assert!(
        stage
            .operations
            .iter()
            .any(|o| o.percentile(percentile("99.999")).is_some())
    );
    let text = call(&bench, &["report", "--percentiles=33"], &[&dir])
        .expect_code(0)
        .stdout;
    let head = text.lines().find(|l| l.starts_with("operation ")).unwrap();
    assert!(head.contains(" p33 ") && !head.contains("p99"), "{text}");

    let text = "DEFAULTS {
  runtime = 1;
  dir = files;
  stats = s;
}
CONFIG one {
  function = generic;
  personality = randomread;
  filesize = 64k;
  nthreads = 1;
}
";
    std::fs::write(bench.path("one.prof"), text).unwrap();
    let args = [
        "profile",
        "one.prof",
        "--quiet",
        "--percentiles=50,98",
        "--results=profiles",
    ];
    let shown = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let head = shown
        .lines()
        .find(|l| l.starts_with("configuration"))
        .unwrap();
    let columns: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(columns[3..6], ["mean", "p50", "p98"]);
    let profile = series::only_in(&bench.path("profiles"));
    let kept = profile.read().unwrap().percentiles_shown.unwrap();
    assert!(kept.as_slice().contains(&percentile("98")));
    let dir = profile.path().to_owned();
    let report = call(&bench, &["report"], &[&dir]).expect_code(0).stdout;
    assert!(report.contains("p98"), "{report}");
    // Each run has those that it was made with; the profile's count.
    series::edit(&profile, |profile| {
        profile.percentiles_shown = Some("50,96".parse().unwrap());
    });
    for format in ["text", "markdown", "html", "csv"] {
        let args = ["report", "--format", format];
        let report = call(&bench, &args, &[&dir]).expect_code(0).stdout;
        assert!(report.contains("p96"), "{format}: {report}");
        assert!(!report.contains("p98"), "{format}: {report}");
    }
    let report = call(&bench, &["report", "--percentiles=97"], &[&dir])
        .expect_code(0)
        .stdout;
    assert!(
        report.contains("p97") && !report.contains("p96"),
        "{report}"
    );
}
