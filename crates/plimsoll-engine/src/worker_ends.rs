//! Workers that come to the end of their work by themselves, before the run ends for all.

use crate::sync::lock;
use plimsoll_measure::{Nanos, WindowState, WorkersDone};
use std::sync::Mutex;

/// The workers of this process that have come to their end in the latest window.
#[derive(Default)]
pub(crate) struct WorkerEnds(Mutex<WorkerEndState>);

#[derive(Default)]
struct WorkerEndState {
    window: u32,
    /// Operations and bytes up to the first end are here those since the workers started.
    done: WorkersDone,
}

impl WorkerEnds {
    /// A worker has come to its end at `now`; `progress` counts the operations and bytes of all
    /// workers since they started.
    pub(crate) fn note(
        &self,
        window: &WindowState,
        now: Nanos,
        progress: impl FnOnce() -> (u64, u64),
    ) {
        let window = window.bounds();
        if !window.contains(now) {
            return;
        }
        let at = now - window.start;
        let mut seen = lock(&self.0);
        // Windows are counted from 1.
        if seen.window != window.number {
            let (first_ops, first_bytes) = progress();
            seen.window = window.number;
            seen.done = WorkersDone {
                workers: 1,
                first: at,
                last: at,
                first_ops,
                first_bytes,
            };
            return;
        }
        let done = &mut seen.done;
        done.workers += 1;
        // The first to come here need not be the first that stopped.
        done.first = done.first.min(at);
        done.last = done.last.max(at);
    }

    /// How the `workers` of this process came to their ends in a window of which they did
    /// `in_window`, operations and bytes, and `progress` since they started. `None` unless all of
    /// them did, each by itself.
    pub(crate) fn of_window(
        &self,
        window: u32,
        workers: usize,
        in_window: (u64, u64),
        progress: (u64, u64),
    ) -> Option<WorkersDone> {
        let seen = lock(&self.0);
        if seen.window != window || seen.done.workers != workers as u64 {
            return None;
        }
        // The window ends with the last worker: what was done since the first end is all in it.
        let before = |all: u64, now: u64, then: u64| all.saturating_sub(now.saturating_sub(then));
        let done = seen.done;
        Some(WorkersDone {
            first_ops: before(in_window.0, progress.0, done.first_ops),
            first_bytes: before(in_window.1, progress.1, done.first_bytes),
            ..done
        })
    }
}
