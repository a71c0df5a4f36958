//! `ior`: IOR's command lines.

use super::pattern::Tool;
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::Plan;
use plimsoll_workload::ior::{Arguments, Options, Report, lower};
use std::time::Duration;

/// IOR with its options.
pub struct Ior(Options);

impl Tool for Ior {
    type Arguments = Arguments;

    fn new(arguments: &Arguments) -> Result<Self, String> {
        Options::new(arguments).map(Self)
    }

    fn target(&mut self) -> &mut String {
        &mut self.0.target
    }

    fn lower(&self, ranks: u32) -> Result<Plan, String> {
        lower(&self.0, ranks)
    }

    fn head(&self, plan: &Plan, arguments: &[String], time: &str) -> String {
        Report::new(&self.0, plan).begin(arguments, env!("CARGO_PKG_VERSION"), time)
    }

    fn stage(&self, plan: &Plan, stage: u32, ranks: &[RankStage], _: &[OpTotals]) -> String {
        Report::new(&self.0, plan).stage(stage, ranks)
    }

    fn end(&self, plan: &Plan, _: Duration, done: &[Vec<RankStage>], time: &str) -> String {
        Report::new(&self.0, plan).end(done, time)
    }
}
