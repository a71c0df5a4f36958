//! Loads of a curve and values of parameters: any text is an increasing list of loads, or refused with a place, and
//! likewise a list of different values, and the begin of a search. A printed list parses as the same list.

use crate::refusals::check_refusal;
use plimsoll_results::{Loads, MAX_LOAD, MAX_POINTS, SearchStart, values_of};
use std::collections::BTreeSet;

/// Parses the input as the values of `--load` and `--vary`; prints and parses the lists again.
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
    match values_of("--vary", text) {
        Ok(values) => {
            assert!(!values.is_empty() && values.len() as u64 <= MAX_POINTS);
            assert_eq!(values.iter().collect::<BTreeSet<_>>().len(), values.len());
            let again = values_of("--vary", &values.join(","));
            assert_eq!(again.expect("the list is one of values"), values);
        }
        Err(errors) => check_refusal(&errors),
    }
    match SearchStart::parse(text) {
        Ok(start) => assert!(start.first > 0 && start.most.is_none_or(|most| most >= start.first)),
        Err(reason) => assert!(!reason.is_empty()),
    }
}
