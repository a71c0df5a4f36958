//! Operations in flight: the current operation of each worker, and the ages of operations cut by a window end.

use crate::call_spans::SharedCallSpans;
use crate::counts::{index_of, value_of};
use crate::{CallShape, Gap, Nanos, STALL_NS};
use plimsoll_runtime::sync::atomic::{AtomicU64, Ordering::Relaxed};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Current operation of a worker: written by the worker with plain stores, read by the controller at a window end, even
/// if the worker never returns.
#[derive(Default)]
#[repr(align(64))]
pub struct InFlight {
    /// Operation of the worker in flight: its row plus one in the lower [`ROW_BITS`] bits, its start in the upper bits;
    /// 0 between two operations.
    word: AtomicU64,
    /// Work per call of the operation: bytes in the lower [`BYTES_BITS`], binary logarithm of the number of calls
    /// above.
    work: AtomicU64,
    /// Time of the operation's latest call completion; not after the operation's start if no call has completed.
    last_sign: AtomicU64,
    /// Beginning of the latest period in which calls of the operation completed less than [`STALL_NS`] apart.
    signs_since: AtomicU64,
    /// Call spans of the lane; `None` for a worker that is not measured.
    spans: Option<Arc<SharedCallSpans>>,
}

// Each worker has a separate cache line, which only the controller reads concurrently.
#[cfg(not(loom))]
const _: () = assert!(size_of::<InFlight>() == 64);

/// Number of bits of `InFlight::word` for the row's number plus one.
const ROW_BITS: u32 = 16;

/// Starts are stored in units of 256 ns, rounded up.
const UNIT_BITS: u32 = 8;

/// Bits of the number of bytes of a call.
const BYTES_BITS: u32 = 56;

/// Maximum stored number of bytes of a call; larger calls are stored with this size.
const MAX_CALL_BYTES: u64 = (1 << BYTES_BITS) - 1;

/// Starts are stored modulo this number of units: 2.3 years, which only virtual time can reach.
const UNITS: u64 = 1 << (u64::BITS - ROW_BITS);

/// Length in nanoseconds of the period in which a stored start is unambiguous.
const START_SPAN_NS: Nanos = UNITS << UNIT_BITS;

/// Maximum number of units by which a start may be after the time of reading.
const MAX_UNITS_AHEAD: u64 = UNITS / 16;

impl InFlight {
    /// State of a worker without an operation in flight, in a lane with the call spans `spans`.
    pub(crate) fn of_lane(spans: Arc<SharedCallSpans>) -> Self {
        Self {
            spans: Some(spans),
            ..Self::default()
        }
    }

    /// Declares that the next operation makes one call that moves `bytes`. Operations without a declaration move no
    /// bytes.
    #[inline(always)]
    pub fn plan(&self, bytes: u64) {
        self.work.store(bytes.min(MAX_CALL_BYTES), Relaxed);
    }

    /// Declares that the next operation makes `calls` calls that move `bytes` each.
    pub fn plan_calls(&self, calls: u64, bytes: u64) {
        let calls = u64::from(calls.max(1).ilog2());
        self.work
            .store(calls << BYTES_BITS | bytes.min(MAX_CALL_BYTES), Relaxed);
    }

    /// Records that an operation of a row began at `start`.
    #[inline(always)]
    pub fn begin(&self, row: u32, start: Nanos) {
        debug_assert!(row < (1 << ROW_BITS) - 1, "a Plan has fewer rows");
        self.word.store(Self::word(row, start), Relaxed);
    }

    /// Records that a call of the operation completed at `now` and another call follows: a sign of life of the target.
    #[inline(always)]
    pub fn call_completed(&self, now: Nanos) {
        let last = self.last_sign.load(Relaxed);
        // Starts are stored modulo their period: a sign within half a period after the start belongs to this operation.
        let start = self.word.load(Relaxed) >> ROW_BITS << UNIT_BITS;
        let after = last.wrapping_sub(start) % START_SPAN_NS;
        if (1..START_SPAN_NS / 2).contains(&after) && now < last + STALL_NS {
            self.last_sign.store(now, Relaxed);
        } else {
            self.first_or_long_call(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn first_or_long_call(&self, now: Nanos) {
        self.note_long(now);
        self.signs_since.store(now, Relaxed);
        self.last_sign.store(now, Relaxed);
    }

    /// Records the latest call, if long, and the signs of life of an operation whose last call completed at `end`. Must
    /// be called before an operation of [`STALL_NS`] or more is recorded.
    #[cold]
    #[inline(never)]
    pub fn note_long(&self, end: Nanos) {
        let (Some(current), Some(spans)) = (self.read(end), &self.spans) else {
            return;
        };
        let from = current.silent_since();
        if end < from + STALL_NS && current.signs.is_none() {
            return;
        }
        let mut spans = spans.lock();
        if end >= from + STALL_NS {
            let gap = Gap { from, to: end };
            spans.add_long(current.row, current.shape, gap);
        }
        if let Some(signs) = current.signs {
            spans.add_signs(signs);
        }
    }

    #[inline(always)]
    fn word(row: u32, start: Nanos) -> u64 {
        let units = (start + (1 << UNIT_BITS) - 1) >> UNIT_BITS;
        units << ROW_BITS | u64::from((row as u16).wrapping_add(1))
    }

    /// Whether the current operation may be the operation of this row that began at `start`.
    pub(crate) fn holds(&self, row: u32, start: Nanos) -> bool {
        self.word.load(Relaxed) == Self::word(row, start)
    }

    /// Records that the operation has returned.
    #[inline(always)]
    pub fn end(&self) {
        self.word.store(0, Relaxed);
        self.work.store(0, Relaxed);
    }

    /// Row of the current operation; `None` between two operations.
    #[inline]
    #[must_use]
    pub fn row(&self) -> Option<u32> {
        row_of(self.word.load(Relaxed))
    }

    /// Time of the operation's latest call completion that was followed by another call; `None` if no call was followed
    /// by another call. `now` is the current time of the run.
    #[must_use]
    pub fn last_sign(&self, now: Nanos) -> Option<Nanos> {
        Some(self.read(now)?.signs?.to)
    }

    /// Current operation; `None` between two operations. Shape and signs may belong to a later operation if the worker
    /// is quick. `now` is a time of the run, at most 2.1 years after the start of the operation and at most two months
    /// before; for an older operation the returned start is too late.
    pub(crate) fn read(&self, now: Nanos) -> Option<CurrentOp> {
        let word = self.word.load(Relaxed);
        let row = row_of(word)?;
        let last = (now >> UNIT_BITS) + MAX_UNITS_AHEAD;
        let back = last.wrapping_sub(word >> ROW_BITS) % UNITS;
        let start = last.saturating_sub(back) << UNIT_BITS;
        let work = self.work.load(Relaxed);
        let signs = Gap {
            from: self.signs_since.load(Relaxed),
            to: self.last_sign.load(Relaxed),
        };
        Some(CurrentOp {
            row,
            start,
            shape: CallShape::new(work & MAX_CALL_BYTES, 1 << (work >> BYTES_BITS)),
            signs: (signs.to > start).then_some(signs),
        })
    }
}

/// Operation in flight of a worker, as read by another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CurrentOp {
    pub(crate) row: u32,
    pub(crate) start: Nanos,
    /// Shape of the operation's current call: bytes, and number of calls of the operation.
    pub(crate) shape: CallShape,
    /// Latest period in which calls of the operation completed; `None` if no call has completed.
    pub(crate) signs: Option<Gap>,
}

impl CurrentOp {
    /// Start of the operation's current call: the latest completion of a call, or the start of the operation.
    pub(crate) fn silent_since(&self) -> Nanos {
        self.signs.map_or(self.start, |signs| signs.to)
    }
}

fn row_of(word: u64) -> Option<u32> {
    let row = (word & ((1 << ROW_BITS) - 1)).checked_sub(1)?;
    Some(row as u32)
}

/// Ages of the operations in flight at a window end, to three significant digits: censored observations, because each
/// operation takes at least as long as its age.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlightAges {
    counts: BTreeMap<Nanos, u64>,
    oldest: Nanos,
}

impl InFlightAges {
    /// Adds an operation in flight that has lasted `age` nanoseconds.
    pub fn add(&mut self, age: Nanos) {
        *self.counts.entry(value_of(index_of(age))).or_default() += 1;
        self.oldest = self.oldest.max(age);
    }

    /// Adds the ages of another window, lane or rank.
    pub fn merge(&mut self, other: &Self) {
        for (age, n) in &other.counts {
            *self.counts.entry(*age).or_default() += n;
        }
        self.oldest = self.oldest.max(other.oldest);
    }

    /// Number of operations in flight, of all ages together.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Age of the oldest operation in nanoseconds, exact; 0 without operations.
    #[must_use]
    pub fn oldest(&self) -> Nanos {
        self.oldest
    }

    /// Ages in nanoseconds in increasing order, with the number of operations of each age.
    #[must_use]
    pub fn counts(&self) -> Vec<(Nanos, u64)> {
        self.counts.iter().map(|(age, n)| (*age, *n)).collect()
    }
}

/// A quantile over completed operations and operations in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// Latency at the quantile in nanoseconds; a lower bound if `is_lower_bound`.
    pub ns: Nanos,
    /// Whether the true quantile may be greater, because only operations in flight are as old as `ns`.
    pub is_lower_bound: bool,
}

impl Quantile {
    pub(crate) fn known(ns: Nanos) -> Self {
        Self {
            ns,
            is_lower_bound: false,
        }
    }

    pub(crate) fn at_least(ns: Nanos) -> Self {
        Self {
            ns,
            is_lower_bound: true,
        }
    }
}

/// Latency that a fraction `q` (0 to 1) of all operations does not exceed, by the product-limit estimator (Kaplan and
/// Meier 1958, in the form of Efron 1967: the mass of a censored observation is distributed equally to all observations
/// that are larger, here also to equal observations). `None` if only censored observations reach the quantile, which is
/// then at least the largest censored observation.
///
/// `completed` and `ages` are values in increasing order with their numbers of occurrences.
pub fn censored_quantile(
    completed: impl Iterator<Item = (Nanos, u64)>,
    ages: &[(Nanos, u64)],
    count: u64,
    q: f64,
) -> Option<Nanos> {
    /// Tolerance of `fraction`: above the rounding errors of the sum, and below the fraction of one operation.
    const ROUNDING: f64 = 1e-12;
    let mut ages = ages.iter().peekable();
    let censored: u64 = ages.clone().map(|(_, n)| n).sum();
    let mut left = (count + censored) as f64;
    let mut weight = 1.0 / left;
    let mut fraction = 0.0;
    for (value, n) in completed {
        while let Some((_, cut)) = ages.next_if(|(age, _)| *age <= value) {
            let cut = *cut as f64;
            // At least one completed operation is left, so `left` exceeds `cut`.
            weight *= left / (left - cut);
            left -= cut;
        }
        fraction += weight * n as f64;
        left -= n as f64;
        if fraction >= q - ROUNDING {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_operation_is_seen_while_it_is_under_way() {
        let slot = InFlight::default();
        let read = |now| slot.read(now).map(|current| (current.row, current.start));
        assert_eq!(read(5000), None);
        slot.begin(3, 1024);
        assert_eq!((read(5000), slot.row()), (Some((3, 1024)), Some(3)));
        // The start 1025 is stored rounded up to 1280, so that no operation appears older than the operation is.
        slot.begin(0, 1025);
        assert_eq!(read(5000), Some((0, 1280)));
        assert!(slot.holds(0, 1025) && slot.holds(0, 1280));
        assert!(!slot.holds(1, 1025) && !slot.holds(0, 1281) && !slot.holds(0, 1024));
        slot.end();
        assert_eq!((read(5000), slot.row()), (None, None));
        // The run lasts for centuries, and the row is the last row: an operation may be two years old, and may have
        // begun a month after `now`.
        const DAY: Nanos = 86_400_000_000_000;
        for day in [0, 800, 900, 100_000] {
            let start = (day * DAY).next_multiple_of(256);
            slot.begin(65_534 - 1, start);
            for now in [start, start + 700 * DAY, start.saturating_sub(30 * DAY)] {
                assert_eq!(read(now), Some((65_533, start)), "day {day}");
            }
        }
    }

    #[test]
    fn ages_keep_three_digits_and_the_oldest_exactly() {
        let mut ages = InFlightAges::default();
        [5, 8_700_000_123, 5].into_iter().for_each(|a| ages.add(a));
        assert_eq!((ages.count(), ages.oldest()), (3, 8_700_000_123));
        assert_eq!(ages.counts()[0], (5, 2));
        assert!(ages.counts()[1].0 <= 8_700_000_123 && ages.counts()[1].0 > 8_690_000_000);
        let mut others = InFlightAges::default();
        [5, 7].into_iter().for_each(|a| others.add(a));
        others.merge(&ages);
        assert_eq!((others.count(), others.oldest()), (5, 8_700_000_123));
        assert_eq!(others.counts()[..2], [(5, 3), (7, 1)]);
    }

    /// The example of the estimator's authors: deaths at 0.8, 3.1, 5.4 and 9.2, losses at 1.0, 2.7,
    /// 7.0 and 12.1 months; the shares that survive are 0.875, 0.7, 0.525 and 0.2625.
    #[test]
    fn shares_are_those_of_kaplan_and_meier() {
        let deaths = [(8, 1), (31, 1), (54, 1), (92, 1)];
        let losses = [(10, 1), (27, 1), (70, 1), (121, 1)];
        let at = |q| censored_quantile(deaths.into_iter(), &losses, 4, q);
        for (q, value) in [
            (0.125, Some(8)),
            (0.126, Some(31)),
            (0.3, Some(31)),
            (0.475, Some(54)),
            (0.5, Some(92)),
            (0.7375, Some(92)),
            (0.738, None),
        ] {
            assert_eq!(at(q), value, "{q}");
        }
    }

    /// The estimator by definition: each observation has the same mass, and the mass of a censored observation is
    /// distributed equally to all larger observations.
    fn quantile_by_masses(completed: &[u64], ages: &[u64], q: f64) -> Option<u64> {
        let completions = completed.iter().map(|value| (*value, true));
        let mut all: Vec<(u64, bool)> = completions
            .chain(ages.iter().map(|age| (*age, false)))
            .collect();
        // At equal times, censored observations come before completions.
        all.sort_unstable();
        let mut mass = vec![1.0 / all.len() as f64; all.len()];
        for i in 0..all.len() {
            if !all[i].1 {
                let behind = (all.len() - i - 1) as f64;
                let part = mass[i] / behind;
                mass[i + 1..].iter_mut().for_each(|m| *m += part);
                mass[i] = 0.0;
            }
        }
        let mut sum = 0.0;
        let mut behind = all
            .iter()
            .zip(&mass)
            .filter(|((_, is_complete), _)| *is_complete);
        let (found, _) = behind.find(|(_, mass)| {
            sum += **mass;
            sum >= q - 1e-9
        })?;
        Some(found.0)
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_masses(
            mut samples in prop::collection::vec(1u64..12, 1..30),
            mut ages in prop::collection::vec(1u64..12, 0..30),
            percent in 1u32..=100,
        ) {
            // The quantile is not a multiple of an operation's mass, so that rounding errors do not change the result.
            let q = f64::from(percent) / 100.0 - 0.003_141_59;
            samples.sort_unstable();
            ages.sort_unstable();
            let counted = |values: &[u64]| -> Vec<(u64, u64)> {
                let groups = values.chunk_by(|a, b| a == b);
                groups.map(|group| (group[0], group.len() as u64)).collect()
            };
            let count = samples.len() as u64;
            let got = censored_quantile(counted(&samples).into_iter(), &counted(&ages), count, q);
            prop_assert_eq!(got, quantile_by_masses(&samples, &ages, q));
        }

        #[test]
        fn what_is_censored_makes_no_percentile_smaller(
            mut samples in prop::collection::vec(1u64..1000, 1..50),
            mut ages in prop::collection::vec(1u64..1000, 0..50),
            q in 0.01f64..=1.0,
        ) {
            samples.sort_unstable();
            ages.sort_unstable();
            let once = |v: &[u64]| v.iter().map(|x| (*x, 1)).collect::<Vec<_>>();
            let (samples, ages) = (once(&samples), once(&ages));
            let n = samples.len() as u64;
            let plain = censored_quantile(samples.iter().copied(), &[], n, q);
            let rank = ((q * n as f64 - 1e-9).ceil() as usize).max(1);
            prop_assert_eq!(plain, Some(samples[rank - 1].0));
            if let Some(value) = censored_quantile(samples.iter().copied(), &ages, n, q) {
                prop_assert!(Some(value) >= plain);
            }
        }
    }
}
