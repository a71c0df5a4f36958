//! A group's program, flattened into a list that a worker executes without recursion.

mod mix;
mod mix_sizes;
mod open_files;

pub(crate) use mix::MixProgram;
pub(crate) use mix_sizes::MixFileSizes;

use plimsoll_plan::{
    FilesetId, Job, LimitKind, Op, OpKind, OperationId, Plan, Program, Step, Value, WorkerGroup,
};

use std::sync::Arc;

/// Maximum number of descriptor slots for the rotating opens of a fileset.
const ROTATING_SLOTS: u32 = 128;

/// An instruction of a flat program, in which composites are jumps.
pub(crate) enum Instr {
    /// Executes an operation `iters` times.
    Op {
        row: u32,
        iters: Value,
        op: Op,
        /// Index into the worker's semaphores, blocks or caps, by the kind of operation.
        state: u32,
    },
    /// Begin of a composite, which runs `iters` times and ends before instruction `exit`.
    LoopBegin { iters: Value, exit: u32 },
    /// End of a composite.
    LoopEnd,
}

/// The descriptor slots, `first` to `first + count - 1`, of the rotating opens of a fileset.
#[derive(Clone, Copy)]
pub(crate) struct Rotation {
    pub(crate) fileset: FilesetId,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// A cap: a limiter that charges a worker for completed operations.
pub(crate) struct Cap {
    /// Rows that the cap charges; `None` for all rows that count.
    pub(crate) rows: Option<Vec<u32>>,
}

/// A group's program, shared by its workers.
pub(crate) struct Compiled {
    pub(crate) code: Vec<Instr>,
    pub(crate) slots: u32,
    /// Maximum number of descriptors that a worker holds open, in slots and by one operation.
    pub(crate) descriptors: u32,
    pub(crate) rotations: Vec<Rotation>,
    /// Row and high water of each semblock.
    pub(crate) semblocks: Vec<(u32, Value)>,
    /// Row of each block.
    pub(crate) blocks: Vec<u32>,
    pub(crate) caps: Vec<Cap>,
    /// Maximum nesting of composites.
    pub(crate) nesting: usize,
    /// Size of a worker's buffer in bytes.
    pub(crate) memory: u64,
    /// The rows that the program may record.
    pub(crate) rows: Vec<u32>,
    /// Whether the program's operations have intended starts, from a schedule.
    pub(crate) paced: bool,
    /// The mix, if the program is a mix; a mix has no code.
    pub(crate) mix: Option<Arc<MixProgram>>,
    /// The job, if the program is a job; a job has no code.
    pub(crate) job: Option<Arc<Job>>,
}

impl Compiled {
    pub(crate) fn new(plan: &Plan, group: &WorkerGroup) -> Self {
        let mut compiled = Self {
            code: Vec::new(),
            slots: 1,
            descriptors: 0,
            rotations: Vec::new(),
            semblocks: Vec::new(),
            blocks: Vec::new(),
            caps: Vec::new(),
            nesting: 0,
            memory: group.memory,
            rows: Vec::new(),
            paced: group.follows_schedule(plan.event_rate),
            mix: None,
            job: None,
        };
        match &group.program {
            Program::Sequence(steps) => {
                compiled.steps(steps, 0);
                compiled.descriptors = open_files::of_sequence(steps);
            }
            Program::Mix(mix) => {
                let program = MixProgram::new(mix, group);
                compiled.rows.extend(mix.rows().map(|r| r.0));
                let files = plan.fileset(mix.files.data).entries;
                compiled.slots = program.slots(files);
                compiled.descriptors = program.descriptors(files);
                compiled.mix = Some(Arc::new(program));
            }
            Program::Job(job) => {
                job.for_each_row(&mut |row| compiled.rows.push(row.0));
                compiled.slots = job.open_files.min(job.files);
                // Mapped reads copy to a file in memory, which the worker keeps open. A mapped write may open another
                // file in memory, from which the write copies.
                let mapped = job.transfers().filter(|t| t.access.mapped);
                let in_memory = mapped.map_or(0, |t| {
                    u32::from(t.reads.is_some()) + u32::from(t.writes.is_some())
                });
                compiled.descriptors = compiled.slots + in_memory;
                compiled.job = Some(Arc::new((**job).clone()));
            }
            // Ranks of a pattern generate their steps.
            Program::Pattern(pattern) => {
                pattern.for_each_row(&mut |row| compiled.rows.push(row.0));
                // A rank has one object open at a time.
                compiled.descriptors = 1;
            }
        }
        compiled.assign_slots(plan);
        compiled.rows.sort_unstable();
        compiled.rows.dedup();
        compiled
    }

    /// Whether the workers take events if there is an event rate.
    pub(crate) fn takes_events(&self) -> bool {
        self.follows_events() || !self.caps.is_empty()
    }

    /// Whether the workers follow the event schedule.
    pub(crate) fn follows_events(&self) -> bool {
        self.paced && self.mix.is_none() && self.job.is_none()
    }

    fn steps(&mut self, steps: &[Step], depth: usize) {
        self.nesting = self.nesting.max(depth);
        for step in steps {
            match step {
                Step::Do { row, iters, op } => self.operation(row.0, *iters, op),
                Step::Block { iters, steps, .. } => {
                    let enter = self.code.len();
                    self.code.push(Instr::LoopEnd);
                    self.steps(steps, depth + 1);
                    self.code.push(Instr::LoopEnd);
                    let exit = self.code.len() as u32;
                    self.code[enter] = Instr::LoopBegin {
                        iters: *iters,
                        exit,
                    };
                }
            }
        }
    }

    fn operation(&mut self, row: u32, iters: Value, op: &Op) {
        self.rows.push(row);
        if let Some(open) = op.file().and_then(|f| f.implicit_open) {
            self.rows.push(open.0);
        }
        if let Op::AioWrite { completion, .. } = op {
            self.rows.push(completion.0);
        }
        let state = match op {
            // Semblocks of the same name share one entry, and so do blocks, because posts and wakeups refer to the
            // name.
            Op::SemBlock { high_water, .. } => {
                let known = self.semblocks.iter().position(|(r, _)| *r == row);
                known.unwrap_or_else(|| push(&mut self.semblocks, (row, *high_water)))
            }
            Op::Block => {
                let known = self.blocks.iter().position(|r| *r == row);
                known.unwrap_or_else(|| push(&mut self.blocks, row))
            }
            Op::Limit { kind, targets } if *kind != LimitKind::Calls => {
                let rows = targets.as_ref().map(|t| t.iter().map(|r| r.0).collect());
                push(&mut self.caps, Cap { rows })
            }
            _ => 0,
        };
        self.code.push(Instr::Op {
            row,
            iters,
            op: op.clone(),
            state: state as u32,
        });
    }

    /// Assigns the slots that the program names by number, and after these slots the slots of rotating opens.
    fn assign_slots(&mut self, plan: &Plan) {
        let mut rotating = Vec::new();
        for instr in &self.code {
            let Instr::Op { op, .. } = instr else {
                continue;
            };
            let properties = op.properties();
            let slots = properties.slot.into_iter();
            let slots = slots.chain(properties.file.map(|f| f.slot));
            self.slots = slots.map(|s| u32::from(s) + 1).fold(self.slots, u32::max);
            if let Some(file) = properties.file.filter(|f| f.open_next)
                && let Some(fileset) = file.fileset
                && !rotating.contains(&fileset)
            {
                rotating.push(fileset);
            }
        }
        for fileset in rotating {
            let entries = plan.fileset(fileset).entries;
            let count = entries.clamp(1, u64::from(ROTATING_SLOTS)) as u32;
            self.rotations.push(Rotation {
                fileset,
                first: self.slots,
                count,
            });
            self.slots += count;
            // The files of a rotation stay open.
            self.descriptors += count;
        }
    }
}

/// Appends an item to a list; returns the index of the item.
fn push<T>(list: &mut Vec<T>, item: T) -> usize {
    list.push(item);
    list.len() - 1
}

/// Properties of a row of the results that workers read while they record operations.
#[derive(Clone, Copy)]
pub(crate) struct RowInfo {
    /// Whether the summary counts the operations of the row.
    pub(crate) counts: bool,
    /// Whether the operation of the row moves data.
    pub(crate) moves: bool,
    /// Row of local closes, for a row of closes on a target with a server.
    pub(crate) local_close: Option<u32>,
}

impl RowInfo {
    pub(crate) fn of(kind: OpKind, local_close: Option<OperationId>) -> Self {
        Self {
            local_close: local_close.map(|row| row.0),
            counts: kind.counts(),
            moves: kind.reads() || kind.writes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{FileRef, Fileset, OperationId};

    #[test]
    fn slots_are_those_that_operations_name_and_those_of_rotations() {
        let mut plan = Plan::empty("descriptors");
        plan.filesets = vec![Fileset::new("set", 10, 0.into())];
        let of = |ops: &[Op]| {
            let step = |op: &Op| Step::Do {
                row: OperationId(0),
                iters: 1.into(),
                op: op.clone(),
            };
            let program = Program::Sequence(ops.iter().map(step).collect());
            let group = WorkerGroup::new("process", 1, "thread", program);
            let compiled = Compiled::new(&plan, &group);
            (compiled.slots, compiled.descriptors)
        };
        let in_slot = |slot| Op::Fsync(FileRef::in_slot(slot));
        assert_eq!(of(&[in_slot(0)]), (1, 0));
        assert_eq!(of(&[in_slot(3), in_slot(1)]), (4, 0));
        // Of the slots 0 to 3, only slot 2 has a file; the ten files of the rotation stay open.
        let rotating = Op::Open(FileRef {
            fileset: Some(FilesetId(0)),
            open_next: true,
            ..FileRef::in_slot(1)
        });
        let open = Op::Open(FileRef {
            fileset: Some(FilesetId(0)),
            ..FileRef::in_slot(2)
        });
        assert_eq!(of(&[open, in_slot(3), rotating]), (14, 11));
    }
}
