//! Target for `series.json`: any bytes are accepted or refused. Writing and reading an accepted series again does not
//! change the series, and its reports and next run can be made. Inputs that begin with a digit are edits of a sample;
//! the digit selects the kind of series.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_report::ab;
use plimsoll_report::compare::{PairedEffects, ProfileSet, Results};
use plimsoll_report::document::Document;
use plimsoll_report::html::{RunData, page};
use plimsoll_report::terminal::{self, Layout};
use plimsoll_report::{curve, find, markdown, points, profile, repeats, suite, sweep};
use plimsoll_results::{Entry, Kind, SERIES_FILE, Series, SeriesDir, SeriesKind, Step, read_runs};
use std::hint::black_box;

const LAYOUT: Layout = Layout {
    width: 80,
    color: false,
};

/// Reads the input as a series, renders all reports of the series, and checks the next run.
pub fn run(data: &[u8]) {
    let Some(series) = read::<Series>(data, &SAMPLES) else {
        return;
    };
    next_run(&series);
    let path = Scratch::of(SERIES_FILE);
    let dir = SeriesDir::at(&path);
    show(&series, &dir);
    assert_eq!(
        Kind::of(&path).expect("the document has a kind"),
        series.kind.kind()
    );
    let entry = Entry::read(&path).expect("what was read is listed");
    assert_eq!(entry.status, series.status());
    // The series lists runs without results.
    black_box((
        read_runs(&path, None).is_ok(),
        Results::read(&path, "results", None).is_ok(),
    ));
    if let Ok(loaded) = RunData::read(&path, None) {
        black_box((loaded.charts(), page::report(&[loaded.document()])));
    }
}

/// Checks the next run of a series: the run is the first of the independent runs, if any, and its Plan has the seed and
/// the load of the run.
fn next_run(series: &Series) {
    let Step::Run(next) = series.next() else {
        return;
    };
    let independent = series.kind.strategy().independent(series);
    assert!(independent.is_empty() || independent[0] == next);
    if let Ok(plan) = series.plan(&next) {
        assert_eq!(plan.seed, next.seed);
        let load = plan.metric.map(|metric| metric.load);
        assert!(next.load.is_none() || next.load == load);
    }
}

fn show(series: &Series, dir: &SeriesDir) {
    match &series.kind {
        SeriesKind::Repeats(figures) => {
            let of = series.with(figures);
            show_document(repeats::document(of, &[]), series, dir);
            (0..series.runs.len()).for_each(|number| _ = black_box(repeats::line(of, number)));
        }
        SeriesKind::Curve(figures) => {
            let of = series.with(figures);
            show_document(curve::document(of), series, dir);
            black_box((points::csv(&[("curve", series)]), series.points().is_ok()));
            series
                .runs
                .iter()
                .for_each(|run| _ = black_box(curve::line(run)));
        }
        SeriesKind::Search(figures) => {
            let of = series.with(figures);
            show_document(find::document(of), series, dir);
            black_box(points::csv(&[("search", series)]));
        }
        SeriesKind::Profile(figures) => {
            let of = series.with(figures);
            black_box(ProfileSet::read(of, dir, None).is_ok());
            show_document(profile::document(of, &[]), series, dir);
            for number in 0..series.runs.len() {
                black_box(profile::line(of, number));
            }
        }
        SeriesKind::Sweep(figures) => {
            let of = series.with(figures);
            show_document(sweep::document(of), series, dir);
            (0..series.runs.len()).for_each(|number| _ = black_box(sweep::line(of, number)));
        }
        SeriesKind::Suite(figures) => {
            let of = series.with(&**figures);
            show_document(suite::document(of), series, dir);
            black_box((
                suite::files::summary(figures),
                suite::files::result(of, "results"),
            ));
            (0..series.runs.len()).for_each(|number| _ = black_box(suite::line(of, number)));
        }
        SeriesKind::Ab(figures) => {
            let of = series.with(figures);
            show_document(
                ab::document(of, &PairedEffects::default(), vec![]),
                series,
                dir,
            );
            for number in 0..series.runs.len() {
                black_box(ab::line(of, number));
            }
        }
    }
}

fn show_document(document: Document, series: &Series, dir: &SeriesDir) {
    let document = document.of_series(series, Some(dir));
    black_box((
        terminal::render(&document, LAYOUT),
        markdown::render(&document),
        page::report(&[document]),
    ));
}

/// One document for each kind of series, and a search over a parameter, to which the edits in an input with a leading digit are applied.
const SAMPLES: [&str; 8] = [
    include_str!("../../corpus/series_json/curve.json"),
    include_str!("../../corpus/series_json/search.json"),
    include_str!("../../corpus/series_json/repeats.json"),
    include_str!("../../corpus/series_json/profile.json"),
    include_str!("../../corpus/series_json/ab.json"),
    include_str!("../../corpus/series_json/sweep.json"),
    include_str!("../../corpus/series_json/suite.json"),
    include_str!("../../corpus/series_json/search_over_parameter.json"),
];
