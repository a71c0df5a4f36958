//! `curve`: measures a workload at increasing loads on one data set.

use super::plan;
use super::series::{self, ReadySeries};
use crate::cli::CurveArgs;
use crate::exit::{CommandError, Exit};
use crate::load_plan;
use crate::series_text::missing_length;
use crate::{new_series, workload};
use plimsoll_plan::show_duration;
use plimsoll_results::{LoadCurve, Series, SeriesKind, StopRules};
use plimsoll_series::Loads;

/// Measures the points, writes the results and prints the report.
pub fn run(args: &CurveArgs) -> Result<Exit, CommandError> {
    if args.how.dry_run {
        args.description.text()?;
        let series = series(args, args.manner.ranks.working()?)?;
        series::check(&args.manner.ranks, &series, args.jobs)?;
        let loads = loads(args)?;
        let loads: Vec<String> = loads.as_slice().iter().map(u64::to_string).collect();
        let summary = format!(
            "curve at the loads {}, about {} plus the time to create the files",
            loads.join(", "),
            show_duration(missing_length(&series))
        );
        let (root, format) = (&args.root.results, args.manner.format);
        return plan::show_series(&series, &args.how, root, format, &summary);
    }
    series::run(&args.manner, args.jobs, |communicator| {
        let mut series = series(args, communicator.working())?;
        new_series::check(&mut series, &args.how, &args.root.results)?;
        Ok(ReadySeries::new(series, &args.root.results).with_sut(args.description.text()?))
    })
}

/// The series document, without runs.
fn series(args: &CurveArgs, ranks: u32) -> Result<Series, CommandError> {
    let loads = loads(args)?;
    let plan = load_plan::at(&args.workload, &args.how, &args.criteria, loads.greatest())?;
    let rules = StopRules {
        stop_after_invalid: (args.stop_after_invalid > 0).then_some(args.stop_after_invalid),
        stop_past_peak: !args.continue_past_peak,
    };
    let kind = SeriesKind::Curve(LoadCurve::new(loads.as_slice().to_vec(), rules));
    new_series::of_workload(kind, plan, &args.how, &args.events, ranks)
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
