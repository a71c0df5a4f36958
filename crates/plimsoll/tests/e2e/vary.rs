//! `--vary` of `curve` and `find`, `--until`, and promises of workloads: on targets whose figures are a known function of
//! the parameter, in virtual time, and on real files.

use crate::common::series::{self, edit, only, parsed, resume, runs_of};
use crate::common::{Bench, Ended, codes, schema};
use crate::resume::LOOKER;
use plimsoll_results::{
    Document, LoadLine, Purpose, SearchEnd, Series, SeriesDir, SeriesState, Status,
};
use std::process::Command;

/// Four servers of 1 ms: up to four threads have latencies of 1 ms, and more threads have the same throughput.
const FOUR_SERVERS: &str = "--target=null:?latency=1ms&servers=4&clock=virtual";

/// Option with the length of the window, for commands without another `--time`.
const SHORT: &str = "--time=2s";

/// A command with results in the bench, without a warm-up.
fn command(bench: &Bench, arguments: &[&str], more: &[&str]) -> Command {
    let mut command = bench.plimsoll(arguments);
    command
        .args(["--results=results", "--warmup=0s"])
        .args(more);
    if !more.iter().any(|option| option.starts_with("--time")) {
        command.arg(SHORT);
    }
    command
}

fn load_line(series: &Series) -> LoadLine {
    series.as_search().unwrap().figures.load_line
}

/// Ends of the interval of a search: the sustained and the not sustained value.
fn ends(series: &Series) -> (Option<u64>, Option<u64>) {
    let line = load_line(series);
    (
        line.sustained.map(|s| s.load),
        line.not_sustained.map(|s| s.load),
    )
}

/// Values of the runs of a search, in order.
fn values(series: &Series) -> Vec<u64> {
    series.runs.iter().filter_map(|run| run.value).collect()
}

#[track_caller]
fn agrees_with_its_schema(dir: &SeriesDir) {
    let schema = serde_json::from_str(&plimsoll_results::schema::<Series>()).unwrap();
    let text = std::fs::read_to_string(dir.path().join("series.json")).unwrap();
    let value = serde_json::from_str(&text).unwrap();
    assert_eq!(schema::faults(&schema, &value), [""; 0]);
}

#[test]
fn a_search_finds_the_value_at_which_a_promise_breaks_and_names_the_promise() {
    let bench = Bench::on_tmpfs();
    // With five threads, one operation in four waits for a server, so that p99 is 2 ms.
    let more = ["--vary=nthreads", "--until=p99 > 1.5ms", FOUR_SERVERS];
    let text = Ended::of(command(&bench, &["find", "randomread"], &more))
        .expect_code(0)
        .stdout;
    assert!(
        text.contains("load line: nthreads=4, passed 3 of 3 runs"),
        "{text}"
    );
    assert!(
        text.contains("not sustained: nthreads=5, passed 0 of 3 runs"),
        "{text}"
    );
    let words: Vec<&str> = text.split_whitespace().collect();
    let broken = "promise_broken: the promise `p99 <= 1.5ms` is broken: p99 was 2";
    assert!(words.join(" ").contains(broken), "{text}");
    let dir = only(&bench);
    let series = dir.read().unwrap();
    agrees_with_its_schema(&dir);
    assert_eq!(load_line(&series).termination, SearchEnd::Found);
    assert_eq!(ends(&series), (Some(4), Some(5)));
    assert_eq!(values(&series), [1, 2, 4, 8, 6, 5, 4, 4, 5, 5]);
    // Every value has one configuration, whose Plan has its number of threads.
    let threads = series.configurations.iter();
    let threads: Vec<u64> = threads.map(|c| c.plan.workers()).collect();
    assert_eq!(threads, [1, 2, 4, 8, 6, 5]);
    for (run, entry) in runs_of(&dir).iter().zip(&series.runs) {
        assert_eq!(Some(run.workers), entry.value);
        assert_eq!(run.promises[0].kept, run.workers <= 4);
    }
    let more = [dir.path().to_str().unwrap(), "--format=html"];
    let page = Ended::of(bench.plimsoll(["report"].iter().chain(&more)));
    let page = page.expect_code(0).stdout;
    assert!(page.contains("limit p99 &lt;= 1.5ms"), "the limit is drawn");
    assert!(page.contains("Latency over throughput"));
}

#[test]
fn a_search_ends_where_throughput_stops_growing() {
    let bench = Bench::on_tmpfs();
    let more = ["--vary=nthreads", "--until=p99 > 10ms", FOUR_SERVERS];
    let text = Ended::of(command(&bench, &["find", "randomread"], &more))
        .expect_code(0)
        .stdout;
    let words: Vec<&str> = text.split_whitespace().collect();
    let answer = "throughput stopped growing at nthreads=4: 3 995 ops/s; p99 there is 1.00 ms";
    assert!(words.join(" ").contains(answer), "{text}");
    let series = only(&bench).read().unwrap();
    assert_eq!(load_line(&series).termination, SearchEnd::Saturated);
    assert_eq!(load_line(&series).saturated_at, Some(4));
    assert_eq!(series.status(), Status::Valid);
    assert_eq!(values(&series), [1, 2, 4, 8, 16, 4, 4, 16, 16]);
}

/// A server of 10 ms completes 100 operations per second. A rate up to 5 % above is within the criterion of the mix, until
/// the queue grows.
#[test]
fn a_search_over_the_rate_leaves_the_data_as_they_are() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), series::USERS).unwrap();
    let target = "--target=null:?latency=10ms&servers=1&clock=virtual";
    let more = [
        "--vary=rate=20",
        "--until=stat:p99 > 500ms",
        "--until=errors > 0",
        target,
    ];
    let more = [&more[..], &["--time=60s", "--format=json"]].concat();
    let ended = Ended::of(command(&bench, &["find", "users.toml"], &more));
    let series = parsed(&ended.expect_code(0));
    let (sustained, not) = ends(&series);
    let (sustained, not) = (sustained.unwrap(), not.unwrap());
    assert!(
        (90..=101).contains(&sustained) && not <= sustained + 2,
        "{sustained} {not}"
    );
    for configuration in &series.configurations {
        assert_eq!(configuration.plan.filesets, series.first_plan().filesets);
        let rates = configuration.plan.groups.iter();
        let rates =
            rates.map(|g| g.workers() as f64 * g.program.mix().unwrap().pacing.unwrap().rate);
        let name = format!("rate={}", rates.sum::<f64>().round());
        assert_eq!(configuration.name, name);
    }
    let offered = &series.runs[0];
    assert_eq!(
        (offered.value, offered.offered_ops_per_s),
        (Some(20), Some(20.0))
    );
}

/// Eight servers of 4 ms sustain about 20 users without a promise.
#[test]
fn a_condition_adds_to_the_criteria_of_a_load() {
    let found = |until: &[&str]| {
        let bench = Bench::on_tmpfs();
        let target = "--target=null:?latency=4ms&servers=8&clock=virtual";
        let more = [&["--max-load=25", "--time=20s", target], until].concat();
        let ended = Ended::of(series::command(&bench, "find", &more));
        parsed(&ended.expect_code(0))
    };
    let without = found(&[]);
    let with = found(&["--until=ops/s > 950"]);
    assert!(ends(&without).0 > Some(15), "{without:?}");
    // Each user requests 100 operations per second.
    assert_eq!(ends(&with), (Some(9), Some(10)));
    let broken = with.runs.iter().find(|run| run.load == Some(10)).unwrap();
    assert_eq!(broken.reasons[0].code, "promise_broken");
}

#[test]
fn a_sweep_measures_every_value() {
    let bench = Bench::on_tmpfs();
    let more = ["--vary=nthreads=1,2,4,8,16,32", FOUR_SERVERS];
    let text = Ended::of(command(&bench, &["curve", "randomread"], &more))
        .expect_code(0)
        .stdout;
    assert!(
        text.contains("sweep over nthreads: complete, 6 of 6 runs"),
        "{text}"
    );
    let dir = only(&bench);
    agrees_with_its_schema(&dir);
    let series = dir.read().unwrap();
    let measured: Vec<(String, f64, f64)> = series
        .runs
        .iter()
        .map(|run| {
            let rate = (run.achieved_ops_per_s / 1000.0).round();
            (run.directory.clone(), rate, run.mean_ms.unwrap().round())
        })
        .collect();
    // Little's law: the threads are the throughput times the latency.
    let expected = [1, 2, 4, 8, 16, 32].map(|threads: u32| {
        let rate = f64::from(threads.min(4));
        (
            format!("nthreads={threads}"),
            rate,
            f64::from(threads) / rate,
        )
    });
    assert_eq!(measured, expected);
    let path = dir.path().to_str().unwrap();
    let report = |format: &str| {
        let command = bench.plimsoll(["report", path, "--format", format]);
        Ended::of(command).expect_code(0).stdout
    };
    assert!(report("markdown").contains("highest throughput"));
    assert!(report("html").contains("Latency over the parameter"));
    let csv = report("csv");
    assert!(
        csv.lines().count() > 6,
        "the operations of every run: {csv}"
    );
}

#[test]
fn several_parameters_make_a_matrix() {
    let bench = Bench::on_tmpfs();
    let more = [
        "--vary=latency=1ms..4ms/x2",
        "--vary=nthreads=1..4/x4",
        FOUR_SERVERS,
    ];
    let text = Ended::of(command(&bench, &["curve", "randomread"], &more))
        .expect_code(0)
        .stdout;
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert!(
        rows.contains(&vec!["latency,", "nthreads", "1", "4"]),
        "{text}"
    );
    let series = only(&bench).read().unwrap();
    assert_eq!(series.runs.len(), 6);
    for run in &series.runs {
        let name = &series.configuration(run.configuration).name;
        let [latency, threads] = [("latency=", "ms"), ("nthreads=", "")].map(|(name_of, unit)| {
            let part = name.split(',').find_map(|part| part.strip_prefix(name_of));
            part.unwrap()
                .strip_suffix(unit)
                .unwrap()
                .parse::<f64>()
                .unwrap()
        });
        let expected = 1000.0 * threads / latency;
        assert!(
            (run.achieved_ops_per_s / expected - 1.0).abs() < 0.01,
            "{name}: {run:?}"
        );
    }
}

/// Runs of a sweep on real files, in their order: the directory of each run, and whether the run found its files.
fn reused(vary: [&str; 2]) -> Vec<(String, bool)> {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKER);
    let more = ["--format=json", "--dir=work", "--time=200ms"];
    let mut command = command(&bench, &["curve", "w.f"], &more);
    command.args(vary.map(|v| format!("--vary={v}")));
    let series = parsed(&Ended::of(command).expect_code(0));
    assert_eq!(series.state, SeriesState::Complete);
    assert_eq!(series.unremoved, [""; 0]);
    assert_eq!(
        bench.left_but(&["results", "w.f"]),
        [""; 0],
        "the files are removed"
    );
    let runs = runs_of(&only(&bench));
    let runs = series.runs.iter().zip(&runs);
    runs.map(|(entry, run)| (entry.directory.clone(), run.filesets[0].reused))
        .collect()
}

#[test]
fn runs_with_the_same_data_set_use_the_same_files() {
    let named =
        |expected: [(&str, bool); 4]| expected.map(|(name, reused)| (name.to_owned(), reused));
    assert_eq!(
        reused(["nfiles=10,20", "nthreads=1,2"]),
        named([
            ("nfiles=10,nthreads=1", false),
            ("nfiles=10,nthreads=2", true),
            ("nfiles=20,nthreads=1", false),
            ("nfiles=20,nthreads=2", true),
        ])
    );
    // The runs are in the order of their data sets.
    assert_eq!(
        reused(["nthreads=1,2", "nfiles=10,20"]),
        named([
            ("nthreads=1,nfiles=10", false),
            ("nthreads=2,nfiles=10", true),
            ("nthreads=1,nfiles=20", false),
            ("nthreads=2,nfiles=20", true),
        ])
    );
}

#[test]
fn a_search_on_real_files_uses_them_for_every_value() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKER);
    let more = [
        "--vary=nthreads=1..4",
        "--confirm-runs=1",
        "--dir=work",
        "--format=json",
        "--time=200ms",
    ];
    let ended = Ended::of(command(&bench, &["find", "w.f"], &more));
    let series = parsed(&ended.expect_code(0));
    assert!(series.configurations.len() > 1, "{series:?}");
    let runs = runs_of(&only(&bench));
    let reused: Vec<bool> = runs.iter().map(|run| run.filesets[0].reused).collect();
    assert!(
        !reused[0] && reused[1..].iter().all(|reused| *reused),
        "{reused:?}"
    );
    assert_eq!(bench.left_but(&["results", "w.f"]), [""; 0]);
}

/// After a kill, the configurations of further values are made from `series.json` alone.
#[test]
fn a_killed_search_is_resumed_from_its_document_alone() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKER);
    let more = [
        "--vary=nthreads",
        "--until=p99 > 1.5ms",
        "--set=nfiles=30",
        FOUR_SERVERS,
    ];
    Ended::of(command(&bench, &["find", "w.f"], &more)).expect_code(0);
    let dir = only(&bench);
    let whole = series::cut(&dir, 2);
    assert_eq!(values(&whole)[..4], [2, 4, 8, 6]);
    edit(&dir, |series| series.configurations.truncate(2));
    std::fs::remove_file(bench.path("w.f")).unwrap();
    let elsewhere = bench.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = bench.plimsoll(["resume", "--format=json"]);
    command.arg(dir.path()).current_dir(&elsewhere);
    let mut resumed = parsed(&Ended::of(command).expect_code(0));
    for (again, before) in resumed.runs.iter_mut().zip(&whole.runs) {
        again.started_at.clone_from(&before.started_at);
    }
    assert_eq!(resumed, whole);
    let refused = resume(&bench, &dir, &[]).refusal();
    assert!(refused.contains("is complete"), "{refused}");
}

/// Values are doubled up to a value that the workload refuses: a working set cannot be 160 percent of the files.
#[test]
fn a_value_that_is_refused_ends_the_search_with_the_reason() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), series::USERS).unwrap();
    let target = "--target=null:?latency=1ms&clock=virtual";
    let more = [
        "--vary=looker.files.working_set=40",
        target,
        "--format=json",
    ];
    let ended = Ended::of(command(&bench, &["find", "users.toml"], &more));
    let series = parsed(&ended.expect_code(1));
    assert_eq!(
        (series.state, values(&series)),
        (SeriesState::Failed, vec![40, 80])
    );
    let reason = series.stop_reason.as_ref().unwrap();
    assert_eq!(reason.code, "refused");
    let expected = "looker.files.working_set=160: ";
    assert!(reason.text.starts_with(expected), "{reason:?}");
    assert_eq!(ends(&series), (Some(80), None));
}

#[test]
fn what_cannot_vary_is_refused_with_what_can() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), series::USERS).unwrap();
    let (curve, find) = (["curve", "randomread"], ["find", "randomread"]);
    let mixes = ["curve", "users.toml"];
    let null = "--target=null:?clock=virtual&latency=1ms";
    for (arguments, more, expected) in [
        (
            curve,
            &["--vary=nthread=1,2", null][..],
            "`nthread` cannot vary: the workload has dir, ",
        ),
        (
            curve,
            &["--vary=nthread=1,2", null],
            "did you mean `nthreads`?",
        ),
        (
            curve,
            &["--vary=workers=1,2", null],
            "the target's options clock, lanes, latency, servers",
        ),
        (
            curve,
            &["--vary=rtt=1ms"],
            "the target's options depth, io, lanes, pool",
        ),
        (
            curve,
            &["--vary=lanes=2"],
            "depth, lanes and pool are options of io=uring",
        ),
        (
            curve,
            &["--vary=latency=1ms,x", null],
            "`x` is not a duration",
        ),
        (
            curve,
            &["--vary=latency=1ms,2ms&lanes=3", null],
            "is not the value of an option",
        ),
        (
            curve,
            &["--vary=nthreads=1,2,1"],
            "the value 1 is given twice",
        ),
        (
            curve,
            &["--vary=nthreads=1", "--vary=nthreads=2"],
            "--vary nthreads is given twice",
        ),
        (
            curve,
            &["--vary=nthreads=1..100", "--vary=iosize=1k..1m/8k"],
            "expected at most 1000",
        ),
        (curve, &["--vary=nthreads=one"], "nthreads"),
        (
            curve,
            &["--vary=load=1,2"],
            "is for workloads with a business metric",
        ),
        (
            curve,
            &["--vary=nthreads=1,2", "--latency-limit=2ms"],
            "cannot be used with",
        ),
        (curve, &["--load=1"], "has no business metric"),
        (
            mixes,
            &["--vary=rate=0"],
            "`0` is not a rate per second above 0",
        ),
        (
            mixes,
            &["--vary=load=0"],
            "`0` is not a number of business metrics",
        ),
        (mixes, &["--vary=looker.rat=5"], "unknown"),
        (mixes, &["--vary=rate=5", "--load=1,2"], "expected one load"),
        (find, &[], "--max-load"),
        (
            find,
            &["--vary=latency", "--target=null:?clock=virtual"],
            "needs a first value",
        ),
        (find, &["--vary=dir"], "needs a first value"),
        (
            find,
            &["--vary=nthreads", "--until=p99 > 5"],
            "`5` is not a time",
        ),
        (
            find,
            &["--vary=nthreads", "--until=rand-raed1:p99 > 5ms"],
            "--until `rand-raed1:p99 > 5ms`: the workload has no operation `rand-raed1`: did you mean",
        ),
        (
            find,
            &["--vary=nthreads", "--max-load=5"],
            "cannot be used with",
        ),
    ] {
        let text = Ended::of(command(&bench, &arguments, more)).refusal();
        assert!(text.contains(expected), "{more:?}: {text}");
    }
    assert_eq!(
        bench.left_but(&["users.toml"]),
        [""; 0],
        "nothing was begun"
    );
}

#[test]
fn a_dry_run_shows_the_configurations() {
    let bench = Bench::on_tmpfs();
    let more = ["--vary=nthreads=3,5", "--dry-run", FOUR_SERVERS];
    let text = Ended::of(command(&bench, &["curve", "randomread"], &more))
        .expect_code(0)
        .stdout;
    assert!(text.starts_with("sweep in 2 runs, about 4s plus"), "{text}");
    assert!(
        text.contains("\nnthreads=3\n") && text.contains("\nnthreads=5\n"),
        "{text}"
    );
    let more = [
        "--vary=nthreads=3..20",
        "--until=p99 > 5ms",
        "--dry-run",
        FOUR_SERVERS,
    ];
    let text = Ended::of(command(&bench, &["find", "randomread"], &more))
        .expect_code(0)
        .stdout;
    let expected = "search from nthreads=3 to at most nthreads=20, in at most 60 runs";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("promises\n  p99 <= 5ms\n"), "{text}");
}

#[test]
fn a_search_up_to_a_highest_value_may_sustain_it() {
    let bench = Bench::on_tmpfs();
    let more = [
        "--vary=nthreads=1..3",
        "--until=p99 > 5ms",
        FOUR_SERVERS,
        "--format=json",
    ];
    let ended = Ended::of(command(&bench, &["find", "randomread"], &more));
    let series = parsed(&ended.expect_code(0));
    assert_eq!(load_line(&series).termination, SearchEnd::MaxLoadSustained);
    assert_eq!(ends(&series), (Some(3), None));
    let purposes = series.runs.iter().filter_map(|run| run.purpose);
    assert_eq!(purposes.filter(|p| *p == Purpose::Confirmation).count(), 2);
}

#[test]
fn a_run_is_judged_by_the_promises_of_its_workload() {
    let bench = Bench::on_tmpfs();
    let promises = "\
[[promise]]
name = \"quick looks\"
condition = \"stat:p99 <= 5ms\"

[[promise]]
condition = \"ops/s > 1000\"

[[component]]
";
    let text = series::USERS.replacen("[[component]]\n", promises, 1);
    std::fs::write(bench.path("users.toml"), &text).unwrap();
    let run = |more: &[&str]| {
        let target = "--target=null:?latency=4ms&clock=virtual";
        Ended::of(command(&bench, &["run", "users.toml", target], more))
    };
    let report = run(&["--load=5"]).expect_code(3).stdout;
    // Five users request 500 operations per second.
    assert!(
        report.contains("✓ quick looks: stat:p99 <= 5ms: p99 was 4"),
        "{report}"
    );
    assert!(report.contains("✗ ops/s > 1000: ops/s were 49"), "{report}");
    let json = run(&["--load=5", "--format=json"]).result(3);
    assert_eq!(codes(&json), ["promise_broken"]);
    let kept: Vec<bool> = json.promises.iter().map(|p| p.kept).collect();
    assert_eq!(kept, [true, false]);
    let schema =
        serde_json::from_str(&plimsoll_results::schema::<plimsoll_results::Run>()).unwrap();
    let value = serde_json::to_value(&json).unwrap();
    assert_eq!(schema::faults(&schema, &value), [""; 0]);
    assert!(
        json.to_json()
            .contains("\"condition\": \"stat:p99 <= 5ms\"")
    );
    let more = run(&["--load=11", "--format=json"]).result(0);
    assert!(more.promises.iter().all(|p| p.kept));
    // A curve judges its points by the promises too.
    let target = "--target=null:?latency=4ms&clock=virtual";
    let more = ["--load=5,11", "--format=json", target];
    let curve = parsed(&Ended::of(command(&bench, &["curve", "users.toml"], &more)).expect_code(0));
    let valid: Vec<bool> = curve.runs.iter().map(|run| run.is_valid()).collect();
    assert_eq!(valid, [false, true]);

    let wrong = text.replace("stat:p99", "stats:p99");
    std::fs::write(bench.path("users.toml"), wrong).unwrap();
    let refused = run(&[]).refusal();
    assert!(refused.contains("did you mean `stat`?"), "{refused}");
    assert!(
        refused.contains("condition = \"stats:p99 <= 5ms\""),
        "{refused}"
    );
}
