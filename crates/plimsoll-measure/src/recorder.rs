//! Recorder of the operations of a lane, with a few plain stores per operation.

use crate::completions::{CompletionMarks, slot_shift};
use crate::counts::bump;
use crate::interval_buffer::IntervalBuffer;
use crate::lane_notes::LaneNotes;
use crate::upper_half::UpperHalf;
use crate::{
    CallSpans, InFlight, InFlightAges, Nanos, OpTimes, RowSpec, WindowBounds, WindowState,
};
use plimsoll_runtime::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use plimsoll_runtime::sync::{Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A buffer that a lane has finished writing.
pub(crate) struct Delivery {
    pub(crate) window: u32,
    pub(crate) interval: u64,
    pub(crate) buffer: Arc<IntervalBuffer>,
}

/// Number of empty buffers that a lane keeps for later intervals. One buffer suffices if the collector keeps up.
pub(crate) const SPARE_BUFFERS: usize = 2;

struct Mailbox {
    delivered: Vec<Delivery>,
    spare: Vec<Arc<IntervalBuffer>>,
    /// The buffer that the lane is writing; holds the records of a lane that never returns.
    current: Delivery,
}

/// Operations, bytes and response times of a row since the lane started, over all windows.
#[derive(Default)]
struct Progress {
    ops: AtomicU64,
    /// Lower half of the sum of the bytes.
    bytes: AtomicU64,
    bytes_upper: UpperHalf,
    /// Sum of the response times of paced operations in nanoseconds, which may wrap.
    response_ns: AtomicU64,
}

impl Progress {
    #[inline(always)]
    fn add(&self, bytes: u64) {
        bump(&self.ops, 1);
        self.bytes_upper.add(&self.bytes, bytes);
    }
}

/// Interval number above the numbers of all intervals: the window has ended for the lane.
const NO_MORE_INTERVALS: u64 = u64::MAX >> WINDOW_BITS;

/// Number of bits of a window number, above the interval number.
const WINDOW_BITS: u32 = 24;

/// Window and interval in one word, ordered by window first.
fn packed(window: u32, interval: u64) -> u64 {
    u64::from(window) << (u64::BITS - WINDOW_BITS) | interval
}

/// State of a [`Recorder`] that other threads can read: progress, delivered intervals, and operations in flight.
pub struct LaneProgress {
    rows: Arc<[Progress]>,
    specs: Box<[RowSpec]>,
    mailbox: Mutex<Mailbox>,
    /// First interval whose records have not been delivered, as window and interval [`packed`] into a word.
    delivered_upto: AtomicU64,
    ended: AtomicBool,
    notes: LaneNotes,
    abandoned: AtomicU64,
    /// Time of the last server reply before operations were abandoned, plus one; 0 if unknown.
    unanswered: AtomicU64,
}

impl LaneProgress {
    /// Successful operations of a row since the lane started.
    #[must_use]
    pub fn ops(&self, row: usize) -> u64 {
        self.rows[row].ops.load(Relaxed)
    }

    /// Bytes moved by a row since the lane started.
    #[must_use]
    pub fn bytes(&self, row: usize) -> u128 {
        let row = &self.rows[row];
        row.bytes_upper.sum(&row.bytes)
    }

    /// Sum of the response times of a row's paced operations since the lane started, in nanoseconds; wraps at 2^64.
    #[must_use]
    pub fn response_ns(&self, row: usize) -> u64 {
        self.rows[row].response_ns.load(Relaxed)
    }

    /// Whether the lane has ended and delivered everything.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Acquire)
    }

    /// Marks the lane as ended, even if the lane could not deliver everything.
    pub fn mark_ended(&self) {
        self.ended.store(true, Release);
    }

    /// Adds the ages of operations in flight at the window end, one entry per row, and the call spans of the window.
    pub(crate) fn take_notes(
        &self,
        window: WindowBounds,
        ages: &mut [InFlightAges],
        calls: &mut CallSpans,
    ) {
        self.notes.take(window, ages, calls);
    }

    /// Number of operations that never returned and were abandoned at the end of the run.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// Time of the last reply of a server whose operations were abandoned; `None` if unknown.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Nanos> {
        self.unanswered.load(Relaxed).checked_sub(1)
    }

    /// First interval of a window that has not been delivered completely.
    pub(crate) fn delivered_upto(&self, window: u32) -> u64 {
        if self.ended() {
            return u64::MAX;
        }
        let reached = self.delivered_upto.load(Acquire);
        match reached < packed(window, 0) {
            true => 0,
            false => reached & NO_MORE_INTERVALS,
        }
    }

    pub(crate) fn take(&self) -> Vec<Delivery> {
        std::mem::take(&mut self.lock().delivered)
    }

    /// Empties a buffer and returns the buffer to the lane. Surplus buffers, allocated because the collector was late,
    /// are freed.
    pub(crate) fn give_back(&self, buffer: Arc<IntervalBuffer>) {
        if self.lock().spare.len() < SPARE_BUFFERS {
            // The buffer is cleared outside the lock, on which the lane would block at the end of an interval.
            buffer.clear();
            self.lock().spare.push(buffer);
        }
    }

    /// Takes the delivered buffers and, under the same lock, the buffer that the lane is writing, so that no delivery
    /// is lost in between.
    pub(crate) fn take_all(&self) -> (Vec<Delivery>, Delivery) {
        let mut mailbox = self.lock();
        let delivered = std::mem::take(&mut mailbox.delivered);
        let current = Delivery {
            buffer: mailbox.current.buffer.clone(),
            ..mailbox.current
        };
        (delivered, current)
    }

    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        plimsoll_runtime::sync::lock(&self.mailbox)
    }
}

/// Content of a lane's current buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BufferState {
    /// The buffer is empty, and nothing is being measured.
    Empty,
    /// The buffer has operations of the current interval.
    Measuring,
    /// The buffer has operations that completed in a window that has ended for the lane.
    Late,
}

/// Recorder of one lane: counts operations and latencies by row and interval, and delivers the records to the
/// collector.
pub struct Recorder {
    shared: Arc<LaneProgress>,
    progress: Arc<[Progress]>,
    window: Arc<WindowState>,
    current: RefCell<Arc<IntervalBuffer>>,
    epoch: Cell<u32>,
    /// Time of the next change of interval or window, in nanoseconds of the run's clock.
    next_change_at: Cell<Nanos>,
    state: Cell<BufferState>,
    window_number: Cell<u32>,
    interval: Cell<u64>,
    /// First instant of the current interval, in nanoseconds of the run's clock.
    interval_start: Cell<Nanos>,
    slot_shift: u32,
    /// Calls without a reply are being abandoned, because the run is over.
    is_abandoning: Cell<bool>,
    /// Time of the last reply of the server whose calls were abandoned.
    silent_since: Cell<Option<Nanos>>,
}

impl Recorder {
    /// A recorder for a lane that executes the operations of `specs`, one entry per row.
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
            state: Cell::new(BufferState::Empty),
            window_number: Cell::new(0),
            interval: Cell::new(0),
            interval_start: Cell::new(0),
            is_abandoning: Cell::new(false),
            silent_since: Cell::new(None),
        }
    }

    /// Creates the current-operation word of a worker of the lane.
    #[must_use]
    pub fn worker(&self) -> Arc<InFlight> {
        self.shared.notes.worker()
    }

    /// The recorder's state that other threads can read.
    #[must_use]
    pub fn progress(&self) -> Arc<LaneProgress> {
        self.shared.clone()
    }

    /// Records a successful operation. For an operation of [`STALL_NS`](crate::STALL_NS) or more, the worker must first
    /// call [`InFlight::note_long`].
    #[inline(always)]
    pub fn record(&self, row: u32, times: OpTimes, bytes: u64) {
        let progress = &self.progress[row as usize];
        progress.add(bytes);
        if times.intended.is_some() {
            bump(&progress.response_ns, times.response());
        }
        if !self.roll_and_check(times.end) {
            return self.note_if_in_flight_at_end(row, times.start, times.end);
        }
        let buffer = self.current.borrow();
        debug_assert!(
            buffer.rows[row as usize].is_some(),
            "the lane has no row {row}"
        );
        if let Some(cells) = &buffer.rows[row as usize] {
            cells.add_bytes(bytes);
            cells.service.record(times.service());
            cells
                .marks
                .mark(self.interval_start.get(), times.end, self.slot_shift);
            debug_assert!(
                times.intended.is_none() || cells.response.is_some(),
                "row {row} has a paced operation and no response times"
            );
            if let Some(response) = &cells.response {
                response.record(times);
            }
        }
    }

    /// Records an asynchronous operation that completed at `end`, now or earlier. The operation counts in the latest
    /// window if `end` is inside the window, even if the lane has entered a later interval since.
    pub fn record_completed_at(&self, row: u32, start: Nanos, end: Nanos, bytes: u64) {
        self.progress[row as usize].add(bytes);
        let window = self.window.bounds();
        if !window.contains(end) {
            return self.note_if_in_flight_at_end(row, start, end);
        }
        if self.window_number.get() != window.number
            || (self.is_measuring() && end >= self.next_change_at.get())
        {
            // The lane has not entered the window or interval of the completion yet, and enters the interval now.
            self.advance_interval(end);
        }
        if !self.is_measuring() {
            self.state.set(BufferState::Late);
        }
        if let Some(cells) = &self.current.borrow().rows[row as usize] {
            let times = OpTimes::unpaced(start, end);
            cells.add_bytes(bytes);
            cells.service.record(times.service());
            self.mark_outside_interval(&cells.marks, end);
            if let Some(response) = &cells.response {
                response.record(times);
            }
        }
    }

    /// Records the processor time of `ops` operations, the last of which ended at `end`.
    pub fn record_cpu(&self, row: u32, end: Nanos, cpu_ns: u64, ops: u64) {
        if self.roll_and_check(end)
            && let Some(cells) = &self.current.borrow().rows[row as usize]
        {
            bump(&cells.cpu_ns, cpu_ns);
            bump(&cells.cpu_ops, ops);
        }
    }

    /// Records an operation that was called at `start` and failed at `end`.
    pub fn record_error(&self, row: u32, start: Nanos, end: Nanos, code: &str) {
        if !self.roll_and_check(end) {
            return self.note_if_in_flight_at_end(row, start, end);
        }
        let buffer = self.current.borrow();
        *buffer.errors().entry((row, code.into())).or_default() += 1;
        // A failure is a completion, too.
        if let Some(cells) = &buffer.rows[row as usize] {
            self.mark_outside_interval(&cells.failed_marks, end);
        }
    }

    /// Counts an operation that failed at `at` without being issued to the target. A failure of an operation that was
    /// not issued does not interrupt a stall.
    #[cold]
    pub fn record_not_issued(&self, row: u32, at: Nanos, code: &str) {
        if self.roll_and_check(at) {
            let buffer = self.current.borrow();
            *buffer.errors().entry((row, code.into())).or_default() += 1;
        }
    }

    /// Counts an operation that began at `start` as in flight at the end of the latest window.
    #[cold]
    pub fn note_in_flight_at_end(&self, row: u32, start: Nanos) {
        let window = self.window.bounds();
        self.shared.notes.cut(window.number, row, start);
    }

    /// Counts an operation that returned at `end`, outside all windows, as in flight if the latest window ended during
    /// the operation.
    #[cold]
    fn note_if_in_flight_at_end(&self, row: u32, start: Nanos, end: Nanos) {
        let window = self.window.bounds();
        if window.number > 0 && start < window.end && end >= window.end {
            self.shared.notes.cut(window.number, row, start);
        }
    }

    /// Marks the slot of a completion at `end` if the instant is in the current interval.
    fn mark_outside_interval(&self, marks: &CompletionMarks, end: Nanos) {
        let base = self.interval_start.get();
        if (base..self.next_change_at.get()).contains(&end) {
            marks.mark(base, end, self.slot_shift);
        }
    }

    /// Records that calls were abandoned; `at_end`: because the run is over. `silent_since` is the time of the server's
    /// last reply, if no reply came since the calls were made.
    pub fn note_abandoned_call(&self, at_end: bool, silent_since: Option<Nanos>) {
        self.is_abandoning.set(self.is_abandoning.get() || at_end);
        self.silent_since.set(silent_since);
    }

    /// Counts an operation that was in flight at the end of the run and then failed as abandoned, if its calls were
    /// abandoned.
    pub fn count_failed_at_end(&self) {
        if self.is_abandoning.get() {
            bump(&self.shared.abandoned, 1);
            self.note_lost_to_silence();
        }
    }

    /// Whether the server has sent no reply since the abandoned calls were made.
    #[must_use]
    pub fn is_server_silent(&self) -> bool {
        self.silent_since.get().is_some()
    }

    /// Records that an operation was lost to a silent server, if the server is silent.
    pub fn note_lost_to_silence(&self) {
        if let Some(since) = self.silent_since.get() {
            self.shared.unanswered.fetch_max(since + 1, Relaxed);
        }
    }

    /// Delivers the remaining records. Must be called when the lane ends.
    pub fn finish(&self) {
        if self.state.replace(BufferState::Empty) != BufferState::Empty {
            self.deliver(NO_MORE_INTERVALS);
        }
        self.shared.mark_ended();
    }

    #[inline(always)]
    fn is_measuring(&self) -> bool {
        self.state.get() == BufferState::Measuring
    }

    /// Advances to the interval of `end`; returns whether an operation that completed at `end` is measured.
    #[inline]
    fn roll_and_check(&self, end: Nanos) -> bool {
        if end >= self.next_change_at.get() || self.window.epoch() != self.epoch.get() {
            self.advance_interval(end);
        }
        self.is_measuring()
    }

    /// Advances to the window and interval of `now`, and delivers the buffer of the previous interval.
    #[cold]
    fn advance_interval(&self, now: Nanos) {
        let (epoch, window) = self.window.read();
        self.epoch.set(epoch);
        let inside = window.contains(now);
        let WindowBounds { number, start, end } = window;
        debug_assert!(
            number >= self.window_number.get(),
            "window {number} comes after window {}",
            self.window_number.get()
        );
        let length = self.window.interval();
        let interval = if inside { (now - start) / length } else { 0 };
        let same = (number, interval) == (self.window_number.get(), self.interval.get());
        if self.state.get() != BufferState::Empty && (!same || !inside) {
            self.deliver(if inside { interval } else { NO_MORE_INTERVALS });
        }
        self.state.set(match inside {
            true => BufferState::Measuring,
            false => BufferState::Empty,
        });
        if inside {
            if !same {
                self.window_number.set(number);
                self.interval.set(interval);
                let mut mailbox = self.shared.lock();
                mailbox.current.window = number;
                mailbox.current.interval = interval;
            }
            self.set_delivered_upto(number, interval);
            self.interval_start.set(start + interval * length);
            self.next_change_at
                .set(end.min(start + (interval + 1) * length));
        } else if number > 0 && now < start {
            self.next_change_at.set(start);
        } else {
            self.set_delivered_upto(number, NO_MORE_INTERVALS);
            self.next_change_at.set(Nanos::MAX);
        }
    }

    fn set_delivered_upto(&self, window: u32, interval: u64) {
        self.shared
            .delivered_upto
            .store(packed(window, interval), Release);
    }

    /// Hands the current buffer to the collector and takes an empty buffer.
    fn deliver(&self, next: u64) {
        let mut current = self.current.borrow_mut();
        let mut mailbox = self.shared.lock();
        let empty = mailbox
            .spare
            .pop()
            .unwrap_or_else(|| Arc::new(IntervalBuffer::new(&self.shared.specs)));
        let full = std::mem::replace(&mut *current, empty);
        mailbox.current.buffer = current.clone();
        let (window, interval) = (self.window_number.get(), self.interval.get());
        mailbox.delivered.push(Delivery {
            window,
            interval,
            buffer: full,
        });
        drop(mailbox);
        self.set_delivered_upto(window, next);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
