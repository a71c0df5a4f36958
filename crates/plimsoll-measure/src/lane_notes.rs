//! Rare notes of lanes: operations that the end of a window cut, and those that took very long.

use crate::call_spans::{CallSpans, Gap, SharedCallSpans};
use crate::in_flight::InFlight;
use crate::{InFlightAges, Nanos, WindowBounds};
use plimsoll_runtime::sync::{Mutex, MutexGuard};
use std::sync::Arc;

/// Notes of one lane; any thread may read them.
pub(crate) struct LaneNotes {
    notes: Mutex<Notes>,
    /// Call spans, which all workers of the lane note.
    spans: Arc<SharedCallSpans>,
}

#[derive(Default)]
struct Notes {
    workers: Vec<Arc<InFlight>>,
    cut: Vec<InFlightNote>,
}

/// An operation that was in flight when a window ended.
struct InFlightNote {
    window: u32,
    row: u32,
    start: Nanos,
}

impl LaneNotes {
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            notes: Mutex::default(),
            spans: Arc::new(SharedCallSpans::new(rows)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        plimsoll_runtime::sync::lock(&self.notes)
    }

    /// The word in which another worker of the lane writes its current operation.
    pub(crate) fn worker(&self) -> Arc<InFlight> {
        let worker = Arc::new(InFlight::of_lane(self.spans.clone()));
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

    /// Adds the ages of operations in flight when a window ended, one entry per row, and the call spans of the window.
    /// Forgets the notes of windows up to this one.
    pub(crate) fn take(
        &self,
        window: WindowBounds,
        ages: &mut [InFlightAges],
        calls: &mut CallSpans,
    ) {
        let mut notes = self.lock();
        let of_window = |cut: &&InFlightNote| cut.window == window.number;
        let cut = notes.cut.iter().filter(of_window);
        let mut in_flight: Vec<(u32, Nanos)> = cut.map(|c| (c.row, c.start)).collect();
        let mut running = CallSpans::new(ages.len());
        for current in notes.workers.iter().filter_map(|w| w.read(window.end)) {
            in_flight.push((current.row, current.start));
            let from = current.silent_since();
            if from < window.end {
                let to = window.end;
                running.add_long(current.row, current.shape, Gap { from, to });
            }
            current.signs.into_iter().for_each(|s| running.add_signs(s));
        }
        notes.cut.retain(|c| c.window > window.number);
        for (row, from) in in_flight {
            // One that began after the end of the window was not in it.
            if from < window.end {
                ages[row as usize].add(window.end - from);
            }
        }
        calls.merge_clipped(&self.spans.lock(), window.start, window.end);
        calls.merge_clipped(&running, window.start, window.end);
    }
}
