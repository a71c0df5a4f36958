//! Disclosure reports: any bytes are a report, or refused with a place. A report can be read as a curve, and prints.

use plimsoll_report::disclosure::import;
use plimsoll_report::terminal::{self, Layout};

/// Imports the input as a disclosure report; makes the curve and the text of the report.
pub fn run(data: &[u8]) {
    match import(data, "fuzz.txt") {
        Ok(read) => {
            assert!(read.disclosure.curve().is_ok());
            let document = read.disclosure.document();
            let (width, color) = (80, false);
            std::hint::black_box(terminal::render(&document, Layout { width, color }));
            std::hint::black_box(read.disclosure.to_text());
        }
        Err(errors) => {
            assert_eq!(errors.findings().len(), 1);
            assert!(!errors.to_string().is_empty());
        }
    }
}
