//! `run.json`: any bytes are read, or refused. What is read comes back from what is written of it, and is
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_html::{RunData, page};
use plimsoll_report::terminal::Layout;
use plimsoll_report::{csv, markdown, terminal};
use plimsoll_results::Run;
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(run) = read::<Run>(data, SAMPLE) else {
        return;
    };
    let layout = Layout { width: 80, color: false };
    let shown = (
        terminal::render(&run, None, layout),
        csv::render(&[("run", &run)]),
        markdown::render("run", &run),
        terminal::render(&run, None, Layout { width: 300, color: true }),
    );
    black_box(shown);
    let dir = Scratch::dir();
    if let Ok(loaded) = RunData::read(&dir, None) {
        black_box(page::report(&[loaded]));
    }
}

/// The document that is edited.
const SAMPLE: &str = include_str!("../../corpus/run_json/sample.json");
