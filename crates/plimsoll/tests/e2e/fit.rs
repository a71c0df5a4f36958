//! `systems fit`: the free figures of a simulated system are fitted to a load curve.

use crate::common::{Bench, Ended, schema, series, started, wait_until};
use serde_json::Value;
use std::path::Path;

/// System file of a disk behind a network link, with two free figures: the link's latency and the disk's service time.
const FILER: &str = "\
# A filer of one disk.
title = \"A filer\"

[link.line]
latency = { value = \"200us\", free = [\"50us\", \"1ms\"] } # each way

[station.disk]
service = { value = \"2ms\", source = \"A\", free = [\"500us\", \"8ms\"] }
distribution = \"exponential\"

[path]
data_read = [\"line.request\", \"disk\", \"line.reply\"]
data_write = [\"line.request\", \"disk\", \"line.reply\"]
metadata_read = [\"line.request\", \"line.reply\"]
metadata_change = [\"line.request\", \"disk\", \"line.reply\"]
commit = [\"line.request\", \"line.reply\"]
";

/// Writes [`FILER`] with wrong values of the free figures to `start.toml`; returns the directory of a curve measured on
/// the unchanged [`FILER`].
fn curve_of_the_filer(bench: &Bench) -> String {
    let write = |name: &str, text: &str| std::fs::write(bench.path(name), text).unwrap();
    write("truth.toml", FILER);
    let start = FILER
        .replace("\"200us\"", "\"600us\"")
        .replace("\"2ms\"", "\"1ms\"");
    write("start.toml", &start);
    let mut curve = bench.plimsoll(["curve", "vda", "--load=3..15/3", "--results=results"]);
    curve.args([
        "--target=sim:./truth.toml",
        "--warmup=1s",
        "--time=8s",
        "--quiet",
    ]);
    Ended::of(curve).expect_code(0);
    let dir = bench.results()[0].path().to_owned();
    dir.to_str().unwrap().to_owned()
}

fn fit(bench: &Bench, more: &[&str]) -> Ended {
    Ended::of(bench.plimsoll(["systems", "fit"].iter().chain(more)))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Path of a published disclosure report among the test data of the crate plimsoll-report.
fn published(name: &str) -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let path = crates.join("plimsoll-report/tests/published").join(name);
    path.to_str().unwrap().to_owned()
}

/// Number of a figure in the text of a system file, without its unit.
fn figure(text: &str, table: &str, element: &str, key: &str, unit: &str) -> f64 {
    let file: toml::Value = toml::from_str(text).unwrap();
    let value = file[table][element][key]["value"].as_str().unwrap();
    let number = value.strip_suffix(unit);
    number.expect(value).parse().unwrap()
}

#[test]
fn known_figures_are_found_again() {
    let bench = Bench::on_tmpfs();
    let curve = curve_of_the_filer(&bench);
    let args = ["start.toml", "--to", &curve, "--hold-out=2"];
    let args = [&args[..], &["-o", "fitted.toml"]].concat();
    let ended = fit(&bench, &[&args[..], &["--format=json", "--quiet"]].concat()).expect_code(0);
    assert_eq!(ended.stderr, "");
    let report = json(&ended.stdout);
    assert_eq!(report["good"], true);
    assert_eq!(report["reasons"], json("[]"));
    let points = report["points"].as_array().unwrap();
    for point in points {
        let residual = point["residual"].as_f64().unwrap();
        assert!(residual.abs() < 0.01, "{point}");
        let number = point["number"].as_u64().unwrap();
        assert_eq!(point["held_out"], number == 2);
        assert_eq!(point["load"].as_f64(), Some(3.0 * number as f64));
    }
    for figure in report["figures"].as_array().unwrap() {
        let squares = |key: &str| figure[key].as_f64().unwrap();
        assert!(figure["elasticity"].as_f64().unwrap() > 0.02, "{figure}");
        assert!(squares("squares_below") > 1e-5 && squares("squares_above") > 1e-5);
        assert_eq!(figure["at_bound"], false);
    }
    let fitted = read(&bench.path("fitted.toml"));
    let latency = figure(&fitted, "link", "line", "latency", "us");
    let service = figure(&fitted, "station", "disk", "service", "ms");
    assert!((latency / 200.0 - 1.0).abs() < 0.05, "{fitted}");
    assert!((service / 2.0 - 1.0).abs() < 0.03, "{fitted}");
    // The fitted system file keeps comments and layout; a fitted figure gets the provenance A and keeps its bounds.
    assert!(fitted.starts_with("# A filer of one disk.\n"), "{fitted}");
    let marked = "us\", source = \"A\", free = [\"50us\", \"1ms\"] } # each way\n";
    assert!(fitted.contains(marked), "{fitted}");
    let form = Ended::of(bench.plimsoll(["docs", "schema", "system"])).expect_code(0);
    let form = json(&form.stdout);
    let value: Value = toml::from_str(&fitted).unwrap();
    assert_eq!(schema::faults(&form, &value), [""; 0]);
    let target = ["--target=sim:./fitted.toml", "--time=1s", "--warmup=0s"];
    bench.run("vda", &target).result(0);

    // A repeated fit with a text report takes every trial from the cache file, and writes the same system file.
    std::fs::rename(bench.path("fitted.toml"), bench.path("first.toml")).unwrap();
    let trials = read(&bench.path("fitted.toml.trials.jsonl"));
    let again = fit(&bench, &[&args[..], &["--jobs=1"]].concat());
    let text = again.expect_code(0).stdout;
    assert_eq!(read(&bench.path("fitted.toml")), fitted);
    assert_eq!(read(&bench.path("fitted.toml.trials.jsonl")), trials);
    for expected in [
        "2 free figures fitted to 4 points",
        "(1 held out), workload vda",
        "held out: ",
        "the fit is good",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(text.matches("held out\n").count(), 1, "{text}");

    // `--to` accepts the path of `series.json`; an existing output file is a usage error.
    let file = format!("{curve}/series.json");
    let again = fit(&bench, &["start.toml", "--to", &file, "-o", "fitted.toml"]).expect_code(2);
    let expected = "fitted.toml already exists and is not overwritten";
    assert!(again.stderr.contains(expected), "{}", again.stderr);
}

#[test]
fn a_fit_that_was_killed_goes_on_where_it_ended() {
    let bench = Bench::on_tmpfs();
    let curve = curve_of_the_filer(&bench);
    let args = |output: &'static str| {
        let fit = ["systems", "fit", "start.toml", "--to", &curve];
        [&fit[..], &["--max-trials=15", "-o", output]].concat()
    };
    Ended::of(bench.plimsoll(args("whole.toml"))).expect_code(3);
    let mut part = bench.plimsoll(args("part.toml"));
    // With `--format=json`, the first line of a fit is on standard error.
    part.arg("--format=json");
    let mut names = series::entries(bench.root());
    names.push("part.toml.trials.jsonl".into());
    names.sort();
    let begun = started(part, "start.toml: ");
    let kept = || std::fs::read_to_string(bench.path("part.toml.trials.jsonl")).unwrap_or_default();
    wait_until("some trials are made", || kept().lines().count() > 20);
    // Nothing that an end by a signal could leave.
    assert_eq!(series::entries(bench.root()), names);
    begun.interrupt();
    let ended = begun.end();
    let first = "interrupted: the fit ends, and its trials are kept";
    assert!(ended.stderr.contains(first), "{}", ended.stderr);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("the same command resumes the fit"),
        "{}",
        ended.stderr
    );
    assert!(!bench.path("part.toml").exists());
    let before = kept();
    // A killed fit may leave a part of a line at the end of the cache file; a repeated fit continues after such a part.
    let trials = bench.path("part.toml.trials.jsonl");
    for part in ["{\"key\":", "{\"key\":\"0\",\"fig"] {
        let lines = kept();
        std::fs::write(&trials, lines + part).unwrap();
        Ended::of(bench.plimsoll(args("part.toml"))).expect_code(3);
        let (part, whole) = (bench.path("part.toml"), bench.path("whole.toml"));
        assert_eq!(read(&part), read(&whole));
        std::fs::remove_file(part).unwrap();
    }
    assert!(kept().starts_with(&before));
    let complete = |text: &str| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    let whole = read(&bench.path("whole.toml.trials.jsonl"));
    assert_eq!(complete(&kept()), complete(&whole), "no run is made twice");
}

#[test]
fn a_fit_is_good_only_if_the_points_allow() {
    let bench = Bench::on_tmpfs();
    let curve = curve_of_the_filer(&bench);
    let few = ["start.toml", "--to", &curve, "--hold-out=1,2,3"];
    let few = [&few[..], &["-o", "few.toml", "--max-trials=12"]].concat();
    let ended = fit(&bench, &few).expect_code(3);
    let expected =
        "2 points cannot determine 2 free figures: a fit needs more points than free figures";
    let warning = format!("warning: {expected}");
    assert!(ended.stderr.contains(&warning), "{}", ended.stderr);
    let reason = format!("the fit is not good: {expected}");
    for said in [&*reason, "did not converge in 12 trials"] {
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
    }
    assert!(bench.path("few.toml").exists());

    // If the bounds of a free figure exclude the disk's true service time, a note says that the figure is at its bound.
    let narrow = read(&bench.path("start.toml"))
        .replace("\"8ms\"", "\"1.2ms\"")
        .replace(", free = [\"50us\", \"1ms\"]", "");
    std::fs::write(bench.path("narrow.toml"), narrow).unwrap();
    let ended = fit(&bench, &["narrow.toml", "--to", &curve, "-o", "n.toml"]);
    let expected = "note: `station.disk.service` ended at its bound, 1.";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
}

#[test]
fn published_reports_are_fitted_with_their_workload() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("filer.toml"), FILER).unwrap();
    let quick = ["--max-trials=2", "--time=1s", "--warmup=0s"];
    let fitted = |to: &str, hold_out: &str, more: &[&str]| {
        let args = ["filer.toml", "--to", to, hold_out, "--format=json"];
        let found = fit(&bench, &[&args[..], &quick, more].concat());
        json(&found.expect_code(3).stdout)
    };
    let hold_out = "--hold-out=4,5,6,7,8,9,10";
    let more = ["--scale=0.01", "-o", "vda.toml"];
    let found = fitted(&published("vda2014.txt"), hold_out, &more);
    assert_eq!(found["workload"], "vda");
    assert_eq!(found["metric"], "Streams");
    assert_eq!(found["points"][9]["measured_ms"], 30.0);
    assert_eq!(found["points"][9]["load"], 1700.0);
    // A load of ours is a hundred of their operations a second.
    let hold_out = "--hold-out=2,3,4,5,6,7,8,9,10";
    let more = ["--scale=0.0001", "-o", "nfs.toml"];
    let found = fitted(&published("nfs2008.txt"), hold_out, &more);
    assert_eq!(found["workload"], "nfs-sfs2008");
    let trials = read(&bench.path("nfs.toml.trials.jsonl"));
    assert_eq!(json(trials.lines().next().unwrap())["load"], 1651);
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("filer.toml"), FILER).unwrap();
    let fixed = FILER.replace("free = ", "note = \"\" } # ");
    std::fs::write(bench.path("fixed.toml"), fixed).unwrap();
    let zero = FILER.replace("[\"50us\"", "[\"0us\"");
    std::fs::write(bench.path("zero.toml"), zero).unwrap();
    std::fs::write(bench.path("other.toml.trials.jsonl"), "notes of my own\n").unwrap();
    std::fs::copy(published("vda2014.txt"), bench.path("vda")).unwrap();
    for row in [
        "fler.toml --to vda => cannot read the system fler.toml",
        "edge-33 --to vda => did you mean `edge-32`?",
        "fixed.toml --to vda => fixed.toml has no free figures",
        "zero.toml --to vda => the bounds of a free figure must be above 0",
        "filer.toml --to nothing => cannot read nothing",
        "filer.toml --to . => it lacks series.json",
        "filer.toml --to vda --hold-out=11 => --hold-out 11: the points of",
        "filer.toml --to vda --hold-out=1,2,3,4,5,6,7,8,9,10 => has no point left to fit to",
        "filer.toml --to vda --workload=fileserver => `fileserver` has no business metric",
        "filer.toml --to vda --workload=vdb => `vdb` is not a workload",
    ] {
        let (args, expected) = row.split_once(" => ").unwrap();
        let args: Vec<&str> = args.split(' ').chain(["-o", "out.toml"]).collect();
        let said = fit(&bench, &args).expect_code(2).stderr;
        assert!(said.contains(expected), "{row}: {said}");
        assert!(!bench.path("out.toml").exists());
    }
    let taken = fit(&bench, &["filer.toml", "--to", "vda", "-o", "other.toml"]).expect_code(2);
    let expected = "other.toml.trials.jsonl:1: this is not a line of a fit's trials";
    assert!(taken.stderr.contains(expected), "{}", taken.stderr);
    let left = read(&bench.path("other.toml.trials.jsonl"));
    assert_eq!(left, "notes of my own\n");
}

#[test]
fn a_curve_with_gaps_or_damage_is_refused_in_one_message() {
    let bench = Bench::on_tmpfs();
    let dir = curve_of_the_filer(&bench);
    let file = Path::new(&dir).join("series.json");
    let whole = json(&read(&file));
    let refused = |change: &dyn Fn(&mut Value), more: &str| {
        let mut curve = whole.clone();
        change(&mut curve);
        std::fs::write(&file, curve.to_string()).unwrap();
        fit(&bench, &["start.toml", "--to", &dir, "-o", "x.toml", more]).refusal()
    };
    let gap = refused(&|c| c["runs"][1]["mean_ms"] = Value::Null, "--hold-out=2");
    assert!(gap.contains("--hold-out 2: point 2 of"), "{gap}");
    assert!(gap.contains("has no response time"), "{gap}");
    let small = refused(
        &|c| c["configurations"][0]["plan"]["metric"]["load"] = 9.into(),
        "--jobs=1",
    );
    assert!(
        small.contains("its Plan covers loads only below 15, its highest load"),
        "{small}"
    );
    let twice = refused(&|c| c["runs"][1]["load"] = 3.into(), "--jobs=1");
    let expected = "the points of the curve are not in increasing order of load";
    assert!(twice.contains(expected), "{twice}");
}
