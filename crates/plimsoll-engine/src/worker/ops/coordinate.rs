//! Operations that do not touch the target: waiting for other workers, for events, for time.

use crate::sync::lock;
use crate::worker::context::{ExitReason, OpSubject};
use crate::worker::{Worker, WorkerContext, WorkerExit};
use plimsoll_plan::{LimitKind, Op, OperationId};
use plimsoll_target::Session;

impl<S: Session> Worker<S> {
    /// Executes an operation that does not touch the target.
    pub(super) async fn coordinate(
        &mut self,
        row: u32,
        op: &Op,
        state: u32,
    ) -> Result<(), WorkerExit> {
        let core = &mut self.context;
        let shared = core.shared.clone();
        match op {
            Op::SemBlock { value, high_water } => {
                let (count, high) = (core.draw(*value), core.draw(*high_water));
                let (lane, semaphore) =
                    (core.lane.clone(), core.semaphores[state as usize].clone());
                core.timed_wait(row, semaphore.take(&lane, &shared.idle, count, high))
                    .await
            }
            Op::SemPost {
                targets,
                value,
                blocking,
            } => {
                let count = core.draw(*value);
                core.post(row, targets, count, *blocking).await
            }
            Op::Block => {
                let (lane, seen) = (core.lane.clone(), core.seen[state as usize]);
                let wait = shared.wakeups[row as usize].wait(&lane, &shared.idle, seen);
                core.seen[state as usize] = core.timed_wait(row, wait).await?;
                Ok(())
            }
            Op::Wakeup { targets } => {
                let wakeups = targets.iter().map(|t| &shared.wakeups[t.0 as usize]);
                wakeups.for_each(|w| w.wake());
                core.instant(row)
            }
            Op::Hog { value } => {
                let (stores, lane) = (core.draw(*value), core.lane.clone());
                let work = async {
                    lane.spin_stores(stores).await;
                    Ok(())
                };
                core.timed(row, OpSubject::NO_SUBJECT, |()| 0, work).await?;
                Ok(())
            }
            Op::Delay {
                seconds,
                nanoseconds,
            } => {
                let time = core.draw(*seconds).saturating_mul(1_000_000_000);
                let time = time.saturating_add(u64::from(*nanoseconds));
                let wait = core.lane.sleep_until(core.lane.now().saturating_add(time));
                core.timed_wait(row, wait).await
            }
            Op::Limit { kind, .. } => core.limit(row, *kind, state).await,
            Op::FinishOnCount { value, targets } => {
                let value = core.draw(*value);
                core.finish_at(row, value, shared.done(targets.as_deref()).0.into())
            }
            Op::FinishOnBytes { value, targets } => {
                let value = core.draw(*value);
                core.finish_at(row, value, shared.done(targets.as_deref()).1)
            }
            Op::Print { text } => {
                lock(&shared.messages).push(format!("{}: {text}", core.name()));
                core.instant(row)
            }
            Op::TestVariable { value } => {
                let drawn = core.draw(*value);
                shared.note_draw(row, drawn);
                core.instant(row)
            }
            _ => unreachable!("operations on the target are executed before"),
        }
    }
}

impl WorkerContext {
    /// Records an operation that takes no time.
    fn instant(&mut self, row: u32) -> Result<(), WorkerExit> {
        let start = self.lane.now();
        self.waited(row, start, self.lane.now())
    }

    /// Posts to the semaphores of all workers that have one of the semblocks.
    async fn post(
        &mut self,
        row: u32,
        targets: &[OperationId],
        count: u64,
        blocking: bool,
    ) -> Result<(), WorkerExit> {
        let (shared, lane) = (self.shared.clone(), self.lane.clone());
        let post = async {
            for row in targets {
                for (_, semaphore) in &shared.semaphores[row.0 as usize] {
                    semaphore.post(&lane, &shared.idle, count, blocking).await?;
                }
            }
            Ok(())
        };
        self.timed_wait(row, post).await
    }

    fn finish_at(&mut self, row: u32, value: u64, done: u128) -> Result<(), WorkerExit> {
        self.instant(row)?;
        match done >= value.into() {
            true => Err(WorkerExit::new(ExitReason::Finished)),
            false => Ok(()),
        }
    }

    async fn limit(&mut self, row: u32, kind: LimitKind, state: u32) -> Result<(), WorkerExit> {
        const MIB: u64 = 1 << 20;
        let sum = &mut self.limiter_usage[state as usize];
        let events = match kind {
            LimitKind::Calls => 1,
            LimitKind::IoOps => std::mem::take(&mut sum.transfers),
            LimitKind::Ops => std::mem::take(&mut sum.ops),
            // A later call charges the remainder.
            LimitKind::Bandwidth => {
                let whole = sum.bytes / MIB;
                sum.bytes %= MIB;
                whole
            }
        };
        let due = match events {
            0 => None,
            n => self.shared.event_due(n),
        };
        let lane = self.lane.clone();
        let wait = async move {
            match due {
                Some(due) => lane.sleep_until(due).await,
                None => Ok(()),
            }
        };
        self.timed_wait(row, wait).await?;
        self.intended = due;
        Ok(())
    }
}
