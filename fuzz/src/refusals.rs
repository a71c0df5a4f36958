//! What must hold of refusals.

use plimsoll_diagnostics::Diagnostics;

/// Columns of a terminal that is narrower than most texts.
const NARROW: usize = 20;

/// Checks that errors have places, and are rendered.
pub(crate) fn check_refusal(errors: &Diagnostics) {
    assert!(!errors.findings().is_empty());
    assert!(!errors.render(true, NARROW).is_empty());
}
