//! Operations that do not touch the target: waits for other workers, events and time.

use crate::sync::lock;
use crate::worker::context::{ExitReason, OpSubject};
use crate::worker::{CapUsage, WorkerContext, WorkerExit};
use plimsoll_measure::Nanos;
use plimsoll_plan::{LimitKind, OperationId, Value};
use std::sync::atomic::Ordering::Relaxed;

impl WorkerContext {
    pub(super) async fn sem_block(
        &mut self,
        row: u32,
        state: u32,
        value: Value,
        high_water: Value,
    ) -> Result<(), WorkerExit> {
        let (count, high) = (self.draw(value), self.draw(high_water));
        let (lane, shared) = (self.lane.clone(), self.shared.clone());
        let semaphore = self.semaphores[state as usize].clone();
        let take = semaphore.take(&lane, &shared.idle, count, high);
        self.timed_wait(row, take).await
    }

    pub(super) async fn block(&mut self, row: u32, state: u32) -> Result<(), WorkerExit> {
        let (lane, shared) = (self.lane.clone(), self.shared.clone());
        let seen = self.seen[state as usize];
        let wait = shared.wakeups[row as usize].wait(&lane, &shared.idle, seen);
        self.seen[state as usize] = self.timed_wait(row, wait).await?;
        Ok(())
    }

    pub(super) fn wakeup(&mut self, row: u32, targets: &[OperationId]) -> Result<(), WorkerExit> {
        let wakeups = targets.iter().map(|t| &self.shared.wakeups[t.0 as usize]);
        wakeups.for_each(|w| w.wake());
        self.instant(row)
    }

    pub(super) async fn hog(&mut self, row: u32, value: Value) -> Result<(), WorkerExit> {
        let (stores, lane) = (self.draw(value), self.lane.clone());
        let work = async {
            lane.spin_stores(stores).await;
            Ok(())
        };
        self.timed(row, OpSubject::NO_SUBJECT, |()| 0, work).await?;
        Ok(())
    }

    pub(super) async fn delay(
        &mut self,
        row: u32,
        seconds: Value,
        nanoseconds: u32,
    ) -> Result<(), WorkerExit> {
        let time = self.draw(seconds).saturating_mul(1_000_000_000);
        let time = time.saturating_add(u64::from(nanoseconds));
        let wait = self.lane.sleep_until(self.lane.now().saturating_add(time));
        self.timed_wait(row, wait).await
    }

    pub(super) fn print(&mut self, row: u32, text: &str) -> Result<(), WorkerExit> {
        lock(&self.shared.messages).push(format!("{}: {text}", self.name()));
        self.instant(row)
    }

    pub(super) fn test_variable(&mut self, row: u32, value: Value) -> Result<(), WorkerExit> {
        let drawn = self.draw(value);
        self.shared.note_draw(row, drawn);
        self.instant(row)
    }

    /// Records an operation that takes no time.
    fn instant(&mut self, row: u32) -> Result<(), WorkerExit> {
        let begun = self.start_wait(row);
        self.waited(row, &begun, self.lane.now())
    }

    /// Posts to the semaphores of all workers that have one of the semblocks `targets`.
    pub(super) async fn sem_post(
        &mut self,
        row: u32,
        targets: &[OperationId],
        value: Value,
        blocking: bool,
    ) -> Result<(), WorkerExit> {
        let count = self.draw(value);
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

    /// Ends the worker if `done`, a number of operations or bytes, has reached `value`.
    pub(super) fn finish_at(
        &mut self,
        row: u32,
        value: Value,
        done: u128,
    ) -> Result<(), WorkerExit> {
        let value = self.draw(value);
        self.instant(row)?;
        match done >= value.into() {
            true => Err(WorkerExit::new(ExitReason::Finished)),
            false => Ok(()),
        }
    }

    /// Waits for the events of a limiter. A schedule (`eventlimit`) gives the next operation its intended start; a cap
    /// charges for completed operations.
    pub(super) async fn limit(
        &mut self,
        row: u32,
        kind: LimitKind,
        state: u32,
    ) -> Result<(), WorkerExit> {
        let count = match kind {
            LimitKind::Calls => 1,
            _ => self.cap_usage[state as usize].charged(kind),
        };
        let due = match count {
            0 => None,
            n => self.take_events(kind, n),
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

    /// Takes the next `count` events for a limiter of a kind. Returns the due time of the last event; `None` without an event rate.
    fn take_events(&mut self, kind: LimitKind, count: u64) -> Option<Nanos> {
        let events = self.shared.events.as_ref()?;
        let start = self.shared.started.load(Relaxed);
        let now = self.lane.now();
        let taken = events.take(now.saturating_sub(start), count);
        if !taken.dropped.is_empty() && self.shared.has_followers() {
            let window = self.shared.window.bounds();
            let dropped = self.shared.events_in_window(&taken.dropped, window);
            self.events.in_window(window).dropped += dropped;
        }
        let due = taken.due_after(start);
        if kind == LimitKind::Calls {
            let backlog = self.event_backlog.get_or_insert_default();
            backlog.record(events, self.shared.window.bounds(), now, due);
        }
        Some(due)
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
