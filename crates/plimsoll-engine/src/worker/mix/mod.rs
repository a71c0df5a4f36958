//! Workers that draw their operations from a table and keep to a schedule.

mod choice;
mod data;
mod handles;
mod owned_names;
mod pacer;
mod transfer_placement;
mod turnover;

use super::context::ExitReason;
use super::{Worker, WorkerExit};
use crate::program::{EXTRA_DESCRIPTORS, MixFileSizes, MixProgram};
use choice::{FileChooser, Hotspot};
use handles::Handles;
use owned_names::OwnedNames;
use pacer::Pacer;
use plimsoll_measure::{Nanos, ProcessCounts, WindowBounds};
use plimsoll_plan::{FileId, MixOp, Rng};
use plimsoll_target::{OpError, Session};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Where a worker's sequential transfers go on.
#[derive(Clone, Copy, Default)]
struct Position {
    /// File of the working set, once there is one.
    member: Option<u64>,
    offset: u64,
}

/// What a worker of a mix keeps between its operations.
struct MixState {
    program: Arc<MixProgram>,
    sizes: Arc<MixFileSizes>,
    rng: Rng,
    pacer: Option<Pacer>,
    /// Row of the starts, if they are paced.
    start_row: u32,
    chooser: FileChooser,
    spot: Option<Hotspot>,
    reading: Position,
    writing: Position,
    handles: Handles,
    turnover: OwnedNames,
    empty: OwnedNames,
    dirs: OwnedNames,
    figures: ProcessCounts,
    /// Window that the figures are of.
    window: u32,
}

impl<S: Session> Worker<S> {
    /// Runs a mix until the run ends.
    pub(super) async fn run_mix(&mut self, program: Arc<MixProgram>) -> WorkerExit {
        let mut state = self.begin_mix(program);
        let halt = loop {
            if self.context.recorded == 0 && self.context.lane.now() >= self.context.lane.deadline()
            {
                // The run was over before it began.
                break WorkerExit::new(ExitReason::Stopped);
            }
            self.context.lane.yield_if_exhausted().await;
            if let Err(halt) = self.mix_turn(&mut state).await {
                break halt;
            }
        };
        // A worker that was told to end earlier owes nothing more; one whose last operation came back
        // too late does.
        let is_over = match *halt.0 {
            ExitReason::Stopped => true,
            ExitReason::NotDone => self.context.lane.now() >= self.context.lane.deadline(),
            _ => false,
        };
        if is_over {
            state.end(self.context.shared.window.bounds());
        }
        self.context.shared.note_process(state.figures);
        halt
    }

    fn begin_mix(&self, program: Arc<MixProgram>) -> MixState {
        let core = &self.context;
        let shared = &core.shared;
        let mut rng = shared
            .plan
            .stream("mix")
            .branch(u64::from(core.index))
            .rng();
        let mix = &program.mix;
        let number = u64::from(core.number);
        let data = &shared.filesets[mix.files.data.0 as usize];
        let members = mix.working_set.size(u64::from(data.layout.files()));
        let chooser = FileChooser::new(
            mix.files.data_of(number, program.workers, members),
            mix.working_set.choice,
        );
        let files = |set: Option<plimsoll_plan::FilesetId>| match set {
            Some(id) => {
                let layout = &shared.filesets[id.0 as usize].layout;
                let part = mix.files.part(number, u64::from(layout.files()));
                OwnedNames::new(part, |n| layout.starts_with(FileId(n)))
            }
            None => OwnedNames::new(0..0, |_| false),
        };
        let spare = mix.files.part(number, u64::from(data.layout.leaf_dirs()));
        let started = shared.started.load(Relaxed);
        MixState {
            sizes: shared.sizes_of(core.group).unwrap_or_default(),
            pacer: mix
                .pacing
                .map(|p| Pacer::new(p.rate, p.arrivals, started, &mut rng)),
            start_row: mix.pacing.map_or(0, |p| p.start.0),
            spot: mix
                .working_set
                .spots
                .map(|how| Hotspot::new(how, &chooser, &mut rng)),
            chooser,
            reading: Position::default(),
            writing: Position::default(),
            handles: Handles::new(self.slots.len() - EXTRA_DESCRIPTORS as usize),
            turnover: files(mix.files.turnover),
            empty: files(mix.files.empty),
            dirs: OwnedNames::new(spare, |n| data.layout.starts_with_leaf_dir(n)),
            figures: ProcessCounts {
                group: core.group,
                number: core.number,
                ..ProcessCounts::default()
            },
            window: 0,
            rng,
            program,
        }
    }

    /// Waits until the next operation is due, and does it.
    async fn mix_turn(&mut self, state: &mut MixState) -> Result<(), WorkerExit> {
        if let Some(due) = self.await_due(state).await? {
            self.context.intended = Some(due);
        }
        let (op, row) = state.program.draw(&mut state.rng);
        if self.mix_op(op, row, state).await? {
            let window = self.context.shared.window.bounds();
            state.enter(window);
            state.done(self.context.lane.now(), window);
        }
        let delay = state.program.delay;
        if delay > 0 {
            let lane = &self.context.lane;
            lane.sleep_until(lane.now().saturating_add(delay)).await?;
        }
        Ok(())
    }

    /// Waits for the schedule; returns when the operation was due.
    async fn await_due(&mut self, state: &mut MixState) -> Result<Option<Nanos>, WorkerExit> {
        let Some(mut pacer) = state.pacer.take() else {
            return Ok(None);
        };
        let now = self.context.lane.now();
        let window = self.context.shared.window.bounds();
        state.enter(window);
        let MixState { rng, figures, .. } = state;
        pacer.catch_up(now, rng, |due| {
            if window.contains(due) {
                figures.scheduled += 1;
                figures.dropped += 1;
            }
        });
        let due = pacer.due();
        pacer.advance(&mut state.rng);
        state.pacer = Some(pacer);
        if due > now {
            self.context.lane.sleep_until(due).await?;
            // The worker had nothing else to do: that it starts late is the client's doing.
            let begun = self.context.lane.now();
            self.context
                .recorder
                .record(state.start_row, due, begun, None, 0);
        }
        state.due(due, self.context.shared.window.bounds());
        Ok(Some(due))
    }

    /// Does one operation; `false` if it failed and failures are only counted. A future of its own on the heap, made before the operation is timed:
    /// one that holds all of them would be as large as the largest for every worker.
    fn mix_op<'a>(
        &'a mut self,
        op: MixOp,
        row: u32,
        state: &'a mut MixState,
    ) -> Pin<Box<dyn Future<Output = Result<bool, WorkerExit>> + 'a>> {
        match op {
            MixOp::Read => Box::pin(self.mix_read(row, state)),
            MixOp::Write => Box::pin(self.mix_write(row, state)),
            MixOp::ReadRand
            | MixOp::WriteRand
            | MixOp::Rmw
            | MixOp::MmapRead
            | MixOp::MmapWrite
            | MixOp::Lock => Box::pin(self.mix_random(op, row, state)),
            MixOp::ReadFile => Box::pin(self.mix_read_file(row, state)),
            MixOp::Append => Box::pin(self.mix_append(row, state)),
            MixOp::Truncate => Box::pin(self.mix_truncate(row, state)),
            MixOp::Fsync => Box::pin(self.mix_fsync(row, state)),
            MixOp::WriteFile | MixOp::Copyfile => Box::pin(self.mix_make_file(op, row, state)),
            MixOp::Unlink | MixOp::Unlink2 => Box::pin(self.mix_unlink(op, row, state)),
            MixOp::Create => Box::pin(self.mix_create(row, state)),
            MixOp::Rename => Box::pin(self.mix_rename(row, state)),
            MixOp::Mkdir | MixOp::Rmdir => Box::pin(self.mix_directory(op, row, state)),
            MixOp::Stat
            | MixOp::NegStat
            | MixOp::Access
            | MixOp::Chmod
            | MixOp::Lookup
            | MixOp::Readlink
            | MixOp::Readdir
            | MixOp::Readdirplus
            | MixOp::Statfs
            | MixOp::Pathconf => Box::pin(self.mix_name(op, row, state)),
        }
    }
}

/// Ends an operation of many calls between two of them when the run is over: it may have minutes
/// to go.
fn cut_short(lane: &plimsoll_lane::Lane, done: u64) -> Result<(), OpError> {
    if done > 0 && lane.now() >= lane.deadline() {
        return Err(OpError(rustix::io::Errno::CANCELED));
    }
    Ok(())
}

impl MixState {
    /// Figures are those of the latest window.
    fn enter(&mut self, window: WindowBounds) {
        if window.number != self.window {
            self.window = window.number;
            self.figures = ProcessCounts {
                group: self.figures.group,
                number: self.figures.number,
                ..ProcessCounts::default()
            };
        }
    }

    /// An operation of the schedule is begun.
    fn due(&mut self, due: Nanos, window: WindowBounds) {
        if window.contains(due) {
            self.figures.scheduled += 1;
        }
    }

    /// An operation has completed.
    fn done(&mut self, now: Nanos, window: WindowBounds) {
        if window.contains(now) {
            self.figures.completed += 1;
        }
    }

    /// The run is over: what was still due in the window was not done.
    fn end(&mut self, window: WindowBounds) {
        self.enter(window);
        if let (Some(pacer), true) = (&self.pacer, window.number > 0) {
            self.figures.scheduled += pacer.left_until(window.end);
        }
    }
}
