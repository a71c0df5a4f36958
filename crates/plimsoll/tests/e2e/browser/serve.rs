//! The results browser in a real browser: found, compared, watched and deleted as a person does it.

use super::window::{Theme, Window};
use super::{assert_accessible, assert_fits, assert_themed};
use crate::common::{Bench, Ended, started};
use crate::serve::{Browser, WORKLOAD, copy, results, serve};
use serde_json::{Value, json};

/// Names of the rows of the list.
fn rows(window: &Window) -> Value {
    window
        .json("[...document.querySelectorAll('.results tbody .name > a')].map(a => a.textContent)")
}

/// Four results, one of them tagged and invalid.
fn some_results(bench: &Bench) {
    let first = results(bench, "newest");
    for (name, day, ops) in [("middle", 2, 100.0), ("oldest", 1, 200.0)] {
        let day = format!("2026-03-0{day}T12:00:00Z");
        let changes = [
            ("/started_at", json!(day)),
            ("/summary/ops_per_s", json!(ops)),
        ];
        copy(&first, name, &changes);
    }
    let odd = copy(
        &first,
        "odd",
        &[
            ("/started_at", json!("2026-03-05T12:00:00Z")),
            ("/validity/verdict", json!("invalid")),
        ],
    );
    let mut tag = bench.plimsoll(["results", "tag", "--add=odd,firmware-7"]);
    tag.arg(&odd);
    Ended::of(tag).expect_code(0);
    let mut note = bench.plimsoll(["results", "note"]);
    note.arg(&odd).arg("the write cache was off");
    Ended::of(note).expect_code(0);
}

#[test]
fn results_are_filtered_compared_annotated_and_deleted() {
    let bench = Bench::on_tmpfs();
    some_results(&bench);
    let browser = serve(&bench, &[]);
    let window = Window::at(&browser.url);
    assert_eq!(rows(&window), json!(["newest", "odd", "middle", "oldest"]));
    window.json("document.querySelector('#tag').value = 'firmware-7'");
    window.follow("form.filter button");
    assert_eq!(rows(&window), json!(["odd"]));
    assert_eq!(
        window.json("document.querySelector('#tag').value"),
        "firmware-7"
    );
    window.go(&browser.url);
    window.json(
        "for (const id of ['from', 'to'])
           document.getElementById(id).value = `2026-03-0${id === 'from' ? 1 : 3}`",
    );
    window.follow("form.filter button");
    assert_eq!(rows(&window), json!(["middle", "oldest"]));

    window.go(&browser.url);
    let button = "document.querySelector('#compare')";
    assert_eq!(window.json(&format!("{button}.disabled")), true);
    for name in ["middle", "oldest"] {
        assert_eq!(window.json(&format!("{button}.disabled")), true);
        window.json(&format!(
            "document.querySelector('input[value={name}]').click()"
        ));
    }
    let text = window.json(&format!("{button}.textContent"));
    assert_eq!(text, "Compare 2 results");
    window.follow("#compare");
    let heading = window.json("document.querySelector('h1').textContent");
    assert_eq!(heading, "2 results side by side");
    let all = window.json(
        "[...document.querySelector('main section table tbody tr').cells].map(c => c.textContent)",
    );
    assert_eq!(all, json!(["all", "100", "200", "+100 %"]));

    window.go(&format!("{}/results/middle", browser.url));
    window.json("document.querySelector('#tags').value = 'kept'");
    window.follow("form[action$='/annotations'] button");
    window.follow("a.tag");
    assert_eq!(rows(&window), json!(["middle"]));

    // Of a tagged one that has to be said; the browser itself does not send the form before.
    window.follow(".results .name a");
    window.follow("a.danger");
    assert_eq!(window.json("document.forms[0].checkValidity()"), false);
    window.json("document.querySelector('input[name=tagged]').click()");
    window.follow("button.danger");
    assert_eq!(rows(&window), json!(["newest", "odd", "oldest"]));
    assert!(!bench.path("results/middle").exists());
    assert_eq!(window.complaints(), Vec::<String>::new());
}

/// Points of a chart's table.
const POINTS: &str = "document.querySelectorAll('#throughput tbody tr').length";

/// A run that goes on until it is interrupted.
fn long_run(bench: &Bench) -> crate::common::Started {
    let workload = bench.workload(WORKLOAD);
    let more = [
        "--target=null:?latency=2ms",
        "--interval=100ms",
        "--time=300s",
    ];
    started(bench.command(&workload, &more), "measuring")
}

#[test]
fn a_run_is_watched_as_it_goes_on() {
    let bench = Bench::on_tmpfs();
    let browser = serve(&bench, &[]);
    let run = long_run(&bench);
    let window = Window::at(&format!("{}/live", browser.url));
    window.follow("main ul a");
    window.until(&format!("{POINTS} > 5"));
    let before = window.json(POINTS).as_u64().unwrap();
    // What a person has opened stays open.
    window.json("document.querySelector('#latency summary').click()");
    window.until(&format!("{POINTS} > {before} + 5"));
    assert_eq!(
        window.json("document.querySelector('#latency details').open"),
        true
    );
    let drawn = window.json(
        "[...document.querySelectorAll('#throughput .wide polyline')]
           .some(l => l.getAttribute('points').trim().split(/\\s+/).length > 5)",
    );
    assert_eq!(drawn, true);
    let tile = window.json("document.querySelectorAll('.tiles dd')[1].textContent");
    let shown: String = tile.as_str().unwrap().split_whitespace().collect();
    assert!(shown.parse::<f64>().unwrap() > 0.0, "{tile}");
    run.interrupt();
    run.end().expect_code(130);
    window.until("document.querySelector('#state').textContent === 'ended'");
    assert_eq!(window.complaints(), Vec::<String>::new());
    window.follow("#results");
    let heading = window.json("document.querySelector('h1').textContent");
    assert_eq!(heading, "w interrupted");
}

/// The lines of events in a chart, by their texts, as the page shows them.
const MARKS: &str = "[...document.querySelectorAll('#throughput .wide text')]
    .map(t => t.textContent.trim()).filter(t => t.startsWith('sh '))";

#[test]
fn events_of_a_run_in_progress_are_lines_in_its_charts() {
    let bench = Bench::on_tmpfs();
    let browser = serve(&bench, &[]);
    let workload = bench.workload(WORKLOAD);
    let go_on = bench.path("go-on");
    let waits = format!(
        "--event=1s sh while ! test -e {}; do sleep 0.05; done",
        go_on.display()
    );
    let more = [
        "--target=null:?latency=2ms",
        "--interval=100ms",
        "--time=300s",
        "--event=500ms sh true",
        &waits,
        "--event=290s sh echo later",
    ];
    let run = started(bench.command(&workload, &more), "measuring");
    let window = Window::at(&format!("{}/live", browser.url));
    window.follow("main ul a");
    window.until(&format!("{MARKS}.length === 2"));
    assert_eq!(window.json(&format!("{MARKS}[0]")), "sh true");
    let events = "[...document.querySelectorAll('#events + ul li')].map(e => e.textContent)";
    let listed = window.json(events);
    let listed: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|e| e.as_str())
        .collect();
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert!(
        listed[0].starts_with("500ms: sh true, begun "),
        "{listed:?}"
    );
    assert!(listed[1].ends_with("late, in progress"), "{listed:?}");
    std::fs::write(&go_on, "").unwrap();
    window.until(&format!(
        "{events}.every(e => e.endsWith('late, executed'))"
    ));
    let live = browser.get("/api/v1/live").json();
    let of_run = live["runs"][0]["run"]["events"].as_array().unwrap().clone();
    assert_eq!(
        of_run.len(),
        2,
        "what has not begun is not there: {of_run:?}"
    );
    run.interrupt();
    let result = run.end().result(130);
    for (live, written) in of_run.iter().zip(&result.events) {
        assert_eq!(live["action"], written.action.as_str());
        for (name, written) in [
            ("start_s", written.start_s),
            ("lateness_s", written.lateness_s),
            ("window_s", written.window_s),
        ] {
            let (live, written) = (live[name].as_f64().unwrap(), written.unwrap());
            assert!((live - written).abs() < 1e-6, "{name}: {live}, {written}");
        }
    }
    window.until("document.querySelector('#state').textContent === 'ended'");
    assert_eq!(window.complaints(), Vec::<String>::new());
    // The finished page has the same lines.
    window.follow("#results");
    window.until(&format!("{MARKS}.length === 2"));
}

/// A page whose server went away and came again goes on, or says that the run has ended meanwhile.
#[test]
fn a_page_outlives_its_server() {
    let bench = Bench::on_tmpfs();
    let browser = serve(&bench, &[]);
    let url = browser.url.clone();
    let listen = format!("--listen={}", url.strip_prefix("http://").unwrap());
    let run = long_run(&bench);
    let window = Window::at(&format!("{url}/live"));
    window.follow("main ul a");
    let state = |text| format!("document.querySelector('#state').textContent === '{text}'");
    window.until(&format!("{POINTS} > 1"));
    drop(browser);
    window.until(&state("connecting again"));
    let browser = serve(&bench, &[&listen]);
    window.until(&state("in progress"));
    drop(browser);
    window.until(&state("connecting again"));
    run.interrupt();
    run.end().expect_code(130);
    let _browser = serve(&bench, &[&listen]);
    window.until("document.body?.innerText.includes('it may have ended') ?? false");
}

#[test]
fn the_browsers_pages_are_readable_in_both_widths_and_both_themes() {
    let bench = Bench::on_tmpfs();
    some_results(&bench);
    let browser: Browser = serve(&bench, &["--token=correct-horse-battery"]);
    let window = Window::at(&browser.url);
    check(&window, "login");
    window.json("document.querySelector('#token').value = 'correct-horse-battery'");
    window.follow("main button");
    for (name, path) in [
        ("list", "/"),
        ("result", "/results/odd"),
        ("delete", "/results/odd/delete"),
        ("compare", "/compare?with=newest&with=odd"),
        ("missing", "/results/nothing"),
    ] {
        window.go(&format!("{}{path}", browser.url));
        check(&window, name);
    }
    let run = long_run(&bench);
    window.go(&format!("{}/live", browser.url));
    window.follow("main ul a");
    window.until(&format!("{POINTS} > 2"));
    check(&window, "live");
    run.interrupt();
    run.end().expect_code(130);
}

fn check(window: &Window, name: &str) {
    assert_eq!(window.complaints(), Vec::<String>::new(), "{name}");
    // What a theme changes does not depend on the width, nor the other way round.
    for (width, height, theme) in [(1440, 900, Theme::Light), (375, 800, Theme::Dark)] {
        let what = format!("{name}, {width} pixels, {theme:?}");
        window.size(width, height);
        window.theme(theme);
        assert_fits(window, width, &what);
        assert_themed(window, theme, &what);
        assert_accessible(window, &what);
        window.picture(&format!("browser-{name}-{width}-{theme:?}").to_lowercase());
    }
}
