//! Effects of a profile's keys on a run.

use super::{Case, CaseInput, CaseLister};
use crate::profile::filesystems::at_system;
use crate::profile::names::{KEYS, TAKEN_AND_PASSED, parameter};
use crate::profile::parse::{Config, Entry, Value};
use crate::profile::values::ChosenValue;
use plimsoll_diagnostics::{Problem, nearest};
use plimsoll_plan::{Parameter, parse_duration};
use std::time::Duration;

impl<'a> CaseLister<'a> {
    /// Applies the values of all keys to a run. An invalid value is reported, and the other keys are still applied. A
    /// value whose variables cannot be replaced ends the run with an error.
    pub(super) fn take_keys(
        &mut self,
        case: &mut Case,
        ground: &CaseInput<'_, '_>,
        known: &[Parameter],
    ) -> Result<(), Problem> {
        for (entry, value) in ground.chosen.iter() {
            let text = ground.chosen.resolve(value)?;
            if let Err(problem) = self.take_key(case, (entry, value), text, ground, known) {
                self.problem(problem);
            }
        }
        for key in ["stats", "description"] {
            if has(known, key) && self.default_of(key).is_some() {
                self.used.insert(key.to_owned());
                // The value may contain blanks, and is always a text.
                case.sets.push((key.into(), quoted(&self.joined(key))));
            }
        }
        Ok(())
    }

    /// Applies the command-line settings to a run.
    pub(super) fn take_sets(
        &mut self,
        case: &mut Case,
        config: &Config,
        known: &[Parameter],
    ) -> Result<(), Problem> {
        let changes = self.changes;
        for (key, value) in &changes.sets {
            if has(known, key) {
                case.sets.push((key.clone(), value.clone()));
                self.used_sets.insert(key.clone());
            } else if key == "eventrate" {
                case.event_rate = Some(event_rate(value).ok_or_else(|| {
                    let message = format!("--set eventrate: `{value}` is not a rate");
                    let label = "of this configuration; expected events per second, such as 250";
                    Problem::new(config.span, message, label)
                })?);
                self.used_sets.insert(key.clone());
            }
        }
        Ok(())
    }

    /// Applies one entry to a run.
    fn take_key(
        &mut self,
        case: &mut Case,
        (entry, value): (&Entry, &Value),
        text: String,
        ground: &CaseInput<'_, '_>,
        known: &[Parameter],
    ) -> Result<(), Problem> {
        let key = entry.key.as_str();
        match key {
            "runtime" => case.runtime = Some(time(value, &text, false)?),
            "duration" if ground.chosen.get("runtime").is_some() => self.note(format!(
                "{}: `duration` is an older name of `runtime`, which is set too and counts",
                case.config
            )),
            "duration" => case.runtime = Some(time(value, &text, false)?),
            "warmuptime" => case.warmup = Some(time(value, &text, true)?),
            "eventrate" if !has(known, key) => {
                case.event_rate = Some(event_rate(&text).ok_or_else(|| {
                    let message = format!("`{text}` is not a rate");
                    Problem::new(
                        value.span,
                        message,
                        "expected events per second, such as 250",
                    )
                })?);
            }
            _ => {}
        }
        // Filebench set a variable for every key, and the workload may use it.
        if TAKEN_AND_PASSED.contains(&key) && has(known, key) {
            let text = match key {
                "filesystem" => quoted(&text),
                _ => seconds(&text).unwrap_or(text),
            };
            case.sets.push((key.to_owned(), text));
        } else if !KEYS.contains(&key) || key == "eventrate" && has(known, key) {
            let of_function = ground.function.sweep.takes(key);
            if of_function {
                self.used.insert(key.to_owned());
            }
            self.pass(case, entry, text, known, of_function);
        }
        Ok(())
    }

    /// Sets the workload's parameter for a key, or notes that the key has no effect.
    fn pass(
        &mut self,
        case: &mut Case,
        entry: &Entry,
        text: String,
        known: &[Parameter],
        of_function: bool,
    ) {
        let key = entry.key.as_str();
        let names: Vec<&str> = known.iter().map(|k| k.name.as_str()).collect();
        match parameter(key, &names) {
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
            // A default may be for other workloads.
            None if self.is_default(entry) => {}
            None if of_function => {}
            None => {
                let hint = self.hint(key, &names);
                self.note(format!(
                    "{}: the workload {} has no parameter `{key}`, which has no effect{hint}",
                    case.config, case.personality
                ));
            }
        }
    }

    fn is_default(&self, entry: &Entry) -> bool {
        let mut defaults = self.profile.defaults.iter();
        defaults.any(|d| std::ptr::eq(d, entry))
    }

    /// A suggestion for a key that is no parameter of any workload; empty if a workload has the parameter, or no name
    /// is similar.
    fn hint(&mut self, key: &str, names: &[&str]) -> String {
        if self.is_known_anywhere(key) {
            return String::new();
        }
        let near = nearest(key, names.iter().copied().chain(KEYS));
        near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
    }

    fn is_known_anywhere(&mut self, key: &str) -> bool {
        let library = self.library;
        let all = self.all.get_or_insert_with(|| library.parameters_of_all());
        let names: Vec<&str> = all.iter().map(String::as_str).collect();
        parameter(key, &names).is_some()
    }

    /// Notes the keys of the defaults that no workload of the profile has as parameters.
    pub(super) fn check_defaults(&mut self) {
        if !self.problems.is_empty() || !self.changes.only.is_empty() {
            // Workloads of other configurations, which were not looked up, may use the keys.
            return;
        }
        let known: Vec<_> = self.parameters.values().flatten().cloned().collect();
        let parameters = known.iter().flat_map(|parameters| parameters.iter());
        let mut names: Vec<&str> = parameters.map(|p| p.name.as_str()).collect();
        names.sort_unstable();
        for entry in &self.profile.defaults {
            let key = entry.key.as_str();
            let set = self.changes.sets.iter().any(|(k, _)| k == key);
            if KEYS.contains(&key) || self.used.contains(key) || set {
                continue;
            }
            let hint = self.hint(key, &names);
            self.note(format!(
                "DEFAULTS: no workload of this profile has the parameter `{key}`, which has no \
                 effect{hint}"
            ));
        }
    }
}

/// Whether a workload has a parameter.
pub(super) fn has(known: &[Parameter], name: &str) -> bool {
    known.iter().any(|k| k.name == name)
}

fn event_rate(text: &str) -> Option<f64> {
    let rate = text.parse().ok();
    rate.filter(|r: &f64| r.is_finite() && *r >= 0.0)
}

/// A duration of a run; 0 is valid only if `zero`, for a warm-up.
fn time(value: &Value, text: &str, zero: bool) -> Result<Duration, Problem> {
    let time = parse_duration(text).ok().filter(|t| zero || !t.is_zero());
    time.ok_or_else(|| {
        let message = format!("`{text}` is not a time");
        Problem::new(value.span, message, "expected seconds, such as 60, or 5m")
    })
}

/// A duration as a number of whole seconds, as statements of workloads need; `None` for a fraction or an invalid
/// duration.
fn seconds(text: &str) -> Option<String> {
    let time = parse_duration(text).ok()?;
    (time.subsec_nanos() == 0).then(|| time.as_secs().to_string())
}

/// A WML text in quotes, with a backslash before each `"`, `\` and `$`.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// The entry of a key and the chosen value, unless the key is about file systems.
pub(super) fn found<'c>(chosen: &ChosenValue<'c>, key: &str) -> Option<(&'c Entry, &'c Value)> {
    let mut all = chosen.iter();
    all.find(|(e, _)| e.key == key && at_system(e, 0).is_none())
}
