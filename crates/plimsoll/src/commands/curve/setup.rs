//! The start of a curve: from the command line, or from the directory of one that is resumed.

use super::points::Points;
use crate::cli::CurveArgs;
use crate::exit::CommandError;
use crate::load_runner::{LoadTestArgs, LoadTestConfig, PreparedRun, files_of, ranks_of};
use crate::monitor::Monitor;
use crate::workload;
use plimsoll_disclosure::Sut;
use plimsoll_disclosure::sut::template;
use plimsoll_engine::ClockKind;
use plimsoll_plan::{Bytes, Plan, counted, show_duration};
use plimsoll_points::{Loads, StopRules};
use plimsoll_results::{
    CurveLoads, CurveResults, CurveSettings, CurveWriter, LoadCurve, ResultsError,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Prepares the curve; rank 0 calls this.
pub(super) fn ready(
    args: &CurveArgs,
    ranks: u32,
) -> Result<PreparedRun<CurveWriter>, CommandError> {
    if let Some(dir) = &args.resume {
        let writer = CurveWriter::resume(dir).map_err(CommandError::usage)?;
        let can_resume = writer.document().state.can_resume();
        let curve = writer.document();
        let (monitor, allowed) = (curve.settings.monitor.as_deref(), args.how.allow_commands);
        let config = LoadTestConfig::resume(&writer, can_resume, ranks, monitor, allowed)?;
        let has_commands = curve.hooks.is_some() || curve.settings.monitor.is_some();
        check_jobs(args, &config, has_commands, ranks)?;
        return Ok(PreparedRun::new(config, move || Ok(writer)));
    }
    let loads = loads(args)?;
    let name = args
        .workload
        .as_deref()
        .expect("clap requires it without --resume");
    let config = LoadTestConfig::new(name, &args.how, &args.criteria, loads.greatest())?;
    if args.monitor.is_some() && !args.how.allow_commands {
        return Err(CommandError::usage(
            "--monitor runs a program at each point: allow it with --allow-commands",
        ));
    }
    if let Some(program) = &args.monitor {
        Monitor::check(program).map_err(CommandError::usage)?;
    }
    let root = args.root.results.clone();
    let shared = LoadTestArgs {
        how: &args.how,
        output: &args.manner,
        events: &args.events.event,
        root: &root,
        ranks,
    };
    let selection = CurveLoads {
        loads: loads.as_slice().to_vec(),
    };
    let results = CurveResults::new(StopRules {
        stop_after_invalid: (args.stop_after_invalid > 0).then_some(args.stop_after_invalid),
        stop_past_peak: !args.continue_past_peak,
    });
    let settings = CurveSettings {
        monitor: args.monitor.as_deref().map(absolute),
        keep: config.plan.options.keep,
    };
    let started = SystemTime::now();
    let curve = config.document(&shared, (selection, results, settings), started)?;
    let has_commands = curve.hooks.is_some() || curve.settings.monitor.is_some();
    check_jobs(args, &config, has_commands, ranks)?;
    Ok(PreparedRun::new(config, move || {
        let writer = CurveWriter::create(&root, curve, started)?;
        describe_system(&writer)?;
        Ok(writer)
    }))
}

/// Describes the system under test, if it is known to be a test bed.
fn describe_system(writer: &CurveWriter) -> Result<(), ResultsError> {
    let curve = writer.document();
    match &curve.target.testbed {
        Some(bed) => writer.write_sut(&template(&Sut::of_test_bed(bed, &curve.environment))),
        None => Ok(()),
    }
}

/// Refuses to measure points at the same time if they are not independent of each other.
/// `has_commands`: commands of the user run around phases.
fn check_jobs(
    args: &CurveArgs,
    config: &LoadTestConfig,
    has_commands: bool,
    ranks: u32,
) -> Result<(), CommandError> {
    if args.jobs == 1 {
        return Ok(());
    }
    let refused = |why: &str| Err(CommandError::usage(format!("--jobs {}: {why}", args.jobs)));
    if config.clock == ClockKind::Real {
        return refused(
            "in real time, points that are measured at the same time disturb each other: expected \
             --jobs 1, or virtual time (--clock virtual, or a target that always runs in it, such as \
             sim:)",
        );
    }
    if has_commands {
        return refused(
            "commands around the phases of a point (--before, --after, --monitor) expect one point at \
             a time: expected --jobs 1",
        );
    }
    if ranks > 1 {
        return refused("virtual time supports only one process for each point: run with one rank");
    }
    // Preflight refuses such a curve, but one that is resumed may have been edited.
    match plimsoll_target::keeps_files(&config.target) {
        true => refused("the points of this target share files: expected --jobs 1"),
        false => Ok(()),
    }
}

fn loads(args: &CurveArgs) -> Result<Loads, CommandError> {
    let loads = match (&args.load, args.points, args.max_load) {
        (Some(text), _, _) => Loads::parse("--load", text),
        (None, Some(points), Some(max)) => Loads::evenly_spaced(points, max),
        _ => {
            return Err(CommandError::usage(
                "which loads? Give --load 10,20,30, or --load 10..100/10, or --points 10 --max-load \
                 100",
            ));
        }
    };
    loads.map_err(workload::diagnosed)
}

/// An absolute path, which remains valid in another directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The first line: what is measured, and about how long that takes.
pub(super) fn headline(
    curve: &LoadCurve,
    config: &LoadTestConfig,
    ranks: u32,
    points: &Points,
) -> String {
    let left = points.left();
    let count = counted(left.len() as u64, "load point", "load points");
    let count = match left.len() == curve.selection.loads.len() {
        true => count,
        false => format!("{count} left"),
    };
    let range = match left {
        [] => String::new(),
        [only] => format!(" at {only} {}", curve.metric),
        [first, .., last] => format!(" from {first} to {last} {}", curve.metric),
    };
    let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
    let clock = match config.clock {
        ClockKind::Virtual => " of virtual time",
        ClockKind::Real => "",
    };
    let files = files_of(&config.plan, &config.target);
    let filling = match plimsoll_target::keeps_files(&config.target) {
        true => format!(" and what making {} takes", Bytes(data_of(&config.plan))),
        false => String::new(),
    };
    let scaled = match curve.comparable {
        true => "",
        false => " (scaled: not comparable)",
    };
    let ranks = ranks_of(ranks);
    let jobs = match points.jobs() {
        0 | 1 => String::new(),
        n => format!(", {n} points at a time"),
    };
    format!(
        "{}{scaled}: {count}{range}, each {} of warm-up and {} measured: about {}{clock}\
         {filling}; {files}, target {}{ranks}{jobs}",
        curve.workload,
        length(curve.warmup_s),
        length(curve.measure_s),
        length((curve.warmup_s + curve.measure_s) * left.len() as f64),
        config.target
    )
}

/// Bytes of data files of the highest load.
fn data_of(plan: &Plan) -> u64 {
    plan.metric.as_ref().map_or(0, |m| {
        let data = m.data as f64 * m.load as f64 * m.scale;
        data.round() as u64
    })
}
