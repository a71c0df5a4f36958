//! `live.json`: any bytes are read, or refused. A document does not change when it is written and read again. Inputs
//! that begin with a digit are edits of a sample.

use crate::documents::read;
use plimsoll_results::LiveRun;

/// Reads a document.
pub fn run(data: &[u8]) {
    let _ = read::<LiveRun>(data, &[SAMPLE]);
}

/// The sample that is edited.
const SAMPLE: &str = include_str!("../../corpus/live_json/sample.json");
