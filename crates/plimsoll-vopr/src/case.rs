//! Case of a seed: the run or load curve that the simulator executes for the seed.

use crate::curve::{CurveScenario, check_curve, run_curve};
use crate::scenario::Scenario;
use crate::violation::Violation;
use crate::{check, run, shrink};

/// Number of consecutive seeds of which one simulates a load curve, and the rest simulate a single run each.
const SEEDS_OF_A_CURVE: u64 = 8;

/// Simulated run or load curve of one seed, with every random choice that the seed determines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Case {
    /// A run of one workload on a group of ranks.
    Run(Box<Scenario>),
    /// Load curve that a group of ranks measures in several attempts, all but the last with disturbances.
    Curve(Box<CurveScenario>),
}

impl Case {
    /// Draws the run or load curve of a seed; one in eight seeds gives a curve.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        match seed % SEEDS_OF_A_CURVE {
            0 => Self::Curve(Box::new(CurveScenario::draw(seed))),
            _ => Self::Run(Box::new(Scenario::draw(seed))),
        }
    }

    /// Draws, from a seed, short runs that compete for one work directory.
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

    /// Executes the case, and returns as text the observations that must be equal in every execution of the seed.
    #[must_use]
    pub fn digest(&self) -> String {
        match self {
            Self::Run(scenario) => run(scenario).digest(),
            Self::Curve(curve) => run_curve(curve).digest(),
        }
    }

    /// Smallest case, found by simplifying the failing case step by step, that still breaks `rule`.
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
