//! Target for `sut.toml`: any text describes a system under test, or is refused with a place. Writing and reading an
//! accepted description again does not change the description.

use crate::refusals::check_refusal;
use plimsoll_report::disclosure::Sut;
use plimsoll_report::disclosure::sut::template;

/// Reads the input as the description of a system under test; writes and reads the description again.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Sut::parse(text, "fuzz.toml") {
        Ok(sut) => {
            std::hint::black_box(sut.stated());
            let written = template(&sut);
            let again = Sut::parse(&written, "written.toml").expect("what was written is read");
            assert_eq!(template(&again), written);
        }
        Err(errors) => check_refusal(&errors),
    }
}
