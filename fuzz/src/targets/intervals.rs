//! `intervals.csv`: any bytes are read, or refused, at once and as they are followed.

use crate::scratch::Scratch;
use plimsoll_results::{INTERVALS_FILE, LIVE_FILE, LiveDir, RunDir};

/// Name that a directory has while a run writes it.
const LIVE_DIR: &str = ".plimsoll-aaaaaa";

/// Reads a series.
pub fn run(data: &[u8]) {
    let dir = Scratch::with(INTERVALS_FILE, data);
    let all = RunDir::at(&dir).read_intervals();
    if let Ok(rows) = &all {
        assert!(rows.iter().all(|r| r.start_s >= 0.0 && r.length_s >= 0.0));
    }
    let live = Scratch::below(LIVE_DIR);
    std::fs::write(live.join(LIVE_FILE), "{}").expect("the scratch directory is writable");
    std::fs::write(live.join(INTERVALS_FILE), data).expect("the scratch directory is writable");
    if let Some(live) = LiveDir::at(&live)
        && let Ok(mut reader) = live.open_reader()
    {
        let _ = std::hint::black_box((reader.rows(), reader.rows(), reader.location()));
    }
}
