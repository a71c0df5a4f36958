//! `profile`: runs every configuration of a Filebench profile.

mod catalog;
mod clients;
mod distinct;
mod list;
mod setup;

use super::series::{self, ReadySeries};
use super::sut;
use crate::cli::ProfileArgs;
use crate::exit::{CommandError, Exit};
use plimsoll_series::refuse_results_among_files;

/// Makes the runs, writes the results and prints the report.
pub fn run(mut args: ProfileArgs) -> Result<Exit, CommandError> {
    if args.print_source {
        return super::print(&setup::text(&args)?);
    }
    clients::add(&mut args)?;
    let args = &args;
    args.manner.ranks.check_hosts()?;
    if args.how.dry_run {
        sut::text()?;
        return list::run(args);
    }
    series::run(&args.manner, 1, |communicator| {
        let ready = setup::PreparedProfile::read(args, communicator.working())?;
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
