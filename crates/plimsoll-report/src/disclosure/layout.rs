//! Layout of text and numbers in full disclosure reports.

use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Options for wrapping text to a width at spaces only, independent of the features of the wrapping library that other
/// crates enable.
pub(crate) fn at_spaces<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// The number of decimals that a number needs.
pub(crate) fn decimals(v: f64) -> usize {
    let text = v.to_string();
    text.split_once('.').map_or(0, |(_, part)| part.len())
}
