//! Charts and pages of series.

use crate::fixtures::{create, curve, make, make_all, repeats, search};
use crate::series::of_search;
use plimsoll_report::html::chart::Chart;
use plimsoll_report::html::{RunData, page};
use plimsoll_results::{Series, SeriesWriter};
use std::path::Path;

/// Makes the runs of a series, which are valid up to load 5, and reads the results.
fn made(root: &Path, series: Series) -> RunData {
    let mut writer = create(root, series);
    make_all(&mut writer, of_search);
    read(&writer)
}

fn read(writer: &SeriesWriter) -> RunData {
    RunData::read(writer.dir().path(), None).unwrap()
}

/// Values of the column `name`.
fn column<'a>(chart: &'a Chart, name: &str) -> &'a [Option<f64>] {
    let column = chart.columns.iter().find(|c| c.name == name);
    &column
        .unwrap_or_else(|| panic!("{name} of {chart:?}"))
        .values
}

fn chart<'a>(charts: &'a [Chart], id: &str) -> &'a Chart {
    charts.iter().find(|c| c.id == id).unwrap()
}

#[test]
fn charts_of_a_curve_tell_valid_points_from_others() {
    let root = tempfile::tempdir().unwrap();
    let data = made(root.path(), curve());
    let charts = data.charts();
    let ids: Vec<&str> = charts.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["load-curve", "throughput"]);
    let response = chart(&charts, "load-curve");
    // Load 10 was not measured, because two consecutive invalid points end the curve.
    assert_eq!(response.at, [2.0, 4.0, 6.0, 8.0]);
    let all = [2.0, 4.0, 30.0, 30.0].map(Some);
    assert_eq!(column(response, "mean"), all);
    let names: Vec<&str> = response.columns.iter().map(|c| &*c.name).collect();
    assert_eq!(names, ["mean", "median", "99th percentile"]);
    for line in &response.columns {
        assert_eq!(
            (&*line.crossed.at, line.crossed.word),
            (&[2, 3][..], "invalid")
        );
    }
    assert!(
        response.about.contains("overall response time is 3"),
        "{}",
        response.about
    );
    let limits: Vec<(f64, &str)> = response.limits.iter().map(|l| (l.at, &*l.text)).collect();
    assert_eq!(limits, [(20.0, "limit of the mean: 20.0 ms")]);
    let marks: Vec<(f64, &str)> = response.marks.iter().map(|m| (m.at, &*m.text)).collect();
    assert_eq!(marks, [(4.0, "load line 4")]);
    assert_eq!(
        response.title,
        "Response time over load (scaled: not comparable)"
    );
    let throughput = chart(&charts, "throughput");
    assert_eq!(
        column(throughput, "offered"),
        [40.0, 80.0, 120.0, 160.0].map(Some)
    );
    assert_eq!(
        column(throughput, "achieved"),
        [40.0, 80.0, 108.0, 144.0].map(Some)
    );
    assert_eq!(throughput.columns[0].crossed.at, [2, 3]);
}

#[test]
fn charts_of_a_search_have_a_position_for_each_load_and_the_order_of_the_runs() {
    let root = tempfile::tempdir().unwrap();
    let data = made(root.path(), search());
    let charts = data.charts();
    let response = chart(&charts, "load-line");
    assert_eq!(response.at, [2.0, 4.0, 5.0, 6.0, 8.0]);
    let mean = &response.columns[0];
    assert_eq!(mean.values[..3], [2.0, 4.0, 5.0].map(Some));
    assert!(mean.values.iter().all(Option::is_some));
    assert_eq!(
        (&*mean.crossed.at, mean.crossed.word),
        (&[3, 4][..], "not sustained")
    );
    assert_eq!(
        column(response, "runs"),
        [1.0, 1.0, 3.0, 3.0, 1.0].map(Some)
    );
    assert_eq!(
        column(response, "passed"),
        [1.0, 1.0, 3.0, 0.0, 0.0].map(Some)
    );
    let order = chart(&charts, "course");
    let loads = [2.0, 4.0, 8.0, 6.0, 5.0, 5.0, 5.0, 6.0, 6.0];
    let [line] = &order.columns[..] else {
        panic!("one line: {order:?}");
    };
    assert_eq!(line.values, loads.map(Some));
    let failed: Vec<usize> = (0..9).filter(|run| loads[*run] > 5.0).collect();
    assert_eq!((&line.crossed.at, line.crossed.word), (&failed, "fail"));
}

#[test]
fn a_series_without_runs_has_a_page_and_no_charts() {
    let root = tempfile::tempdir().unwrap();
    for series in [curve(), search()] {
        let data = read(&create(root.path(), series));
        assert_eq!(data.charts(), []);
        assert!(page::report(&[data.document()]).contains("unfinished"));
    }
}

#[test]
fn a_page_has_the_rows_and_the_reasons_of_a_series() {
    let root = tempfile::tempdir().unwrap();
    let of_curve = page::report(&[made(root.path(), curve()).document()]);
    for expected in [
        "<h1>streams, load curve",
        "<span class=\"verdict doubtful\">stopped by its rule, 4 of 5 load points, 2 valid</span>",
        "<strong>consecutive_invalid</strong>: 2 invalid points in a row, the last at load 8",
        "<dt>requested</dt><dd>5 load points from 2 to 10 streams</dd>",
        "<dt>measured</dt><dd>10s of virtual time in each</dd>",
        "point-03-load-6",
        "<strong>run 3, load 6, latency</strong>: latency was missed",
    ] {
        assert!(of_curve.contains(expected), "{expected}: {of_curve}");
    }
    assert!(!of_curve.contains("point-05-load-10"));
    let of_search = page::report(&[made(root.path(), search()).document()]);
    let whole = "<dd>5\u{a0}streams, passed";
    assert!(of_search.contains(whole), "{of_search}");
    let of_search = of_search.replace('\u{a0}', " ");
    for expected in [
        "<h1>streams, search for the load line",
        ">found, 9 runs</span>",
        "5 streams, passed 3 of 3 runs",
        "6 streams, passed 0 of 3 runs",
        "run-04-load-6",
        "<strong>runs 4, 8, 9, load 6, latency</strong>: latency was missed",
    ] {
        assert!(of_search.contains(expected), "{expected}: {of_search}");
    }
}

/// Repeated runs have the charts of each run instead.
#[test]
fn repeated_runs_have_no_charts_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), repeats(1));
    make(&mut writer, 400, 2, &[]);
    assert_eq!(read(&writer).charts(), []);
}
