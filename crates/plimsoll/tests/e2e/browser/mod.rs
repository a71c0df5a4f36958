//! Pages in a real browser: what is drawn lies where the figures say, in both widths and both
//! themes, and everybody can read it.

mod pages;
mod serve;
mod window;

use crate::common::Bench;
use serde_json::Value;
use std::path::{Path, PathBuf};
use window::Theme;
pub use window::Window;

/// One operation that reads and one that does not.
const WORKLOAD: &str = "define fileset name=s,path=files,entries=40,size=8k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=2 {
  flowop openfile name=open1,filesetname=s,fd=1
  flowop readwholefile name=read1,fd=1,iosize=4k
  flowop closefile name=close1,fd=1
} }
run 60
";

/// A report of the results in `dirs`, in the given format.
fn page(bench: &Bench, command: &str, dirs: &[PathBuf]) -> PathBuf {
    let output = bench.path(&format!("{command}.html"));
    let mut call = bench.plimsoll([command, "--format=html", "--output"]);
    call.arg(&output).args(dirs);
    crate::common::Ended::of(call).expect_code(0);
    output
}

fn results(bench: &Bench) -> Vec<PathBuf> {
    bench
        .results()
        .iter()
        .map(|r| r.path().to_owned())
        .collect()
}

fn run(bench: &Bench, more: &[&str]) -> PathBuf {
    let workload = bench.workload(WORKLOAD);
    bench.run_in_work(&workload, more).expect_code(0);
    results(bench).pop().unwrap()
}

/// A column of `intervals.csv`, of one operation, by interval.
fn series(dir: &Path, operation: &str, column: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(dir.join("intervals.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|h| *h == name).unwrap();
    let of = |row: &&Vec<&str>| row[at("operation")] == operation && row[at("length_s")] != "0";
    let number = |row: &Vec<&str>| row[at(column)].parse::<f64>().unwrap();
    rows[1..].iter().filter(of).map(number).collect()
}

/// Value of a tick's label, in the unit that the series is in (milliseconds for latencies).
fn tick(label: &str) -> f64 {
    let (number, unit) = label.split_once(' ').unwrap_or((label, ""));
    let factor = match unit {
        "" | "ms" => 1.0,
        "k" | "s" => 1e3,
        "M" => 1e6,
        "µs" => 1e-3,
        "ns" => 1e-6,
        other => panic!("a tick in {other}"),
    };
    number
        .parse::<f64>()
        .unwrap_or_else(|_| panic!("a tick {label}"))
        * factor
}

/// How positions become values, by the outermost labelled ticks alone.
struct Scale {
    at: (f64, f64),
    value: (f64, f64),
    log: bool,
}

impl Scale {
    fn of(ticks: &Value, log: bool) -> Self {
        let tick = |t: &Value| {
            (
                t["at"].as_f64().unwrap(),
                tick(t["label"].as_str().unwrap()),
            )
        };
        let all: Vec<(f64, f64)> = ticks.as_array().unwrap().iter().map(tick).collect();
        let (first, last) = (all[0], all[all.len() - 1]);
        assert!(all.len() >= 2 && first.1 != last.1, "ticks {all:?}");
        let value = |v: f64| if log { v.log10() } else { v };
        Self {
            at: (first.0, last.0),
            value: (value(first.1), value(last.1)),
            log,
        }
    }

    fn value(&self, at: f64) -> f64 {
        let share = (at - self.at.0) / (self.at.1 - self.at.0);
        let value = self.value.0 + share * (self.value.1 - self.value.0);
        if self.log { 10f64.powf(value) } else { value }
    }
}

/// Points of a series as values, read off the axes like a person would.
fn drawn(window: &Window, chart: &str, series: &str, log: bool) -> Vec<(f64, f64)> {
    let found = window.json(&format!("({})({chart:?}, {series:?})", pages::POINTS));
    let (x, y) = (Scale::of(&found["x"], false), Scale::of(&found["y"], log));
    let points = found["points"].as_array().unwrap().iter();
    points
        .map(|p| {
            (
                x.value(p[0].as_f64().unwrap()),
                y.value(p[1].as_f64().unwrap()),
            )
        })
        .collect()
}

#[test]
fn marks_lie_where_the_figures_of_the_run_say() {
    let bench = Bench::on_tmpfs();
    let dir = run(&bench, &["--time=1500ms", "--interval=100ms"]);
    let window = Window::open(&page(&bench, "report", std::slice::from_ref(&dir)));
    window.size(1440, 900);

    let ops = series(&dir, "read1", "ops");
    assert!(ops.len() >= 14, "{ops:?}");
    let points = drawn(&window, "throughput", "read1", false);
    assert_eq!(points.len(), ops.len());
    let most = ops.iter().copied().fold(0.0, f64::max) * 10.0;
    for (i, (ops, (x, y))) in ops.iter().zip(&points).enumerate() {
        // The middle of an interval of a tenth of a second; a point is as exact as a pixel.
        let middle = (i as f64 + 0.5) / 10.0;
        assert!((x - middle).abs() < 0.005, "point {i} at {x} s");
        assert!(
            (y - ops * 10.0).abs() < 0.03 * most,
            "point {i}: {y} for {}",
            ops * 10.0
        );
    }

    let mean = series(&dir, "read1", "mean_ms");
    let points = drawn(&window, "latency", "read1", true);
    assert_eq!(points.len(), mean.len());
    for (mean, (_, y)) in mean.iter().zip(&points) {
        assert!((y / mean - 1.0).abs() < 0.05, "{y} for {mean}");
    }

    // Read off the chart of percentiles: the median of the whole run.
    let run: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("run.json")).unwrap()).unwrap();
    let of = |o: &&Value| o["name"] == "read1" && o["kind"] == "read_whole";
    let read = run["operations"].as_array().unwrap().iter().find(of);
    let read = read.unwrap_or_else(|| panic!("{}", run["operations"]));
    let table = window.json(&format!("({})('percentiles')", pages::TABLE));
    let median = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r[0] == "50 %")
        .unwrap();
    let heads = table["heads"].as_array().unwrap();
    let column = heads.iter().position(|h| *h == "read1").unwrap();
    let shown = tick(median[column].as_str().unwrap());
    let p50 = read["p50_ms"].as_f64().unwrap();
    assert!((shown / p50 - 1.0).abs() < 0.01, "{shown} for {p50}");

    let cells = window.json("document.querySelectorAll('#heat-1 .wide rect').length");
    assert!(cells.as_u64().unwrap() > 20, "a heat map of {cells} cells");
}

#[test]
fn the_pointer_shows_the_values_of_the_nearest_point() {
    let bench = Bench::on_tmpfs();
    let dir = run(&bench, &["--time=1s", "--interval=100ms"]);
    let window = Window::open(&page(&bench, "report", std::slice::from_ref(&dir)));
    for (width, height) in [(1440, 900), (375, 800)] {
        window.size(width, height);
        let hovered = window.hover("#throughput", 0.42);
        let ops = series(&dir, "read1", "ops")[4] * 10.0;
        let line = hovered
            .lines()
            .find(|l| l.starts_with("read1: "))
            .unwrap_or_default();
        let shown: String = line["read1: ".len()..]
            .chars()
            .filter(|c| *c != ' ')
            .collect();
        let shown: f64 = shown.parse().unwrap();
        assert!(hovered.starts_with("0.45 s"), "{hovered}");
        assert!((shown - ops).abs() <= ops * 0.01, "{hovered} for {ops}");
        assert_eq!(
            window.hover("h1", 0.5),
            "",
            "nothing is shown beside a chart"
        );
    }
}

#[test]
fn pages_are_readable_in_both_widths_and_both_themes() {
    let bench = Bench::on_tmpfs();
    let one = run(&bench, &["--time=600ms", "--interval=100ms"]);
    let other = run(&bench, &["--time=600ms", "--interval=100ms", "--seed=2"]);
    let mut md = bench.plimsoll(["md", "--processes=2", "-P=20", "-D=2", "-I=10", "-R=2"]);
    md.arg("--results")
        .arg(bench.path("md"))
        .arg("--dir")
        .arg(bench.path("work-md"));
    crate::common::Ended::of(md).expect_code(0);
    let md = std::fs::read_dir(bench.path("md"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let report = page(&bench, "report", &[one.clone(), md.path()]);
    let comparison = page(&bench, "compare", &[one, other]);
    for (name, path) in [("report", report), ("compare", comparison)] {
        let window = Window::open(&path);
        // What a theme changes does not depend on the width, nor the other way round.
        for (width, height, theme) in [(1440, 900, Theme::Light), (375, 800, Theme::Dark)] {
            let what = format!("{name}, {width} pixels, {theme:?}");
            window.size(width, height);
            window.theme(theme);
            assert_fits(&window, width, &what);
            assert_themed(&window, theme, &what);
            assert_accessible(&window, &what);
            window.picture(&format!("{name}-{width}-{theme:?}").to_lowercase());
        }
        assert_alone(&window, name);
    }
}

/// Nothing is wider than the window, and one drawing of each chart is shown with letters that can
/// be read.
fn assert_fits(window: &Window, width: u32, what: &str) {
    let wide = window.json("document.documentElement.scrollWidth");
    assert!(
        wide.as_u64().unwrap() <= u64::from(width),
        "{what}: {wide} pixels wide"
    );
    let drawings = window.json(pages::DRAWINGS);
    for d in drawings.as_array().unwrap() {
        assert_eq!(d["shown"], 1, "{what}: drawings of {}", d["id"]);
        let letters = d["letters"].as_f64().unwrap();
        assert!(
            (10.0..=16.0).contains(&letters),
            "{what}: letters of {letters} pixels"
        );
    }
}

fn assert_themed(window: &Window, theme: Theme, what: &str) {
    let paper = window.json("getComputedStyle(document.documentElement).backgroundColor");
    let expected = match theme {
        Theme::Light => "rgb(255, 255, 255)",
        Theme::Dark => "rgb(20, 24, 29)",
    };
    assert_eq!(paper, expected, "{what}");
}

/// axe-core finds nothing serious.
fn assert_accessible(window: &Window, what: &str) {
    let found = window.axe();
    assert_eq!(found, Value::Array(vec![]), "{what}");
}

/// The page asks nobody for anything, and its script does not fail.
fn assert_alone(window: &Window, what: &str) {
    let asked = window.json("performance.getEntriesByType('resource').length");
    assert_eq!(asked, 0, "{what}");
    assert_eq!(window.complaints(), Vec::<String>::new(), "{what}");
}

#[test]
fn what_a_workload_is_called_is_text_and_nothing_else() {
    let bench = Bench::on_tmpfs();
    let dir = run(&bench, &["--time=300ms", "--interval=100ms"]);
    let path = dir.join("run.json");
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let evil = "</script></title><script>window.owned=1</script><img src=x onerror=owned=1>\"'";
    for name in ["workload", "started_at"] {
        run[name] = evil.into();
    }
    run["plan"]["title"] = evil.into();
    run["plan"]["source"]["text"] = evil.into();
    run["notes"] = serde_json::json!([{ "text": evil, "location": null }]);
    std::fs::write(&path, run.to_string()).unwrap();
    // The operations' names are in the series too.
    for file in ["run.json", "intervals.csv", "histograms.hlog"] {
        let text = std::fs::read_to_string(dir.join(file)).unwrap();
        std::fs::write(dir.join(file), text.replace("read1", "<b>&'x")).unwrap();
    }
    let window = Window::open(&page(&bench, "report", std::slice::from_ref(&dir)));
    assert_eq!(window.json("typeof window.owned"), "undefined");
    let bold = window.json("document.querySelectorAll('img, b').length");
    assert_eq!(bold, 0, "elements that a text made");
    let heading = window.json("document.querySelector('h1').textContent");
    assert!(heading.as_str().unwrap().starts_with(evil), "{heading}");
    let points = drawn(&window, "throughput", "<b>&'x", false);
    assert!(points.len() >= 2, "{points:?}");
}
