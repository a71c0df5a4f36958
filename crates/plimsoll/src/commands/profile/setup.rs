//! The start of a profile: its runs, from the text and the command line, or from the directory of one
//! that is resumed.

use super::catalog::WorkloadCatalog;
use super::clients;
use super::distinct;
use crate::cli::{FileSystem, ProfileArgs};
use crate::communicator::Communicator;
use crate::event::EventSpec;
use crate::exit::CommandError;
use crate::resume::{KeptCommands, check_resume};
use crate::run_context::{refuse_results_among_files, results_path_error};
use crate::{system_text, workload};
use plimsoll_diagnostics::nearest;
use plimsoll_engine::{Preflight, Settings};
use plimsoll_plan::{counted, show_duration};
use plimsoll_results::{
    ClockKind, Document, Environment, ProfileCase, ProfileDir, ProfileNotRun, ProfileResults,
    ProfileWriter, Program,
};
use plimsoll_workload::profile::{
    CaseFilesystem, CaseList, Profile, ProfileOverrides, SkippedConfiguration, library,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Results directory if neither the profile nor the command line names one.
const DEFAULT_RESULTS_DIR: &str = "plimsoll-results";

/// The results of a profile before its first run, or before the next; rank 0 calls this.
pub(super) fn open(
    args: &ProfileArgs,
    communicator: &Communicator,
) -> Result<ProfileWriter, CommandError> {
    if let Some(dir) = &args.resume {
        // The writer lists a run that was written and not listed: then only a report remains to be
        // made.
        let before = ProfileDir::at(dir).read().map_err(CommandError::usage)?;
        let mut writer = ProfileWriter::resume(dir).map_err(CommandError::usage)?;
        let begun = writer.document().ranks;
        check_resume(&writer, before.missing() > 0, begun, communicator.working())?;
        let results = writer.document();
        let mut kept = KeptCommands::default();
        kept.add_hooks(results.hooks.as_ref());
        kept.add_events(&results.events);
        for case in results.cases.iter().filter(|case| case.is_missing()) {
            kept.add_plan(&case.plan);
        }
        kept.check(dir, args.how.allow_commands)?;
        check_hosts(args, results)?;
        for case in results.cases.iter().filter(|case| case.is_missing()) {
            super::events(results, case).map_err(CommandError::usage)?;
        }
        add_fingerprints(&mut writer)?;
        return Ok(writer);
    }
    let started = SystemTime::now();
    let hooks = args.manner.hooks.hooks(args.how.allow_commands)?;
    let ready = PreparedProfile::read(args)?;
    check_hosts(args, &ready.results)?;
    let refused = ready.refusals()?;
    if !refused.is_empty() {
        return Err(CommandError::usage(refused.join("\n  ")));
    }
    for case in &ready.results.cases {
        refuse_results_among_files(&ready.root, &case.plan, &ready.settings(case))?;
    }
    let results = ProfileResults {
        ranks: communicator.working(),
        hooks,
        ..ready.results
    };
    ProfileWriter::create(&ready.root, results, started).map_err(results_path_error)
}

/// Refuses hosts that cannot reach the target of a run that remains to be made.
fn check_hosts(args: &ProfileArgs, results: &ProfileResults) -> Result<(), CommandError> {
    let ranks = &args.manner.ranks;
    for case in results.cases.iter().filter(|case| case.is_missing()) {
        ranks.check_target(&case.target)?;
        ranks.check_io(&case.target)?;
    }
    ranks.check_filesystems(&results.filesystems())
}

/// Writes the fingerprints of simulated systems that missing runs lack.
fn add_fingerprints(writer: &mut ProfileWriter) -> Result<(), CommandError> {
    let mut cases = writer.document().cases.clone();
    let mut notes = Vec::new();
    let missing = cases.iter_mut().filter(|case| case.is_missing());
    for case in missing.filter(|case| case.system.is_none()) {
        case.system = system_text::fingerprint(&case.target)?;
        let note = system_text::unknown(&case.target);
        if case.system.is_some() && !notes.contains(&note) {
            notes.push(note);
        }
    }
    if notes.is_empty() {
        return Ok(());
    }
    let change = |profile: &mut ProfileResults| {
        profile.cases = cases;
        profile.notes.extend(notes);
    };
    writer.change(change).map_err(CommandError::failed)
}

/// Name or path of the profile.
pub(super) fn file(args: &ProfileArgs) -> &Path {
    let file = args.file.as_deref();
    file.expect("clap requires it without --resume")
}

/// The text of the profile: a built-in name, else a path.
pub(super) fn text(args: &ProfileArgs) -> Result<String, CommandError> {
    let file = file(args);
    let name = file.to_str().unwrap_or_default();
    if let Some(text) = library::find(name) {
        return Ok(text.to_owned());
    }
    let is_path = name.contains('/') || name.ends_with(".prof") || file.exists();
    if !is_path && let Some(near) = nearest(name, library::names()) {
        return Err(CommandError::usage(format!(
            "there is no profile `{name}`: did you mean `{near}`?"
        )));
    }
    workload::read_text("profile", file).map_err(CommandError::usage)
}

/// A profile with everything that its runs do.
pub(super) struct PreparedProfile {
    pub(super) results: ProfileResults,
    /// Directory that the results directory is made in.
    root: PathBuf,
}

impl PreparedProfile {
    /// Reads the profile and prepares its runs.
    pub(super) fn read(args: &ProfileArgs) -> Result<Self, CommandError> {
        distinct::check_labels(args.filesystem.iter().map(|f| f.label.as_str()))?;
        let file = file(args);
        let text = text(args)?;
        let name = file.display().to_string();
        let profile =
            plimsoll_workload::profile::parse(&text, &name).map_err(workload::diagnosed)?;
        check_only(args, &profile)?;
        let shelf = WorkloadCatalog::beside(file);
        let listed = profile.cases(&shelf, &changes(args));
        // The error of a workload says more than that it is not available.
        if let Some(broken) = shelf.broken.take() {
            return Err(broken);
        }
        let mut listed = listed.map_err(workload::diagnosed)?;
        check_sets(&listed)?;
        let cases = listed.cases.iter().map(|c| shelf.plan(c, args, &name));
        let cases = cases.collect::<Result<Vec<_>, _>>()?;
        distinct::check_places(&cases)?;
        listed.notes.extend(shelf.notes.take());
        listed.notes.extend(clients::note(&profile, args));
        let root = match (&args.results, &listed.stats) {
            (Some(results), _) => results.clone(),
            (None, Some(stats)) => PathBuf::from(stats),
            (None, None) => PathBuf::from(DEFAULT_RESULTS_DIR),
        };
        Ok(Self {
            results: results(args, &profile, listed, cases),
            root,
        })
    }

    /// Reasons why runs would be refused, in sentences.
    pub(super) fn refusals(&self) -> Result<Vec<String>, CommandError> {
        let mut refused = Vec::new();
        for case in &self.results.cases {
            let look = self.look(case)?;
            let said = look.refusals.iter();
            refused.extend(said.map(|r| format!("{} on {}: {r}", case.name, case.filesystem)));
        }
        Ok(refused)
    }

    /// Settings of the engine for a run.
    fn settings(&self, case: &ProfileCase) -> Settings {
        let config = super::load_test_config(&self.results, case, case.plan.clone());
        super::settings(&config)
    }

    /// The needs of a run, and the available resources.
    pub(super) fn look(&self, case: &ProfileCase) -> Result<Preflight, CommandError> {
        plimsoll_engine::preflight(&case.plan, &self.settings(case))
            .map_err(|e| CommandError::usage(format!("{} on {}: {e}", case.name, case.filesystem)))
    }
}

fn results(
    args: &ProfileArgs,
    profile: &Profile,
    listed: CaseList,
    cases: Vec<ProfileCase>,
) -> ProfileResults {
    let file = Path::new(profile.name());
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let stamp = jiff::Timestamp::now();
    ProfileResults {
        schema_version: ProfileResults::SCHEMA,
        profile: stem.into_owned(),
        file: profile.name().to_owned(),
        text: profile.text().to_owned(),
        description: listed.description,
        started_at: stamp.to_string(),
        interrupted: false,
        repeat: args.repeat,
        cases,
        not_run: listed.not_run.into_iter().map(not_run).collect(),
        program: Program::plimsoll(),
        clock: args.how.clock(),
        lanes: args.how.lanes.map(u64::from),
        interval_s: args.how.interval.as_secs_f64(),
        ranks: 1,
        hooks: None,
        events: args.events.event.iter().map(EventSpec::to_string).collect(),
        percentiles_shown: None,
        notes: listed.notes,
        environment: Environment::look(None),
    }
}

fn not_run(skipped: SkippedConfiguration) -> ProfileNotRun {
    ProfileNotRun {
        name: skipped.name,
        reason: skipped.reason,
    }
}

/// The overrides of the command line.
fn changes(args: &ProfileArgs) -> ProfileOverrides {
    let place = |f: &FileSystem| CaseFilesystem {
        label: f.label.clone(),
        dir: f.dir.clone(),
        target: f.target.clone(),
    };
    ProfileOverrides {
        places: args.filesystem.iter().map(place).collect(),
        dir: args.how.dir.clone(),
        has_target: args.how.target != plimsoll_target::DEFAULT_TARGET,
        has_time: args.how.time.is_some(),
        has_warmup: args.how.warmup.is_some(),
        sets: args.how.set.clone(),
        only: args.only.clone(),
    }
}

/// A name of `--only` that the profile does not have.
fn check_only(args: &ProfileArgs, profile: &Profile) -> Result<(), CommandError> {
    for name in &args.only {
        if profile.configs().any(|c| c == name) {
            continue;
        }
        let known: Vec<&str> = profile.configs().collect();
        let hint = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", known.join(", ")),
        };
        return Err(CommandError::usage(format!(
            "{} has no configuration `{name}`: {hint}",
            profile.name()
        )));
    }
    Ok(())
}

/// A parameter of `--set` that no workload of the profile has.
fn check_sets(listed: &CaseList) -> Result<(), CommandError> {
    match listed.unused_sets.first() {
        Some(name) => Err(CommandError::usage(format!(
            "--set {name}: no workload of the profile has the parameter `{name}`"
        ))),
        None => Ok(()),
    }
}

/// The first line: what is run, and about how long that takes.
pub(super) fn headline(results: &ProfileResults) -> String {
    let missing: Vec<&ProfileCase> = results.cases.iter().filter(|c| c.is_missing()).collect();
    let left = match missing.len() == results.cases.len() {
        true => "",
        false => " left",
    };
    let each = match results.repeat {
        1 => String::new(),
        n => format!(", each {n} times"),
    };
    let systems = results.filesystems().join(", ");
    let clock = match results.clock {
        ClockKind::Real => "",
        ClockKind::Virtual => " of virtual time",
    };
    format!(
        "profile {}: {}{left} on {systems}{each}: about {}{clock} plus the time to create the files",
        results.profile,
        counted(missing.len() as u64, "run", "runs"),
        show_duration(length(results, &missing))
    )
}

/// Time that runs warm up and measure for.
pub(super) fn length(results: &ProfileResults, cases: &[&ProfileCase]) -> Duration {
    let of_one = |c: &&ProfileCase| {
        let (warmup, time) = c.plan.times();
        warmup + time
    };
    cases.iter().map(of_one).sum::<Duration>() * results.repeat
}
