//! `plimsoll report` on curves, searches and published reports: what was printed before, and the
//! full disclosure report.

use crate::common::{Bench, Ended};
use plimsoll_measure::curve::{Curve, Point, PointVerdict, Rule};
use plimsoll_results::{Run, Series, Verdict};
use serde_json::Value;
use std::path::Path;

/// Users of two processes, which read 4 KiB 50 times a second each.
const USERS: &str = r#"title = "reads"

[metric]
name = "users"

[[component]]
name = "reader"
processes = 2
rate = 50

[component.mix]
read_rand = 100

[component.files]
count = 10
size = "64k"

[component.transfers]
read = "4k"
"#;

/// Eight servers of 4 ms: 2000 operations a second.
const EIGHT_SERVERS: &str = "--target=null:?latency=4ms&servers=8";

/// Calls the program with the users at hand.
fn plimsoll(bench: &Bench, args: &[&str]) -> Ended {
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll(args);
    // So that what is printed has the same width in every call.
    command.env("COLUMNS", "100");
    Ended::of(command)
}

/// Measures in virtual time, with results in `results`; returns what was printed.
fn measure(bench: &Bench, command: &str, more: &[&str]) -> Ended {
    let common = ["--time=4s", "--warmup=1s", "--clock=virtual", EIGHT_SERVERS];
    let first = [command, "users.toml", "--results=results"];
    plimsoll(bench, &[&first[..], &common[..], more].concat())
}

/// A curve of which the last point is not carried, and its directory.
fn curve(bench: &Bench) -> (Series, String) {
    let ended = measure(bench, "curve", &["--load=5..25/5", "--format=json"]);
    let curve = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    (curve, only_results(bench))
}

/// The only results there are, as a path from the place.
#[track_caller]
fn only_results(bench: &Bench) -> String {
    let dirs = bench.results();
    assert_eq!(dirs.len(), 1, "{dirs:?}");
    let path = dirs[0].path().strip_prefix(bench.root()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn report(bench: &Bench, args: &[&str]) -> Ended {
    plimsoll(bench, &[&["report"], args].concat())
}

fn import(bench: &Bench, file: &str) -> Value {
    let ended = plimsoll(bench, &["results", "import", file, "--format=json"]).expect_code(0);
    assert_eq!(ended.stderr, "", "no warning");
    serde_json::from_str(&ended.stdout).unwrap()
}

fn thousandths(v: f64) -> f64 {
    (v * 1000.0).round() / 1000.0
}

#[test]
fn a_disclosure_imports_to_the_curve_it_was_made_of() {
    let bench = Bench::on_tmpfs();
    let (curve, dir) = curve(&bench);
    let verdicts: Vec<Verdict> = curve.runs.iter().map(|p| p.verdict).collect();
    assert_eq!(verdicts[..4], [Verdict::Valid; 4]);
    assert_eq!(verdicts[4..], [Verdict::Invalid]);
    plimsoll(&bench, &["results", "sut", "init"]).expect_code(0);
    let made = ["--format=disclosure", "--sut=sut.toml", "-o", "ours.txt"];
    let ended = report(&bench, &[&[dir.as_str()], &made[..]].concat()).expect_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    let text = std::fs::read_to_string(bench.path("ours.txt")).unwrap();
    assert!(
        text.is_ascii() && text.lines().all(|l| l.len() <= 80),
        "{text}"
    );

    let back = import(&bench, "ours.txt");
    let points = back["points"].as_array().unwrap();
    assert_eq!(points.len(), curve.runs.len());
    let mut imported = Vec::new();
    for (p, q) in points.iter().zip(&curve.runs) {
        assert_eq!(p["load"], q.load.unwrap() as f64);
        assert_eq!(p["latency_ms"], thousandths(q.mean_ms.unwrap()));
        assert_eq!(p["ops_per_s"], thousandths(q.achieved_ops_per_s));
        // Each operation moves 4 KiB.
        let mb = thousandths(q.achieved_ops_per_s * 4096.0 / 1e6);
        assert!((p["mb_per_s"].as_f64().unwrap() - mb).abs() < 0.0011, "{p}");
        let valid = q.verdict == Verdict::Valid;
        assert_eq!(p["verdict"] == "valid", valid);
        imported.push(Point {
            load: p["load"].as_f64().unwrap(),
            achieved: p["ops_per_s"].as_f64().unwrap(),
            latency_ms: p["latency_ms"].as_f64().unwrap(),
            verdict: match valid {
                true => PointVerdict::Valid,
                false => PointVerdict::Invalid,
            },
        });
    }
    assert_eq!(back["peak"], 20.0);
    assert_eq!(
        (back["unit"].as_str(), back["rule"].as_str()),
        (Some("Users"), Some("sfs2014"))
    );
    // Both are one kind of curve, and their figures differ by the rounding of the report alone.
    let imported = Curve::new(imported).unwrap();
    let measured = curve.points().unwrap();
    let ort = |c: &Curve| c.overall_response_time(Rule::Sfs2014).unwrap();
    assert_eq!(
        curve.as_curve().unwrap().figures.ort_ms,
        Some(ort(&measured))
    );
    assert!((ort(&imported) - ort(&measured)).abs() < 0.0005);
    assert!((back["ort_ms"].as_f64().unwrap() - ort(&imported)).abs() < 1e-9);
    assert_eq!(
        imported.knee().map(|k| k.load),
        measured.knee().map(|k| k.load)
    );
}

#[test]
fn what_the_description_lacks_is_named_and_nothing_is_invented() {
    let bench = Bench::on_tmpfs();
    let (curve, dir) = curve(&bench);
    let none = report(&bench, &[&dir, "--format=disclosure"]).expect_code(0);
    assert!(
        none.stdout.contains("Not stated : Not stated"),
        "{}",
        none.stdout
    );
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = |text: &str| {
        let text = words(text);
        let (_, list) = text
            .split_once("does not state: ")
            .expect("something is missing");
        let (list, _) = list.split_once(". =").expect("the list ends the section");
        list.split(", ").map(str::to_owned).collect::<Vec<String>>()
    };
    let all = missing(&none.stdout);
    assert!(all.contains(&"product.vendor".into()) && all.contains(&"notes.storage".into()));
    let sut = "[product]\nvendor = \"Sample Company\"\nname = \"Box 7\"\n";
    std::fs::write(bench.path("sut.toml"), sut).unwrap();
    let some = report(&bench, &[&dir, "--format=disclosure", "--sut=sut.toml"]).expect_code(0);
    let but = |name: &&String| !["product.vendor", "product.name"].contains(&name.as_str());
    assert_eq!(
        missing(&some.stdout),
        all.iter().filter(but).cloned().collect::<Vec<_>>()
    );
    let some = words(&some.stdout);
    assert!(some.contains("Sample Company : Box 7"), "{some}");
    for said in [
        "an open equivalent, not a SPEC result",
        "all processes together do at least 95 % of theirs",
        "of virtual time: simulated, not measured",
        "1s of warm-up and 4s of measuring at each load point",
        "Target null:?latency=4ms&servers=8 (null, 8 servers, latency 4000 us), 1 process, seed 1.",
    ] {
        assert!(some.contains(said), "{said} is missing:\n{some}");
    }
    for reason in &curve.runs[4].reasons {
        assert!(some.contains(&reason.text), "{}", reason.text);
    }
}

/// A text as it stands on a page.
fn on_page(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[test]
fn the_page_of_a_curve_holds_its_whole_disclosure() {
    let bench = Bench::on_tmpfs();
    let (_, dir) = curve(&bench);
    let sut = "[product]\nvendor = \"Sample <b>Company</b>\"\nname = \"Box 7\"\n";
    std::fs::write(bench.path("sut.toml"), sut).unwrap();
    let with = [dir.as_str(), "--sut=sut.toml"];
    report(
        &bench,
        &[&with[..], &["--format=disclosure", "-o", "ours.txt"]].concat(),
    )
    .expect_code(0);
    let page = report(&bench, &[&with[..], &["--format=html"]].concat()).expect_code(0);
    let page = page.stdout;
    let back = import(&bench, "ours.txt");
    let sections = back["sections"].as_array().unwrap();
    assert!(sections.len() > 20, "{}", sections.len());
    let charts = page.rfind("<figure").expect("the page has charts");
    let mut from = page
        .find("id=\"disclosure\"")
        .expect("the page has a disclosure");
    assert!(charts < from, "the charts come first");
    for p in back["points"].as_array().unwrap() {
        let cells = format!(
            "<th scope=\"row\">{}</th><td>{}</td>",
            p["load"].as_f64().unwrap(),
            p["latency_ms"].as_f64().unwrap()
        );
        from += page[from..]
            .find(&cells)
            .unwrap_or_else(|| panic!("{cells}"));
    }
    for s in sections {
        let (name, text) = (s["name"].as_str().unwrap(), s["text"].as_str().unwrap());
        let part = format!("<summary>{}</summary>", on_page(name));
        from += page[from..].find(&part).unwrap_or_else(|| panic!("{part}")) + part.len();
        let text = format!("<pre tabindex=\"0\">{}</pre>", on_page(text));
        assert!(page[from..].starts_with(&text), "{name}: {text}");
    }
    assert!(page.contains("Sample &lt;b&gt;Company") && !page.contains("<b>Company"));
    // What is not stated is named; what is, is not.
    let stated = ["Tested by            Not stated", "notes.storage"];
    assert!(stated.iter().all(|s| page.contains(s)) && !page.contains("product.vendor"));

    let bare = report(&bench, &[&dir, "--format=html"])
        .expect_code(0)
        .stdout;
    assert!(!bare.contains("id=\"disclosure\"") && bare.contains("--format html --sut sut.toml"));
    let two = report(&bench, &[&dir, &dir, "--format=html", "--sut=sut.toml"]).refusal();
    assert!(two.contains("2 results were given"), "{two}");
    let csv = report(&bench, &[&dir, "--format=csv", "--sut=sut.toml"]).refusal();
    assert!(
        csv.contains("--format disclosure or --format html"),
        "{csv}"
    );
}

#[test]
fn scaled_results_say_so_in_every_form() {
    let cases: [(&str, &[&str]); 2] = [
        ("run", &["--load=4", "--interval=1s"]),
        ("curve", &["--load=4,8"]),
    ];
    for (command, more) in cases {
        for scale in ["0.5", "1"] {
            let bench = Bench::on_tmpfs();
            let scaled = format!("--scale={scale}");
            measure(&bench, command, &[more, &[&scaled]].concat());
            let dir = only_results(&bench);
            let mut texts = Vec::new();
            for format in ["text", "markdown", "html", "csv"] {
                let format = format!("--format={format}");
                texts.push((
                    format.clone(),
                    report(&bench, &[&dir, &format]).expect_code(0).stdout,
                ));
            }
            report(&bench, &[&dir, "--format=svg", "-o", "pictures"]).expect_code(0);
            let pictures = std::fs::read_dir(bench.path("pictures")).unwrap();
            for file in pictures.map(|f| f.unwrap().path()) {
                texts.push((
                    file.display().to_string(),
                    std::fs::read_to_string(file).unwrap(),
                ));
            }
            assert!(texts.len() > 5, "there are pictures");
            for (what, text) in texts {
                let says = text.contains("not comparable");
                // The lines of a curve's points have the scale as a number.
                let says = match (command, what.as_str()) {
                    ("curve", "--format=csv") => text.contains(",users,0.5,"),
                    _ => says,
                };
                assert_eq!(says, scale == "0.5", "{command} {what}: {text}");
            }
        }
    }
}

#[test]
fn a_report_is_what_was_printed_at_the_end() {
    let cases: [(&str, &str, &[&str]); 4] = [
        ("run", "run.json", &["--load=3"]),
        ("run", "series.json", &["--load=3", "--repeat=2"]),
        ("curve", "series.json", &["--load=5,10,15,20"]),
        ("find", "series.json", &["--max-load=8", "--start-load=8"]),
    ];
    // Repeated runs print progress lines between their reports.
    let lines = regex::Regex::new(r"(?m)^run \d of 2, seed \d\n").unwrap();
    for (command, document, more) in cases {
        let bench = Bench::on_tmpfs();
        let printed = measure(&bench, command, more).expect_code(0);
        let dir = only_results(&bench);
        let again = report(&bench, &[&dir]).expect_code(0);
        assert!(again.stdout.len() > 200);
        let printed = lines.replace_all(&printed.stdout, "");
        assert!(
            printed.ends_with(&again.stdout),
            "{command} printed\n{printed}\nand the report is\n{}",
            again.stdout
        );
        let file = format!("{dir}/{document}");
        let json = std::fs::read_to_string(bench.path(&file)).unwrap();
        for path in [&dir, &file] {
            let printed = report(&bench, &[path, "--format=json"]).expect_code(0);
            assert_eq!(printed.stdout, json, "{path}");
        }
        let twice = report(&bench, &[&dir, &dir, "--format=json"]).expect_code(0);
        let twice: Vec<Value> = serde_json::from_str(&twice.stdout).unwrap();
        let one: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(twice, [one.clone(), one]);
    }
}

#[test]
fn published_reports_are_reported_as_they_are_imported() {
    let bench = Bench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sample = root.join("../plimsoll-report/tests/published/vda2014.txt");
    std::fs::copy(sample, bench.path("vda.txt")).unwrap();
    for format in ["--format=text", "--format=json"] {
        let imported = plimsoll(&bench, &["results", "import", "vda.txt", format]).expect_code(0);
        let reported = report(&bench, &["vda.txt", format]).expect_code(0);
        assert_eq!(reported.stdout, imported.stdout);
        assert!(imported.stdout.contains("1700"));
    }
}

/// A run is a curve of one point: its load is that of the business metric, or else its throughput.
#[test]
fn a_run_has_a_disclosure_of_its_own() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("sut.toml"), "[product]\nname = \"Box 7\"\n").unwrap();
    let disclosed = |dir: &str, file: &str| {
        let words = [dir, "--format=disclosure", "--sut=sut.toml", "-o", file];
        report(&bench, &words).expect_code(0);
        import(&bench, file)
    };
    let ended = measure(&bench, "run", &["--load=5", "--format=json"]);
    let run: Run = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    let back = disclosed(&only_results(&bench), "mix.txt");
    let point = &back["points"][0];
    assert_eq!(point["load"], 5.0);
    assert_eq!(point["ops_per_s"], thousandths(run.summary.ops_per_s));
    assert_eq!(point["latency_ms"], thousandths(run.summary.mean_ms));
    assert_eq!(back["product"], "Box 7");
    assert_eq!(back["unit"], "Users");
    assert_eq!(back["ort_ms"], Value::Null);

    std::fs::remove_dir_all(bench.path("results")).unwrap();
    let without_metric = ["run", "randomread", "--set=filesize=1m", "--time=1s"];
    let where_to = [
        "--results=results",
        "--clock=virtual",
        EIGHT_SERVERS,
        "--format=json",
    ];
    let ended = plimsoll(&bench, &[&without_metric[..], &where_to].concat());
    let run: Run = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    let back = disclosed(&only_results(&bench), "closed.txt");
    assert_eq!(back["points"].as_array().map(Vec::len), Some(1));
    let throughput = thousandths(run.summary.ops_per_s);
    assert_eq!(back["points"][0]["load"], throughput);
    assert_eq!(back["peak"], throughput);
}

#[test]
fn what_there_is_no_report_of_is_refused_by_name() {
    let bench = Bench::on_tmpfs();
    measure(&bench, "find", &["--max-load=1"]).expect_code(0);
    let search = only_results(&bench);
    let run = format!("{search}/run-01-load-1");
    std::fs::create_dir(bench.path("empty")).unwrap();
    std::fs::write(bench.path("prose.txt"), "no report\n").unwrap();
    std::fs::write(bench.path("bad.toml"), "[produkt]\n").unwrap();
    std::fs::write(bench.path("sut.toml"), "[product]\nname = \"Box 7\"\n").unwrap();
    let refused = |args: &[&str], says: &str| {
        let text = report(&bench, args).refusal();
        assert!(text.contains(says), "{args:?}:\n{text}");
    };
    let disclosure = "--format=disclosure";
    refused(
        &[&search, disclosure],
        "is a search for a load line, and a disclosure report",
    );
    refused(
        &[&run, &run, disclosure],
        "made of one load curve or run, and 2 results were given",
    );
    refused(
        &[&run, "--sut=bad.toml"],
        "--sut describes the system in a disclosure report",
    );
    let sample = "../plimsoll-report/tests/published/vda2014.txt";
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample);
    std::fs::copy(sample, bench.path("vda.txt")).unwrap();
    for format in ["csv", "markdown", "html", "svg", "png"] {
        let option = format!("--format={format}");
        refused(
            &["vda.txt", &option],
            "vda.txt is a published report, and --format",
        );
    }
    refused(&["nowhere"], "nowhere");
    refused(&["empty"], "empty");
    refused(&["prose.txt"], "prose.txt");
    let (_, dir) = {
        let bench = &bench;
        std::fs::remove_dir_all(bench.path("results")).unwrap();
        curve(bench)
    };
    refused(
        &[&dir, disclosure, "--sut=bad.toml"],
        "did you mean `product`?",
    );
    refused(
        &[&dir, disclosure, "--sut=nowhere.toml"],
        "cannot read nowhere.toml",
    );
}
