//! Stages that transfer data within one object.

use super::Rank;
use crate::worker::WorkerExit;
use plimsoll_plan::{Rounds, TransferLoop};
use plimsoll_target::{OpenHow, OpenMode, Session, WritePlace};

impl<S: Session> Rank<'_, S> {
    pub(super) async fn transfers(&mut self, work: &TransferLoop) -> Result<(), WorkerExit> {
        let owner = work.owner.of(self.rank, 0, self.pattern.ranks);
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
            planned_size: self.planned(work, total),
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
        let worked = self.body(work, owner, total, &handle).await;
        let begun = self.context.start(work.close.0);
        let closed = self.session.close(handle).await;
        let closed = self.finish(work.close.0, &begun, 0, closed);
        worked?;
        closed.map(|_| ())
    }

    /// The size of the object in bytes after `rounds` transfers of each rank.
    fn planned(&self, work: &TransferLoop, rounds: u64) -> u64 {
        let ranks = if work.strided { self.pattern.ranks } else { 1 };
        rounds
            .saturating_mul(work.size)
            .saturating_mul(u64::from(ranks))
    }

    /// Passes the path of the object of `owner`, or of the object that all ranks share, to the session.
    fn locate_part(&mut self, work: &TransferLoop, owner: u32) {
        let owner = if work.strided { 0 } else { owner };
        self.at = (owner, 0, Some(0));
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
        let (stride, first) = if work.strided {
            (u64::from(self.pattern.ranks), u64::from(owner))
        } else {
            (1, 0)
        };
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
            let offset = (k * stride + first) * work.size;
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
