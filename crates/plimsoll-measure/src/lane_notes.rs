//! Rare notes of lanes: operations that the end of a window cut, and those that took very long.

use crate::gaps::{BusySpans, Gap, STALL_NS};
use crate::in_flight::InFlight;
use crate::{InFlightAges, Nanos, WindowBounds};
use plimsoll_sync::{Mutex, MutexGuard};
use std::sync::Arc;

/// Notes of one lane; any thread may read them.
pub(crate) struct LaneNotes(Mutex<Notes>);

struct Notes {
    workers: Vec<Arc<InFlight>>,
    cut: Vec<InFlightNote>,
    /// One entry per row.
    slow: Vec<BusySpans>,
}

/// An operation that was in flight when a window ended.
struct InFlightNote {
    window: u32,
    row: u32,
    start: Nanos,
}

/// Minimum length of an operation that is noted: a stall is longer.
pub(crate) const SLOW_OPERATION_NS: Nanos = STALL_NS;

impl LaneNotes {
    pub(crate) fn new(rows: usize) -> Self {
        Self(Mutex::new(Notes {
            workers: Vec::new(),
            cut: Vec::new(),
            slow: vec![BusySpans::default(); rows],
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        plimsoll_sync::lock(&self.0)
    }

    /// The word in which another worker of the lane writes its current operation.
    pub(crate) fn worker(&self) -> Arc<InFlight> {
        let worker = Arc::<InFlight>::default();
        self.lock().workers.push(worker.clone());
        worker
    }

    /// Notes an operation that has returned. Called by the lane, before its worker does anything else.
    pub(crate) fn cut(&self, window: u32, row: u32, start: Nanos) {
        let mut notes = self.lock();
        // From now on it is seen here, and no longer in its worker's word: not in both, if the controller
        // reads before the worker ends it.
        if let Some(word) = notes.workers.iter().find(|w| w.holds(row, start)) {
            word.end();
        }
        notes.cut.push(InFlightNote { window, row, start });
    }

    pub(crate) fn slow(&self, row: u32, from: Nanos, to: Nanos) {
        self.lock().slow[row as usize].add(Gap { from, to });
    }

    /// Adds the ages of operations in flight when a window ended, and the times of those that took
    /// very long; both have one entry per row. Forgets the notes of windows up to this one.
    pub(crate) fn take(
        &self,
        window: WindowBounds,
        ages: &mut [InFlightAges],
        slow: &mut [BusySpans],
    ) {
        let mut notes = self.lock();
        let running = notes.workers.iter().filter_map(|w| w.read(window.end));
        let cut = notes.cut.iter().filter(|c| c.window == window.number);
        let in_flight: Vec<_> = running.chain(cut.map(|c| (c.row, c.start))).collect();
        notes.cut.retain(|c| c.window > window.number);
        let mut at_end = vec![BusySpans::default(); slow.len()];
        for (row, from) in in_flight {
            // One that began after the end of the window was not in it.
            if from < window.end {
                ages[row as usize].add(window.end - from);
                let to = window.end;
                at_end[row as usize].add(Gap { from, to });
            }
        }
        for ((all, mine), at_end) in slow.iter_mut().zip(&notes.slow).zip(&at_end) {
            all.merge(&mine.clip(window.start, window.end));
            all.merge(&at_end.clip(window.start, window.end));
        }
    }
}
