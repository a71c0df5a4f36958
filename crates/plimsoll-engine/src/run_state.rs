//! The state that the lanes of a process share during a load phase.

use crate::file_pool::FilesetState;
use crate::program::{Compiled, MixFileSizes, RowInfo};
use crate::schedule::{EventSource, WindowCounts};
use crate::stage_state::StageRun;
use crate::sync::{BlockedCount, OpBudget, Semaphore, Wakeups, lock};
use crate::worker::JobState;
use crate::worker_ends::WorkerEnds;
use crate::worker_id::WorkerId;
use plimsoll_lane::Deadline;
use plimsoll_measure::{
    Clock, LaneProgress, Nanos, ProcessCounts, RanOut, ScheduleCounts, VariableStats,
    WindowBacklog, WindowBounds, WindowState,
};
use plimsoll_plan::{
    Failure, FilesetId, Layout, OperationId, OpsLimit, Pattern, Plan, QuitMode, RootHandling,
    Sampler, Supply, Variable,
};
use plimsoll_target::{DataSet, OpError};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};

/// The part of the Plan's limits that applies to the workers of this process.
pub(crate) struct Limits {
    /// Event rate of this process's workers, in events per second; `None` without a schedule of events.
    pub(crate) events: Option<f64>,
    /// Number of operations that this process's workers may execute together; `None` without a limit.
    pub(crate) total: Option<u64>,
}

/// The workers of this process that take events of a schedule.
struct EventWorkers {
    /// Whether a worker follows the event schedule; a worker with caps alone does not follow the schedule.
    is_followed: bool,
    /// Instant at which the last worker that follows the schedule ended; [`Nanos::MAX`] before.
    ended: Nanos,
    /// Counts of the workers that have ended, including workers with caps: an event that a cap takes is lost for other
    /// workers.
    counts: Vec<WindowCounts>,
}

/// Function that explains an error of the target.
pub(crate) type Explain = Box<dyn Fn(OpError) -> String + Send + Sync>;

/// The state that the workers of a run share in this process.
pub(crate) struct RunState {
    pub(crate) plan: Arc<Plan>,
    pub(crate) filesets: Vec<Arc<FilesetState>>,
    pub(crate) samplers: Vec<Sampler>,
    pub(crate) rows: Vec<RowInfo>,
    pub(crate) programs: Vec<Arc<Compiled>>,
    pub(crate) clock: Clock,
    pub(crate) window: Arc<WindowState>,
    pub(crate) deadline: Arc<Deadline>,
    pub(crate) events: Option<EventSource>,
    /// Number of workers that follow the event schedule and have not ended.
    followers: AtomicUsize,
    event_workers: Mutex<EventWorkers>,
    pub(crate) tickets: Option<Arc<OpBudget>>,
    /// Semaphores by row: the number of each worker that has the semblock, and the worker's semaphore.
    pub(crate) semaphores: Vec<Vec<(u32, Arc<Semaphore>)>>,
    /// Wakeups by row.
    pub(crate) wakeups: Vec<Arc<Wakeups>>,
    pub(crate) progress: OnceLock<Vec<Arc<LaneProgress>>>,
    pub(crate) idle: BlockedCount,
    /// Number of this process's workers that have not ended.
    pub(crate) live: AtomicUsize,
    /// Instant at which the workers started, in nanoseconds of the run's clock.
    pub(crate) started: AtomicU64,
    pub(crate) failure: Mutex<Option<Failure>>,
    /// The operation that exhausted a fileset and so ended the run.
    pub(crate) ran_out: Mutex<Option<RanOut>>,
    /// Supplies that the workload uses up by design.
    natural_ends: BTreeSet<Supply>,
    pub(crate) messages: Mutex<Vec<String>>,
    pub(crate) drawn: Mutex<Vec<(u32, VariableStats)>>,
    pub(crate) notes: Mutex<Vec<String>>,
    /// Explains an error code in the words of the target, for messages.
    pub(crate) explain: Explain,
    /// Scheduled and completed operations of each worker of a mix.
    pub(crate) processes: Mutex<Vec<ProcessCounts>>,
    /// Backlogs of all workers with a schedule that have ended.
    pub(crate) backlog: Mutex<WindowBacklog>,
    /// Sizes of the files of each group that runs a mix.
    sizes: Vec<Option<Arc<MixFileSizes>>>,
    /// States of the processes of each group that runs a job; empty for other groups.
    jobs: Vec<Vec<Arc<JobState>>>,
    /// The stage in progress, if the workers are ranks of a pattern.
    pub(crate) stage: Option<StageRun>,
    /// Workers that have finished before the end of the run.
    pub(crate) ends: WorkerEnds,
    /// The latest instant at which a worker stopped.
    latest_exit: AtomicU64,
    /// For each worker, whether the worker has ended and closed its files.
    pub(crate) ended: Box<[AtomicBool]>,
}

impl RunState {
    /// The state before the workers start.
    ///
    /// # Errors
    /// If a random variable has no distribution.
    pub(crate) fn new(
        plan: &Plan,
        clock: Clock,
        window: WindowState,
        filesets: Vec<Arc<FilesetState>>,
        workers: &[WorkerId],
        limits: Limits,
        stage: Option<StageRun>,
    ) -> Result<Self, String> {
        let groups = plan.groups.iter();
        let programs = groups.clone().map(|g| Arc::new(Compiled::new(plan, g)));
        let programs: Vec<_> = programs.collect();
        let samplers = plan.variables.iter().map(Variable::sampler);
        let rows = plan.operations.iter();
        let tickets = limits.total.map(|n| OpBudget::new(n, workers.len() as u64));
        let sizes = groups.map(|g| {
            let mix = g.program.mix()?;
            let data = &filesets[mix.files.data.0 as usize];
            Some(Arc::new(MixFileSizes::new(mix, data.layout.clone())))
        });
        let jobs = plan.groups.iter().zip(0..).map(|(g, number)| {
            let Some(job) = g.program.job() else {
                return Ok(vec![]);
            };
            let layout = &filesets[job.fileset.0 as usize].layout;
            let stream = plan.stream("job").branch(number);
            let process = |process| JobState::new(plan, g, job, layout, (process, stream));
            (0..g.process_instances).map(process).collect()
        });
        let jobs: Vec<Vec<Arc<JobState>>> = jobs.collect::<Result<_, String>>()?;
        let ended = (0..plan.workers()).map(|_| AtomicBool::new(false));
        let followers = workers.iter();
        let followers = followers
            .filter(|w| programs[w.group as usize].follows_events())
            .count();
        Ok(Self {
            samplers: samplers.collect::<Result<_, _>>()?,
            wakeups: rows.clone().map(|_| Arc::default()).collect(),
            semaphores: semaphores(rows.len(), &programs, workers),
            rows: rows
                .zip(plan.local_closes())
                .map(|(o, local_close)| RowInfo::of(o.kind, local_close))
                .collect(),
            window: Arc::new(window),
            deadline: Arc::default(),
            events: limits.events.map(EventSource::new),
            followers: AtomicUsize::new(followers),
            event_workers: Mutex::new(EventWorkers {
                is_followed: followers > 0,
                ended: Nanos::MAX,
                counts: Vec::with_capacity(workers.len()),
            }),
            progress: OnceLock::new(),
            idle: BlockedCount::default(),
            live: AtomicUsize::new(workers.len()),
            started: AtomicU64::new(0),
            failure: Mutex::default(),
            ran_out: Mutex::default(),
            natural_ends: match plan.ends_by_itself() {
                true => plan.supplies_used_up(),
                false => BTreeSet::new(),
            },
            messages: Mutex::default(),
            drawn: Mutex::default(),
            notes: Mutex::default(),
            explain: Box::new(|e| e.to_string()),
            processes: Mutex::default(),
            backlog: Mutex::default(),
            sizes: sizes.collect(),
            jobs,
            stage,
            ends: WorkerEnds::default(),
            latest_exit: AtomicU64::new(0),
            ended: ended.collect(),
            plan: Arc::new(plan.clone()),
            filesets,
            programs,
            clock,
            tickets,
        })
    }

    /// For each row, whether the summary counts the operations of the row.
    pub(crate) fn counted(&self) -> Vec<bool> {
        self.rows.iter().map(|row| row.counts).collect()
    }

    /// The semaphore of a worker's semblock.
    pub(crate) fn semaphore_of(&self, row: u32, worker: u32) -> Arc<Semaphore> {
        let mut of_row = self.semaphores[row as usize].iter();
        let own = of_row.find(|(owner, _)| *owner == worker);
        let (_, semaphore) = own.expect("each worker with a semblock has a semaphore");
        semaphore.clone()
    }

    /// Sizes of the files of a mix.
    pub(crate) fn sizes_of(&self, group: u32) -> Arc<MixFileSizes> {
        let sizes = self.sizes[group as usize].as_ref();
        sizes.expect("the group runs a mix").clone()
    }

    /// State of the process to which a worker of a job belongs.
    pub(crate) fn job_of(&self, worker: WorkerId) -> Arc<JobState> {
        let threads = self.plan.groups[worker.group as usize].thread_instances;
        let process = worker.number / threads.max(1);
        self.jobs[worker.group as usize][process as usize].clone()
    }

    /// The files that the workers of all ranks use.
    pub(crate) fn data_set(&self) -> DataSet {
        data_set(&self.plan, self.filesets.iter().map(|set| &*set.layout))
    }

    /// Adds a draw of testrandvar to the statistics of the row.
    pub(crate) fn note_draw(&self, row: u32, drawn: u64) {
        let mut all = lock(&self.drawn);
        let at = all.iter().position(|(r, _)| *r == row).unwrap_or_else(|| {
            all.push((row, VariableStats::default()));
            all.len() - 1
        });
        all[at].1.add(drawn as f64);
    }

    /// Adds a remark for the end of the run, unless the same remark was added before.
    pub(crate) fn note(&self, text: String) {
        let mut notes = lock(&self.notes);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// Ends the run at `at`: closes the window and ends all waits.
    pub(crate) fn end_run(&self, at: Nanos) {
        // An operation that completes at `at` counts.
        self.window.close(at + 1);
        self.deadline.bring_forward(at);
    }

    /// Ends the run because of an error that does not belong to an operation.
    pub(crate) fn fail_unnamed(&self, error: String, at: Nanos) {
        self.fail(Failure::of("run", error), at);
    }

    /// Operations and bytes since the workers started: of `rows`, or of all rows that count.
    pub(crate) fn done(&self, rows: Option<&[OperationId]>) -> (u64, u128) {
        let Some(lanes) = self.progress.get() else {
            return (0, 0);
        };
        let add = |(ops, bytes): (u64, u128), row: usize| {
            let of = |l: &Arc<LaneProgress>| (l.ops(row), l.bytes(row));
            let each = lanes.iter().map(of);
            each.fold((ops, bytes), |(o, b), (ops, bytes)| (o + ops, b + bytes))
        };
        match rows {
            Some(rows) => rows.iter().map(|r| r.0 as usize).fold((0, 0), add),
            None => {
                let counted = (0..self.rows.len()).filter(|r| self.rows[*r].counts);
                counted.fold((0, 0), add)
            }
        }
    }

    /// Sum of the response times of all paced operations of rows that count since the workers started, in nanoseconds; wraps
    /// at 2^64.
    pub(crate) fn response_ns(&self) -> u64 {
        let lanes = self.progress.get().map_or(&[][..], Vec::as_slice);
        let rows = (0..self.rows.len()).filter(|row| self.rows[*row].counts);
        let sums = rows.flat_map(|row| lanes.iter().map(move |lane| lane.response_ns(row)));
        sums.fold(0, u64::wrapping_add)
    }

    /// Ends the run at `at` because of a failure; only the first failure is kept.
    pub(crate) fn fail(&self, failure: Failure, at: Nanos) {
        lock(&self.failure).get_or_insert(failure);
        self.end_run(at);
    }

    /// Notes that a worker of an operation without supply has ended: adds a remark if the workload uses up the supply
    /// by design, and ends the run otherwise. Without effect if the run is over, or does not end by time.
    pub(crate) fn run_out(&self, row: u32, supply: Supply, now: Nanos) {
        let plan = &self.plan;
        // The run was over before the worker noticed.
        if plan.quit != QuitMode::Timeout || now >= self.deadline.at() {
            return;
        }
        let operation = &plan.operations[row as usize];
        let fileset = &plan.fileset(supply.fileset).name;
        let lack = plan.lack_of_supply(supply);
        if self.natural_ends.contains(&supply) {
            let lack = lack.map_or_else(String::new, |lack| format!("; {lack}"));
            return self.note(format!(
                "no {} of fileset `{fileset}` was left for `{}`: its workers ended by themselves{lack}",
                supply.kind, operation.name
            ));
        }
        let window = self.window.bounds();
        let measured = window.contains(now);
        let since = if measured {
            window.start
        } else {
            self.started.load(Relaxed)
        };
        lock(&self.ran_out).get_or_insert(RanOut {
            operation: operation.name.clone(),
            place: operation.location.clone(),
            supply: supply.kind.to_string(),
            fileset: fileset.clone(),
            advice: lack.unwrap_or(RanOut::ADVICE).to_owned(),
            after_ns: now.saturating_sub(since),
            measured,
            window_over: window.end <= now,
        });
        self.end_run(now);
    }

    /// Notes that a worker finished its work at `now`; has no effect once the run is over.
    pub(crate) fn worker_done(&self, now: Nanos) {
        if now < self.deadline.at() {
            self.ends.note(&self.window, now, || self.done(None));
        }
    }

    /// Notes that a worker stopped at `now`. The run ends with the last worker, and in `firstdone` with the first.
    pub(crate) fn worker_exited(&self, now: Nanos) {
        // The worker that calls last need not have stopped last.
        let latest = self.latest_exit.fetch_max(now, AcqRel).max(now);
        let live = self.live.fetch_sub(1, AcqRel);
        assert!(live > 0, "more workers ended than were started");
        if live == 1 || self.plan.quit == QuitMode::FirstDone {
            self.end_run(latest);
        }
    }

    /// The budget of a worker at its start; 0 if the workers share a limit, `None` if operations are not limited.
    pub(crate) fn initial_budget(&self) -> Option<u64> {
        match self.plan.options.ops {
            None => None,
            Some(OpsLimit::PerWorker(n)) => Some(n),
            Some(OpsLimit::Total(_)) => Some(0),
        }
    }

    /// Number of events that are due in a window, among the events with the numbers `events.start + 1` to `events.end`; 0
    /// without a schedule.
    pub(crate) fn events_in_window(&self, events: &Range<u64>, window: WindowBounds) -> u64 {
        let Some(source) = self.events.as_ref().filter(|_| window.number > 0) else {
            return 0;
        };
        let start = self.started.load(Relaxed);
        let after_start = |at: Nanos| at.saturating_sub(start);
        source.due_between(events, after_start(window.start), after_start(window.end))
    }

    /// Whether a worker still follows the event schedule, so that taken events count.
    pub(crate) fn has_followers(&self) -> bool {
        self.followers.load(Relaxed) > 0
    }

    /// Notes that a worker that takes events ended at `now`; `follows` tells whether the worker followed the event
    /// schedule.
    pub(crate) fn events_left(&self, counts: &WindowCounts, follows: bool, now: Nanos) {
        let mut workers = lock(&self.event_workers);
        workers.counts.push(*counts);
        if follows {
            let live = self.followers.fetch_sub(1, Relaxed);
            assert!(live > 0, "more workers ended than were started");
            if live == 1 {
                workers.ended = now;
            }
        }
    }

    /// Counts of the event schedule in a window; `None` if no worker follows a schedule, or before the first window of
    /// this phase. The event schedule ends with the last worker that follows the schedule.
    pub(crate) fn event_counts(&self, window: WindowBounds) -> Option<ScheduleCounts> {
        let workers = lock(&self.event_workers);
        // The latest window may belong to an earlier load phase.
        if !workers.is_followed || window.number == 0 || window.start == Nanos::MAX {
            return None;
        }
        let end = window.end.min(workers.ended).max(window.start);
        let of_window = WindowBounds { end, ..window };
        let mut sum = ScheduleCounts {
            scheduled: self.events_in_window(&(0..u64::MAX), of_window),
            ..ScheduleCounts::default()
        };
        let counts = workers.counts.iter().filter(|c| c.window == window.number);
        counts.for_each(|c| sum.add(&c.counts));
        Some(sum)
    }
}

/// The semaphores of each row: one semaphore for each worker that has the semblock.
fn semaphores(
    rows: usize,
    programs: &[Arc<Compiled>],
    workers: &[WorkerId],
) -> Vec<Vec<(u32, Arc<Semaphore>)>> {
    let mut semaphores = vec![Vec::new(); rows];
    for worker in workers {
        for (row, high_water) in &programs[worker.group as usize].semblocks {
            // A high water drawn from a random variable is set when the worker first waits.
            let high_water = high_water.constant().unwrap_or(u64::MAX);
            let semaphore = Arc::new(Semaphore::new(high_water));
            semaphores[*row as usize].push((worker.index, semaphore));
        }
    }
    semaphores
}

/// The files that the workers of a Plan use: the files in the trees of its filesets, or the largest number that a
/// pattern has at any time.
pub(crate) fn data_set<'a>(plan: &Plan, layouts: impl Iterator<Item = &'a Layout>) -> DataSet {
    if let Some(pattern) = plan.pattern() {
        return data_set_of(pattern);
    }
    let summaries = layouts.enumerate().map(|(i, layout)| {
        let used = plan.files_used(FilesetId(i as u32));
        layout.size_summary_of(used, false)
    });
    summaries.fold(DataSet::default(), |sum, s| DataSet {
        files: sum.files + s.files,
        bytes: sum.bytes + s.total,
    })
}

fn data_set_of(pattern: &Pattern) -> DataSet {
    // A stage with a stonewall creates at most as many files as the stage without a stonewall.
    let mut whole = pattern.clone();
    whole.stages.iter_mut().for_each(|s| s.stonewall = None);
    let made = whole.needs(1);
    let sets = pattern.sets_with_objects().len() as u64 * u64::from(pattern.ranks);
    let earlier = match pattern.root_is {
        RootHandling::New => 0,
        RootHandling::Kept => pattern.objects.saturating_mul(sets),
    };
    DataSet {
        files: made.objects.saturating_add(earlier),
        bytes: made.bytes + u128::from(earlier) * u128::from(pattern.object_size),
    }
}
