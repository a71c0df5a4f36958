//! Results of a run: written when the run is over, amended after the cleanup.

use crate::commands::HookRunner;
use crate::communicator::Communicator;
use crate::events::ExecutedEvents;
use crate::host::{Host, StateChange};
use crate::measured_run::{self, RunMetadata};
use plimsoll_engine::Outcome;
use plimsoll_measure::Interval;
use plimsoll_plan::{Failure, Note};
use plimsoll_results::{
    CommandRun, Document, LiveEvent, MeasuredRun, ResultsError, Run, RunDir, RunWriter,
};
use std::path::Path;

/// Writes the results of a run.
pub struct ResultsWriter<'a> {
    state: WriteState,
    frame: RunFrame<'a>,
}

/// State of the results.
enum WriteState {
    /// The time series are still being written.
    Open(Box<RunWriter>),
    /// The results are written, or writing has failed.
    Ended(Result<Published, ResultsError>),
}

/// Results that have been written.
struct Published {
    dir: RunDir,
    run: Box<Run>,
    /// Note about missing results of single ranks.
    missing: Option<String>,
    /// Whether the results were written before the end of the run.
    is_early: bool,
}

/// Note in results that are written before the run is over.
const EARLY: &str = "written after measurement but before the run ended: later steps, such as \
     commands after the last phase and the removal of the files, are missing and are not reflected in \
     the verdict";

/// Facts about a run besides its outcome.
struct RunFrame<'a> {
    metadata: RunMetadata,
    /// The ranks, if separate results per rank were requested.
    each: Option<&'a Communicator>,
    /// User's commands that have run, and sentences about failed commands.
    commands: (Vec<CommandRun>, Vec<String>),
    /// Events of the system under test.
    events: ExecutedEvents,
    host: &'a dyn Host,
}

/// A run and its results.
pub struct Written {
    /// The run.
    pub run: Run,
    /// Results directory, or the error that prevented the results.
    pub dir: Result<RunDir, ResultsError>,
    /// Sentences about files that could not be removed.
    pub unremoved: Vec<String>,
}

impl<'a> ResultsWriter<'a> {
    /// Begins the results of a run and writes a draft with these events, from which the results can be recovered if
    /// this process is killed. With a communicator, results are also kept per rank.
    ///
    /// # Errors
    /// [`ResultsError`] if they cannot be written.
    pub fn begin(
        mut writer: RunWriter,
        metadata: RunMetadata,
        each: Option<&'a Communicator>,
        events: ExecutedEvents,
        host: &'a dyn Host,
    ) -> Result<Self, ResultsError> {
        let clean =
            plimsoll_engine::clean_commands(&metadata.config.plan, &metadata.config.target.url);
        let nothing = Outcome {
            interrupted: true,
            ..Outcome::default()
        };
        let path = writer.path().to_owned();
        let frame = RunFrame {
            metadata,
            each,
            commands: Default::default(),
            events,
            host,
        };
        writer.draft(&Run::assemble(frame.measured(nothing)))?;
        host.note(StateChange::RunBegins(&path, clean.as_deref()));
        Ok(Self {
            state: WriteState::Open(Box::new(writer)),
            frame,
        })
    }

    /// Results directory; `None` if the results could not be written.
    pub fn directory(&self) -> Option<&Path> {
        match &self.state {
            WriteState::Open(writer) => Some(writer.path()),
            WriteState::Ended(Ok(published)) => Some(published.dir.path()),
            WriteState::Ended(Err(_)) => None,
        }
    }

    /// Sets the events for all results that are written from now on.
    pub fn set_events(&mut self, events: ExecutedEvents) {
        self.frame.events = events;
    }

    /// Publishes the events that have begun in the live data.
    pub fn show_events(&mut self, events: Vec<LiveEvent>) {
        if let WriteState::Open(writer) = &mut self.state {
            writer.show_events(events);
        }
    }

    /// Appends an interval and the events that began in it. Returns `false` after a write error, which also ends the
    /// results.
    pub fn interval(&mut self, interval: &Interval, events: &[String]) -> bool {
        let WriteState::Open(writer) = &mut self.state else {
            return true;
        };
        let written = writer.interval_with_events(interval, events);
        let is_kept = written.is_ok();
        if let Err(e) = written {
            self.frame.host.note(StateChange::ResultsLost);
            self.state = WriteState::Ended(Err(e));
        }
        is_kept
    }

    /// Writes the results after the measurement but before the end of the run, in case this process is killed later. A
    /// note marks the results as early. `commands` are the user's commands so far.
    pub fn publish_early(
        &mut self,
        outcome: Outcome,
        commands: Vec<CommandRun>,
        remarks: Vec<String>,
    ) {
        // `publish` receives the complete list again.
        self.frame.commands = (commands, remarks);
        self.write(outcome, true);
        self.frame.commands = Default::default();
    }

    /// Writes the results of a run that is over, or completes early results. `remarks` are sentences about failed
    /// user's commands.
    pub fn publish(&mut self, outcome: Outcome, hooks: Option<HookRunner>, remarks: Vec<String>) {
        if let Some(hooks) = hooks {
            self.frame.commands.0 = hooks.into_done();
        }
        self.frame.commands.1.extend(remarks);
        match &mut self.state {
            WriteState::Ended(Ok(published)) if published.is_early => {
                self.frame.complete(published, outcome);
            }
            _ => self.write(outcome, false),
        }
    }

    /// Writes the results, if the time series are still open.
    fn write(&mut self, outcome: Outcome, is_early: bool) {
        let WriteState::Open(writer) = &self.state else {
            return;
        };
        // State in case writing panics.
        let path = writer.path().to_owned();
        let nothing = WriteState::Ended(Err(ResultsError::None { path }));
        if let WriteState::Open(writer) = std::mem::replace(&mut self.state, nothing) {
            let written = self.frame.write(*writer, outcome, is_early);
            if written.is_err() {
                self.frame.host.note(StateChange::ResultsLost);
            }
            self.state = WriteState::Ended(written);
        }
    }

    /// Completes the results with the outcome of the cleanup. A run without written results counts as failed.
    pub fn end(self, mut outcome: Outcome) -> Written {
        let frame = self.frame;
        let ended = match self.state {
            WriteState::Open(writer) => frame.write(*writer, outcome.clone(), false),
            WriteState::Ended(ended) => ended,
        };
        let unremoved = std::mem::take(&mut outcome.cleanup.unremoved);
        match ended {
            Ok(published) => {
                let run = Run::assemble(frame.measured(outcome));
                let run = with(run, published.missing.as_deref());
                Written {
                    dir: Ok(published.amended(&run, frame.host)),
                    run,
                    unremoved,
                }
            }
            Err(error) => {
                // The write error stopped the run, not the user.
                outcome.interrupted = false;
                outcome.failure = Some(Failure::of("write the results", error.to_string()));
                Written {
                    run: Run::assemble(frame.measured(outcome)),
                    dir: Err(error),
                    unremoved,
                }
            }
        }
    }
}

impl RunFrame<'_> {
    fn write(
        &self,
        writer: RunWriter,
        outcome: Outcome,
        is_early: bool,
    ) -> Result<Published, ResultsError> {
        let _uninterrupted = self.host.hold_results();
        let (run, missing) = match is_early {
            // Results per rank are collected when the run is over.
            true => (Run::assemble(self.measured(outcome)), None),
            false => self.whole(&RunDir::at(writer.path()), outcome),
        };
        let run = with(run, is_early.then_some(EARLY));
        let (dir, run) = (writer.finish(&run)?, Box::new(run));
        self.host.note(StateChange::ResultsWritten(dir.path()));
        Ok(Published {
            dir,
            run,
            missing,
            is_early,
        })
    }

    /// Completes early results after the end of the run.
    fn complete(&self, published: &mut Published, outcome: Outcome) {
        let _uninterrupted = self.host.hold_results();
        let (run, missing) = self.whole(&published.dir, outcome);
        (published.missing, published.is_early) = (missing, false);
        published.amend(run, self.host);
    }

    /// Assembles the run, after writing the results per rank if requested. Also returns a note about ranks whose
    /// results are missing.
    fn whole(&self, dir: &RunDir, mut outcome: Outcome) -> (Run, Option<String>) {
        let (own, lanes) = (std::mem::take(&mut outcome.own), outcome.own_lanes);
        let measured = self.measured(outcome);
        let ranks = self.each.map(|communicator| {
            let mine = Run::assemble(measured_run::own(&measured, own, lanes)).to_json();
            write_ranks(dir, communicator, mine)
        });
        // Only the results per rank are incomplete; the combined results are complete.
        let missing = ranks.and_then(Result::err);
        let missing = missing.map(|e| format!("the results of each rank are not complete: {e}"));
        (with(Run::assemble(measured), missing.as_deref()), missing)
    }

    fn measured(&self, mut outcome: Outcome) -> MeasuredRun {
        let (commands, remarks) = self.commands.clone();
        outcome.notes.extend(remarks);
        let ExecutedEvents { events, summaries } = self.events.clone();
        MeasuredRun {
            commands,
            events,
            summaries,
            ..self.metadata.clone().with(outcome)
        }
    }
}

impl Published {
    /// Replaces the run and returns the results directory.
    fn amended(mut self, run: &Run, host: &dyn Host) -> RunDir {
        let _uninterrupted = host.hold_results();
        self.amend(run.clone(), host);
        self.dir
    }

    /// Replaces the run if it differs.
    fn amend(&mut self, run: Run, host: &dyn Host) {
        if *self.run == run {
            return;
        }
        match self.dir.replace_run(&run) {
            Ok(()) => *self.run = run,
            Err(e) => host.warn(&format!(
                "what came after the measurement is missing in the results: {e}"
            )),
        }
    }
}

/// Adds a note to a run.
fn with(mut run: Run, text: Option<&str>) -> Run {
    run.notes
        .extend(text.map(|text| Note::from(text.to_owned())));
    run
}

/// Writes `ranks/rank-N.json`: `run.json` restricted to rank N.
fn write_ranks(dir: &RunDir, communicator: &Communicator, mine: String) -> Result<(), String> {
    let mut first = Ok(());
    let collected = communicator.collect(mine, |rank, json| {
        let name = format!("ranks/rank-{rank}.json");
        if let (Ok(()), Err(e)) = (&first, dir.add(&name, &json)) {
            first = Err(e.to_string());
        }
    });
    collected.map_err(|e| e.to_string())?;
    first
}
