//! `md`: metadata and small objects under many processes.

use super::pattern::{self, Outputs, Tool};
use crate::cli::MdArgs;
use crate::console;
use crate::exit::{CommandError, Exit};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::Plan;
use plimsoll_results::{Run, Verdict};
use plimsoll_series::events::EventSpec;
use plimsoll_series::refuse_among_files;
use plimsoll_workload::md::{LatencyFiles, Options, PatternOptions, Position, Report};
use std::time::Duration;

/// MD-Workbench's name for the interface without operations.
const NULL_INTERFACE: &str = "dummy";

/// Runs the pattern of `md`; the option that lists interfaces and the option `--dry-run` only print the list or the
/// Plan.
pub fn run(args: &MdArgs) -> Result<Exit, CommandError> {
    if args.md.lists_interfaces() {
        let names = plimsoll_target::registry::SCHEMES.iter().map(|s| s.name);
        let names: Vec<&str> = std::iter::once(NULL_INTERFACE).chain(names).collect();
        return super::print(&format!("Available plugins: {}\n", names.join(" ")));
    }
    if args.dry_run {
        let (plan, options) = checked(args, args.ranks.working()?)?;
        return super::plan::show(
            &plan,
            &pattern::settings(&options.target, &plan),
            args.format,
        );
    }
    let target = Options::new(&args.md).ok().map(|options| options.target);
    pattern::run(
        (&args.ranks, args.format),
        target.as_deref(),
        |ranks| {
            let (plan, options) = checked(args, ranks)?;
            let outputs = outputs(args, &options, &plan)?;
            Ok((plan, outputs))
        },
        || {
            let (options, events) = options(args)?;
            Ok((Box::new(Md(options)), events))
        },
    )
}

/// Options of the pattern, with the events of a simulated system in the target's URL; and the remaining events.
fn options(args: &MdArgs) -> Result<(Options, Vec<EventSpec>), CommandError> {
    let mut options = Options::new(&args.md).map_err(CommandError::usage)?;
    let events = args.events.add_to(&mut options.target)?;
    Ok((options, events))
}

/// Plan for `ranks` ranks and options, checked. Phases that run separately start at the position where the previous run
/// ended.
fn checked(args: &MdArgs, ranks: u32) -> Result<(Plan, Options), CommandError> {
    let (options, events) = options(args)?;
    pattern::check_ranks(&args.ranks, &options.target, ranks)?;
    let position = match &options.pattern {
        PatternOptions::Workbench(w) if w.reads_position() => {
            Some(Position::read(&w.run_info_file).map_err(CommandError::usage)?)
        }
        _ => None,
    };
    let plan = plimsoll_workload::md::lower(&options, ranks, position.as_ref())
        .map_err(CommandError::usage)?;
    let plan = pattern::adapted(plan, &args.ranks, &options.target, &events)?;
    Ok((plan, options))
}

/// Checks before any run that all outputs can be written, and prepares the outputs.
fn outputs(args: &MdArgs, options: &Options, plan: &Plan) -> Result<Outputs, CommandError> {
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
    let uses_empty_root = is_empty(plan, options);
    let mut outputs = Outputs::new(&args.root.results, &options.target, plan)?;
    outputs.latency = latency;
    if uses_empty_root && !options.arguments.quiet {
        outputs.warning = "WARN: Will use the existing (empty) directory\n";
    }
    Ok(outputs)
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
struct Md(Options);

impl Tool for Md {
    fn target(&self) -> &str {
        &self.0.target
    }

    fn is_quiet(&self) -> bool {
        self.0.arguments.quiet
    }

    fn head(&self, plan: &Plan) -> String {
        let (arguments, time) = (pattern::arguments(), pattern::local_time());
        Report::new(&self.0, plan).begin(&arguments, env!("CARGO_PKG_VERSION"), &time)
    }

    fn stage(&self, plan: &Plan, stage: u32, ranks: &[RankStage], rows: &[OpTotals]) -> String {
        Report::new(&self.0, plan).stage(stage, ranks, rows)
    }

    fn end(&self, plan: &Plan, elapsed: Duration, _: &[Vec<RankStage>]) -> String {
        Report::new(&self.0, plan).end(elapsed, &pattern::local_time())
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
