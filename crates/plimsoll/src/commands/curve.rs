//! `curve`: measures a workload at several loads, in increasing order, on one data set.

use super::series::{self, ReadySeries};
use crate::cli::CurveArgs;
use crate::exit::{CommandError, Exit};
use crate::load_plan;
use crate::{new_series, workload};
use plimsoll_results::{LoadCurve, SeriesKind, StopRules};
use plimsoll_series::{Loads, Monitor};
use std::path::{Path, PathBuf};

/// Measures the points, writes the results and prints the report.
pub fn run(args: &CurveArgs) -> Result<Exit, CommandError> {
    series::run(&args.manner, args.jobs, |communicator| {
        let hooks = args.hooks.hooks(args.how.allow_commands)?;
        let loads = loads(args)?;
        let plan = load_plan::at(&args.workload, &args.how, &args.criteria, loads.greatest())?;
        check_monitor(args)?;
        let rules = StopRules {
            stop_after_invalid: (args.stop_after_invalid > 0).then_some(args.stop_after_invalid),
            stop_past_peak: !args.continue_past_peak,
        };
        let kind = SeriesKind::Curve(LoadCurve::new(loads.as_slice().to_vec(), rules));
        let (how, events, ranks) = (&args.how, &args.events, communicator.working());
        let mut series = new_series::of_workload(kind, plan, how, events, ranks)?;
        series.hooks = hooks;
        series.monitor = args.monitor.as_deref().map(absolute);
        new_series::check(&mut series, how, &args.root.results)?;
        Ok(ReadySeries::new(series, &args.root.results).with_sut(args.description.text()?))
    })
}

fn check_monitor(args: &CurveArgs) -> Result<(), CommandError> {
    let Some(program) = &args.monitor else {
        return Ok(());
    };
    if !args.how.allow_commands {
        return Err(CommandError::usage(
            "--monitor runs a program at each point: allow it with --allow-commands",
        ));
    }
    Monitor::check(program).map_err(CommandError::usage)
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
