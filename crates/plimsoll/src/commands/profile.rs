//! `profile`: runs every configuration of a Filebench profile.

mod catalog;
mod clients;
mod distinct;
mod list;
mod setup;

use super::run;
use crate::cli::ProfileArgs;
use crate::communicator::Communicator;
use crate::event::{self, EventSpec};
use crate::exit::{CommandError, Exit};
use crate::hook::RunFacts;
use crate::load_runner::LoadTestConfig;
use crate::output_options::OutputOptions;
use crate::progress_display::RunTitle;
use crate::results_writer::Written;
use crate::run_context::{RunContext, results_path_error, stop_on_interrupt};
use plimsoll_engine::{Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_report::compare::{ProfileSet, of_profiles};
use plimsoll_report::profile;
use plimsoll_results::{
    COMPARISON_FILE, CommandRun, Document, ProfileCase, ProfileResults, ProfileWriter,
    RepeatsWriter, Verdict,
};
use std::cell::Cell;
use std::path::PathBuf;

/// Makes the runs, writes the results and prints the report.
pub fn run(mut args: ProfileArgs) -> Result<Exit, CommandError> {
    if args.print_source {
        return super::print(&setup::text(&args)?);
    }
    clients::add(&mut args)?;
    let args = &args;
    if args.dry_run {
        return list::run(args);
    }
    args.manner.ranks.check_hosts()?;
    let communicator = Communicator::join(&args.manner.ranks)?;
    let stop = stop_on_interrupt(&communicator)?;
    let runs = ProfileRunner {
        communicator: &communicator,
        stop: &stop,
        output: (&args.manner).into(),
        unclean: Cell::new(false),
    };
    if !communicator.is_root() {
        return runs.run_as_member();
    }
    let ended = setup::open(args, &communicator).and_then(|writer| runs.run_as_root(writer));
    // The other ranks wait for a run, or to hear that there is none; one that is gone has ended.
    let _ = communicator.run_on_root_and_broadcast(|| Ok(None::<LoadTestConfig>));
    ended
}

/// Configuration of one run, which all ranks have.
fn load_test_config(results: &ProfileResults, case: &ProfileCase, plan: Plan) -> LoadTestConfig {
    LoadTestConfig {
        plan,
        target: case.target.clone(),
        system: case.system.clone(),
        version: results.program.version.clone(),
        clock: results.clock,
        lanes: results.lanes,
        interval_s: results.interval_s,
    }
}

/// The events that this program executes in a run. Those of a simulated system are in the URL of the target.
///
/// # Errors
/// A sentence if one of them, which the document keeps, cannot happen to the target.
fn events(results: &ProfileResults, case: &ProfileCase) -> Result<Vec<EventSpec>, String> {
    match plimsoll_target::takes_events(&case.target) {
        true => Ok(vec![]),
        false => event::kept(&results.events, &case.target),
    }
}

/// Settings of the engine for a run: unlike those of load points, it leaves no files to the next.
fn settings(config: &LoadTestConfig) -> Settings {
    Settings {
        holds: false,
        ..config.settings()
    }
}

/// Makes the runs of a profile.
struct ProfileRunner<'a> {
    communicator: &'a Communicator,
    stop: &'a Stop,
    output: OutputOptions,
    /// Files of a run could not be removed.
    unclean: Cell<bool>,
}

impl ProfileRunner<'_> {
    /// Makes the runs that rank 0 broadcasts, at the other ranks.
    fn run_as_member(&self) -> Result<Exit, CommandError> {
        while let Some(config) = self
            .communicator
            .run_on_root_and_broadcast(|| Ok(None::<LoadTestConfig>))?
        {
            let settings = settings(&config);
            self.run_context(&settings).run_as_member(&config.plan)?;
        }
        Ok(Exit::Valid)
    }

    /// The context of a run without commands and events.
    fn run_context<'a>(&'a self, settings: &'a Settings) -> RunContext<'a> {
        RunContext {
            communicator: self.communicator,
            settings,
            stop: self.stop,
            output: self.output.clone(),
            hooks: None,
            events: vec![],
            results_error: results_path_error,
        }
    }

    fn run_as_root(&self, mut writer: ProfileWriter) -> Result<Exit, CommandError> {
        self.output
            .print_message(&setup::headline(writer.document()));
        let asked = self.output.percentiles.clone();
        writer
            .change(|p| {
                p.interrupted = false;
                p.percentiles_shown = asked.or(p.percentiles_shown.take());
            })
            .map_err(CommandError::failed)?;
        for number in 0..writer.document().cases.len() {
            if !writer.document().cases[number].is_missing() {
                continue;
            }
            if self.stop.is_requested() {
                writer
                    .change(|p| p.interrupted = true)
                    .map_err(CommandError::failed)?;
                break;
            }
            if let Err(stopped) = self.case(&mut writer, number) {
                if writer.document().cases.iter().all(|c| c.results.is_none()) {
                    writer.remove_if_empty();
                    return Err(stopped);
                }
                // The report states how to resume: a server may be down for a while.
                self.report(&writer)?;
                return Err(CommandError {
                    exit: Exit::Failed,
                    ..stopped
                });
            }
            if writer.document().cases[number].verdict == Some(Verdict::Interrupted) {
                writer
                    .change(|p| p.interrupted = true)
                    .map_err(CommandError::failed)?;
                break;
            }
        }
        self.report(&writer)?;
        let exit = exit_of(writer.document());
        Ok(self.output.exit(exit, !self.unclean.get()))
    }

    /// Makes the runs of one case.
    fn case(&self, writer: &mut ProfileWriter, number: usize) -> Result<(), CommandError> {
        let times = writer.document().repeat;
        if times <= 1 {
            let (verdict, path) = self.once(writer, number, 0, None)?;
            return writer
                .add(number, &path, verdict)
                .map_err(CommandError::failed);
        }
        let mut repeats = writer.repeats(number).map_err(CommandError::failed)?;
        let mut worst = Verdict::Valid;
        for i in 0..times {
            let done = self.once(writer, number, i, Some(&mut repeats));
            let (verdict, _) = match done {
                Ok(done) => done,
                Err(stopped) => {
                    repeats.discard_if_empty();
                    return Err(stopped);
                }
            };
            worst = worst.max(verdict);
            if matches!(verdict, Verdict::Failed | Verdict::Interrupted) || self.stop.is_requested()
            {
                // The whole case is made again by --resume: it has fewer runs than requested.
                if i + 1 < times && matches!(worst, Verdict::Valid | Verdict::Invalid) {
                    worst = Verdict::Interrupted;
                }
                break;
            }
        }
        let path = repeats.dir().path().to_owned();
        writer
            .add(number, &path, worst)
            .map_err(CommandError::failed)
    }

    /// Makes one run; how it ended, and where its results are.
    fn once(
        &self,
        writer: &mut ProfileWriter,
        number: usize,
        repeat: u32,
        repeats: Option<&mut RepeatsWriter>,
    ) -> Result<(Verdict, PathBuf), CommandError> {
        let results = writer.document();
        let case = &results.cases[number];
        let plan = Plan {
            seed: case.plan.seed.wrapping_add(u64::from(repeat)),
            ..case.plan.clone()
        };
        let config = load_test_config(results, case, plan);
        config.check_system()?;
        let events = events(results, case).map_err(CommandError::failed)?;
        self.communicator
            .run_on_root_and_broadcast(|| Ok(Some(config.clone())))?;
        let settings = settings(&config);
        let mut context = RunContext {
            hooks: results.hooks.clone(),
            events,
            ..self.run_context(&settings)
        };
        context.output.percentiles = results.percentiles_shown.clone();
        let facts = RunFacts {
            load: None,
            number: Some(number as u64 * u64::from(results.repeat.max(1)) + u64::from(repeat) + 1),
            configuration: Some(format!("{} on {}", case.name, case.filesystem)),
        };
        let label = format!("{} on {}  ", case.name, case.filesystem);
        let headline = run::headline(&config.plan, &settings, self.communicator.working());
        let title = RunTitle {
            label: label.clone(),
            opening_line: Some(format!("{label}{headline}")),
        };
        let plan = &config.plan;
        let written =
            context.run_as_root(plan, title, &facts, None, |started, clock| match &repeats {
                Some(repeats) => repeats.next(plan, started, clock),
                None => writer.run(number, plan, started, clock),
            })?;
        let Written {
            run,
            dir,
            unremoved,
        } = written;
        let line = profile::line(number + 1, results.cases.len(), case, &run);
        self.output.print_message(&line);
        self.unclean
            .set(self.unclean.get() || !unremoved.is_empty());
        let failed = run.commands.iter().filter_map(CommandRun::failure);
        let named = |text: String| format!("{}: {text}", label.trim_end());
        let notes: Vec<String> = unremoved.into_iter().chain(failed).map(named).collect();
        if !notes.is_empty() {
            writer
                .change(|p| p.notes.extend(notes))
                .map_err(CommandError::failed)?;
        }
        let dir = dir.map_err(CommandError::failed)?;
        if let Some(repeats) = repeats {
            repeats.add(&dir).map_err(CommandError::failed)?;
        }
        Ok((run.validity.verdict, dir.path().to_owned()))
    }

    /// Prints the report, and writes the page that compares file systems.
    fn report(&self, writer: &ProfileWriter) -> Result<(), CommandError> {
        let results = writer.document();
        let asked = results.percentiles_shown.as_ref();
        let sets = ProfileSet::read(results, writer.dir(), asked).map_err(CommandError::failed)?;
        if sets.len() > 1 {
            let page = plimsoll_html::page::comparison(&of_profiles(&sets, asked));
            writer
                .write(COMPARISON_FILE, &page)
                .map_err(CommandError::failed)?;
        }
        let dir = Some(writer.dir().path());
        super::print_report(
            self.output.format,
            || results.to_json(),
            |layout| profile::render(results, &sets, dir, layout),
        )
    }
}

fn exit_of(results: &ProfileResults) -> Exit {
    let any = |verdict| results.cases.iter().any(|c| c.verdict == Some(verdict));
    if results.interrupted {
        Exit::Interrupted
    } else if any(Verdict::Failed) {
        Exit::Failed
    } else if any(Verdict::Invalid) {
        Exit::Invalid
    } else {
        Exit::Valid
    }
}
