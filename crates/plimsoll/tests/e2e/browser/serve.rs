//! The results browser in a real browser: a person finds, compares, watches and deletes results.

use super::check;
use super::window::Window;
use crate::common::{Bench, Ended, Started, started};
use crate::serve::{Browser, WORKLOAD, copy, results, serve};
use serde_json::{Value, json};

/// Names of the results that the list of the results browser shows, from top to bottom.
fn rows(window: &Window) -> Value {
    window
        .json("[...document.querySelectorAll('.results tbody .name > a')].map(a => a.textContent)")
}

/// Creates four results in the results browser's directory, one of which has tags and the verdict invalid.
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
    let points = "[...document.querySelectorAll('#history-throughput .wide a')].map(a => a.getAttribute('href'))";
    let by_time = ["oldest", "middle", "odd", "newest"].map(|name| format!("/results/{name}"));
    assert_eq!(window.json(points), json!(by_time));
    window.follow(".results thead th:nth-child(2) a");
    assert_eq!(rows(&window), json!(["middle", "newest", "odd", "oldest"]));
    let sorted = "document.querySelector('[aria-sort=ascending]').textContent";
    assert_eq!(window.json(sorted), "results ↑");
    // A search keeps the order.
    window.json("document.querySelector('#q').value = 'cache OFF'");
    window.follow("form.filter button");
    assert_eq!(rows(&window), json!(["odd"]));
    assert_eq!(window.json(sorted), "results ↑");

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

    // The form that deletes a tagged result has a required checkbox, without which the browser does not send the form.
    window.follow(".results .name a");
    window.follow("a.danger");
    assert_eq!(window.json("document.forms[0].checkValidity()"), false);
    window.json("document.querySelector('input[name=tagged]').click()");
    window.follow("button.danger");
    assert_eq!(rows(&window), json!(["newest", "odd", "oldest"]));
    assert!(!bench.path("results/middle").exists());
    assert_eq!(window.complaints(), Vec::<String>::new());
}

/// JavaScript for the number of points in the table of the throughput chart.
const POINTS: &str = "document.querySelectorAll('#throughput tbody tr').length";

/// Starts a run on the workload [`WORKLOAD`] that would measure for minutes, to be ended by an interrupt.
fn long_run(bench: &Bench, events: &[&str]) -> Started {
    let workload = bench.workload(WORKLOAD);
    let more = [
        "--target=null:?latency=2ms",
        "--interval=100ms",
        "--time=300s",
    ];
    let command = bench.command(&workload, &[&more, events].concat());
    started(command, "measuring")
}

/// JavaScript for the texts at the vertical lines that mark events in the throughput chart.
const MARKS: &str = "[...document.querySelectorAll('#throughput .wide text')]
    .map(t => t.textContent.trim()).filter(t => t.startsWith('sh '))";

#[test]
fn a_run_and_its_events_are_watched_as_they_go_on() {
    let bench = Bench::on_tmpfs();
    let browser = serve(&bench, &[]);
    let go_on = bench.path("go-on");
    let waits = format!(
        "--event=1s sh while ! test -e {}; do sleep 0.05; done",
        go_on.display()
    );
    let events = [
        "--event=500ms sh true",
        &waits,
        "--event=290s sh echo later",
    ];
    let run = long_run(&bench, &events);
    let window = Window::at(&format!("{}/live", browser.url));
    window.follow("main ul a");
    window.until(&format!("{POINTS} > 5"));
    let before = window.json(POINTS).as_u64().unwrap();
    // The table of a chart that a person opens stays open when new points arrive.
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
    check(&window, "browser-live");

    window.until(&format!("{MARKS}.length === 2"));
    assert_eq!(window.json(&format!("{MARKS}[0]")), "sh true");
    let events = "[...document.querySelectorAll('#events + ul li')].map(e => e.textContent)";
    let listed: Vec<String> = serde_json::from_value(window.json(events)).unwrap();
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
        "the third event is still to come: {of_run:?}"
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
    // The page of the finished results marks the same events as the page of the run in progress.
    window.follow("#results");
    let heading = window.json("document.querySelector('h1').textContent");
    assert_eq!(heading, "w interrupted");
    window.until(&format!("{MARKS}.length === 2"));
}

/// After a restart of `results serve`, the open page of a run in progress continues, or says that the run may have
/// ended meanwhile.
#[test]
fn a_page_outlives_its_server() {
    let bench = Bench::on_tmpfs();
    let browser = serve(&bench, &[]);
    let url = browser.url.clone();
    let listen = format!("--listen={}", url.strip_prefix("http://").unwrap());
    let run = long_run(&bench, &[]);
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
    check(&window, "browser-login");
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
        assert_eq!(window.complaints(), Vec::<String>::new(), "{name}");
        check(&window, &format!("browser-{name}"));
    }
}
