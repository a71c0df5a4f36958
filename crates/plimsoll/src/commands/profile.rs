//! `profile`: runs every configuration of a Filebench profile; `check`: runs the built-in profile `check` on one place.

mod catalog;
mod clients;
mod distinct;
mod list;
mod setup;

use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::{CheckArgs, ProfileArgs};
use crate::exit::{CommandError, Exit};
use plimsoll_series::refuse_results_among_files;
use setup::PreparedProfile;

/// Makes the runs, writes the results and prints the report.
pub fn run(mut args: ProfileArgs) -> Result<Exit, CommandError> {
    if args.print_source {
        return super::print(&setup::text(&args)?);
    }
    clients::add(&mut args)?;
    make(&args, PreparedProfile::read)
}

/// Makes the steps of a check, writes the results and prints the table.
pub fn check(args: CheckArgs) -> Result<Exit, CommandError> {
    make(&args.into_profile()?, PreparedProfile::of_check)
}

/// Makes the runs of a profile, unless a run would be refused, or lists the runs; `prepare` prepares the profile for a
/// number of ranks.
fn make<'a>(
    args: &'a ProfileArgs,
    prepare: impl FnOnce(&'a ProfileArgs, u32) -> Result<PreparedProfile<'a>, CommandError>,
) -> Result<Exit, CommandError> {
    args.manner.ranks.check_hosts()?;
    if args.how.dry_run {
        sut::text()?;
        return list::run(&prepare(args, 1)?);
    }
    series::run(&args.manner, 1, |communicator| {
        let ready = prepare(args, communicator.working())?;
        let refused = ready.refusals()?;
        if !refused.is_empty() {
            return Err(CommandError::usage(refused.join("\n  ")));
        }
        for configuration in &ready.series.configurations {
            let (plan, target) = (&configuration.plan, &configuration.target.url);
            refuse_results_among_files(&ready.root, plan, target)?;
        }
        ReadySeries::new(ready.series, &ready.root)
    })
}
