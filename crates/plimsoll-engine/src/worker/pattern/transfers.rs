//! Stages that transfer data within one object.

use super::Rank;
use super::offsets::{Offsets, owner_of};
use crate::worker::WorkerExit;
use plimsoll_plan::{Bytes, Rounds, StageWork, TransferLoop, TransferOrder};
use plimsoll_target::{OpenHow, OpenMode, Session, WritePlace};

impl<S: Session> Rank<'_, S> {
    pub(super) async fn transfers(&mut self, work: &TransferLoop) -> Result<(), WorkerExit> {
        let owner = owner_of(work, self.rank, self.pattern.ranks);
        let total = match work.rounds {
            Rounds::Made => self.run.states.made[owner as usize],
            rounds => self.max_rounds(rounds),
        };
        if let Err(e) = self.session.reserve(work.size) {
            return Err(self.exit(work.transfer.0, e.to_string()));
        }
        self.locate_part(work, owner);
        self.check_parent(work.open.0).await?;
        let how = OpenHow {
            create: work.write,
            direct: self.pattern.direct,
            planned_size: self.planned(work, owner, total),
            ..OpenHow::plain(if work.write {
                OpenMode::Write
            } else {
                OpenMode::Read
            })
        };
        let begun = self.context.start(work.open.0);
        let (handle, result) = match self.session.open(how).await {
            Ok(handle) => (Some(handle), Ok(())),
            Err(e) => (None, Err(e)),
        };
        self.finish(work.open.0, &begun, 0, result)?;
        let Some(handle) = handle else {
            return Ok(());
        };
        let worked = self.between_barriers(work, owner, total, &handle).await;
        let begun = self.context.start(work.close.0);
        let closed = self.session.close(handle).await;
        let closed = self.finish(work.close.0, &begun, 0, closed);
        worked?;
        closed.map(|_| ())
    }

    /// Executes the transfers; with barriers, after all ranks have opened their objects and before any rank closes its
    /// object.
    async fn between_barriers(
        &mut self,
        work: &TransferLoop,
        owner: u32,
        total: u64,
        handle: &S::Handle,
    ) -> Result<(), WorkerExit> {
        if work.barriers {
            self.all_gather(&(), false).await?;
        }
        self.body(work, owner, total, handle).await?;
        if work.barriers {
            self.all_gather(&(), true).await?;
        }
        Ok(())
    }

    /// Size of the object in bytes. Of a write: the size after `total` transfers of each rank. Of a read: the size that
    /// the last writing stage left; without such a stage, the size after `total` transfers.
    fn planned(&self, work: &TransferLoop, owner: u32, total: u64) -> u64 {
        let before = &self.pattern.stages[..self.run.stage as usize];
        let mut writes = before.iter().rev().filter_map(|stage| match &stage.work {
            StageWork::Transfers(t) if t.write => Some(t),
            _ => None,
        });
        let states = &self.run.states;
        let (by, rounds) = match writes.next().filter(|_| !work.write) {
            Some(written) if written.strided => (written, self.max_rounds(Rounds::Made)),
            Some(written) => (written, states.made[owner as usize]),
            None => (work, total),
        };
        let (rounds, ranks) = match by.strided {
            true => (rounds.next_multiple_of(by.block), self.pattern.ranks),
            false => (rounds, 1),
        };
        rounds
            .saturating_mul(by.size)
            .saturating_mul(u64::from(ranks))
    }

    /// Offsets of the transfers. Random block numbers of a read stay within the size of the open object; random block
    /// numbers of a write stay within the size that the object will have.
    async fn offsets(
        &mut self,
        work: &TransferLoop,
        owner: u32,
        total: u64,
        handle: &S::Handle,
    ) -> Result<Offsets, WorkerExit> {
        let is_random = matches!(work.order, TransferOrder::Random { .. });
        let extent = match is_random && !work.write {
            true => match self.session.stat_handle(handle).await {
                Ok(found) => found.size,
                Err(e) => return Err(self.exit(work.open.0, self.error_text(e))),
            },
            false => self.planned(work, owner, total),
        };
        Offsets::new(work, owner, self.pattern.ranks, extent).ok_or_else(|| {
            let block = Bytes(work.block * work.size);
            let text = format!(
                "the file has {}, less than one block of {block}",
                Bytes(extent)
            );
            self.exit(work.transfer.0, text)
        })
    }

    /// Passes the path of the object of `owner`, or of the object that all ranks share, to the session.
    fn locate_part(&mut self, work: &TransferLoop, owner: u32) {
        let owner = if work.strided { 0 } else { owner };
        self.at = super::Located::Object(owner, 0, 0);
        let pattern = self.pattern;
        self.session.locate(|p| pattern.push_object(owner, 0, 0, p));
    }

    async fn body(
        &mut self,
        work: &TransferLoop,
        owner: u32,
        total: u64,
        handle: &S::Handle,
    ) -> Result<(), WorkerExit> {
        let row = work.transfer.0;
        let offsets = self.offsets(work, owner, total, handle).await?;
        let (mut k, mut end) = (0, total);
        let mut agreed = self.stage.stonewall.is_none();
        loop {
            if k >= end || (!agreed && self.has_reached_stonewall()) {
                if agreed {
                    break;
                }
                agreed = true;
                end = self.agree(k, total).await?;
                continue;
            }
            self.context.lane.yield_if_exhausted().await;
            let offset = offsets.of(k);
            if work.write
                && let Err(e) = self
                    .session
                    .compose(WritePlace::At(handle, offset), work.size)
            {
                return Err(self.exit(row, e.to_string()));
            }
            let begun = self.context.start(row);
            let (moved, result) = if work.write {
                let result = self.session.write(handle, offset, work.size).await;
                (work.size, result)
            } else {
                match self.session.read(handle, offset, work.size).await {
                    Ok(n) if n < work.size => (n, Err(super::objects::OBJECT_TOO_SHORT)),
                    Ok(n) => (n, Ok(())),
                    Err(e) => (0, Err(e)),
                }
            };
            self.finish(row, &begun, moved, result)?;
            self.wait_after(begun.start).await?;
            k += 1;
            self.done.rounds = k;
        }
        if let Some(row) = work.sync {
            let begun = self.context.start(row.0);
            let result = self.session.fsync(handle).await;
            self.finish(row.0, &begun, 0, result)?;
        }
        Ok(())
    }
}
