//! Preparation of a profile: the Plans and settings of all runs, from the profile's text and the command line.

use super::catalog::WorkloadCatalog;
use super::{clients, distinct};
use crate::cli::{FileSystem, ProfileArgs};
use crate::exit::CommandError;
use crate::{new_series, workload};
use plimsoll_diagnostics::nearest;
use plimsoll_engine::Preflight;
use plimsoll_plan::Note;
use plimsoll_results::{
    Configuration, Profile as ProfileFigures, Series, SeriesKind, SkippedConfiguration,
};
use plimsoll_series::events::check_phases;
use plimsoll_target::DirectIo;
use plimsoll_workload::profile::{BUILTINS, CaseFilesystem, CaseList, Profile, ProfileOverrides};
use std::path::{Path, PathBuf};

/// Parameter of workloads that chooses direct I/O.
const DIRECT_IO: &str = "directio";

/// Smallest transfer of a check, in bytes.
const SMALLEST_TRANSFER: u64 = 4096;

/// Directory in which a profile's results directory is created if neither `--results` nor `stats` names another.
const DEFAULT_RESULTS_DIR: &str = "plimsoll-results";

/// Text of the profile: a built-in profile, or else a file.
pub(super) fn text(args: &ProfileArgs) -> Result<String, CommandError> {
    let file = &args.file;
    let name = file.to_str().unwrap_or_default();
    if let Some(builtin) = BUILTINS.find(name) {
        return Ok(builtin.text.to_owned());
    }
    let is_path = name.contains('/') || name.ends_with(".prof") || file.exists();
    if !is_path && let Some(near) = BUILTINS.suggest(name) {
        return Err(CommandError::usage(format!(
            "there is no profile `{name}`: did you mean `{near}`?"
        )));
    }
    workload::read_text("profile", file).map_err(CommandError::usage)
}

/// A profile that is ready to run: its `series.json` before the first run, and the location of the results.
pub(super) struct PreparedProfile<'a> {
    pub(super) series: Series,
    /// Parent of the results directory.
    pub(super) root: PathBuf,
    pub(super) args: &'a ProfileArgs,
}

impl<'a> PreparedProfile<'a> {
    /// Reads the profile and prepares its runs.
    pub(super) fn read(args: &'a ProfileArgs, ranks: u32) -> Result<Self, CommandError> {
        Self::with_sets(args, ranks, &args.how.files.set)
    }

    /// Reads the profile of a check and prepares its steps, with direct I/O if the target supports direct I/O, and
    /// without the steps that preflight refuses, unless preflight refuses all.
    pub(super) fn of_check(args: &'a ProfileArgs, ranks: u32) -> Result<Self, CommandError> {
        let mut ready = Self::read(args, ranks)?;
        let mut sets = args.how.files.set.clone();
        let is_undecided =
            ready.uses_direct_io() && !sets.iter().any(|(name, _)| name == DIRECT_IO);
        if is_undecided && !ready.takes_direct_io()? {
            sets.push((DIRECT_IO.to_owned(), "0".to_owned()));
            ready = Self::with_sets(args, ranks, &sets)?;
            if ready.is_local() {
                let text = "the file system does not support direct I/O with transfers of 4 KiB: reads and writes go \
                            through the page cache";
                ready.series.notes.push(Note::from(text.to_owned()));
            }
        }
        ready.skip_refused()?;
        if let SeriesKind::Profile(figures) = &mut ready.series.kind {
            figures.by_operation = true;
        }
        Ok(ready)
    }

    /// Reads the profile and prepares its runs with the parameters `sets`.
    fn with_sets(
        args: &'a ProfileArgs,
        ranks: u32,
        sets: &[(String, String)],
    ) -> Result<Self, CommandError> {
        distinct::check_labels(args.filesystem.iter().map(|f| f.label.as_str()))?;
        let file = &args.file;
        let text = text(args)?;
        let name = file.display().to_string();
        let profile =
            plimsoll_workload::profile::parse(&text, &name).map_err(workload::diagnosed)?;
        check_only(args, &profile)?;
        let shelf = WorkloadCatalog::beside(file);
        let listed = profile.cases(&shelf, &changes(args, sets));
        // The parse error of a workload file is reported first, because it is more specific than the profile's error
        // that the workload is not available.
        if let Some(broken) = shelf.broken.take() {
            return Err(broken);
        }
        let mut listed = listed.map_err(workload::diagnosed)?;
        check_sets(&listed)?;
        let configurations = listed.cases.iter().map(|c| shelf.plan(c, args, &name));
        let configurations = configurations.collect::<Result<Vec<_>, _>>()?;
        distinct::check_places(&configurations)?;
        for configuration in &configurations {
            let target = &configuration.target.url;
            check_phases(&args.events.event, &configuration.plan, target)
                .map_err(CommandError::usage)?;
        }
        listed.notes.extend(shelf.notes.take());
        listed.notes.extend(clients::note(&profile, args));
        let root = match (&args.results, &listed.stats) {
            (Some(results), _) => results.clone(),
            (None, Some(stats)) => PathBuf::from(stats),
            (None, None) => PathBuf::from(DEFAULT_RESULTS_DIR),
        };
        Ok(Self {
            series: series(args, &profile, listed, configurations, ranks),
            root,
            args,
        })
    }

    /// Whether the target supports direct I/O with the smallest transfers of a check; true if the target does not tell.
    fn takes_direct_io(&self) -> Result<bool, CommandError> {
        let Some(first) = self.series.configurations.first() else {
            return Ok(false);
        };
        let settings = new_series::settings(first, &self.args.how);
        let support = plimsoll_engine::direct_io(&first.plan, &settings);
        Ok(match support.map_err(CommandError::usage)? {
            DirectIo::Refused => false,
            DirectIo::Aligned { to } => to <= SMALLEST_TRANSFER,
            DirectIo::Unknown => true,
        })
    }

    /// Whether any configuration has the parameter for direct I/O.
    fn uses_direct_io(&self) -> bool {
        let plans = self.series.configurations.iter().map(|c| &c.plan);
        plans
            .flat_map(|plan| &plan.parameters)
            .any(|p| p.name == DIRECT_IO)
    }

    /// Whether any configuration has its files on a file system of this machine.
    fn is_local(&self) -> bool {
        let mut targets = self.series.configurations.iter().map(|c| &c.target.url);
        targets.any(|url| plimsoll_target::is_local(url))
    }

    /// Moves the configurations that preflight refuses to the list of configurations that are not run, unless preflight
    /// refuses all.
    fn skip_refused(&mut self) -> Result<(), CommandError> {
        let mut kept = Vec::new();
        let mut skipped = Vec::new();
        for configuration in &self.series.configurations {
            let reasons = self.look(configuration)?.refusals;
            if reasons.is_empty() {
                kept.push(configuration.clone());
            } else {
                skipped.push(SkippedConfiguration {
                    name: configuration.name.clone(),
                    reason: reasons.join("; "),
                });
            }
        }
        if !kept.is_empty()
            && let SeriesKind::Profile(figures) = &mut self.series.kind
        {
            figures.not_run.extend(skipped);
            self.series.configurations = kept;
        }
        Ok(())
    }

    /// Reasons of preflight for refusing runs of the profile, each after the name of the run's configuration; empty if
    /// all runs can be made.
    pub(super) fn refusals(&self) -> Result<Vec<String>, CommandError> {
        let mut refused = Vec::new();
        for configuration in &self.series.configurations {
            let label = configuration.label().unwrap_or_default();
            let reasons = self.look(configuration)?.refusals;
            refused.extend(reasons.iter().map(|r| format!("{label}: {r}")));
        }
        Ok(refused)
    }

    /// The needs of a run, and the available resources.
    pub(super) fn look(&self, configuration: &Configuration) -> Result<Preflight, CommandError> {
        let label = configuration.label().unwrap_or_default();
        let settings = new_series::settings(configuration, &self.args.how);
        plimsoll_engine::preflight(&configuration.plan, &settings)
            .map_err(|e| CommandError::usage(format!("{label}: {e}")))
    }
}

fn series(
    args: &ProfileArgs,
    profile: &Profile,
    listed: CaseList,
    configurations: Vec<Configuration>,
    ranks: u32,
) -> Series {
    let file = Path::new(profile.name());
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let skipped = listed
        .not_run
        .into_iter()
        .map(|skipped| SkippedConfiguration {
            name: skipped.name,
            reason: skipped.reason,
        });
    let kind = SeriesKind::Profile(ProfileFigures {
        file: profile.name().to_owned(),
        text: profile.text().to_owned(),
        description: listed.description,
        repeat: args.repeat,
        not_run: skipped.collect(),
        by_operation: false,
    });
    Series {
        notes: listed.notes.into_iter().map(Note::from).collect(),
        unremoved: vec![],
        ..new_series::series(kind, &stem, configurations, &args.how, &args.events, ranks)
    }
}

/// Options of `profile` that replace settings of the profile: directories, targets, configurations and parameters.
fn changes(args: &ProfileArgs, sets: &[(String, String)]) -> ProfileOverrides {
    let place = |f: &FileSystem| CaseFilesystem {
        label: f.label.clone(),
        dir: f.dir.clone(),
        target: f.target.clone(),
    };
    ProfileOverrides {
        places: args.filesystem.iter().map(place).collect(),
        dir: args.how.files.dir.clone(),
        has_target: args.how.files.target != plimsoll_target::DEFAULT_TARGET,
        has_time: args.how.time.is_some(),
        has_warmup: args.how.warmup.is_some(),
        sets: sets.to_vec(),
        only: args.only.clone(),
    }
}

/// Refuses a name in `--only` that the profile does not have.
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

/// Refuses a parameter in `--set` that no workload of the profile has.
fn check_sets(listed: &CaseList) -> Result<(), CommandError> {
    match listed.unused_sets.first() {
        Some(name) => Err(CommandError::usage(format!(
            "--set {name}: no workload of the profile has the parameter `{name}`"
        ))),
        None => Ok(()),
    }
}
