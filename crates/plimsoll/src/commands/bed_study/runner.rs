//! Does the steps of a study, bed by bed.

use crate::cli::{Format, UpArgs};
use crate::commands::print_report;
use crate::commands::testbed::{CaughtSignals, start_bed};
use crate::console;
use crate::exit::{CommandError, Exit};
use plimsoll_report::bed_study;
use plimsoll_results::{
    COMPARISON_FILE, DISCLOSURE_SUFFIX, Document, Kind, Run, RunDir, Status, StepState,
    StudyAction, StudyWriter,
};
use plimsoll_testbed::TestBed;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time between two looks at signals during a pause.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A study that is being run.
pub(super) struct StudyRunner {
    writer: StudyWriter,
    format: Format,
    is_quiet: bool,
    signals: CaughtSignals,
}

/// What came of a step.
#[derive(Default)]
struct StepEnd {
    state: Option<StepState>,
    results: Option<String>,
    status: Vec<String>,
    error: Option<String>,
    /// Whether the bed is in sync, of its status.
    is_in_sync: Option<bool>,
}

impl StepEnd {
    /// A status that only prepares what is measured next has failed if the bed is not in sync.
    fn required(mut self) -> Self {
        if self.is_in_sync == Some(false) && self.state == Some(StepState::Valid) {
            self.state = Some(StepState::Failed);
            self.error = self.status.last().cloned();
        }
        self
    }
}

impl StudyRunner {
    /// # Errors
    /// If signals cannot be caught.
    pub(super) fn new(
        writer: StudyWriter,
        format: Format,
        is_quiet: bool,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            writer,
            format,
            is_quiet,
            signals: CaughtSignals::new()?,
        })
    }

    /// Does what is left, and prints the report.
    ///
    /// # Errors
    /// If the results cannot be written.
    pub(super) fn run(mut self) -> Result<Exit, CommandError> {
        let beds = self.writer.document().beds.len();
        for bed in 0..beds {
            if self.signals.any() {
                break;
            }
            self.bed(bed)?;
        }
        if self.signals.any() {
            self.change(|study| study.interrupted = true)?;
        }
        self.report()?;
        Ok(match self.writer.document().status() {
            Status::Valid | Status::Invalid => Exit::Valid,
            Status::Interrupted => Exit::Interrupted,
            Status::Failed | Status::Unfinished => Exit::Failed,
        })
    }

    fn change(
        &mut self,
        change: impl FnOnce(&mut plimsoll_results::StudyResults),
    ) -> Result<(), CommandError> {
        self.writer.change(change).map_err(CommandError::failed)
    }

    fn say(&self, line: &str) {
        if !self.is_quiet {
            match self.format {
                // A reader that has gone is not an error.
                Format::Text => _ = console::out(&format!("{line}\n")),
                Format::Json => console::err(&format!("{line}\n")),
            }
        }
    }

    /// Starts a bed, does its steps and ends it.
    fn bed(&mut self, number: usize) -> Result<(), CommandError> {
        let bed = self.writer.document().beds[number].clone();
        let due = self.writer.document().due(&bed.name);
        if due.is_empty() || bed.unavailable.is_some() {
            return Ok(());
        }
        let up = UpArgs {
            name: Some(bed.name.clone()),
            quiet: self.is_quiet,
            ..UpArgs::of_words(&bed.arguments)?
        };
        let started = match start_bed(&up, &self.signals, true) {
            Ok(started) => started,
            Err(_) if self.signals.any() => return Ok(()),
            Err(e) => {
                let why = e.message.trim().trim_start_matches("error: ").to_owned();
                self.say(&format!("{}: {why}", bed.name));
                return self.change(|study| study.beds[number].failure = Some(why));
            }
        };
        let mut failed_unit = None;
        for step in due {
            let unit = self.writer.document().steps[step].unit;
            if self.signals.any() {
                break;
            }
            // What follows would be measured on a bed that is not as it is to be.
            if failed_unit == Some(unit) {
                continue;
            }
            self.step(&started, step)?;
            let state = self.writer.document().steps[step].state;
            if state == Some(StepState::Failed) {
                failed_unit = Some(unit);
            }
        }
        if let Err(e) = started.end() {
            let why = format!("it does not end: {e}");
            self.say(&format!("{}: {why}", bed.name));
            self.change(|study| study.beds[number].failure = Some(why))?;
        }
        Ok(())
    }

    /// Does a step and writes what came of it.
    fn step(&mut self, bed: &TestBed, number: usize) -> Result<(), CommandError> {
        let step = self.writer.document().steps[number].clone();
        let begun = Instant::now();
        let end = match &step.action {
            StudyAction::Prepare(words) => self.prepare(words)?,
            StudyAction::Measure(words) => self.measure(words, &step.bed, number)?,
            StudyAction::Status { wait_s } => {
                let end = self.status(bed, Duration::from_secs(*wait_s));
                match step.group.is_empty() {
                    true => end.required(),
                    false => end,
                }
            }
            StudyAction::Pause { seconds } => self.pause(Duration::from_secs(*seconds)),
        };
        let seconds = begun.elapsed().as_secs_f64();
        self.change(|study| {
            let step = &mut study.steps[number];
            step.state = end.state;
            step.seconds = seconds;
            step.results = end.results;
            step.status = end.status;
            step.error = end.error;
        })?;
        let study = self.writer.document();
        let step = &study.steps[number];
        let run = self.writer.dir().kind(step);
        let run = run.filter(|(_, kind)| *kind == Kind::Run);
        let run: Option<Run> = run.and_then(|(path, _)| RunDir::at(&path).read().ok());
        self.say(&bed_study::line(
            number + 1,
            study.steps.len(),
            step,
            run.as_ref(),
        ));
        Ok(())
    }

    fn prepare(&self, words: &[String]) -> Result<StepEnd, CommandError> {
        let (status, said) = self.command(words, &[])?;
        Ok(StepEnd {
            state: Some(self.state_of(status)),
            error: failure(status, said).filter(|_| !self.signals.any()),
            ..StepEnd::default()
        })
    }

    /// Runs a command whose results go below the directory of its bed, into one of its own: what an
    /// earlier attempt may still write there is not taken for its results.
    fn measure(&self, words: &[String], bed: &str, number: usize) -> Result<StepEnd, CommandError> {
        let root = new_directory(&self.writer.dir().path().join(bed), number + 1)?;
        let paths = ["--quiet".as_ref(), "--results".as_ref(), root.as_path()];
        let (status, said) = self.command(words, &paths)?;
        let made = plimsoll_results::directories(&root).unwrap_or_default();
        let made = made.into_iter().next();
        let state = self.state_of(status);
        let mut notes = Vec::new();
        match &made {
            Some(made) if Kind::of(made).is_ok_and(|k| [Kind::Curve, Kind::Run].contains(&k)) => {
                if [StepState::Valid, StepState::Invalid].contains(&state) {
                    let why = self.disclose(made)?;
                    notes.extend(why.map(|why| format!("no disclosure report: {why}")));
                }
            }
            Some(_) => {}
            // It holds nothing.
            None => _ = std::fs::remove_dir(&root),
        }
        let results = made.as_deref().and_then(|made| {
            let path = made.strip_prefix(self.writer.dir().path()).ok()?;
            Some(path.to_string_lossy().into_owned())
        });
        Ok(StepEnd {
            state: Some(state),
            results,
            status: notes,
            error: failure(status, said).filter(|_| state == StepState::Failed),
            is_in_sync: None,
        })
    }

    /// Writes the full disclosure report of a curve or run beside it; returns why that failed.
    fn disclose(&self, results: &Path) -> Result<Option<String>, CommandError> {
        let name = results.file_name().unwrap_or_default().to_string_lossy();
        let report = results.with_file_name(format!("{name}{DISCLOSURE_SUFFIX}"));
        let words = ["report", "--format=disclosure"].map(str::to_owned);
        let paths = [results, "--output".as_ref(), &report];
        let (status, said) = self.command(&words, &paths)?;
        Ok(failure(status, said))
    }

    /// Runs a command of this program; returns how it ended and what it wrote to standard error.
    fn command(
        &self,
        words: &[String],
        paths: &[&Path],
    ) -> Result<(ExitStatus, String), CommandError> {
        let failed = |e: std::io::Error| CommandError::failed(format!("cannot run a step: {e}"));
        let mut errors = tempfile::tempfile().map_err(failed)?;
        let mut child = Command::new(std::env::current_exe().map_err(failed)?)
            .args(words)
            .args(paths)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.try_clone().map_err(failed)?)
            // It gets an interrupt once, wherever that comes from.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let status = self.signals.end_and_wait_for(&mut child).map_err(failed)?;
        Ok((status, said(&mut errors).map_err(failed)?))
    }

    fn state_of(&self, status: ExitStatus) -> StepState {
        match status.code() {
            Some(0) => StepState::Valid,
            Some(3) => StepState::Invalid,
            Some(130) => StepState::Interrupted,
            _ if self.signals.any() => StepState::Interrupted,
            _ => StepState::Failed,
        }
    }

    /// The status of a bed, once it is in sync, or when the time for that is up.
    fn status(&self, bed: &TestBed, limit: Duration) -> StepEnd {
        let begun = Instant::now();
        let status = match bed.status_when_in_sync(limit, || self.signals.any()) {
            Ok(status) => status,
            Err(e) => {
                return StepEnd {
                    state: Some(StepState::Failed),
                    error: Some(e.to_string()),
                    ..StepEnd::default()
                };
            }
        };
        let mut lines = status.lines;
        let waited = begun.elapsed().as_secs_f64();
        match status.is_in_sync.filter(|_| !limit.is_zero()) {
            Some(true) => lines.push(format!("in sync after {waited:.1} s")),
            Some(false) => lines.push(format!("not in sync after {waited:.0} s")),
            None => {}
        }
        StepEnd {
            state: Some(match self.signals.any() {
                true => StepState::Interrupted,
                false => StepState::Valid,
            }),
            status: lines,
            is_in_sync: status.is_in_sync,
            ..StepEnd::default()
        }
    }

    fn pause(&self, length: Duration) -> StepEnd {
        let begun = Instant::now();
        while begun.elapsed() < length && !self.signals.any() {
            std::thread::sleep(POLL_INTERVAL.min(length));
        }
        StepEnd {
            state: Some(match self.signals.any() {
                true => StepState::Interrupted,
                false => StepState::Valid,
            }),
            ..StepEnd::default()
        }
    }

    /// Writes the page and prints the report.
    fn report(&self) -> Result<(), CommandError> {
        let (study, dir) = (self.writer.document(), self.writer.dir());
        let sections = bed_study::sections(study, dir);
        let page = plimsoll_html::page::study(study, &sections);
        self.writer
            .write(COMPARISON_FILE, &page)
            .map_err(CommandError::failed)?;
        print_report(
            self.format,
            || study.to_json(),
            |layout| bed_study::render(study, &sections, Some(dir.path()), layout),
        )
    }
}

/// A new directory for the results of a step: the number of the step, and after it that of the attempt if
/// there was one before.
fn new_directory(bed: &Path, step: usize) -> Result<PathBuf, CommandError> {
    let failed =
        |e: std::io::Error| CommandError::failed(format!("cannot create {}: {e}", bed.display()));
    std::fs::create_dir_all(bed).map_err(failed)?;
    for attempt in 1.. {
        let name = match attempt {
            1 => format!("step-{step}"),
            attempt => format!("step-{step}-{attempt}"),
        };
        let path = bed.join(name);
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(failed(e)),
        }
    }
    unreachable!("there are more numbers than attempts")
}

/// What a command wrote.
fn said(errors: &mut File) -> std::io::Result<String> {
    let mut text = Vec::new();
    errors.rewind()?;
    errors.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The last line of a command that failed.
fn failure(status: ExitStatus, said: String) -> Option<String> {
    if let Some(0 | 3 | 130) = status.code() {
        return None;
    }
    let last = said.lines().rev().find(|l| !l.trim().is_empty());
    Some(match (last, status.signal()) {
        (Some(line), _) => line.trim_start_matches("error: ").to_owned(),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => format!("it ended with {status}, and wrote nothing"),
    })
}
