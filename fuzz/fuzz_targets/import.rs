//! Reads any bytes as a disclosure report, and any text as a description of a system under test.
//! A report that comes out must be a curve and print; an error must have a place and a picture.
//!
//! `cargo +nightly fuzz run import` from the root of the repository.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_disclosure::{Sut, import};

fuzz_target!(|data: &[u8]| {
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
    if let Ok(text) = std::str::from_utf8(data)
        && let Err(errors) = Sut::parse(text, "fuzz.toml")
    {
        assert_eq!(errors.findings().len(), 1);
        assert!(!errors.to_string().is_empty());
    }
});
