//! The driver loop of every series: makes the next run until the strategy, an error or the user ends the series.

use crate::ahead::{Ahead, LostProcess};
use crate::commands::RunFacts;
use crate::communicator::Communicator;
use crate::config::RunConfig;
use crate::error::SeriesError;
use crate::events;
use crate::host::{Host, ListedRun, StateChange};
use crate::prepare::{Preparation, prepare};
use crate::results_writer::Written;
use crate::run::RunContext;
use crate::system_text;
use plimsoll_engine::Settings;
use plimsoll_plan::{Note, Reason};
use plimsoll_results::{
    CommandRun, NextRun, ResultsError, Series, SeriesDir, SeriesRun, SeriesState, SeriesWriter,
    Settling, Step,
};
use std::num::NonZeroUsize;
use std::path::Path;

/// Driver of a series at rank 0, which makes the runs one after another or by concurrent processes.
pub struct SeriesDriver<'a> {
    context: RunContext<'a>,
    /// Whether the document has the state of this process, instead of the state in which an earlier process ended the
    /// series.
    begun: bool,
    /// Whether a run of the series has used the shared work directory.
    used: bool,
    /// Sentences about files of the last run that a rank or worker may still be using.
    busy: Vec<String>,
}

/// Reason why the driver ends a series before its rule does.
enum Abort {
    /// A run of the series was refused.
    Refused(SeriesError),
    /// The results of a run, or `series.json`, could not be written.
    Lost(ResultsError),
}

impl From<ResultsError> for Abort {
    fn from(e: ResultsError) -> Self {
        Self::Lost(e)
    }
}

/// Configuration of a run of a series, for all ranks.
fn config(series: &Series, next: &NextRun) -> Result<RunConfig, SeriesError> {
    Ok(RunConfig {
        plan: series.plan(next).map_err(SeriesError::Refused)?,
        target: series.configuration(next.configuration).target.clone(),
        interval_s: series.interval_s,
        holds: series.shares_files(),
    })
}

/// Member loop: makes the runs that rank 0 broadcasts until rank 0 broadcasts the end.
///
/// # Errors
/// If a rank is lost.
pub fn follow(context: &RunContext<'_>) -> Result<(), SeriesError> {
    while let Some(config) = next_config(context.communicator, || Ok(None))? {
        context.run_as_member(&config)?;
    }
    Ok(())
}

/// Ends the member loop of all ranks. Called by rank 0 after the last run.
pub fn release_members(communicator: &Communicator) {
    // A lost rank has already ended, so an error of the broadcast does not matter.
    let _ = next_config(communicator, || Ok(None));
}

/// Configuration of the next run, made by rank 0 and broadcast to all ranks. `None` ends the series.
fn next_config(
    communicator: &Communicator,
    make: impl FnOnce() -> Result<Option<RunConfig>, SeriesError>,
) -> Result<Option<RunConfig>, SeriesError> {
    communicator.run_on_root_and_broadcast(make)
}

/// Makes the missing runs of a series at rank 0; up to `jobs` processes make independent runs concurrently. Sentences
/// about files that could not be removed become notes of the series.
///
/// # Errors
/// If the first run of a new series is refused (the series is then withdrawn), or if the results cannot be written.
pub fn drive(
    context: RunContext<'_>,
    mut writer: SeriesWriter,
    jobs: NonZeroUsize,
) -> Result<SeriesWriter, SeriesError> {
    let mut driver = SeriesDriver::new(context);
    if let Err(e) = driver.list_earlier(&mut writer) {
        return Err(driver.end_without_results(e, &writer));
    }
    if let Err(e) = driver.begin_again(&mut writer) {
        return Err(driver.end_without_results(e, &writer));
    }
    let ahead = Ahead::new(&writer, jobs, driver.context.per_rank);
    driver.host().series_begins(writer.series());
    let made = driver.make_runs(&mut writer, ahead);
    let ended = match made {
        Ok(()) => driver.clean(&mut writer),
        Err(Abort::Refused(refused)) if writer.is_withdrawable() => {
            let error = driver.clean_up_after_refusal(refused, writer.series());
            let _ = writer.withdraw();
            return Err(error);
        }
        Err(Abort::Refused(refused)) => {
            let ended = writer.end(SeriesState::Failed, Some(refused.reason()));
            ended.and_then(|()| driver.clean(&mut writer))
        }
        Err(Abort::Lost(e)) => Err(e),
    };
    match ended {
        Ok(()) => Ok(writer),
        Err(e) => Err(driver.end_without_results(e, &writer)),
    }
}

/// Makes one independent run of a series, identified by its directory name, without listing the run in the series.
/// Returns the name of the results directory.
///
/// # Errors
/// If the series has no such run, if the run is refused, or if the results cannot be written.
pub fn make_alone(
    context: &RunContext<'_>,
    dir: &SeriesDir,
    series: &Series,
    directory: &str,
) -> Result<String, SeriesError> {
    let independent = series.kind.strategy().independent(series);
    let next = independent.iter().find(|next| next.directory == directory);
    let next = next.ok_or_else(|| {
        let dir = dir.path().display();
        SeriesError::refused(format!(
            "{directory} is not a missing run of the series in {dir}"
        ))
    })?;
    let config = config(series, next)?;
    let facts = RunFacts {
        load: next.load,
        number: None,
        configuration: series.configuration(next.configuration).label(),
    };
    let context = RunContext {
        results_error: SeriesError::failed,
        ..context.clone()
    };
    let written = context.run_as_root(&config, &facts, |started| {
        dir.run_writer(config.settings().clock(), next, &config.plan, started)
    })?;
    let results = written.dir.map_err(SeriesError::failed)?;
    let below = results.path().strip_prefix(dir.path());
    let below = below.unwrap_or(results.path());
    Ok(below.to_string_lossy().into_owned())
}

impl<'a> SeriesDriver<'a> {
    fn new(mut context: RunContext<'a>) -> Self {
        context.results_error = SeriesError::failed;
        Self {
            context,
            begun: false,
            used: false,
            busy: vec![],
        }
    }

    fn host(&self) -> &'a dyn Host {
        self.context.host
    }

    /// Lists the runs that earlier processes measured but did not list, up to the first missing run.
    fn list_earlier(&mut self, writer: &mut SeriesWriter) -> Result<(), ResultsError> {
        while let Step::Run(next) = writer.series().next()
            && let Some(run) = writer.unlisted(&next)
        {
            writer.add(run)?;
        }
        Ok(())
    }

    /// Removes the files of a run that an earlier process began and did not complete, if the next attempt makes the files
    /// again. The next attempt refuses a directory with files that could not be removed.
    fn begin_again(&mut self, writer: &mut SeriesWriter) -> Result<(), ResultsError> {
        if writer.is_new() {
            return Ok(());
        }
        let mut begun = None;
        writer.change(|series| begun = series.take_back())?;
        let Some(begun) = begun.filter(|c| plimsoll_target::keeps_files(&c.target.url)) else {
            return Ok(());
        };
        self.host()
            .progress("removing the files of an incomplete run");
        let work_dir = &begun.plan.work_dir;
        for guard in &work_dir.guards {
            let dir = work_dir.dir.join(guard.as_str());
            match self.end_claim_of(&dir, &begun.target.url, false) {
                Ok(left) => left.iter().for_each(|text| self.host().warn(text)),
                Err(e) => self.host().warn(&e),
            }
        }
        Ok(())
    }

    /// Makes the missing runs of the series, then ends the processes that make later runs concurrently.
    fn make_runs(
        &mut self,
        writer: &mut SeriesWriter,
        mut ahead: Option<Ahead>,
    ) -> Result<(), Abort> {
        let made = self.make_missing(writer, &mut ahead);
        let is_over = match &made {
            Ok(()) => !writer.series().state.can_resume(),
            Err(_) => writer.is_withdrawable(),
        };
        let mut texts = Vec::new();
        if let Some(ahead) = ahead {
            let is_interrupted = writer.series().state == SeriesState::Interrupted;
            texts = ahead.end(is_over, is_interrupted);
        }
        if is_over {
            texts.extend(beyond_end(writer));
        }
        texts.iter().for_each(|text| self.host().warn(text));
        made
    }

    fn make_missing(
        &mut self,
        writer: &mut SeriesWriter,
        ahead: &mut Option<Ahead>,
    ) -> Result<(), Abort> {
        writer.end(SeriesState::Unfinished, None)?;
        self.begun = true;
        loop {
            let next = match writer.series().next() {
                Step::End(state, reason) => return Ok(writer.end(state, reason)?),
                Step::Run(next) => next,
            };
            self.make_configuration(writer, &next)?;
            let task = ahead.as_ref().and_then(|ahead| ahead.task_of(&next));
            // The task of a run is awaited even if results of the run exist, because the process of the task may still
            // be running.
            if task.is_none()
                && let Some(run) = writer.unlisted(&next)
            {
                writer.add(run.clone())?;
                let series = writer.series();
                self.host().run_listed(series, ListedRun::Earlier(&run));
                continue;
            }
            if self.host().stop().is_requested() {
                return Ok(writer.end(SeriesState::Interrupted, None)?);
            }
            match (ahead.as_mut(), task) {
                (Some(ahead), Some(task)) => match ahead.await_run(task, writer, self.host())? {
                    Ok(run) => {
                        self.used = true;
                        writer.add(run.clone())?;
                        let series = writer.series();
                        self.host().run_listed(series, ListedRun::Beside(&run));
                    }
                    Err(LostProcess::Refused(refused)) => return Err(Abort::Refused(refused)),
                    Err(LostProcess::Died(text)) => {
                        let reason = Reason::new("failed", text);
                        return Ok(writer.end(SeriesState::Failed, Some(reason))?);
                    }
                    Err(LostProcess::Interrupted | LostProcess::Terminated) => {
                        return Ok(writer.end(SeriesState::Interrupted, None)?);
                    }
                },
                _ => {
                    let preparation = self.prepare(writer, &next)?;
                    if self.host().stop().is_requested() {
                        return Ok(writer.end(SeriesState::Interrupted, None)?);
                    }
                    if let Some(failure) = &preparation.failure {
                        let text = format!("{}: {failure}", label(writer.series(), &next));
                        let reason = Reason::new("failed", text);
                        return Ok(writer.end(SeriesState::Failed, Some(reason))?);
                    }
                    self.make(writer, &next, preparation)?;
                }
            }
        }
    }

    /// Adds the configuration of a run at a new value of a searched parameter to the series.
    fn make_configuration(&self, writer: &mut SeriesWriter, next: &NextRun) -> Result<(), Abort> {
        let series = writer.series();
        if (next.configuration as usize) < series.configurations.len() {
            return Ok(());
        }
        let configuration = self.host().configuration(series, next);
        let configuration = configuration.map_err(Abort::Refused)?;
        Ok(writer.change(|series| series.configurations.push(configuration))?)
    }

    /// Runs the commands of a run's configuration, and waits for the machine to come to rest, if the series does so
    /// before its runs. The other ranks wait for the run meanwhile.
    fn prepare(&self, writer: &SeriesWriter, next: &NextRun) -> Result<Preparation, Abort> {
        let series = writer.series();
        let config = config(series, next).map_err(Abort::Refused)?;
        let waits: Vec<&Settling> = series.runs.iter().flat_map(|run| &run.settling).collect();
        let preparation = prepare(
            self.host(),
            writer.dir().path(),
            &config,
            (&facts(series, next), series.ranks),
            &series.configuration(next.configuration).before,
            (series.kind.strategy().settle(), &waits),
        );
        if let Some(words) = preparation.settling.as_ref().and_then(Settling::words) {
            self.host().settled(&words);
        }
        Ok(preparation)
    }

    /// Makes a run after its preparation, and lists the run in the series.
    fn make(
        &mut self,
        writer: &mut SeriesWriter,
        next: &NextRun,
        preparation: Preparation,
    ) -> Result<(), Abort> {
        let written = self.run(writer, next).map_err(Abort::Refused)?;
        let Written {
            run,
            dir,
            unremoved,
        } = written;
        let label = label(writer.series(), next);
        let failed = run.commands.iter().filter_map(CommandRun::failure);
        let mut notes: Vec<String> = failed.map(|text| format!("{label}: {text}")).collect();
        if writer.series().shares_files() {
            self.busy = unremoved;
        } else {
            notes.extend(unremoved.iter().map(|text| format!("{label}: {text}")));
        }
        let results = dir?;
        let mut entry = SeriesRun::of(&run, next, &writer.name_of(&results));
        entry.settling = preparation.settling;
        entry.commands.splice(0..0, preparation.commands);
        writer.change(|series| {
            series.runs.push(entry);
            series.notes.extend(notes.into_iter().map(Note::from));
        })?;
        let listed = ListedRun::Now(&run, results.path());
        self.host().run_listed(writer.series(), listed);
        Ok(())
    }

    /// Makes a run with all ranks and writes the results.
    fn run(&mut self, writer: &SeriesWriter, next: &NextRun) -> Result<Written, SeriesError> {
        let series = writer.series();
        let config = config(series, next)?;
        system_text::check(&config.target, &series.program.version)?;
        self.context.events =
            events::read(&series.events, &config.target.url).map_err(SeriesError::Refused)?;
        next_config(self.context.communicator, || Ok(Some(config.clone())))?;
        let facts = facts(series, next);
        let written = self.context.run_as_root(&config, &facts, |started| {
            writer
                .dir()
                .run_writer(config.settings().clock(), next, &config.plan, started)
        });
        self.used |= written.is_ok();
        written
    }
}

impl SeriesDriver<'_> {
    /// Removes the shared files, unless the user asked to keep them or the series can be resumed. Files that a rank or
    /// worker may still be using are never removed, and this process keeps the claim of their directory; the next
    /// process takes the claim over once this process has ended. The series states what this process could not remove, in
    /// place of what an earlier process could not remove.
    fn clean(&self, writer: &mut SeriesWriter) -> Result<(), ResultsError> {
        let unremoved = self.end_files(writer.series(), writer.series().state.can_resume());
        if writer.series().unremoved == unremoved {
            return Ok(());
        }
        writer.change(|series| series.unremoved = unremoved)
    }

    /// Ends the use of the files that the runs of the series share: removes the files, or only releases the work
    /// directory, and returns sentences about files that could not be removed or released.
    fn end_files(&self, series: &Series, can_resume: bool) -> Vec<String> {
        if !series.shares_files() {
            return vec![];
        }
        let plan = series.first_plan();
        let stays = plan.options.keep || can_resume && !plan.work_dir.temporary;
        if !self.busy.is_empty() {
            return if stays { vec![] } else { self.busy.clone() };
        }
        let target = &series.first_target().url;
        if self.used
            && !stays
            && let Some(command) = plimsoll_engine::clean_commands(plan, target)
        {
            self.host().note(StateChange::CleanCommand(&command));
            self.host().note(StateChange::Removal(true));
            self.host().progress("removing the files");
        }
        match self.end_claim(series, stays) {
            Ok(unremoved) => unremoved,
            Err(text) if self.used => vec![text],
            Err(_) => vec![],
        }
    }

    /// Releases the claims of the shared directories and removes the files, unless `stays`. Returns a sentence per file
    /// that could not be removed.
    fn end_claim(&self, series: &Series, stays: bool) -> Result<Vec<String>, String> {
        let target = &series.first_target().url;
        if !plimsoll_target::keeps_files(target) {
            return Ok(vec![]);
        }
        self.host().note(StateChange::Removal(!stays));
        let directories = series.shared_directories();
        let ends = directories
            .iter()
            .map(|dir| self.end_claim_of(dir, target, stays));
        let ended: Result<Vec<Vec<String>>, String> = ends.collect();
        self.host().note(StateChange::Removal(false));
        Ok(ended?.concat())
    }

    /// Releases the claim of a directory and removes the files, unless `stays`.
    fn end_claim_of(&self, dir: &Path, target: &str, stays: bool) -> Result<Vec<String>, String> {
        let settings = Settings {
            target: target.to_owned(),
            ..Settings::default()
        };
        match plimsoll_engine::end_claim(dir, &settings, stays, self.host().stop()) {
            Ok(left) => Ok(left.unremoved),
            Err(e) if stays => Err(format!("the directory could not be released: {e}")),
            Err(e) => Err(format!("the files could not be removed: {e}")),
        }
    }

    /// Removes the shared files after a refusal, and adds warnings about failed removals to the refusal.
    fn clean_up_after_refusal(&self, refusal: SeriesError, series: &Series) -> SeriesError {
        if !series.shares_files() {
            return refusal;
        }
        // A claim that could not be ended is not reported, because the refusal may mean that another run uses the
        // directory.
        refusal.with_warnings(&self.end_claim(series, false).unwrap_or_default())
    }

    /// Error of a series whose results could not be written, with the stop reason of the series as a warning. The
    /// series can be resumed from the results on disk, so the files stay unless their directory is temporary.
    fn end_without_results(&self, e: ResultsError, writer: &SeriesWriter) -> SeriesError {
        let series = writer.series();
        let reason = series.stop_reason.iter().filter(|_| self.begun);
        let mut warnings: Vec<String> = reason.map(|reason| reason.text.clone()).collect();
        warnings.extend(self.end_files(series, true));
        let error = SeriesError::failed(e).with_warnings(&warnings);
        error.with_line(&writer.dir().resume_hint())
    }
}

/// Sentence about results of an earlier process for runs beyond the end of the series, which are kept; `None` without
/// such results.
fn beyond_end(writer: &SeriesWriter) -> Option<String> {
    let series = writer.series();
    let left = series.kind.strategy().independent(series);
    let there = left.iter().filter_map(|next| writer.unlisted(next));
    let names: Vec<String> = there.map(|run| run.directory).collect();
    let (what, verb) = match names.len() {
        0 => return None,
        1 => ("was", "stays"),
        _ => ("were", "stay"),
    };
    Some(format!(
        "beyond the end of the series, {} {what} measured by an earlier process and {verb}",
        names.join(", ")
    ))
}

/// Facts about the next run of a series, which is made in its turn.
fn facts(series: &Series, next: &NextRun) -> RunFacts {
    RunFacts {
        load: next.load,
        number: Some(series.runs.len() as u64 + 1),
        configuration: series.configuration(next.configuration).label(),
    }
}

/// Name of a run in the notes of the series: the load, the configuration of a profile or of a searched value, or the
/// results directory.
fn label(series: &Series, next: &NextRun) -> String {
    let configuration = series.configuration(next.configuration);
    let is_named = configuration.filesystem.is_some() || next.value.is_some();
    match next.load {
        Some(load) => format!("load {load}"),
        None if is_named => configuration.label().unwrap_or_default(),
        None => next.directory.clone(),
    }
}
