//! `report` on runs, series and published reports, and the full disclosure report (`--format disclosure`).

use crate::common::{Bench, Ended};
use plimsoll_results::{Series, Verdict};
use serde_json::{Value, json};
use std::path::Path;

/// Operation mix `users.toml`: each user has two processes, and each process reads 4 KiB 50 times per second.
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

/// The target `null` with eight servers of 4 ms, which complete 2000 operations per second: 20 users of [`USERS`].
const EIGHT_SERVERS: &str = "--target=null:?latency=4ms&servers=8&clock=virtual";

/// Calls `plimsoll` in the bench's directory, in which the workload [`USERS`] is the file `users.toml`.
fn plimsoll(bench: &Bench, args: &[&str]) -> Ended {
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll(args);
    // Reports are compared line by line, so that every call prints for a terminal of 100 columns.
    command.env("COLUMNS", "100");
    Ended::of(command)
}

/// Runs the measuring `command` (`run`, `curve` or `find`) on [`USERS`] in virtual time, with results in `results`.
fn measure(bench: &Bench, command: &str, more: &[&str]) -> Ended {
    let common = ["--time=4s", "--warmup=1s", EIGHT_SERVERS];
    let first = [command, "users.toml", "--results=results"];
    plimsoll(bench, &[&first[..], &common[..], more].concat())
}

/// Measures a curve whose last load point is not sustained; returns its `series.json` and the relative path of its
/// directory.
fn curve(bench: &Bench) -> (Series, String) {
    let ended = measure(bench, "curve", &["--load=5..25/5", "--format=json"]);
    let curve = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    (curve, only_results(bench))
}

/// Path of the only results directory, relative to the bench.
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
    let back = import(&bench, "ours.txt");
    let points = back["points"].as_array().unwrap();
    assert_eq!(points.len(), curve.runs.len());
    for (p, q) in points.iter().zip(&curve.runs) {
        assert_eq!(p["load"], q.load.unwrap() as f64);
        assert_eq!(p["latency_ms"], thousandths(q.mean_ms.unwrap()));
        assert_eq!(p["ops_per_s"], thousandths(q.achieved_ops_per_s));
        // Throughput in MB/s follows from the achieved rate, because each operation of [`USERS`] moves 4 KiB.
        let mb = thousandths(q.achieved_ops_per_s * 4096.0 / 1e6);
        assert!((p["mb_per_s"].as_f64().unwrap() - mb).abs() < 0.0011, "{p}");
        assert_eq!(p["verdict"] == "valid", q.verdict == Verdict::Valid);
    }
    assert_eq!(back["peak"], 20.0);
    assert_eq!(
        (&back["unit"], &back["rule"]),
        (&json!("Users"), &json!("sfs2014"))
    );
    let ort = curve.as_curve().unwrap().figures.ort_ms.unwrap();
    assert!((back["ort_ms"].as_f64().unwrap() - ort).abs() < 0.0005);
}

#[test]
fn a_disclosure_says_what_was_measured_and_what_is_not_stated() {
    let bench = Bench::on_tmpfs();
    let (curve, dir) = curve(&bench);
    let words = |more: &[&str]| {
        let args = [&[&*dir, "--format=disclosure"], more].concat();
        let text = report(&bench, &args).expect_code(0).stdout;
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let none = words(&[]);
    assert!(none.contains("Not stated : Not stated"), "{none}");
    assert!(none.contains("product.vendor"), "{none}");
    let sut = "[product]\nvendor = \"Sample Company\"\nname = \"Box 7\"\n";
    std::fs::write(bench.path("sut.toml"), sut).unwrap();
    let some = words(&["--sut=sut.toml"]);
    assert!(!some.contains("product.vendor"), "{some}");
    let reasons = curve.runs[4].reasons.iter().map(|r| &*r.text);
    for said in reasons.chain([
        "Sample Company : Box 7",
        "notes.storage",
        "an open equivalent, not a SPEC result",
        "all processes together do at least 95 % of theirs",
        "of virtual time: simulated, not measured",
        "1s of warm-up and 4s of measuring at each load point",
        "Target null:?latency=4ms&servers=8&clock=virtual (null, 8 servers, latency 4000 us), 1 process, seed 1.",
    ]) {
        assert!(some.contains(said), "{said} is missing:\n{some}");
    }
}

/// Form of a text in the source of an HTML report, with the characters that HTML reserves as entities.
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
    let with = |more: &[&str]| {
        let args = [&[&*dir, "--sut=sut.toml"], more].concat();
        report(&bench, &args).expect_code(0).stdout
    };
    with(&["--format=disclosure", "-o", "ours.txt"]);
    let page = with(&["--format=html"]);
    let back = import(&bench, "ours.txt");
    let sections = back["sections"].as_array().unwrap();
    assert!(sections.len() > 20, "{}", sections.len());
    let charts = page.rfind("<figure").expect("the page has charts");
    let mut from = page
        .find("id=\"disclosure\"")
        .expect("the page has a disclosure");
    assert!(charts < from, "the charts come first");
    for p in back["points"].as_array().unwrap() {
        let head = format!("<th scope=\"row\">{}</th><td>", p["load"].as_f64().unwrap());
        let at = page[from..].find(&head).unwrap_or_else(|| panic!("{head}"));
        from += at + head.len();
        // The table may pad a latency with zeros, so that the values are compared as numbers.
        let (latency, _) = page[from..].split_once('<').unwrap();
        assert_eq!(latency.parse().ok(), p["latency_ms"].as_f64());
    }
    let (stated, empty): (Vec<_>, Vec<_>) = sections.iter().partition(|s| s["text"] != "None");
    for section in stated {
        let heading = format!("<h3>{}</h3>", section["name"].as_str().unwrap());
        from += page[from..]
            .find(&heading)
            .unwrap_or_else(|| panic!("{heading}"));
        let end = page[from + 1..]
            .find("<h3>")
            .map_or(page.len(), |at| from + 1 + at);
        // The ASCII form breaks lines at spaces, and draws tables and boxes.
        let words = section["text"].as_str().unwrap().split_whitespace();
        let words = words.filter(|w| w.chars().any(char::is_alphanumeric));
        for word in words.map(on_page) {
            assert!(page[from..end].contains(&word), "{heading}: {word}");
        }
    }
    for section in empty {
        let name = section["name"].as_str().unwrap();
        assert!(page[from..].contains(name), "{name}");
    }
    assert!(page.contains("Sample &lt;b&gt;Company") && !page.contains("<b>Company"));
    let bare = report(&bench, &[&dir, "--format=html"]);
    let bare = bare.expect_code(0).stdout;
    assert!(!bare.contains("id=\"disclosure\"") && bare.contains("--format html --sut sut.toml"));
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
            for format in ["text", "markdown", "html", "csv", "svg"] {
                let out = format!("out.{format}");
                let args = [&*dir, "--format", format, "-o", &out];
                report(&bench, &args).expect_code(0);
                let mut files = vec![bench.path(&out)];
                if files[0].is_dir() {
                    let pictures = std::fs::read_dir(files.remove(0)).unwrap();
                    files.extend(pictures.map(|f| f.unwrap().path()));
                }
                assert!(!files.is_empty());
                // CSV of a curve states the reduced scale as a number, every other format as the words `not
                // comparable`.
                let said = match (command, format) {
                    ("curve", "csv") => ",users,0.5,",
                    _ => "not comparable",
                };
                for file in files {
                    let text = std::fs::read_to_string(&file).unwrap();
                    let place = file.display();
                    assert_eq!(
                        text.contains(said),
                        scale == "0.5",
                        "{command} {place}: {text}"
                    );
                }
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
    for (command, document, more) in cases {
        let bench = Bench::on_tmpfs();
        let printed = measure(&bench, command, more).expect_code(0);
        let dir = only_results(&bench);
        let again = report(&bench, &[&dir]).expect_code(0);
        assert!(again.stdout.len() > 200);
        assert!(
            printed.stdout.ends_with(&again.stdout),
            "{command} printed\n{}\nand the report is\n{}",
            printed.stdout,
            again.stdout
        );
        let file = format!("{dir}/{document}");
        let json = std::fs::read_to_string(bench.path(&file)).unwrap();
        let printed = report(&bench, &[&file, "--format=json"]).expect_code(0);
        assert_eq!(printed.stdout, json, "{file}");
        let twice = report(&bench, &[&dir, &dir, "--format=json"]).expect_code(0);
        let twice: Vec<Value> = serde_json::from_str(&twice.stdout).unwrap();
        let one: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(twice, [one.clone(), one]);
    }
}

/// Copies a published SPEC SFS 2014 report on VDA to the file `vda.txt` of the bench.
fn copy_published(bench: &Bench) {
    let sample = "../plimsoll-report/tests/published/vda2014.txt";
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample);
    std::fs::copy(sample, bench.path("vda.txt")).unwrap();
}

#[test]
fn published_reports_are_reported_as_they_are_imported() {
    let bench = Bench::new();
    copy_published(&bench);
    for format in ["--format=text", "--format=json"] {
        let imported = plimsoll(&bench, &["results", "import", "vda.txt", format]).expect_code(0);
        let reported = report(&bench, &["vda.txt", format]).expect_code(0);
        assert_eq!(reported.stdout, imported.stdout);
        assert!(imported.stdout.contains("1700"));
    }
}

#[test]
fn a_run_has_a_disclosure_of_its_own() {
    let reads = ["randomread", "--set=filesize=1m"];
    for (workload, is_paced) in [(&["users.toml", "--load=5"][..], true), (&reads, false)] {
        let bench = Bench::on_tmpfs();
        let more = ["--time=4s", EIGHT_SERVERS, "--format=json"];
        let args = [&["run"], workload, &more, &["--results=results"]].concat();
        let run = plimsoll(&bench, &args).result(0);
        let dir = only_results(&bench);
        report(&bench, &[&dir, "--format=disclosure", "-o", "run.txt"]).expect_code(0);
        let back = import(&bench, "run.txt");
        assert_eq!(back["points"].as_array().unwrap().len(), 1);
        let (point, throughput) = (&back["points"][0], thousandths(run.summary.ops_per_s));
        let load = if is_paced { 5.0 } else { throughput };
        assert_eq!(
            (&point["load"], &back["peak"]),
            (&json!(load), &json!(load))
        );
        assert_eq!(point["ops_per_s"], throughput);
        assert_eq!(point["latency_ms"], thousandths(run.summary.mean_ms));
        assert_eq!(back["unit"] == "Users", is_paced, "{back}");
        assert_eq!(back["ort_ms"], Value::Null);
    }
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
    copy_published(&bench);
    let disclosure = "--format=disclosure";
    let only_curves = "vda.txt is a published report, and --format";
    for (args, says) in [
        (
            &[&*search, disclosure][..],
            "is a search for a load line, and a disclosure report",
        ),
        (
            &[&run, &run, disclosure],
            "made of one load curve or run, and 2 results were given",
        ),
        (
            &[&run, &run, "--format=html", "--sut=sut.toml"],
            "2 results were given",
        ),
        (
            &[&run, "--format=csv", "--sut=sut.toml"],
            "--format disclosure or --format html",
        ),
        (
            &[&run, "--sut=bad.toml"],
            "--sut describes the system in a disclosure report",
        ),
        (
            &[&run, disclosure, "--sut=bad.toml"],
            "did you mean `product`?",
        ),
        (
            &[&run, disclosure, "--sut=nowhere.toml"],
            "cannot read nowhere.toml",
        ),
        (&["vda.txt", "--format=csv"], only_curves),
        (&["vda.txt", "--format=html"], only_curves),
        (&["vda.txt", "--format=svg"], only_curves),
        (&["nowhere"], "nowhere"),
        (&["empty"], "empty"),
        (&["prose.txt"], "prose.txt"),
    ] {
        let text = report(&bench, args).refusal();
        assert!(text.contains(says), "{args:?}:\n{text}");
    }
}
