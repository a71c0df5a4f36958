//! Fitting a simulated system to a curve.

use crate::common::{Bench, Ended, schema, series, started, wait_until};
use serde_json::Value;
use std::path::Path;

/// A disk behind a line, whose two times are free.
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

/// The filer with other values to begin with, and a curve of the filer as it is.
fn curve_of_the_filer(bench: &Bench) -> String {
    let write = |name: &str, text: &str| std::fs::write(bench.path(name), text).unwrap();
    write("truth.toml", FILER);
    let start = FILER
        .replace("\"200us\"", "\"600us\"")
        .replace("\"2ms\"", "\"1ms\"");
    write("start.toml", &start);
    let curve = [
        "curve",
        "vda",
        "--load=3..15/3",
        "--target=sim:./truth.toml",
        "--warmup=1s",
        "--time=8s",
        "--quiet",
        "--results=results",
    ];
    Ended::of(bench.plimsoll(curve)).expect_code(0);
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

/// A figure's number in the text of a system.
fn figure(text: &str, element: &str, key: &str, unit: &str) -> f64 {
    let file: toml::Value = toml::from_str(text).unwrap();
    let value = &file[element.split('.').next().unwrap()][element.split('.').nth(1).unwrap()][key];
    let value = value["value"].as_str().unwrap();
    let number = value
        .strip_suffix(unit)
        .unwrap_or_else(|| panic!("{value}: not in {unit}"));
    number.parse().unwrap()
}

#[test]
fn known_figures_are_found_again() {
    let bench = Bench::on_tmpfs();
    let curve = curve_of_the_filer(&bench);
    let args = [
        "start.toml",
        "--to",
        &curve,
        "--hold-out=2",
        "-o",
        "fitted.toml",
    ];
    let ended = fit(&bench, &[&args[..], &["--format=json", "--quiet"]].concat()).expect_code(0);
    assert_eq!(ended.stderr, "");
    let report = json(&ended.stdout);
    assert_eq!(
        (&report["good"], &report["reasons"]),
        (&true.into(), &json("[]"))
    );
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
    assert!(
        (figure(&fitted, "link.line", "latency", "us") / 200.0 - 1.0).abs() < 0.05,
        "{fitted}"
    );
    assert!(
        (figure(&fitted, "station.disk", "service", "ms") / 2.0 - 1.0).abs() < 0.03,
        "{fitted}"
    );
    // All but the figures is as it was, and the one without a mark has one.
    assert!(fitted.starts_with("# A filer of one disk.\n"), "{fitted}");
    assert!(
        fitted.contains("us\", source = \"A\", free = [\"50us\", \"1ms\"] } # each way\n"),
        "{fitted}"
    );
    let form = json(
        &Ended::of(bench.plimsoll(["docs", "schema", "system"]))
            .expect_code(0)
            .stdout,
    );
    let value: Value = toml::from_str(&fitted).unwrap();
    assert_eq!(schema::faults(&form, &value), [""; 0]);
    let target = ["--target=sim:./fitted.toml", "--time=1s", "--warmup=0s"];
    bench.run("vda", &target).result(0);

    // The text says the same, and no run is made again.
    std::fs::rename(bench.path("fitted.toml"), bench.path("first.toml")).unwrap();
    let trials = read(&bench.path("fitted.toml.trials.jsonl"));
    let text = fit(&bench, &[&args[..], &["--jobs=1"]].concat())
        .expect_code(0)
        .stdout;
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

    // The file of the curve is as good as its directory; what is there is not overwritten.
    let file = format!("{curve}/series.json");
    let again = fit(&bench, &["start.toml", "--to", &file, "-o", "fitted.toml"]).expect_code(2);
    assert!(
        again
            .stderr
            .contains("fitted.toml already exists and is not overwritten")
    );
}

#[test]
fn a_fit_that_was_killed_goes_on_where_it_ended() {
    let bench = Bench::on_tmpfs();
    let curve = curve_of_the_filer(&bench);
    let few = "--max-trials=15";
    let args = |output: &'static str| {
        [
            "systems",
            "fit",
            "start.toml",
            "--to",
            &curve,
            few,
            "-o",
            output,
        ]
    };
    Ended::of(bench.plimsoll(args("whole.toml"))).expect_code(3);
    let mut part = bench.plimsoll(args("part.toml"));
    // Its first line is on standard error then.
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
    // As a process that is killed may leave it, twice.
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
    let few = [
        "start.toml",
        "--to",
        &curve,
        "--hold-out=1,2,3",
        "-o",
        "few.toml",
        "--max-trials=12",
    ];
    let ended = fit(&bench, &few).expect_code(3);
    let expected =
        "2 points cannot determine 2 free figures: a fit needs more points than free figures";
    assert!(
        ended.stderr.contains(&format!("warning: {expected}")),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stdout
            .contains(&format!("the fit is not good: {expected}")),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("did not converge in 12 trials"),
        "{}",
        ended.stdout
    );
    assert!(bench.path("few.toml").exists());

    // The disk may not be as slow as it is.
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
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plimsoll-report/tests/published");
    let report = |name: &str| fixtures.join(name).to_str().unwrap().to_owned();
    let quick = [
        "--max-trials=2",
        "--time=1s",
        "--warmup=0s",
        "--format=json",
    ];
    let vda = report("vda2014.txt");
    let args = [
        "filer.toml",
        "--to",
        &vda,
        "--hold-out=4,5,6,7,8,9,10",
        "-o",
        "vda.toml",
    ];
    let found = fit(&bench, &[&args[..], &quick, &["--scale=0.01"]].concat()).expect_code(3);
    let found = json(&found.stdout);
    assert_eq!(
        (&found["workload"], &found["metric"]),
        (&"vda".into(), &"Streams".into())
    );
    assert_eq!(found["points"][9]["measured_ms"], 30.0);
    assert_eq!(found["points"][9]["load"], 1700.0);
    // A load of ours is a hundred of their operations a second.
    let nfs = report("nfs2008.txt");
    let held = "--hold-out=2,3,4,5,6,7,8,9,10";
    let args = [
        "filer.toml",
        "--to",
        &nfs,
        held,
        "-o",
        "nfs.toml",
        "--scale=0.0001",
    ];
    let found = fit(&bench, &[&args[..], &quick].concat()).expect_code(3);
    assert_eq!(json(&found.stdout)["workload"], "nfs-sfs2008");
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
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plimsoll-report/tests/published");
    let vda = fixtures.join("vda2014.txt");
    let vda = vda.to_str().unwrap();
    for (args, expected) in [
        (
            &["fler.toml", "--to", vda][..],
            "cannot read the system fler.toml",
        ),
        (&["edge-33", "--to", vda], "did you mean `edge-32`?"),
        (
            &["fixed.toml", "--to", vda],
            "fixed.toml has no free figures",
        ),
        (
            &["zero.toml", "--to", vda],
            "the bounds of a free figure must be above 0",
        ),
        (&["filer.toml", "--to", "nothing"], "cannot read nothing"),
        (&["filer.toml", "--to", "."], "it lacks series.json"),
        (
            &["filer.toml", "--to", "filer.toml"],
            "not a disclosure report",
        ),
        (
            &["filer.toml", "--to", vda, "--hold-out=11"],
            "--hold-out 11: the points of",
        ),
        (
            &["filer.toml", "--to", vda, "--jobs=none"],
            "expected a number of load points, or 0 for the number of processors",
        ),
        (
            &["filer.toml", "--to", vda, "--hold-out=1,2,3,4,5,6,7,8,9,10"],
            "has no point left to fit to",
        ),
        (
            &["filer.toml", "--to", vda, "--workload=fileserver"],
            "`fileserver` has no business metric",
        ),
        (
            &["filer.toml", "--to", vda, "--workload=vdb"],
            "`vdb` is not a workload",
        ),
    ] {
        let ended = fit(&bench, &[args, &["-o", "out.toml"]].concat()).expect_code(2);
        assert!(
            ended.stderr.contains(expected),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(!bench.path("out.toml").exists());
    }
    let taken = fit(&bench, &["filer.toml", "--to", vda, "-o", "other.toml"]).expect_code(2);
    assert!(
        taken
            .stderr
            .contains("other.toml.trials.jsonl:1: this is not a line of a fit's trials")
    );
    assert_eq!(
        read(&bench.path("other.toml.trials.jsonl")),
        "notes of my own\n"
    );
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
