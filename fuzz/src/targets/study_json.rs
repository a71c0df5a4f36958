//! Target for `study.json`: any bytes are accepted or refused. Writing and reading an accepted document again does not
//! change the document, and its report can be rendered. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_report::terminal::Layout;
use plimsoll_results::Document;
use plimsoll_testbed::study::{StudyDir, StudyResults, report};
use std::hint::black_box;

/// Reads the input as the results of a study, and renders the plan and the report of the study.
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

/// Document to which the edits in an input with a leading digit are applied.
const SAMPLE: &str = include_str!("../../corpus/study_json/sample.json");
