//! The case of a seed: a run or a load curve.

use crate::curve::{CurveScenario, check_curve, run_curve};
use crate::scenario::Scenario;
use crate::violation::Violation;
use crate::{check, run, shrink};

/// One of this number of seeds gives a curve.
const SEEDS_OF_A_CURVE: u64 = 8;

/// A simulated case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Case {
    /// A run of one workload.
    Run(Box<Scenario>),
    /// A load curve.
    Curve(Box<CurveScenario>),
}

impl Case {
    /// The case of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        match seed % SEEDS_OF_A_CURVE {
            0 => Self::Curve(Box::new(CurveScenario::draw(seed))),
            _ => Self::Run(Box::new(Scenario::draw(seed))),
        }
    }

    /// The case of a seed in which several runs compete for a directory.
    #[must_use]
    pub fn draw_claims(seed: u64) -> Self {
        Self::Run(Box::new(Scenario::draw_claims(seed)))
    }

    /// Executes the case and checks the execution.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(&self) -> Result<(), Violation> {
        match self {
            Self::Run(scenario) => check(scenario, &run(scenario)),
            Self::Curve(curve) => check_curve(curve, &run_curve(curve)),
        }
    }

    /// Everything that follows from the seed, as text.
    #[must_use]
    pub fn digest(&self) -> String {
        match self {
            Self::Run(scenario) => run(scenario).digest(),
            Self::Curve(curve) => run_curve(curve).digest(),
        }
    }

    /// The smallest case that breaks the same rule.
    #[must_use]
    pub fn shrink(&self, rule: &str) -> Self {
        let breaks = |found: Result<(), Violation>| found.is_err_and(|v| v.rule == rule);
        match self {
            Self::Run(scenario) => Self::Run(Box::new(shrink(scenario, |smaller| {
                breaks(check(smaller, &run(smaller)))
            }))),
            Self::Curve(curve) => {
                Self::Curve(Box::new(curve.shrink(|smaller| {
                    breaks(check_curve(smaller, &run_curve(smaller)))
                })))
            }
        }
    }
}
