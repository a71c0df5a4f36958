//! `ior` and `mdtest`: command lines of IOR and mdtest.

use super::pattern::Tool;
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::Plan;
use plimsoll_workload::{ior, mdtest};
use std::time::Duration;

/// Implements [`Tool`] for the options of a module of `plimsoll_workload`.
macro_rules! tool {
    ($module:ident) => {
        impl Tool for $module::Options {
            type Arguments = $module::Arguments;

            fn new(arguments: &Self::Arguments) -> Result<Self, String> {
                Self::new(arguments)
            }

            fn target(&mut self) -> &mut String {
                &mut self.target
            }

            fn lower(&self, ranks: u32) -> Result<Plan, String> {
                $module::lower(self, ranks)
            }

            fn head(&self, plan: &Plan, arguments: &[String], time: &str) -> String {
                let report = $module::Report::new(self, plan);
                report.begin(arguments, env!("CARGO_PKG_VERSION"), time)
            }

            fn stage(
                &self,
                plan: &Plan,
                stage: u32,
                ranks: &[RankStage],
                _: &[OpTotals],
            ) -> String {
                $module::Report::new(self, plan).stage(stage, ranks)
            }

            fn end(&self, plan: &Plan, _: Duration, done: &[Vec<RankStage>], time: &str) -> String {
                $module::Report::new(self, plan).end(done, time)
            }
        }
    };
}

tool!(ior);
tool!(mdtest);
