//! `curve.json`: any bytes are read, or refused. What is read comes back from what is written of it, and is
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_html::{RunData, page};
use plimsoll_report::curve as curve_report;
use plimsoll_report::terminal::Layout;
use plimsoll_results::{CURVE_FILE, LoadCurve};
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(curve) = read::<LoadCurve>(data, SAMPLE) else {
        return;
    };
    let layout = Layout {
        width: 80,
        color: false,
    };
    black_box((
        curve_report::render(&curve, None, layout),
        curve.curve().is_ok(),
    ));
    black_box(curve.missing());
    black_box((curve.saturated_from(), curve.any_valid()));
    for point in &curve.points {
        black_box(curve_report::line(point));
    }
    if let Ok(loaded) = RunData::read(&Scratch::of(CURVE_FILE), None) {
        black_box(page::report(&[loaded]));
    }
}

/// The document that is edited.
const SAMPLE: &str = include_str!("../../corpus/curve_json/sample.json");
