//! Target for `intervals.csv`: any bytes are accepted or refused, both by the reader of a complete run and by the
//! reader that follows the file of a run in progress.

use crate::scratch::{LIVE_DIR, Scratch};
use plimsoll_report::html::{RunData, page};
use plimsoll_results::{HISTOGRAMS_FILE, INTERVALS_FILE, LIVE_FILE, LiveDir, RUN_FILE, RunDir};

/// Content of `run.json` of the run to which the intervals in the input belong.
const RUN: &[u8] = include_bytes!("../../corpus/run_json/sample.json");

/// Reads the input as the intervals of a complete run and of a run in progress, and renders the HTML page of the
/// complete run.
pub fn run(data: &[u8]) {
    let dir = Scratch::with(INTERVALS_FILE, data);
    let all = RunDir::at(&dir).read_intervals();
    if let Ok(rows) = &all {
        assert!(rows.iter().all(|r| r.start_s >= 0.0 && r.length_s >= 0.0));
    }
    Scratch::write(&dir, RUN_FILE, RUN);
    Scratch::write(&dir, HISTOGRAMS_FILE, b"");
    if let Ok(loaded) = RunData::read(&dir, None) {
        std::hint::black_box(page::report(&[loaded.document()]));
    }
    let live = Scratch::below(LIVE_DIR);
    Scratch::write(&live, LIVE_FILE, b"{}");
    Scratch::write(&live, INTERVALS_FILE, data);
    if let Some(live) = LiveDir::at(&live)
        && let Ok(mut reader) = live.open_reader()
    {
        let _ = std::hint::black_box((reader.rows(), reader.rows(), reader.location()));
    }
}
