//! Arguments for events: actions on the system under test during a run.

use super::Command;
use crate::exit::CommandError;
use clap::Args;
use plimsoll_engine::ClockKind;
use plimsoll_series::events::{self, Action, EventSpec};
use plimsoll_sim::SystemEvent;

/// Option `--event`: commands of the user, and events of a simulated system, in the order given.
#[derive(Debug, Clone, Args)]
pub struct EventArgs {
    /// Run a shell command: 'TIME sh COMMAND' beside the load, at a time after the beginning of the run, warm-up
    /// included; 'before PHASE sh COMMAND' or 'after PHASE sh COMMAND' around a phase (populate, load, a phase of md),
    /// or without PHASE around every phase. 'timeout TIME' before `sh` limits the command. Or let something happen to a simulated
    /// system: 'TIME down WHAT', 'TIME up WHAT' or 'TIME slow WHAT FACTOR', such as '30s down edge.3'. Repeatable
    #[arg(long, value_name = "EVENT", help_heading = "Behaviour")]
    pub event: Vec<EventSpec>,
}

impl EventArgs {
    /// Adds the events of a simulated system to the target's URL, which is recorded in results and sent to ranks.
    /// Returns the events that this program executes.
    ///
    /// # Errors
    /// If the target does not support an event.
    pub fn add_to(&self, target: &mut String) -> Result<Vec<EventSpec>, CommandError> {
        if plimsoll_target::takes_events(target) {
            let is_of_system = |event: &&EventSpec| matches!(event.action, Action::Fault(_));
            let (faults, own): (Vec<_>, Vec<_>) = self.event.iter().partition(is_of_system);
            let faults: Result<Vec<SystemEvent>, CommandError> =
                faults.into_iter().map(of_system).collect();
            *target = plimsoll_target::with_events(target, &faults?);
            let own: Vec<EventSpec> = own.into_iter().cloned().collect();
            let checked = own
                .iter()
                .try_for_each(|event| events::check(event, target));
            return checked.map(|()| own).map_err(CommandError::usage);
        }
        for event in &self.event {
            events::check(event, target).map_err(CommandError::usage)?;
            if plimsoll_target::clock(target) == ClockKind::Virtual && event.at().is_some() {
                return Err(CommandError::usage(format!(
                    "--event '{event}' happens in real time, and the time of the target {target} is virtual"
                )));
            }
        }
        Ok(self.event.clone())
    }
}

/// Converts an event to an event of a simulated system.
fn of_system(event: &EventSpec) -> Result<SystemEvent, CommandError> {
    let text = event.to_string();
    let read = text.parse();
    read.map_err(|why: String| CommandError::usage(format!("--event '{text}': {why}")))
}

impl Command {
    /// Moves the events of a simulated system from `--event` into the URL of `--target` in the arguments of `run`,
    /// `curve` and `find`; the arguments of other commands stay unchanged.
    ///
    /// # Errors
    /// If the target does not support an event, as in [`EventArgs::add_to`].
    pub fn add_events(&mut self) -> Result<(), CommandError> {
        let (events, how) = match self {
            Self::Run(args) => (&mut args.workload.events, &mut args.workload.how),
            Self::Curve(args) => (&mut args.events, &mut args.how),
            Self::Find(args) => (&mut args.events, &mut args.how),
            // `io500` has no events. `md`, `profile` and `ab` add the events to their targets later: the target of `md` is known only after the
            // options of `md` are read, the targets of `profile` only when each run begins, and `ab` has two targets.
            _ => return Ok(()),
        };
        events.event = events.add_to(&mut how.files.target)?;
        Ok(())
    }
}
