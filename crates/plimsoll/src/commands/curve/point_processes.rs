//! Points of a curve in virtual time that are measured at the same time, each by a process.
//!
//! Such points are independent: each begins with a new system on a clock at zero. The process is
//! `plimsoll measure-point`, which reads the curve's document, measures one load, writes the results
//! into the curve's directory, and prints the name of their directory.

use crate::cli::{CleanupArgs, Format, MeasurePointArgs};
use crate::commands::print;
use crate::communicator::Communicator;
use crate::exit::{CommandError, Exit};
use crate::load_runner::{LoadRunner, LoadTestConfig};
use crate::output_options::OutputOptions;
use crate::process_pool::{EndedProcess, ProcessPool, describe_end};
use crate::{console, signals};
use plimsoll_engine::{ClockKind, Stop};
use plimsoll_results::CurveDir;
use std::collections::{BTreeMap, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Reasons why a process ended without a run.
pub(super) enum LostPoint {
    /// The user ended it, or an error at a lower load.
    Interrupted,
    /// A signal that ends a group of processes, or only this one, ended it.
    Terminated,
    /// The run was refused.
    Refused(CommandError),
    /// It failed, or was killed: a sentence.
    Died(String),
}

/// Processes that measure the points of a curve, started in increasing order of load.
pub(super) struct PointProcesses {
    /// Directory of the curve.
    dir: PathBuf,
    per_rank: bool,
    pool: ProcessPool,
    /// Loads that no process was started for.
    waiting: VecDeque<u64>,
    /// Names of the results of processes that have ended, by load.
    ended: BTreeMap<u64, Result<String, LostPoint>>,
}

impl PointProcesses {
    /// Processes for these loads, at most `jobs` at a time.
    pub(super) fn new(dir: &Path, jobs: usize, per_rank: bool, loads: Vec<u64>) -> Self {
        Self {
            dir: dir.to_owned(),
            per_rank,
            pool: ProcessPool::new(jobs),
            waiting: loads.into(),
            ended: BTreeMap::new(),
        }
    }

    /// The name of the results at a load, once they are measured. Loads are requested in increasing
    /// order, the next ones are measured meanwhile.
    pub(super) fn measure(
        &mut self,
        load: u64,
        runner: &LoadRunner<'_>,
    ) -> Result<String, LostPoint> {
        loop {
            self.start_processes(runner);
            if let Some(ended) = self.ended.remove(&load) {
                return ended;
            }
            match self.pool.next_ended(|| runner.stop.is_requested()) {
                Some(process) => self.take(process),
                // The user ended it before its process was started.
                None => return Err(LostPoint::Interrupted),
            }
        }
    }

    /// Ends all processes. Returns the names of the results that were not requested.
    pub(super) fn end(mut self) -> Vec<String> {
        self.waiting.clear();
        self.pool.stop_all();
        while let Some(process) = self.pool.next_ended(|| false) {
            self.take(process);
        }
        self.ended.into_values().filter_map(Result::ok).collect()
    }

    fn start_processes(&mut self, runner: &LoadRunner<'_>) {
        while self.pool.has_room()
            && !runner.stop.is_requested()
            && let Some(load) = self.waiting.pop_front()
        {
            let started = self
                .command(load)
                .and_then(|mut command| self.pool.start(load, &mut command));
            match started {
                Ok(()) => runner.output.report_progress(&format!("load {load} begun")),
                Err(e) => self.lose(load, format!("cannot be started: {e}")),
            }
        }
    }

    fn command(&self, load: u64) -> std::io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("measure-point");
        if self.per_rank {
            command.arg("--per-rank");
        }
        command.arg("--").arg(&self.dir).arg(load.to_string());
        Ok(command)
    }

    /// Takes the result of a process that has ended.
    fn take(&mut self, process: EndedProcess) {
        let EndedProcess {
            task: load,
            output,
            was_stopped,
        } = process;
        let ended = match &output {
            Ok(output) if output.status.success() => Ok(line_of(output)),
            Ok(output) if output.status.code() == Some(Exit::Usage as i32) => {
                Err(LostPoint::Refused(CommandError {
                    exit: Exit::Usage,
                    message: String::from_utf8_lossy(&output.stderr).into_owned(),
                }))
            }
            Ok(_) if was_stopped => Err(LostPoint::Interrupted),
            // It came before the process handled it.
            Ok(output) if output.status.signal().is_some_and(signals::ends_a_run) => {
                Err(LostPoint::Terminated)
            }
            _ => return self.lose(load, describe_end(&output)),
        };
        self.ended.insert(load, ended);
    }

    /// Reports that a process was lost, at once, and starts no more: the curve ends at its load.
    fn lose(&mut self, load: u64, how: String) {
        let text = format!("load {load}: the process that measures it {how}");
        console::err(&format!("error: {text}\n"));
        self.waiting.clear();
        self.pool.stop_above(load);
        self.ended.insert(load, Err(LostPoint::Died(text)));
    }
}

/// The line that a process printed.
fn line_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim_end().to_owned()
}

/// Measures one point of a curve, in the process that [`PointProcesses`] starts for it.
pub fn measure_point(args: &MeasurePointArgs) -> Result<Exit, CommandError> {
    let dir = CurveDir::at(&args.curve);
    let curve = dir.read().map_err(CommandError::usage)?;
    let (load, config) = (args.load, LoadTestConfig::of(&curve, dir.path())?);
    if !curve.selection.loads.contains(&load) {
        let place = dir.path().display();
        let text = format!("{load} is not a load of the curve in {place}");
        return Err(CommandError::usage(text));
    }
    if config.clock == ClockKind::Real {
        let text = "a point is measured by itself only in virtual time";
        return Err(CommandError::usage(text));
    }
    let communicator = Communicator::join_launched()?;
    let stop = Stop::default();
    signals::stop_at_end_of_input(&stop)
        .map_err(|e| CommandError::failed(format!("cannot catch signals: {e}")))?;
    let output = OutputOptions {
        format: Format::Json,
        quiet: true,
        live: false,
        per_rank: args.per_rank,
        percentiles: curve.percentiles_shown.clone(),
        cleanup: CleanupArgs { strict: false },
    };
    let mut runner = LoadRunner::new(&communicator, &config, &stop, output);
    let measured = runner.measure(load, |plan, started, clock| {
        dir.point_writer(&curve, load, plan, started, clock)
    })?;
    let results = measured.dir.map_err(CommandError::failed)?;
    print(&format!("{}\n", results.name()))
}
