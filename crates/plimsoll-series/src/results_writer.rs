//! Results of a run: written when the run is over, amended after the cleanup.

use crate::commands::HookRunner;
use crate::communicator::Communicator;
use crate::events::ExecutedEvents;
use crate::host::{Host, StateChange};
use plimsoll_engine::Outcome;
use plimsoll_measure::{Interval, NfsClients, WindowTotals};
use plimsoll_plan::{Failure, Note};
use plimsoll_results::{
    CommandRun, Document, LiveEvent, MeasuredRun, ResultsError, Run, RunDir, RunWriter,
};
use std::path::Path;

/// Writer of the results of a run at rank 0: a draft, the time series, the results, and the amendment of the results
/// after the cleanup.
pub struct ResultsWriter<'a> {
    state: WriteState,
    frame: RunFrame<'a>,
}

/// State of the results of a run: in progress, written, or lost by an error.
enum WriteState {
    /// The run is in progress, and the time series of the run are still being written.
    Open(Box<RunWriter>),
    /// The results have been written, or writing has failed.
    Ended(Result<Published, ResultsError>),
}

/// Results that have been written under their final name.
struct Published {
    dir: RunDir,
    run: Box<Run>,
    /// Note about ranks whose own results are missing; `None` if no results are missing.
    missing: Option<String>,
    /// Whether the results were written before the end of the run, and are to be completed.
    is_early: bool,
}

/// Note in results that are written before the end of the run.
const EARLY: &str = "written after measurement but before the run ended: later steps, such as \
     commands after the last phase and the removal of the files, are missing and are not reflected in \
     the verdict";

/// Facts about a run besides its outcome, from which its results are assembled.
struct RunFrame<'a> {
    /// Input for the results without the outcome: Plan, target, environment, the hooks that have run, and the events of
    /// the system under test.
    metadata: MeasuredRun,
    /// Communicator of the ranks, if the results of each rank are requested; otherwise `None`.
    each: Option<&'a Communicator>,
    /// Sentences about failed commands, for the notes of the results.
    remarks: Vec<String>,
    host: &'a dyn Host,
}

/// A completed run with its results directory.
pub struct Written {
    /// Figures and verdict of the run; failed if the results could not be written.
    pub run: Run,
    /// Results directory of the run, or the error that prevented results.
    pub dir: Result<RunDir, ResultsError>,
    /// Sentences about files of the run that could not be removed.
    pub unremoved: Vec<String>,
}

impl<'a> ResultsWriter<'a> {
    /// Begins the results of a run and writes a draft, from which results can be recovered if this process is killed.
    /// With a communicator `each`, the results of each rank of the run are kept too.
    ///
    /// # Errors
    /// [`ResultsError`] if the draft cannot be written.
    pub fn begin(
        mut writer: RunWriter,
        metadata: MeasuredRun,
        each: Option<&'a Communicator>,
        host: &'a dyn Host,
    ) -> Result<Self, ResultsError> {
        let clean = plimsoll_engine::clean_commands(&metadata.plan, &metadata.target.url);
        let nothing = Outcome {
            interrupted: true,
            ..Outcome::default()
        };
        let path = writer.path().to_owned();
        let frame = RunFrame {
            metadata,
            each,
            remarks: vec![],
            host,
        };
        writer.draft(&Run::assemble(frame.measured(nothing)))?;
        host.note(StateChange::RunBegins(&path, clean.as_deref()));
        Ok(Self {
            state: WriteState::Open(Box::new(writer)),
            frame,
        })
    }

    /// Hidden or final results directory of the run; `None` if the results could not be written.
    pub fn directory(&self) -> Option<&Path> {
        match &self.state {
            WriteState::Open(writer) => Some(writer.path()),
            WriteState::Ended(Ok(published)) => Some(published.dir.path()),
            WriteState::Ended(Err(_)) => None,
        }
    }

    /// Sets the executed events and the summaries of the intervals, for all results that are written from now on.
    pub fn set_events(&mut self, events: ExecutedEvents) {
        let ExecutedEvents { events, summaries } = events;
        let metadata = &mut self.frame.metadata;
        (metadata.events, metadata.summaries) = (events, summaries);
    }

    /// Replaces the events that have begun in `live.json`, while the run is measured.
    pub fn show_events(&mut self, events: Vec<LiveEvent>) {
        if let WriteState::Open(writer) = &mut self.state {
            writer.show_events(events);
        }
    }

    /// Appends an interval to the time series, with the events that began in the interval. A write error returns
    /// `false` and ends the results, so that later intervals are ignored.
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
        // The remarks are cleared, because `publish` receives the complete list of remarks and commands again.
        (self.frame.metadata.commands, self.frame.remarks) = (commands, remarks);
        self.write(outcome, true);
        self.frame.remarks.clear();
    }

    /// Writes the results of a run that is over, or completes early results. `remarks` are sentences about failed
    /// user's commands.
    pub fn publish(&mut self, outcome: Outcome, hooks: Option<HookRunner>, remarks: Vec<String>) {
        if let Some(hooks) = hooks {
            self.frame.metadata.commands = hooks.into_done();
        }
        self.frame.remarks.extend(remarks);
        match &mut self.state {
            WriteState::Ended(Ok(published)) if published.is_early => {
                self.frame.complete(published, outcome);
            }
            _ => self.write(outcome, false),
        }
    }

    /// Writes the results of the run, unless the results are already written or have failed.
    fn write(&mut self, outcome: Outcome, is_early: bool) {
        let WriteState::Open(writer) = &self.state else {
            return;
        };
        // The state is an error while the results are written, in case a panic interrupts the writing.
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
                // The write error, not the user, requested the stop of the run.
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
            // The results of each rank are collected when the run is over, not for early results.
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
        let clients = outcome.own_nfs_clients.take();
        let measured = self.measured(outcome);
        let ranks = self.each.map(|communicator| {
            let mine = Run {
                // The counters of the machine are of all its ranks.
                qualifiers: vec![],
                ..Run::assemble(of_rank(&measured, own, (lanes, clients)))
            };
            write_ranks(dir, communicator, mine.to_json())
        });
        // Only the results per rank are incomplete; the combined results are complete.
        let missing = ranks.and_then(Result::err);
        let missing = missing.map(|e| format!("the results of each rank are not complete: {e}"));
        (with(Run::assemble(measured), missing.as_deref()), missing)
    }

    fn measured(&self, mut outcome: Outcome) -> MeasuredRun {
        outcome.notes.extend(self.remarks.iter().cloned());
        self.metadata.clone().with(outcome)
    }
}

impl Published {
    /// Replaces `run.json` with the run after the cleanup, and returns the results directory.
    fn amended(mut self, run: &Run, host: &dyn Host) -> RunDir {
        let _uninterrupted = host.hold_results();
        self.amend(run.clone(), host);
        self.dir
    }

    /// Replaces `run.json` if `run` differs from the written run; a failure is only a warning.
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

/// Adds a note to a run, unless the text is `None`.
fn with(mut run: Run, text: Option<&str>) -> Run {
    run.notes
        .extend(text.map(|text| Note::from(text.to_owned())));
    run
}

/// Restricts the measurements of all ranks to the measurements `own` of this rank's workers, driven by the rank's number
/// of lanes and NFS clients.
fn of_rank(
    all: &MeasuredRun,
    own: Vec<WindowTotals>,
    (lanes, nfs_clients): (usize, Option<NfsClients>),
) -> MeasuredRun {
    let mut mine = all.clone();
    // Mount counters and intervals are sums over all ranks, so the results of a single rank contain neither.
    mine.environment.read_source = None;
    mine.summaries = vec![];
    // Requirements on the client are judged for all ranks together.
    mine.plan.options.require.clear();
    let outcome = &mut mine.outcome;
    outcome.lanes = lanes;
    outcome.nfs_clients = nfs_clients;
    outcome.starts = None;
    for window in &mut outcome.windows {
        window.hosts = vec![];
    }
    for (window, own) in outcome.windows.iter_mut().zip(own) {
        window.totals = own;
    }
    for stage in &mut outcome.stages {
        stage.ranks.truncate(1);
    }
    mine
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
