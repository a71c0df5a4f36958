//! Target for the conditions of `--fail-if`: any text is a condition, or refused with a reason. A printed condition
//! parses as a condition on the same percentile.

use plimsoll_report::compare::Condition;

/// Parses the input as a condition of `--fail-if`; prints and parses the condition again.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match text.parse::<Condition>() {
        Ok(condition) => {
            let printed = condition.to_string();
            let again: Condition = printed.parse().expect("what is printed is a condition");
            assert_eq!(again.percentile(), condition.percentile());
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
