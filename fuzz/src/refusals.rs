//! What must hold of refusals.

use plimsoll_diagnostics::Diagnostics;

/// Narrowest and widest terminals for which errors are rendered.
const WIDTHS: [usize; 2] = [20, 200];

/// Checks that errors have places, and are rendered.
pub(crate) fn check_refusal(errors: &Diagnostics) {
    assert!(!errors.findings().is_empty());
    assert!(!errors.to_string().is_empty());
    for width in WIDTHS {
        assert!(!errors.render(true, width).is_empty());
    }
}
