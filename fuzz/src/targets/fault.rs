//! Faults of test beds, as `testbed fault` names them: any text is one, or refused in a sentence.
//! What is printed comes back.

use crate::refusals::check_value;
use plimsoll_testbed::Fault;

/// Reads a fault.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check_value::<Fault>(text);
    }
}
