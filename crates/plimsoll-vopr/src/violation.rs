//! Broken rules.

use std::fmt;

/// Broken rule: an execution contradicts what the rule derives from the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Sentence that identifies the rule; shrinking keeps simplifications that break the rule with the same sentence.
    pub rule: &'static str,
    /// Observed values that break the rule.
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
