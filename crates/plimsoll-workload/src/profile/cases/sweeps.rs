//! Functions of configurations, and their runs.

use super::keys::{found, has};
use super::{Case, CaseInput, CaseLister};
use crate::profile::functions::{self, GENERIC, SHARES, Step, Sweep, WORKING_SET};
use crate::profile::names::parameter;
use crate::profile::parse::{Config, Entry};
use crate::profile::values::ChosenValue;
use plimsoll_diagnostics::{Problem, Span};
use plimsoll_plan::{Parameter, parse_size};

/// Function of a configuration.
pub(super) struct Function {
    pub(super) name: String,
    /// Span of the function's name, or of the configuration if it names no function.
    pub(super) span: Span,
    pub(super) sweep: Sweep,
    /// Workload of a configuration without a personality: the workload with the function's name; `None` if the function
    /// belongs to no workload.
    pub(super) personality: Option<String>,
}

impl Function {
    /// Maximum number of runs of one combination of values on one file system.
    pub(super) fn most_steps(&self) -> usize {
        match self.sweep {
            Sweep::None => 1,
            Sweep::EventRate | Sweep::WorkingSet => 10,
            Sweep::FixedWorkingSet => functions::fixed_working_sets().len(),
        }
    }
}

impl<'a> CaseLister<'a> {
    /// The function of a configuration; `None` if the function is unknown and the configuration is left out.
    pub(super) fn function(
        &mut self,
        config: &Config,
        entries: &[&Entry],
    ) -> Result<Option<Function>, Problem> {
        let own = config.entries.iter().find(|e| e.key == "function");
        let entry = own.or_else(|| self.default_of("function"));
        let Some(entry) = entry else {
            return Ok(Some(Function {
                name: GENERIC.into(),
                span: config.span,
                sweep: Sweep::None,
                personality: None,
            }));
        };
        if let [_, second, ..] = &entry.values[..] {
            let message = "a configuration has one function";
            return Err(Problem::new(second.span, message, "a second one"));
        }
        let value = &entry.values[0];
        let chosen = ChosenValue::first(entries.iter().copied());
        let name = chosen.resolve(value)?;
        let function = |sweep, personality: Option<&String>| Function {
            name: name.clone(),
            span: value.span,
            sweep,
            personality: personality.cloned(),
        };
        if let Some((sweep, is_workload)) = functions::find(&name) {
            let own = Some(&name).filter(|_| is_workload);
            return Ok(Some(function(sweep, own)));
        }
        let named = entries.iter().filter(|e| e.key == "personality");
        let mut named = named.flat_map(|e| &e.values);
        if named.any(|v| v.text == name) || self.known(&name).is_ok() {
            self.note(format!(
                "{}: the function `{name}` is taken to be one run of the workload, as generic is",
                config.name
            ));
            return Ok(Some(function(Sweep::None, Some(&name))));
        }
        let reason = functions::unknown(&name);
        self.leave(config.name.clone(), reason, value.span, "not known");
        Ok(None)
    }

    /// Steps of a sweep; `None` for a function that runs the workload once, and if a command-line setting replaces the
    /// sweep.
    pub(super) fn steps(
        &mut self,
        ground: &CaseInput<'_, '_>,
        case: &Case,
        known: &[Parameter],
    ) -> Result<Option<Vec<Step>>, Problem> {
        let sweep = ground.function.sweep;
        let ended_by = match sweep {
            Sweep::None => return Ok(None),
            Sweep::EventRate => "eventrate",
            Sweep::WorkingSet | Sweep::FixedWorkingSet => WORKING_SET,
        };
        // A command-line setting of the swept parameter replaces the sweep, as a setting of any key replaces the list
        // of the key.
        if self.changes.sets.iter().any(|(key, _)| key == ended_by) {
            return Ok(None);
        }
        if sweep == Sweep::EventRate {
            return self.event_rates(ground).map(Some);
        }
        if !has(known, WORKING_SET) {
            self.note(format!(
                "{}: the workload {} has no parameter `{WORKING_SET}`, so that the runs of the function `{}` \
                 do not differ",
                case.config, case.personality, ground.function.name
            ));
        }
        match sweep {
            Sweep::WorkingSet => self.working_sets(ground, known).map(Some),
            _ => Ok(Some(functions::fixed_working_sets())),
        }
    }

    /// Steps of a sweep over event rates. The sweep needs a run time and a warm-up time, which apply to each run.
    fn event_rates(&mut self, ground: &CaseInput<'_, '_>) -> Result<Vec<Step>, Problem> {
        let why = "the maximum event rate of its ten runs";
        let (text, span) = self.needed(ground, "maxrate", &[], why, "1000")?;
        let rate = text.parse().ok();
        let rate = rate.filter(|r: &f64| r.is_finite() && *r > 0.0);
        let rate = rate.ok_or_else(|| {
            let message = format!("`{text}` is not a rate above zero");
            Problem::new(span, message, "expected events per second, such as 1000")
        })?;
        let (changes, chosen) = (self.changes, &ground.chosen);
        let given = |key: &str| chosen.get(key).is_some();
        if !changes.has_time && !given("runtime") && !given("duration") {
            let why = "as each of its runs is that long";
            return Err(missing(ground.function, "runtime", why, "60"));
        }
        if !changes.has_warmup && !given("warmuptime") {
            let why = "which passes before each of its runs";
            return Err(missing(ground.function, "warmuptime", why, "30"));
        }
        Ok(functions::event_rates(rate))
    }

    /// Steps of a sweep over working sets, in fractions of `filesize` from the command line, the profile or the
    /// workload.
    fn working_sets(
        &mut self,
        ground: &CaseInput<'_, '_>,
        known: &[Parameter],
    ) -> Result<Vec<Step>, Problem> {
        let why = "which the working sets of its ten runs are shares of";
        let (text, span) = self.needed(ground, "filesize", known, why, "1g")?;
        let bytes = parse_size(&text).ok().filter(|b| *b >= u64::from(SHARES));
        let bytes = bytes.ok_or_else(|| {
            let function = &ground.function.name;
            let message =
                format!("the function `{function}` needs one size of the files, not `{text}`");
            Problem::new(span, message, "expected a size, such as 1g")
        })?;
        Ok(functions::working_sets(bytes))
    }

    /// The value of a key that a function needs, and the span to blame for the value: from the command line, else from
    /// the profile, else from the workload. `why` and `example` complete the error of a missing key.
    fn needed(
        &mut self,
        ground: &CaseInput<'_, '_>,
        key: &str,
        known: &[Parameter],
        why: &str,
        example: &str,
    ) -> Result<(String, Span), Problem> {
        let function = ground.function;
        let mut sets = self.changes.sets.iter().rev();
        if let Some((_, value)) = sets.find(|(name, _)| name == key) {
            self.used_sets.insert(key.to_owned());
            return Ok((value.clone(), function.span));
        }
        if let Some((_, value)) = found(&ground.chosen, key) {
            return Ok((ground.chosen.resolve(value)?, value.span));
        }
        let names: Vec<&str> = known.iter().map(|k| k.name.as_str()).collect();
        let own = parameter(key, &names).and_then(|n| known.iter().find(|k| k.name == n));
        let value = own.map(|k| k.default.clone()).filter(|d| !d.is_empty());
        let value = value.ok_or_else(|| missing(function, key, why, example))?;
        Ok((value, function.span))
    }
}

/// The error that `key`, which the function needs, is set nowhere; `why` completes the message, `example` the help.
fn missing(function: &Function, key: &str, why: &str, example: &str) -> Problem {
    let message = format!("the function `{}` needs `{key}`, {why}", function.name);
    let problem = Problem::new(function.span, message, format!("`{key}` is not set"));
    problem.help(format!("add `{key} = {example};`, in DEFAULTS or here"))
}
