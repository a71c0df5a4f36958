//! Conversion of a profile's blocks to runs.

mod keys;
mod sweeps;

use crate::NamedText;
use crate::profile::filesystems::{self, at_system, directory_name};
use crate::profile::functions::{Step, WORKING_SET, size};
use crate::profile::names::{OF_PROFILE, PASSED_APART};
use crate::profile::overrides::{CaseFilesystem, ProfileOverrides};
use crate::profile::parse::{Config, Entry, Keys, Profile, Value, parse_keys};
use crate::profile::values::ChosenValue;
use plimsoll_diagnostics::{Diagnostics, MAX_ERRORS, Problem, Source, Span};
use plimsoll_plan::Parameter;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sweeps::Function;

/// Maximum number of runs of one configuration: at one minute each, a week.
pub const MAX_CASES: usize = 10_000;

/// The workloads that a profile can name.
pub trait Library {
    /// Returns the parameters of a personality: the variables that the workload sets, and the variables that it only
    /// reads.
    ///
    /// # Errors
    /// If the workload does not exist or cannot be read.
    fn parameters(&self, personality: &str) -> Result<Vec<Parameter>, Unavailable>;

    /// Returns the parameter names of all known workloads. A profile may set such a parameter for a workload without
    /// it, because profiles outlive workloads.
    fn parameters_of_all(&self) -> Vec<String>;

    /// Returns the file `name.conf` with the keys of a configuration that a profile only lists by name; `None` if the
    /// file does not exist.
    ///
    /// # Errors
    /// A sentence if the file cannot be read.
    fn configuration(&self, name: &str) -> Result<Option<NamedText>, String> {
        let _ = name;
        Ok(None)
    }
}

/// Reason why a workload is not available, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unavailable {
    /// No workload has the name of the personality; configurations with other personalities can still run.
    Nowhere(String),
    /// The workload of the personality exists but cannot be read or parsed.
    Unreadable(String),
}

/// One run of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The configuration and the values of its lists, such as `read,nthreads=4`; unique on a file system.
    pub name: String,
    /// Name of the configuration.
    pub config: String,
    /// File system on which the case runs.
    pub place: CaseFilesystem,
    /// Built-in name or path of the workload.
    pub personality: String,
    /// Parameters of the workload and their values, in the order of the profile.
    pub sets: Vec<(String, String)>,
    /// Length of the measured window; `None`: the workload's own.
    pub runtime: Option<Duration>,
    /// Time before the measured window; `None`: the workload's own.
    pub warmup: Option<Duration>,
    /// Events per second for the limiters, if the workload has no parameter `eventrate`; `None`: the workload's own.
    pub event_rate: Option<f64>,
    /// Line number of the configuration in the profile, from 1.
    pub line: u32,
}

/// A configuration that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedConfiguration {
    /// Name of the run that is left out, as in [`Case::name`], or of the configuration.
    pub name: String,
    /// The reason, in one sentence.
    pub reason: String,
}

/// The runs of a profile.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CaseList {
    /// Runs in their order: configuration by configuration, and each run on all file systems before the next run.
    pub cases: Vec<Case>,
    /// Configurations and runs that are left out, because their workload or function is unknown.
    pub not_run: Vec<SkippedConfiguration>,
    /// Value of the profile's `description`; may be empty.
    pub description: String,
    /// Results directory that the profile names (`stats`); `None` if it names none.
    pub stats: Option<String>,
    /// Sentences about parts of the profile that have no effect or another effect.
    pub notes: Vec<String>,
    /// Names of [`ProfileOverrides::sets`] that no run uses.
    pub unused_sets: Vec<String>,
}

impl Profile {
    /// Lists the runs of the profile.
    ///
    /// # Errors
    /// Every error found, at most ten, each with its place in the profile or in a configuration's file; also if no
    /// configuration of the profile can run.
    pub fn cases(
        &self,
        library: &dyn Library,
        changes: &ProfileOverrides,
    ) -> Result<CaseList, Diagnostics> {
        let mut read = Configs::read(self, library);
        let configs = std::mem::take(&mut read.configs);
        let mut lister = CaseLister {
            profile: self,
            library,
            changes,
            parameters: HashMap::new(),
            all: None,
            used: HashSet::new(),
            used_sets: HashSet::new(),
            taken: HashSet::new(),
            not_run: Vec::new(),
            reasons: Vec::new(),
            problems: read.problems,
            notes: read.notes,
        };
        let listed = lister.list(&configs);
        match lister.problems.is_empty() {
            true => Ok(listed),
            false => Err(Diagnostics::new(read.sources, lister.problems)),
        }
    }
}

/// Configurations of a profile, including the keys from their own files.
struct Configs {
    configs: Vec<Config>,
    sources: Vec<Arc<Source>>,
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl Configs {
    fn read(profile: &Profile, library: &dyn Library) -> Self {
        let mut read = Self {
            configs: profile.configs.clone(),
            sources: vec![profile.source.clone()],
            problems: vec![],
            notes: profile.notes.clone(),
        };
        for number in 0..read.configs.len() {
            if read.configs[number].is_listed {
                read.fill(number, library);
            }
        }
        read
    }

    /// Adds the keys of a configuration's own file; if no key `personality` exists, the configuration's name is the
    /// personality.
    fn fill(&mut self, number: usize, library: &dyn Library) {
        let config = &self.configs[number];
        let (name, span) = (config.name.clone(), config.span);
        match library.configuration(&name) {
            Ok(Some(text)) => {
                if let Some(keys) = self.keys(&text, span) {
                    self.notes.extend(keys.notes);
                    self.configs[number].entries = keys.entries;
                }
            }
            Ok(None) => {}
            Err(message) => self.problems.push(Problem::new(span, message, "its keys")),
        }
        let entries = &mut self.configs[number].entries;
        if !entries.iter().any(|e| e.key == "personality") {
            entries.push(Entry {
                key: "personality".into(),
                span,
                values: vec![Value { text: name, span }],
            });
        }
    }

    fn keys(&mut self, text: &NamedText, span: Span) -> Option<Keys> {
        let Ok(file) = u16::try_from(self.sources.len()) else {
            let message = "the profile has more than 65 535 files of configurations";
            self.problems.push(Problem::new(span, message, "this one"));
            return None;
        };
        let source = Source::new(&text.name, &text.text);
        self.sources.push(source.clone());
        match parse_keys(&source, file) {
            Ok(keys) => Some(keys),
            Err(problems) => {
                self.problems.extend(problems);
                None
            }
        }
    }
}

/// Parameters of a workload, or the reason why the workload is not available.
type LookupResult = Result<Rc<Vec<Parameter>>, Unavailable>;

struct CaseLister<'a> {
    profile: &'a Profile,
    library: &'a dyn Library,
    changes: &'a ProfileOverrides,
    /// Parameters by personality.
    parameters: HashMap<String, LookupResult>,
    /// Parameter names of all workloads, once looked up.
    all: Option<Vec<String>>,
    /// Keys of the defaults that some configuration uses.
    used: HashSet<String>,
    /// Command-line settings that some run uses.
    used_sets: HashSet<String>,
    /// Names of runs, each with the label of its file system.
    taken: HashSet<(String, String)>,
    not_run: Vec<SkippedConfiguration>,
    /// Problems of the entries of [`CaseLister::not_run`], reported if no run is left.
    reasons: Vec<Problem>,
    problems: Vec<Problem>,
    notes: Vec<String>,
}

/// The input of one run.
struct CaseInput<'c, 'a> {
    config: &'c Config,
    function: &'c Function,
    place: &'c CaseFilesystem,
    chosen: ChosenValue<'a>,
}

impl<'a> CaseLister<'a> {
    fn list(&mut self, configs: &[Config]) -> CaseList {
        let mut listed = CaseList {
            description: self.joined("description"),
            stats: self.stats().unwrap_or_else(|problem| {
                self.problem(problem);
                None
            }),
            ..CaseList::default()
        };
        for config in configs {
            self.check_entries(config);
            if self.is_wanted(&config.name) {
                match self.cases_of(config) {
                    Ok(cases) => listed.cases.extend(cases),
                    Err(problem) => self.problem(problem),
                }
            }
        }
        self.check_defaults();
        if listed.cases.is_empty() && self.problems.is_empty() {
            self.problems = std::mem::take(&mut self.reasons);
        }
        let unused = self.changes.sets.iter().map(|(name, _)| name);
        listed.unused_sets = unused
            .filter(|n| !self.used_sets.contains(*n))
            .cloned()
            .collect();
        listed.not_run = std::mem::take(&mut self.not_run);
        listed.notes = std::mem::take(&mut self.notes);
        listed
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_ERRORS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Leaves a run or configuration out, with the reason; the first reason for a name counts.
    fn leave(&mut self, name: String, reason: String, at: Span, label: &str) {
        if self.not_run.iter().any(|n| n.name == name) {
            return;
        }
        if self.reasons.len() < MAX_ERRORS {
            self.reasons
                .push(Problem::new(at, reason.clone(), label.to_owned()));
        }
        self.not_run.push(SkippedConfiguration { name, reason });
    }

    fn is_wanted(&self, config: &str) -> bool {
        self.changes.only.is_empty() || self.changes.only.iter().any(|o| o == config)
    }

    fn default_of(&self, key: &str) -> Option<&'a Entry> {
        self.profile.defaults.iter().find(|e| e.key == key)
    }

    /// A value of the defaults as one text, including its commas.
    fn joined(&self, key: &str) -> String {
        let values = self.default_of(key).map(|e| e.values.iter());
        let texts: Vec<&str> = values
            .into_iter()
            .flatten()
            .map(|v| v.text.as_str())
            .collect();
        texts.join(", ")
    }

    /// The results directory, of which a profile has at most one, with the variables of the defaults replaced.
    fn stats(&mut self) -> Result<Option<String>, Problem> {
        let Some(entry) = self.default_of("stats") else {
            return Ok(None);
        };
        if let [_, second, ..] = &entry.values[..] {
            let message = "a profile has one directory for results";
            return Err(Problem::new(second.span, message, "a second one"));
        }
        let chosen = ChosenValue::first(&self.profile.defaults);
        chosen.resolve(&entry.values[0]).map(Some)
    }

    /// Reports keys of a configuration that only DEFAULTS may have.
    fn check_entries(&mut self, config: &Config) {
        for entry in &config.entries {
            match entry.key.as_str() {
                "filesystem" => {
                    let message = "`filesystem` is one for the whole profile";
                    let problem = Problem::new(entry.span, message, "not of one configuration");
                    self.problem(problem.help("move it to DEFAULTS"));
                }
                key if OF_PROFILE.contains(&key) => self.note(format!(
                    "{}: `{key}` has no effect here: it is one for the whole profile, in DEFAULTS",
                    config.name
                )),
                _ => {}
            }
        }
    }

    /// Entries for a configuration: its own entries, and the defaults that the configuration does not override; without
    /// keys that the command line sets, and without the keys of [`PASSED_APART`].
    fn entries<'c>(&self, config: &'c Config) -> Vec<&'c Entry>
    where
        'a: 'c,
    {
        let own = |key: &str| config.entries.iter().any(|e| e.key == key);
        let defaults = self.profile.defaults.iter().filter(|e| !own(&e.key));
        let all = defaults.chain(&config.entries);
        let set = |key: &str| self.changes.sets.iter().any(|(k, _)| k == key);
        all.filter(|e| !PASSED_APART.contains(&e.key.as_str()) && !set(&e.key))
            .collect()
    }

    fn cases_of(&mut self, config: &Config) -> Result<Vec<Case>, Problem> {
        let entries = self.entries(config);
        let Some(function) = self.function(config, &entries)? else {
            return Ok(vec![]);
        };
        let found = filesystems::places(&entries, config.span, self.changes)?;
        if function.personality.is_none() && !entries.iter().any(|e| e.key == "personality") {
            let message = format!("the configuration `{}` has no personality", config.name);
            let problem = Problem::new(config.span, message, "which workload?");
            return Err(problem.help("add `personality = fileserver;`, in DEFAULTS or here"));
        }
        let most = found.len().saturating_mul(function.most_steps());
        let mut cases = Vec::new();
        for numbers in &combinations(&entries, most)? {
            // Runs per file system; every file system has the same steps.
            let mut rows: Vec<std::vec::IntoIter<Case>> = Vec::new();
            for (i, place) in found.iter().enumerate() {
                let chosen = entries.iter().zip(numbers);
                let chosen = chosen.map(|(e, n)| (*e, at_system(e, i).unwrap_or(*n)));
                let before = self.problems.len();
                let ground = CaseInput {
                    config,
                    function: &function,
                    place,
                    chosen: ChosenValue::new(chosen.collect()),
                };
                rows.push(self.steps_of(ground)?.into_iter());
                // The other runs of the configuration would most likely repeat the error of this run.
                if self.problems.len() > before {
                    return Ok(cases);
                }
            }
            let steps = rows.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
            for _ in 0..steps {
                cases.extend(rows.iter_mut().filter_map(Iterator::next));
            }
        }
        Ok(cases)
    }

    /// The runs of one combination of values on one file system: one run, or the runs of a sweep.
    fn steps_of(&mut self, mut ground: CaseInput<'_, '_>) -> Result<Vec<Case>, Problem> {
        let config = ground.config;
        let place = match self.changes.places.is_empty() {
            true => filesystems::place(&mut ground.chosen, self.changes)?,
            false => {
                let label = ground.place.label.clone();
                ground.chosen.fix("filesystem", label);
                ground.place.clone()
            }
        };
        let name = case_name(config, &ground.chosen)?;
        let (personality, at) = match ground.chosen.get("personality") {
            Some(v) => (ground.chosen.resolve(v)?, v.span),
            None => (
                ground
                    .function
                    .personality
                    .clone()
                    .expect("cases_of refuses a configuration without one"),
                ground.function.span,
            ),
        };
        let known = match self.known(&personality) {
            Ok(known) => known,
            Err(Unavailable::Nowhere(reason)) => {
                self.leave(name, reason, at, "no workload");
                return Ok(vec![]);
            }
            Err(Unavailable::Unreadable(message)) => {
                return Err(Problem::new(at, message, "no workload"));
            }
        };
        let mut case = Case {
            name,
            config: config.name.clone(),
            place,
            personality,
            sets: vec![],
            runtime: None,
            warmup: None,
            event_rate: None,
            line: self.profile.source.position(config.span.start as usize).0,
        };
        self.take_keys(&mut case, &ground, &known)?;
        self.take_sets(&mut case, config, &known)?;
        let steps = self.steps(&ground, &case, &known)?;
        let cases = match steps {
            None => vec![case],
            Some(steps) => {
                let at_step = |s| at_step(&case, s, &known);
                steps.into_iter().map(at_step).collect()
            }
        };
        Ok(cases.into_iter().map(|c| self.with_free_name(c)).collect())
    }

    /// The run with a name that is unique on its file system.
    fn with_free_name(&mut self, mut case: Case) -> Case {
        let name = directory_name(&case.name);
        let label = &case.place.label;
        let names = (1..).map(|n| match n {
            1 => name.clone(),
            n => format!("{name}-{n}"),
        });
        let mut free = names.filter(|n| self.taken.insert((n.clone(), label.clone())));
        case.name = free.next().expect("there are fewer runs than numbers");
        case
    }

    /// Parameters of a personality; the library is asked once for each personality.
    fn known(&mut self, personality: &str) -> LookupResult {
        let library = self.library;
        let known = self
            .parameters
            .entry(personality.to_owned())
            .or_insert_with(|| library.parameters(personality).map(Rc::new));
        known.clone()
    }
}

/// Every combination of one value from each list, as value indices in the order of `entries`; the first list changes
/// slowest. The number of combinations times `most`, the maximum number of runs of a combination, must not exceed
/// `MAX_CASES`.
fn combinations(entries: &[&Entry], most: usize) -> Result<Vec<Vec<usize>>, Problem> {
    let mut all: Vec<Vec<usize>> = vec![vec![]];
    for entry in entries {
        let number = match at_system(entry, 0) {
            Some(_) => 1,
            None => entry.values.len(),
        };
        if all.len().saturating_mul(number).saturating_mul(most) > MAX_CASES {
            let message = format!("a configuration of the profile has more than {MAX_CASES} runs");
            return Err(Problem::new(entry.span, message, "with this list"));
        }
        let with = |numbers: &Vec<usize>| -> Vec<Vec<usize>> {
            let with_one = |n: usize| numbers.iter().copied().chain([n]).collect();
            (0..number).map(with_one).collect()
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// Name of a run: its configuration, and the chosen values of lists.
fn case_name(config: &Config, chosen: &ChosenValue<'_>) -> Result<String, Problem> {
    let mut name = config.name.clone();
    for (entry, value) in chosen.iter() {
        if entry.values.len() > 1 && at_system(entry, 0).is_none() {
            let text = chosen.resolve(value)?;
            name.push_str(&format!(",{}={text}", entry.key));
        }
    }
    Ok(name)
}

/// The run of one step of a sweep.
fn at_step(case: &Case, step: Step, known: &[Parameter]) -> Case {
    let mut case = case.clone();
    case.name = format!("{},{}", case.name, step.label());
    match step {
        Step::EventRate(rate) => case.event_rate = Some(rate),
        Step::WorkingSet(bytes) => {
            let name = WORKING_SET;
            case.sets.retain(|(n, _)| n != name);
            if known.iter().any(|k| k.name == name) {
                case.sets.push((name.into(), size(bytes)));
            }
        }
    }
    case
}

#[cfg(test)]
mod tests;
