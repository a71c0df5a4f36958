//! `curve`: measures a workload at increasing loads on one data set, or at the values of parameters.

use super::plan;
use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::CurveArgs;
use crate::exit::{CommandError, Exit};
use crate::load_plan;
use crate::series_text::missing_length;
use crate::{new_series, vary, workload};
use plimsoll_plan::{counted, show_duration};
use plimsoll_results::{
    Configuration, LoadCurve, Loads, MAX_CELLS, Series, SeriesKind, Sweep, VariedParameter,
    values_of,
};

/// Measures the load points or the combinations of values of `curve`, writes their results and prints the report.
pub fn run(args: &CurveArgs) -> Result<Exit, CommandError> {
    if args.how.dry_run {
        sut::text()?;
        let series = series(args, args.manner.ranks.working()?)?;
        series::check(&args.manner.ranks, &series, args.jobs)?;
        let (root, format) = (&args.root.results, args.manner.format);
        return plan::show_series(&series, &args.how, root, format, &summary(&series));
    }
    series::run(&args.manner, args.jobs, |communicator| {
        let mut series = series(args, communicator.working())?;
        new_series::check(&mut series, &args.root.results)?;
        ReadySeries::new(series, &args.root.results)
    })
}

/// First line of a dry run.
fn summary(series: &Series) -> String {
    let what = match &series.kind {
        SeriesKind::Curve(curve) => {
            let loads: Vec<String> = curve.loads.iter().map(u64::to_string).collect();
            format!("curve at the loads {}", loads.join(", "))
        }
        _ => {
            let runs = counted(series.configurations.len() as u64, "run", "runs");
            format!("sweep in {runs}")
        }
    };
    format!(
        "{what}, about {} plus the time to create the files",
        show_duration(missing_length(series))
    )
}

/// `series.json` of a curve or a sweep before its first run.
fn series(args: &CurveArgs, ranks: u32) -> Result<Series, CommandError> {
    let loads = args
        .load
        .as_deref()
        .map(|text| Loads::parse("--load", text));
    let loads = loads.transpose().map_err(workload::diagnosed)?;
    match loads {
        Some(loads) if args.vary.is_empty() => curve(args, &loads, ranks),
        loads => sweep(args, loads.as_ref(), ranks),
    }
}

/// A curve over loads, with the stop rule and the Plan of the highest load.
fn curve(args: &CurveArgs, loads: &Loads, ranks: u32) -> Result<Series, CommandError> {
    let most = loads.greatest();
    let found = workload::find(&args.workload)?;
    let plan = load_plan::at(&found, &args.how, &args.criteria, &[], most)?;
    let stop = (args.stop_after_invalid > 0).then_some(args.stop_after_invalid);
    let kind = SeriesKind::Curve(LoadCurve::new(loads.as_slice().to_vec(), stop));
    new_series::of_workload(kind, plan, &args.how, &args.events, ranks)
}

/// A sweep over the values of `--vary`, with the configuration of each combination; `loads` is `--load`.
fn sweep(args: &CurveArgs, loads: Option<&Loads>, ranks: u32) -> Result<Series, CommandError> {
    let load = match loads.map(Loads::as_slice) {
        None => None,
        Some([load]) => Some(*load),
        Some(_) => {
            return Err(CommandError::usage(
                "with --vary, --load is the load of all runs: expected one load; --vary load=1,2,4 varies the load",
            ));
        }
    };
    let parameters = parameters(args)?;
    let found = workload::find(&args.workload)?;
    let recipe = vary::recipe(&found, &args.how, load, &[])?;
    let mut configurations: Vec<Configuration> = Vec::new();
    for cell in Sweep::cells(&parameters) {
        let first = configurations.first().map(|c| &c.plan.work_dir);
        let configuration = vary::configuration(&recipe, &cell, first, &args.events.event)?;
        let (name, directory) = Sweep::names(&cell, &configurations);
        configurations.push(Configuration {
            name,
            directory,
            ..configuration
        });
    }
    let name = configurations[0].plan.name.clone();
    let kind = SeriesKind::Sweep(Sweep::new(parameters, &configurations));
    Ok(new_series::series(
        kind,
        &name,
        configurations,
        &args.how,
        &args.events,
        ranks,
    ))
}

/// Parameters of `--vary` with their values.
///
/// # Errors
/// If values are wrong, a parameter is given twice, or there are too many combinations.
fn parameters(args: &CurveArgs) -> Result<Vec<VariedParameter>, CommandError> {
    let mut parameters: Vec<VariedParameter> = Vec::new();
    let mut count: usize = 1;
    for (name, text) in &args.vary {
        if parameters.iter().any(|p| p.name == *name) {
            return Err(CommandError::usage(format!(
                "--vary {name} is given twice: expected one list of values"
            )));
        }
        let values = values_of(&format!("--vary {name}"), text).map_err(workload::diagnosed)?;
        count = count.saturating_mul(values.len());
        parameters.push(VariedParameter {
            name: name.clone(),
            values,
        });
    }
    if count > MAX_CELLS {
        return Err(CommandError::usage(format!(
            "--vary: {count} combinations of values: expected at most {MAX_CELLS}"
        )));
    }
    Ok(parameters)
}
