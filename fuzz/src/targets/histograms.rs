//! Target for `histograms.hlog`: any bytes are accepted or refused as the histogram log of a run.

use crate::scratch::Scratch;
use plimsoll_report::html::{RunData, page};
use plimsoll_results::{Distribution, HISTOGRAMS_FILE, INTERVALS_FILE, RUN_FILE, RunDir};

/// Content of `run.json` of the run to which the histogram log in the input belongs.
const RUN: &[u8] = include_bytes!("../../corpus/run_json/sample.json");

/// Content of `intervals.csv` of the run to which the histogram log in the input belongs.
const INTERVALS: &[u8] = include_bytes!("../../corpus/intervals/sample-0.csv");

/// Renders the HTML page of a run whose histogram log is the input, and reads the log histogram by histogram.
pub fn run(data: &[u8]) {
    let path = Scratch::with(HISTOGRAMS_FILE, data);
    Scratch::write(&path, RUN_FILE, RUN);
    Scratch::write(&path, INTERVALS_FILE, INTERVALS);
    if let Ok(loaded) = RunData::read(&path, None) {
        std::hint::black_box(page::report(&[loaded.document()]));
    }
    let dir = RunDir::at(&path);
    let mut sum = Distribution::default();
    let read = dir.each_histogram(&mut |line| sum.add(&line.histogram));
    let _ = std::hint::black_box((read, sum.quantile(0.5)));
}
