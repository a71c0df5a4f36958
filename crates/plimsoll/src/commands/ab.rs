//! `ab`: compares two variants of a run in pairs of runs.

use super::plan;
use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::{AbArgs, Settle, WorkloadArgs};
use crate::exit::{CommandError, Exit};
use crate::{new_series, workload};
use plimsoll_engine::ClockKind;
use plimsoll_plan::counted;
use plimsoll_results::{
    Configuration, PairedComparison, Percentile, PrimaryFigure, Series, SeriesKind, SettleRule,
    Side,
};

/// Makes the pairs of runs, writes the results and prints the answer.
pub fn run(args: &AbArgs) -> Result<Exit, CommandError> {
    let [a, b] = [args.of_side(Side::A)?, args.of_side(Side::B)?];
    let sides = [(Side::A, &a), (Side::B, &b)];
    if args.how.dry_run {
        sut::text()?;
        let series = series(args, sides, args.manner.ranks.working()?)?;
        series::check(&args.manner.ranks, &series, 1)?;
        let pairs = match args.until {
            None => counted(args.pairs.into(), "pair", "pairs"),
            Some(_) => format!(
                "at most {}",
                counted(args.max_pairs.into(), "pair", "pairs")
            ),
        };
        let summary = format!("{pairs} of runs of the variants A and B");
        let (root, format) = (&args.root.results, args.manner.format);
        return plan::show_series(&series, &a.how, root, format, &summary);
    }
    series::run(&args.manner, 1, |communicator| {
        let mut series = series(args, sides, communicator.working())?;
        new_series::check(&mut series, &args.root.results)?;
        ReadySeries::new(series, &args.root.results)
    })
}

/// `series.json` of a paired comparison before its first run: variants, primary figure, and the order within the pairs.
fn series(
    args: &AbArgs,
    sides: [(Side, &WorkloadArgs); 2],
    ranks: u32,
) -> Result<Series, CommandError> {
    let of_side = |(side, of): (Side, &WorkloadArgs)| -> Result<Configuration, CommandError> {
        let plan = workload::plan(of)?;
        Ok(Configuration {
            name: side.to_string(),
            before: args.commands_before(side),
            ..new_series::configuration(plan, &of.how.files.target, &of.events.event)?
        })
    };
    let configurations = vec![of_side(sides[0])?, of_side(sides[1])?];
    let settle = settle(args)?;
    let has_schedule = configurations.iter().any(|c| c.plan.has_schedule());
    let usual = match has_schedule {
        true => PrimaryFigure::Percentile(Percentile::P99),
        false => PrimaryFigure::OpsPerS,
    };
    let first = &configurations[0].plan;
    let kind = SeriesKind::Ab(PairedComparison::new(
        args.primary.unwrap_or(usual),
        first.seed,
        args.until.map_or(args.pairs, |_| args.max_pairs),
        args.until,
        settle,
    ));
    let name = first.name.clone();
    let (_, a) = sides[0];
    Ok(new_series::series(
        kind,
        &name,
        configurations,
        &a.how,
        &a.events,
        ranks,
    ))
}

/// Rule of the wait before each run; `None` in virtual time.
fn settle(args: &AbArgs) -> Result<Option<SettleRule>, CommandError> {
    match (args.settle, args.clock()) {
        (None, ClockKind::Virtual) => Ok(None),
        (settle, clock) => settle.unwrap_or(Settle::Auto).rule(clock).map(Some),
    }
}
