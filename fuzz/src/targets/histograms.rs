//! `histograms.hlog`: any bytes are read, or refused. Both readers of the file agree.

use crate::scratch::Scratch;
use plimsoll_report::html::{RunData, page};
use plimsoll_results::{HISTOGRAMS_FILE, INTERVALS_FILE, RUN_FILE, RunDir, window_histograms};

/// A run for which the log is read.
const RUN: &[u8] = include_bytes!("../../corpus/run_json/sample.json");

/// The intervals of the run.
const INTERVALS: &[u8] = include_bytes!("../../corpus/intervals/sample-0.csv");

/// Makes a page of a log, and reads it as a whole, and histogram by histogram.
pub fn run(data: &[u8]) {
    let path = Scratch::with(HISTOGRAMS_FILE, data);
    Scratch::write(&path, RUN_FILE, RUN);
    Scratch::write(&path, INTERVALS_FILE, INTERVALS);
    if let Ok(loaded) = RunData::read(&path, None) {
        std::hint::black_box(page::report(&[loaded.document()]));
    }
    let dir = RunDir::at(&path);
    let mut counts = Vec::new();
    let sparse = dir.each_histogram(&mut |line| {
        counts.push((line.window, line.tag, line.histogram.count()));
    });
    match (dir.read_histograms(), sparse) {
        (Ok(whole), Ok(())) => {
            let all = whole.iter();
            let all = all.map(|h| (h.window, h.tag.clone(), h.histogram.len()));
            assert_eq!(all.collect::<Vec<_>>(), counts);
            let _ = std::hint::black_box(window_histograms(&whole, 1));
        }
        (whole, sparse) => {
            std::hint::black_box((whole.is_ok(), sparse.is_ok()));
        }
    }
}
