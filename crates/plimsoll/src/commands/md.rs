//! `md`: metadata and small objects under many processes.

use super::pattern::{self, Extras, Tool};
use crate::cli::PatternArgs;
use crate::console;
use crate::exit::{CommandError, Exit};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::Plan;
use plimsoll_results::{Run, Verdict};
use plimsoll_series::refuse_among_files;
use plimsoll_workload::md::{
    Arguments, LatencyFiles, Options, PatternOptions, Position, Report, lower,
};
use std::time::Duration;

/// MD-Workbench's name for the interface without operations.
const NULL_INTERFACE: &str = "dummy";

/// Runs the pattern of `md`; with `-i list`, only prints the names of the interfaces.
pub fn run(args: &PatternArgs<Arguments>) -> Result<Exit, CommandError> {
    if args.tool.lists_interfaces() {
        let names = plimsoll_target::registry::SCHEMES.iter().map(|s| s.name);
        let names: Vec<&str> = std::iter::once(NULL_INTERFACE).chain(names).collect();
        return super::print(&format!("Available plugins: {}\n", names.join(" ")));
    }
    pattern::run::<Md>(args)
}

/// Whether the root directory that MD-Workbench's precreate phase would create exists already and is empty; false for a
/// target that is not on the local file system.
fn is_empty(plan: &Plan, options: &Options) -> bool {
    let makes_root = plan.pattern().is_some_and(|p| !p.stages.is_empty())
        && matches!(&options.pattern, PatternOptions::Workbench(w) if w.phases.precreate);
    let root = options.place.dir.join(options.place.root.as_str());
    let entries = std::fs::read_dir(root).map(|mut entries| entries.next().is_none());
    makes_root && plimsoll_target::is_local(&options.target) && entries.unwrap_or(false)
}

/// A pattern of `md` with its options.
pub struct Md(Options);

impl Tool for Md {
    type Arguments = Arguments;

    fn new(arguments: &Arguments) -> Result<Self, String> {
        Options::new(arguments).map(Self)
    }

    fn target(&mut self) -> &mut String {
        &mut self.0.target
    }

    fn is_quiet(&self) -> bool {
        self.0.arguments.quiet
    }

    /// Phases that run separately start at the position where the previous run ended.
    fn lower(&self, ranks: u32) -> Result<Plan, String> {
        let position = match &self.0.pattern {
            PatternOptions::Workbench(w) if w.reads_position() => {
                Some(Position::read(&w.run_info_file)?)
            }
            _ => None,
        };
        lower(&self.0, ranks, position.as_ref())
    }

    fn prepare(&self, plan: &Plan) -> Result<Extras, CommandError> {
        let options = &self.0;
        if let PatternOptions::Workbench(w) = &options.pattern
            && w.writes_position()
        {
            Position::check(&w.run_info_file).map_err(CommandError::usage)?;
            refuse_among_files("the position", &w.run_info_file, "--run-info-file", plan)?;
        }
        let latency = LatencyFiles::new(options, plan).map_err(CommandError::usage)?;
        for path in latency.iter().flat_map(LatencyFiles::paths) {
            refuse_among_files("the time of every operation", path, "-L", plan)?;
        }
        let warning = match is_empty(plan, options) && !options.arguments.quiet {
            true => "WARN: Will use the existing (empty) directory\n",
            false => "",
        };
        Ok(Extras { latency, warning })
    }

    fn head(&self, plan: &Plan, arguments: &[String], time: &str) -> String {
        Report::new(&self.0, plan).begin(arguments, env!("CARGO_PKG_VERSION"), time)
    }

    fn stage(&self, plan: &Plan, stage: u32, ranks: &[RankStage], rows: &[OpTotals]) -> String {
        Report::new(&self.0, plan).stage(stage, ranks, rows)
    }

    fn end(&self, plan: &Plan, elapsed: Duration, _: &[Vec<RankStage>], time: &str) -> String {
        Report::new(&self.0, plan).end(elapsed, time)
    }

    fn write(&self, plan: &Plan, run: &Run, done: &[Vec<RankStage>]) -> Result<(), CommandError> {
        keep_position(&self.0, plan, run, done)
    }
}

/// Writes the position from which a later run with single phases of MD-Workbench continues, if `run` was complete.
fn keep_position(
    options: &Options,
    plan: &Plan,
    run: &Run,
    done: &[Vec<RankStage>],
) -> Result<(), CommandError> {
    let PatternOptions::Workbench(w) = &options.pattern else {
        return Ok(());
    };
    if !w.writes_position() {
        return Ok(());
    }
    let ended = matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
    match plimsoll_workload::md::position_after(plan, done).filter(|_| ended) {
        Some(position) => position
            .write(&w.run_info_file)
            .map_err(CommandError::failed),
        None => {
            console::err(&format!(
                "the run did not finish: {} is unchanged and does not match the existing objects; \
                 `plimsoll clean` removes them\n",
                w.run_info_file.display()
            ));
            Ok(())
        }
    }
}
