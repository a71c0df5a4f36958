//! fio's job files and command lines as sections of settings.

use super::is_settable;
use super::options::{self, Form, Handling, JobOption};
use super::values::{self, Machine};
use crate::ini;
use crate::report::{Report, Reported};
use plimsoll_diagnostics::{Diagnostics, Problem, Source, Span};
use plimsoll_plan::Parameter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum depth of included files.
const MAX_INCLUDES: usize = 16;

/// Maximum number of texts, which spans number with 16 bits.
const MAX_TEXTS: usize = 1000;

/// What job files read from their surroundings.
pub struct Surroundings<'a> {
    /// Value of an environment variable; `None` if the variable is not set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Text of a job file; an error is a sentence for the user.
    pub read: &'a dyn Fn(&Path) -> Result<String, String>,
    /// Numbers of the machine.
    pub machine: Machine,
}

/// An option with its value, as given in a job file or on a command line.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) option: &'static JobOption,
    /// Value of the option; `None` for an option that is set by its name alone.
    pub(super) value: Option<String>,
    /// Name and value in the text.
    pub(super) span: Span,
    /// Value in the text, or the name of an option without a value.
    pub(super) value_span: Span,
}

/// A job with the settings of its section, after the settings that the job inherits.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) settings: Vec<Setting>,
}

/// The jobs of job files and command lines, with the texts to which spans refer.
#[derive(Debug)]
pub struct Input {
    pub(super) sources: Vec<Arc<Source>>,
    pub(super) jobs: Vec<Section>,
}

impl Input {
    /// Name of the first job file; the name of the command line without a job file.
    pub(super) fn source_name(&self) -> &str {
        let mut names = self.sources.iter().map(|s| s.name.as_str());
        names
            .find(|name| *name != COMMAND_LINE)
            .unwrap_or(COMMAND_LINE)
    }

    /// Name of the workload: the stem of the first job file, or `fio` for a command line.
    pub(super) fn name(&self) -> &str {
        let name = self.source_name();
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
        stem.filter(|_| name != COMMAND_LINE).unwrap_or("fio")
    }

    /// A job file with the same jobs, in which environment variables and reserved words are replaced by their values.
    ///
    /// # Errors
    /// A sentence on a value that a job file cannot have, because a comment begins in the value.
    pub fn job_file(&self) -> Result<String, String> {
        let mut text = String::new();
        for job in &self.jobs {
            text.push_str(&format!("[{}]\n", job.name));
            for setting in job.settings.iter().filter(|s| s.option.name != "name") {
                let name = setting.option.name;
                let value = setting.value.as_ref().map(|value| format!("={value}"));
                let value = value.unwrap_or_default();
                if value.contains([';', '#', '\n']) {
                    return Err(format!("`{name}{value}` has no form in a job file"));
                }
                text.push_str(&format!("{name}{value}\n"));
            }
        }
        Ok(text)
    }

    /// Names of the jobs.
    #[must_use]
    pub fn title(&self) -> String {
        let names: Vec<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        names.join(", ")
    }

    /// Options that the jobs set, with their values and defaults, and the main options of jobs with fio's defaults. An
    /// option that differs from job to job is left out.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let set = self.jobs.iter().flat_map(|job| &job.settings);
        let names = MAIN_OPTIONS
            .iter()
            .map(|(name, _)| *name)
            .chain(set.map(|s| s.option.name))
            .filter(|name| is_settable(name) && *name != "name");
        let mut parameters: Vec<Parameter> = vec![];
        for name in names {
            if parameters.iter().any(|p| p.name == name) {
                continue;
            }
            let value = |job: &Section| {
                let last = job.settings.iter().rev().find(|s| s.option.name == name);
                last.map(|s| s.value.clone().unwrap_or_else(|| "1".into()))
            };
            let mut values = self.jobs.iter().map(value);
            let Some(first) = values.next().filter(|first| values.all(|v| v == *first)) else {
                continue;
            };
            let default = MAIN_OPTIONS.iter().find(|(main, _)| *main == name);
            let value = first.or(default.map(|(_, value)| (*value).to_owned()));
            let Some(value) = value else { continue };
            parameters.push(Parameter {
                name: name.into(),
                default: value.clone(),
                value,
                meaning: String::new(),
            });
        }
        parameters
    }

    /// Text of all job files and of the command line, for the results.
    pub(super) fn text(&self) -> String {
        let texts = self.sources.iter().filter(|s| s.name != SETS);
        let texts: Vec<&str> = texts.map(|s| s.text.as_str()).collect();
        texts.join("\n")
    }
}

/// Main options of jobs, with fio's defaults.
const MAIN_OPTIONS: [(&str, &str); 4] = [
    ("rw", "read"),
    ("bs", "4k"),
    ("iodepth", "1"),
    ("numjobs", "1"),
];

/// Options that give the sizes of transfers.
const SIZES: [&str; 3] = ["bs", "bsrange", "bssplit"];

/// Name of the text of `--set` in messages.
const SETS: &str = "--set";

/// Name of the command line in messages.
pub(super) const COMMAND_LINE: &str = "command line";

/// Parser of job files and command lines.
pub(super) struct Parser<'a> {
    surroundings: &'a Surroundings<'a>,
    sources: Vec<Arc<Source>>,
    problems: Vec<Problem>,
    /// Settings that all later jobs inherit.
    global: Vec<Setting>,
    jobs: Vec<Section>,
    /// Whether settings belong to the last job, instead of all later jobs.
    in_job: bool,
    /// Names of the sections that are wanted; empty for all sections.
    wanted: Vec<String>,
}

impl Report for Parser<'_> {
    fn problem(&mut self, problem: Problem) -> Reported {
        self.problems.problem(problem)
    }
}

impl<'a> Parser<'a> {
    /// A parser that keeps only the sections with the names `wanted`, or all sections.
    pub(super) fn new(surroundings: &'a Surroundings<'a>, wanted: Vec<String>) -> Self {
        Self {
            surroundings,
            sources: vec![],
            problems: vec![],
            global: vec![],
            jobs: vec![],
            in_job: false,
            wanted,
        }
    }

    /// Adds a text to which spans refer; returns the number of the text.
    fn add_source(&mut self, name: &str, text: &str) -> u16 {
        self.sources.push(Source::new(name, text));
        (self.sources.len() - 1) as u16
    }

    /// Parses a job file with its included files.
    pub(super) fn job_file(&mut self, text: &str, name: &str) {
        // Settings before the first section of a file belong to all its jobs.
        self.in_job = false;
        self.file(text, name, 0);
        self.in_job = false;
    }

    fn file(&mut self, text: &str, name: &str, depth: usize) {
        let file = self.add_source(name, text);
        for (line, span) in ini::lines(text, file) {
            // Each problem is reported; the next line is parsed all the same.
            let _ = self.line(line, span, text, Path::new(name), depth);
        }
    }

    fn line(
        &mut self,
        line: &str,
        span: Span,
        text: &str,
        path: &Path,
        depth: usize,
    ) -> Result<(), Reported> {
        if let Some(name) = ini::section(line, span, self)? {
            self.begin_section(name, span);
            return Ok(());
        }
        if let Some(included) = line.strip_prefix("include ") {
            return self.include(included.trim(), span, path, depth);
        }
        let (name, name_span, value) = ini::setting(line, span, text);
        self.setting(name, name_span, value)
    }

    fn begin_section(&mut self, name: &str, span: Span) {
        self.in_job = name != "global";
        if self.in_job {
            self.jobs.push(Section {
                name: name.into(),
                span,
                settings: self.global.clone(),
            });
        }
    }

    fn include(
        &mut self,
        included: &str,
        span: Span,
        path: &Path,
        depth: usize,
    ) -> Result<(), Reported> {
        if depth >= MAX_INCLUDES || self.sources.len() >= MAX_TEXTS {
            return self.fail(
                span,
                format!(
                    "more than {MAX_INCLUDES} levels of included files, or more than {MAX_TEXTS} files"
                ),
                "a file that includes itself has no end",
            );
        }
        let included = self.expand(included, span)?;
        let beside = path.parent().unwrap_or(Path::new("")).join(&included);
        match (self.surroundings.read)(&beside) {
            Ok(text) => {
                self.file(&text, &beside.display().to_string(), depth + 1);
                Ok(())
            }
            Err(error) => self.fail(span, error, "included here"),
        }
    }

    /// Replaces environment variables `${NAME}` and the reserved words of a value.
    fn expand(&mut self, value: &str, span: Span) -> Result<String, Reported> {
        let mut out = String::new();
        let mut rest = value;
        while let Some(at) = rest.find("${") {
            out.push_str(&rest[..at]);
            let Some(end) = rest[at..].find('}') else {
                return self.fail(
                    span,
                    "the name of the variable does not end",
                    "expected `}`",
                );
            };
            let name = &rest[at + 2..at + end];
            match (self.surroundings.variable)(name) {
                Some(value) => out.push_str(&value),
                None => {
                    return self.fail_with(
                        span,
                        format!("the environment variable `{name}` is not set"),
                        "used here",
                        format!("set the variable: `{name}=VALUE plimsoll fio …`"),
                    );
                }
            }
            rest = &rest[at + end + 1..];
        }
        out.push_str(rest);
        Ok(self.surroundings.machine.replace(&out))
    }

    fn setting(
        &mut self,
        name: &str,
        name_span: Span,
        value: Option<(String, Span)>,
    ) -> Result<(), Reported> {
        if let Some(why) = options::refusal_of_engine(name) {
            return self.fail_with(
                name_span,
                format!("`{name}` is not supported"),
                "this option",
                why,
            );
        }
        let Some(option) = options::find(name) else {
            let problem = Problem::new(
                name_span,
                format!("unknown option `{name}`"),
                "not an option of fio's jobs",
            )
            .suggest(name, options::names());
            return Err(self.problem(problem));
        };
        if let Handling::Refused(why) = option.handling
            && !is_off(option, value.as_ref())
        {
            return self.fail_with(
                name_span,
                format!("`{name}` is not supported"),
                "this option",
                why,
            );
        }
        let value_span = value.as_ref().map_or(name_span, |(_, span)| *span);
        let value = match value {
            Some((value, span)) => Some(self.expand(&value, span)?),
            None if option.form == Form::Value => {
                return self.fail(
                    name_span,
                    format!("`{name}` needs a value"),
                    "expected `=` and a value",
                );
            }
            None => None,
        };
        let setting = Setting {
            option,
            value,
            span: Span {
                end: value_span.end.max(name_span.end),
                ..name_span
            },
            value_span,
        };
        match self.jobs.last_mut().filter(|_| self.in_job) {
            Some(job) => job.settings.push(setting),
            None => self.global.push(setting),
        }
        Ok(())
    }

    /// Adds settings to all jobs, after their own settings.
    pub(super) fn settings_of_all(&mut self, sets: &[(String, String)]) {
        let lines: Vec<String> = sets.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let text = lines.join("\n");
        let file = self.add_source(SETS, &text);
        let jobs = std::mem::take(&mut self.jobs);
        self.global.clear();
        self.in_job = false;
        let mut start = 0;
        for ((name, value), line) in sets.iter().zip(&lines) {
            let equals = start + name.len();
            let end = start + line.len();
            let name_span = Span::of(file, start..equals, &text);
            let value_span = Span::of(file, equals + 1..end, &text);
            start = end + 1;
            // Each problem is reported; the next setting is parsed all the same.
            let _ = self.setting(name, name_span, Some((value.clone(), value_span)));
        }
        self.jobs = jobs;
        let sets_sizes = self.global.iter().any(|s| SIZES.contains(&s.option.name));
        for job in &mut self.jobs {
            // Of the options with sizes, fio uses one, whatever their order.
            job.settings
                .retain(|s| !sets_sizes || !SIZES.contains(&s.option.name));
            job.settings.extend(self.global.iter().cloned());
        }
    }

    /// Parses the options of a command line, each a name and a value or a job file, in order.
    pub(super) fn command_line(&mut self, words: &[Word]) {
        let text: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
        let text = text.join("\n");
        let file = self.add_source(COMMAND_LINE, &text);
        let mut start = 0;
        for word in words {
            let begin = start;
            start += word.text.len() + 1;
            let range =
                |r: std::ops::Range<usize>| Span::of(file, begin + r.start..begin + r.end, &text);
            match &word.kind {
                WordKind::JobFile => match (self.surroundings.read)(&PathBuf::from(&word.text)) {
                    Ok(content) => self.job_file(&content, &word.text),
                    Err(error) => {
                        self.problem(Problem::new(
                            range(0..word.text.len()),
                            error,
                            "this job file",
                        ));
                    }
                },
                WordKind::Option { name, value } => {
                    let name_span = range(name.clone());
                    let name = &word.text[name.clone()];
                    let value = value
                        .clone()
                        .map(|v| (word.text[v.clone()].to_owned(), range(v)));
                    if name == "name"
                        && let Some((job, span)) = value
                    {
                        self.begin_section(&job, span);
                        continue;
                    }
                    // Each problem is reported; the next option is parsed all the same.
                    let _ = self.setting(name, name_span, value);
                }
            }
        }
    }

    /// The wanted jobs of all texts.
    ///
    /// # Errors
    /// All problems of the texts, or that there is no job.
    pub(super) fn finish(mut self) -> Result<Input, Diagnostics> {
        if self.sources.is_empty() {
            self.add_source(COMMAND_LINE, "");
        }
        let wanted = std::mem::take(&mut self.wanted);
        for name in &wanted {
            if !self.jobs.iter().any(|job| job.name == *name) {
                let names: Vec<String> = self.jobs.iter().map(|job| job.name.clone()).collect();
                let problem = Problem::of_text(0, format!("there is no section `{name}`"));
                self.problem(problem.suggest(name, names));
            }
        }
        if self.jobs.is_empty() && self.problems.is_empty() {
            let problem = Problem::of_text(0, "there is no job")
                .help("give a job file, or begin a job with `--name=NAME`");
            self.problem(problem);
        }
        if !self.problems.is_empty() {
            return Err(Diagnostics::new(self.sources, self.problems));
        }
        self.jobs
            .retain(|job| wanted.is_empty() || wanted.contains(&job.name));
        Ok(Input {
            sources: self.sources,
            jobs: self.jobs,
        })
    }
}

/// A word of a command line: an option with its value, or a job file.
pub(super) struct Word {
    /// The option in the form `--name=value`, or the path of the job file.
    pub(super) text: String,
    pub(super) kind: WordKind,
}

pub(super) enum WordKind {
    JobFile,
    /// Ranges of the name and of the value in the word.
    Option {
        name: std::ops::Range<usize>,
        value: Option<std::ops::Range<usize>>,
    },
}

/// Whether a value turns an option off, so that the option has no effect in fio either.
fn is_off(option: &JobOption, value: Option<&(String, Span)>) -> bool {
    match value {
        Some((value, _)) => option.form != Form::Value && values::truth(value) == Ok(false),
        None => false,
    }
}
