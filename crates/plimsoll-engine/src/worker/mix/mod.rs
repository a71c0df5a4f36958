//! Workers that draw their operations from a table and follow a schedule.

mod choice;
mod data;
mod owned_names;
mod transfer_placement;
mod turnover;

use super::context::ExitReason;
use super::handles::Handles;
use super::schedule::Schedule;
use super::{Worker, WorkerExit};
use crate::program::{MixFileSizes, MixProgram};
use choice::{FileChooser, Hotspot};
use owned_names::OwnedNames;
use plimsoll_plan::{MixOp, Rng};
use plimsoll_target::Session;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The position at which sequential transfers of a worker continue.
#[derive(Clone, Copy, Default)]
struct Position {
    /// Number of the file in the working set; `None` before the first transfer.
    member: Option<u64>,
    offset: u64,
}

/// The state of a worker of a mix between its operations. The states of thousands of workers do not fit the processor's
/// caches, so parts that not every operation or mix needs are in boxes.
struct MixState {
    program: Arc<MixProgram>,
    sizes: Arc<MixFileSizes>,
    rng: Rng,
    chooser: FileChooser,
    spot: Option<Box<Hotspot>>,
    reading: Position,
    writing: Position,
    handles: Handles,
    /// Names that this worker creates and removes, by [`owned_names::NameKind`].
    names: Box<[OwnedNames; 3]>,
    schedule: Schedule,
}

const _: () = assert!(size_of::<MixState>() <= 288);

impl<S: Session> Worker<S> {
    /// Runs a mix until the run ends.
    pub(super) async fn run_mix(&mut self, program: Arc<MixProgram>) -> WorkerExit {
        let mut state = self.begin_mix(program);
        let exit = loop {
            if self.context.recorded == 0 && self.context.lane.now() >= self.context.lane.deadline()
            {
                // The run was over before the worker began.
                break WorkerExit::new(ExitReason::Stopped);
            }
            self.context.lane.yield_if_exhausted().await;
            if let Err(exit) = self.mix_turn(&mut state).await {
                break exit;
            }
        };
        state.schedule.end(&self.context, &exit);
        exit
    }

    fn begin_mix(&self, program: Arc<MixProgram>) -> MixState {
        let core = &self.context;
        let shared = &core.shared;
        let mut rng = shared
            .plan
            .stream("mix")
            .branch(u64::from(core.id.index))
            .rng();
        let mix = &program.mix;
        let number = u64::from(core.id.number);
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
                OwnedNames::new(part, |at| layout.initial_files(at))
            }
            None => OwnedNames::new(0..0, |_| 0),
        };
        let spare = mix.files.part(number, u64::from(data.layout.leaf_dirs()));
        MixState {
            sizes: shared.sizes_of(core.id.group),
            schedule: Schedule::new(mix.pacing, shared.started.load(Relaxed), &mut rng),
            spot: mix
                .working_set
                .spots
                .map(|how| Box::new(Hotspot::new(how, &chooser, &mut rng))),
            chooser,
            reading: Position::default(),
            writing: Position::default(),
            handles: Handles::new(self.slots.len()),
            names: Box::new([
                files(mix.files.turnover),
                files(mix.files.empty),
                OwnedNames::new(spare, |at| data.layout.initial_leaf_dirs(at)),
            ]),
            rng,
            program,
        }
    }

    /// Waits for the scheduled time of the next operation, executes the operation, and waits for the delay of the mix.
    async fn mix_turn(&mut self, state: &mut MixState) -> Result<(), WorkerExit> {
        let MixState { schedule, rng, .. } = state;
        schedule.await_due(&mut self.context, rng).await?;
        let (op, row) = state.program.draw(&mut state.rng);
        let done = self.mix_op(op, row, state).await;
        self.check_reads(row);
        if done? {
            state.schedule.note_completed(&self.context);
        }
        let delay = state.program.delay;
        if delay > 0 {
            let lane = &self.context.lane;
            lane.sleep_until(lane.now().saturating_add(delay)).await?;
        }
        Ok(())
    }

    /// Executes one operation; `false` if the operation failed and failures are counted. Each operation is a separate
    /// future on the heap, created before the operation is timed: a common future of all operations would be as large
    /// as the largest of the futures for every worker.
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
