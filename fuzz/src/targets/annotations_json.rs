//! Target for `annotations.json`: any bytes are accepted or refused. Writing and reading an accepted document again
//! does not change the document, and its tags can be listed. Inputs that begin with a digit are edits of a sample.

use crate::documents::read;
use plimsoll_results::Annotations;
use std::hint::black_box;

/// Reads the input as annotations, and lists the tags.
pub fn run(data: &[u8]) {
    let Some(annotations) = read::<Annotations>(data, &[SAMPLE]) else {
        return;
    };
    black_box((annotations.is_empty(), annotations.tag_list()));
}

/// Document to which the edits in an input with a leading digit are applied.
const SAMPLE: &str = include_str!("../../corpus/annotations_json/sample.json");
