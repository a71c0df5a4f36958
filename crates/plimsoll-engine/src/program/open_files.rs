//! Maximum number of descriptors that the open files of a program take, computed along the program.

use plimsoll_plan::{Op, Step, Value};

/// Slots of a worker at a place of a sequence, with one bit for each slot that a program can name.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct OpenSlots {
    /// Slots that may hold an open file.
    files: u128,
    /// Slots with an asynchronous write since their last close, for which `posix` duplicates the descriptor of the
    /// file.
    doubled: u128,
}

impl OpenSlots {
    fn descriptors(self) -> u32 {
        self.files.count_ones() + (self.files & self.doubled).count_ones()
    }

    /// Adds the slots of an alternative execution of the sequence.
    fn add(&mut self, other: Self) {
        self.files |= other.files;
        self.doubled |= other.doubled;
    }
}

/// Slots at a place of a sequence, and the maximum number of descriptors so far.
#[derive(Default)]
struct OpenFiles {
    open: OpenSlots,
    most: u32,
}

/// Maximum number of descriptors that a worker of the sequence holds open, in slots with numbers and by an operation;
/// the number excludes the slots of rotating opens. The number is exact for `posix` without io_uring if every step is
/// executed, and an upper bound otherwise.
pub(super) fn of_sequence(steps: &[Step]) -> u32 {
    let mut files = OpenFiles::default();
    files.repeat(steps);
    files.most
}

impl OpenFiles {
    /// Follows two repetitions of the steps, or one repetition if the first leaves the slots as they were. Every
    /// repetition opens and closes the same slots, so that all later repetitions begin with the slots of the second.
    fn repeat(&mut self, steps: &[Step]) {
        let begin = self.open;
        self.steps(steps);
        if self.open != begin {
            self.steps(steps);
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Do { iters, op, .. } => self.operation(*iters, op),
                Step::Block { iters, steps, .. } => {
                    let before = self.open;
                    match iters.constant() {
                        Some(1) => self.steps(steps),
                        _ => self.repeat(steps),
                    }
                    if !is_certain(*iters) {
                        self.open.add(before);
                    }
                }
            }
        }
    }

    fn operation(&mut self, iters: Value, op: &Op) {
        let properties = op.properties();
        if let Some(file) = properties.file.filter(|file| !file.open_next) {
            // An operation that names a fileset opens a closed slot, except those that work on a name.
            let opens = file.fileset.is_some() && !matches!(op, Op::Stat(_) | Op::Delete(_));
            self.open.files |= u128::from(opens) << file.slot;
            let doubles = matches!(op, Op::AioWrite { .. });
            self.open.doubled |= u128::from(doubles) << file.slot;
        }
        self.most = self
            .most
            .max(self.open.descriptors() + properties.descriptors);
        if let Op::Close { slot } = op
            && is_certain(iters)
        {
            let others = !(1u128 << slot);
            self.open.files &= others;
            self.open.doubled &= others;
        }
    }
}

/// Whether a step with this number of executions is executed at least once.
fn is_certain(iters: Value) -> bool {
    iters.constant().is_some_and(|n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{FileRef, FilesetId, Io, OperationId, VariableId};

    fn file(slot: u8) -> FileRef {
        FileRef {
            fileset: Some(FilesetId(0)),
            ..FileRef::in_slot(slot)
        }
    }

    fn times(iters: Value, op: Op) -> Step {
        Step::Do {
            row: OperationId(0),
            iters,
            op,
        }
    }

    fn open(slot: u8) -> Step {
        times(1.into(), Op::Open(file(slot)))
    }

    fn close(slot: u8) -> Step {
        times(1.into(), Op::Close { slot })
    }

    fn block(iters: Value, steps: Vec<Step>) -> Step {
        Step::Block {
            name: "block".into(),
            iters,
            steps,
        }
    }

    const DRAWN: Value = Value::Draw(VariableId(0));

    #[test]
    fn files_are_open_from_open_to_close() {
        assert_eq!(of_sequence(&[]), 0);
        assert_eq!(of_sequence(&[open(33), close(33)]), 1);
        let one_by_one: Vec<Step> = (1..34).flat_map(|slot| [open(slot), close(slot)]).collect();
        assert_eq!(of_sequence(&one_by_one), 1);
        let two = [open(1), open(33), close(1), open(2), close(2), close(33)];
        assert_eq!(of_sequence(&two), 2);
    }

    #[test]
    fn a_file_that_a_repetition_leaves_open_is_open_in_the_next() {
        // The first repetition has one open file at a time, the second has the file in slot 2 from the first.
        assert_eq!(of_sequence(&[open(1), close(1), open(2)]), 2);
        assert_eq!(of_sequence(&[close(2), open(1), close(1), open(2)]), 1);
        let inner = block(
            3.into(),
            vec![close(3), open(1), open(2), close(1), open(3)],
        );
        // The files in slots 1 to 3 are never open together, because each repetition begins with the close of 3; the
        // file in slot 2 stays open.
        assert_eq!(of_sequence(&[inner]), 2);
        // The first repetition closes the file in slot 1, before the second has the files in slots 2 and 3.
        let inner = block(3.into(), vec![open(2), close(1), open(3)]);
        assert_eq!(of_sequence(&[open(1), inner, close(2), close(3)]), 2);
    }

    #[test]
    fn a_block_that_is_executed_once_is_not_repeated() {
        let of = |iters: Value| {
            let inner = block(iters, vec![open(1), close(1), open(2)]);
            of_sequence(&[inner, close(2)])
        };
        assert_eq!(of(1.into()), 1);
        assert_eq!(of(2.into()), 2);
        assert_eq!(of(DRAWN), 2);
    }

    #[test]
    fn asynchronous_writes_take_a_second_descriptor_until_the_close() {
        let write = |slot| {
            let io = Io {
                file: FileRef::in_slot(slot),
                size: 4096.into(),
                random: true,
                working_set: 0,
            };
            let completion = OperationId(1);
            times(1.into(), Op::AioWrite { io, completion })
        };
        assert_eq!(of_sequence(&[open(1), write(1), close(1)]), 2);
        let one_by_one = [open(1), write(1), close(1), open(2), write(2), close(2)];
        assert_eq!(of_sequence(&one_by_one), 2);
        let two = [open(1), open(2), write(2), close(1), close(2)];
        assert_eq!(of_sequence(&two), 3);
        assert_eq!(of_sequence(&[open(1), write(1)]), 2);
    }

    #[test]
    fn what_may_not_be_executed_closes_nothing() {
        for iters in [DRAWN, 0.into()] {
            let drawn_close = times(iters, Op::Close { slot: 1 });
            assert_eq!(of_sequence(&[open(1), drawn_close, open(2), close(2)]), 2);
            let drawn_block = block(iters, vec![close(1)]);
            assert_eq!(of_sequence(&[open(1), drawn_block, open(2), close(2)]), 2);
        }
        let certain = block(2.into(), vec![close(1)]);
        assert_eq!(of_sequence(&[open(1), certain, open(2), close(2)]), 1);
    }

    #[test]
    fn operations_open_files_implicitly_and_for_themselves() {
        let flush = |file| times(1.into(), Op::Fsync(file));
        assert_eq!(of_sequence(&[flush(file(1))]), 1);
        assert_eq!(of_sequence(&[flush(FileRef::in_slot(1))]), 0);
        let (fileset, index) = (FilesetId(0), None);
        let list = || times(1.into(), Op::ListDir { fileset, index });
        assert_eq!(of_sequence(&[list()]), 1);
        assert_eq!(
            of_sequence(&[open(1), list(), close(1), open(2), close(2)]),
            2
        );
        assert_eq!(of_sequence(&[times(1.into(), Op::Stat(file(7)))]), 0);
    }
}
