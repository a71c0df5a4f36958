//! Arguments on what happens to the system under test while a run runs.

use super::Command;
use crate::exit::CommandError;
use clap::Args;
use plimsoll_engine::ClockKind;
use plimsoll_series::events::{self, Action, EventSpec};
use plimsoll_sim::SystemEvent;

/// Events of a run.
#[derive(Debug, Args)]
pub struct EventArgs {
    /// What happens at a time after the beginning of the run, warm-up included: 'TIME sh COMMAND' runs
    /// a shell command beside the load and needs --allow-commands; to a simulated system, 'TIME down
    /// WHAT', 'TIME up WHAT' or 'TIME slow WHAT FACTOR', such as '30s down edge.3'; repeatable
    #[arg(long, value_name = "EVENT", help_heading = "Target")]
    pub event: Vec<EventSpec>,
}

impl EventArgs {
    /// Makes the events of a simulated system part of the target's URL, which is what results keep and
    /// ranks are given; returns those that this program executes.
    ///
    /// # Errors
    /// If the events cannot happen to the target, or if commands are not `allowed`.
    pub fn add_to(
        &self,
        target: &mut String,
        clock: ClockKind,
        allowed: bool,
    ) -> Result<Vec<EventSpec>, CommandError> {
        if plimsoll_target::takes_events(target) {
            let events: Result<Vec<SystemEvent>, CommandError> =
                self.event.iter().map(of_system).collect();
            *target = plimsoll_target::with_events(target, &events?);
            return Ok(vec![]);
        }
        for event in &self.event {
            if matches!(event.action, Action::Command(_)) && !allowed {
                return Err(CommandError::usage(format!(
                    "--event '{event}' runs a shell command: allow it with --allow-commands"
                )));
            }
            events::check(event, target).map_err(CommandError::usage)?;
            if clock == ClockKind::Virtual {
                return Err(CommandError::usage(format!(
                    "--event '{event}' happens in real time, and the run is in virtual time: expected \
                     --clock real"
                )));
            }
        }
        Ok(self.event.clone())
    }
}

/// An event of a simulated system.
fn of_system(event: &EventSpec) -> Result<SystemEvent, CommandError> {
    let text = event.to_string();
    let refused = |why: &str| CommandError::usage(format!("--event '{text}': {why}"));
    match &event.action {
        Action::Command(_) => Err(refused(
            "a simulated system is in virtual time, in which no command can run: expected TIME down \
             WHAT, TIME up WHAT or TIME slow WHAT FACTOR",
        )),
        Action::Fault(_) => text.parse().map_err(|why: String| refused(&why)),
    }
}

impl Command {
    /// Makes events of simulated systems part of the target that they happen to, and checks the others.
    ///
    /// # Errors
    /// As those of [`EventArgs::add_to`].
    pub fn add_events(&mut self) -> Result<(), CommandError> {
        let (events, how) = match self {
            Self::Run(args) => (&mut args.workload.events, &mut args.workload.how),
            Self::Curve(args) => (&mut args.events, &mut args.how),
            Self::Find(args) => (&mut args.events, &mut args.how),
            // The targets of `md` are known when its options have been read, those of `profile` with each run.
            _ => return Ok(()),
        };
        let clock = how.clock();
        events.event = events.add_to(&mut how.target, clock, how.allow_commands)?;
        Ok(())
    }
}
