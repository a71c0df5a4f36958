//! Loads of a curve: any text is an increasing list, or refused with a place. A printed list parses as the same list.

use crate::refusals::check_refusal;
use plimsoll_results::{Loads, MAX_LOAD, MAX_POINTS};

/// Parses the input as the value of `--load`; prints and parses the list of loads again.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Loads::parse("--load", text) {
        Ok(loads) => {
            let all = loads.as_slice();
            assert!(all.is_sorted_by(|a, b| a < b) && all[0] > 0);
            assert!(all.len() as u64 <= MAX_POINTS && loads.greatest() <= MAX_LOAD);
            let again = Loads::parse("--load", &loads.to_string());
            assert_eq!(again.expect("the list is one of loads"), loads);
        }
        Err(errors) => check_refusal(&errors),
    }
}
