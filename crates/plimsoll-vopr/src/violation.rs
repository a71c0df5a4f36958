//! Broken rules.

use std::fmt;

/// A rule that an execution breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the rule.
    pub rule: &'static str,
    /// Observation that breaks the rule.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// Returns a `Violation` with the rule and a description unless the condition holds.
macro_rules! must {
    ($rule:literal, $condition:expr, $($what:tt)+) => {{
        let holds: bool = $condition;
        if !holds {
            return Err($crate::violation::Violation { rule: $rule, what: format!($($what)+) });
        }
    }};
}
pub(crate) use must;
