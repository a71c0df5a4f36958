//! Results side by side, repeated runs, and the formats of `report`, through the program.

use crate::common::series::runs_of;
use crate::common::{Bench, Ended};
use plimsoll_results::{Purpose, Series, SeriesDir, SeriesRun};
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

/// A run on nothing, whose every operation takes the latency, in virtual time.
fn virtual_run(bench: &Bench, latency: &str, more: &[&str]) -> PathBuf {
    let workload = bench.workload(WORKLOAD);
    let target = format!("--target=null:?latency={latency}");
    let mut args = vec![target.as_str(), "--clock=virtual", "--time=3s"];
    args.extend(more);
    let before: Vec<PathBuf> = dirs(bench);
    bench.run(&workload, &args).expect_code(0);
    let new = dirs(bench).into_iter().find(|d| !before.contains(d));
    new.unwrap()
}

fn dirs(bench: &Bench) -> Vec<PathBuf> {
    bench
        .results()
        .iter()
        .map(|r| r.path().to_owned())
        .collect()
}

fn call(bench: &Bench, args: &[&str], dirs: &[&PathBuf]) -> Ended {
    let mut command = bench.plimsoll(args);
    command.args(dirs);
    Ended::of(command)
}

/// The value of a figure in the JSON of a comparison, of one result.
fn figure<'a>(comparison: &'a Value, operation: &str, metric: &str, side: usize) -> &'a Value {
    let rows = comparison["rows"].as_array().unwrap();
    let mut rows = rows.iter();
    let row = rows.find(|r| r["operation"] == operation && r["metric"] == metric);
    &row.unwrap_or_else(|| panic!("no {metric} of {operation}"))["values"][side]
}

#[test]
fn a_target_twice_as_slow_is_half_as_fast_by_every_figure() {
    let bench = Bench::on_tmpfs();
    let fast = virtual_run(&bench, "1ms", &[]);
    let slow = virtual_run(&bench, "2ms", &[]);
    let out = call(&bench, &["compare", "--format=json"], &[&fast, &slow]).expect_code(0);
    let comparison: Value = serde_json::from_str(&out.stdout).unwrap();
    let change = |operation, metric| figure(&comparison, operation, metric, 1)["change"].as_f64();
    for name in ["all", "read1", "close1"] {
        let (ops, mean) = (
            change(name, "ops_per_s").unwrap(),
            change(name, "mean_ms").unwrap(),
        );
        assert!((ops + 0.5).abs() < 0.01, "{name}: {ops}");
        assert!((mean - 1.0).abs() < 0.01, "{name}: {mean}");
    }
    assert_eq!(
        figure(&comparison, "all", "mean_ms", 1)["statement"],
        "one_run_each"
    );
    assert_eq!(
        figure(&comparison, "all", "mean_ms", 0)["statement"],
        "base"
    );
}

#[test]
fn a_condition_that_is_met_ends_with_three_and_says_which() {
    let bench = Bench::on_tmpfs();
    let fast = virtual_run(&bench, "1ms", &[]);
    let slow = virtual_run(&bench, "2ms", &[]);
    let args = |condition| ["compare", "--fail-if", condition];
    let out = call(&bench, &args("p99 > +10%"), &[&fast, &slow]).expect_code(3);
    assert!(
        out.stderr.starts_with("failed: p99 > +10%: p99 of all in "),
        "{}",
        out.stderr
    );
    assert!(
        out.stdout.contains("one run each: no statement"),
        "{}",
        out.stdout
    );
    call(&bench, &args("p99 > +10%"), &[&slow, &fast]).expect_code(0);
    call(&bench, &args("ops/s < -60%"), &[&fast, &slow]).expect_code(0);
    let wrong = call(&bench, &args("rad1:p99 > 1%"), &[&fast, &slow]).refusal();
    assert!(
        wrong.contains("there is no p99 of `rad1`; there is of all, "),
        "{wrong}"
    );
    let wrong = call(&bench, &args("p101 > 1%"), &[&fast, &slow]).refusal();
    assert!(
        wrong.contains("`p101` is not a figure: expected one of ops/s"),
        "{wrong}"
    );
}

/// A workload whose every tenth operation fails, if a file is removed before.
fn looker(remove: bool) -> String {
    let remove = match remove {
        true => "system \"rm files/s/*/00000003\"\n",
        false => "",
    };
    format!(
        "define fileset name=s,path=files,entries=10,size=1k,dirwidth=100,prealloc
define process name=p {{ thread name=t,memsize=1m {{ flowop statfile name=look,filesetname=s }} }}
create files
{remove}run 1
"
    )
}

#[test]
fn a_result_with_errors_a_failed_one_and_a_missing_figure_fail_a_condition() {
    let bench = Bench::on_tmpfs();
    let run = |remove, more: &[&str], code| {
        let before = dirs(&bench);
        let workload = bench.workload(&looker(remove));
        let args = [&["--allow-commands", "--ops=90"], more].concat();
        bench.run(&workload, &args).expect_code(code);
        let new = dirs(&bench).into_iter().find(|d| !before.contains(d));
        new.unwrap()
    };
    let clean = run(false, &[], 0);
    let invalid = run(true, &["--on-error=count"], 3);
    let failed = run(true, &[], 1);
    let check = |condition: &str, more: &[&str], sides: [&PathBuf; 2], code| {
        let condition = format!("--fail-if={condition}");
        let args = [&["compare", &condition], more].concat();
        call(&bench, &args, &sides).expect_code(code).stderr
    };
    // Nobody has an error, and that is no change.
    check("errors > +0%", &[], [&clean, &clean], 0);
    let allowed = ["--allow-invalid"];
    let errors = check("errors > +0%", &allowed, [&clean, &invalid], 3);
    assert!(
        errors.starts_with("failed: errors > +0%: errors of all in ")
            && errors.contains("rose from 0 to"),
        "{errors}"
    );
    // Latencies are no worse, and yet the result is not valid.
    let verdict = check("mean > +1000000%", &[], [&clean, &invalid], 3);
    assert!(
        verdict.contains("is of a result that is invalid"),
        "{verdict}"
    );
    check("mean > +1000000%", &allowed, [&clean, &invalid], 0);
    check("ops/s > +1000000%", &[], [&clean, &failed], 3);
    check("errors > +0%", &[], [&invalid, &clean], 0);
    // Only one side has it, and nobody can have it.
    let other = virtual_run(&bench, "1ms", &[]);
    let lost = check("look:mean > +10%", &[], [&clean, &other], 3);
    assert!(lost.contains("has no mean of look"), "{lost}");
    let wrong = check("ort > +10%", &[], [&clean, &clean], 2);
    assert!(wrong.contains("the results have no ort"), "{wrong}");
    let alone = call(&bench, &["compare", "--allow-invalid"], &[&clean, &clean]);
    assert!(alone.refusal().contains("--fail-if"));
}

#[test]
fn repeated_runs_are_one_result_and_are_judged() {
    let bench = Bench::on_tmpfs();
    let fast = virtual_run(&bench, "1ms", &["--repeat=4"]);
    let slow = virtual_run(&bench, "2ms", &["--repeat=4"]);
    let dir = SeriesDir::at(&fast);
    let listed = dir.read().unwrap().runs;
    let runs: Vec<(&str, u64)> = listed.iter().map(|r| (&*r.directory, r.seed)).collect();
    let expected = [("run-01", 1), ("run-02", 2), ("run-03", 3), ("run-04", 4)];
    assert_eq!(runs, expected);
    let seeds: Vec<u64> = runs_of(&dir).iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 4]);
    let out = call(&bench, &["compare", "--format=json"], &[&fast, &slow]).expect_code(0);
    let comparison: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(comparison["sets"][1]["runs"], 4);
    let value = figure(&comparison, "all", "mean_ms", 1);
    assert_eq!(value["statement"], "real", "{value}");
    // Text, Markdown and the page have the statements of the JSON.
    let rows = comparison["rows"].as_array().unwrap();
    let count = |is_it: &dyn Fn(&str) -> bool| {
        let statements = rows.iter().map(|r| r["values"][1]["statement"].as_str());
        statements.filter(|s| is_it(s.unwrap())).count()
    };
    let real = count(&|s| s == "real");
    let tested = count(&|s| ["real", "not_shown", "not_decided"].contains(&s));
    assert_eq!(comparison["tests"]["tested"], tested);
    assert_eq!(comparison["tests"]["real"], real);
    for (format, mark) in [
        ("text", " *\n"),
        ("markdown", r" \* |"),
        ("html", " *</td>"),
    ] {
        let format = format!("--format={format}");
        let shown = call(&bench, &["compare", &format], &[&fast, &slow])
            .expect_code(0)
            .stdout;
        assert_eq!(shown.matches(mark).count(), real, "{shown}");
        let said = format!("{tested} figures were tested");
        assert!(shown.contains(&said), "{said}: {shown}");
    }
    assert_eq!(value["runs"].as_array().unwrap().len(), 4);
    assert_eq!(comparison["warnings"], Value::Array(vec![]));
    // One whose process was killed has fewer runs than were requested.
    let file = slow.join("series.json");
    let listed = std::fs::read_to_string(&file).unwrap();
    let mut killed: Value = serde_json::from_str(&listed).unwrap();
    killed["runs"].as_array_mut().unwrap().pop();
    std::fs::write(&file, killed.to_string()).unwrap();
    let text = call(&bench, &["compare"], &[&fast, &slow])
        .expect_code(0)
        .stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("has 3 of 4 requested runs"), "{text}");
    assert!(
        text.contains("too few runs for a test: every figure in B"),
        "{text}"
    );
    // A report of repeated runs is one of each.
    let out = call(&bench, &["report", "--format=csv"], &[&fast]).expect_code(0);
    let reads = out
        .stdout
        .lines()
        .filter(|l| l.contains(",read1,read_whole,"))
        .count();
    assert_eq!(reads, 4, "{}", out.stdout);
}

#[test]
fn a_repeated_run_that_is_refused_leaves_nothing() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    bench
        .run(&workload, &["--target=nowhere:", "--repeat=3"])
        .refusal();
    assert_eq!(dirs(&bench), Vec::<PathBuf>::new());
    for bad in ["0", "1", "-1", "x", "1001"] {
        let option = format!("--repeat={bad}");
        bench.run(&workload, &[&option]).refusal();
    }
}

#[test]
fn results_of_different_kinds_are_not_compared() {
    let bench = Bench::on_tmpfs();
    let run = virtual_run(&bench, "1ms", &[]);
    let missing = bench.path("nowhere");
    let refused = call(&bench, &["compare"], &[&run, &missing]).refusal();
    assert!(
        refused.contains("nowhere") && refused.lines().count() == 1,
        "{refused}"
    );
    let refused = call(&bench, &["compare"], &[&run]).refusal();
    assert!(refused.contains("2 values required"), "{refused}");
}

#[test]
fn csv_and_markdown_have_the_figures_of_the_run() {
    let bench = Bench::on_tmpfs();
    let dir = virtual_run(&bench, "1ms", &[]);
    let run: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("run.json")).unwrap()).unwrap();
    let csv = call(&bench, &["report", "--format=csv"], &[&dir])
        .expect_code(0)
        .stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|h| *h == name).unwrap();
    let operations = run["operations"].as_array().unwrap();
    assert_eq!(rows.len(), 1 + operations.len());
    for (row, o) in rows[1..].iter().zip(operations) {
        assert_eq!(row.len(), rows[0].len());
        assert_eq!(row[column("operation")], o["name"].as_str().unwrap());
        assert_eq!(row[column("ops")], o["ops"].to_string());
        let mean: f64 = row[column("service_mean_ms")].parse().unwrap();
        assert_eq!(Some(mean), o["mean_ms"].as_f64());
    }
    let text = call(&bench, &["report", "--format=markdown"], &[&dir])
        .expect_code(0)
        .stdout;
    let tables: Vec<&str> = text.lines().filter(|l| l.starts_with("| ")).collect();
    assert_eq!(tables.len(), 1 + operations.len(), "{text}");
    assert!(
        tables.iter().all(|l| l.matches('|').count() == 13),
        "{text}"
    );
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
        // Colours of a theme, not of a page.
        assert!(!svg.contains("var(") && svg.contains("#ffffff"), "{name}");
    }
    assert_eq!(std::fs::read_dir(&out).unwrap().count(), names.len());

    let bitmaps = bench.path("bitmaps");
    let mut command = bench.plimsoll(["report", "--format=png", "--output"]);
    command.arg(&bitmaps).arg(&dir);
    let listed = Ended::of(command).expect_code(0).stdout;
    let of_svg = |name: &&str| {
        let name = name.replace("/pictures/", "/bitmaps/");
        name.replace(".svg", ".png")
    };
    let expected: Vec<String> = names.iter().map(of_svg).collect();
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    for name in listed.lines() {
        let png = std::fs::read(name).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        // Width and height stand at the beginning, the highest byte first.
        let size = [&png[16..20], &png[20..24]].map(|b| u32::from_be_bytes(b.try_into().unwrap()));
        assert_eq!(size, [1920, 600], "{name}");
    }
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
fn a_load_curve_has_a_page_tables_and_a_comparison() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["curve", "vda", "--load=2,4,6", "--scale=0.1", "--quiet"]);
    command.args([
        "--target=null:?latency=5ms",
        "--clock=virtual",
        "--time=3s",
        "--warmup=1s",
    ]);
    command.arg("--results").arg(bench.path("results"));
    Ended::of(command).expect_code(0);
    let dir = dirs(&bench).pop().unwrap();
    let curve = SeriesDir::at(&dir).read().unwrap();
    let (points, figures) = (&curve.runs, curve.as_curve().unwrap().figures);
    let csv = call(&bench, &["report", "--format=csv"], &[&dir])
        .expect_code(0)
        .stdout;
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|h| *h == name).unwrap();
    assert_eq!(rows.len(), 1 + points.len());
    for (row, point) in rows[1..].iter().zip(points) {
        assert_eq!(row[column("load")], point.load.unwrap().to_string());
        let mean: f64 = row[column("latency_mean_ms")].parse().unwrap();
        assert_eq!(Some(mean), point.mean_ms);
    }
    let page = call(&bench, &["report", "--format=html"], &[&dir])
        .expect_code(0)
        .stdout;
    let line = format!("<dt>load line</dt><dd>{}", figures.load_line.unwrap());
    assert!(
        page.contains(&line) && page.contains("id=\"load-curve\""),
        "{line}"
    );
    let out = call(&bench, &["compare", "--format=json"], &[&dir, &dir]).expect_code(0);
    let comparison: Value = serde_json::from_str(&out.stdout).unwrap();
    let ort = figure(&comparison, "all", "ort_ms", 1);
    assert_eq!(
        (ort["mean"].as_f64(), ort["change"].as_f64()),
        (figures.ort_ms, Some(0.0))
    );
}

/// Measures a curve in virtual time; returns its directory.
fn virtual_curve(bench: &Bench, workload: &str, loads: &str, scale: &str) -> PathBuf {
    let before = dirs(bench);
    let (loads, scale) = (format!("--load={loads}"), format!("--scale={scale}"));
    let mut command = bench.plimsoll(["curve", workload, &loads, &scale, "--quiet"]);
    command.args(["--target=null:?latency=5ms", "--clock=virtual"]);
    command.args(["--time=3s", "--warmup=1s"]);
    command.arg("--results").arg(bench.path("results"));
    Ended::of(command).expect_code(0);
    let new = dirs(bench).into_iter().find(|d| !before.contains(d));
    new.unwrap()
}

fn compared(bench: &Bench, results: &[&PathBuf]) -> Value {
    let out = call(bench, &["compare", "--format=json"], results).expect_code(0);
    serde_json::from_str(&out.stdout).unwrap()
}

fn published(name: &str) -> PathBuf {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crates.join("../plimsoll-report/tests/published").join(name)
}

#[test]
fn a_measured_curve_is_compared_with_its_own_report_and_with_a_published_one() {
    let bench = Bench::on_tmpfs();
    let dir = virtual_curve(&bench, "vda", "2,4", "0.1");
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
    let theirs = compared(&bench, &[&dir, &published("vda2014.txt")]);
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

#[test]
fn a_curve_of_nfs_is_compared_with_a_published_one_at_what_was_achieved() {
    let bench = Bench::on_tmpfs();
    let dir = virtual_curve(&bench, "nfs-sfs2008", "1,2", "0.1");
    let curve = SeriesDir::at(&dir).read().unwrap();
    let c = compared(&bench, &[&dir, &published("nfs2008.txt")]);
    let first = &curve.runs[0];
    let achieved = (first.achieved_ops_per_s * 1000.0).round() / 1000.0;
    let mean = figure(&c, &format!("{achieved} ops/s"), "mean_ms", 0);
    assert_eq!(mean["mean"].as_f64(), first.mean_ms);
    // As the report has it.
    let theirs = figure(&c, "165 131 ops/s", "mean_ms", 1);
    assert_eq!(theirs["mean"], 0.3);
    assert_eq!(
        figure(&c, "all", "highest_valid_load", 1)["mean"],
        1_592_334.0
    );
}

/// A search of a scaled `vda` on nothing, in virtual time.
fn search(bench: &Bench, more: &[&str]) -> PathBuf {
    let mut command = bench.plimsoll(["find", "vda", "--scale=0.1", "--quiet"]);
    command.args(["--target=null:?latency=50ms&servers=2", "--clock=virtual"]);
    command.args(["--time=3s", "--warmup=1s"]).args(more);
    command.arg("--results").arg(bench.path("results"));
    Ended::of(command);
    dirs(bench).pop().unwrap()
}

#[test]
fn a_search_has_a_page_tables_and_pictures() {
    let bench = Bench::on_tmpfs();
    let dir = search(&bench, &["--max-load=100", "--resolution=4"]);
    let found = SeriesDir::at(&dir).read().unwrap();
    let (carried, not) = ends(&found);
    assert!(
        carried < not && found.runs.len() > 5,
        "{carried} {not} {found:?}"
    );
    let report = |format: &str| {
        call(&bench, &["report", "--format", format], &[&dir])
            .expect_code(0)
            .stdout
    };
    let page = report("html");
    for text in [
        "search for the load line",
        "Search progress",
        "scaled: not comparable",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains(&format!("{carried} streams, passed ")));
    let csv = report("csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), found.runs.len() + 1);
    let head: Vec<&str> = lines[0].split(',').collect();
    for (line, run) in lines[1..].iter().zip(&found.runs) {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[head.iter().position(|h| *h == name).unwrap()];
        assert_eq!(cell("load"), run.load.unwrap().to_string());
        assert_eq!(cell("passed"), run.is_valid().to_string());
        assert_eq!(cell("latency_mean_ms"), run.mean_ms.unwrap().to_string());
        assert_eq!(cell("purpose"), run.purpose.unwrap().to_string());
    }
    let markdown = report("markdown");
    let is_bisection = |run: &&SeriesRun| run.purpose == Some(Purpose::Bisection);
    assert_eq!(
        markdown.matches("| bisection |").count(),
        found.runs.iter().filter(is_bisection).count()
    );
    let out = bench.path("pictures");
    let mut command = bench.plimsoll(["report", "--format=svg", "--output"]);
    command.arg(&out).arg(&dir);
    let listed = Ended::of(command).expect_code(0).stdout;
    let names = ["load-line.svg", "throughput.svg", "course.svg"];
    let expected: Vec<String> = names.map(|n| out.join(n).display().to_string()).into();
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
}

/// The sustained load and the load that is not sustained, by a search.
fn ends(search: &Series) -> (u64, u64) {
    let line = search.as_search().unwrap().figures.load_line;
    (
        line.sustained.unwrap().load,
        line.not_sustained.unwrap().load,
    )
}

#[test]
fn a_search_that_runs_out_of_runs_says_what_is_known() {
    let bench = Bench::on_tmpfs();
    let text = |dir: &PathBuf| call(&bench, &["report"], &[dir]).expect_code(0).stdout;
    // Loads 12 and 24 are carried, 48 is not: after two runs nobody knows.
    let above = search(
        &bench,
        &["--max-load=100", "--start-load=1", "--max-runs=2"],
    );
    let flat = text(&above)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        flat.contains(
            "not found: it is 2 streams or more; no load was found that is not sustained"
        ),
        "{flat}"
    );
    std::fs::rename(&above, bench.path("above")).unwrap();
    let between = search(
        &bench,
        &[
            "--max-load=100",
            "--start-load=20",
            "--max-runs=3",
            "--resolution=1",
        ],
    );
    let (carried, not) = ends(&SeriesDir::at(&between).read().unwrap());
    let flat = text(&between)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let said = format!("it lies from {carried} up to below {not} streams");
    assert!(flat.contains(&said), "{said}: {flat}");
}

#[test]
fn a_search_is_named_and_not_compared() {
    let bench = Bench::on_tmpfs();
    let dir = search(&bench, &["--max-load=2"]);
    let refused = call(&bench, &["compare"], &[&dir, &dir]).refusal();
    assert!(
        refused.contains("is a search for a load line; compare the runs in it, or load curves"),
        "{refused}"
    );
}
