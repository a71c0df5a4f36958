//! `find`: searches for the load line of a workload, the highest load that is sustained.

use super::plan;
use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::FindArgs;
use crate::exit::{CommandError, Exit};
use crate::{load_plan, new_series};
use plimsoll_plan::counted;
use plimsoll_results::{LoadSearch, SearchRules, Series, SeriesKind};

/// Fraction of the highest load at which a search without `--start-load` begins.
const DEFAULT_START_DIVISOR: u64 = 8;

/// Searches for the load line, writes every run and prints the result.
pub fn run(args: &FindArgs) -> Result<Exit, CommandError> {
    if args.how.dry_run {
        sut::text()?;
        let series = series(args, args.manner.ranks.working()?)?;
        series::check(&args.manner.ranks, &series, 1)?;
        let rules = rules(args)?;
        let summary = format!(
            "search from load {} to at most {}, in at most {}",
            rules.start_load,
            rules.max_load,
            counted(rules.max_runs.into(), "run", "runs")
        );
        let (root, format) = (&args.root.results, args.manner.format);
        return plan::show_series(&series, &args.how, root, format, &summary);
    }
    series::run(&args.manner, 1, |communicator| {
        let mut series = series(args, communicator.working())?;
        new_series::check(&mut series, &args.how, &args.root.results)?;
        ReadySeries::new(series, &args.root.results)
    })
}

/// `series.json` of a search before its first run: search rules, and the Plan of the maximum load.
fn series(args: &FindArgs, ranks: u32) -> Result<Series, CommandError> {
    let kind = SeriesKind::Search(LoadSearch::new(rules(args)?));
    let plan = load_plan::at(&args.workload, &args.how, &args.criteria, args.max_load)?;
    new_series::of_workload(kind, plan, &args.how, &args.events, ranks)
}

/// Rules of the search for the load line: first and maximum load, resolution, confirmation runs and maximum number of
/// runs.
fn rules(args: &FindArgs) -> Result<SearchRules, CommandError> {
    let max = args.max_load;
    let start = args
        .start_load
        .unwrap_or((max / DEFAULT_START_DIVISOR).max(1));
    let rules = SearchRules::new(start, max).map_err(|_| {
        CommandError::usage(format!(
            "--start-load {start} is above --max-load {max}: a search goes from the first to the highest load"
        ))
    })?;
    Ok(SearchRules {
        resolution: args.resolution,
        confirm_runs: args.confirm_runs,
        max_runs: args.max_runs,
        ..rules
    })
}
