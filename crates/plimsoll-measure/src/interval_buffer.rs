//! Records of a lane in one interval: counters written by one thread and readable by any thread.

use crate::OpTimes;
use crate::completions::{CompletionMarks, Completions};
use crate::counts::{Counts, bump};
use crate::latency::{ErrorCode, OpTotals};
use crate::upper_half::UpperHalf;
use plimsoll_runtime::sync::atomic::{AtomicU64, Ordering::Relaxed};
use plimsoll_runtime::sync::{Mutex, MutexGuard, lock};
use std::collections::BTreeMap;

/// Recording options of a row (an operation) of the results in a lane.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowSpec {
    /// The lane never executes the operation: no memory is allocated.
    pub unused: bool,
    /// The operation may be paced, so response times are kept, too. Must be equal in all lanes that execute the
    /// operation.
    pub paced: bool,
}

impl RowSpec {
    /// Maximum address space in bytes of the row's histograms in a lane.
    #[must_use]
    pub fn address_space(&self) -> u64 {
        // One buffer is being written; the other buffers are spare or delivered.
        let buffers = 1 + crate::recorder::SPARE_BUFFERS as u64;
        match self.unused {
            true => 0,
            false => buffers * Counts::address_space() * (1 + u64::from(self.paced)),
        }
    }
}

/// Records of one operation in one interval. The fields used by every operation share a cache line.
#[repr(C, align(64))]
pub(crate) struct RowBuffer {
    pub(crate) response: Option<Box<ResponseBuffer>>,
    /// Lower 64 bits of the number of bytes that the operations moved; `bytes_upper` has the upper bits.
    bytes: AtomicU64,
    pub(crate) service: Counts,
    bytes_upper: UpperHalf,
    /// Slots of the interval in which operations succeeded, in a separate cache line.
    pub(crate) marks: CompletionMarks,
    /// Slots of the interval in which operations failed.
    pub(crate) failed_marks: CompletionMarks,
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) cpu_ops: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(std::mem::offset_of!(RowBuffer, service.max) < 64);

impl RowBuffer {
    #[inline(always)]
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes_upper.add(&self.bytes, bytes);
    }
}

/// Response times of an operation that may be paced.
pub(crate) struct ResponseBuffer {
    /// Response times from the intended start, or from the call of an operation without intended start.
    times: Counts,
    /// Number of operations with an intended start.
    paced: AtomicU64,
}

impl ResponseBuffer {
    fn new() -> Box<Self> {
        Box::new(Self {
            times: Counts::new(),
            paced: AtomicU64::new(0),
        })
    }

    #[inline]
    pub(crate) fn record(&self, times: OpTimes) {
        self.times.record(times.response());
        bump(&self.paced, u64::from(times.intended.is_some()));
    }
}

type ErrorCounts = BTreeMap<(u32, ErrorCode), u64>;

/// Records of all operations of a lane in one interval.
pub(crate) struct IntervalBuffer {
    pub(crate) rows: Box<[Option<RowBuffer>]>,
    errors: Mutex<ErrorCounts>,
}

impl IntervalBuffer {
    pub(crate) fn new(specs: &[RowSpec]) -> Self {
        let row = |s: &RowSpec| {
            (!s.unused).then(|| RowBuffer {
                bytes: AtomicU64::new(0),
                bytes_upper: UpperHalf::default(),
                cpu_ns: AtomicU64::new(0),
                cpu_ops: AtomicU64::new(0),
                service: Counts::new(),
                response: s.paced.then(ResponseBuffer::new),
                marks: CompletionMarks::default(),
                failed_marks: CompletionMarks::default(),
            })
        };
        Self {
            rows: specs.iter().map(row).collect(),
            errors: Mutex::default(),
        }
    }

    /// Number of failed operations, by row and error.
    pub(crate) fn errors(&self) -> MutexGuard<'_, ErrorCounts> {
        lock(&self.errors)
    }

    /// Adds all records to `totals`, which has one entry per row. Returns the number of operations.
    pub(crate) fn add_to(&self, totals: &mut [OpTotals]) -> u64 {
        assert_eq!(
            self.rows.len(),
            totals.len(),
            "all lanes have the same rows"
        );
        let mut all = 0;
        for (row, total) in self.rows.iter().zip(totals.iter_mut()) {
            let Some(row) = row else { continue };
            let ops = row.service.count.load(Relaxed);
            all += ops;
            total.ops += ops;
            total.bytes += row.bytes_upper.sum(&row.bytes);
            total.cpu_ns += row.cpu_ns.load(Relaxed);
            total.cpu_ops += row.cpu_ops.load(Relaxed);
            total.service.add_counts(&row.service);
            if let Some(response) = &row.response {
                total.response.add_counts(&response.times);
                total.paced += response.paced.load(Relaxed);
            }
        }
        for ((row, code), n) in self.errors().iter() {
            *totals[*row as usize]
                .errors
                .entry(code.clone())
                .or_default() += n;
        }
        all
    }

    /// Adds the slots of each row in which operations succeeded or failed.
    pub(crate) fn add_marks_to(&self, completions: &mut Completions) {
        let slots = completions.rows.iter_mut().zip(&mut completions.failed);
        for (row, (done, failed)) in self.rows.iter().zip(slots) {
            if let Some(row) = row {
                done.add_marks(&row.marks);
                failed.add_marks(&row.failed_marks);
            }
        }
    }

    /// Whether the buffer has no record of an operation, successful or failed.
    pub(crate) fn is_empty(&self) -> bool {
        let mut rows = self.rows.iter().flatten();
        self.errors().is_empty() && rows.all(|row| row.service.count.load(Relaxed) == 0)
    }

    /// Whether the histograms of each row have as many latencies as the row has operations, as after every delivery.
    pub(crate) fn is_consistent(&self) -> bool {
        self.rows.iter().flatten().all(|row| {
            let ops = row.service.count.load(Relaxed);
            let times = row.response.as_ref().map(|r| &r.times);
            row.service.bucket_sum() == ops && times.is_none_or(|t| t.bucket_sum() == ops)
        })
    }

    pub(crate) fn clear(&self) {
        for row in self.rows.iter().flatten() {
            row.bytes_upper.clear(&row.bytes);
            row.cpu_ns.store(0, Relaxed);
            row.cpu_ops.store(0, Relaxed);
            row.service.clear();
            row.marks.clear();
            row.failed_marks.clear();
            if let Some(response) = &row.response {
                response.times.clear();
                response.paced.store(0, Relaxed);
            }
        }
        self.errors().clear();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn buffer() -> IntervalBuffer {
        let paced = RowSpec {
            unused: false,
            paced: true,
        };
        let unused = RowSpec {
            unused: true,
            paced: false,
        };
        IntervalBuffer::new(&[paced, unused, RowSpec::default()])
    }

    #[test]
    fn a_buffer_is_empty_until_something_succeeds_or_fails() {
        let failed = buffer();
        assert!(failed.is_empty());
        failed.errors().insert((0, "EIO".into()), 1);
        assert!(!failed.is_empty());
        let succeeded = buffer();
        succeeded.rows[2].as_ref().unwrap().service.record(5);
        assert!(!succeeded.is_empty());
        for buffer in [failed, succeeded] {
            buffer.clear();
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn counts_agree_if_each_operation_is_in_a_bucket_of_both_distributions() {
        let of = |service: u64, counted: u64, response: u64| {
            let buffer = buffer();
            let row = buffer.rows[0].as_ref().unwrap();
            (0..service).for_each(|_| row.service.record(5));
            bump(&row.service.count, counted);
            let times = OpTimes::unpaced(0, 5);
            (0..response).for_each(|_| row.response.as_ref().unwrap().record(times));
            buffer.is_consistent()
        };
        assert!(of(0, 0, 0) && of(2, 0, 2));
        assert!(!of(2, 1, 2) && !of(2, 0, 1) && !of(2, 1, 3));
    }

    #[test]
    fn buffers_add_up() {
        let buffer = buffer();
        for (row, samples) in [(0, &[5, 7][..]), (2, &[20][..])] {
            let row = buffer.rows[row].as_ref().unwrap();
            samples.iter().for_each(|s| row.service.record(*s));
            row.add_bytes(100);
            bump(&row.cpu_ns, 30);
            bump(&row.cpu_ops, 4);
        }
        let response = buffer.rows[0].as_ref().unwrap().response.as_ref().unwrap();
        let paced = OpTimes {
            intended: Some(1),
            start: 4,
            end: 11,
        };
        response.record(paced);
        response.record(OpTimes::unpaced(4, 11));
        buffer.errors().insert((2, "EIO".into()), 6);
        let mut totals = vec![OpTotals::default(); 3];
        for times in 1..=2 {
            assert_eq!(buffer.add_to(&mut totals), 3);
            let figures = |t: &OpTotals| (t.ops, t.bytes as u64, t.cpu_ns, t.cpu_ops, t.paced);
            assert_eq!(
                figures(&totals[0]),
                (2 * times, 100 * times, 30 * times, 4 * times, times)
            );
            assert_eq!(
                figures(&totals[2]),
                (times, 100 * times, 30 * times, 4 * times, 0)
            );
            assert_eq!(totals[2].errors, [("EIO".into(), 6 * times)].into());
        }
        assert_eq!(totals[0].response, crate::Latency::of([10, 7, 10, 7]));
        assert_eq!(totals[1], OpTotals::default());
    }
}
