//! Operations that do not touch the target: waits for other workers, events and time.

use crate::sync::lock;
use crate::worker::context::{ExitReason, OpSubject};
use crate::worker::{CapUsage, Worker, WorkerContext, WorkerExit};
use plimsoll_measure::Nanos;
use plimsoll_plan::{LimitKind, Op, OperationId};
use plimsoll_target::Session;
use std::sync::atomic::Ordering::Relaxed;

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
        let begun = self.start_wait(row);
        self.waited(row, &begun, self.lane.now())
    }

    /// Posts `count` to the semaphores of all workers that have one of the semblocks.
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

    /// Waits for the events of a limiter. A schedule (`eventlimit`) gives the next operation its intended start; a cap
    /// charges for completed operations.
    async fn limit(&mut self, row: u32, kind: LimitKind, state: u32) -> Result<(), WorkerExit> {
        let count = match kind {
            LimitKind::Calls => 1,
            _ => self.cap_usage[state as usize].charged(kind),
        };
        let due = match count {
            0 => None,
            n => self.take_events(n),
        };
        let lane = self.lane.clone();
        let wait = async move {
            match due {
                Some(due) => lane.sleep_until(due).await,
                None => Ok(()),
            }
        };
        self.timed_wait(row, wait).await?;
        if due.is_some() && self.shared.has_followers() {
            let window = self.shared.window.bounds();
            let used = u64::from(window.contains(self.lane.now())) * count;
            self.events.in_window(window).completed += used;
        }
        if kind == LimitKind::Calls {
            self.intended = due;
        }
        Ok(())
    }

    /// Takes the next `count` events. Returns the due time of the last event; `None` without an event rate.
    fn take_events(&mut self, count: u64) -> Option<Nanos> {
        let events = self.shared.events.as_ref()?;
        let start = self.shared.started.load(Relaxed);
        let taken = events.take(self.lane.now().saturating_sub(start), count);
        if !taken.dropped.is_empty() && self.shared.has_followers() {
            let window = self.shared.window.bounds();
            let dropped = self.shared.events_in_window(&taken.dropped, window);
            self.events.in_window(window).dropped += dropped;
        }
        Some(taken.due_after(start))
    }
}

impl CapUsage {
    /// Number of events that a cap charges for the operations since the cap's previous call.
    fn charged(&mut self, kind: LimitKind) -> u64 {
        const MIB: u64 = 1 << 20;
        match kind {
            LimitKind::Calls => unreachable!("a schedule charges for nothing"),
            LimitKind::IoOps => std::mem::take(&mut self.transfers),
            LimitKind::Ops => std::mem::take(&mut self.ops),
            // A later call charges the remainder.
            LimitKind::Bandwidth => {
                let whole = self.bytes / MIB;
                self.bytes %= MIB;
                whole
            }
        }
    }
}
