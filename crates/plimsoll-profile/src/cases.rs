//! From the blocks of a profile to its runs.

use crate::names::{KEYS, OF_PROFILE, parameter};
use crate::parse::{Config, Entry, Profile, Value};
use crate::places::{self, Place, at_system, directory_name};
use crate::values::Chosen;
use plimsoll_diagnostics::{Diagnostics, MOST_ERRORS, Problem, Span, nearest};
use plimsoll_plan::parse_duration;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

/// Most runs of one profile: of a minute each, a week.
pub const MOST_CASES: usize = 10_000;

/// The functions that a profile may ask for.
const FUNCTION: &str = "generic";

/// What a profile has to know of workloads.
pub trait Library {
    /// Names of the parameters of a personality.
    ///
    /// # Errors
    /// What to say, in one sentence, if there is no such workload or it cannot be read.
    fn parameters(&self, personality: &str) -> Result<Vec<String>, String>;

    /// Names of the parameters of all workloads that are known. A profile may give such a one to a
    /// workload without it, for profiles outlive workloads.
    fn parameters_of_all(&self) -> Vec<String>;
}

/// What a command line changes of a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// File systems instead of the profile's; empty: the profile's.
    pub places: Vec<Place>,
    /// Directory instead of the profile's, which must then have one file system.
    pub dir: Option<String>,
    /// Whether a target was given, instead of the profile's.
    pub has_target: bool,
    /// Parameters and their values, instead of the profile's.
    pub sets: Vec<(String, String)>,
    /// Configurations that are run; empty: all.
    pub only: Vec<String>,
}

/// One run of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The configuration, and the values that differ between its runs: `read,nthreads=4`.
    pub name: String,
    /// The configuration.
    pub config: String,
    /// Where the load goes.
    pub place: Place,
    /// Built-in name or path of the workload.
    pub personality: String,
    /// Parameters of the workload and their values, in the order of the profile.
    pub sets: Vec<(String, String)>,
    /// Length of the measured window; `None`: the workload's own.
    pub runtime: Option<Duration>,
    /// Events a second for the limiters, where that is no parameter of the workload.
    pub event_rate: Option<f64>,
    /// Line of the configuration in the profile.
    pub line: u32,
}

/// The runs of a profile.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listed {
    /// In the order they are run in: configuration by configuration, each on every file system.
    pub cases: Vec<Case>,
    /// What the profile says of itself; may be empty.
    pub description: String,
    /// Directory that results go to, if the profile names one.
    pub stats: Option<String>,
    /// What was left out of the profile or taken to mean something else, in sentences.
    pub notes: Vec<String>,
}

impl Profile {
    /// The runs that the profile asks for.
    ///
    /// # Errors
    /// Every error found, at most ten, each with its place in the profile.
    pub fn cases(&self, library: &dyn Library, changes: &Changes) -> Result<Listed, Diagnostics> {
        let mut lister = Lister {
            profile: self,
            library,
            changes,
            parameters: HashMap::new(),
            all: None,
            used: HashSet::new(),
            taken: HashSet::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        };
        let listed = lister.list();
        match lister.problems.is_empty() {
            true => Ok(Listed {
                notes: lister.notes,
                ..listed
            }),
            false => Err(Diagnostics::new(vec![self.source.clone()], lister.problems)),
        }
    }
}

struct Lister<'a> {
    profile: &'a Profile,
    library: &'a dyn Library,
    changes: &'a Changes,
    /// Parameters by personality, once asked for.
    parameters: HashMap<String, Result<Vec<String>, String>>,
    /// Parameters of all workloads, once asked for.
    all: Option<Vec<String>>,
    /// Keys of the defaults that some configuration's workload has.
    used: HashSet<String>,
    /// Names of runs with those of their file systems.
    taken: HashSet<(String, String)>,
    problems: Vec<Problem>,
    notes: Vec<String>,
}

impl<'a> Lister<'a> {
    fn list(&mut self) -> Listed {
        let mut listed = Listed {
            description: self.joined("description"),
            stats: self.stats(),
            ..Listed::default()
        };
        for entry in &self.profile.defaults {
            self.check_entry(entry, true);
        }
        for config in &self.profile.configs {
            for entry in &config.entries {
                self.check_entry(entry, false);
            }
            if self.is_wanted(&config.name) {
                let cases = self.cases_of(config);
                listed.cases.extend(cases);
            }
        }
        self.check_defaults();
        listed
    }

    fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MOST_ERRORS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    fn is_wanted(&self, config: &str) -> bool {
        self.changes.only.is_empty() || self.changes.only.iter().any(|o| o == config)
    }

    fn default_of(&self, key: &str) -> Option<&'a Entry> {
        self.profile.defaults.iter().find(|e| e.key == key)
    }

    /// A text of the defaults, whose commas are no list.
    fn joined(&self, key: &str) -> String {
        let values = self.default_of(key).map(|e| e.values.iter());
        let texts: Vec<&str> = values
            .into_iter()
            .flatten()
            .map(|v| v.text.as_str())
            .collect();
        texts.join(", ")
    }

    /// The directory for results: one, with the variables of the defaults.
    fn stats(&mut self) -> Option<String> {
        let entry = self.default_of("stats")?;
        if let [_, second, ..] = &entry.values[..] {
            let problem = Problem::new(
                second.span,
                "a profile has one directory for results",
                "a second one",
            );
            self.problem(problem);
            return None;
        }
        let chosen = Chosen::new(self.profile.defaults.iter().map(|e| (e, 0)).collect());
        match chosen.resolve(&entry.values[0]) {
            Ok(stats) => Some(stats),
            Err(problem) => {
                self.problem(problem);
                None
            }
        }
    }

    /// What is wrong with an entry wherever it stands.
    fn check_entry(&mut self, entry: &Entry, in_defaults: bool) {
        if !in_defaults && OF_PROFILE.contains(&entry.key.as_str()) {
            let message = format!("`{}` is one for the whole profile", entry.key);
            let problem = Problem::new(entry.span, message, "not of one configuration");
            self.problem(problem.help("move it to DEFAULTS"));
        }
        if entry.key == "function" {
            for value in entry.values.iter().filter(|v| v.text != FUNCTION) {
                let message = format!("the function `{}` is not supported", value.text);
                let problem = Problem::new(value.span, message, "expected `generic`");
                self.problem(problem.help(
                    "what other functions do is a list: workingset = 100m, 400m; runs once for \
                     each value",
                ));
            }
        }
    }

    /// Entries of a configuration: the defaults that it does not override, and its own.
    fn entries(&self, config: &'a Config) -> Vec<&'a Entry> {
        let own = |key: &str| config.entries.iter().any(|e| e.key == key);
        let defaults = self.profile.defaults.iter().filter(|e| !own(&e.key));
        let all = defaults.chain(&config.entries);
        let set = |key: &str| self.changes.sets.iter().any(|(k, _)| k == key);
        all.filter(|e| !OF_PROFILE[..].contains(&e.key.as_str()) || e.key == "filesystem")
            .filter(|e| e.key != "function" && !set(&e.key))
            .collect()
    }

    fn cases_of(&mut self, config: &'a Config) -> Vec<Case> {
        let entries = self.entries(config);
        let found = match places::places(&entries, config.span, self.changes) {
            Ok(found) => found,
            Err(problem) => {
                self.problem(problem);
                return vec![];
            }
        };
        if !entries.iter().any(|e| e.key == "personality") {
            let message = format!("the configuration `{}` has no personality", config.name);
            let problem = Problem::new(config.span, message, "which workload?");
            self.problem(problem.help("add `personality = fileserver;`, in DEFAULTS or here"));
            return vec![];
        }
        let Some(combinations) = self.combinations(&entries, found.len()) else {
            return vec![];
        };
        let mut cases = Vec::new();
        for numbers in &combinations {
            for (i, place) in found.iter().enumerate() {
                let number = |(e, n): (&&'a Entry, &usize)| (*e, at_system(e, i).unwrap_or(*n));
                let chosen = entries.iter().zip(numbers).map(number).collect();
                let before = self.problems.len();
                let case = self.case(config, Chosen::new(chosen), place);
                match case {
                    Ok(case) => cases.push(case),
                    Err(problem) => self.problem(problem),
                }
                // The others would most likely be wrong in the same way.
                if self.problems.len() > before {
                    return cases;
                }
            }
        }
        cases
    }

    /// Numbers of the values of each run, the first list changing slowest.
    fn combinations(&mut self, entries: &[&Entry], systems: usize) -> Option<Vec<Vec<usize>>> {
        let mut all: Vec<Vec<usize>> = vec![vec![]];
        for entry in entries {
            let number = match at_system(entry, 0) {
                Some(_) => 1,
                None => entry.values.len(),
            };
            if all.len().saturating_mul(number).saturating_mul(systems) > MOST_CASES {
                let message = format!("the profile has more than {MOST_CASES} runs");
                let problem = Problem::new(entry.span, message, "with this list");
                self.problem(problem);
                return None;
            }
            let with = |numbers: &Vec<usize>| -> Vec<Vec<usize>> {
                let with_one = |n: usize| numbers.iter().copied().chain([n]).collect();
                (0..number).map(with_one).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        Some(all)
    }

    /// One run. What is wrong with the value of one key is a problem; the first one ends it.
    fn case(
        &mut self,
        config: &Config,
        mut chosen: Chosen<'a>,
        place: &Place,
    ) -> Result<Case, Problem> {
        let place = match self.changes.places.is_empty() {
            true => places::place(&mut chosen, self.changes)?,
            false => {
                chosen.fix("filesystem", place.label.clone());
                place.clone()
            }
        };
        let value = chosen.get("personality");
        let (personality, at) = match value {
            Some(v) => (chosen.resolve(v)?, v.span),
            None => (String::new(), config.span),
        };
        let known = self.known(&personality, at)?;
        let mut case = Case {
            name: config.name.clone(),
            config: config.name.clone(),
            place,
            personality,
            sets: vec![],
            runtime: None,
            event_rate: None,
            line: self.profile.source.position(config.span.start as usize).0,
        };
        for (entry, value) in chosen.iter() {
            let text = chosen.resolve(value)?;
            if entry.values.len() > 1 && at_system(entry, 0).is_none() {
                case.name.push_str(&format!(",{}={text}", entry.key));
            }
            if let Err(problem) = self.apply(&mut case, entry, value, text, &known) {
                self.problem(problem);
            }
        }
        for (key, value) in &self.changes.sets {
            if known.contains(key) {
                case.sets.push((key.clone(), value.clone()));
            }
        }
        case.name = self.free_name(&directory_name(&case.name), &case.place.label);
        Ok(case)
    }

    /// A name that no other run on the file system has.
    fn free_name(&mut self, name: &str, label: &str) -> String {
        let names = (1..).map(|n| match n {
            1 => name.to_owned(),
            n => format!("{name}-{n}"),
        });
        let mut free = names.filter(|n| self.taken.insert((n.clone(), label.to_owned())));
        // There are fewer runs than numbers.
        free.next().unwrap_or_default()
    }

    /// Parameters of a personality.
    fn known(&mut self, personality: &str, at: Span) -> Result<Vec<String>, Problem> {
        let library = self.library;
        let known = self
            .parameters
            .entry(personality.to_owned())
            .or_insert_with(|| library.parameters(personality));
        known
            .clone()
            .map_err(|message| Problem::new(at, message, "no workload"))
    }

    /// Takes one entry into a run.
    fn apply(
        &mut self,
        case: &mut Case,
        entry: &Entry,
        value: &Value,
        text: String,
        known: &[String],
    ) -> Result<(), Problem> {
        let key = entry.key.as_str();
        match key {
            "runtime" => {
                let time = parse_duration(&text).ok().filter(|t| !t.is_zero());
                let time = time.ok_or_else(|| {
                    let message = format!("`{text}` is no time");
                    Problem::new(value.span, message, "expected seconds, such as 60, or 5m")
                })?;
                case.runtime = Some(time);
            }
            "eventrate" if !known.iter().any(|k| k == key) => {
                let rate = text
                    .parse()
                    .ok()
                    .filter(|r: &f64| r.is_finite() && *r >= 0.0);
                let rate = rate.ok_or_else(|| {
                    let message = format!("`{text}` is no rate");
                    Problem::new(value.span, message, "expected events a second, such as 250")
                })?;
                case.event_rate = Some(rate);
            }
            _ if KEYS.contains(&key) && key != "eventrate" => {}
            _ => match parameter(key, known) {
                Some(name) => {
                    self.used.insert(key.to_owned());
                    if name != key {
                        self.note(format!(
                            "{}: `{key}` is called `{name}` in the workload {} now",
                            case.config, case.personality
                        ));
                    }
                    case.sets.push((name.to_owned(), text));
                }
                // Of the defaults each configuration takes what its workload has.
                None if self.is_default(entry) => {}
                None => self.left_out(case, entry, known)?,
            },
        }
        Ok(())
    }

    fn is_default(&self, entry: &Entry) -> bool {
        self.profile.defaults.iter().any(|d| std::ptr::eq(d, entry))
    }

    /// A key that the workload does not have: one of another workload is left out and said so,
    /// as profiles are older than workloads; any other is a slip of the hand.
    fn left_out(&mut self, case: &Case, entry: &Entry, known: &[String]) -> Result<(), Problem> {
        let (key, personality) = (&entry.key, &case.personality);
        if self.is_known_anywhere(key) {
            self.note(format!(
                "{}: the workload {personality} has no parameter `{key}`, which has no effect",
                case.config
            ));
            return Ok(());
        }
        let message = format!("`{key}` is no key of a profile and no parameter of {personality}");
        let problem = Problem::new(entry.span, message, "unknown");
        let names = known.iter().map(String::as_str).chain(KEYS);
        Err(problem.suggest(key, names))
    }

    fn is_known_anywhere(&mut self, key: &str) -> bool {
        let library = self.library;
        let all = self.all.get_or_insert_with(|| library.parameters_of_all());
        parameter(key, all).is_some()
    }

    /// Keys of the defaults that no workload has.
    fn check_defaults(&mut self) {
        if !self.problems.is_empty() {
            // A workload that could not be looked at may have them.
            return;
        }
        let mut wrong = BTreeMap::new();
        for entry in &self.profile.defaults {
            let key = entry.key.as_str();
            let set = self.changes.sets.iter().any(|(k, _)| k == key);
            let skipped = !self.changes.only.is_empty() || set;
            if KEYS.contains(&key) || self.used.contains(key) || skipped {
                continue;
            }
            match self.is_known_anywhere(key) {
                true => self.note(format!(
                    "DEFAULTS: no workload of this profile has the parameter `{key}`, which has no \
                     effect"
                )),
                false => _ = wrong.insert(entry.span.start, entry),
            }
        }
        for entry in wrong.into_values() {
            let key = &entry.key;
            let message =
                format!("`{key}` is no key of a profile and no parameter of its workloads");
            let known: Vec<String> = self
                .parameters
                .values()
                .flatten()
                .flatten()
                .cloned()
                .collect();
            let names = known.iter().map(String::as_str).chain(KEYS);
            let problem = Problem::new(entry.span, message, "unknown");
            let near = nearest(key, names);
            let problem = match near {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem,
            };
            self.problem(problem);
        }
    }
}

#[cfg(test)]
mod tests;
