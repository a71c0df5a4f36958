//! `curve`: measures a workload at increasing loads on one data set.

use super::plan;
use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::CurveArgs;
use crate::exit::{CommandError, Exit};
use crate::load_plan;
use crate::series_text::missing_length;
use crate::{new_series, workload};
use plimsoll_plan::show_duration;
use plimsoll_results::{LoadCurve, Loads, Series, SeriesKind};

/// Measures the load points of `curve`, writes their results and prints the report.
pub fn run(args: &CurveArgs) -> Result<Exit, CommandError> {
    let loads = Loads::parse("--load", &args.load).map_err(workload::diagnosed)?;
    if args.how.dry_run {
        sut::text()?;
        let series = series(args, &loads, args.manner.ranks.working()?)?;
        series::check(&args.manner.ranks, &series, args.jobs)?;
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
        let mut series = series(args, &loads, communicator.working())?;
        new_series::check(&mut series, &args.how, &args.root.results)?;
        ReadySeries::new(series, &args.root.results)
    })
}

/// `series.json` of a curve before its first run: loads, stop rule, and the Plan of the highest load.
fn series(args: &CurveArgs, loads: &Loads, ranks: u32) -> Result<Series, CommandError> {
    let plan = load_plan::at(&args.workload, &args.how, &args.criteria, loads.greatest())?;
    let stop = (args.stop_after_invalid > 0).then_some(args.stop_after_invalid);
    let kind = SeriesKind::Curve(LoadCurve::new(loads.as_slice().to_vec(), stop));
    new_series::of_workload(kind, plan, &args.how, &args.events, ranks)
}
