//! The lanes of a run: their workers and their threads.

use super::run_target::RunTarget;
use super::setup_pool::ContentPools;
use crate::run_state::RunState;
use crate::schedule::WindowCounts;
use crate::sync::ControllerWakeup;
use crate::worker::{CapUsage, FileCursors, WorkerContext, worker_name};
use crate::worker_id::WorkerId;
use plimsoll_lane::{Lane, LaneKind, os};
use plimsoll_measure::{InFlight, Recorder, RowSpec};
use plimsoll_plan::{Cold, Failure, Plan};
use plimsoll_runtime::Monitor;
use plimsoll_target::{DataSet, OpError, RpcRows, SessionSpec};
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

/// Barrier between the lanes and the controller before the first operation.
#[derive(Default)]
pub(crate) struct StartGate {
    /// Number of ready lanes, and whether the gate is open.
    state: Monitor<(usize, bool)>,
}

impl StartGate {
    /// Reports a lane as ready; returns once the gate is open.
    fn pass(&self) {
        self.state.update(|(ready, _)| *ready += 1);
        drop(self.state.wait_while(|(_, open)| !*open));
    }

    /// Waits until `lanes` lanes are ready.
    pub(crate) fn wait_for(&self, lanes: usize) {
        drop(self.state.wait_while(|(ready, _)| *ready < lanes));
    }

    pub(crate) fn open(&self) {
        self.state.update(|(_, open)| *open = true);
    }
}

/// The workers of a Plan that this rank runs, in the order of their groups: the workers whose number is `rank` modulo
/// `ranks`, so that each rank has a part of each group.
pub(crate) fn workers(plan: &Plan, rank: u32, ranks: u32) -> Vec<WorkerId> {
    let groups = plan.groups.iter().enumerate();
    let all = groups
        .flat_map(|(group, g)| (0..g.workers() as u32).map(move |number| (group as u32, number)));
    all.zip(0..)
        .map(|((group, number), index)| WorkerId {
            group,
            number,
            index,
        })
        .filter(|w| w.index % ranks == rank)
        .collect()
}

/// Number of lanes of a rank with `workers` workers; `lanes` is the number that the user requests.
pub(crate) fn count(kind: LaneKind, lanes: Option<usize>, workers: usize) -> usize {
    let count = match kind {
        LaneKind::Blocking => workers,
        LaneKind::Virtual => 1,
        LaneKind::Reactor => lanes
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
            .min(workers),
    };
    count.max(1)
}

/// The workers of each lane, distributed round-robin.
pub(crate) fn assign(kind: LaneKind, lanes: Option<usize>, all: &[WorkerId]) -> Vec<Vec<WorkerId>> {
    let mut lanes = vec![Vec::new(); count(kind, lanes, all.len())];
    for (i, worker) in all.iter().enumerate() {
        let at = i % lanes.len();
        lanes[at].push(*worker);
    }
    lanes
}

/// The rows that a lane records: the rows of its workers' programs and of the target's procedures.
pub(crate) fn specs(shared: &RunState, workers: &[WorkerId]) -> Vec<RowSpec> {
    let paced = paced_rows(shared);
    let unused = RowSpec {
        unused: true,
        paced: false,
    };
    let mut specs = vec![unused; shared.rows.len()];
    for worker in workers {
        for row in &shared.programs[worker.group as usize].rows {
            specs[*row as usize] = RowSpec {
                unused: false,
                paced: paced.contains(row),
            };
            if let Some(local) = shared.rows[*row as usize].local_close {
                specs[local as usize].unused = false;
            }
        }
    }
    for (row, _) in procedures(&shared.plan) {
        specs[row as usize].unused = false;
    }
    specs
}

/// Rows whose operations may have an intended start: the rows of every paced program. Programs may share rows, and a
/// row has the response times of all its operations.
fn paced_rows(shared: &RunState) -> BTreeSet<u32> {
    let paced = shared.programs.iter().filter(|p| p.paced);
    paced.flat_map(|p| p.rows.iter().copied()).collect()
}

/// Rows and names of the target's own measurements: procedures that the target calls on a server, and the times until
/// completions are seen.
fn procedures(plan: &Plan) -> impl Iterator<Item = (u32, &str)> {
    let rows = (0..).zip(&plan.operations);
    rows.filter(|(_, o)| !o.kind.is_of_workload())
        .map(|(row, o)| (row, o.name.as_str()))
}

/// Recorder and rows of the procedures of a lane's sessions; `None` if the target has no procedures.
fn rpc_rows(plan: &Plan, recorder: &Rc<Recorder>) -> Option<RpcRows> {
    let rows = procedures(plan).map(|(row, name)| (name.to_owned(), row));
    let rows: Arc<[(String, u32)]> = rows.collect();
    (!rows.is_empty()).then(|| RpcRows {
        recorder: recorder.clone(),
        rows,
    })
}

/// A lane before its start: all data that its thread needs.
pub(crate) struct LanePlan {
    pub(crate) target: Arc<dyn RunTarget>,
    pub(crate) contents: ContentPools,
    pub(crate) kind: LaneKind,
    pub(crate) number: usize,
    pub(crate) workers: Vec<WorkerId>,
    pub(crate) recorder: Recorder,
    pub(crate) shared: Arc<RunState>,
    pub(crate) gate: Arc<StartGate>,
    pub(crate) bell: Arc<ControllerWakeup>,
}

impl LanePlan {
    /// Starts the lane's thread. The thread is not joined, because a thread that hangs in a system call does not end.
    pub(crate) fn spawn(self) -> std::io::Result<()> {
        let name = match self.workers.first() {
            Some(w) if self.kind == LaneKind::Blocking => worker_name(&self.shared.plan, *w),
            _ => format!("lane-{}", self.number + 1),
        };
        plimsoll_runtime::spawn(name, move || self.main())
    }

    fn main(self) {
        let (bell, shared, progress) = (
            self.bell.clone(),
            self.shared.clone(),
            self.recorder.progress(),
        );
        let gate = self.gate.clone();
        let mut passed = false;
        let work = std::panic::catch_unwind(AssertUnwindSafe(|| self.work(&mut passed)));
        if work.is_err() {
            // A worker panicked, a defect of Plimsoll: the run ends instead of waiting for the lane.
            let error = "internal error: a worker panicked; please report this".into();
            let now = shared.clock.now();
            shared.fail(Failure::of("run", error), now);
            if !passed {
                gate.pass();
            }
        }
        progress.mark_ended();
        bell.ring();
    }

    fn work(self, passed: &mut bool) {
        let shared = self.shared.clone();
        self.prepare_thread();
        let lane = Lane::new(self.kind, shared.clock.clone(), shared.deadline.clone());
        let recorder = Rc::new(self.recorder);
        let mut tasks = Vec::with_capacity(self.workers.len());
        let mut failure = None;
        let rpc = rpc_rows(&shared.plan, &recorder);
        let data_set = match self.kind {
            LaneKind::Virtual => shared.data_set(),
            LaneKind::Blocking | LaneKind::Reactor => DataSet::default(),
        };
        for id in &self.workers {
            let memory = shared.programs[id.group as usize].memory;
            let group = &shared.plan.groups[id.group as usize];
            let in_flight = recorder.worker();
            let spec = SessionSpec {
                buffer: memory,
                content: self
                    .contents
                    .of(shared.plan.content_of_group(group))
                    .clone(),
                clock: shared.clock.clone(),
                number: u64::from(id.index),
                process: shared.plan.process_of(id.group as usize, id.number),
                seed: shared.plan.seed,
                data_set,
                window: shared.window.clone(),
                in_flight: in_flight.clone(),
                rpc: rpc.clone(),
                silence: None,
                unmeasured: false,
            };
            let context = context(&lane, &recorder, in_flight, &shared, *id);
            match self.target.worker(&lane, &spec, context) {
                Ok(task) => tasks.push(task),
                Err(e) => failure = Some((*id, e)),
            }
        }
        if let Some((id, e)) = failure {
            shared.fail(no_session(&shared.plan, id, e), 0);
        }
        *passed = true;
        self.gate.pass();
        if let Err(deadlock) = lane.run(tasks) {
            let error = format!(
                "deadlock: all {} workers that are left wait for each other",
                deadlock.waiting
            );
            shared.fail(Failure::of("run", error), lane.now());
        }
        recorder.finish();
    }

    fn prepare_thread(&self) {
        os::set_exact_timers();
        let plan = &self.shared.plan;
        let cpus = &plan.options.cpus;
        if let Some(cpu) = cpus.get(self.number % cpus.len().max(1))
            && let Err(e) = os::pin(*cpu)
        {
            let text = format!("cannot bind to processor {cpu}: {}", OpError(e));
            self.shared.note(text);
        }
        if self.kind != LaneKind::Blocking {
            let asked = |g: &plimsoll_plan::WorkerGroup| g.nice != 0 || g.io_priority.is_some();
            for group in plan.groups.iter().filter(|g| asked(g)) {
                self.shared.note(format!(
                    "nice and ioprio of `{}` have no effect: its workers share a thread with others",
                    group.thread
                ));
            }
        }
        if let (LaneKind::Blocking, Some(worker)) = (self.kind, self.workers.first()) {
            let group = &plan.groups[worker.group as usize];
            let set = |what: &str, result: Result<(), rustix::io::Errno>| {
                if let Err(e) = result {
                    let text = format!("cannot set {what} of `{}`: {}", group.thread, OpError(e));
                    self.shared.note(text);
                }
            };
            if group.nice != 0 {
                set("nice", os::set_nice(group.nice));
            }
            if let Some(priority) = group.io_priority {
                set("ioprio", os::set_io_priority(priority));
            }
        }
        debug_assert!(
            plan.options.drop_caches != Cold::System || rustix::process::geteuid().is_root()
        );
    }
}

fn no_session(plan: &Plan, id: WorkerId, error: OpError) -> Failure {
    Failure {
        worker: Some(worker_name(plan, id)),
        ..Failure::of("run", format!("cannot begin: {error}"))
    }
}

fn context(
    lane: &Lane,
    recorder: &Rc<Recorder>,
    in_flight: Arc<InFlight>,
    shared: &Arc<RunState>,
    id: WorkerId,
) -> WorkerContext {
    let program = shared.programs[id.group as usize].clone();
    let stream = shared.plan.stream("worker").branch(u64::from(id.index));
    let variable = |(i, v): (usize, &plimsoll_plan::Variable)| {
        stream
            .named("variable")
            .branch(i as u64)
            .branch(v.seed.unwrap_or(0))
            .rng()
    };
    let semblocks = program.semblocks.iter();
    let semaphores = semblocks.map(|(row, _)| shared.semaphore_of(*row, id.index));
    WorkerContext {
        lane: lane.clone(),
        recorder: recorder.clone(),
        in_flight,
        id,
        rng: stream.named("positions").rng(),
        variable_rngs: shared
            .plan
            .variables
            .iter()
            .enumerate()
            .map(variable)
            .collect(),
        cursors: vec![FileCursors::default(); shared.filesets.len()].into(),
        recorded: 0,
        intended: None,
        budget: shared.initial_budget(),
        owes_budget: false,
        cap_usage: vec![CapUsage::default(); program.caps.len()].into(),
        events: WindowCounts::default(),
        event_backlog: None,
        seen: vec![0; program.blocks.len()].into(),
        semaphores: semaphores.collect(),
        rotation_at: 0,
        cpu: crate::worker::CpuSampling::new(
            lane,
            shared.rows.len(),
            shared.plan.cpu_accounting,
            stream.named("CPU samples").rng(),
        ),
        shared: shared.clone(),
        program,
    }
}
