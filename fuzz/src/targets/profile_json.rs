//! `profile.json`: any bytes are read, or refused. What is read comes back from what is written of it, and is
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_results::{PROFILE_FILE, ProfileDir, ProfileResults};
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(results) = read::<ProfileResults>(data, SAMPLE) else {
        return;
    };
    black_box((results.filesystems().len(), results.missing()));
    let dir = ProfileDir::at(&Scratch::of(PROFILE_FILE));
    for case in &results.cases {
        black_box((case.is_missing(), dir.results(case)));
    }
}

/// The document that is edited.
const SAMPLE: &str = include_str!("../../corpus/profile_json/sample.json");
