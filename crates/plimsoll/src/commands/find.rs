//! `find`: searches for the load line of a workload, the highest load or value of a parameter that is sustained.

use super::plan;
use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::FindArgs;
use crate::exit::{CommandError, Exit};
use crate::workload::{self, WorkloadSource};
use crate::{load_plan, new_series, vary};
use plimsoll_plan::counted;
use plimsoll_results::{
    Configuration, LoadSearch, SearchRules, SearchStart, SearchedParameter, Series, SeriesKind,
};

/// Fraction of the highest load at which a search without `--start-load` begins.
const DEFAULT_START_DIVISOR: u64 = 8;

/// Searches for the load line, writes every run and prints the result.
pub fn run(args: &FindArgs) -> Result<Exit, CommandError> {
    search(args, &workload::find(&args.workload)?)
}

/// Searches for the load line of the workload `found`, instead of the workload that `args` names.
pub fn search(args: &FindArgs, found: &WorkloadSource) -> Result<Exit, CommandError> {
    if args.how.dry_run {
        sut::text()?;
        let series = series(args, found, args.manner.ranks.working()?)?;
        series::check(&args.manner.ranks, &series, 1)?;
        let (root, format) = (&args.root.results, args.manner.format);
        return plan::show_series(&series, &args.how, root, format, &summary(&series));
    }
    series::run(&args.manner, 1, |communicator| {
        let mut series = series(args, found, communicator.working())?;
        new_series::check(&mut series, &args.root.results)?;
        ReadySeries::new(series, &args.root.results)
    })
}

/// First line of a dry run.
fn summary(series: &Series) -> String {
    let search = series.as_search().expect("the series is a search");
    let rules = &search.figures.rules;
    let value = |value: u64| match series.searched() {
        None => format!("load {value}"),
        Some(parameter) => parameter.configuration(value),
    };
    let most = rules
        .max_load
        .map(|most| format!(" to at most {}", value(most)));
    format!(
        "search from {}{}, in at most {}",
        value(rules.start_load),
        most.unwrap_or_default(),
        counted(rules.max_runs.into(), "run", "runs")
    )
}

/// `series.json` of a search before its first run.
fn series(args: &FindArgs, found: &WorkloadSource, ranks: u32) -> Result<Series, CommandError> {
    match &args.vary {
        Some((name, start)) => over_parameter(args, found, name, start.as_ref(), ranks),
        None => {
            let max = args.max_load;
            let max = max.expect("the command line has --max-load or --vary");
            over_loads(args, found, max, ranks)
        }
    }
}

/// A search over loads: search rules, and the Plan of the maximum load.
fn over_loads(
    args: &FindArgs,
    found: &WorkloadSource,
    max: u64,
    ranks: u32,
) -> Result<Series, CommandError> {
    let start = args
        .start_load
        .unwrap_or((max / DEFAULT_START_DIVISOR).max(1));
    let rules = SearchRules::new(start, max).map_err(|_| {
        CommandError::usage(format!(
            "--start-load {start} is above --max-load {max}: a search goes from the first to the highest load"
        ))
    })?;
    let kind = SeriesKind::Search(LoadSearch::new(with_options(args, rules)));
    let plan = load_plan::at(found, &args.how, &args.criteria, &args.until, max)?;
    new_series::of_workload(kind, plan, &args.how, &args.events, ranks)
}

/// A search over the values of a parameter: search rules, the recipe of the configurations, and the configuration of the
/// first value.
fn over_parameter(
    args: &FindArgs,
    found: &WorkloadSource,
    name: &str,
    start: Option<&SearchStart>,
    ranks: u32,
) -> Result<Series, CommandError> {
    let recipe = vary::recipe(found, &args.how, None, &args.until)?;
    let start = match start {
        Some(start) => start.clone(),
        None => vary::first_value(&recipe, name)?,
    };
    let rules = SearchRules::new(start.first, start.most).map_err(CommandError::usage)?;
    let rules = SearchRules {
        until_saturated: true,
        ..with_options(args, rules)
    };
    let parameter = SearchedParameter {
        name: name.to_owned(),
        unit: start.unit,
        recipe: Box::new(recipe),
    };
    let value = [(name.to_owned(), parameter.value(start.first))];
    let first = vary::configuration(&parameter.recipe, &value, None, &args.events.event)?;
    let first = Configuration {
        name: parameter.configuration(start.first),
        ..first
    };
    let workload = first.plan.name.clone();
    let kind = SeriesKind::Search(LoadSearch::over(parameter, rules));
    Ok(new_series::series(
        kind,
        &workload,
        vec![first],
        &args.how,
        &args.events,
        ranks,
    ))
}

/// Search rules with the resolution, the confirmation runs and the maximum number of runs of the command line.
fn with_options(args: &FindArgs, rules: SearchRules) -> SearchRules {
    SearchRules {
        resolution: args.resolution,
        confirm_runs: args.confirm_runs,
        max_runs: args.max_runs,
        ..rules
    }
}
