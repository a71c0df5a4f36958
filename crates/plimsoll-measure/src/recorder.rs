//! Recording the operations of a lane, with a few plain stores per operation.

use crate::completions::{CompletionMarks, slot_shift};
use crate::counts::bump;
use crate::gaps::BusySpans;
use crate::interval_buffer::IntervalBuffer;
use crate::lane_notes::{LaneNotes, SLOW_OPERATION_NS};
use crate::{InFlight, InFlightAges, Nanos, OpTimes, RowSpec, WindowBounds, WindowState};
use plimsoll_sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use plimsoll_sync::{Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A buffer that a lane has finished with.
pub(crate) struct Delivery {
    pub(crate) window: u32,
    pub(crate) interval: u64,
    pub(crate) buffer: Arc<IntervalBuffer>,
}

/// Empty buffers that a lane keeps for the next intervals. A collector in time needs one.
const SPARE_BUFFERS: usize = 2;

struct Mailbox {
    delivered: Vec<Delivery>,
    spare: Vec<Arc<IntervalBuffer>>,
    /// The buffer that the lane writes at the moment: the records of a lane that never returns.
    current: Delivery,
}

/// Operations and bytes of a row since the lane started, whatever the window.
#[derive(Default)]
struct Progress {
    ops: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    #[inline(always)]
    fn add(&self, bytes: u64) {
        bump(&self.ops, 1);
        bump(&self.bytes, bytes);
    }
}

/// An interval after all others: its window is over for the lane.
const NO_MORE_INTERVALS: u64 = u64::MAX >> WINDOW_BITS;

/// Bits of the number of a window, above those of an interval.
const WINDOW_BITS: u32 = 24;

/// A window and an interval in one word, ordered by the window first.
fn packed(window: u32, interval: u64) -> u64 {
    u64::from(window) << (u64::BITS - WINDOW_BITS) | interval
}

/// The side of a [`Recorder`] that other threads may read.
pub struct LaneProgress {
    rows: Arc<[Progress]>,
    specs: Box<[RowSpec]>,
    mailbox: Mutex<Mailbox>,
    /// The lane has delivered everything of the intervals before this one, as [`packed`].
    delivered_upto: AtomicU64,
    ended: AtomicBool,
    notes: LaneNotes,
    abandoned: AtomicU64,
    /// One more than when the server of the abandoned operations last replied; 0 if unknown.
    unanswered: AtomicU64,
}

impl LaneProgress {
    /// The operations of a row that succeeded since the lane started.
    #[must_use]
    pub fn ops(&self, row: usize) -> u64 {
        self.rows[row].ops.load(Relaxed)
    }

    /// The bytes that a row moved since the lane started.
    #[must_use]
    pub fn bytes(&self, row: usize) -> u64 {
        self.rows[row].bytes.load(Relaxed)
    }

    /// Whether the lane has ended and delivered everything.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Acquire)
    }

    /// Notes that the lane has ended, even if it could not deliver everything.
    pub fn mark_ended(&self) {
        self.ended.store(true, Release);
    }

    /// Adds the ages of operations in flight when the window ended, and the times of operations
    /// that took very long; both have one entry per row.
    pub(crate) fn take_notes(
        &self,
        window: WindowBounds,
        ages: &mut [InFlightAges],
        slow: &mut [BusySpans],
    ) {
        self.notes.take(window, ages, slow);
    }

    /// Operations that were abandoned at the end, because they did not return.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// Instant of the last reply of a server whose operations were abandoned.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Nanos> {
        self.unanswered.load(Relaxed).checked_sub(1)
    }

    /// The interval before which everything of window `window` is delivered.
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

    /// Gives a buffer back to the lane, emptied. What a collector that was late has made it take is freed.
    pub(crate) fn give_back(&self, buffer: Arc<IntervalBuffer>) {
        if self.lock().spare.len() < SPARE_BUFFERS {
            // Outside of the lock, for which the lane would wait at the end of an interval.
            buffer.clear();
            self.lock().spare.push(buffer);
        }
    }

    /// The buffers that were delivered and the one that the lane is writing: both at once, so that
    /// nothing is lost between them.
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
        plimsoll_sync::lock(&self.mailbox)
    }
}

/// The contents of a lane's current buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BufferState {
    /// Nothing, and nothing is measured.
    Empty,
    /// Operations of the interval in which the lane is.
    Measuring,
    /// Operations that completed in a window that is over for the lane.
    Late,
}

/// Records the operations of one lane.
pub struct Recorder {
    shared: Arc<LaneProgress>,
    progress: Arc<[Progress]>,
    window: Arc<WindowState>,
    current: RefCell<Arc<IntervalBuffer>>,
    epoch: Cell<u32>,
    /// The next instant at which the interval or the window changes.
    next_change_at: Cell<Nanos>,
    state: Cell<BufferState>,
    window_number: Cell<u32>,
    interval: Cell<u64>,
    /// First instant of the interval.
    interval_start: Cell<Nanos>,
    slot_shift: u32,
    /// Calls without a reply are abandoned, because the run is over.
    is_abandoning: Cell<bool>,
    /// The last reply of the server whose calls were abandoned.
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

    /// The word in which a worker of the lane writes its current operation.
    #[must_use]
    pub fn worker(&self) -> Arc<InFlight> {
        self.shared.notes.worker()
    }

    /// The side that other threads may read.
    #[must_use]
    pub fn progress(&self) -> Arc<LaneProgress> {
        self.shared.clone()
    }

    /// Records an operation that succeeded.
    #[inline(always)]
    pub fn record(&self, row: u32, times: OpTimes, bytes: u64) {
        self.progress[row as usize].add(bytes);
        if !self.roll_and_check(times.end) {
            return self.note_if_in_flight_at_end(row, times.start, times.end);
        }
        let buffer = self.current.borrow();
        debug_assert!(
            buffer.rows[row as usize].is_some(),
            "the lane has no row {row}"
        );
        if let Some(cells) = &buffer.rows[row as usize] {
            bump(&cells.bytes, bytes);
            let latency = times.service();
            cells.service.record(latency);
            cells
                .marks
                .mark(self.interval_start.get(), times.end, self.slot_shift);
            if latency >= SLOW_OPERATION_NS {
                self.note_slow(row, times.start, times.end);
            }
            debug_assert!(
                times.intended.is_none() || cells.response.is_some(),
                "row {row} has a paced operation and no response times"
            );
            if let Some(response) = &cells.response {
                response.record(times);
            }
        }
    }

    /// Records an asynchronous operation that completed at `end`, at or before now. It counts in
    /// the latest window if it completed in it, whatever the lane has done since.
    pub fn record_completed_at(&self, row: u32, start: Nanos, end: Nanos, bytes: u64) {
        self.progress[row as usize].add(bytes);
        let window = self.window.bounds();
        if !window.contains(end) {
            return self.note_if_in_flight_at_end(row, start, end);
        }
        if self.window_number.get() != window.number
            || (self.is_measuring() && end >= self.next_change_at.get())
        {
            // The lane has not been in this window or this interval yet; it is now.
            self.advance_interval(end);
        }
        if !self.is_measuring() {
            self.state.set(BufferState::Late);
        }
        if let Some(cells) = &self.current.borrow().rows[row as usize] {
            let times = OpTimes::unpaced(start, end);
            bump(&cells.bytes, bytes);
            cells.service.record(times.service());
            self.mark_outside_interval(&cells.marks, end);
            self.note_if_slow(row, start, end);
            if let Some(response) = &cells.response {
                response.record(times);
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
        *buffer.errors().entry((row, code.into())).or_default() += 1;
        // A failure is a completion too.
        if let Some(cells) = &buffer.rows[row as usize] {
            self.mark_outside_interval(&cells.failed_marks, end);
        }
        self.note_if_slow(row, start, end);
    }

    /// Counts an operation that failed at `at` without being issued to the target. It completes nothing
    /// there, so it does not interrupt a stall.
    #[cold]
    pub fn record_not_issued(&self, row: u32, at: Nanos, code: &str) {
        if self.roll_and_check(at) {
            let buffer = self.current.borrow();
            *buffer.errors().entry((row, code.into())).or_default() += 1;
        }
    }

    /// The number of operations of a row in the current interval and their mean service time in
    /// nanoseconds.
    #[must_use]
    pub fn current_interval_mean(&self, row: u32) -> (u64, Nanos) {
        let buffer = self.current.borrow();
        buffer.rows[row as usize].as_ref().map_or((0, 0), |cells| {
            let n = cells.service.count.load(Relaxed);
            let sum = cells.service.sum.load(Relaxed);
            (n, sum.checked_div(n).unwrap_or(0))
        })
    }

    /// Counts an operation that began at `start` as in flight when the latest window ends.
    #[cold]
    pub fn note_in_flight_at_end(&self, row: u32, start: Nanos) {
        let window = self.window.bounds();
        self.shared.notes.cut(window.number, row, start);
    }

    /// Notes an operation that returned at `end`, in no window, if the latest one ended while it
    /// was in flight.
    #[cold]
    fn note_if_in_flight_at_end(&self, row: u32, start: Nanos, end: Nanos) {
        let window = self.window.bounds();
        if window.number > 0 && start < window.end && end >= window.end {
            self.shared.notes.cut(window.number, row, start);
        }
    }

    fn note_if_slow(&self, row: u32, start: Nanos, end: Nanos) {
        if end.saturating_sub(start) >= SLOW_OPERATION_NS {
            self.note_slow(row, start, end);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_slow(&self, row: u32, start: Nanos, end: Nanos) {
        self.shared.notes.slow(row, start, end);
    }

    /// Marks a completion that may lie outside the current interval, if it does not.
    fn mark_outside_interval(&self, marks: &CompletionMarks, end: Nanos) {
        let base = self.interval_start.get();
        if (base..self.next_change_at.get()).contains(&end) {
            marks.mark(base, end, self.slot_shift);
        }
    }

    /// Notes that calls are abandoned; `at_end`: because the run is over. `silent_since` is the
    /// last reply of the server, if none came since the calls were made.
    pub fn note_abandoned_call(&self, at_end: bool, silent_since: Option<Nanos>) {
        self.is_abandoning.set(self.is_abandoning.get() || at_end);
        self.silent_since.set(silent_since);
    }

    /// Counts an operation that was in flight when the run ended and then failed as abandoned, if
    /// its calls were.
    pub fn count_failed_at_end(&self) {
        if self.is_abandoning.get() {
            bump(&self.shared.abandoned, 1);
            self.note_lost_to_silence();
        }
    }

    /// Whether the server of abandoned calls sent no reply since they were made.
    #[must_use]
    pub fn is_server_silent(&self) -> bool {
        self.silent_since.get().is_some()
    }

    /// Notes that an operation was lost because the server sent no reply, if it did not.
    pub fn note_lost_to_silence(&self) {
        if let Some(since) = self.silent_since.get() {
            self.shared.unanswered.fetch_max(since + 1, Relaxed);
        }
    }

    /// Delivers what is left. Called when the lane ends.
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

    /// Whether an operation that completed at `end` is measured.
    #[inline]
    fn roll_and_check(&self, end: Nanos) -> bool {
        if end >= self.next_change_at.get() || self.window.epoch() != self.epoch.get() {
            self.advance_interval(end);
        }
        self.is_measuring()
    }

    /// Goes on to the window and the interval of `now`, and delivers the buffer of the last one.
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

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn lane() -> (Arc<WindowState>, Recorder) {
        let window = Arc::new(WindowState::new(SECOND));
        let specs = [
            RowSpec {
                unused: false,
                paced: true,
            },
            RowSpec::default(),
            RowSpec {
                unused: true,
                paced: false,
            },
        ];
        let lane = Recorder::new(window.clone(), &specs);
        (window, lane)
    }

    fn record(lane: &Recorder, start: Nanos, end: Nanos) {
        lane.record(0, OpTimes::unpaced(start, end), 10);
    }

    /// The intervals that were delivered, each with its window, and the operations of row 0.
    fn delivered(lane: &Recorder) -> Vec<(u32, u64, u64)> {
        let of = |d: Delivery| {
            let ops = d.buffer.rows[0]
                .as_ref()
                .unwrap()
                .service
                .count
                .load(Relaxed);
            (d.window, d.interval, ops)
        };
        lane.shared.take().into_iter().map(of).collect()
    }

    #[test]
    fn windows_come_before_intervals_in_the_order_of_deliveries() {
        let places = [
            (0, 0),
            (0, 7),
            (0, NO_MORE_INTERVALS),
            (1, 0),
            (1, 5),
            (2, 0),
        ];
        assert!(
            places
                .map(|(window, interval)| packed(window, interval))
                .is_sorted()
        );
        assert_eq!(packed(3, 5) & NO_MORE_INTERVALS, 5);
        assert_eq!(packed(3, NO_MORE_INTERVALS) + 1, packed(4, 0));
        assert_eq!(packed(1, 0), 1 << 40);
    }

    #[test]
    fn a_lane_tells_how_far_it_has_come() {
        let (window, lane) = lane();
        let upto = |window| lane.shared.delivered_upto(window);
        assert_eq!(upto(1), 0);
        window.open(10 * SECOND, 20 * SECOND);
        for (end, reached) in [
            (5 * SECOND, 0),
            (10 * SECOND, 0),
            (11 * SECOND - 1, 0),
            (11 * SECOND, 1),
            (13 * SECOND + 5, 3),
            (20 * SECOND - 1, 9),
            (20 * SECOND, NO_MORE_INTERVALS),
        ] {
            record(&lane, end - 1, end);
            assert_eq!((upto(1), upto(2)), (reached, 0), "{end}");
        }
        let each = [(1, 0, 2), (1, 1, 1), (1, 3, 1), (1, 9, 1)];
        assert_eq!(delivered(&lane), each);
        window.open(30 * SECOND, 40 * SECOND);
        record(&lane, 31 * SECOND, 31 * SECOND);
        assert_eq!((upto(1), upto(2)), (1, 1));
        lane.finish();
        assert_eq!(upto(7), u64::MAX);
        assert_eq!(delivered(&lane), [(2, 1, 1)]);
        // Nothing is left to deliver.
        lane.finish();
        assert_eq!(delivered(&lane), []);
    }

    #[test]
    fn few_buffers_are_kept_and_they_are_empty() {
        let (window, lane) = lane();
        window.open(0, Nanos::MAX);
        for second in 0..5 {
            record(&lane, second * SECOND, second * SECOND + 5);
            lane.record_error(0, second * SECOND, second * SECOND + 5, "EIO");
        }
        let full = lane.shared.take();
        assert_eq!(full.len(), 4);
        for (given, delivery) in (1..).zip(full) {
            assert!(!delivery.buffer.is_empty());
            lane.shared.give_back(delivery.buffer);
            assert_eq!(lane.shared.lock().spare.len(), given.min(SPARE_BUFFERS));
        }
        assert!(lane.shared.lock().spare.iter().all(|b| b.is_empty()));
        // They are used first.
        record(&lane, 6 * SECOND, 6 * SECOND);
        assert_eq!(lane.shared.lock().spare.len(), SPARE_BUFFERS - 1);
    }

    /// Ages at the end of the window of what was in flight then, and the times of what took long, of row 0.
    fn notes(window: &WindowState, lane: &Recorder) -> (Vec<(Nanos, u64)>, BusySpans) {
        let (mut ages, mut slow) = (
            vec![InFlightAges::default(); 3],
            vec![BusySpans::default(); 3],
        );
        lane.shared
            .take_notes(window.bounds(), &mut ages, &mut slow);
        (ages[0].counts(), slow.swap_remove(0))
    }

    #[test]
    fn what_the_end_of_a_window_cuts_was_in_flight() {
        let (window, lane) = lane();
        record(&lane, 0, 5);
        window.open(10, 1000);
        for (start, end) in [
            (5, 10),
            (900, 999),
            (990, 1000),
            (980, 1001),
            (1000, 1001),
            (1000, 1000),
        ] {
            record(&lane, start, end);
        }
        lane.record_error(0, 970, 1002, "EIO");
        lane.record_completed_at(0, 960, 1003, 0);
        lane.record_completed_at(0, 1000, 1004, 0);
        lane.note_in_flight_at_end(0, 950);
        let ages = [10, 20, 30, 40, 50].map(|age| (age, 1));
        assert_eq!(notes(&window, &lane).0, ages);
        assert_eq!(notes(&window, &lane).0, [], "they are forgotten");
    }

    #[test]
    fn an_operation_that_has_returned_is_in_flight_no_more() {
        let (window, lane) = lane();
        window.open(0, 10_000);
        let worker = lane.worker();
        worker.begin(0, 8192);
        assert_eq!(notes(&window, &lane).0, [(1808, 1)]);
        // It returned after the end, and its worker has not ended it yet.
        record(&lane, 8192, 10_001);
        assert_eq!(notes(&window, &lane).0, [(1808, 1)]);
        // One that began after the end.
        worker.begin(0, 10_240);
        assert_eq!(notes(&window, &lane).0, []);
        worker.begin(0, 9984);
        assert_eq!(notes(&window, &lane).0, [(16, 1)]);
    }

    #[test]
    fn notes_of_a_later_window_are_kept_for_it() {
        let (window, lane) = lane();
        window.open(0, 100);
        record(&lane, 90, 101);
        let first = window.bounds();
        window.open(200, 300);
        record(&lane, 280, 301);
        let ages_in = |bounds| {
            let (mut ages, mut slow) = (
                vec![InFlightAges::default(); 3],
                vec![BusySpans::default(); 3],
            );
            lane.shared.take_notes(bounds, &mut ages, &mut slow);
            ages[0].counts()
        };
        assert_eq!(ages_in(first), [(10, 1)]);
        assert_eq!(ages_in(window.bounds()), [(20, 1)]);
    }

    #[test]
    fn operations_of_a_second_are_long_ones() {
        let spans = |of: &dyn Fn(&Recorder, Nanos, Nanos)| {
            let (window, lane) = lane();
            window.open(0, 100 * SECOND);
            of(&lane, 0, SECOND - 1);
            of(&lane, 5 * SECOND, 6 * SECOND);
            of(&lane, 8 * SECOND, 10 * SECOND);
            notes(&window, &lane).1
        };
        let mut expected = BusySpans::default();
        for (from, to) in [(5, 6), (8, 10)] {
            expected.add(crate::Gap {
                from: from * SECOND,
                to: to * SECOND,
            });
        }
        assert_eq!(spans(&record), expected);
        assert_eq!(
            spans(&|lane, start, end| lane.record_error(0, start, end, "EIO")),
            expected
        );
        let later = |lane: &Recorder, start, end| lane.record_completed_at(0, start, end, 0);
        assert_eq!(spans(&later), expected);
    }

    #[test]
    fn what_completed_in_a_window_that_is_over_counts_in_it() {
        let (window, lane) = lane();
        window.open(0, 10 * SECOND);
        record(&lane, 0, 5);
        record(&lane, 11 * SECOND, 12 * SECOND);
        lane.record_completed_at(0, 9 * SECOND, 10 * SECOND - 1, 7);
        lane.record_completed_at(0, 9 * SECOND, 10 * SECOND - 1, 7);
        record(&lane, 12 * SECOND, 13 * SECOND);
        lane.finish();
        let ops: u64 = delivered(&lane).iter().map(|(_, _, ops)| ops).sum();
        assert_eq!(ops, 3);
        assert_eq!((lane.shared.ops(0), lane.shared.bytes(0)), (5, 44));
    }

    #[test]
    fn a_completion_takes_the_lane_to_its_interval_and_its_window() {
        let (window, lane) = lane();
        window.open(0, 10 * SECOND);
        lane.record_completed_at(0, 0, SECOND - 1, 0);
        lane.record_completed_at(0, 0, SECOND, 0);
        // The lane is in the second interval, and stays there.
        lane.record_completed_at(0, 0, 5, 0);
        window.open(20 * SECOND, 30 * SECOND);
        lane.record_completed_at(0, 20 * SECOND, 22 * SECOND, 0);
        lane.finish();
        assert_eq!(delivered(&lane), [(1, 0, 1), (1, 1, 2), (2, 2, 1)]);
    }

    #[test]
    fn errors_are_counted_by_row_and_code() {
        let (window, lane) = lane();
        window.open(0, 10 * SECOND);
        for _ in 0..3 {
            lane.record_error(0, 0, 5, "EIO");
            lane.record_not_issued(1, 6, "EBADF");
        }
        lane.record_not_issued(0, 7, "EIO");
        lane.record_error(1, 8, 10 * SECOND, "EIO");
        lane.record_not_issued(1, 10 * SECOND, "EIO");
        let all = lane.shared.take_all().0;
        let errors = all[0].buffer.errors().clone();
        let expected = [((0, "EIO".into()), 4), ((1, "EBADF".into()), 3)];
        assert_eq!(errors, expected.into());
    }

    #[test]
    fn the_mean_of_the_current_interval_is_that_of_its_operations() {
        let (window, lane) = lane();
        window.open(0, 10 * SECOND);
        assert_eq!(lane.current_interval_mean(0), (0, 0));
        for service in [10, 20, 61] {
            record(&lane, 100, 100 + service);
        }
        assert_eq!(lane.current_interval_mean(0), (3, 30));
        assert_eq!(
            (lane.current_interval_mean(1), lane.current_interval_mean(2)),
            ((0, 0), (0, 0))
        );
        record(&lane, SECOND, SECOND + 7);
        assert_eq!(lane.current_interval_mean(0), (1, 7));
    }

    #[test]
    fn calls_stay_abandoned_and_the_latest_reply_counts() {
        let (_, lane) = lane();
        lane.note_abandoned_call(true, None);
        lane.count_failed_at_end();
        lane.note_abandoned_call(false, Some(0));
        lane.count_failed_at_end();
        assert_eq!(
            (lane.shared.abandoned(), lane.shared.unanswered_since()),
            (2, Some(0))
        );
        for since in [9, 4] {
            lane.note_abandoned_call(false, Some(since));
            lane.note_lost_to_silence();
        }
        assert_eq!(
            (lane.shared.abandoned(), lane.shared.unanswered_since()),
            (2, Some(9))
        );
        lane.note_abandoned_call(false, None);
        assert!(!lane.is_server_silent());
    }

    #[test]
    fn completions_are_marked_in_their_slots_of_the_interval() {
        let (window, lane) = lane();
        let shift = slot_shift(SECOND);
        window.open(7 * SECOND, 20 * SECOND);
        let slot = |slot: u64| 9 * SECOND + (slot << shift);
        record(&lane, slot(3), slot(3));
        lane.record_completed_at(0, slot(5), slot(5) + 1, 0);
        // Of an interval before.
        lane.record_completed_at(0, 8 * SECOND, 8 * SECOND, 0);
        lane.record_error(0, slot(8), slot(8), "EIO");
        let all = lane.shared.take_all().1;
        let row = all.buffer.rows[0].as_ref().unwrap();
        let slots = |marks: &CompletionMarks| {
            let mut set = crate::SlotSet::default();
            set.add_marks(marks);
            let mut slots = Vec::new();
            set.for_each(|slot| slots.push(slot));
            slots
        };
        assert_eq!((all.window, all.interval), (1, 2));
        assert_eq!(
            (slots(&row.marks), slots(&row.failed_marks)),
            (vec![3, 5], vec![8])
        );
    }
}
