//! Workloads available to a profile, and the Plans of its runs.

use crate::cli::ProfileArgs;
use crate::exit::{CommandError, Exit};
use crate::workload::{self, ParsedWorkload, WorkloadSource};
use crate::{io_choice, new_series};
use plimsoll_diagnostics::nearest;
use plimsoll_plan::{OpKind, Parameter, Warmup};
use plimsoll_results::Configuration;
use plimsoll_workload::NamedText;
use plimsoll_workload::profile::{Case, Library, Unavailable, directory_name};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Parsed workload of a profile with its source text, kept from the check of the profile for the Plans of its runs.
struct LoadedWorkload {
    found: WorkloadSource,
    reading: Box<dyn ParsedWorkload>,
}

/// Workloads that a profile may use: built-in workloads, and files beside the profile.
pub(super) struct WorkloadCatalog {
    beside: PathBuf,
    read: RefCell<HashMap<String, Rc<LoadedWorkload>>>,
    /// Error of the first workload that was found but could not be read.
    pub(super) broken: RefCell<Option<CommandError>>,
    /// Notes for the results of the profile, such as a note that a workload has been renamed.
    pub(super) notes: RefCell<Vec<String>>,
}

/// Directories of Filebench 1.x files, relative to the profile: workloads, and configuration keys.
const WORKLOAD_DIRS: [&str; 2] = ["", "../workloads"];
const CONFIGURATION_DIRS: [&str; 3] = ["", "config", "../config"];

/// Reasons why a workload was not found.
enum LookupError {
    /// Lookup of a name that neither a built-in workload nor a file has; the sentence says where a file was expected.
    Nowhere(String),
    /// Lookup of a workload whose file exists but cannot be read.
    Unreadable(CommandError),
}

impl Library for WorkloadCatalog {
    fn parameters(&self, personality: &str) -> Result<Vec<Parameter>, Unavailable> {
        let unreadable = |stopped: CommandError| {
            self.broken.borrow_mut().get_or_insert(stopped);
            Unavailable::Unreadable(format!("the workload `{personality}` cannot be read"))
        };
        let found = match self.find(personality) {
            Ok(found) => found,
            Err(LookupError::Nowhere(reason)) => return Err(Unavailable::Nowhere(reason)),
            Err(LookupError::Unreadable(stopped)) => return Err(unreadable(stopped)),
        };
        let reading = workload::parse(&found).map_err(unreadable)?;
        let parameters = reading.parameters();
        let read = Rc::new(LoadedWorkload { found, reading });
        self.read.borrow_mut().insert(personality.to_owned(), read);
        Ok(parameters)
    }

    fn parameters_of_all(&self) -> Vec<String> {
        let readings = workload::builtins()
            .into_iter()
            .flat_map(|found| workload::parse(&found));
        let names = readings.flat_map(|r| r.parameters()).map(|p| p.name);
        names.chain(OLD_PARAMETERS.map(str::to_owned)).collect()
    }

    fn configuration(&self, name: &str) -> Result<Option<NamedText>, String> {
        let Some(path) = self.file(&CONFIGURATION_DIRS, name, &[".conf"]) else {
            return Ok(None);
        };
        let text = workload::read_text("configuration", &path)?;
        let name = path.display().to_string();
        Ok(Some(NamedText { name, text }))
    }
}

/// Parameters of Filebench 1.x workloads that current workloads do not have.
const OLD_PARAMETERS: [&str; 4] = ["debug", "runmode", "cached", "sync"];

impl WorkloadCatalog {
    pub(super) fn beside(profile: &Path) -> Self {
        Self {
            beside: profile.parent().unwrap_or(Path::new("")).to_owned(),
            read: RefCell::default(),
            broken: RefCell::default(),
            notes: RefCell::default(),
        }
    }

    /// First existing file `name` plus one of `endings` in one of `dirs`, which are relative to the profile's
    /// directory; a file in an earlier directory takes precedence over an earlier ending.
    fn file(&self, dirs: &[&str], name: &str, endings: &[&str]) -> Option<PathBuf> {
        let in_dir = |dir: &&str| {
            let path = |ending: &&str| self.beside.join(dir).join(format!("{name}{ending}"));
            let mut paths = endings.iter().map(path);
            paths.find(|p| p.is_file())
        };
        dirs.iter().find_map(in_dir)
    }

    /// Finds a personality: a built-in name, a file beside the profile with or without its ending, or a former name of
    /// a built-in workload.
    fn find(&self, name: &str) -> Result<WorkloadSource, LookupError> {
        let builtin = |name: &str| workload::builtins().into_iter().find(|b| b.name == name);
        if let Some(found) = builtin(name) {
            return Ok(found);
        }
        if let Some(path) = self.file(&WORKLOAD_DIRS, name, &["", ".f", ".toml"]) {
            // A leading `./` makes `workload::find` take the name for a path, never for a built-in workload.
            let path = Path::new(".").join(path);
            return workload::find(&path).map_err(LookupError::Unreadable);
        }
        if let Some((new, found)) = plimsoll_workload::profile::renamed_personality(name)
            .and_then(|new| Some((new, builtin(new)?)))
        {
            let note = format!("the workload {name} has been renamed {new}");
            self.notes.borrow_mut().push(note);
            return Ok(found);
        }
        Err(LookupError::Nowhere(nowhere(name)))
    }

    /// Adds a note to the profile's results, unless an equal note is present.
    fn note(&self, text: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// Plan of one run of a profile.
    pub(super) fn plan(
        &self,
        case: &Case,
        args: &ProfileArgs,
        profile: &str,
    ) -> Result<Configuration, CommandError> {
        let read = self.read.borrow().get(&case.personality).cloned();
        let read = read.ok_or_else(|| CommandError::usage("a workload was not read"))?;
        let mut target = case
            .place
            .target
            .as_ref()
            .unwrap_or(&args.how.files.target)
            .clone();
        args.events
            .add_to(&mut target)
            .map_err(|e| of_case(e, case, profile))?;
        let target = target.as_str();
        let dir = case.place.dir.as_deref();
        let mut overrides = workload::changes_at(&args.how, &read.found.name, dir, target)?;
        overrides.sets = case.sets.clone();
        overrides.time = args.how.time.or(case.runtime);
        overrides.warmup = args.how.warm_up()?.or(case.warmup.map(Warmup::Fixed));
        overrides.rate = case.event_rate;
        let plan = workload::lower_parsed(&*read.reading, &read.found, &overrides);
        let mut plan = plan.map_err(|s| of_case(s, case, profile))?;
        workload::adapt_to(&mut plan, dir.is_some(), target);
        let target = io_choice::target_of(target, &plan);
        let target = target.as_str();
        if case.event_rate.is_some() && !plan.operations.iter().any(|o| o.kind == OpKind::Limit) {
            self.note(format!(
                "{}: the workload {} has no limiter, such as eventlimit, so that the event rate has no \
                 effect",
                case.config, plan.name
            ));
        }
        workload::make_absolute(&mut plan, target)?;
        let target = new_series::target(target).map_err(|e| of_case(e, case, profile))?;
        let directory = directory_name(&case.place.label);
        Ok(Configuration {
            name: case.name.clone(),
            filesystem: Some(case.place.label.clone()),
            directory: format!("{directory}/{}", case.name),
            before: vec![],
            target,
            plan,
        })
    }
}

/// Adds the configuration's name to a workload error.
fn of_case(stopped: CommandError, case: &Case, profile: &str) -> CommandError {
    match stopped.exit {
        Exit::Usage => CommandError {
            message: format!(
                "error: {profile}:{}: the configuration {} cannot be run on {}:\n{}",
                case.line, case.name, case.place.label, stopped.message
            ),
            ..stopped
        },
        _ => stopped,
    }
}

/// Error message for an unknown workload name.
fn nowhere(name: &str) -> String {
    let builtins = workload::builtins();
    let hint = match nearest(name, builtins.iter().map(|b| b.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it is not built in, and no file {name}.f is beside the profile"),
    };
    format!("`{name}` is not a workload: {hint}")
}
