//! Operations that do not touch the target: waiting for other workers, for events, for time.

use super::super::context::{ExitReason, OpSubject};
use super::super::{Worker, WorkerExit};
use crate::sync::lock;
use plimsoll_plan::{LimitKind, Op};
use plimsoll_target::Session;

impl<S: Session> Worker<S> {
    /// Operations that do not touch the target.
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
                let (count, lane) = (core.draw(*value), core.lane.clone());
                let post = async {
                    for row in targets {
                        for semaphore in &shared.semaphores[row.0 as usize] {
                            semaphore
                                .post(&lane, &shared.idle, count, *blocking)
                                .await?;
                        }
                    }
                    Ok(())
                };
                core.timed_wait(row, post).await
            }
            Op::Block => {
                let (lane, seen) = (core.lane.clone(), core.seen[state as usize]);
                let wait = shared.wakeups[row as usize].wait(&lane, &shared.idle, seen);
                core.seen[state as usize] = core.timed_wait(row, wait).await?;
                Ok(())
            }
            Op::Wakeup { targets } => {
                targets
                    .iter()
                    .for_each(|t| shared.wakeups[t.0 as usize].wake());
                core.timed_wait(row, std::future::ready(Ok(()))).await
            }
            Op::Hog { value } => {
                let (stores, lane) = (core.draw(*value), core.lane.clone());
                let work = async {
                    lane.spin_stores(stores).await;
                    Ok(())
                };
                core.timed(row, OpSubject::NO_SUBJECT, |()| 0, work)
                    .await
                    .map(|_| ())
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
            Op::Limit { kind, .. } => self.limit(row, *kind, state).await,
            Op::FinishOnCount { value, targets } => {
                let value = self.context.draw(*value);
                self.finish_at(row, value, shared.done(targets.as_deref()).0)
                    .await
            }
            Op::FinishOnBytes { value, targets } => {
                let value = self.context.draw(*value);
                self.finish_at(row, value, shared.done(targets.as_deref()).1)
                    .await
            }
            Op::Print { text } => {
                lock(&shared.messages).push(format!("{}: {text}", core.name()));
                core.timed_wait(row, std::future::ready(Ok(()))).await
            }
            Op::TestVariable { value } => {
                let drawn = core.draw(*value);
                shared.note_draw(row, drawn);
                core.timed_wait(row, std::future::ready(Ok(()))).await
            }
            _ => unreachable!("operations on the target are handled before"),
        }
    }

    pub(super) async fn finish_at(
        &mut self,
        row: u32,
        value: u64,
        done: u64,
    ) -> Result<(), WorkerExit> {
        self.context
            .timed_wait(row, std::future::ready(Ok(())))
            .await?;
        if done >= value {
            Err(WorkerExit::new(ExitReason::Finished))
        } else {
            Ok(())
        }
    }

    pub(super) async fn limit(
        &mut self,
        row: u32,
        kind: LimitKind,
        state: u32,
    ) -> Result<(), WorkerExit> {
        const MIB: u64 = 1 << 20;
        let core = &mut self.context;
        let sum = &mut core.limiter_usage[state as usize];
        let events = match kind {
            LimitKind::Calls => 1,
            LimitKind::IoOps => std::mem::take(&mut sum.transfers),
            LimitKind::Ops => std::mem::take(&mut sum.ops),
            // The part of a MiB that is left over is charged by a later call.
            LimitKind::Bandwidth => {
                let whole = sum.bytes / MIB;
                sum.bytes %= MIB;
                whole
            }
        };
        let due = match events {
            0 => None,
            n => core.shared.event_due(n),
        };
        let lane = core.lane.clone();
        let wait = async move {
            match due {
                Some(due) => lane.sleep_until(due).await,
                None => Ok(()),
            }
        };
        core.timed_wait(row, wait).await?;
        core.intended = due;
        Ok(())
    }
}
