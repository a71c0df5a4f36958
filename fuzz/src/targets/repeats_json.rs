//! `repeats.json`: any bytes are read, or refused. What is read comes back from what is written of it, and is
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_results::{REPEATS_FILE, Repeats, RepeatsDir, read_runs};
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(repeats) = read::<Repeats>(data, SAMPLE) else {
        return;
    };
    black_box(&repeats);
    let dir = Scratch::of(REPEATS_FILE);
    black_box((
        RepeatsDir::at(&dir).runs().is_ok(),
        read_runs(&dir, None).is_ok(),
    ));
}

/// The document that is edited.
const SAMPLE: &str = include_str!("../../corpus/repeats_json/sample.json");
