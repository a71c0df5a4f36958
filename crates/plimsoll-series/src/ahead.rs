//! Independent runs in virtual time, executed concurrently by separate processes.
//!
//! Each independent run begins with a new system on a clock at zero. Its process is `plimsoll make-run`, which reads
//! the document of the series, makes one run, writes the results into the directory of the series, and prints the name
//! of the results directory.
//!
//! Rank 0 lists the runs in order of load. Runs beyond the end of a series are removed, or kept for later if the series
//! can be resumed; runs of earlier processes are never removed. A run's process ends when its standard input is closed,
//! by rank 0 or, after the death of rank 0, by the kernel.

use crate::host::Host;
use crate::process_pool::{EndedProcess, ProcessPool, describe_end};
use crate::{REFUSED_EXIT_CODE, SeriesError};
use plimsoll_engine::Stop;
use plimsoll_plan::Reason;
use plimsoll_results::{NextRun, Removal, ResultsError, RunDir, SeriesRun, SeriesWriter, Verdict};
use plimsoll_runtime::signals;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Maximum time after which a signal to a group of processes has reached this process as well.
const GROUP_SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

/// Interval at which this process checks whether the signal has arrived.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// End of a run that was made ahead of its turn.
pub(crate) enum AheadEnd {
    /// With results, whatever their verdict.
    Made(Box<SeriesRun>),
    /// The user ended the run before there were results.
    Interrupted,
    /// The run was refused.
    Refused(SeriesError),
    /// The process ended without results.
    Lost(Reason),
}

/// Reasons why a process ended without results.
enum LostProcess {
    /// Stopped by the user, or because an earlier run failed.
    Interrupted,
    /// Terminated by a signal to the process or its process group.
    Terminated,
    /// The run was refused.
    Refused(SeriesError),
    /// The process failed or was killed. The text is a sentence.
    Died(String),
}

/// Processes that make the independent runs of a series, started in the order of the runs.
pub(crate) struct Ahead {
    /// Directory of the series.
    dir: PathBuf,
    per_rank: bool,
    pool: ProcessPool,
    /// All runs, indexed by task number.
    runs: Vec<NextRun>,
    /// Tasks whose process has not been started.
    waiting: VecDeque<u64>,
    /// Results directories of processes that have ended, by task.
    ended: BTreeMap<u64, Result<String, LostProcess>>,
}

impl Ahead {
    /// Up to `jobs` processes for the independent runs of a series; `None` if at most one would run at a time.
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

    /// The task number of a run; `None` if an earlier process made the run.
    pub(crate) fn task_of(&self, next: &NextRun) -> Option<u64> {
        let task = self.runs.iter().position(|run| run == next)?;
        Some(task as u64)
    }

    /// Waits until the run of a task is made, while other processes make later runs. Tasks are awaited in order.
    pub(crate) fn await_run(
        &mut self,
        task: u64,
        writer: &SeriesWriter,
        host: &dyn Host,
    ) -> Result<AheadEnd, ResultsError> {
        Ok(match self.await_task(task, host) {
            Ok(directory) => {
                let path = self.dir.join(&directory);
                let next = &self.runs[task as usize];
                let run = writer.entry(next, &RunDir::at(&path))?;
                if run.verdict == Verdict::Interrupted && !is_stopped(host.stop()) {
                    return Ok(self.terminated(task, host));
                }
                AheadEnd::Made(Box::new(run))
            }
            Err(LostProcess::Interrupted) => AheadEnd::Interrupted,
            Err(LostProcess::Terminated) if is_stopped(host.stop()) => AheadEnd::Interrupted,
            Err(LostProcess::Terminated) => self.terminated(task, host),
            Err(LostProcess::Refused(error)) => AheadEnd::Refused(error),
            Err(LostProcess::Died(text)) => AheadEnd::Lost(Reason::new("failed", text)),
        })
    }

    fn await_task(&mut self, task: u64, host: &dyn Host) -> Result<String, LostProcess> {
        loop {
            self.start_processes(host);
            if let Some(ended) = self.ended.remove(&task) {
                return ended;
            }
            match self.pool.next_ended(|| host.stop().is_requested()) {
                Some(process) => self.take(process, host),
                // The user ended the series before the process of this task was started.
                None => return Err(LostProcess::Interrupted),
            }
        }
    }

    /// Ends all processes. Runs beyond the end of the series are removed if the series is over, and kept if the series
    /// can be resumed. In a series that can be resumed, incomplete runs are also removed unless the user interrupted
    /// the series. Returns sentences about removals that failed.
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

    /// Name of a task's run in messages.
    fn name(&self, task: u64) -> String {
        let run = &self.runs[task as usize];
        match run.load {
            Some(load) => format!("load {load}"),
            None => run.directory.clone(),
        }
    }

    /// Records the result of a process that has ended.
    fn take(&mut self, process: EndedProcess, host: &dyn Host) {
        let task = process.task;
        match directory_of(&process) {
            Err(LostProcess::Died(how)) => self.lose(task, &how, host),
            ended => _ = self.ended.insert(task, ended),
        }
    }

    /// Reports a lost process at once and starts no further processes. The series ends at the lost run.
    fn lose(&mut self, task: u64, how: &str, host: &dyn Host) {
        let text = format!("{}: the process that measures it {how}", self.name(task));
        host.error(&text);
        self.waiting.clear();
        self.pool.stop_above(task);
        self.ended.insert(task, Err(LostProcess::Died(text)));
    }

    /// End of a run whose process alone was terminated, for instance by the kernel's out-of-memory killer.
    fn terminated(&self, task: u64, host: &dyn Host) -> AheadEnd {
        let text = format!(
            "{}: the process that measures it was terminated",
            self.name(task)
        );
        host.error(&text);
        AheadEnd::Lost(Reason::new("failed", text))
    }
}

/// Results directory that a process printed, or the reason why no results exist.
fn directory_of(process: &EndedProcess) -> Result<String, LostProcess> {
    match &process.output {
        Ok(output) if output.status.success() => Ok(line_of(output)),
        Ok(output) if output.status.code() == Some(REFUSED_EXIT_CODE) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let text = text.trim().trim_start_matches("error: ");
            Err(LostProcess::Refused(SeriesError::Refused(text.to_owned())))
        }
        Ok(_) if process.was_stopped => Err(LostProcess::Interrupted),
        // The signal arrived before the process had installed its handler.
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

/// Whether a run was measured to its end.
fn is_measured(run: &RunDir) -> bool {
    run.read()
        .is_ok_and(|run| matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid))
}
