//! `study.json`: any bytes are read, or refused. What is read comes back from what is written of it, and is
//! shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use crate::scratch::Scratch;
use plimsoll_html::page;
use plimsoll_report::bed_study;
use plimsoll_results::{STUDY_FILE, StudyDir, StudyResults};
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(study) = read::<StudyResults>(data, &[SAMPLE]) else {
        return;
    };
    let checked = study.check();
    black_box((study.missing(), study.status(), bed_study::plan(&study)));
    if checked.is_err() {
        return;
    }
    let dir = StudyDir::at(&Scratch::of(STUDY_FILE));
    let sections = bed_study::sections(&study, &dir);
    black_box(page::study(&study, &sections));
}

/// The document that is edited.
const SAMPLE: &str = include_str!("../../corpus/study_json/sample.json");
