//! `profile`: runs every configuration of a Filebench profile.

mod catalog;
mod distinct;
mod list;
mod setup;

use crate::cli::{Format, ProfileArgs};
use crate::commands::run::RunContext;
use crate::communicator::Communicator;
use crate::console::Stream;
use crate::exit::{CommandError, Exit};
use crate::hook::RunFacts;
use crate::load_runner::{LoadTestConfig, OutputOptions};
use crate::results_writer::Written;
use crate::signals;
use plimsoll_engine::{ClockKind, Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_report::compare::{ProfileSet, of_profiles};
use plimsoll_report::{profile, terminal};
use plimsoll_results::{CommandRun, Hooks, ProfileCase, ProfileResults, ProfileWriter, Verdict};
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

/// Makes the runs, writes the results and prints the report.
pub fn run(args: &ProfileArgs) -> Result<Exit, CommandError> {
    if args.print_source {
        return super::print(&setup::text(args)?);
    }
    if args.dry_run {
        return list::run(args);
    }
    let communicator = Communicator::join(args.manner.ranks.processes)?;
    let stop = Stop::default();
    signals::stop_on_interrupt(&stop, communicator.is_root())
        .map_err(|e| CommandError::usage(format!("cannot catch Ctrl-C: {e}")))?;
    let runs = ProfileRunner {
        communicator: &communicator,
        stop: &stop,
        output: (&args.manner).into(),
        unclean: Cell::new(false),
    };
    if !communicator.is_root() {
        return runs.follow();
    }
    let ended = setup::open(args, &communicator).and_then(|writer| runs.lead(writer));
    // The other ranks wait for a run, or to hear that there is none; one that is gone has ended.
    let _ = communicator.run_on_root_and_broadcast(|| Ok(None::<LoadTestConfig>));
    ended
}

/// What one run is made with, as all ranks have it.
fn load_test_config(results: &ProfileResults, case: &ProfileCase, plan: Plan) -> LoadTestConfig {
    LoadTestConfig {
        plan,
        target: case.target.clone(),
        is_virtual: results.clock == plimsoll_results::ClockKind::Virtual,
        lanes: results.lanes,
        interval: Duration::try_from_secs_f64(results.interval_s).unwrap_or(Duration::from_secs(1)),
    }
}

/// How the engine is to make a run: unlike those of load points, it leaves no files to the next.
fn settings(ground: &LoadTestConfig) -> Settings {
    Settings {
        holds: false,
        clock: match ground.is_virtual {
            true => ClockKind::Virtual,
            false => ClockKind::Real,
        },
        ..ground.settings()
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
    /// What the ranks but rank 0 do: they make the runs that it shares.
    fn follow(&self) -> Result<Exit, CommandError> {
        while let Some(ground) = self
            .communicator
            .run_on_root_and_broadcast(|| Ok(None::<LoadTestConfig>))?
        {
            let settings = settings(&ground);
            self.run_context(&settings, None)
                .run_as_member(&ground.plan)?;
        }
        Ok(Exit::Valid)
    }

    fn run_context<'a>(&'a self, settings: &'a Settings, hooks: Option<Hooks>) -> RunContext<'a> {
        RunContext {
            communicator: self.communicator,
            settings,
            stop: self.stop,
            output: self.output.clone(),
            hooks,
        }
    }

    /// What rank 0 does.
    fn lead(&self, mut writer: ProfileWriter) -> Result<Exit, CommandError> {
        self.output
            .print_message(&setup::headline(writer.results()));
        let asked = self.output.percentiles.clone();
        writer
            .change(|p| {
                p.interrupted = false;
                p.percentiles_shown = asked.or(p.percentiles_shown.take());
            })
            .map_err(CommandError::failed)?;
        for number in 0..writer.results().cases.len() {
            if !writer.results().cases[number].is_missing() {
                continue;
            }
            if self.stop.is_requested() {
                writer
                    .change(|p| p.interrupted = true)
                    .map_err(CommandError::failed)?;
                break;
            }
            if let Err(stopped) = self.case(&mut writer, number) {
                if writer.results().cases.iter().all(|c| c.results.is_none()) {
                    writer.remove_if_empty();
                    return Err(stopped);
                }
                // What was measured is shown, with how to go on: a server may be gone for a while.
                self.report(&writer)?;
                return Err(CommandError {
                    exit: Exit::Failed,
                    ..stopped
                });
            }
            if writer.results().cases[number].verdict == Some(Verdict::Interrupted) {
                writer
                    .change(|p| p.interrupted = true)
                    .map_err(CommandError::failed)?;
                break;
            }
        }
        self.report(&writer)?;
        let exit = exit_of(writer.results());
        Ok(self.output.exit(exit, !self.unclean.get()))
    }

    /// Makes the runs of one case: one, or as many as were asked for.
    fn case(&self, writer: &mut ProfileWriter, number: usize) -> Result<(), CommandError> {
        let times = writer.results().repeat;
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
            worst = if verdict as u8 > worst as u8 {
                verdict
            } else {
                worst
            };
            if matches!(verdict, Verdict::Failed | Verdict::Interrupted) || self.stop.is_requested()
            {
                // The whole case is made again by --resume: it has fewer runs than were asked for.
                worst = if i + 1 < times && worst as u8 <= Verdict::Invalid as u8 {
                    Verdict::Interrupted
                } else {
                    worst
                };
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
        repeats: Option<&mut plimsoll_results::RepeatsWriter>,
    ) -> Result<(Verdict, PathBuf), CommandError> {
        let results = writer.results();
        let case = &results.cases[number];
        let plan = Plan {
            seed: case.plan.seed.wrapping_add(u64::from(repeat)),
            ..case.plan.clone()
        };
        let ground = load_test_config(results, case, plan);
        self.communicator
            .run_on_root_and_broadcast(|| Ok(Some(ground.clone())))?;
        let settings = settings(&ground);
        let mut round = self.run_context(&settings, results.hooks.clone());
        round.output.percentiles = results.percentiles_shown.clone();
        let facts = RunFacts {
            load: None,
            number: Some(number as u64 * u64::from(results.repeat.max(1)) + u64::from(repeat) + 1),
            configuration: Some(format!("{} on {}", case.name, case.filesystem)),
        };
        let label = format!("{} on {}  ", case.name, case.filesystem);
        let written =
            round.run_as_root(
                &ground.plan,
                &label,
                &facts,
                |started, clock| match &repeats {
                    Some(repeats) => repeats.next(&ground.plan, started, clock),
                    None => writer.run(number, &ground.plan, started, clock),
                },
            )?;
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
        let results = writer.results();
        let asked = results.percentiles_shown.as_ref();
        let sets = ProfileSet::read(results, writer.dir(), asked).map_err(CommandError::failed)?;
        if sets.len() > 1 {
            let page = plimsoll_html::page::comparison(&of_profiles(&sets, asked));
            writer
                .write(COMPARISON_FILE, &page)
                .map_err(CommandError::failed)?;
        }
        let text = match self.output.format {
            Format::Json => results.to_json(),
            Format::Text => {
                let layout = terminal::Layout {
                    width: Stream::Out.width(),
                    color: Stream::Out.color(),
                };
                let dir = Some(writer.dir().path());
                format!("\n{}", profile::render(results, &sets, dir, layout))
            }
        };
        super::print(&text).map(|_| ())
    }
}

/// Page in the directory of a profile that compares its file systems.
const COMPARISON_FILE: &str = "comparison.html";

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
