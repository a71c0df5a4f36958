//! Pages in a real browser: charts show the figures, and pages are readable in both widths and both themes.

mod pages;
mod serve;
mod window;

use crate::common::series::only_in;
use crate::common::{Bench, Ended, row};
use plimsoll_results::RunDir;
use serde_json::Value;
use std::path::{Path, PathBuf};
use window::Theme;
pub use window::Window;

/// A workload with an operation that transfers bytes (read) and operations without bytes (open, close).
const WORKLOAD: &str = "define fileset name=s,path=files,entries=40,size=8k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=2 {
  flowop openfile name=open1,filesetname=s,fd=1
  flowop readwholefile name=read1,fd=1,iosize=4k
  flowop closefile name=close1,fd=1
} }
run 60
";

/// Path of the HTML page that `command` (`report` or `compare`) makes of the results in `dirs`.
fn page(bench: &Bench, command: &str, dirs: &[PathBuf]) -> PathBuf {
    let output = bench.path(&format!("{command}.html"));
    let mut call = bench.plimsoll([command, "--format=html", "--output"]);
    call.arg(&output).args(dirs);
    Ended::of(call).expect_code(0);
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

/// Values of a column of `intervals.csv` for one operation, one per interval, in order of time.
fn series(dir: &Path, operation: &str, column: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(dir.join("intervals.csv")).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|l| l.split(',').collect()).collect();
    let at = |name: &str| rows[0].iter().position(|h| *h == name).unwrap();
    let of = |row: &&Vec<&str>| row[at("operation")] == operation && row[at("length_s")] != "0";
    let number = |row: &Vec<&str>| row[at(column)].parse::<f64>().unwrap();
    rows[1..].iter().filter(of).map(number).collect()
}

/// Value of the label at a tick of a chart's axis, in the unit of the chart's series (milliseconds for latencies).
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

/// Mapping from positions on an axis of a chart to values, given by the positions and labels of the outermost ticks.
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

/// Values of the points that a chart draws for a series, computed from the points' positions and the axes' labels.
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
fn marks_and_the_pointer_show_the_figures_of_the_run() {
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
        // The chart draws the point of an interval of 0.1 s in the middle of the interval, with the precision of a
        // pixel.
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

    // The table of the chart `percentiles` has the median service time of the whole run, as `run.json` has.
    let run = RunDir::at(&dir).read().unwrap();
    let p50 = row(&run, "read1:read_whole").latency.p50_ms;
    let table = window.json(&format!("({})('percentiles')", pages::TABLE));
    let rows = table["rows"].as_array().unwrap();
    let median = rows.iter().find(|r| r[0] == "50 %").unwrap();
    let heads = table["heads"].as_array().unwrap();
    let column = heads.iter().position(|h| *h == "read1").unwrap();
    let shown = tick(median[column].as_str().unwrap());
    assert!((shown / p50 - 1.0).abs() < 0.01, "{shown} for {p50}");

    let cells = window.json("document.querySelectorAll('#heat-1 rect').length");
    assert!(cells.as_u64().unwrap() > 20, "a heat map of {cells} cells");

    let end = ops.len() as f64 / 10.0;
    for (width, height) in [(1440, 900), (375, 800)] {
        window.size(width, height);
        let hovered = window.hover("#throughput", 0.42);
        let (at, _) = hovered.split_once(" s").unwrap_or_default();
        let middle: f64 = at.parse().unwrap_or_else(|_| panic!("{hovered}"));
        // The chart shows the point that is nearest to the pointer: at most half an interval of 0.1 s away.
        assert!((middle - 0.42 * end).abs() < 0.06, "{hovered}");
        let ops = ops[(middle * 10.0) as usize] * 10.0;
        let line = hovered.lines().find_map(|l| l.strip_prefix("read1: "));
        let shown: String = line.unwrap_or_default().split(' ').collect();
        let shown: f64 = shown.parse().unwrap_or_else(|_| panic!("{hovered}"));
        assert!((shown - ops).abs() <= ops * 0.01, "{hovered} for {ops}");
        assert_eq!(window.hover("h1", 0.5), "", "only charts show values");
    }
}

/// Labels of the time axes on the page, by chart.
fn times(window: &Window) -> Vec<Vec<f64>> {
    serde_json::from_value(window.json(pages::TIMES)).unwrap()
}

#[test]
fn charts_share_the_cursor_and_the_zoom_and_lines_are_switched_off() {
    let bench = Bench::on_tmpfs();
    let dir = run(&bench, &["--time=1500ms", "--interval=100ms"]);
    let window = Window::open(&page(&bench, "report", std::slice::from_ref(&dir)));
    window.size(1440, 900);

    // The three operations of a closed loop coincide.
    let key = "[...document.querySelectorAll('#throughput .key button')].map(b => b.textContent)";
    let key: Vec<String> = serde_json::from_value(window.json(key)).unwrap();
    assert_eq!(key.len(), 2, "{key:?}");
    assert_eq!(key[0], "all");
    assert!(
        key[1].contains("read1") && key[1].contains(" and "),
        "{key:?}"
    );

    let whole = times(&window);
    assert!(whole.len() >= 6, "charts over time: {whole:?}");
    let hovered = window.hover("#throughput", 0.42);
    assert!(hovered.contains(" s\n"), "{hovered}");
    let crosses: Vec<Option<f64>> = serde_json::from_value(window.json(pages::CROSSES)).unwrap();
    assert_eq!(crosses.len(), whole.len());
    let first = crosses[0].unwrap();
    let is_same = |cross: &Option<f64>| cross.is_some_and(|at| (at - first).abs() < 0.01);
    assert!(crosses.iter().all(is_same), "{crosses:?}");
    let values = window.json("document.querySelectorAll('.values:not([hidden])').length");
    assert_eq!(values, 1, "charts with values");
    let other = window.json("document.querySelector('#percentiles .cross').hidden");
    assert_eq!(other, true, "a chart without a time axis has no cross");

    // The axis ends 5 % after the end of the run.
    let (from, to) = (0.2 * 1.05 * 1.5, 0.6 * 1.05 * 1.5);
    window.drag("#throughput", 0.2, 0.6);
    let zoomed = times(&window);
    let is_inside = |labels: &Vec<f64>| {
        let inside = |s: &f64| (from - 0.02..to + 0.02).contains(s);
        labels.len() >= 2 && labels.iter().all(inside)
    };
    assert!(zoomed.iter().all(is_inside), "{zoomed:?}");
    for (i, (x, _)) in drawn(&window, "throughput", "read1", false)
        .iter()
        .enumerate()
    {
        let middle = (i as f64 + 0.5) / 10.0;
        assert!((x - middle).abs() < 0.005, "point {i} at {x} s");
    }
    let hovered = window.hover("#latency", 0.5);
    let at: f64 = hovered.split(' ').next().unwrap().parse().unwrap();
    assert!((at - (from + to) / 2.0).abs() < 0.06, "{hovered}");
    window.json("document.querySelector('#latency .whole').click()");
    assert_eq!(times(&window), whole);
    window.drag("#heat-1", 0.5, 0.9);
    assert_ne!(times(&window), whole);
    window.double_click("#latency");
    assert_eq!(times(&window), whole);

    let shown = || window.json(&format!("({})('latency')", pages::SHOWN));
    assert_eq!(shown(), serde_json::json!([true, true, true]));
    let pressed =
        "document.querySelectorAll('#latency .key button')[1].getAttribute('aria-pressed')";
    let press = "document.querySelectorAll('#latency .key button')[1].click()";
    window.json(press);
    assert_eq!(shown(), serde_json::json!([true, false, true]));
    assert_eq!(window.json(pressed), "false");
    window.json(press);
    assert_eq!(shown(), serde_json::json!([true, true, true]));
    assert_eq!(window.json(pressed), "true");
    assert_eq!(window.complaints(), Vec::<String>::new());
}

#[test]
fn pages_are_readable_in_both_widths_and_both_themes() {
    let bench = Bench::on_tmpfs();
    let one = run(&bench, &["--time=600ms", "--interval=100ms"]);
    let other = run(&bench, &["--time=600ms", "--interval=100ms", "--seed=2"]);
    let md = ["md", "--processes=2", "-P=20", "-D=2", "-I=10", "-R=2"];
    let md = bench.plimsoll([&md[..], &["--results=md", "--dir=work-md"]].concat());
    Ended::of(md).expect_code(0);
    let md = only_in(&bench.path("md"));
    let report = page(&bench, "report", &[one.clone(), md.path().to_owned()]);
    let comparison = page(&bench, "compare", &[one, other]);
    let window = Window::open(&report);
    check(&window, "report");
    assert_alone(&window, "report");
    window.go(&format!("file://{}", comparison.display()));
    check(&window, "compare");
    assert_alone(&window, "compare");
}

/// Checks a page at the widths of a desktop and a phone, and in the light and the dark theme; keeps pictures of the
/// page.
fn check(window: &Window, name: &str) {
    // The theme of a page does not depend on the width of the window, so that two of the four combinations suffice.
    for (width, height, theme) in [(1440, 900, Theme::Light), (375, 800, Theme::Dark)] {
        let what = format!("{name}, {width} pixels, {theme:?}");
        window.size(width, height);
        window.theme(theme);
        assert_fits(window, width, &what);
        assert_themed(window, theme, &what);
        assert_accessible(window, &what);
        window.picture(&format!("{name}-{width}-{theme:?}").to_lowercase());
    }
}

/// Asserts that no element is wider than the window, and that each chart shows exactly one drawing, with readable
/// letters.
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

/// Asserts that axe-core finds no serious accessibility problem on the page.
fn assert_accessible(window: &Window, what: &str) {
    let found = window.axe();
    assert_eq!(found, Value::Array(vec![]), "{what}");
}

/// Asserts that the page loads no other file, and that the page's scripts end without an error.
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
    // Hostile names of operations go to the time series and histograms as well, because the page reads names from both.
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
