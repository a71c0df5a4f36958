//! Faults of test beds, as `testbed fault`, events and studies name them: any text is one, or refused in a sentence.
//! What is printed comes back.

use plimsoll_testbed::Fault;

/// Reads a fault.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match text.parse::<Fault>() {
        Ok(fault) => {
            let again: Fault = fault.to_string().parse().expect("it was printed");
            assert_eq!(again, fault);
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
