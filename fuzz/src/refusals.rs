//! Properties of refusals and of accepted values.

use plimsoll_diagnostics::Diagnostics;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Columns of a terminal that is narrower than most texts.
const NARROW: usize = 20;

/// Checks that a refusal has at least one error, and that the errors can be rendered in color in a narrow terminal.
pub(crate) fn check_refusal(errors: &Diagnostics) {
    assert!(!errors.findings().is_empty());
    assert!(!errors.render(true, NARROW).is_empty());
}

/// Checks that a text is refused with a reason, or that the parsed value, printed and parsed again, is the same value.
pub(crate) fn check_value<T>(text: &str)
where
    T: FromStr<Err = String> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse(), Ok(value)),
        Err(reason) => assert!(!reason.is_empty()),
    }
}
