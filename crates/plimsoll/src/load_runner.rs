//! Load points: loads of one workload, measured one after the other on one data set.

use crate::cli::{CommonRunArgs, CriteriaArgs, OutputArgs};
use crate::communicator::Communicator;
use crate::event::{self, EventSpec};
use crate::exit::{CommandError, Exit};
use crate::hook::RunFacts;
use crate::monitor::Monitor;
use crate::output_options::OutputOptions;
use crate::progress_display::RunTitle;
use crate::results_writer::Written;
use crate::resume::{KeptCommands, check_resume};
use crate::run_context::{
    RunContext, environment, refuse_results_among_files, results_path_error, stop_on_interrupt,
};
use crate::{io_choice, signals, system_text, workload};
use plimsoll_engine::{ClockKind, Settings, Stop};
use plimsoll_plan::{OnError, Plan};
use plimsoll_report::resume_hint;
use plimsoll_results::{
    Collection, CollectionWriter, CommandRun, Document, Hooks, LoadPoints, LoadTest, Program,
    Reason, ResultsError, Run, RunDir, RunWriter, Target,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Configuration of the runs at all loads of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadTestConfig {
    /// The Plan of the highest load; the other loads use parts of its trees of files.
    pub plan: Plan,
    /// URL of the target.
    pub target: String,
    /// Fingerprint of the text of a simulated system, the same in all runs.
    pub system: Option<String>,
    /// Version of the program that began the results.
    pub version: String,
    /// Clock of the runs.
    pub clock: ClockKind,
    /// Requested number of threads that drive the workers.
    pub lanes: Option<u64>,
    /// Length of an interval of the series in seconds.
    pub interval_s: f64,
}

impl LoadTestConfig {
    /// Reads the workload from the command line, with files laid out for the load `max`.
    ///
    /// # Errors
    /// If the workload is not known, it has no business metric, or the load is out of range.
    pub fn new(
        name: &OsStr,
        how: &CommonRunArgs,
        criteria: &CriteriaArgs,
        max: u64,
    ) -> Result<Self, CommandError> {
        let mut plan = plan(name, how, criteria, max)?;
        workload::make_absolute(&mut plan, &how.target)?;
        let target = io_choice::target_of(&how.target, &plan);
        let (target, system) = workload::absolute_target(&target)?;
        Ok(Self {
            target,
            system,
            version: Program::plimsoll().version,
            clock: how.clock(),
            lanes: how.lanes.map(u64::from),
            interval_s: how.interval.as_secs_f64(),
            plan,
        })
    }

    /// The configuration of a load test that is resumed. If its document has no fingerprint of a
    /// simulated system, it is that of the present text.
    ///
    /// # Errors
    /// If nothing is left to measure, if the number of ranks differs from that of its start, if the
    /// text of its simulated system does, or if it has commands that are not `allowed`. `monitor` is one.
    pub fn resume<L, R, S>(
        writer: &CollectionWriter<LoadTest<L, R, S>>,
        can_resume: bool,
        ranks: u32,
        monitor: Option<&Path>,
        allowed: bool,
    ) -> Result<Self, CommandError>
    where
        LoadTest<L, R, S>: Collection,
    {
        check_resume(writer, can_resume, writer.document().ranks, ranks)?;
        let (test, dir) = (writer.document(), writer.dir().path());
        let mut config = Self::of(test, dir)?;
        let mut kept = KeptCommands::default();
        kept.add_hooks(test.hooks.as_ref());
        kept.add_monitor(monitor);
        kept.add_events(&test.events);
        kept.add_plan(&config.plan);
        kept.check(dir, allowed)?;
        event::kept(&test.events, &config.target).map_err(CommandError::usage)?;
        match config.system {
            Some(_) => config.check_system()?,
            None => config.system = system_text::fingerprint(&config.target)?,
        }
        Ok(config)
    }

    /// The configuration of a load test whose document is in the directory `dir`.
    ///
    /// # Errors
    /// If its Plan is damaged.
    pub fn of<L, R, S>(test: &LoadTest<L, R, S>, dir: &Path) -> Result<Self, CommandError> {
        // The file may have been damaged or edited since.
        let damaged = |e| CommandError::usage(format!("the Plan in {}: {e}", dir.display()));
        test.plan.check().map_err(damaged)?;
        Ok(Self {
            plan: test.plan.clone(),
            target: test.target.url.clone(),
            system: test.target.system.clone(),
            version: test.program.version.clone(),
            clock: test.clock,
            lanes: test.lanes,
            interval_s: test.interval_s,
        })
    }

    /// Refuses a simulated system whose text is not what it was when the first run began.
    ///
    /// # Errors
    /// If it differs, or cannot be read.
    pub fn check_system(&self) -> Result<(), CommandError> {
        system_text::check(&self.target, self.system.as_ref(), &self.version)
    }

    /// The document of a load test that begins now.
    ///
    /// # Errors
    /// If the highest load cannot be run, if the results would be among the files, or if the
    /// commands of the user are not allowed.
    pub fn document<L, R, S>(
        &self,
        args: &LoadTestArgs<'_>,
        (selection, results, settings): (L, R, S),
        started: SystemTime,
    ) -> Result<LoadTest<L, R, S>, CommandError>
    where
        LoadTest<L, R, S>: Document,
    {
        let hooks = args.output.hooks.hooks(args.how.allow_commands)?;
        let engine = self.settings();
        let plan = &self.plan;
        refuse_results_among_files(args.root, plan, &engine)?;
        let preflight = plimsoll_engine::preflight(plan, &engine).map_err(CommandError::usage)?;
        if !preflight.refusals.is_empty() {
            return Err(CommandError::usage(preflight.refusals.join("\n")));
        }
        let metric = plan
            .metric
            .as_ref()
            .expect("the Plan of a load has a metric");
        let (warmup, time) = plan.times();
        Ok(LoadTest {
            schema_version: LoadTest::<L, R, S>::SCHEMA,
            workload: plan.name.clone(),
            metric: metric.name.clone(),
            scale: metric.scale,
            comparable: !metric.is_scaled(),
            seed: plan.seed,
            started_at: plimsoll_results::timestamp(started).to_string(),
            selection,
            warmup_s: warmup.as_secs_f64(),
            measure_s: time.as_secs_f64(),
            criteria: metric.criteria.clone(),
            results,
            percentiles_shown: None,
            program: Program::plimsoll(),
            target: Target {
                url: self.target.clone(),
                description: preflight.target,
                system: self.system.clone(),
                testbed: crate::commands::testbed::description(&self.target),
            },
            clock: self.clock,
            lanes: self.lanes,
            interval_s: self.interval_s,
            ranks: args.ranks,
            settings,
            hooks,
            events: args.events.iter().map(EventSpec::to_string).collect(),
            notes: plan.notes.clone(),
            environment: environment(plan, &engine),
            plan: plan.clone(),
        })
    }

    /// Settings of the engine for a load.
    pub fn settings(&self) -> Settings {
        Settings {
            target: self.target.clone(),
            clock: self.clock,
            lanes: self.lanes.and_then(|n| usize::try_from(n).ok()),
            interval: Duration::try_from_secs_f64(self.interval_s)
                .unwrap_or(Duration::from_secs(1)),
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

    /// Reports that the files are being removed.
    pub fn report_removal(&self, output: &OutputOptions) {
        if let Some(command) = plimsoll_engine::clean_commands(&self.plan, &self.target) {
            signals::cleans_by(Some(command));
            signals::note_removal(true);
            output.report_progress("removing the files");
        }
    }

    /// Removes the files after a refusal, which then says too what could not be removed.
    pub fn clean_up_after_refusal(&self, refusal: CommandError, stop: &Stop) -> CommandError {
        // Another run may be using the directory.
        refusal.with_warnings(self.end_claim(false, stop).unwrap_or_default())
    }

    /// Ends the use of the files: they are removed, or stay for others to use. Returns what could not be
    /// removed, in sentences.
    ///
    /// # Errors
    /// A sentence if that could not be begun.
    fn end_claim(&self, stays: bool, stop: &Stop) -> Result<Vec<String>, String> {
        if !plimsoll_target::keeps_files(&self.target) {
            return Ok(vec![]);
        }
        signals::note_removal(!stays);
        let (dir, settings) = (&self.plan.work_dir.dir, self.settings());
        let ended = plimsoll_engine::end_claim(dir, &settings, stays, stop);
        signals::note_removal(false);
        match ended {
            Ok(left) => Ok(left.unremoved),
            Err(e) => Err(match stays {
                true => format!("the directory could not be released: {e}"),
                false => format!("the files could not be removed: {e}"),
            }),
        }
    }
}

/// The arguments that the commands of load tests share, and the number of ranks.
pub struct LoadTestArgs<'a> {
    /// Options of the run.
    pub how: &'a CommonRunArgs,
    /// Output and hooks.
    pub output: &'a OutputArgs,
    /// Events that this program executes in each run.
    pub events: &'a [EventSpec],
    /// Directory in which the results directory is created.
    pub root: &'a Path,
    /// Number of ranks.
    pub ranks: u32,
}

/// Loads that are ready to be measured: nothing can be refused any more but the place of the results.
pub struct PreparedRun<W> {
    config: LoadTestConfig,
    open: Box<dyn FnOnce() -> Result<W, ResultsError>>,
}

impl<W> PreparedRun<W> {
    /// `open` creates the results directory, or resumes it.
    pub fn new(
        config: LoadTestConfig,
        open: impl FnOnce() -> Result<W, ResultsError> + 'static,
    ) -> Self {
        Self {
            config,
            open: Box::new(open),
        }
    }
}

/// Measures loads with all ranks: rank 0 calls `begin` and `run_as_root`, the others measure the
/// loads that it chooses.
///
/// # Errors
/// Errors of `begin` and `run_as_root`; if the results cannot be created, or Ctrl-C cannot be caught.
pub fn run_on_all_ranks<W>(
    how: &OutputArgs,
    begin: impl FnOnce(&Communicator) -> Result<PreparedRun<W>, CommandError>,
    lead: impl FnOnce(&mut LoadRunner<'_>, W) -> Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    let communicator = Communicator::join(&how.ranks)?;
    let mut open = None;
    let config = communicator.run_on_root_and_broadcast(|| {
        let ready = begin(&communicator)?;
        how.ranks.check_target(&ready.config.target)?;
        how.ranks.check_io(&ready.config.target)?;
        open = Some(ready.open);
        Ok(ready.config)
    })?;
    let stop = stop_on_interrupt(&communicator)?;
    let mut points = LoadRunner::new(&communicator, &config, &stop, how.into());
    let Some(open) = open else {
        return points.run_as_member();
    };
    // The other ranks wait for a load from here on, or to hear that there is none.
    let measured = open()
        .map_err(results_path_error)
        .and_then(|writer| lead(&mut points, writer));
    points.end();
    measured
}

/// Measures loads, one after the other. Every rank has one; rank 0 chooses the loads.
pub struct LoadRunner<'a> {
    /// The ranks.
    pub communicator: &'a Communicator,
    /// Configuration of the runs.
    pub config: &'a LoadTestConfig,
    /// Requested by Ctrl-C.
    pub stop: &'a Stop,
    /// Format and amount of the output.
    pub output: OutputOptions,
    /// Program that is informed of the phases; only at rank 0.
    pub monitor: Option<Monitor>,
    /// Commands of the user around the phases of each run; only at rank 0.
    pub hooks: Option<Hooks>,
    /// Events that this program executes in each run; only at rank 0.
    pub events: Vec<EventSpec>,
    /// Number of runs begun, including those of earlier processes.
    pub runs: u64,
    /// Whether a run has used the directory of the files.
    pub used: bool,
    /// Why the last run left files that others may be working on, in sentences.
    unremoved: Vec<String>,
}

/// Result of measuring a load.
pub struct MeasuredLoad {
    /// The run.
    pub run: Run,
    /// Its results, or why they could not be written.
    pub dir: Result<RunDir, ResultsError>,
    /// Failed calls of the monitor and failed commands, in sentences.
    pub notes: Vec<String>,
}

impl<'a> LoadRunner<'a> {
    /// A runner without a monitor, commands and events, which has measured nothing yet.
    pub fn new(
        communicator: &'a Communicator,
        config: &'a LoadTestConfig,
        stop: &'a Stop,
        output: OutputOptions,
    ) -> Self {
        Self {
            communicator,
            config,
            stop,
            output,
            monitor: None,
            hooks: None,
            events: vec![],
            runs: 0,
            used: false,
            unremoved: vec![],
        }
    }

    fn context<'b>(&'b self, settings: &'b Settings) -> RunContext<'b> {
        RunContext {
            communicator: self.communicator,
            settings,
            stop: self.stop,
            output: self.output.clone(),
            hooks: self.hooks.clone(),
            events: self.events.clone(),
            results_error: CommandError::failed,
        }
    }

    /// Takes over the hooks and events of a document, and writes the fingerprint of the simulated system
    /// that it lacks. The requested percentiles become the document's; without a request the document's are
    /// shown.
    ///
    /// # Errors
    /// If the results of earlier runs cannot be read, or the document cannot be written.
    pub fn prepare<L, R, S>(
        &mut self,
        writer: &mut CollectionWriter<LoadTest<L, R, S>>,
    ) -> Result<(), ResultsError>
    where
        LoadTest<L, R, S>: Collection,
        R: LoadPoints,
    {
        self.hooks = writer.document().hooks.clone();
        self.events = event::kept(&writer.document().events, &self.config.target)
            .expect("the events of a document are checked when it is begun or resumed");
        if writer.document().target.system != self.config.system {
            writer.change(|test| {
                test.target.system = self.config.system.clone();
                test.notes
                    .push(system_text::unknown(&self.config.target).into());
            })?;
        }
        let Some(requested) = self.output.percentiles.clone() else {
            self.output.percentiles = writer.document().percentiles_shown.clone();
            return Ok(());
        };
        let measured = writer.dir().read_with(Some(&requested))?;
        writer.change(|test| {
            test.results = measured.results;
            test.percentiles_shown = Some(requested);
        })
    }

    /// Measures a load at rank 0. `writer` creates the writer of the results of a Plan.
    ///
    /// # Errors
    /// If the run was refused, or another rank is lost: nothing was measured.
    pub fn measure(
        &mut self,
        load: u64,
        writer: impl FnOnce(&Plan, SystemTime, ClockKind) -> Result<RunWriter, ResultsError>,
    ) -> Result<MeasuredLoad, CommandError> {
        self.config.check_system()?;
        self.communicator
            .run_on_root_and_broadcast(|| Ok(Some(load)))?;
        let (plan, settings) = (self.config.at(load)?, self.config.settings());
        self.runs += 1;
        let facts = RunFacts {
            load: Some(load),
            number: Some(self.runs),
            configuration: None,
        };
        let title = RunTitle {
            label: format!("load {load}  "),
            opening_line: None,
        };
        let mut monitor = self.monitor.take();
        let ran = self.context(&settings).run_as_root(
            &plan,
            title,
            &facts,
            monitor.as_mut(),
            |started, clock| writer(&plan, started, clock),
        );
        let mut notes = monitor.as_mut().map_or_else(Vec::new, Monitor::take_notes);
        self.monitor = monitor;
        let Written {
            run,
            dir,
            unremoved,
        } = ran?;
        (self.used, self.unremoved) = (true, unremoved);
        let failed = run.commands.iter().filter_map(CommandRun::failure);
        notes.extend(failed.map(|text| format!("load {load}: {text}")));
        Ok(MeasuredLoad { run, dir, notes })
    }

    /// Removes the files, or leaves them if they are to be kept: because the user requested it, or
    /// because an unfinished test can be resumed with them. `used`: a run used them. Files that a rank or a
    /// worker may still be working on stay in any case, and the directory remains claimed by this process, after whose
    /// end the next one takes it over. Returns sentences about what failed.
    pub fn clean(&self, can_resume: bool, used: bool) -> Vec<String> {
        let plan = &self.config.plan;
        let stays = plan.options.keep || can_resume && !plan.work_dir.temporary;
        if !self.unremoved.is_empty() {
            return match stays {
                true => vec![],
                false => self.unremoved.clone(),
            };
        }
        if self.used && !stays {
            self.config.report_removal(&self.output);
        }
        match self.config.end_claim(stays, self.stop) {
            Ok(unremoved) => unremoved,
            Err(text) if used => vec![text],
            Err(_) => vec![],
        }
    }

    /// The error of a load test of this `command` whose results in `dir` could not be written, after it had ended for a
    /// `reason` if there is one: it can be resumed from what they have, so that its files stay unless their directory is
    /// temporary.
    pub fn end_without_results(
        &self,
        e: ResultsError,
        reason: Option<&Reason>,
        (command, dir): (&str, &Path),
    ) -> CommandError {
        let mut warnings: Vec<String> = reason.map(|r| r.text.clone()).into_iter().collect();
        warnings.extend(self.clean(true, self.used));
        let mut error = CommandError::failed(e).with_warnings(warnings);
        error.message.push_str(&resume_hint(command, dir));
        error
    }

    /// Ends the measuring at all ranks; rank 0 calls this after the last load.
    pub fn end(&self) {
        // A rank that is gone has ended already.
        let _ = self
            .communicator
            .run_on_root_and_broadcast(|| Ok(None::<u64>));
    }

    /// Measures the loads that rank 0 chooses, at the other ranks.
    ///
    /// # Errors
    /// If a rank is lost.
    pub fn run_as_member(&self) -> Result<Exit, CommandError> {
        let settings = self.config.settings();
        while let Some(load) = self
            .communicator
            .run_on_root_and_broadcast(|| Ok(None::<u64>))?
        {
            let plan = self.config.at(load)?;
            if !self.context(&settings).run_as_member(&plan)? {
                break;
            }
        }
        Ok(Exit::Valid)
    }
}

/// The directory of a Plan's files, and whether they are kept.
pub fn files_of(plan: &Plan, target: &str) -> String {
    if !plimsoll_target::keeps_files(target) {
        return "no files".into();
    }
    let fate = match (plan.options.keep, plan.work_dir.temporary) {
        (true, _) => "kept afterwards",
        (false, true) => "a new directory, removed afterwards",
        (false, false) => "removed afterwards",
    };
    format!("files in {} ({fate})", workload::place(plan))
}

/// The number of ranks as the end of a list; empty for one.
pub fn ranks_of(ranks: u32) -> String {
    match ranks {
        1 => String::new(),
        n => format!(", {n} ranks"),
    }
}

/// The Plan of a workload for the load `max`, whose files are laid out so that every smaller load
/// works on a part of them.
///
/// # Errors
/// If the workload is not known, it has no business metric, or the load is out of range.
fn plan(
    name: &OsStr,
    how: &CommonRunArgs,
    criteria: &CriteriaArgs,
    max: u64,
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
    overrides.load = Some(max);
    overrides.most = Some(max);
    // An error that is counted makes its run invalid, and the other loads are still measured.
    overrides.options.on_error = how.on_error.map_or(OnError::Count, Into::into);
    let mut plan = reading.lower(&found, &overrides)?;
    if let Some(metric) = &mut plan.metric {
        let c = &mut metric.criteria;
        c.latency = criteria.latency_limit.or(c.latency);
        c.process_percent = criteria.min_process_rate.map_or(c.process_percent, percent);
        c.total_percent = criteria.min_total_rate.map_or(c.total_percent, percent);
    }
    workload::adapt_to_target(&mut plan, how)?;
    Ok(plan)
}

/// A fraction in percent, rounded to six decimals.
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

/// The reason why the run at a load failed.
pub fn failure_at(load: u64, reasons: &[Reason]) -> Reason {
    let texts: Vec<&str> = reasons.iter().map(|r| r.text.as_str()).collect();
    Reason::new("failed", format!("load {load}: {}", texts.join("; ")))
}
