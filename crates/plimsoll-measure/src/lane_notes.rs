//! Rare records of lanes: operations cut by a window end, and very long operations.

use crate::call_spans::{CallSpans, Gap, SharedCallSpans};
use crate::in_flight::InFlight;
use crate::{InFlightAges, Nanos, WindowBounds};
use plimsoll_runtime::sync::{Mutex, MutexGuard};
use std::sync::Arc;

/// Notes of one lane; any thread may read them.
pub(crate) struct LaneNotes {
    notes: Mutex<Notes>,
    /// Call spans, written by all workers of the lane.
    spans: Arc<SharedCallSpans>,
}

#[derive(Default)]
struct Notes {
    workers: Vec<Arc<InFlight>>,
    cut: Vec<InFlightNote>,
}

/// An operation that was in flight at a window end.
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

    /// Creates the current-operation word of another worker of the lane.
    pub(crate) fn worker(&self) -> Arc<InFlight> {
        let worker = Arc::new(InFlight::of_lane(self.spans.clone()));
        self.lock().workers.push(worker.clone());
        worker
    }

    /// Records a cut operation that has returned. Must be called by the lane before the worker's next step.
    pub(crate) fn cut(&self, window: u32, row: u32, start: Nanos) {
        let mut notes = self.lock();
        // From here on the note replaces the worker's word: a controller that reads before the worker ends the
        // operation must not see the operation in the note and in the word.
        if let Some(word) = notes.workers.iter().find(|w| w.holds(row, start)) {
            word.end();
        }
        notes.cut.push(InFlightNote { window, row, start });
    }

    /// Adds the ages of operations in flight at the window end, one entry per row, and the call spans of the window.
    /// Discards the notes of windows up to this window.
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
            // Operations that began after the window end were not in the window.
            if from < window.end {
                ages[row as usize].add(window.end - from);
            }
        }
        calls.merge_clipped(&self.spans.lock(), window.start, window.end);
        calls.merge_clipped(&running, window.start, window.end);
    }
}
