//! Stages on whole objects where the target answers at once: the same operations as in
//! `objects`, as plain calls that are inlined into one loop, because a function that returns after
//! a system call inside it costs a part of that call (see `Session::is_immediate`).

use super::super::WorkerExit;
use super::Rank;
use super::objects::{OBJECT_TOO_SHORT, Step};
use plimsoll_plan::{ObjectOp, Rounds};
use plimsoll_target::{OpError, OpenHow, OpenMode, Session};
use std::ops::Range;

impl<S: Session> Rank<'_, S> {
    /// Whether the stage can go this way: nothing in it waits.
    pub(super) fn is_immediate_stage(&self) -> bool {
        self.session.is_immediate() && self.stage.waiting_factor <= 0.0
    }

    /// A round in all sets.
    #[inline(never)]
    pub(super) fn round_now(
        &mut self,
        rounds: Rounds,
        steps: &[Step<'_>],
        number: u64,
        round: u64,
    ) -> Result<(), WorkerExit> {
        for set in 0..self.pattern.sets {
            self.steps_now(rounds, steps, set, number, round)?;
        }
        Ok(())
    }

    /// All rounds of a set.
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

    #[inline(always)]
    fn steps_now(
        &mut self,
        rounds: Rounds,
        steps: &[Step<'_>],
        set: u32,
        number: u64,
        round: u64,
    ) -> Result<(), WorkerExit> {
        for Step { step, owners } in steps {
            let owner = owners[set as usize];
            if rounds == Rounds::Made && round >= self.run.states.made[owner as usize] {
                continue;
            }
            let (row, number) = (step.row.0, number + step.offset);
            self.locate(owner, set, number);
            let size = self.pattern.object_size;
            let went = match step.op {
                ObjectOp::Stat => {
                    let begun = self.begin(row);
                    let result = self.session.stat_now().map(|_| ());
                    self.finish(row, &begun, 0, result)?
                }
                ObjectOp::Read => {
                    let begun = self.begin(row);
                    let result = self.read_now();
                    let went = self.finish(row, &begun, size, result)?;
                    if went && self.pattern.verify {
                        self.verify(row, owner, set, number)?;
                    }
                    went
                }
                ObjectOp::Delete => {
                    self.check_parent_now(row)?;
                    let begun = self.begin(row);
                    let result = self.session.unlink_now();
                    self.finish(row, &begun, 0, result)?
                }
                ObjectOp::Create { sync } => {
                    self.check_parent_now(row)?;
                    self.contents.fill(self.pattern, owner, set, number);
                    let begun = self.begin(row);
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
            Err(e) => Err(self.replaced(row, e)),
        }
    }

    #[inline(always)]
    fn create_now(&mut self, sync: bool) -> Result<(), OpError> {
        let how = OpenHow {
            create: true,
            truncate: true,
            direct: self.pattern.direct,
            planned_size: self.pattern.object_size,
            ..OpenHow::plain(OpenMode::Write)
        };
        let handle = self.session.open_now(how)?;
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
        let how = OpenHow {
            direct: self.pattern.direct,
            planned_size: self.pattern.object_size,
            ..OpenHow::plain(OpenMode::Read)
        };
        let handle = self.session.open_now(how)?;
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
