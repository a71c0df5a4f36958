//! Target for conditions: any text is a condition of `--fail-if`, or refused with a reason, and likewise a condition of
//! `--until`. A printed condition parses as a condition on the same figure.

use plimsoll_report::compare::Condition;

/// Parses the input as both kinds of conditions; prints and parses each condition again.
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
    match text.parse::<plimsoll_plan::Condition>() {
        Ok(condition) => {
            let printed = condition.to_string();
            let again: plimsoll_plan::Condition =
                printed.parse().expect("what is printed is a condition");
            assert_eq!(again.to_string(), printed);
            assert_eq!(
                (&again.operation, again.figure),
                (&condition.operation, condition.figure)
            );
            assert_ne!(
                condition.holds(condition.limit),
                condition.opposite().holds(condition.limit)
            );
        }
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
}
