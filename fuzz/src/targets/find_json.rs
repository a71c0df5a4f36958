//! `find.json`: any bytes are read, or refused. What is read comes back from what is written of it, and is
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_html::{RunData, page};
use plimsoll_report::find;
use plimsoll_report::terminal::Layout;
use plimsoll_results::{FIND_FILE, LoadSearch};
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(search) = read::<LoadSearch>(data, SAMPLE) else {
        return;
    };
    let layout = Layout {
        width: 80,
        color: false,
    };
    black_box((
        find::render(&search, None, layout),
        find::bottleneck(&search),
        find::interval(&search),
    ));
    black_box((search.trials(), search.can_resume()));
    if let Ok(loaded) = RunData::read(&Scratch::of(FIND_FILE), None) {
        black_box(page::report(&[loaded]));
    }
}

/// The document that is edited.
const SAMPLE: &str = include_str!("../../corpus/find_json/sample.json");
