//! What a curve begins with: from the command line, or from the directory of one that goes on.

use crate::cli::CurveArgs;
use crate::commands::run;
use crate::communicator::Communicator;
use crate::exit::CommandError;
use crate::load_runner::{self, LoadTestConfig, PreparedRun, files_of};
use crate::monitor::Monitor;
use crate::workload;
use plimsoll_engine::Settings;
use plimsoll_plan::{Bytes, Plan, counted, show_duration};
use plimsoll_points::{Loads, StopRules};
use plimsoll_results::{
    CURVE_SCHEMA, ClockKind, CurveState, CurveWriter, Environment, LoadCurve, Program, Target,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Reads what is asked for; rank 0 calls this.
pub(super) fn ready(
    args: &CurveArgs,
    communicator: &Communicator,
) -> Result<PreparedRun<CurveWriter>, CommandError> {
    match &args.resume {
        Some(dir) => resumed(dir, communicator),
        None => new(args, communicator),
    }
}

fn new(
    args: &CurveArgs,
    communicator: &Communicator,
) -> Result<PreparedRun<CurveWriter>, CommandError> {
    let loads = loads(args)?;
    let name = args.workload.as_deref().unwrap_or_default();
    let ground = LoadTestConfig::new(name, &args.how, &args.criteria, loads.greatest())?;
    if args.monitor.is_some() && !args.how.allow_commands {
        return Err(CommandError::usage(
            "--monitor runs a program of yours at each point: allow it with --allow-commands",
        ));
    }
    if let Some(program) = &args.monitor {
        Monitor::check(program).map_err(CommandError::usage)?;
    }
    let hooks = args.manner.hooks.hooks(args.how.allow_commands)?;
    let target = ground.check(&args.results)?;
    let started = SystemTime::now();
    let curve = LoadCurve {
        hooks,
        ..curve(args, &ground, &loads, target, communicator.size(), started)
    };
    let root = args.results.clone();
    Ok(PreparedRun::new(ground, move || {
        CurveWriter::create(&root, curve, started)
    }))
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

fn curve(
    args: &CurveArgs,
    ground: &LoadTestConfig,
    loads: &Loads,
    target: String,
    ranks: u32,
    started: SystemTime,
) -> LoadCurve {
    let plan = &ground.plan;
    let metric = plan.metric.as_ref();
    let (warmup, time) = load_runner::times(plan);
    let stamp = jiff::Timestamp::try_from(started).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    LoadCurve {
        schema_version: CURVE_SCHEMA,
        workload: plan.name.clone(),
        metric: metric.map(|m| m.name.clone()).unwrap_or_default(),
        scale: metric.map_or(1.0, |m| m.scale),
        comparable: !metric.is_some_and(|m| m.is_scaled()),
        seed: plan.seed,
        started_at: stamp.to_string(),
        loads: loads.as_slice().to_vec(),
        warmup_s: warmup.as_secs_f64(),
        measure_s: time.as_secs_f64(),
        criteria: metric.map(|m| m.criteria.clone()).unwrap_or_default(),
        stop_rules: StopRules {
            stop_after_invalid: (args.stop_after_invalid > 0).then_some(args.stop_after_invalid),
            stop_past_peak: !args.continue_past_peak,
        },
        state: CurveState::Unfinished,
        stop_reason: None,
        points: vec![],
        ort_ms: None,
        ort_2008_ms: None,
        highest_valid_load: None,
        load_line: None,
        knee: None,
        usl: None,
        percentiles_shown: None,
        program: Program {
            name: "plimsoll".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        },
        target: Target {
            url: ground.target.clone(),
            description: target,
        },
        clock: match ground.is_virtual {
            true => ClockKind::Virtual,
            false => ClockKind::Real,
        },
        lanes: ground.lanes,
        interval_s: ground.interval.as_secs_f64(),
        ranks,
        monitor: args.monitor.as_deref().map(absolute),
        hooks: None,
        keep: plan.options.keep,
        notes: plan.notes.clone(),
        environment: environment(plan, &ground.settings()),
        plan: plan.clone(),
    }
}

/// A path that means the same in another directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn environment(plan: &Plan, settings: &Settings) -> Environment {
    run::environment(plan, settings)
}

/// A curve that goes on.
fn resumed(
    dir: &Path,
    communicator: &Communicator,
) -> Result<PreparedRun<CurveWriter>, CommandError> {
    let writer = CurveWriter::resume(dir).map_err(CommandError::usage)?;
    let curve = writer.curve();
    if !curve.state.can_resume() {
        return Err(CommandError::usage(format!(
            "the curve in {} has come to its end: there is nothing to resume",
            dir.display()
        )));
    }
    load_runner::check_ranks("curve", curve.ranks, communicator.size())?;
    let ground = LoadTestConfig {
        plan: curve.plan.clone(),
        target: curve.target.url.clone(),
        is_virtual: curve.clock == ClockKind::Virtual,
        lanes: curve.lanes,
        interval: Duration::try_from_secs_f64(curve.interval_s).unwrap_or(Duration::from_secs(1)),
    };
    Ok(PreparedRun::new(ground, move || Ok(writer)))
}

/// The first line: what is measured, and about how long that takes.
pub(super) fn headline(curve: &LoadCurve, ground: &LoadTestConfig, ranks: u32) -> String {
    let missing = curve.missing();
    let points = counted(missing.len() as u64, "load point", "load points");
    let points = match missing.len() == curve.loads.len() {
        true => points,
        false => format!("{points} left"),
    };
    let range = match missing[..] {
        [] => String::new(),
        [only] => format!(" at {only} {}", curve.metric),
        [first, .., last] => format!(" from {first} to {last} {}", curve.metric),
    };
    let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
    let clock = match ground.is_virtual {
        true => " of virtual time",
        false => "",
    };
    let files = files_of(ground);
    let filling = match plimsoll_target::keeps_files(&ground.target) {
        true => format!(" and what making {} takes", Bytes(data_of(&ground.plan))),
        false => String::new(),
    };
    let scaled = match curve.comparable {
        true => "",
        false => " (scaled: not comparable)",
    };
    let ranks = match ranks {
        1 => String::new(),
        n => format!(", {n} ranks"),
    };
    format!(
        "{}{scaled}: {points}{range}, each {} of warm-up and {} measured: about {}{clock}\
         {filling}; {files}, target {}{ranks}",
        curve.workload,
        length(curve.warmup_s),
        length(curve.measure_s),
        length((curve.warmup_s + curve.measure_s) * missing.len() as f64),
        ground.target
    )
}

/// Bytes of data files of the greatest load.
fn data_of(plan: &Plan) -> u64 {
    plan.metric.as_ref().map_or(0, |m| {
        let data = m.data as f64 * m.load as f64 * m.scale;
        data.round() as u64
    })
}
