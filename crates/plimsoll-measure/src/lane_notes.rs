//! What lanes note besides their counts, which is rare: operations that the end of a window cut, and
//! those that took very long.

use crate::gaps::{BusySpans, Gap, STALL_NS};
use crate::in_flight::InFlight;
use crate::{InFlightAges, Nanos, WindowBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Notes of one lane; any thread may look at them.
pub(crate) struct LaneNotes(Mutex<Notes>);

struct Notes {
    workers: Vec<Arc<InFlight>>,
    cut: Vec<InFlightNote>,
    /// One entry a row.
    slow: Vec<BusySpans>,
}

/// An operation that was under way when a window ended.
struct InFlightNote {
    window: u32,
    row: u32,
    start: Nanos,
}

/// Least length of an operation that is noted: the stall that it may be is longer.
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where another worker of the lane writes what it is in.
    pub(crate) fn worker(&self) -> Arc<InFlight> {
        let worker = Arc::<InFlight>::default();
        self.lock().workers.push(worker.clone());
        worker
    }

    pub(crate) fn cut(&self, window: u32, row: u32, start: Nanos) {
        self.lock().cut.push(InFlightNote { window, row, start });
    }

    pub(crate) fn slow(&self, row: u32, start: Nanos, end: Nanos) {
        let span = Gap {
            from: start,
            to: end,
        };
        self.lock().slow[row as usize].add(span);
    }

    /// Adds the ages of what was under way when a window ended, and the times of what took very
    /// long; both one entry a row. Forgets what the lane noted of windows up to this one.
    pub(crate) fn take(
        &self,
        window: WindowBounds,
        ages: &mut [InFlightAges],
        slow: &mut [BusySpans],
    ) {
        let mut notes = self.lock();
        let still: Vec<_> = notes.workers.iter().filter_map(|w| w.read()).collect();
        let mut under_way = still;
        under_way.extend(
            notes
                .cut
                .iter()
                .filter(|c| c.window == window.number)
                .map(|c| (c.row, c.start)),
        );
        notes.cut.retain(|c| c.window > window.number);
        let mut at_end = vec![BusySpans::default(); slow.len()];
        for (row, start) in under_way {
            // One that began after the window has ended was not in it.
            if start < window.end {
                ages[row as usize].add(window.end - start);
                let span = Gap {
                    from: start,
                    to: window.end,
                };
                at_end[row as usize].add(span);
            }
        }
        for ((all, mine), at_end) in slow.iter_mut().zip(&notes.slow).zip(&at_end) {
            all.merge(&mine.clip(window.start, window.end));
            all.merge(&at_end.clip(window.start, window.end));
        }
    }
}
