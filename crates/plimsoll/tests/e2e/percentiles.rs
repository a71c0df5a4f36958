//! `--percentiles` of reports and comparisons, and percentiles in conditions.

use crate::common::{Bench, Ended, series};
use plimsoll_results::{OperationFigures, Run};
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
const STALLED: [&str; 2] = [
    "--target=null:?latency=1ms&stall=100ms&stall_after=1s&clock=virtual",
    "--time=3s",
];

fn run(bench: &Bench, more: &[&str]) -> (Run, PathBuf) {
    let workload = bench.workload(WORKLOAD);
    let before = bench.results();
    let run = bench.run(&workload, &[&STALLED[..], more].concat());
    let run = run.result(0);
    let new = bench.results().into_iter().find(|d| !before.contains(d));
    (run, new.unwrap().path().to_owned())
}

fn call(bench: &Bench, args: &[&str], dirs: &[&PathBuf]) -> Ended {
    let mut command = bench.plimsoll(args);
    command.args(dirs);
    Ended::of(command)
}

#[test]
fn a_report_shows_any_percentile_of_a_run_that_did_not_keep_it() {
    let bench = Bench::on_tmpfs();
    let (run, dir) = run(&bench, &["--interval=500ms"]);
    let list = "--percentiles=12.5,99.95,100";
    let report = |format: &str| {
        let format = format!("--format={format}");
        let ended = call(&bench, &["report", list, &format], &[&dir]);
        ended.expect_code(0).stdout
    };
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let figures = json["operations"][0]["percentiles"].as_array().unwrap();
    let at = |p: f64| figures.iter().find(|f| f["percentile"] == p).unwrap();
    assert_eq!(at(100.0)["ms"], run.operations[0].latency.max_ms);
    assert!((1.0..1.01).contains(&at(99.95)["ms"].as_f64().unwrap()));
    assert_eq!(at(99.95)["enough_samples"], true);
    let shown = serde_json::json!([12.5, 99.95, 100.0]);
    assert_eq!(json["percentiles_shown"], shown);
    let text = report("text");
    assert!(text.contains("p12.5") && text.contains("p99.95") && text.contains("p100"));
    assert!(!text.contains("p99.9 "), "{text}");
    let csv = report("csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let mut head = rows[0].iter();
    let at = head.position(|h| *h == "latency_p99.95_ms").unwrap();
    assert!(rows[1][at].starts_with("1.00"), "{csv}");
    let refused = call(&bench, &["report", list, "--format=svg"], &[&dir]).refusal();
    assert!(refused.contains("--percentiles is for tables"), "{refused}");
}

#[test]
fn results_are_compared_by_any_percentile() {
    let bench = Bench::on_tmpfs();
    let (_, stalled) = run(&bench, &[]);
    let workload = bench.workload(WORKLOAD);
    let smooth = ["--target=null:?latency=1ms&clock=virtual", "--time=3s"];
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
    // The comparison prints the percentile of the condition and the default percentiles.
    for percentile in ["p99.95 latency", "p99 latency"] {
        assert!(met.stdout.contains(percentile), "{}", met.stdout);
    }
    let unknown = compare(&["--fail-if", "p99.999 > +10%"]).refusal();
    let expected = "p99.999 of all is not known: it needs 100 000 operations";
    assert!(unknown.contains(expected), "{unknown}");
    let text = compare(&["--percentiles=90,99.99"]).expect_code(0).stdout;
    assert!(
        text.contains("p90 latency") && text.contains("101 ms?"),
        "{text}"
    );
    assert!(!text.contains("p99 latency"), "{text}");
    let json = compare(&["--percentiles=99.99", "--format=json"]).expect_code(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let row = rows.iter().find(|r| r["metric"] == "p99.99_ms").unwrap();
    assert_eq!(row["values"][1]["enough_samples"], false);
}

#[test]
fn a_list_that_cannot_be_read_is_shown_in_its_place() {
    let bench = Bench::on_tmpfs();
    for command in ["report nowhere", "compare nowhere nowhere"] {
        let list = ["--percentiles=50,100.5,99"];
        let refused = Ended::of(bench.plimsoll(command.split(' ').chain(list))).refusal();
        let expected = "`100.5` is not a percentile\n  50,100.5,99\n     ^^^^^ expected a number above 0 \
                        and at most 100, such as 99.9";
        assert!(refused.contains(expected), "{command}: {refused}");
    }
    let many: Vec<String> = (1..=17).map(|n| n.to_string()).collect();
    let list = format!("--percentiles={}", many.join(","));
    let refused = call(&bench, &["report", "nowhere", &list], &[]).refusal();
    let expected = "there are more than 16 percentiles";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn load_points_have_the_requested_percentiles() {
    let bench = Bench::on_tmpfs();
    let common = "--scale=0.1 --quiet --target=null:?latency=5ms&clock=virtual --time=3s --warmup=1s \
                  --results=results";
    let measured = |command: &str| {
        let ended = Ended::of(bench.plimsoll(format!("{command} {common}").split_whitespace()));
        ended.expect_code(0);
    };
    measured("curve vda --load=1,2");
    let dir = series::only_results(&bench);
    // The results of a load point keep the 50th percentile, but not the 97.5th percentile.
    let list = "--percentiles=50,97.5";
    let report = |dir: &PathBuf| {
        call(&bench, &["report", list], &[dir])
            .expect_code(0)
            .stdout
    };
    let shown = report(&dir);
    let head = shown.lines().find(|l| l.starts_with("load  verdict"));
    let columns: Vec<&str> = head.unwrap().split_whitespace().collect();
    let columns = columns.join(" ");
    assert!(columns.contains("mean p50 p97.5 max"), "{columns}");
    let refused = call(&bench, &["compare", list], &[&dir, &dir]).refusal();
    let expected = "--percentiles is for runs and profiles";
    assert!(refused.contains(expected), "{refused}");
    measured("find vda --max-load=2 --confirm-runs=1");
    let found = bench.results().into_iter().find(|d| d.path() != dir);
    let shown = report(&found.unwrap().path().to_owned());
    assert!(shown.contains("p97.5"), "{shown}");
}

#[test]
fn profiles_and_patterns_have_them_too() {
    let bench = Bench::on_tmpfs();
    let md = "md --pattern=mdtest-easy -n=30 -w=0 -q --results=results";
    Ended::of(bench.plimsoll(md.split(' '))).expect_code(0);
    let dir = bench.results()[0].path().to_owned();
    let report = call(&bench, &["report", "--percentiles=33"], &[&dir]);
    let text = report.expect_code(0).stdout;
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
    let profile = "profile one.prof --quiet --results=profiles";
    Ended::of(bench.plimsoll(profile.split(' '))).expect_code(0);
    let dir = series::only_in(&bench.path("profiles")).path().to_owned();
    for (more, shown, hidden) in [
        (&[][..], "p99", "p98"),
        (&["--percentiles=98"], "p98", "p99"),
        (&["--percentiles=98", "--format=csv"], "p98", "p97"),
    ] {
        let report = call(&bench, &[&["report"], more].concat(), &[&dir]);
        let report = report.expect_code(0).stdout;
        assert!(report.contains(shown), "{more:?}: {report}");
        assert!(!report.contains(hidden), "{more:?}: {report}");
    }
}

#[test]
fn a_group_of_rows_has_any_percentile_and_details_show_each_row() {
    let bench = Bench::on_tmpfs();
    let target = "--target=null:?latency=1ms&clock=virtual";
    let run = ["run", "webserver", target, "--time=2s", "--results=results"];
    let text = call(&bench, &run, &[]).expect_code(0).stdout;
    assert!(
        text.contains("readfile ×10") && !text.contains("readfile7"),
        "{text}"
    );
    let dir = bench.results()[0].path().to_owned();
    let report = |args: &[&str]| call(&bench, &[&["report"], args].concat(), &[&dir]);
    let json = report(&["--percentiles=33", "--format=json"])
        .expect_code(0)
        .stdout;
    let run: Run = serde_json::from_str(&json).unwrap();
    let mut groups = run.groups.iter();
    let group = groups
        .find(|group| group.figures.name == "readfile")
        .unwrap();
    let rows = || {
        run.operations
            .iter()
            .filter(|row| group.contains(row.kind, &row.name))
    };
    assert_eq!((group.rows, rows().count()), (10, 10));
    assert_eq!(group.figures.ops, rows().map(|row| row.ops).sum::<u64>());
    let at = |row: &OperationFigures| row.percentile("33".parse().unwrap()).unwrap().ms;
    // A percentile of the group lies between those of the group's rows.
    let of_rows: Vec<f64> = rows().map(at).collect();
    let least = of_rows.iter().copied().fold(f64::INFINITY, f64::min);
    let most = of_rows.iter().copied().fold(0.0, f64::max);
    assert!((least..=most).contains(&at(&group.figures)), "{of_rows:?}");
    let text = report(&["--details"]).expect_code(0).stdout;
    assert!(
        text.contains("readfile ×10") && text.contains("readfile7"),
        "{text}"
    );
    let refused = report(&["--details", "--format=csv"]).refusal();
    assert!(refused.contains("--details needs"), "{refused}");
}
