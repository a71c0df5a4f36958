//! `annotations.json`: any bytes are read, or refused. A document does not change when it is written and read again,
//! and can be shown. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use plimsoll_results::Annotations;
use std::hint::black_box;

/// Reads a document and shows it.
pub fn run(data: &[u8]) {
    let Some(annotations) = read::<Annotations>(data, &[SAMPLE]) else {
        return;
    };
    black_box((annotations.is_empty(), annotations.tag_list()));
}

/// The sample that is edited.
const SAMPLE: &str = include_str!("../../corpus/annotations_json/sample.json");
