//! Asynchronous writes of the targets `null` and `simulated`, whose completion time is known when they are queued; and
//! the wait for completed writes of any target.

use crate::session_types::AioDone;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Polls `is_done` whenever the task is woken, until `is_done` returns true; `Stopped` at the deadline of the lane.
pub(crate) async fn wait_until(
    lane: &Lane,
    mut is_done: impl FnMut(&mut Context<'_>) -> bool,
) -> Result<(), Stopped> {
    poll_fn(|context| match is_done(context) {
        true => Poll::Ready(Ok(())),
        false if lane.now() >= lane.deadline() => Poll::Ready(Err(Stopped)),
        false => Poll::Pending,
    })
    .await
}

/// The queued writes of a session that the worker has not taken yet.
#[derive(Default)]
pub(crate) struct TimedWrites(Vec<AioDone>);

impl TimedWrites {
    /// Queues a write; its completion time may be in the future.
    pub(crate) fn push(&mut self, write: AioDone) {
        self.0.push(write);
    }

    pub(crate) fn pending(&self) -> usize {
        self.0.len()
    }

    /// Tag and queueing time of each write that the worker has not taken, completed or not.
    pub(crate) fn under_way(&self) -> Vec<(u32, Nanos)> {
        self.0
            .iter()
            .map(|write| (write.tag, write.start))
            .collect()
    }

    /// Waits for at least `count` completed writes, and appends all completed writes to `done`; implements
    /// [`Session::aio_take`](crate::Session::aio_take).
    pub(crate) async fn take(
        &mut self,
        lane: &Lane,
        count: usize,
        done: &mut Vec<AioDone>,
    ) -> Result<(), Stopped> {
        self.0.sort_by_key(|write| write.end);
        let mut waited = Ok(());
        if let Some(last) = self.0[..count.min(self.0.len())].last() {
            waited = lane.sleep_until(last.end).await;
        }
        let now = lane.now();
        let completed = self.0.iter().take_while(|write| write.end <= now).count();
        done.extend(self.0.drain(..completed));
        waited
    }
}
