//! `systems fit`: fits the free figures of a simulated system to a load curve.

mod curve;
mod memo;
mod progress;
mod trial;

use super::print;
use crate::cli::{FitArgs, Format};
use crate::communicator::{join_launched, stop_on_interrupt};
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use crate::workload::diagnosed;
use crate::{new_file, signals};
use curve::{Point, ReferenceCurve};
use memo::Memo;
use plimsoll_plan::counted;
use plimsoll_report::fit::{FitReport, FittedFigure, FittedPoint};
use plimsoll_report::terminal;
use plimsoll_series::process_count;
use plimsoll_sim::{FitError, Fitted, FreeFigure, fit, free_figures, with_figures};
use progress::Progress;
use trial::TrialRunner;

/// Elasticity of the response time to a figure below which the points hardly determine the figure.
const MIN_ELASTICITY: f64 = 0.02;

/// Text of a system file, and the free figures in the text, of which a fit requires at least one.
struct FreeSystem {
    name: String,
    text: String,
    figures: Vec<FreeFigure>,
}

/// Fits the free figures of a simulated system to the load curve of `--to`, writes the fitted system file and prints
/// the report.
pub fn run(args: &FitArgs) -> Result<Exit, CommandError> {
    let communicator = join_launched()?;
    if communicator.size() > 1 {
        return Err(CommandError::usage(
            "fit runs in one process: --jobs runs several points at once",
        ));
    }
    let system = read_system(&args.system)?;
    let curve = ReferenceCurve::read(args)?;
    let (held_out, fitted) = divide(&curve, &args.hold_out)?;
    new_file::refuse_existing(&args.output)?;
    let key = curve.key(&system.text)?;
    let memo = Memo::open(&args.output, key, &system.figures)?;
    let stop = stop_on_interrupt(&communicator)?;
    signals::note_fit();
    let mut runner = TrialRunner::new(&curve.plan, memo, &stop, process_count(args.jobs).get())?;
    let mut progress = Progress::new(args);
    let headline = headline(&system, &curve, &fitted, &held_out);
    progress.output.print_message(&headline);
    let enough = fitted.len() > system.figures.len();
    if !enough {
        let text = too_few(fitted.len(), system.figures.len());
        console::err(&format!("warning: {text}\n"));
    }
    let result = fit(&system.figures, u64::from(args.max_trials), |factors| {
        let residuals = residuals(&mut runner, &system, factors, &fitted)?;
        progress.trial(&system.figures, factors, &residuals);
        Ok(residuals)
    });
    progress.end();
    let result = result.map_err(|e| match e {
        FitError::NothingFree => nothing_free(&system),
        FitError::Trial(e) => e,
    })?;
    let others = residuals(&mut runner, &system, &result.factors, &held_out)?;
    let text = with_figures(&system.text, &system.figures, &result.factors);
    // An unwritable system file is a failure (exit code 1) and not a usage error, because the trials have been made.
    new_file::create(&args.output, &text).map_err(|e| CommandError {
        exit: Exit::Failed,
        ..e
    })?;
    let report = report(
        args,
        &system,
        &curve,
        &result,
        (&fitted, &held_out),
        &others,
    );
    print(&match args.format {
        Format::Json => report.to_json(),
        Format::Text => format!(
            "\n{}",
            terminal::render(&report.document(), Stream::Out.layout())
        ),
    })?;
    Ok(match report.good {
        true => Exit::Valid,
        false => Exit::Invalid,
    })
}

/// Reads the file of a simulated system, given by built-in name or path, and extracts the free figures.
fn read_system(name: &str) -> Result<FreeSystem, CommandError> {
    let text = plimsoll_sim::find(name).map_err(CommandError::usage)?;
    plimsoll_sim::parse(&text, name).map_err(diagnosed)?;
    let system = FreeSystem {
        name: name.to_owned(),
        figures: free_figures(&text),
        text,
    };
    match system.figures.is_empty() {
        true => Err(nothing_free(&system)),
        false => Ok(system),
    }
}

fn nothing_free(system: &FreeSystem) -> CommandError {
    CommandError::usage(format!(
        "{} has no free figures: give those that are to be fitted bounds, such as \
         {{ value = \"1ms\", source = \"A\", free = [\"0.5ms\", \"4ms\"] }}",
        system.name
    ))
}

/// Splits the points of a curve by the numbers of `--hold-out`: first the held-out points, then the points to which the
/// figures are fitted.
fn divide(
    curve: &ReferenceCurve,
    hold_out: &[usize],
) -> Result<(Vec<Point>, Vec<Point>), CommandError> {
    let is_point = |n: &usize| curve.points.iter().any(|p| p.number == *n);
    if let Some(number) = hold_out.iter().find(|n| !is_point(n)) {
        let last = curve.points.iter().map(|p| p.number).max().unwrap_or(0);
        let wrong = match (1..=last).contains(number) {
            true => format!("point {number} of {} has no response time", curve.name),
            false => format!("the points of {} are 1 to {last}", curve.name),
        };
        return Err(CommandError::usage(format!("--hold-out {number}: {wrong}")));
    }
    let (held_out, fitted): (Vec<Point>, Vec<Point>) = curve
        .points
        .iter()
        .copied()
        .partition(|p| hold_out.contains(&p.number));
    match fitted.is_empty() {
        true => Err(CommandError::usage(format!(
            "{} has no point left to fit to",
            curve.name
        ))),
        false => Ok((held_out, fitted)),
    }
}

/// Residual of each load point: the natural logarithm of the modelled over the measured mean response time.
fn residuals(
    runner: &mut TrialRunner<'_>,
    system: &FreeSystem,
    factors: &[f64],
    points: &[Point],
) -> Result<Vec<f64>, CommandError> {
    let text = with_figures(&system.text, &system.figures, factors);
    let figures = system.figures.iter().zip(factors);
    let figures: Vec<String> = figures.map(|(figure, by)| figure.scaled(*by)).collect();
    let loads: Vec<u64> = points.iter().map(|p| p.load).collect();
    let modelled = runner.latencies_ms(&text, &figures, &loads)?;
    let pairs = modelled.iter().zip(points);
    Ok(pairs.map(|(ms, p)| (ms / p.measured_ms).ln()).collect())
}

fn too_few(points: usize, figures: usize) -> String {
    format!(
        "{} cannot determine {}: a fit needs more points than free figures",
        counted(points as u64, "point", "points"),
        counted(figures as u64, "free figure", "free figures"),
    )
}

/// First line of a fit's report: the system, the curve, the numbers of fitted and held-out points, and the workload.
fn headline(
    system: &FreeSystem,
    curve: &ReferenceCurve,
    fitted: &[Point],
    held_out: &[Point],
) -> String {
    let held = match held_out.len() {
        0 => String::new(),
        n => format!(" ({n} held out)"),
    };
    format!(
        "{}: {} fitted to {} of {}{held}, workload {}",
        system.name,
        counted(system.figures.len() as u64, "free figure", "free figures"),
        counted(fitted.len() as u64, "point", "points"),
        curve.name,
        curve.plan.name
    )
}

fn report(
    args: &FitArgs,
    system: &FreeSystem,
    curve: &ReferenceCurve,
    result: &Fitted,
    (fitted, held_out): (&[Point], &[Point]),
    others: &[f64],
) -> FitReport {
    let figures: Vec<FittedFigure> = (0..system.figures.len())
        .map(|i| figure(&system.figures[i], result, i))
        .collect();
    let with = |points: &[Point], residuals: &[f64], held_out| -> Vec<FittedPoint> {
        let pairs = points.iter().zip(residuals);
        pairs
            .map(|(p, residual)| FittedPoint {
                number: p.number,
                load: p.shown_load,
                measured_ms: p.measured_ms,
                modelled_ms: p.measured_ms * residual.exp(),
                residual: *residual,
                held_out,
            })
            .collect()
    };
    let mut points = with(fitted, &result.residuals, false);
    points.extend(with(held_out, others, true));
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    let mut reasons = Vec::new();
    if fitted.len() <= figures.len() {
        reasons.push(too_few(fitted.len(), figures.len()));
    }
    if !result.converged {
        let trials = counted(u64::from(args.max_trials), "trial", "trials");
        reasons.push(format!(
            "it did not converge in {trials}: --max-trials allows more"
        ));
    }
    FitReport {
        system: system.name.clone(),
        curve: curve.name.clone(),
        workload: curve.plan.name.clone(),
        metric: curve.unit.clone(),
        notes: figures.iter().flat_map(notes).collect(),
        figures,
        points,
        trials: result.trials,
        good: reasons.is_empty(),
        reasons,
        output: args.output.display().to_string(),
    }
}

fn figure(figure: &FreeFigure, result: &Fitted, i: usize) -> FittedFigure {
    let (factor, sensitivity) = (result.factors[i], result.sensitivity[i]);
    FittedFigure {
        name: figure.path.clone(),
        before: figure.text.clone(),
        fitted: figure.scaled(factor),
        bounds: figure.bounds.clone(),
        at_bound: figure.is_at_bound(factor),
        elasticity: sensitivity.elasticity,
        squares_below: sensitivity.squares_below,
        squares_above: sensitivity.squares_above,
    }
}

/// Warnings about a fitted figure: its value ended at a bound, or the response times hardly depend on the figure.
fn notes(figure: &FittedFigure) -> Vec<String> {
    let mut notes = Vec::new();
    if figure.at_bound {
        notes.push(format!(
            "`{}` ended at its bound, {}: the points ask for a value beyond it, or the system lacks \
             something",
            figure.name, figure.fitted
        ));
    }
    if figure.elasticity < MIN_ELASTICITY {
        notes.push(format!(
            "`{}` hardly changes the fitted points: they say little of its value",
            figure.name
        ));
    }
    notes
}
