//! Workers that finish their work before the run ends.
//!
//! Ranks have no common clock, so the counts at the first end of all ranks are an estimate: each rank contributes the
//! counts at its own first end, scaled to the time of the earliest first end.

use crate::sync::lock;
use plimsoll_measure::{Nanos, WindowState, WorkersDone};
use std::sync::Mutex;

/// The workers of this process that have finished in the latest window.
#[derive(Default)]
pub(crate) struct WorkerEnds(Mutex<WorkerEndState>);

#[derive(Default)]
struct WorkerEndState {
    window: u32,
    /// `first_ops` and `first_bytes` are counts since the workers started.
    done: WorkersDone,
}

impl WorkerEnds {
    /// Notes that a worker finished at `now`; `progress` returns the operations and bytes of all workers since the
    /// workers started.
    pub(crate) fn note(
        &self,
        window: &WindowState,
        now: Nanos,
        progress: impl FnOnce() -> (u64, u128),
    ) {
        let window = window.bounds();
        if !window.contains(now) {
            return;
        }
        let at = now - window.start;
        let mut seen = lock(&self.0);
        // Windows are numbered from 1, so 0 differs from every window.
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
        // The worker that calls first need not have stopped first.
        done.first = done.first.min(at);
        done.last = done.last.max(at);
    }

    /// The finish times of the `workers` of this process in a window; `None` unless all of the workers finished before
    /// the run ended. `in_window` and `progress` are the workers' operations and bytes: in the window, and since the
    /// workers started.
    pub(crate) fn of_window(
        &self,
        window: u32,
        workers: usize,
        in_window: (u64, u128),
        progress: (u64, u128),
    ) -> Option<WorkersDone> {
        let seen = lock(&self.0);
        if seen.window != window || seen.done.workers != workers as u64 {
            return None;
        }
        // The window ends with the last worker, so all operations since the first end are in the window.
        let before =
            |all: u128, now: u128, then: u128| all.saturating_sub(now.saturating_sub(then));
        let done = seen.done;
        Some(WorkersDone {
            first_ops: before(in_window.0.into(), progress.0.into(), done.first_ops.into()) as u64,
            first_bytes: before(in_window.1, progress.1, done.first_bytes),
            ..done
        })
    }
}
