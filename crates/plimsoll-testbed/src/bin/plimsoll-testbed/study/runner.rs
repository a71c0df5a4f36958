//! Does the steps of a study, bed by bed.

use super::options::StudyOutput;
use super::report_text;
use crate::beds;
use crate::benchmark;
use crate::cli::{Format, UpArgs};
use crate::exit::Exit;
use crate::on::on_bed;
use crate::print;
use crate::signals::CaughtSignals;
use plimsoll_report::console;
use plimsoll_results::{Kind, Run, RunDir};
use plimsoll_testbed::study::{
    StepState, StudyAction, StudyResults, StudyState, StudyWriter, report, results_of,
};
use plimsoll_testbed::{BedError, TestBed};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Time between two checks for signals during a pause.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Suffix of the name of the directory into which the command of a step writes results.
const UNFINISHED: &str = ".unfinished";

/// A study that is being run.
pub(super) struct StudyRunner {
    writer: StudyWriter,
    format: Format,
    is_quiet: bool,
    signals: CaughtSignals,
}

#[derive(Default)]
struct StepEnd {
    state: Option<StepState>,
    results: Option<String>,
    status: Vec<String>,
    error: Option<String>,
    /// Whether the bed is in sync, if the step asked for the status.
    is_in_sync: Option<bool>,
}

impl StepEnd {
    /// The outcome of a step that prepares a measurement: failed if the bed is not in sync.
    fn required(mut self) -> Self {
        if self.is_in_sync == Some(false) && self.state == Some(StepState::Valid) {
            self.state = Some(StepState::Failed);
            self.error = self.status.last().cloned();
        }
        self
    }
}

impl StudyRunner {
    /// Prepares the run of a study, and begins to catch signals.
    ///
    /// # Errors
    /// If signals cannot be caught.
    pub(super) fn new(writer: StudyWriter, output: &StudyOutput) -> Result<Self, BedError> {
        Ok(Self {
            writer,
            format: output.format,
            is_quiet: output.quiet,
            signals: CaughtSignals::new()?,
        })
    }

    /// Does the remaining steps, and prints the report.
    ///
    /// # Errors
    /// If the results cannot be written.
    pub(super) fn run(mut self) -> Result<Exit, BedError> {
        let beds = self.writer.document().beds.len();
        for bed in 0..beds {
            if self.signals.any() {
                break;
            }
            self.on_bed(bed)?;
        }
        let without_bed = self.writer.document().due(None);
        self.steps(None, &without_bed)?;
        if self.signals.any() {
            self.change(|study| study.interrupted = true)?;
        }
        let study = self.writer.document();
        let text = report_text(study, self.writer.dir(), self.format);
        print(&match self.format {
            Format::Json => text,
            Format::Text => format!("\n{text}"),
        })?;
        Ok(match study.state() {
            StudyState::Complete => Exit::DONE,
            StudyState::Interrupted => Exit::INTERRUPTED,
            StudyState::Failed | StudyState::Unfinished => Exit::FAILED,
        })
    }

    fn change(&mut self, change: impl FnOnce(&mut StudyResults)) -> Result<(), BedError> {
        let changed = self.writer.change(change);
        changed.map_err(|e| BedError::failed("cannot write the study", e))
    }

    fn say(&self, line: &str) {
        if !self.is_quiet {
            match self.format {
                // A closed pipe is not an error.
                Format::Text => _ = console::out(&format!("{line}\n")),
                Format::Json => console::err(&format!("{line}\n")),
            }
        }
    }

    /// Starts the bed with index `number` in the study, does the missing steps on the bed, and ends the bed. A bed
    /// without missing steps is not started.
    fn on_bed(&mut self, number: usize) -> Result<(), BedError> {
        let bed = self.writer.document().beds[number].clone();
        let due = self.writer.document().due(Some(&bed.name));
        if due.is_empty() || bed.unavailable.is_some() {
            return Ok(());
        }
        let up = UpArgs {
            name: Some(bed.name.clone()),
            quiet: self.is_quiet,
            ..UpArgs::of_words(&bed.arguments)?
        };
        let started = match beds::start(&up, &self.signals, true) {
            Ok(Some(started)) => started,
            Ok(None) => return Ok(()),
            Err(e) => return self.bed_failed(number, e.to_string()),
        };
        let done = self.steps(Some(&started), &due);
        if let Err(e) = started.end() {
            self.bed_failed(number, format!("the bed does not end: {e}"))?;
        }
        done
    }

    fn bed_failed(&mut self, number: usize, why: String) -> Result<(), BedError> {
        self.say(&format!(
            "{}: {why}",
            self.writer.document().beds[number].name
        ));
        self.change(|study| study.beds[number].failure = Some(why))
    }

    /// Does the steps with the numbers `due`. After a failed step, skips the other steps of its unit: the bed is not in
    /// the state that the other steps need.
    fn steps(&mut self, bed: Option<&TestBed>, due: &[usize]) -> Result<(), BedError> {
        let mut failed_unit = None;
        for step in due.iter().copied() {
            let unit = self.writer.document().steps[step].unit;
            if self.signals.any() {
                break;
            }
            if failed_unit == Some(unit) {
                continue;
            }
            self.step(bed, step)?;
            if self.writer.document().steps[step].state == Some(StepState::Failed) {
                failed_unit = Some(unit);
            }
        }
        Ok(())
    }

    /// Does a step and records its outcome.
    fn step(&mut self, bed: Option<&TestBed>, number: usize) -> Result<(), BedError> {
        let step = self.writer.document().steps[number].clone();
        let begun = Instant::now();
        let end = match &step.action {
            StudyAction::Prepare(words) => self.prepare(bed, words)?,
            StudyAction::Measure(words) => self.measure(bed, words, number)?,
            StudyAction::Status { wait_s } => {
                let bed = bed.expect("a status step has a bed");
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
        let run = results_of(self.writer.dir(), step);
        let run = run.filter(|path| Kind::of(path).is_ok_and(|kind| kind == Kind::Run));
        let run: Option<Run> = run.and_then(|path| RunDir::at(&path).read().ok());
        self.say(&report::line(
            number + 1,
            study.steps.len(),
            step,
            run.as_ref(),
        ));
        Ok(())
    }

    fn prepare(&self, bed: Option<&TestBed>, words: &[String]) -> Result<StepEnd, BedError> {
        let (status, said) = self.command(bed, words, &[])?;
        Ok(StepEnd {
            state: Some(self.state_of(status)),
            error: failure(status, said).filter(|_| !self.signals.any()),
            ..StepEnd::default()
        })
    }

    /// Runs a command and adopts its results into the study. The command writes into a new directory, so that a command
    /// of an earlier attempt that still runs cannot add results to the step.
    fn measure(
        &self,
        bed: Option<&TestBed>,
        words: &[String],
        number: usize,
    ) -> Result<StepEnd, BedError> {
        let root = self.writer.dir().path();
        let name = self.writer.document().results_name(number);
        let unfinished = new_directory(root, &format!("{name}{UNFINISHED}"))?;
        let paths = [
            "--quiet".as_ref(),
            "--results".as_ref(),
            unfinished.as_path(),
        ];
        let (status, said) = self.command(bed, words, &paths)?;
        let made = plimsoll_results::directories(&unfinished).unwrap_or_default();
        let results = match made.first() {
            Some(made) => {
                let adopted = self.writer.adopt(made, &name);
                Some(
                    adopted
                        .map_err(|e| BedError::failed("cannot keep the results of a step", e))?,
                )
            }
            None => None,
        };
        // Fails, and leaves the directory, if a process has left a file in the directory.
        let _ = std::fs::remove_dir(&unfinished);
        let state = self.state_of(status);
        Ok(StepEnd {
            state: Some(state),
            results,
            error: failure(status, said).filter(|_| state == StepState::Failed),
            ..StepEnd::default()
        })
    }

    /// Runs a command of plimsoll, on `bed` if given; returns the exit status and the standard error of the command.
    fn command(
        &self,
        bed: Option<&TestBed>,
        words: &[String],
        paths: &[&Path],
    ) -> Result<(ExitStatus, String), BedError> {
        let mut command = match bed {
            Some(bed) => on_bed(&bed.state().name, words)?,
            None => {
                let mut command = benchmark::command()?;
                command.args(words);
                command
            }
        };
        let failed = |e: std::io::Error| BedError::failed("cannot run a step", e);
        let mut errors = tempfile::tempfile().map_err(failed)?;
        let mut child = command
            .args(paths)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.try_clone().map_err(failed)?)
            // In its own process group, the command gets an interrupt only once, from this process: Ctrl-C in a
            // terminal signals every process of the terminal's group.
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

    /// Waits until the bed is in sync, at most `limit`; returns the status of the bed.
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
}

/// Creates the directory `name` below `root`; appends a number if a directory of an earlier attempt has the name.
fn new_directory(root: &Path, name: &str) -> Result<PathBuf, BedError> {
    for attempt in 1.. {
        let path = match attempt {
            1 => root.join(name),
            attempt => root.join(format!("{name}-{attempt}")),
        };
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => {
                let what = format!("cannot create {}", path.display());
                return Err(BedError::failed(what, e));
            }
        }
    }
    unreachable!("there are more numbers than attempts")
}

/// The standard error of a command, from the beginning.
fn said(errors: &mut File) -> std::io::Result<String> {
    let mut text = Vec::new();
    errors.rewind()?;
    errors.read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The last line that a failed command wrote; `None` for the exit codes 0, 3 and 130.
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
