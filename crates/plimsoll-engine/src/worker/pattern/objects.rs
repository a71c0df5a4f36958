//! Stages that work on whole objects.

use super::{Located, Rank};
use crate::permutation::Permutation;
use crate::worker::WorkerExit;
use crate::worker::context::path_in;
use plimsoll_plan::{
    ObjectLoop, ObjectOp, ObjectOrder, ObjectStep, OperationId, Rounds, Stream, pattern_names,
};
use plimsoll_target::{OpError, Session};
use rustix::io::Errno;

/// Error of a read that ended before the planned size of the object.
pub(super) const OBJECT_TOO_SHORT: OpError = OpError(Errno::NODATA);

/// Error of a read that returned other contents than were written.
const OBJECT_CORRUPT: OpError = crate::worker::WRONG_CONTENTS;

/// A step, and for each set the owner whose objects the step uses.
pub(super) struct Step<'a> {
    pub(super) step: &'a ObjectStep,
    pub(super) owners: Vec<u32>,
}

impl<S: Session> Rank<'_, S> {
    pub(super) async fn objects(&mut self, work: &ObjectLoop) -> Result<(), WorkerExit> {
        let (rank, ranks, sets) = (self.rank, self.pattern.ranks, self.pattern.sets);
        let mut steps: Vec<Step<'_>> = Vec::new();
        // Only rank 0 works on objects that all ranks share.
        if rank == 0 || !self.pattern.shares_objects() {
            steps.extend(work.steps.iter().map(|step| {
                Step {
                    step,
                    owners: (0..sets)
                        .map(|set| step.owner.of(rank, set, ranks))
                        .collect(),
                }
            }));
        }
        if let Some(row) = work.make_sets {
            self.each_set(row, true).await?;
        }
        match work.order {
            ObjectOrder::Rounds => self.round_by_round(work, &steps).await,
            ObjectOrder::Sets => {
                let sets = self.pattern.sets_with_objects();
                self.set_by_set(work, &steps, sets).await
            }
            ObjectOrder::DepthFirst => {
                let with_objects = self.pattern.sets_with_objects();
                let mut sets = self.sets_of_tree(false);
                sets.retain(|set| with_objects.contains(set));
                self.set_by_set(work, &steps, sets).await
            }
            ObjectOrder::Shuffled { seed } => self.shuffled(work.rounds, &steps, seed).await,
        }
    }

    /// Executes the rounds of all sets in an order that the seed and the rank determine.
    async fn shuffled(
        &mut self,
        rounds: Rounds,
        steps: &[Step<'_>],
        seed: u64,
    ) -> Result<(), WorkerExit> {
        let position = self.run.states.position[self.rank as usize];
        let (each, sets) = (self.max_rounds(rounds), self.pattern.sets_with_objects());
        let all = each * sets.len() as u64;
        let order = Permutation::new(all.max(1), Stream::new(seed).branch(self.rank.into()));
        let at_once = self.is_immediate_stage();
        for n in 0..all {
            let object = order.map(n);
            let (set, round) = (sets.start + (object / each) as u32, object % each);
            let number = position + round;
            if S::HAS_FAST_PATH && at_once {
                self.steps_now(rounds, steps, set, number, round)?;
            } else {
                self.context.lane.yield_if_exhausted().await;
                self.steps(rounds, steps, set, number, round).await?;
            }
        }
        self.done.rounds = each;
        Ok(())
    }

    /// Creates or removes the sets of this rank. Sets that all ranks share belong to rank 0.
    async fn each_set(&mut self, row: OperationId, make: bool) -> Result<(), WorkerExit> {
        if self.rank > 0 && !self.pattern.set_name.has_rank() {
            return Ok(());
        }
        for set in self.sets_of_tree(!make) {
            self.set(row, set, make).await?;
        }
        Ok(())
    }

    /// Numbers of all sets; of a tree, depth first.
    fn sets_of_tree(&self, parents_last: bool) -> Vec<u32> {
        let sets = self.pattern.sets;
        match self.pattern.tree {
            Some(tree) => tree.depth_first(sets, parents_last),
            None => (0..sets).collect(),
        }
    }

    async fn set(&mut self, row: OperationId, set: u32, make: bool) -> Result<(), WorkerExit> {
        if self.pattern.set_name.is_empty() {
            return Ok(());
        }
        self.at = Located::Set(self.rank, set);
        let (pattern, rank) = (self.pattern, self.rank);
        self.session.locate(|p| pattern.push_set(rank, set, p));
        self.check_parent(row.0).await?;
        let begun = self.context.start(row.0);
        let result = if make {
            self.session.make_dir().await
        } else {
            self.session.remove_dir().await
        };
        self.finish(row.0, &begun, 0, result)?;
        self.wait_after(begun.start).await
    }

    async fn round_by_round(
        &mut self,
        work: &ObjectLoop,
        steps: &[Step<'_>],
    ) -> Result<(), WorkerExit> {
        let total = self.max_rounds(work.rounds);
        let first = self.run.states.position[self.rank as usize];
        let mut end = total;
        let mut f = 0;
        let mut agreed = self.stage.stonewall.is_none();
        let at_once = self.is_immediate_stage();
        loop {
            if f >= end || (!agreed && self.has_reached_stonewall()) {
                if agreed {
                    break;
                }
                agreed = true;
                end = self.agree(f, total).await?;
                continue;
            }
            if S::HAS_FAST_PATH && at_once {
                self.round_now(work.rounds, steps, first + f, f)?;
            } else {
                self.context.lane.yield_if_exhausted().await;
                for set in self.pattern.sets_with_objects() {
                    self.steps(work.rounds, steps, set, first + f, f).await?;
                }
            }
            f += 1;
            self.done.rounds = f;
        }
        if let Some(row) = work.remove_sets {
            self.each_set(row, false).await?;
        }
        Ok(())
    }

    async fn set_by_set(
        &mut self,
        work: &ObjectLoop,
        steps: &[Step<'_>],
        sets: impl IntoIterator<Item = u32>,
    ) -> Result<(), WorkerExit> {
        let states = &self.run.states;
        let position = |rank: u32| states.position[rank as usize];
        let ranks = self.pattern.ranks;
        for set in sets {
            let numbers = match work.rounds {
                Rounds::Left {
                    window,
                    deleted_by,
                    made_by,
                } => {
                    let first = position(deleted_by.of(self.rank, set, ranks));
                    first..window + position(made_by.of(self.rank, set, ranks))
                }
                rounds => {
                    let first = position(self.rank);
                    first..first + self.max_rounds(rounds)
                }
            };
            let first = numbers.start;
            if S::HAS_FAST_PATH && self.is_immediate_stage() {
                self.set_now(work.rounds, steps, set, numbers)?;
            } else {
                for number in numbers {
                    self.context.lane.yield_if_exhausted().await;
                    self.steps(work.rounds, steps, set, number, number - first)
                        .await?;
                }
            }
            self.done.rounds = self.max_rounds(work.rounds);
            let mine = self.rank == 0 || self.pattern.set_name.has_rank();
            if let Some(row) = work.remove_sets.filter(|_| mine) {
                self.set(row, set, false).await?;
            }
        }
        Ok(())
    }

    /// Executes the steps of one round in one set. After the failure of a step that gates, the remaining steps are left
    /// out.
    #[inline]
    async fn steps(
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
            let went = self.object(step, owner, set, number + step.offset).await?;
            if !went && step.gates {
                break;
            }
        }
        Ok(())
    }

    /// Executes one operation on an object; `false` if the operation failed and failures are counted.
    #[inline]
    async fn object(
        &mut self,
        step: &ObjectStep,
        owner: u32,
        set: u32,
        number: u64,
    ) -> Result<bool, WorkerExit> {
        let row = step.row.0;
        self.locate(step.op, owner, set, number);
        let (size, read) = (self.pattern.object_size, self.contents.found.len() as u64);
        let (begun, went) = match step.op {
            ObjectOp::Stat | ObjectOp::StatDir => {
                let begun = self.context.start(row);
                let result = self.session.stat().await.map(|_| ());
                let went = self.finish(row, &begun, 0, result)?;
                (begun, went)
            }
            ObjectOp::Read => {
                let begun = self.context.start(row);
                let result = self.read_object().await;
                let went = self.finish(row, &begun, read, result)?;
                if went && self.pattern.verify {
                    self.verify(row, owner, set, number)?;
                }
                (begun, went)
            }
            ObjectOp::Delete => {
                self.check_parent(row).await?;
                let begun = self.context.start(row);
                let result = self.session.unlink().await;
                let went = self.finish(row, &begun, 0, result)?;
                (begun, went)
            }
            ObjectOp::Create { sync } => {
                self.check_parent(row).await?;
                self.contents.fill(self.pattern, owner, set, number);
                let begun = self.context.start(row);
                let result = self.create_object(sync).await;
                let went = self.finish(row, &begun, size, result)?;
                (begun, went)
            }
            ObjectOp::MakeDir => {
                self.check_parent(row).await?;
                let begun = self.context.start(row);
                let result = self.session.make_dir().await;
                let went = self.finish(row, &begun, 0, result)?;
                (begun, went)
            }
            ObjectOp::RemoveDir => {
                self.check_parent(row).await?;
                let begun = self.context.start(row);
                let result = self.session.remove_dir().await;
                let went = self.finish(row, &begun, 0, result)?;
                (begun, went)
            }
            ObjectOp::RenameDir => {
                self.locate_rotation(row, owner, set, number).await?;
                let begun = self.context.start(row);
                let result = self.session.rename().await;
                let went = self.finish(row, &begun, 0, result)?;
                (begun, went)
            }
        };
        self.wait_after(begun.start).await?;
        Ok(went)
    }

    /// Passes the path of the object of the next operation to the session.
    #[inline(always)]
    pub(super) fn locate(&mut self, op: ObjectOp, owner: u32, set: u32, number: u64) {
        let pattern = self.pattern;
        if op.is_on_directory() {
            self.at = Located::Directory(owner, set, number);
            self.session
                .locate(|p| pattern.push_directory(owner, set, number, p));
        } else {
            self.at = Located::Object(owner, set, number);
            self.session
                .locate(|p| pattern.push_object(owner, set, number, p));
        }
    }

    /// Passes both paths of a [`ObjectOp::RenameDir`] to the session.
    async fn locate_rotation(
        &mut self,
        row: u32,
        owner: u32,
        set: u32,
        number: u64,
    ) -> Result<(), WorkerExit> {
        let sets = self.pattern.sets_with_objects();
        let last = self.pattern.objects - 1;
        let to = match (number, set == sets.start) {
            (0, true) => None,
            (0, false) => Some((set - 1, last)),
            _ => Some((set, number - 1)),
        };
        let is_last = set + 1 == sets.end && number == last;
        self.locate_rotated(owner, to);
        self.check_parent(row).await?;
        self.session.set_destination();
        self.locate_rotated(owner, (!is_last).then_some((set, number)));
        self.check_parent(row).await
    }

    /// Passes the path of a directory, given by set and number, to the session; for `None`, the name that the first
    /// directory has during the rotation.
    fn locate_rotated(&mut self, owner: u32, directory: Option<(u32, u64)>) {
        let pattern = self.pattern;
        let (set, number) = directory.unwrap_or((pattern.sets_with_objects().start, 0));
        self.session.locate(|p| {
            pattern.push_directory(owner, set, number, p);
            if directory.is_none() {
                p.extend_from_slice(pattern_names::ROTATED_SUFFIX.as_bytes());
            }
        });
    }

    #[inline]
    async fn create_object(&mut self, sync: bool) -> Result<(), OpError> {
        let handle = self.session.open(self.how_to_open(true)).await?;
        let bytes = &self.contents.to_write;
        let mut done = Ok(());
        if !bytes.is_empty() {
            done = self.session.write_bytes(&handle, 0, bytes).await;
        }
        if sync && done.is_ok() {
            done = self.session.fsync(&handle).await;
        }
        let closed = self.session.close(handle).await;
        done.and(closed)
    }

    #[inline]
    async fn read_object(&mut self) -> Result<(), OpError> {
        let handle = self.session.open(self.how_to_open(false)).await?;
        let bytes = &mut self.contents.found;
        let mut done = Ok(());
        let mut at = 0;
        while at < bytes.len() && done.is_ok() {
            match self
                .session
                .read_bytes(&handle, at as u64, &mut bytes[at..])
                .await
            {
                Ok(0) => done = Err(OBJECT_TOO_SHORT),
                Ok(n) => at += n as usize,
                Err(e) => done = Err(e),
            }
        }
        let closed = self.session.close(handle).await;
        done.and(closed)
    }

    /// Compares the contents that were read with the contents that were written, untimed. A difference counts as an
    /// error of the read.
    pub(super) fn verify(
        &mut self,
        row: u32,
        owner: u32,
        set: u32,
        number: u64,
    ) -> Result<(), WorkerExit> {
        self.contents.fill(self.pattern, owner, set, number);
        let Some(what) = self.contents.difference(self.pattern) else {
            return Ok(());
        };
        self.mismatches += 1;
        if self.mismatches <= super::MAX_NAMED_MISMATCHES {
            let path = path_in(&self.shared.plan, &self.path()).expect("an object has a path");
            self.shared
                .note(format!("`{path}` does not hold what was written: {what}"));
        }
        let end = self.context.lane.now();
        self.failed(row, end, end, OBJECT_CORRUPT)
    }
}
