//! Concurrent execution of a series' independent runs in virtual time, each run by a process of its own.
//!
//! Each independent run begins with a new simulated system and a virtual clock at zero. The process of an independent
//! run is `plimsoll make-run`, which reads `series.json`, makes one run, writes the results into the directory of the
//! series, and prints the name of the results directory.
//!
//! Rank 0 lists the runs in the order of the series. Runs beyond the end of a series are removed, or kept for later if
//! the series can be resumed; runs of earlier processes are never removed. A run's process ends when its standard input
//! is closed: rank 0 closes the pipe, or the kernel closes the pipe after the death of rank 0.

use crate::host::Host;
use crate::process_pool::{EndedProcess, ProcessPool, describe_end};
use crate::{REFUSED_EXIT_CODE, SeriesError};
use plimsoll_engine::Stop;
use plimsoll_results::{NextRun, Removal, ResultsError, RunDir, SeriesRun, SeriesWriter, Verdict};
use plimsoll_runtime::signals;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Maximum time after which a signal to the process group, which has ended a run's process, has reached this process as
/// well.
const GROUP_SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

/// Interval at which this process checks whether a signal to the process group has arrived.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Reason why the process of an independent run ended without usable results.
pub(crate) enum LostProcess {
    /// The user stopped the series, or rank 0 ended the process because the process of an earlier run was lost.
    Interrupted,
    /// A signal ended the process, perhaps together with the whole process group.
    Terminated,
    /// The process refused the run, for instance because of invalid input.
    Refused(SeriesError),
    /// The process failed or was killed; the sentence says how.
    Died(String),
}

/// Processes that make the independent runs of a series, started in the order of the runs.
pub(crate) struct Ahead {
    /// Directory of the series, into which the processes write their results.
    dir: PathBuf,
    per_rank: bool,
    pool: ProcessPool,
    /// All independent runs without results, indexed by task number.
    runs: Vec<NextRun>,
    /// Numbers of the tasks whose process has not been started, in the order of the runs.
    waiting: VecDeque<u64>,
    /// By task number: the results directory that an ended process printed, or the reason why the process left no
    /// results.
    ended: BTreeMap<u64, Result<String, LostProcess>>,
}

impl Ahead {
    /// Prepares up to `jobs` concurrent processes for the independent runs of a series; `None` if at most one process
    /// would run at a time.
    pub(crate) fn new(writer: &SeriesWriter, jobs: NonZeroUsize, per_rank: bool) -> Option<Self> {
        let series = writer.series();
        let mut runs = series.kind.strategy().independent(series);
        runs.retain(|next| writer.unlisted(next).is_none());
        let jobs = jobs.get().min(runs.len());
        (jobs > 1).then(|| Self {
            dir: writer.dir().path().to_owned(),
            per_rank,
            pool: ProcessPool::new(jobs),
            waiting: (0..runs.len() as u64).collect(),
            runs,
            ended: BTreeMap::new(),
        })
    }

    /// The task number of a run; `None` if the run is not independent, or already had results when the tasks were
    /// numbered.
    pub(crate) fn task_of(&self, next: &NextRun) -> Option<u64> {
        let task = self.runs.iter().position(|run| run == next)?;
        Some(task as u64)
    }

    /// Waits until the process of a task has made the task's run, while other processes make later runs; the caller
    /// awaits the tasks in the order of the runs.
    pub(crate) fn await_run(
        &mut self,
        task: u64,
        writer: &SeriesWriter,
        host: &dyn Host,
    ) -> Result<Result<SeriesRun, LostProcess>, ResultsError> {
        let lost = match self.await_task(task, host) {
            Ok(directory) => {
                let path = self.dir.join(&directory);
                let run = writer.entry(&self.runs[task as usize], &RunDir::at(&path))?;
                if run.verdict != Verdict::Interrupted || is_stopped(host.stop()) {
                    return Ok(Ok(run));
                }
                LostProcess::Terminated
            }
            Err(LostProcess::Terminated) if is_stopped(host.stop()) => LostProcess::Interrupted,
            Err(lost) => lost,
        };
        Ok(Err(match lost {
            // The process alone was terminated, for instance by the kernel's out-of-memory killer.
            LostProcess::Terminated => {
                let name = self.name(task);
                let text = format!("{name}: the process that measures it was terminated");
                host.error(&text);
                LostProcess::Died(text)
            }
            lost => lost,
        }))
    }

    fn await_task(&mut self, task: u64, host: &dyn Host) -> Result<String, LostProcess> {
        loop {
            self.start_processes(host);
            if let Some(ended) = self.ended.remove(&task) {
                return ended;
            }
            match self.pool.next_ended(|| host.stop().is_requested()) {
                Some(process) => self.take(process, host),
                // No process is left to wait for: the user ended the series before the process of the task was started.
                None => return Err(LostProcess::Interrupted),
            }
        }
    }

    /// Ends all processes of independent runs. Runs beyond the end of the series are removed if the series is over, and
    /// kept if the series can be resumed. In a series that can be resumed, incomplete runs are also removed unless the
    /// user interrupted the series. The returned sentences name the runs that could not be removed.
    pub(crate) fn end(mut self, is_over: bool, is_interrupted: bool) -> Vec<String> {
        self.waiting.clear();
        self.pool.stop_all();
        while let Some(process) = self.pool.next_ended(|| false) {
            let task = process.task;
            if let Ok(directory) = directory_of(&process) {
                self.ended.insert(task, Ok(directory));
            }
        }
        let mut texts = Vec::new();
        for directory in self.ended.into_values().flatten() {
            let run = RunDir::at(&self.dir.join(directory));
            let stays = match (is_over, is_interrupted) {
                (true, _) => false,
                (false, true) => true,
                (false, false) => is_measured(&run),
            };
            if !stays && let Err(e) = Removal::of(run.path()).and_then(Removal::execute) {
                texts.push(format!("a run beyond the end of the series stays: {e}"));
            }
        }
        texts
    }

    fn start_processes(&mut self, host: &dyn Host) {
        while self.pool.has_room()
            && !host.stop().is_requested()
            && let Some(task) = self.waiting.pop_front()
        {
            let started = self
                .command(task)
                .and_then(|mut command| self.pool.start(task, &mut command));
            match started {
                Ok(()) => host.progress(&format!("{} begun", self.name(task))),
                Err(e) => self.lose(task, &format!("cannot be started: {e}"), host),
            }
        }
    }

    fn command(&self, task: u64) -> std::io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("make-run");
        if self.per_rank {
            command.arg("--per-rank");
        }
        let directory = &self.runs[task as usize].directory;
        command.arg("--").arg(&self.dir).arg(directory);
        Ok(command)
    }

    /// Name of a task's run in messages: the load, or the results directory.
    fn name(&self, task: u64) -> String {
        let run = &self.runs[task as usize];
        match run.load {
            Some(load) => format!("load {load}"),
            None => run.directory.clone(),
        }
    }

    /// Records the results directory of a process that has ended, or the reason why no results exist.
    fn take(&mut self, process: EndedProcess, host: &dyn Host) {
        let task = process.task;
        match directory_of(&process) {
            Err(LostProcess::Died(how)) => self.lose(task, &how, host),
            ended => _ = self.ended.insert(task, ended),
        }
    }

    /// Reports a lost process at once, starts no further processes, and ends the processes of later runs: the series
    /// ends at the lost run.
    fn lose(&mut self, task: u64, how: &str, host: &dyn Host) {
        let text = format!("{}: the process that measures it {how}", self.name(task));
        host.error(&text);
        self.waiting.clear();
        self.pool.stop_above(task);
        self.ended.insert(task, Err(LostProcess::Died(text)));
    }
}

/// Results directory that an ended process printed, or the reason why no results exist.
fn directory_of(process: &EndedProcess) -> Result<String, LostProcess> {
    match &process.output {
        Ok(output) if output.status.success() => Ok(line_of(output)),
        Ok(output) if output.status.code() == Some(REFUSED_EXIT_CODE) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let text = text.trim().trim_start_matches("error: ");
            Err(LostProcess::Refused(SeriesError::Refused(text.to_owned())))
        }
        Ok(_) if process.was_stopped => Err(LostProcess::Interrupted),
        // A signal to stop ended the process before the process had installed a signal handler.
        Ok(output) if output.status.signal().is_some_and(signals::ends_a_run) => {
            Err(LostProcess::Terminated)
        }
        output => Err(LostProcess::Died(describe_end(output))),
    }
}

fn line_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim_end().to_owned()
}

/// Whether the user has stopped the series. Waits up to `GROUP_SIGNAL_TIMEOUT`, because a signal to a process group can
/// reach this process later than the run's process.
fn is_stopped(stop: &Stop) -> bool {
    let begun = Instant::now();
    while !stop.is_requested() && begun.elapsed() < GROUP_SIGNAL_TIMEOUT {
        std::thread::sleep(STOP_POLL_INTERVAL);
    }
    stop.is_requested()
}

/// Whether a run was measured to its end; false if its results cannot be read.
fn is_measured(run: &RunDir) -> bool {
    run.read()
        .is_ok_and(|run| run.validity.verdict.is_measured())
}
