//! Parameters that `--vary` varies, and the configuration of each of their values.

use crate::cli::CommonRunArgs;
use crate::exit::CommandError;
use crate::new_series;
use crate::workload::{self, ParsedWorkload, WorkloadSource};
use plimsoll_diagnostics::nearest;
use plimsoll_plan::{Condition, OnError, Plan, Promise, Source, WorkDirSpec};
use plimsoll_results::{Configuration, Recipe, SearchStart};
use plimsoll_series::events::EventSpec;
use plimsoll_target::{check_url, option_of, scheme_of, with_option};

/// Name of the varied load in business metrics.
const LOAD: &str = "load";

/// Name of the varied rate: the event rate of a Filebench workload, or the rate of all processes of a mix.
const RATE: &str = "rate";

/// Maximum number of a workload's parameters for a message that lists the parameters.
const MAX_LISTED: usize = 16;

/// Place of a varied parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Parameter of the workload, which `--set` changes too.
    Workload,
    /// Load in business metrics, which `--load` sets too.
    Load,
    /// Rate of events of a Filebench workload, or of all operations of a mix.
    Rate,
    /// Option of the target's URL.
    Target,
}

/// The place of the parameter `name`. A parameter of the workload has precedence over other places of the same name.
///
/// # Errors
/// If the name is no parameter; the message names the parameters that can vary.
fn place_of(
    name: &str,
    source: &WorkloadSource,
    parsed: &dyn ParsedWorkload,
    target: &str,
) -> Result<Place, CommandError> {
    let parameters = parsed.parameters();
    let scheme = scheme_of(target);
    let options: Vec<&str> = scheme.into_iter().flat_map(|s| s.options()).collect();
    if parsed.has_parameter(name) {
        return Ok(Place::Workload);
    }
    match name {
        LOAD => return Ok(Place::Load),
        RATE => return Ok(Place::Rate),
        name if options.contains(&name) => return Ok(Place::Target),
        _ => {}
    }
    let own = parameters.iter().map(|p| p.name.as_str());
    let listed = match parameters.len() {
        0 => "the workload has no parameters".to_owned(),
        n if n > MAX_LISTED => format!(
            "`plimsoll workloads show {}` lists the workload's parameters",
            source.name
        ),
        _ => format!(
            "the workload has {}",
            own.clone().collect::<Vec<_>>().join(", ")
        ),
    };
    let others = match options[..] {
        [] => format!("{LOAD} and {RATE}"),
        _ => format!(
            "{LOAD}, {RATE} and the target's options {}",
            options.join(", ")
        ),
    };
    let known = own.chain([LOAD, RATE]).chain(options.iter().copied());
    let hint = nearest(name, known);
    let hint = hint.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    Err(CommandError::usage(format!(
        "--vary: `{name}` cannot vary: {listed}; other parameters are {others}{hint}"
    )))
}

/// Promises that are the opposites of conditions of `--until`.
pub fn promises(until: &[Condition]) -> Vec<Promise> {
    until.iter().map(|c| Promise::from(c.opposite())).collect()
}

/// Adds promises of `--until` to a Plan.
///
/// # Errors
/// If the workload lacks the operation of a promise.
pub fn add_promises(plan: &mut Plan, promises: &[Promise]) -> Result<(), CommandError> {
    for promise in promises {
        // The message shows the condition as the user wrote it.
        let checked = plan.check_condition(&promise.condition.opposite());
        checked.map_err(|e| CommandError::usage(format!("--until {e}")))?;
        plan.promises.push(promise.clone());
    }
    Ok(())
}

/// Recipe of a series over parameters, from the workload and options of the command line.
///
/// # Errors
/// If the simulated system of the target is unknown, or the process has no current directory.
pub fn recipe(
    found: &WorkloadSource,
    how: &CommonRunArgs,
    load: Option<u64>,
    until: &[Condition],
) -> Result<Recipe, CommandError> {
    let no_dir =
        |e: std::io::Error| CommandError::usage(format!("there is no current directory: {e}"));
    let mut overrides = workload::changes(how, &found.name)?;
    overrides.load = load;
    // As at load points, a failed operation makes its run invalid without ending the series.
    overrides.options.on_error = how.on_error.map_or(OnError::Count, Into::into);
    let target = &how.files.target;
    if let Some(dir) = &mut overrides.dir {
        *dir = plimsoll_target::absolute(target, dir).map_err(no_dir)?;
    }
    let path = if found.path.as_os_str().is_empty() {
        found.path.clone()
    } else {
        std::path::absolute(&found.path).map_err(no_dir)?
    };
    let (target, _) = workload::absolute_target(target)?;
    Ok(Recipe {
        source: Source {
            kind: found.kind,
            name: found.name.clone(),
            text: found.text.clone(),
        },
        path,
        current_dir: std::env::current_dir().map_err(no_dir)?,
        overrides,
        has_dir: how.files.dir.is_some(),
        target,
        until: promises(until),
    })
}

fn source_of(recipe: &Recipe) -> WorkloadSource {
    WorkloadSource {
        name: recipe.source.name.clone(),
        path: recipe.path.clone(),
        text: recipe.source.text.clone(),
        kind: recipe.source.kind,
        current_dir: Some(recipe.current_dir.clone()),
    }
}

/// The configuration of `values`, which are names of parameters with texts, without a name of its own. `first` is the
/// work directory of the series' first configuration, which replaces a temporary work directory.
///
/// # Errors
/// If a parameter cannot vary, or the workload or the target refuses a value.
pub fn configuration(
    recipe: &Recipe,
    values: &[(String, String)],
    first: Option<&WorkDirSpec>,
    events: &[EventSpec],
) -> Result<Configuration, CommandError> {
    let source = source_of(recipe);
    let parsed = workload::parse(&source)?;
    let mut overrides = recipe.overrides.clone();
    let mut target = recipe.target.clone();
    for (name, value) in values {
        let refused = |expected: &str| {
            CommandError::usage(format!("--vary {name}: `{value}` is not {expected}"))
        };
        match place_of(name, &source, parsed.as_ref(), &target)? {
            Place::Workload => overrides.sets.push((name.clone(), value.clone())),
            Place::Load => {
                let load = value.parse().ok().filter(|n| *n > 0);
                overrides.load =
                    Some(load.ok_or_else(|| refused("a number of business metrics, at least 1"))?);
            }
            Place::Rate => {
                let rate = value
                    .parse()
                    .ok()
                    .filter(|r: &f64| r.is_finite() && *r > 0.0);
                overrides.rate = Some(rate.ok_or_else(|| refused("a rate per second above 0"))?);
            }
            Place::Target if value.contains(['&', '?', '#']) => {
                return Err(refused("the value of an option"));
            }
            Place::Target => target = with_option(&target, name, value),
        }
    }
    check_url(&target).map_err(CommandError::usage)?;
    let mut plan = parsed.lower(&source, &overrides)?;
    add_promises(&mut plan, &recipe.until)?;
    workload::adapt_to(&mut plan, recipe.has_dir, &target);
    if let Some(first) = first
        && first.temporary
        && plan.work_dir.temporary
    {
        plan.work_dir.dir.clone_from(&first.dir);
    }
    new_series::configuration(plan, &target, events)
}

/// First value of a search over the parameter `name` if the user gives no first value: the value by the settings, by
/// the workload or by the target's URL.
///
/// # Errors
/// If the parameter cannot vary, or its value is not a whole number.
pub fn first_value(recipe: &Recipe, name: &str) -> Result<SearchStart, CommandError> {
    let source = source_of(recipe);
    let parsed = workload::parse(&source)?;
    let known = match place_of(name, &source, parsed.as_ref(), &recipe.target)? {
        Place::Workload => {
            let sets = recipe.overrides.sets.iter().rev();
            let set = sets
                .filter(|(known, _)| known == name)
                .map(|(_, value)| value.clone());
            let parameters = parsed.parameters().into_iter();
            let defaults = parameters.filter(|p| p.name == name).map(|p| p.default);
            set.chain(defaults).next()
        }
        Place::Load => Some("1".to_owned()),
        Place::Rate => {
            let plan = parsed.lower(&source, &recipe.overrides)?;
            let of_mix = plan
                .metric
                .as_ref()
                .and_then(|metric| Some(metric.rate? * metric.load as f64 * metric.scale));
            let rate = of_mix.or(plan.event_rate);
            rate.map(|rate| (rate.round().max(1.0) as u64).to_string())
        }
        Place::Target => option_of(&recipe.target, name).map(str::to_owned),
    };
    let start = known
        .as_deref()
        .and_then(|text| SearchStart::parse(text).ok());
    start.ok_or_else(|| {
        let why = match known {
            Some(value) => format!("its value `{value}` is not a whole number of at least 1"),
            None => "it has no value".to_owned(),
        };
        CommandError::usage(format!(
            "--vary {name} needs a first value, such as {name}=1: {why}"
        ))
    })
}
