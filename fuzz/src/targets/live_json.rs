//! Target for `live.json`: any bytes are accepted or refused. Writing and reading an accepted document again does not
//! change the document. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use plimsoll_results::LiveRun;

/// Reads the input as the settings of a run in progress.
pub fn run(data: &[u8]) {
    let _ = read::<LiveRun>(data, &[SAMPLE]);
}

/// Document to which the edits in an input with a leading digit are applied.
const SAMPLE: &str = include_str!("../../corpus/live_json/sample.json");
