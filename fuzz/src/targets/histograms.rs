//! `histograms.hlog`: any bytes are read, or refused. Both readers of it agree.

use crate::scratch::Scratch;
use plimsoll_results::{HISTOGRAMS_FILE, RunDir, window_histograms};

/// Reads a log as a whole, and histogram by histogram.
pub fn run(data: &[u8]) {
    let dir = Scratch::with(HISTOGRAMS_FILE, data);
    let dir = RunDir::at(&dir);
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
