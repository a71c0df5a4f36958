//! Faults in the syntax of `testbed fault`: any text is a fault, or refused with a sentence. A printed fault parses as
//! the same fault.

use crate::refusals::check_value;
use plimsoll_testbed::Fault;

/// Parses the input as a fault of a test bed; prints and parses the fault again.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check_value::<Fault>(text);
    }
}
