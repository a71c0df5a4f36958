//! The load curve to which a fit adjusts a system, and the Plan of the curve's workload.

use crate::cli::FitArgs;
use crate::commands::import::{read as read_report, remark};
use crate::exit::CommandError;
use crate::workload;
use plimsoll_measure::curve::Rule;
use plimsoll_plan::{OnError, Overrides, Phase, Plan, RunOptions, Stream, Until, Warmup};
use plimsoll_report::disclosure::Disclosure;
use plimsoll_results::{Program, SERIES_FILE, Series, SeriesDir};
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Measured load curve to which a fit adjusts a system, and the workload that the trials run.
pub(super) struct ReferenceCurve {
    /// Path of the measured or published load curve, as given to `--to`.
    pub(super) name: String,
    /// Unit of the loads of the load curve, such as `streams`.
    pub(super) unit: String,
    /// Load points that have a response time, in increasing order of load.
    pub(super) points: Vec<Point>,
    /// Plan of the curve's workload at the highest load; a trial runs the same Plan at the smaller loads, too.
    pub(super) plan: Plan,
}

/// Load point of a reference curve: the load, and the mean response time that the fit's trials should reproduce.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Number of the point in the curve, from 1.
    pub(super) number: usize,
    /// Load in business metrics of the workload.
    pub(super) load: u64,
    /// Load as stated by the curve.
    pub(super) shown_load: f64,
    /// Measured mean response time of the load point in milliseconds.
    pub(super) measured_ms: f64,
}

impl ReferenceCurve {
    /// Reads the curve of `--to`.
    ///
    /// # Errors
    /// If the file is neither a load curve nor a published report, or the workload is not known.
    pub(super) fn read(args: &FitArgs) -> Result<Self, CommandError> {
        let path = &args.to;
        let name = path.display().to_string();
        let is_document = path.file_name() == Some(OsStr::new(SERIES_FILE));
        match path {
            file if is_document => measured(args, name, file.parent().unwrap_or(Path::new(""))),
            dir if dir.is_dir() => measured(args, name, dir),
            file => published(args, name, file),
        }
    }

    /// Cache key of the trials, which covers everything in a trial but the figures.
    ///
    /// # Errors
    /// If the Plan cannot be serialised to JSON.
    pub(super) fn key(&self, system: &str) -> Result<String, CommandError> {
        let plan = serde_json::to_string(&self.plan).map_err(CommandError::failed)?;
        let program = Program::plimsoll();
        let key = [&plan, system, &program.version]
            .into_iter()
            .fold(Stream::new(0), |stream, text| stream.named(text));
        Ok(format!("{:016x}", key.fingerprint()))
    }
}

/// Reads a load curve that Plimsoll measured, from its results directory; points without a mean response time are left
/// out.
fn measured(args: &FitArgs, name: String, dir: &Path) -> Result<ReferenceCurve, CommandError> {
    let dir = match dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => dir,
    };
    let series = SeriesDir::at(dir).read().map_err(CommandError::usage)?;
    if series.as_curve().is_none() {
        let kind = series.kind.kind();
        return Err(CommandError::usage(format!(
            "{name} is a {kind}: expected a load curve"
        )));
    }
    let numbered = (1..).zip(series.measured());
    let points = numbered.filter_map(|(number, p)| {
        let load = p.load?;
        Some(Point {
            number,
            load,
            shown_load: load as f64,
            measured_ms: p.mean_ms.filter(|ms| *ms > 0.0)?,
        })
    });
    let points: Vec<Point> = points.collect();
    let plan = match &args.workload {
        Some(workload) => lowered(args, workload, &mut |_| highest(&points))?,
        None => plan_of(args, &series)?,
    };
    checked(ReferenceCurve {
        name,
        unit: series.metric_name().to_owned(),
        points,
        plan,
    })
}

/// Plan of a measured curve, with the requested times and seed.
fn plan_of(args: &FitArgs, curve: &Series) -> Result<Plan, CommandError> {
    if args.scale.is_some() {
        return Err(CommandError::usage(
            "--scale is that of the curve: give a --workload to change it",
        ));
    }
    let mut plan = curve.first_plan().clone();
    plan.seed = args.seed.unwrap_or(plan.seed);
    plan.script = with_times(&plan.script, args.warmup, args.time);
    Ok(plan)
}

/// A copy of `script` with the given warm-up before the measured window and the given length of the window; `None`
/// keeps the time of the script.
fn with_times(script: &[Phase], warmup: Option<Duration>, time: Option<Duration>) -> Vec<Phase> {
    let mut out = Vec::with_capacity(script.len() + 1);
    let mut is_open = false;
    let mut warmup_left = warmup;
    for phase in script {
        match phase {
            Phase::Wait {
                until: Until::Elapsed { time: old },
                snapshots,
            } => {
                let new = if is_open { time } else { warmup_left.take() };
                out.push(Phase::Wait {
                    until: Until::Elapsed {
                        time: new.unwrap_or(*old),
                    },
                    snapshots: *snapshots,
                });
            }
            Phase::OpenWindow => {
                is_open = true;
                out.extend(warmup_left.take().map(Phase::wait_for));
                out.push(Phase::OpenWindow);
            }
            phase => out.push(phase.clone()),
        }
    }
    out
}

/// Reads the load curve of a disclosure report, either published by others or written by Plimsoll.
fn published(args: &FitArgs, name: String, file: &Path) -> Result<ReferenceCurve, CommandError> {
    let bytes =
        read_report(file).map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let imported =
        plimsoll_report::disclosure::import(&bytes, &name).map_err(workload::diagnosed)?;
    remark(&imported, &name);
    let report = imported.disclosure;
    let builtins = workload::builtins();
    let known = builtins.iter().map(|b| b.name.as_str());
    let found = plimsoll_report::disclosure::workload_of(&report.metric, known).map(OsStr::new);
    let Some(workload) = args.workload.as_deref().or(found) else {
        return Err(CommandError::usage(format!(
            "{name}: no workload is that of {}: --workload names one",
            report.metric
        )));
    };
    let mut points = Vec::new();
    let plan = lowered(args, workload, &mut |rate| {
        points = points_of(&report, rate);
        highest(&points)
    })?;
    checked(ReferenceCurve {
        name,
        unit: report.unit,
        points,
        plan,
    })
}

/// Load points of a disclosure report that have a response time. Loads of SPECsfs2008 are operations per second; `rate`
/// is the number of operations per second per business metric.
fn points_of(report: &Disclosure, rate: Option<f64>) -> Vec<Point> {
    let per_metric = match report.rule {
        Rule::Sfs2008 => rate.unwrap_or(1.0),
        Rule::Sfs2014 => 1.0,
    };
    let numbered = (1..).zip(&report.points);
    let points = numbered.filter_map(|(number, p)| {
        Some(Point {
            number,
            load: ((p.load / per_metric).round() as u64).max(1),
            shown_load: p.load,
            measured_ms: p.latency_ms.filter(|ms| *ms > 0.0)?,
        })
    });
    points.collect()
}

fn highest(points: &[Point]) -> u64 {
    points.iter().map(|p| p.load).max().unwrap_or(1)
}

/// Plan of a workload at the highest load; `highest` computes the load from the operations per second per business
/// metric.
fn lowered(
    args: &FitArgs,
    name: &OsStr,
    highest: &mut dyn FnMut(Option<f64>) -> u64,
) -> Result<Plan, CommandError> {
    let found = workload::find(name)?;
    let parsed = workload::parse(&found)?;
    let mut overrides = Overrides {
        // The work directory `/` is never created, because trials run on a simulated system, which keeps no files.
        dir: Some("/".into()),
        seed: args.seed,
        time: args.time,
        warmup: args.warmup.map(Warmup::Fixed),
        scale: args.scale,
        options: RunOptions {
            on_error: OnError::Count,
            ..RunOptions::default()
        },
        ..Overrides::default()
    };
    let Some(metric) = parsed.lower(&found, &overrides)?.metric else {
        return Err(CommandError::usage(format!(
            "`{}` has no business metric to be a load of: a curve is one of an operation mix such as \
             `vda`",
            found.name
        )));
    };
    let highest = highest(metric.rate);
    (overrides.load, overrides.most) = (Some(highest), Some(highest));
    parsed.lower(&found, &overrides)
}

/// Checks that the curve has points, that loads increase, and that all loads are valid for the workload.
fn checked(mut curve: ReferenceCurve) -> Result<ReferenceCurve, CommandError> {
    let name = &curve.name;
    let refused = |why: String| Err(CommandError::usage(format!("{name} {why}")));
    let points = &mut curve.points;
    points.sort_by(|a, b| a.shown_load.total_cmp(&b.shown_load));
    let Some(last) = points.last() else {
        return refused("has no point with a response time".into());
    };
    if curve.plan.at_load(last.load).is_none() {
        return refused(format!(
            "is damaged: its Plan covers loads only below {}, its highest load",
            last.load
        ));
    }
    if let Some(pair) = points
        .windows(2)
        .find(|p| p[0].shown_load == p[1].shown_load)
    {
        return refused(format!(
            "has two points at load {}, {} and {}: expected one of each load",
            pair[0].shown_load, pair[0].number, pair[1].number
        ));
    }
    Ok(curve)
}
