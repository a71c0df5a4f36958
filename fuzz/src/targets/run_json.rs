//! Target for `run.json`: any bytes are accepted or refused. Writing and reading an accepted document again does not
//! change the document, and all its reports can be rendered. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_report::html::{RunData, page};
use plimsoll_report::run::document;
use plimsoll_report::terminal::Layout;
use plimsoll_report::{csv, markdown, terminal};
use plimsoll_results::{HISTOGRAMS_FILE, INTERVALS_FILE, Percentile, Percentiles, RUN_FILE, Run};
use std::hint::black_box;

/// Reads the input as the results of a run, and renders the terminal, CSV, Markdown and HTML reports.
pub fn run(data: &[u8]) {
    let Some(run) = read::<Run>(data, &[SAMPLE]) else {
        return;
    };
    let layout = |width, color| Layout { width, color };
    let document = document(&run);
    black_box((
        terminal::render(&document, layout(80, false)),
        csv::render(&[("run", &run)]),
        markdown::render(&document),
        terminal::render(&document, layout(300, true)),
    ));
    let dir = Scratch::of(RUN_FILE);
    Scratch::write(&dir, INTERVALS_FILE, INTERVALS);
    Scratch::write(&dir, HISTOGRAMS_FILE, HISTOGRAMS);
    let percentiles = Percentiles::new(Percentile::DEFAULT_STORED);
    for shown in [None, Some(&percentiles)] {
        if let Ok(loaded) = RunData::read(&dir, shown) {
            black_box(page::report(&[loaded.document()]));
        }
    }
}

/// Document to which the edits in an input with a leading digit are applied.
const SAMPLE: &str = include_str!("../../corpus/run_json/sample.json");

/// Content of `intervals.csv` in the results directory of the run that the input describes.
const INTERVALS: &[u8] = include_bytes!("../../corpus/intervals/sample-0.csv");

/// Content of `histograms.hlog` in the results directory of the run that the input describes.
const HISTOGRAMS: &[u8] = include_bytes!("../../corpus/histograms/sample-0.hlog");
