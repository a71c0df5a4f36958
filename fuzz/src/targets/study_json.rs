//! `study.json`: any bytes are read, or refused. A document does not change when it is written and read again, and can
//! be shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_report::terminal::Layout;
use plimsoll_results::Document;
use plimsoll_testbed::study::{StudyDir, StudyResults, report};
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(study) = read::<StudyResults>(data, &[SAMPLE]) else {
        return;
    };
    black_box((study.missing(), study.state(), report::plan(&study)));
    let dir = StudyDir::at(&Scratch::of(StudyResults::FILE));
    let layout = Layout {
        width: 80,
        color: false,
    };
    black_box(report::render(&study, &dir, layout));
}

/// The sample that is edited.
const SAMPLE: &str = include_str!("../../corpus/study_json/sample.json");
