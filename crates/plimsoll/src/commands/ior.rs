//! `ior`: IOR's command lines.

use super::pattern::{self, Outputs, Tool};
use crate::cli::IorArgs;
use crate::exit::{CommandError, Exit};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::Plan;
use plimsoll_series::events::EventSpec;
use plimsoll_workload::ior::{Options, Report, lower};
use std::time::Duration;

/// Runs a test of IOR; the option `--dry-run` only prints the Plan.
pub fn run(args: &IorArgs) -> Result<Exit, CommandError> {
    if args.dry_run {
        let (plan, options) = checked(args, args.ranks.working()?)?;
        return super::plan::show(
            &plan,
            &pattern::settings(&options.target, &plan),
            args.format,
        );
    }
    let target = Options::new(&args.ior).ok().map(|options| options.target);
    pattern::run(
        (&args.ranks, args.format),
        target.as_deref(),
        |ranks| {
            let (plan, options) = checked(args, ranks)?;
            let outputs = Outputs::new(&args.root.results, &options.target, &plan)?;
            Ok((plan, outputs))
        },
        || {
            let (options, events) = options(args)?;
            Ok((Box::new(Ior(options)), events))
        },
    )
}

/// Options of the test, with the events of a simulated system in the target's URL; and the remaining events.
fn options(args: &IorArgs) -> Result<(Options, Vec<EventSpec>), CommandError> {
    let mut options = Options::new(&args.ior).map_err(CommandError::usage)?;
    let events = args.events.add_to(&mut options.target)?;
    Ok((options, events))
}

/// Plan for `ranks` tasks and options, checked.
fn checked(args: &IorArgs, ranks: u32) -> Result<(Plan, Options), CommandError> {
    let (options, events) = options(args)?;
    pattern::check_ranks(&args.ranks, &options.target, ranks)?;
    let plan = lower(&options, ranks).map_err(CommandError::usage)?;
    let plan = pattern::adapted(plan, &args.ranks, &options.target, &events)?;
    Ok((plan, options))
}

/// IOR with its options.
struct Ior(Options);

impl Tool for Ior {
    fn target(&self) -> &str {
        &self.0.target
    }

    fn head(&self, plan: &Plan) -> String {
        let (arguments, time) = (pattern::arguments(), pattern::local_time());
        Report::new(&self.0, plan).begin(&arguments, env!("CARGO_PKG_VERSION"), &time)
    }

    fn stage(&self, plan: &Plan, stage: u32, ranks: &[RankStage], _: &[OpTotals]) -> String {
        Report::new(&self.0, plan).stage(stage, ranks)
    }

    fn end(&self, plan: &Plan, _: Duration, done: &[Vec<RankStage>]) -> String {
        Report::new(&self.0, plan).end(done, &pattern::local_time())
    }
}
