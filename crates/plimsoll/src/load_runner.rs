//! Load points: loads of one workload, measured one after the other on one data set.

use crate::cli::{CleanupArgs, ClockArg, CommonRunArgs, CriteriaArgs, Format, OutputArgs};
use crate::commands::run;
use crate::communicator::{Communicator, SilentObserver};
use crate::console;
use crate::exit::{CommandError, Exit};
use crate::hook::{HookRunner, RunFacts};
use crate::measured_run::{self, RunMetadata};
use crate::monitor::{Monitor, MonitoredObserver, Phase};
use crate::progress_display::ProgressDisplay;
use crate::results_writer::{ResultsWriter, Written};
use crate::signals;
use crate::workload;
use plimsoll_engine::{ClockKind, Settings, Stop};
use plimsoll_plan::{OnError, Plan, counted};
use plimsoll_results::{CommandRun, Hooks, Percentiles, ResultsError, Run, RunDir, RunWriter};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What every load of a workload is measured with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadTestConfig {
    /// The Plan of the greatest load, whose trees of files the others use parts of.
    pub plan: Plan,
    /// URL of the target.
    pub target: String,
    /// Whether time is virtual.
    pub is_virtual: bool,
    /// Threads that drive the workers, if their number was asked for.
    pub lanes: Option<u64>,
    /// Length of an interval of the series.
    pub interval: Duration,
}

impl LoadTestConfig {
    /// What the command line asks for, with files laid out for the greatest load.
    ///
    /// # Errors
    /// If there is no such workload, it has no business metric, or it cannot be so many.
    pub fn new(
        name: &OsStr,
        how: &CommonRunArgs,
        criteria: &CriteriaArgs,
        greatest: u64,
    ) -> Result<Self, CommandError> {
        let mut plan = plan(name, how, criteria, greatest)?;
        // What is interrupted may go on from another directory.
        plan.work_dir.dir = plimsoll_target::absolute(&how.target, &plan.work_dir.dir)
            .map_err(|e| CommandError::usage(format!("there is no current directory: {e}")))?;
        Ok(Self {
            target: how.target.clone(),
            is_virtual: how.clock == ClockArg::Virtual,
            lanes: how.lanes.map(u64::from),
            interval: how.interval,
            plan,
        })
    }

    /// Looks whether the greatest load could be run, and gives what the target says of itself.
    ///
    /// # Errors
    /// If it could not, or if the results would lie among the files.
    pub fn check(&self, results: &Path) -> Result<String, CommandError> {
        let settings = self.settings();
        run::refuse_results_among_files(results, &self.plan, &settings)?;
        let look =
            plimsoll_engine::preflight(&self.plan, &settings).map_err(CommandError::usage)?;
        match look.refusals.is_empty() {
            true => Ok(look.target),
            false => Err(CommandError::usage(look.refusals.join("\n"))),
        }
    }

    /// How the engine is to run a load.
    pub fn settings(&self) -> Settings {
        Settings {
            target: self.target.clone(),
            clock: match self.is_virtual {
                true => ClockKind::Virtual,
                false => ClockKind::Real,
            },
            lanes: self.lanes.and_then(|n| usize::try_from(n).ok()),
            interval: self.interval,
            // From the first load to the last.
            holds: true,
        }
    }

    /// The Plan of a load. Its files stay where they are, for the next one.
    fn at(&self, load: u64) -> Result<Plan, CommandError> {
        let mut plan = self.plan.at_load(load).ok_or_else(|| {
            CommandError::usage(format!("the files are not laid out for load {load}"))
        })?;
        plan.options.keep = true;
        Ok(plan)
    }

    /// Removes the files of all loads; gives what of them could not be removed, in sentences.
    ///
    /// # Errors
    /// A sentence if that could not be begun: there may be no directory.
    pub fn clean(&self, stop: &Stop) -> Result<Vec<String>, String> {
        if !plimsoll_target::keeps_files(&self.target) {
            return Ok(vec![]);
        }
        signals::note_removal(true);
        let settings = self.settings();
        let cleaned = plimsoll_engine::clean(&self.plan.work_dir.dir, &settings, false, stop);
        signals::note_removal(false);
        match cleaned {
            Ok(left) => Ok(left.unremoved),
            Err(e) => Err(format!("the files could not be removed: {e}")),
        }
    }

    /// Says that the files are being removed.
    pub fn report_removal(&self, manner: &OutputOptions) {
        if let Some(command) = plimsoll_engine::clean_commands(&self.plan, &self.target) {
            signals::cleans_by(Some(command));
            signals::note_removal(true);
            manner.report_progress("removing the files");
        }
    }

    /// Removes the files after a refusal, which then says too what could not be removed.
    pub fn clean_up_after_refusal(&self, mut refusal: CommandError, stop: &Stop) -> CommandError {
        // There may be no directory.
        for text in self.clean(stop).unwrap_or_default() {
            refusal.message.push_str(&format!("warning: {text}\n"));
        }
        refusal
    }

    /// Ends the use of the files: they are removed, or stay for others to use. Gives what went wrong,
    /// in sentences. `used`: a run has used the directory, which may not be there otherwise.
    pub fn end(&self, stays: bool, used: bool, stop: &Stop) -> Vec<String> {
        let ended = match stays {
            true => self.leave().map(|()| vec![]),
            false => self.clean(stop),
        };
        match ended {
            Ok(unremoved) => unremoved,
            Err(text) if used => vec![text],
            Err(_) => vec![],
        }
    }

    /// Gives up the directory, whose files stay, for others to use; a sentence if that fails.
    fn leave(&self) -> Result<(), String> {
        if !plimsoll_target::keeps_files(&self.target) {
            return Ok(());
        }
        plimsoll_engine::release_claim(&self.plan.work_dir.dir, &self.settings())
            .map_err(|e| format!("the directory could not be given up: {e}"))
    }
}

/// How much is said, and in which form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// What is printed at the end.
    pub format: Format,
    /// Whether nothing else is.
    pub quiet: bool,
    /// Whether the results of each rank are kept too.
    pub per_rank: bool,
    /// Percentiles that tables show instead of the usual ones.
    pub percentiles: Option<Percentiles>,
    /// What files that cannot be removed come to.
    pub cleanup: CleanupArgs,
}

impl From<&OutputArgs> for OutputOptions {
    fn from(args: &OutputArgs) -> Self {
        Self {
            format: args.format,
            quiet: args.quiet,
            per_rank: args.ranks.per_rank,
            percentiles: args.percentiles.clone(),
            cleanup: args.cleanup,
        }
    }
}

impl OutputOptions {
    /// The code to end with, after a clean-up that was complete or not.
    pub fn exit(&self, exit: Exit, is_clean: bool) -> Exit {
        self.cleanup.exit(exit, is_clean)
    }

    /// Says what is being done, unless nothing is to be said.
    pub fn report_progress(&self, line: &str) {
        if !self.quiet {
            console::err(&format!("{line}\n"));
        }
    }

    /// Says a line, where it does not disturb what is printed at the end.
    pub fn print_message(&self, line: &str) {
        match (self.quiet, self.format) {
            (true, _) => {}
            // Nobody need read it.
            (false, Format::Text) => _ = console::out(&format!("{line}\n")),
            (false, Format::Json) => console::err(&format!("{line}\n")),
        }
    }
}

/// Loads that are ready to be measured: nothing is left to be refused but the place of the results.
pub struct PreparedRun<W> {
    config: LoadTestConfig,
    open: Box<dyn FnOnce() -> Result<W, ResultsError>>,
}

impl<W> PreparedRun<W> {
    /// `open` makes the place of the results, or goes on in it.
    pub fn new(
        ground: LoadTestConfig,
        open: impl FnOnce() -> Result<W, ResultsError> + 'static,
    ) -> Self {
        Self {
            config: ground,
            open: Box::new(open),
        }
    }
}

/// Measures loads with all processes: rank 0 begins and leads, the others follow.
///
/// # Errors
/// What `begin` or `lead` refuse; if the results have no place, or Ctrl-C cannot be caught.
pub fn run_on_all_ranks<W>(
    how: &OutputArgs,
    begin: impl FnOnce(&Communicator) -> Result<PreparedRun<W>, CommandError>,
    lead: impl FnOnce(&mut LoadRunner<'_>, W) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    let communicator = Communicator::join(how.ranks.processes)?;
    let mut open = None;
    let ground = communicator.run_on_root_and_broadcast(|| {
        let ready = begin(&communicator)?;
        open = Some(ready.open);
        Ok(ready.config)
    })?;
    let stop = Stop::default();
    signals::stop_on_interrupt(&stop, communicator.is_root())
        .map_err(|e| CommandError::usage(format!("cannot catch Ctrl-C: {e}")))?;
    let mut points = LoadRunner {
        communicator: &communicator,
        config: &ground,
        stop: &stop,
        output: how.into(),
        monitor: None,
        hooks: None,
        runs: 0,
        used: false,
    };
    let Some(open) = open else {
        return points.run_as_member();
    };
    // The other ranks wait for a load from here on, or to hear that there is none.
    let measured = open()
        .map_err(|e| {
            CommandError::usage(format!(
                "{e}; --results chooses another place for the results"
            ))
        })
        .and_then(|writer| lead(&mut points, writer));
    points.end();
    measured
}

/// Measures loads, one after the other. Every rank has one; rank 0 chooses the loads.
pub struct LoadRunner<'a> {
    /// The ranks.
    pub communicator: &'a Communicator,
    /// What is measured.
    pub config: &'a LoadTestConfig,
    /// Asked to stop by Ctrl-C.
    pub stop: &'a Stop,
    /// How much is said.
    pub output: OutputOptions,
    /// Is told of the phases; only at rank 0.
    pub monitor: Option<Monitor>,
    /// Commands of the user around the phases of each run; only at rank 0.
    pub hooks: Option<Hooks>,
    /// Runs that were begun, by this process and before it.
    pub runs: u64,
    /// Whether a run has used the directory of the files.
    pub used: bool,
}

/// What came of measuring a load.
pub struct MeasuredLoad {
    /// The run.
    pub run: Run,
    /// Its results, or why they could not be written.
    pub dir: Result<RunDir, ResultsError>,
    /// What went wrong with calls of the monitor.
    pub notes: Vec<String>,
}

impl LoadRunner<'_> {
    /// What is known of a run before it begins.
    fn run_metadata(&self, plan: &Plan, settings: &Settings) -> RunMetadata {
        RunMetadata {
            percentiles: self.output.percentiles.clone(),
            ..run::run_metadata(plan, settings, self.communicator)
        }
    }

    /// Measures a load; rank 0 calls this. `writer` makes the place for the results of a Plan.
    ///
    /// # Errors
    /// When the run was refused, or another rank is lost: nothing was measured.
    pub fn measure(
        &mut self,
        load: u64,
        writer: impl FnOnce(
            &Plan,
            SystemTime,
            plimsoll_results::ClockKind,
        ) -> Result<RunWriter, ResultsError>,
    ) -> Result<MeasuredLoad, CommandError> {
        self.communicator
            .run_on_root_and_broadcast(|| Ok(Some(load)))?;
        let (plan, settings) = (self.config.at(load)?, self.config.settings());
        if let Some(monitor) = &mut self.monitor {
            monitor.notify_and_wait(load, Phase::Init);
        }
        let c = self.run_metadata(&plan, &settings);
        let writer = writer(&plan, c.started, c.clock).map_err(CommandError::failed)?;
        let each = self.output.per_rank.then_some(self.communicator);
        let scribe = ResultsWriter::begin(writer, c, each).map_err(CommandError::failed)?;
        let OutputOptions { format, quiet, .. } = self.output;
        let mut screen = ProgressDisplay::new(format, quiet, &plan, scribe, self.stop.clone());
        screen.label(format!("load {load}  "));
        self.runs += 1;
        let facts = RunFacts {
            load: Some(load),
            number: Some(self.runs),
            configuration: None,
        };
        let size = self.communicator.size();
        let runner = |hooks| HookRunner::new(hooks, &plan, &settings.target, size, &facts);
        screen.hook(self.hooks.as_ref().map(runner));
        screen.show(self.output.percentiles.as_ref());
        let mut watched = MonitoredObserver {
            observer: &mut screen,
            monitor: self.monitor.as_mut(),
            load,
        };
        let ranks = self.communicator.ranks();
        let ran = plimsoll_engine::run_ranks(&plan, &settings, self.stop, &mut watched, ranks);
        let outcome = run::outcome_or_refusal(ran);
        let mut notes = Vec::new();
        if let Some(monitor) = &mut self.monitor {
            monitor.notify_and_wait(load, Phase::End);
            notes = monitor.take_notes();
        }
        let outcome = outcome?;
        self.used = true;
        let Written { run, dir, .. } = screen.end(outcome);
        let failed = run.commands.iter().filter_map(CommandRun::failure);
        notes.extend(failed.map(|text| format!("load {load}: {text}")));
        Ok(MeasuredLoad { run, dir, notes })
    }

    /// Ends the measuring at all ranks; rank 0 calls this after the last load.
    pub fn end(&self) {
        // A rank that is gone has ended already.
        let _ = self
            .communicator
            .run_on_root_and_broadcast(|| Ok(None::<u64>));
    }

    /// What the ranks but rank 0 do: they measure the loads that it chooses.
    pub fn run_as_member(&self) -> Result<Exit, CommandError> {
        let settings = self.config.settings();
        // Rank 0 says what there is to say, also of errors.
        while let Some(load) = self
            .communicator
            .run_on_root_and_broadcast(|| Ok(None::<u64>))?
        {
            let plan = self.config.at(load)?;
            let c = self.run_metadata(&plan, &settings);
            let ranks = self.communicator.ranks();
            let ran =
                plimsoll_engine::run_ranks(&plan, &settings, self.stop, &mut SilentObserver, ranks);
            let Ok(outcome) = ran else {
                return Ok(Exit::Valid);
            };
            if self.output.per_rank {
                let environment = run::own_environment(&plan, &settings);
                let c = RunMetadata { environment, ..c };
                let own = Run::assemble(measured_run::measured(outcome, c));
                self.communicator.collect(own.to_json(), |_, _| ())?;
            }
        }
        Ok(Exit::Valid)
    }
}

/// Where the files of a Plan go and what becomes of them, for the first line.
pub fn files_of(ground: &LoadTestConfig) -> String {
    let plan = &ground.plan;
    if !plimsoll_target::keeps_files(&ground.target) {
        return "no files".into();
    }
    let fate = match (plan.options.keep, plan.work_dir.temporary) {
        (true, _) => "kept afterwards",
        (false, true) => "a new directory, removed afterwards",
        (false, false) => "removed afterwards",
    };
    format!("files in {} ({fate})", workload::place(plan))
}

/// The Plan of a workload for the greatest load, whose files are laid out so that every smaller
/// load works on a part of them.
///
/// # Errors
/// If there is no such workload, it has no business metric, or it cannot be so many.
fn plan(
    name: &OsStr,
    how: &CommonRunArgs,
    criteria: &CriteriaArgs,
    greatest: u64,
) -> Result<Plan, CommandError> {
    let found = workload::find(name)?;
    let reading = workload::parse(&found)?;
    let mut overrides = workload::changes(how, name);
    let one = reading.lower(&found, &overrides)?;
    if one.metric.is_none() {
        return Err(CommandError::usage(format!(
            "`{}` has no business metric to be a load of: load points are for operation mixes \
             such as `vda` (`plimsoll list` names them); `plimsoll run {0}` runs it once",
            found.name
        )));
    }
    overrides.load = Some(greatest);
    overrides.most = Some(greatest);
    // An error that is counted makes its run invalid, and the other loads are still measured.
    overrides.options.on_error = how.on_error.map_or(OnError::Count, Into::into);
    let mut plan = reading.lower(&found, &overrides)?;
    if let Some(metric) = &mut plan.metric {
        let c = &mut metric.criteria;
        c.latency = criteria.latency_limit.or(c.latency);
        c.process_percent = criteria.min_process_rate.map_or(c.process_percent, percent);
        c.total_percent = criteria.min_total_rate.map_or(c.total_percent, percent);
    }
    workload::adapt_to_target(&mut plan, how);
    Ok(plan)
}

/// A share in percent, to the digits a person writes.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// Warm-up and measured time of a Plan.
pub fn times(plan: &Plan) -> (Duration, Duration) {
    use plimsoll_plan::{Phase, Until};
    let mut times = [Duration::ZERO; 2];
    let mut window = 0;
    for phase in &plan.script {
        match phase {
            Phase::OpenWindow => window = 1,
            Phase::Wait {
                until: Until::Elapsed { time },
                ..
            } => times[window] += *time,
            _ => {}
        }
    }
    (times[0], times[1])
}

/// Refuses to go on with a curve or a search by more or fewer processes than it was begun by.
///
/// # Errors
/// If the numbers differ.
pub fn check_ranks(what: &str, begun: u32, now: u32) -> Result<(), CommandError> {
    if begun == now {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "the {what} was begun by {} and there {}: --processes, or the launcher, has to start as many",
        counted(u64::from(begun), "process", "processes"),
        match now {
            1 => "is 1 now".to_owned(),
            n => format!("are {n} now"),
        }
    )))
}
