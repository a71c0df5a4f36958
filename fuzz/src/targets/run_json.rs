//! `run.json`: any bytes are read, or refused. A document does not change when it is written and read again, and can be
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_report::html::{RunData, page};
use plimsoll_report::run::document;
use plimsoll_report::terminal::Layout;
use plimsoll_report::{csv, markdown, terminal};
use plimsoll_results::{HISTOGRAMS_FILE, INTERVALS_FILE, Percentile, Percentiles, RUN_FILE, Run};
use std::hint::black_box;

/// Reads a document and shows it.
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

/// The sample that is edited.
const SAMPLE: &str = include_str!("../../corpus/run_json/sample.json");

/// The intervals of the sample.
const INTERVALS: &[u8] = include_bytes!("../../corpus/intervals/sample-0.csv");

/// The histograms of the sample.
const HISTOGRAMS: &[u8] = include_bytes!("../../corpus/histograms/sample-0.hlog");
