//! What all lanes of a run share.

use crate::file_pool::FilesetState;
use crate::outcome::{RanOut, VariableStats};
use crate::program::{Compiled, MixFileSizes, RowInfo};
use crate::stage_state::StageRun;
use crate::sync::{BlockedCount, EventSource, OpBudget, Semaphore, Wakeups, lock};
use crate::worker_ends::WorkerEnds;
use crate::worker_id::WorkerId;
use plimsoll_lane::Deadline;
use plimsoll_measure::{Clock, LaneProgress, Nanos, ProcessCounts, WindowState};
use plimsoll_plan::{Failure, OpsLimit, Plan, QuitMode, Sampler, Supply, Variable, WorkerGroup};
use plimsoll_target::OpError;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};

/// What of the Plan's limits falls to the workers of this process.
pub(crate) struct Limits {
    /// Events a second.
    pub(crate) events: Option<f64>,
    /// Operations in all.
    pub(crate) total: Option<u64>,
}

/// Says what an error means.
pub(crate) type Explain = Box<dyn Fn(OpError) -> String + Send + Sync>;

/// Everything the workers of a run share.
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
    pub(crate) tickets: Option<Arc<OpBudget>>,
    /// Semaphores by row, one for each worker that has the semblock.
    pub(crate) semaphores: Vec<Vec<Arc<Semaphore>>>,
    /// Wakeups by row.
    pub(crate) wakeups: Vec<Arc<Wakeups>>,
    pub(crate) progress: OnceLock<Vec<Arc<LaneProgress>>>,
    pub(crate) idle: BlockedCount,
    /// Workers that have not ended.
    pub(crate) live: AtomicUsize,
    /// Instant at which workers started.
    pub(crate) started: AtomicU64,
    pub(crate) failure: Mutex<Option<Failure>>,
    /// The operation that ended the run because its supply was used up.
    pub(crate) ran_out: Mutex<Option<RanOut>>,
    /// Supplies whose end is an end of the run that the workload is made for.
    natural_ends: BTreeSet<Supply>,
    pub(crate) messages: Mutex<Vec<String>>,
    pub(crate) drawn: Mutex<Vec<(u32, VariableStats)>>,
    pub(crate) notes: Mutex<Vec<String>>,
    /// What an error means, as the target knows it.
    pub(crate) explain: Explain,
    /// What each worker of a mix did of what was due.
    pub(crate) processes: Mutex<Vec<ProcessCounts>>,
    /// Lengths of the files that the workers of each group work on, if it is a mix.
    sizes: Vec<Option<Arc<MixFileSizes>>>,
    /// The stage, when the workers are ranks of a pattern.
    pub(crate) stage: Option<StageRun>,
    /// Workers that have come to the end of their work by themselves.
    pub(crate) ends: WorkerEnds,
    /// Latest instant at which a worker stopped working.
    latest_exit: AtomicU64,
    /// Workers that have ended.
    pub(crate) ended: Box<[AtomicBool]>,
    /// Worker that each semaphore belongs to, as `semaphores`.
    owners: Vec<Vec<u32>>,
}

impl RunState {
    /// What the workers of a Plan share when they start.
    ///
    /// # Errors
    /// When a random variable cannot be drawn from.
    pub(crate) fn new(
        plan: &Plan,
        clock: Clock,
        window: WindowState,
        filesets: Vec<Arc<FilesetState>>,
        workers: &[WorkerId],
        limits: Limits,
        stage: Option<StageRun>,
    ) -> Result<Self, String> {
        let rows = plan.operations.len();
        let programs: Vec<_> = plan
            .groups
            .iter()
            .map(|g| Arc::new(Compiled::new(plan, g)))
            .collect();
        let mut semaphores = vec![Vec::new(); rows];
        let mut owners = vec![Vec::new(); rows];
        for worker in workers {
            for (row, high_water) in &programs[worker.group as usize].semblocks {
                let semaphore = Arc::new(Semaphore::default());
                // A high water that is drawn anew is set when the worker first waits.
                semaphore.set_high_water(high_water.constant().unwrap_or(u64::MAX));
                semaphores[*row as usize].push(semaphore);
                owners[*row as usize].push(worker.index);
            }
        }
        let tickets = limits.total.map(|n| OpBudget::new(n, workers.len() as u64));
        let sizes = |g: &WorkerGroup| {
            let mix = g.program.mix()?;
            Some(Arc::new(MixFileSizes::new(mix, &filesets)))
        };
        Ok(Self {
            samplers: plan
                .variables
                .iter()
                .map(Variable::sampler)
                .collect::<Result<_, _>>()?,
            rows: plan
                .operations
                .iter()
                .map(|o| RowInfo::of(o.kind))
                .collect(),
            wakeups: (0..rows).map(|_| Arc::default()).collect(),
            window: Arc::new(window),
            deadline: Arc::default(),
            events: limits.events.map(EventSource::new),
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
            sizes: plan.groups.iter().map(sizes).collect(),
            stage,
            ends: WorkerEnds::default(),
            latest_exit: AtomicU64::new(0),
            ended: (0..plan.workers())
                .map(|_| AtomicBool::new(false))
                .collect(),
            plan: Arc::new(plan.clone()),
            filesets,
            programs,
            clock,
            tickets,
            semaphores,
            owners,
        })
    }

    /// Which rows are operations that count.
    pub(crate) fn counted(&self) -> Vec<bool> {
        self.rows.iter().map(|row| row.counts).collect()
    }

    /// The semaphore of a worker's semblock.
    pub(crate) fn semaphore_of(&self, row: u32, worker: u32) -> Arc<Semaphore> {
        let at = self.owners[row as usize].iter().position(|w| *w == worker);
        at.map(|at| self.semaphores[row as usize][at].clone())
            .unwrap_or_default()
    }

    /// Lengths of the files of a mix.
    pub(crate) fn sizes_of(&self, group: u32) -> Option<Arc<MixFileSizes>> {
        self.sizes[group as usize].clone()
    }

    /// What a worker of a mix did.
    pub(crate) fn note_process(&self, figures: ProcessCounts) {
        lock(&self.processes).push(figures);
    }

    /// Adds a draw of testrandvar to the figures of its row.
    pub(crate) fn note_draw(&self, row: u32, drawn: u64) {
        let mut all = lock(&self.drawn);
        let at = all.iter().position(|(r, _)| *r == row).unwrap_or_else(|| {
            all.push((row, VariableStats::default()));
            all.len() - 1
        });
        all[at].1.add(drawn as f64);
    }

    /// A remark for the end of the run; each is made once.
    pub(crate) fn note(&self, text: String) {
        let mut notes = lock(&self.notes);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }

    /// Ends the run at `at`: no window goes on longer, no worker waits longer.
    pub(crate) fn end_run(&self, at: Nanos) {
        // An operation that completed at this very instant still counts.
        self.window.close(at + 1);
        self.deadline.bring_forward(at);
    }

    /// Ends the run because of something that is no operation's fault.
    pub(crate) fn fail_unnamed(&self, error: String, at: Nanos) {
        self.fail(Failure::of("run", error), at);
    }

    /// Operations and bytes of some rows, or of all that count, since the workers started.
    pub(crate) fn done(&self, rows: Option<&[plimsoll_plan::OperationId]>) -> (u64, u64) {
        let Some(lanes) = self.progress.get() else {
            return (0, 0);
        };
        let sum = |row: usize| {
            lanes
                .iter()
                .fold((0, 0), |(o, b), l| (o + l.ops(row), b + l.bytes(row)))
        };
        let add = |(o, b): (u64, u64), (x, y)| (o + x, b + y);
        match rows {
            Some(rows) => rows.iter().map(|r| sum(r.0 as usize)).fold((0, 0), add),
            None => {
                let counted = (0..self.rows.len()).filter(|r| self.rows[*r].counts);
                counted.map(sum).fold((0, 0), add)
            }
        }
    }

    /// Ends the run at `at` because of a failure; the first one is kept.
    pub(crate) fn fail(&self, failure: Failure, at: Nanos) {
        lock(&self.failure).get_or_insert(failure);
        self.end_run(at);
    }

    /// The supply of a worker's operation is used up, so that the worker ends. If the Plan ends by
    /// time and is made of more than work that ends by itself, the run ends with it.
    pub(crate) fn run_out(&self, row: u32, supply: Supply, now: Nanos) {
        let plan = &self.plan;
        // The run was over before the worker noticed.
        if plan.quit != QuitMode::Timeout || now >= self.deadline.at() {
            return;
        }
        let operation = &plan.operations[row as usize];
        let fileset = &plan.fileset(supply.fileset).name;
        if self.natural_ends.contains(&supply) {
            return self.note(format!(
                "no {} of fileset `{fileset}` was left for `{}`: its workers ended by themselves",
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
            after_ns: now.saturating_sub(since),
            measured,
            window_over: window.end <= now,
        });
        self.end_run(now);
    }

    /// A worker has come to the end of its work at `now`, by itself if the run was not over yet.
    pub(crate) fn worker_done(&self, now: Nanos) {
        if now < self.deadline.at() {
            self.ends.note(&self.window, now, || self.done(None));
        }
    }

    /// A worker has stopped working at `now`: in `firstdone` the run ends with it, and with the
    /// last worker in any case.
    pub(crate) fn worker_exited(&self, now: Nanos) {
        // The last to come here need not be the last that worked.
        let latest = self.latest_exit.fetch_max(now, AcqRel).max(now);
        let last = self.live.fetch_sub(1, AcqRel) == 1;
        if last || self.plan.quit == QuitMode::FirstDone {
            self.end_run(latest);
        }
    }

    /// A worker has closed everything.
    pub(crate) fn worker_ended(&self, worker: u32) {
        self.ended[worker as usize].store(true, Relaxed);
    }

    /// Tickets a worker starts with, and whether it needs any.
    pub(crate) fn initial_budget(&self) -> Option<u64> {
        match self.plan.options.ops {
            None => None,
            Some(OpsLimit::PerWorker(n)) => Some(n),
            Some(OpsLimit::Total(_)) => Some(0),
        }
    }

    /// Instant at which the n-th event is due.
    pub(crate) fn event_due(&self, count: u64) -> Option<Nanos> {
        let events = self.events.as_ref()?;
        Some(self.started.load(Relaxed) + events.take(count))
    }
}
