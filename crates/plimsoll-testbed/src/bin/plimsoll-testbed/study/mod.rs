//! `study`: studies, each a list of commands of plimsoll, on test beds that the study starts and ends or on a server of
//! the user.
//!
//! Each study has a module that makes its [`StudyDesign`]; `runner` does the steps and keeps the document of the study
//! up to date. `resume` designs the study again from the arguments in the document, and never runs the commands in the
//! document: another user may have written the document.

mod edge;
mod nfs4_opens;
pub mod options;
mod replicas;
mod runner;

use crate::cli::{Format, UpArgs};
use crate::exit::Exit;
use crate::print;
use clap::Parser;
use options::{Study, StudyCommand, StudyOutput};
use plimsoll_plan::{shell_words, show_duration};
use plimsoll_report::console::Stream;
use plimsoll_results::{Document, Environment, Program};
use plimsoll_testbed::BedError;
use plimsoll_testbed::study::{
    StudyAction, StudyBed, StudyDir, StudyResults, StudyStep, StudyWriter, report,
};
use runner::StudyRunner;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Number of words on a command line before the name of a study: the program, and `study`.
const WORDS_BEFORE: usize = 2;

/// Begins, resumes or reports a study. `line` is the whole command line.
pub fn run(command: &StudyCommand, line: &[OsString]) -> Result<Exit, BedError> {
    match command {
        StudyCommand::Begin(study) => {
            let arguments = line.iter().skip(WORDS_BEFORE);
            let arguments = arguments.map(|word| word.to_string_lossy().into_owned());
            begin(study, arguments.collect())
        }
        StudyCommand::Resume { dir, output } => resume(dir, output),
        StudyCommand::Report { dir, format } => {
            let dir = StudyDir::at(dir);
            let study = dir.read().map_err(usage)?;
            print(&report_text(&study, &dir, *format))
        }
    }
}

fn usage(e: impl ToString) -> BedError {
    BedError::Usage(e.to_string())
}

/// The report of a study in a format.
fn report_text(study: &StudyResults, dir: &StudyDir, format: Format) -> String {
    match format {
        Format::Json => study.to_json(),
        Format::Text => report::render(study, dir, Stream::Out.layout()),
    }
}

fn begin(study: &Study, arguments: Vec<String>) -> Result<Exit, BedError> {
    let args = study.common();
    let mut results = design(study)?.into_results(arguments);
    check_beds(&mut results)?;
    if args.dry_run {
        return print(&match args.output.format {
            Format::Text => report::plan(&results),
            Format::Json => results.to_json(),
        });
    }
    refuse_if_nothing_is_available(&results)?;
    let name = format!("{}-study", results.study);
    let writer = StudyWriter::create(&args.results, &name, results, SystemTime::now());
    let writer = writer.map_err(|e| {
        usage(format!(
            "{e}; --results chooses another directory for the results"
        ))
    })?;
    StudyRunner::new(writer, &args.output)?.run()
}

/// The arguments with which a study was begun.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct BegunStudy {
    #[command(subcommand)]
    study: Study,
}

fn resume(dir: &Path, output: &StudyOutput) -> Result<Exit, BedError> {
    let mut writer = StudyWriter::resume(dir).map_err(usage)?;
    let mut study = writer.document().clone();
    let begun = BegunStudy::try_parse_from(&study.arguments);
    let begun = begun.map_err(|e| usage(format!("{}: {e}", dir.display())))?;
    if !design(&begun.study)?.is_that_of(&study) {
        return Err(usage(format!(
            "{}: its steps are not the steps of `plimsoll testbed study {}`: the study was edited, or another version of this \
             program began the study",
            dir.display(),
            shell_words(&study.arguments)
        )));
    }
    check_beds(&mut study)?;
    if study.missing() > 0 {
        refuse_if_nothing_is_available(&study)?;
    }
    study.interrupted = false;
    writer
        .change(|old| *old = study)
        .map_err(|e| BedError::failed("cannot write the study", e))?;
    StudyRunner::new(writer, output)?.run()
}

/// The beds and steps of a study with its arguments.
fn design(study: &Study) -> Result<StudyDesign, BedError> {
    match study {
        Study::Edge(args) => edge::design(args),
        Study::Replicas(args) => replicas::design(args),
        Study::Nfs4Opens(args) => nfs4_opens::design(args),
    }
}

/// Notes in the document why the machine cannot have a bed, for each bed with steps to be done.
fn check_beds(study: &mut StudyResults) -> Result<(), BedError> {
    for number in 0..study.beds.len() {
        if study.due(Some(&study.beds[number].name)).is_empty() {
            continue;
        }
        let bed = &mut study.beds[number];
        let up = UpArgs::of_words(&bed.arguments)?;
        let kind = plimsoll_testbed::find_kind(&up.kind)?;
        let checked = plimsoll_testbed::check(kind, &up.options());
        bed.failure = None;
        // Options can be wrong for one bed only: a number of servers suits one software and not another.
        bed.unavailable = checked.err().map(|e| e.to_string());
    }
    Ok(())
}

/// Refuses a study if all beds with steps to be done are unavailable.
fn refuse_if_nothing_is_available(study: &StudyResults) -> Result<(), BedError> {
    let is_needed = |bed: &&StudyBed| !study.due(Some(&bed.name)).is_empty();
    let needed: Vec<&StudyBed> = study.beds.iter().filter(is_needed).collect();
    let reasons = needed.iter().map(|b| b.unavailable.as_deref());
    match reasons.collect::<Option<Vec<&str>>>() {
        Some(mut reasons) if !reasons.is_empty() => {
            reasons.dedup();
            Err(usage(reasons.join("\n")))
        }
        _ => Ok(()),
    }
}

/// Design of a study, from the command line: question, notes, beds, and steps that are still to be done.
struct StudyDesign {
    name: &'static str,
    question: &'static str,
    notes: Vec<String>,
    beds: Vec<StudyBed>,
    steps: Vec<StudyStep>,
    unit: u32,
}

impl StudyDesign {
    fn new(name: &'static str, question: &'static str, notes: &[&str]) -> Self {
        Self {
            name,
            question,
            notes: notes.iter().map(|n| (*n).to_owned()).collect(),
            beds: vec![],
            steps: vec![],
            unit: 0,
        }
    }

    /// Adds a bed for the steps that are added next.
    fn bed(&mut self, name: String, arguments: Vec<String>) {
        self.beds.push(StudyBed {
            name,
            arguments,
            unavailable: None,
            failure: None,
        });
        self.unit();
    }

    /// Begins a unit of steps, which are repeated together when a study is resumed.
    fn unit(&mut self) {
        self.unit += 1;
    }

    /// Name of the last added bed, on which the next steps run; `None` before the first bed.
    fn bed_name(&self) -> Option<&str> {
        self.beds.last().map(|bed| bed.name.as_str())
    }

    /// Adds a step to the study, on the last added bed; before the first bed, the step runs without a bed.
    fn step(&mut self, name: &str, group: &str, column: &str, action: StudyAction) {
        self.steps.push(StudyStep {
            bed: self.bed_name().map(str::to_owned),
            unit: self.unit,
            name: name.into(),
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

    /// Whether `study.json` has the beds and steps of the design, so that the study can be resumed; results of done
    /// steps are ignored.
    fn is_that_of(&self, study: &StudyResults) -> bool {
        let undone = |step: &StudyStep| StudyStep {
            state: None,
            seconds: 0.0,
            results: None,
            status: vec![],
            error: None,
            ..step.clone()
        };
        let up = |bed: &StudyBed| (bed.name.clone(), bed.arguments.clone());
        self.name == study.study
            && self.beds.iter().map(up).eq(study.beds.iter().map(up))
            && self
                .steps
                .iter()
                .cloned()
                .eq(study.steps.iter().map(undone))
    }

    fn into_results(self, arguments: Vec<String>) -> StudyResults {
        StudyResults {
            schema_version: StudyResults::SCHEMA,
            study: self.name.into(),
            arguments,
            question: self.question.into(),
            started_at: jiff::Timestamp::now().to_string(),
            interrupted: false,
            beds: self.beds,
            steps: self.steps,
            program: Program {
                name: "plimsoll-testbed".into(),
                version: env!("CARGO_PKG_VERSION").into(),
            },
            notes: self.notes,
            environment: Environment::look(None),
        }
    }
}

/// Words of a command line.
fn words(of: &[&str]) -> Vec<String> {
    of.iter().map(|w| (*w).to_owned()).collect()
}

/// A time in the form that options accept.
fn time(of: Duration) -> String {
    match of.is_zero() {
        true => "0ms".into(),
        false => show_duration(of),
    }
}

/// Times in increasing order, without duplicates.
fn ascending(times: &[Duration]) -> Vec<Duration> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.dedup();
    times
}

/// Note of every study on test beds: the limits of its figures.
const ONE_MACHINE: &str = "all nodes and the load share one machine: the figures compare configurations of this study, \
                           and do not show how fast the software is on hardware of its own";

/// Note of every study: the influence of chance on its figures.
const ONE_WINDOW: &str = "every figure is one window of some seconds, on processors that nodes and load share: one \
                          window does not tell a small difference from chance, and a single pause of a server \
                          changes a mean of some milliseconds (compare medians)";
