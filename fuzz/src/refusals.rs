//! Properties of refusals and of accepted values.

use plimsoll_diagnostics::Diagnostics;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Columns of a terminal that is narrower than most texts.
const NARROW: usize = 20;

/// Checks that errors have places, and are rendered.
pub(crate) fn check_refusal(errors: &Diagnostics) {
    assert!(!errors.findings().is_empty());
    assert!(!errors.render(true, NARROW).is_empty());
}

/// Checks that a text is refused with a sentence, or that its value prints as a text with the same value.
pub(crate) fn check_value<T>(text: &str)
where
    T: FromStr<Err = String> + Display + PartialEq + Debug,
{
    match text.parse::<T>() {
        Ok(value) => assert_eq!(value.to_string().parse(), Ok(value)),
        Err(reason) => assert!(!reason.is_empty()),
    }
}
