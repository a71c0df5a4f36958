//! Series of runs: the document, the rule of each kind, and the directory.

mod ab;
mod curve;
mod document;
mod entry;
mod next;
mod sweep;
mod writer;
