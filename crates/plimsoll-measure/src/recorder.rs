//! What a lane records with: a few plain stores an operation.

use crate::completions::slot_shift;
use crate::counts::bump;
use crate::gaps::BusySpans;
use crate::interval_buffer::{IntervalBuffer, RowBuffer};
use crate::lane_notes::{LaneNotes, SLOW_OPERATION_NS};
use crate::latency::Latency;
use crate::{InFlight, InFlightAges, Nanos, RowSpec, WindowBounds, WindowState};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, PoisonError};

/// A buffer that a lane has finished with.
pub(crate) struct Delivery {
    pub(crate) window: u32,
    pub(crate) interval: u64,
    pub(crate) buffer: Arc<IntervalBuffer>,
}

struct Mailbox {
    delivered: Vec<Delivery>,
    spare: Vec<Arc<IntervalBuffer>>,
    /// What the lane writes at the moment, for looking at a lane that never comes back.
    current: Delivery,
}

/// Everything a lane has done since it started, whatever the window.
#[derive(Default)]
struct Progress {
    ops: AtomicU64,
    bytes: AtomicU64,
}

/// The side of a [`Recorder`] that other threads may look at.
pub struct LaneProgress {
    rows: Arc<[Progress]>,
    specs: Box<[RowSpec]>,
    mailbox: Mutex<Mailbox>,
    /// The lane has delivered everything of the intervals before this one.
    delivered_upto: AtomicU64,
    ended: AtomicBool,
    notes: LaneNotes,
    abandoned: AtomicU64,
    /// When the server of the abandoned ones last said something, and 1 more; 0 if that is not known.
    unanswered: AtomicU64,
}

impl LaneProgress {
    /// Operations of a row that succeeded since the lane started.
    #[must_use]
    pub fn ops(&self, row: usize) -> u64 {
        self.rows[row].ops.load(Relaxed)
    }

    /// Bytes of a row moved since the lane started.
    #[must_use]
    pub fn bytes(&self, row: usize) -> u64 {
        self.rows[row].bytes.load(Relaxed)
    }

    /// Whether the lane has ended and delivered everything.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Acquire)
    }

    /// Says that the lane has ended, even if it could not deliver everything.
    pub fn mark_ended(&self) {
        self.ended.store(true, Release);
    }

    /// Adds the ages of what was under way when the window ended, and when operations were under
    /// way that took very long; both one entry a row.
    pub(crate) fn take_notes(
        &self,
        window: WindowBounds,
        ages: &mut [InFlightAges],
        slow: &mut [BusySpans],
    ) {
        self.notes.take(window, ages, slow);
    }

    /// Operations that were given up at the end, because they did not come back.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// Instant since when a server had said nothing at which operations were given up.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Nanos> {
        self.unanswered.load(Relaxed).checked_sub(1)
    }

    /// Interval before which everything of window `window` is delivered.
    pub(crate) fn delivered_upto(&self, window: u32) -> u64 {
        if self.ended() {
            return u64::MAX;
        }
        let packed = self.delivered_upto.load(Acquire);
        if packed >> 40 < u64::from(window) {
            0
        } else {
            packed & ((1 << 40) - 1)
        }
    }

    pub(crate) fn take(&self) -> Vec<Delivery> {
        std::mem::take(&mut self.lock().delivered)
    }

    /// Gives a buffer back to the lane, emptied.
    pub(crate) fn give_back(&self, buffer: Arc<IntervalBuffer>) {
        buffer.clear();
        self.lock().spare.push(buffer);
    }

    /// Everything that was delivered, and what the lane is writing at this moment: the two
    /// together, so that nothing falls between them.
    pub(crate) fn take_all(&self) -> (Vec<Delivery>, Delivery) {
        let mut mailbox = self.lock();
        let delivered = std::mem::take(&mut mailbox.delivered);
        let Delivery {
            window,
            interval,
            buffer,
        } = &mailbox.current;
        let current = Delivery {
            window: *window,
            interval: *interval,
            buffer: buffer.clone(),
        };
        (delivered, current)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records the operations of one lane.
pub struct Recorder {
    shared: Arc<LaneProgress>,
    progress: Arc<[Progress]>,
    window: Arc<WindowState>,
    current: RefCell<Arc<IntervalBuffer>>,
    epoch: Cell<u32>,
    /// Next instant at which something changes.
    next_change_at: Cell<Nanos>,
    measuring: Cell<bool>,
    /// The buffer holds operations that completed in a window that is over for this lane.
    has_late_records: Cell<bool>,
    window_number: Cell<u32>,
    interval: Cell<u64>,
    /// First instant of the interval.
    interval_start: Cell<Nanos>,
    slot_shift: u32,
    /// Calls that no answer came to are given up, because the run is over.
    is_abandoning: Cell<bool>,
    /// Since when the server of calls that were given up had said nothing.
    silent_since: Cell<Option<Nanos>>,
}

impl Recorder {
    /// A recorder for a lane that does the operations of `specs`, one entry a row.
    #[must_use]
    pub fn new(window: Arc<WindowState>, specs: &[RowSpec]) -> Self {
        let buffer = Arc::new(IntervalBuffer::new(specs));
        let mailbox = Mailbox {
            delivered: Vec::new(),
            spare: Vec::new(),
            current: Delivery {
                window: 0,
                interval: 0,
                buffer: buffer.clone(),
            },
        };
        let progress: Arc<[Progress]> = specs.iter().map(|_| Progress::default()).collect();
        let shared = LaneProgress {
            rows: progress.clone(),
            specs: specs.into(),
            mailbox: Mutex::new(mailbox),
            delivered_upto: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            notes: LaneNotes::new(specs.len()),
            abandoned: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
        };
        Self {
            shared: Arc::new(shared),
            progress,
            epoch: Cell::new(window.epoch().wrapping_sub(1)),
            slot_shift: slot_shift(window.interval()),
            window,
            current: RefCell::new(buffer),
            next_change_at: Cell::new(Nanos::MAX),
            measuring: Cell::new(false),
            has_late_records: Cell::new(false),
            window_number: Cell::new(0),
            interval: Cell::new(0),
            interval_start: Cell::new(0),
            is_abandoning: Cell::new(false),
            silent_since: Cell::new(None),
        }
    }

    /// Where a worker of the lane writes which operation it is in.
    #[must_use]
    pub fn worker(&self) -> Arc<InFlight> {
        self.shared.notes.worker()
    }

    /// The side that other threads may look at.
    #[must_use]
    pub fn progress(&self) -> Arc<LaneProgress> {
        self.shared.clone()
    }

    /// Records an operation that succeeded: called at `start`, returned at `end`, meant to start
    /// at `intended` if it was paced.
    #[inline(always)]
    pub fn record(&self, row: u32, start: Nanos, end: Nanos, intended: Option<Nanos>, bytes: u64) {
        let progress = &self.progress[row as usize];
        bump(&progress.ops, 1);
        bump(&progress.bytes, bytes);
        if !self.roll_and_check(end) {
            return self.note_if_in_flight_at_end(row, start, end);
        }
        let buffer = self.current.borrow();
        if let Some(cells) = &buffer.rows[row as usize] {
            bump(&cells.bytes, bytes);
            let latency = end.saturating_sub(start);
            cells.service.record(latency);
            cells
                .marks
                .mark(self.interval_start.get(), end, self.slot_shift);
            if latency >= SLOW_OPERATION_NS {
                self.note_slow(row, start, end);
            }
            if let Some(response) = &cells.response {
                response.record(start, end, intended);
            }
        }
    }

    /// Records an operation that somebody else completed at `end`, at or before now: an
    /// asynchronous one that is taken notice of later. It counts in the latest window if it
    /// completed in it, whatever the lane has done since.
    pub fn record_completed_at(&self, row: u32, start: Nanos, end: Nanos, bytes: u64) {
        let progress = &self.progress[row as usize];
        bump(&progress.ops, 1);
        bump(&progress.bytes, bytes);
        let window = self.window.bounds();
        if !window.contains(end) {
            return self.note_if_in_flight_at_end(row, start, end);
        }
        if self.window_number.get() != window.number
            || (self.measuring.get() && end >= self.next_change_at.get())
        {
            // The lane has not been in this window or this interval yet; it is now.
            self.advance_interval(end);
        }
        if !self.measuring.get() {
            self.has_late_records.set(true);
        }
        if let Some(cells) = &self.current.borrow().rows[row as usize] {
            bump(&cells.bytes, bytes);
            cells.service.record(end.saturating_sub(start));
            self.mark_outside_interval(cells, end);
            if end.saturating_sub(start) >= SLOW_OPERATION_NS {
                self.note_slow(row, start, end);
            }
            if let Some(response) = &cells.response {
                response.record(start, end, None);
            }
        }
    }

    /// Records the processor time of an operation that ended at `end`.
    pub fn record_cpu(&self, row: u32, end: Nanos, cpu_ns: u64) {
        if self.roll_and_check(end)
            && let Some(cells) = &self.current.borrow().rows[row as usize]
        {
            bump(&cells.cpu_ns, cpu_ns);
            bump(&cells.cpu_samples, 1);
        }
    }

    /// Records an operation that was called at `start` and failed at `end`.
    pub fn record_error(&self, row: u32, start: Nanos, end: Nanos, code: &str) {
        if !self.roll_and_check(end) {
            return self.note_if_in_flight_at_end(row, start, end);
        }
        let buffer = self.current.borrow();
        let mut errors = buffer.errors.lock().unwrap_or_else(PoisonError::into_inner);
        *errors.entry((row, code.into())).or_default() += 1;
        // It has come back, if with nothing.
        if let Some(cells) = &buffer.rows[row as usize] {
            self.mark_outside_interval(cells, end);
        }
        if end.saturating_sub(start) >= SLOW_OPERATION_NS {
            self.note_slow(row, start, end);
        }
    }

    /// Ops and mean service time (nanoseconds) of a row in the current interval.
    #[must_use]
    pub fn current_interval_mean(&self, row: u32) -> (u64, Nanos) {
        self.current.borrow().rows[row as usize]
            .as_ref()
            .map_or((0, 0), |cells| {
                let n = cells.service.count.load(Relaxed);
                (
                    n,
                    cells.service.sum.load(Relaxed).checked_div(n).unwrap_or(0),
                )
            })
    }

    /// An operation that began at `start` is to count as under way when the latest window ends.
    #[cold]
    pub fn note_in_flight_at_end(&self, row: u32, start: Nanos) {
        let window = self.window.bounds();
        self.shared.notes.cut(window.number, row, start);
    }

    /// Notes an operation that came back at `end`, in no window, if the latest one has ended
    /// while it was under way.
    #[cold]
    fn note_if_in_flight_at_end(&self, row: u32, start: Nanos, end: Nanos) {
        let window = self.window.bounds();
        if window.number > 0 && start < window.end && end >= window.end {
            self.shared.notes.cut(window.number, row, start);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_slow(&self, row: u32, start: Nanos, end: Nanos) {
        self.shared.notes.slow(row, start, end);
    }

    /// Marks when something completed that need not have done so in the current interval: if it
    /// has not, it says nothing of this one.
    fn mark_outside_interval(&self, cells: &RowBuffer, end: Nanos) {
        let base = self.interval_start.get();
        if (base..self.next_change_at.get()).contains(&end) {
            cells.marks.mark(base, end, self.slot_shift);
        }
    }

    /// Notes that calls are given up, and since when the server has said nothing if it had not since
    /// they were made. `at_end`: because the run is over.
    pub fn note_abandoned_call(&self, at_end: bool, silent_since: Option<Nanos>) {
        self.is_abandoning.set(self.is_abandoning.get() || at_end);
        self.silent_since.set(silent_since);
    }

    /// Counts an operation that was under way when the run ended and then failed as given up, if it
    /// failed because its calls were.
    pub fn count_failed_at_end(&self) {
        if self.is_abandoning.get() {
            bump(&self.shared.abandoned, 1);
            self.note_lost_to_silence();
        }
    }

    /// Whether the server of calls that were given up had said nothing since they were made.
    #[must_use]
    pub fn is_server_silent(&self) -> bool {
        self.silent_since.get().is_some()
    }

    /// Says that an operation was lost because the server said nothing, if it did not.
    pub fn note_lost_to_silence(&self) {
        if let Some(since) = self.silent_since.get() {
            self.shared.unanswered.fetch_max(since + 1, Relaxed);
        }
    }

    /// Delivers what is left. Call when the lane ends.
    pub fn finish(&self) {
        if self.measuring.get() || self.has_late_records.get() {
            self.deliver(u64::MAX >> 24);
            self.measuring.set(false);
        }
        self.shared.ended.store(true, Release);
    }

    /// Whether an operation that completed at `end` is measured.
    #[inline]
    fn roll_and_check(&self, end: Nanos) -> bool {
        if end >= self.next_change_at.get() || self.window.epoch() != self.epoch.get() {
            self.advance_interval(end);
        }
        self.measuring.get()
    }

    /// Something changed: a window opened or closed, or an interval ended.
    #[cold]
    fn advance_interval(&self, now: Nanos) {
        let (epoch, window) = self.window.read();
        self.epoch.set(epoch);
        let inside = window.contains(now);
        let WindowBounds { number, start, end } = window;
        let length = self.window.interval();
        let interval = if inside { (now - start) / length } else { 0 };
        if (self.measuring.get() || self.has_late_records.get())
            && (number != self.window_number.get() || interval != self.interval.get() || !inside)
        {
            self.deliver(if inside { interval } else { u64::MAX >> 24 });
        }
        self.measuring.set(inside);
        if inside {
            if self.window_number.get() != number || self.interval.get() != interval {
                self.window_number.set(number);
                self.interval.set(interval);
                let mut mailbox = self.shared.lock();
                mailbox.current.window = number;
                mailbox.current.interval = interval;
            }
            self.shared
                .delivered_upto
                .store(u64::from(number) << 40 | interval, Release);
            self.interval_start.set(start + interval * length);
            self.next_change_at
                .set(end.min(start + (interval + 1) * length));
        } else if number > 0 && now < start {
            self.next_change_at.set(start);
        } else {
            self.shared
                .delivered_upto
                .store(u64::from(number) << 40 | (u64::MAX >> 24), Release);
            self.next_change_at.set(Nanos::MAX);
        }
    }

    /// Hands the current buffer to the collector and takes an empty one.
    fn deliver(&self, next: u64) {
        let mut current = self.current.borrow_mut();
        let mut mailbox = self.shared.lock();
        let empty = mailbox
            .spare
            .pop()
            .unwrap_or_else(|| Arc::new(IntervalBuffer::new(&self.shared.specs)));
        let full = std::mem::replace(&mut *current, empty);
        mailbox.current.buffer = current.clone();
        self.has_late_records.set(false);
        let (window, interval) = (self.window_number.get(), self.interval.get());
        mailbox.delivered.push(Delivery {
            window,
            interval,
            buffer: full,
        });
        drop(mailbox);
        self.shared
            .delivered_upto
            .store(u64::from(window) << 40 | next, Release);
    }
}

impl Latency {
    /// Distribution of a list of samples, in nanoseconds.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = Nanos>) -> Self {
        let mut l = Self::default();
        samples.into_iter().for_each(|s| l.record(s));
        l
    }
}
