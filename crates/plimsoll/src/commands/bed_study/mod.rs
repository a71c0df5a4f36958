//! `study`: the studies on test beds, each a list of commands on beds that it starts and ends.

mod delegations;
mod edge;
mod replicas;
mod runner;

use crate::cli::{BedStudyArgs, StudyCommand, UpArgs};
use crate::exit::{CommandError, Exit};
use plimsoll_plan::show_duration;
use plimsoll_report::bed_study;
use plimsoll_results::{
    Document, Environment, Program, StudyAction, StudyBed, StudyResults, StudyStep, StudyWriter,
};
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
                return super::print(&bed_study::plan(&study));
            }
            let reasons = study.beds.iter().map(|b| b.unavailable.as_deref());
            if let Some(reasons) = reasons.collect::<Option<Vec<_>>>() {
                let mut reasons: Vec<&str> = reasons;
                reasons.dedup();
                return Err(CommandError::usage(reasons.join("\n")));
            }
            StudyWriter::create(&args.results, study, SystemTime::now())
                .map_err(crate::run_context::results_path_error)?
        }
    };
    StudyRunner::new(writer, args.format, args.quiet)?.run()
}

/// The study in a directory, to do what is left of it.
fn resumed(dir: &Path, name: &str) -> Result<StudyWriter, CommandError> {
    let mut writer = StudyWriter::resume(dir).map_err(CommandError::usage)?;
    let found = &writer.document().study;
    if found != name {
        return Err(CommandError::usage(format!(
            "{} is the study {found}: resume it with plimsoll study {found} --resume",
            dir.display()
        )));
    }
    let mut checked = writer.document().clone();
    check_beds(&mut checked)?;
    writer
        .change(|study| {
            study.beds = checked.beds;
            study.interrupted = false;
        })
        .map_err(CommandError::failed)?;
    Ok(writer)
}

/// Notes which beds this machine cannot have, and why.
fn check_beds(study: &mut StudyResults) -> Result<(), CommandError> {
    for bed in &mut study.beds {
        let up = UpArgs::of_words(&bed.arguments)?;
        let kind = plimsoll_testbed::find_kind(&up.kind)?;
        let checked = plimsoll_testbed::check(kind, &up.options());
        bed.unavailable = match checked {
            Err(plimsoll_testbed::BedError::Usage(why)) => return Err(CommandError::usage(why)),
            other => other.err().map(|e| e.to_string()),
        };
    }
    Ok(())
}

/// What a study asks, and what it does to find out.
struct StudyDesign {
    question: String,
    notes: Vec<String>,
    beds: Vec<StudyBed>,
    steps: Vec<StudyStep>,
}

impl StudyDesign {
    fn new(question: &str, notes: &[&str]) -> Self {
        Self {
            question: question.into(),
            notes: notes.iter().map(|n| (*n).to_owned()).collect(),
            beds: vec![],
            steps: vec![],
        }
    }

    /// Adds a bed; the steps that follow are done on it.
    fn bed(&mut self, name: String, arguments: Vec<String>) {
        self.beds.push(StudyBed {
            name,
            arguments,
            unavailable: None,
        });
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
const ONE_MACHINE: &str = "all nodes and the load share one machine: the figures compare access paths and \
                           configurations of the same study, and are no performance of the software";
