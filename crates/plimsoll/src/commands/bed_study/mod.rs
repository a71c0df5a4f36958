//! `study`: the studies on test beds, each a list of commands on beds that it starts and ends.

mod delegations;
mod edge;
mod replicas;
mod runner;

use crate::cli::{BedStudyArgs, Format, StudyCommand, UpArgs};
use crate::exit::{CommandError, Exit};
use plimsoll_plan::show_duration;
use plimsoll_report::bed_study;
use plimsoll_results::{
    Document, Environment, Program, STUDY_FILE, StudyAction, StudyBed, StudyResults, StudyStep,
    StudyWriter,
};
use plimsoll_series::SeriesError;
use runner::StudyRunner;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Runs a study.
pub fn run(study: StudyCommand) -> Result<Exit, CommandError> {
    match study {
        StudyCommand::Nfs4Opens(args) => super::study::run(*args),
        StudyCommand::Edge(args) => on_beds(&args.study, edge::NAME, || edge::design(&args)),
        StudyCommand::Replicas(args) => {
            on_beds(&args.study, replicas::NAME, || replicas::design(&args))
        }
        StudyCommand::Delegations(args) => on_beds(&args.study, delegations::NAME, || {
            delegations::design(&args)
        }),
    }
}

/// Begins a study on test beds, or resumes one.
fn on_beds(
    args: &BedStudyArgs,
    name: &str,
    design: impl FnOnce() -> Result<StudyDesign, CommandError>,
) -> Result<Exit, CommandError> {
    let writer = match &args.resume {
        Some(dir) => resumed(dir, name)?,
        None => {
            let mut study = design()?.into_results(name);
            check_beds(&mut study)?;
            if args.dry_run {
                return super::print(&match args.format {
                    Format::Text => bed_study::plan(&study),
                    Format::Json => study.to_json(),
                });
            }
            refuse_if_nothing_is_available(&study)?;
            let name = format!("{name}-study");
            StudyWriter::create(&args.results, &name, study, SystemTime::now())
                .map_err(|e| SeriesError::results_path(&e))?
        }
    };
    StudyRunner::new(writer, args.format, args.quiet)?.run()
}

/// The study in a directory, to do what is left of it.
fn resumed(dir: &Path, name: &str) -> Result<StudyWriter, CommandError> {
    let mut writer = StudyWriter::resume(dir).map_err(CommandError::usage)?;
    let mut study = writer.document().clone();
    if study.study != name {
        let found = &study.study;
        return Err(CommandError::usage(format!(
            "{} is the study {found}: resume it with plimsoll study {found} --resume",
            dir.display()
        )));
    }
    study
        .check()
        .map_err(|why| CommandError::usage(format!("{}: {why}", dir.join(STUDY_FILE).display())))?;
    check_beds(&mut study)?;
    if study.missing() > 0 {
        refuse_if_nothing_is_available(&study)?;
    }
    study.interrupted = false;
    writer
        .change(|old| *old = study)
        .map_err(CommandError::failed)?;
    Ok(writer)
}

/// Notes which of the beds that are needed this machine cannot have, and why.
fn check_beds(study: &mut StudyResults) -> Result<(), CommandError> {
    for number in 0..study.beds.len() {
        if study.due(&study.beds[number].name).is_empty() {
            continue;
        }
        let bed = &mut study.beds[number];
        let up = UpArgs::of_words(&bed.arguments)?;
        let kind = plimsoll_testbed::find_kind(&up.kind)?;
        let checked = plimsoll_testbed::check(kind, &up.options());
        bed.failure = None;
        // Also a number of servers that suits one software and not another.
        bed.unavailable = checked.err().map(|e| e.to_string());
    }
    Ok(())
}

/// Refuses a study none of whose remaining beds can be had.
fn refuse_if_nothing_is_available(study: &StudyResults) -> Result<(), CommandError> {
    let needed = study.beds.iter().filter(|b| !study.due(&b.name).is_empty());
    let reasons = needed.map(|b| b.unavailable.as_deref());
    let Some(mut reasons) = reasons.collect::<Option<Vec<&str>>>() else {
        return Ok(());
    };
    reasons.dedup();
    Err(CommandError::usage(reasons.join("\n")))
}

/// What a study asks, and what it does to find out.
struct StudyDesign {
    question: String,
    notes: Vec<String>,
    beds: Vec<StudyBed>,
    steps: Vec<StudyStep>,
    unit: u32,
}

impl StudyDesign {
    fn new(question: &str, notes: &[&str]) -> Self {
        Self {
            question: question.into(),
            notes: notes.iter().map(|n| (*n).to_owned()).collect(),
            beds: vec![],
            steps: vec![],
            unit: 0,
        }
    }

    /// Adds a bed; the steps that follow are done on it.
    fn bed(&mut self, name: String, arguments: Vec<String>) {
        self.beds.push(StudyBed {
            name,
            arguments,
            unavailable: None,
            failure: None,
        });
        self.unit();
    }

    /// Begins a unit: the steps that follow are done in one go, on one bed.
    fn unit(&mut self) {
        self.unit += 1;
    }

    /// The target of the last bed, or one of its several targets.
    fn target(&self, name: &str) -> String {
        let bed = &self.beds.last().expect("a bed comes before its steps").name;
        match name {
            "" => format!("testbed:{bed}"),
            name => format!("testbed:{bed}/{name}"),
        }
    }

    fn step(&mut self, group: &str, column: &str, action: StudyAction) {
        let bed = self.beds.last().expect("a bed comes before its steps");
        self.steps.push(StudyStep {
            bed: bed.name.clone(),
            unit: self.unit,
            group: group.into(),
            column: column.into(),
            action,
            state: None,
            seconds: 0.0,
            results: None,
            status: vec![],
            error: None,
        });
    }

    fn into_results(self, name: &str) -> StudyResults {
        StudyResults {
            schema_version: StudyResults::SCHEMA,
            study: name.to_owned(),
            question: self.question,
            started_at: jiff::Timestamp::now().to_string(),
            interrupted: false,
            beds: self.beds,
            steps: self.steps,
            program: Program::plimsoll(),
            notes: self.notes,
            environment: Environment::look(None),
        }
    }
}

/// Words of a command line.
fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|w| (*w).to_owned()).collect()
}

/// A time as options take it.
fn time(of: Duration) -> String {
    match of.is_zero() {
        true => "0ms".into(),
        false => show_duration(of),
    }
}

/// The note of every study: what its figures are not.
const ONE_MACHINE: &str = "all nodes and the load share one machine: the figures compare configurations of this study, \
                           and say nothing about how fast the software is on hardware of its own";

/// The note of every study: how much of its figures is chance.
const ONE_WINDOW: &str = "every figure is one window of some seconds, on processors that nodes and load share: one \
                          window does not tell a small difference from chance, and a single pause of a server \
                          changes a mean of some milliseconds (compare medians)";
