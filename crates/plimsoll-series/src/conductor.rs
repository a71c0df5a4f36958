//! Observer of a run at rank 0, which writes results, runs hooks, executes events and informs the view.

use crate::commands::HookRunner;
use crate::events::EventRunner;
use crate::host::{Host, RunView, StateChange};
use crate::results_writer::{ResultsWriter, Written};
use plimsoll_engine::{Event, Observer, Outcome, PhaseInfo};
use plimsoll_measure::Interval;
use plimsoll_plan::{Phase, Plan};
use plimsoll_results::HookTime;

/// Observer of a run at rank 0: passes the engine's events on to the results, the hooks, the events of the system under
/// test, and the view.
pub struct Conductor<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) host: &'a dyn Host,
    pub(crate) view: Box<dyn RunView + 'a>,
    pub(crate) results: ResultsWriter<'a>,
    /// Runner of the user's commands around phases; `None` once the results are published.
    pub(crate) hooks: Option<HookRunner>,
    /// Runner of the events of the system under test; `None` without events, and once the workers have ended.
    pub(crate) events: Option<EventRunner>,
    /// Sentences about failed commands after a phase, for the notes of the results.
    pub(crate) notes: Vec<String>,
}

impl Conductor<'_> {
    /// The view that shows the run to the user.
    pub fn view(&mut self) -> &mut dyn RunView {
        &mut *self.view
    }

    /// Ends the view, and completes the results with the outcome of the run.
    #[must_use]
    pub fn end(mut self, outcome: Outcome) -> Written {
        self.view.end(&outcome);
        self.host.note(StateChange::Removal(false));
        self.end_events();
        self.publish(&outcome);
        self.results.end(outcome)
    }

    /// Ends the events of the system under test once the workers have ended, and gives the executed events to the
    /// results.
    fn end_events(&mut self) {
        if let Some(mut events) = self.events.take() {
            self.results.set_events(events.finish());
        }
    }

    /// Publishes the results, or completes results that were published before the end of the run.
    fn publish(&mut self, outcome: &Outcome) {
        let (hooks, remarks) = (self.hooks.take(), std::mem::take(&mut self.notes));
        self.results.publish(outcome.clone(), hooks, remarks);
    }

    /// Runs the hooks before or after (`when`) a phase; returns a sentence per failed command.
    fn commands(
        &mut self,
        when: HookTime,
        phase: PhaseInfo<'_>,
        stopped: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let has_commands = |hooks: &&mut HookRunner| hooks.has(when, phase);
        let Some(hooks) = self.hooks.as_mut().filter(has_commands) else {
            return vec![];
        };
        self.view.command_begins(when, phase);
        let failures = match self.results.directory() {
            Some(results) => hooks.run(when, phase, results, stopped),
            // Without a results directory, no command runs: the results could not be written, and a stop of the run has
            // been requested.
            None => vec![],
        };
        self.view.command_ends();
        failures
    }

    /// Whether unmeasured steps of unbounded duration follow the measurement: a hook, a `system` statement or a wait.
    fn goes_on_unmeasured(&self) -> bool {
        let rest = self.plan.script.iter().rev();
        let mut rest = rest.take_while(|p| !matches!(p, Phase::Stop));
        let stages = self.plan.pattern().map(|pattern| &pattern.stages);
        let last = stages.and_then(|stages| stages.last());
        let last = last.map_or("load", |stage| stage.name.as_str());
        let hooks = self.hooks.as_ref();
        hooks.is_some_and(|hooks| hooks.has_after(last))
            || rest.any(|p| matches!(p, Phase::System { .. } | Phase::Wait { .. }))
    }

    /// Appends an interval, with the events that began in the interval, to the results; stops the run if the results
    /// cannot be written.
    fn interval(&mut self, interval: &Interval) {
        let is_kept = match &mut self.events {
            None => self.results.interval(interval, &[]),
            Some(events) => {
                let (marked, begun) = (events.add(interval), events.begun_so_far());
                let actions = marked.iter().flat_map(|(_, actions)| actions.clone());
                self.view
                    .system_events(&begun, &actions.collect::<Vec<_>>());
                // Events are written to `live.json` before the rows of `intervals.csv`: a reader of a row must find the
                // row's events.
                self.results.show_events(begun);
                let mut marked = marked.iter();
                marked.all(|(interval, actions)| self.results.interval(interval, actions))
            }
        };
        if !is_kept {
            // A run whose results cannot be written is stopped.
            self.host.stop().request();
        }
    }

    /// Shows the events that have begun in the view and in `live.json`, without waiting for the next interval.
    fn show_events(&mut self) {
        if let Some(events) = &self.events {
            let begun = events.begun_so_far();
            self.view.system_events(&begun, &[]);
            self.results.show_events(begun);
        }
    }
}

impl Observer for Conductor<'_> {
    fn before(&mut self, phase: PhaseInfo<'_>, stopped: &dyn Fn() -> bool) -> Result<(), String> {
        self.view.begin();
        let failures = self.commands(HookTime::Before, phase, stopped);
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    fn after(&mut self, phase: PhaseInfo<'_>, stopped: &dyn Fn() -> bool) {
        let failures = self.commands(HookTime::After, phase, stopped);
        self.notes.extend(failures);
    }

    fn all_measured(&mut self, outcome: &dyn Fn() -> Option<Outcome>) {
        self.end_events();
        if self.goes_on_unmeasured()
            && let Some(outcome) = outcome()
        {
            let done = self.hooks.as_ref().map(|hooks| hooks.done().to_vec());
            let (done, remarks) = (done.unwrap_or_default(), self.notes.clone());
            self.results.publish_early(outcome, done, remarks);
        }
    }

    fn measured(&mut self, outcome: &Outcome) {
        self.view.measured(outcome);
        self.end_events();
        self.publish(outcome);
    }

    fn event(&mut self, event: Event<'_>) {
        match &event {
            Event::Started { clock, at, .. } => {
                // The workers are blocked until this call returns, so the events begin before the load.
                if let Some(events) = &self.events {
                    events.begin(clock, *at);
                }
            }
            Event::WindowOpened { number, at } => {
                if let Some(events) = &mut self.events {
                    events.open_window(*number, *at);
                }
            }
            Event::Interval(interval) => self.interval(interval),
            Event::Tick { .. } => self.show_events(),
            Event::Cleaning => self.host.note(StateChange::Removal(true)),
            _ => {}
        }
        self.view.begin();
        self.view.event(&event);
    }
}
