//! Stages on whole objects of a target that completes at once: the operations of `objects` as plain
//! calls, inlined into one loop (see `Session::is_immediate`).

use super::Rank;
use super::objects::{OBJECT_TOO_SHORT, Step};
use crate::worker::WorkerExit;
use crate::worker::context::replaced;
use plimsoll_plan::{ObjectOp, Rounds, StageWork};
use plimsoll_target::{OpError, Session};
use std::ops::Range;

impl<S: Session> Rank<'_, S> {
    /// Whether all operations of the stage work on files, and none of the operations waits.
    pub(super) fn is_immediate_stage(&self) -> bool {
        let on_files = match &self.stage.work {
            StageWork::Objects(work) => work.steps.iter().all(|s| !s.op.is_on_directory()),
            StageWork::Transfers(_) | StageWork::Search(_) => true,
        };
        self.session.is_immediate() && self.stage.waiting_factor <= 0.0 && on_files
    }

    /// Executes a round in all sets.
    #[inline(never)]
    pub(super) fn round_now(
        &mut self,
        rounds: Rounds,
        steps: &[Step<'_>],
        number: u64,
        round: u64,
    ) -> Result<(), WorkerExit> {
        for set in self.pattern.sets_with_objects() {
            self.steps_now(rounds, steps, set, number, round)?;
        }
        Ok(())
    }

    /// Executes all rounds of a set.
    #[inline(never)]
    pub(super) fn set_now(
        &mut self,
        rounds: Rounds,
        steps: &[Step<'_>],
        set: u32,
        numbers: Range<u64>,
    ) -> Result<(), WorkerExit> {
        let first = numbers.start;
        for number in numbers {
            self.steps_now(rounds, steps, set, number, number - first)?;
        }
        Ok(())
    }

    /// Executes the steps of one round in one set, as `steps` does.
    #[inline(always)]
    pub(super) fn steps_now(
        &mut self,
        rounds: Rounds,
        steps: &[Step<'_>],
        set: u32,
        number: u64,
        round: u64,
    ) -> Result<(), WorkerExit> {
        for Step { step, owners } in steps {
            let owner = owners[set as usize];
            if self.is_missing(rounds, owner, round) {
                continue;
            }
            let (row, number) = (step.row.0, number + step.offset);
            self.locate(step.op, owner, set, number);
            let (size, read) = (self.pattern.object_size, self.contents.found.len() as u64);
            let went = match step.op {
                ObjectOp::MakeDir
                | ObjectOp::StatDir
                | ObjectOp::RenameDir
                | ObjectOp::RemoveDir => unreachable!("an operation on directories"),
                ObjectOp::Stat => {
                    let begun = self.context.start(row);
                    let result = self.session.stat_now().map(|_| ());
                    self.finish(row, &begun, 0, result)?
                }
                ObjectOp::Read => {
                    let begun = self.context.start(row);
                    let result = self.read_now();
                    let went = self.finish(row, &begun, read, result)?;
                    if went && self.pattern.verify {
                        self.verify(row, owner, set, number)?;
                    }
                    went
                }
                ObjectOp::Delete => {
                    self.check_parent_now(row)?;
                    let begun = self.context.start(row);
                    let result = self.session.unlink_now();
                    self.finish(row, &begun, 0, result)?
                }
                ObjectOp::Create { sync } => {
                    self.check_parent_now(row)?;
                    self.contents.fill(self.pattern, owner, set, number);
                    let begun = self.context.start(row);
                    let result = self.create_now(sync);
                    self.finish(row, &begun, size, result)?
                }
            };
            if !went && step.gates {
                break;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn check_parent_now(&mut self, row: u32) -> Result<(), WorkerExit> {
        match self.session.check_parent_now() {
            Ok(()) => Ok(()),
            Err(e) => Err(self.exit(row, replaced(e))),
        }
    }

    #[inline(always)]
    fn create_now(&mut self, sync: bool) -> Result<(), OpError> {
        let handle = self.session.open_now(self.how_to_open(true))?;
        let bytes = &self.contents.to_write;
        let mut done = Ok(());
        if !bytes.is_empty() {
            done = self.session.write_bytes_now(&handle, 0, bytes);
        }
        if sync && done.is_ok() {
            done = self.session.fsync_now(&handle);
        }
        let closed = self.session.close_now(handle);
        done.and(closed)
    }

    #[inline(always)]
    fn read_now(&mut self) -> Result<(), OpError> {
        let handle = self.session.open_now(self.how_to_open(false))?;
        let bytes = &mut self.contents.found;
        let mut done = Ok(());
        let mut at = 0;
        while at < bytes.len() && done.is_ok() {
            match self
                .session
                .read_bytes_now(&handle, at as u64, &mut bytes[at..])
            {
                Ok(0) => done = Err(OBJECT_TOO_SHORT),
                Ok(n) => at += n as usize,
                Err(e) => done = Err(e),
            }
        }
        let closed = self.session.close_now(handle);
        done.and(closed)
    }
}
