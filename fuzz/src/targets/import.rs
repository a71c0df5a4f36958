//! Disclosure reports: any bytes are a report, or refused with a place. A report can be read as a curve, and prints.

use plimsoll_report::disclosure::import;

/// Reads a report.
pub fn run(data: &[u8]) {
    match import(data, "fuzz.txt") {
        Ok(read) => {
            assert!(read.disclosure.curve().is_ok());
            std::hint::black_box((read.disclosure.summary(), read.disclosure.to_text()));
        }
        Err(errors) => {
            assert_eq!(errors.findings().len(), 1);
            assert!(!errors.to_string().is_empty());
        }
    }
}
