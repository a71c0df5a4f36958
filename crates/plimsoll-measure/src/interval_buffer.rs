//! What a lane recorded in one interval: counters that one thread writes and any may read.

use crate::Nanos;
use crate::completions::{CompletionMarks, Completions};
use crate::counts::{Counts, bump};
use crate::latency::{ErrorCode, OpTotals};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What is recorded of a row (an operation) of the results.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowSpec {
    /// This lane never does it: nothing is set aside.
    pub unused: bool,
    /// It may be paced, so response times are kept too. The same in all lanes that do it.
    pub paced: bool,
}

/// One operation in one interval. What every operation reads and writes lies in one cache line.
#[repr(C, align(64))]
pub(crate) struct RowBuffer {
    pub(crate) bytes: AtomicU64,
    pub(crate) service: Counts,
    pub(crate) response: Option<Box<ResponseBuffer>>,
    /// When operations completed; a cache line of its own.
    pub(crate) marks: CompletionMarks,
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) cpu_samples: AtomicU64,
}

const _: () = assert!(std::mem::offset_of!(RowBuffer, response) < 64);

/// Response times of an operation that may be paced.
pub(crate) struct ResponseBuffer {
    /// From the intended start, or from the call of an operation that has none.
    pub(crate) times: Counts,
    /// Operations that had an intended start.
    pub(crate) paced: AtomicU64,
}

impl ResponseBuffer {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            times: Counts::new(),
            paced: AtomicU64::new(0),
        })
    }

    #[inline]
    pub(crate) fn record(&self, start: Nanos, end: Nanos, intended: Option<Nanos>) {
        debug_assert!(intended.is_none_or(|i| i <= end), "done before it was due");
        self.times
            .record(end.saturating_sub(intended.unwrap_or(start)));
        bump(&self.paced, u64::from(intended.is_some()));
    }
}

/// All operations of a lane in one interval.
pub(crate) struct IntervalBuffer {
    pub(crate) rows: Box<[Option<RowBuffer>]>,
    pub(crate) errors: Mutex<BTreeMap<(u32, ErrorCode), u64>>,
}

impl IntervalBuffer {
    pub(crate) fn new(specs: &[RowSpec]) -> Self {
        let row = |s: &RowSpec| {
            (!s.unused).then(|| RowBuffer {
                bytes: AtomicU64::new(0),
                cpu_ns: AtomicU64::new(0),
                cpu_samples: AtomicU64::new(0),
                service: Counts::new(),
                response: s.paced.then(ResponseBuffer::new),
                marks: CompletionMarks::default(),
            })
        };
        Self {
            rows: specs.iter().map(row).collect(),
            errors: Mutex::default(),
        }
    }

    /// Adds everything to `totals`, which has one entry a row.
    pub(crate) fn add_to(&self, totals: &mut [OpTotals]) {
        for (row, total) in self.rows.iter().zip(totals.iter_mut()) {
            let Some(row) = row else { continue };
            total.ops += row.service.count.load(Relaxed);
            total.bytes += row.bytes.load(Relaxed);
            total.cpu_ns += row.cpu_ns.load(Relaxed);
            total.cpu_samples += row.cpu_samples.load(Relaxed);
            total.service.add_counts(&row.service);
            if let Some(response) = &row.response {
                total.response.add_counts(&response.times);
                total.paced += response.paced.load(Relaxed);
            }
        }
        for ((row, code), n) in self
            .errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            *totals[*row as usize]
                .errors
                .entry(code.clone())
                .or_default() += n;
        }
    }

    /// Adds when its operations completed.
    pub(crate) fn add_marks_to(&self, completions: &mut Completions) {
        for (row, slots) in self.rows.iter().zip(&mut completions.rows) {
            if let Some(row) = row {
                slots.add_marks(&row.marks);
            }
        }
    }

    /// Whether nothing was recorded in it.
    pub(crate) fn is_empty(&self) -> bool {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = self.rows.iter().flatten();
        errors.is_empty() && rows.all(|row| row.service.count.load(Relaxed) == 0)
    }

    pub(crate) fn clear(&self) {
        for row in self.rows.iter().flatten() {
            row.bytes.store(0, Relaxed);
            row.cpu_ns.store(0, Relaxed);
            row.cpu_samples.store(0, Relaxed);
            row.service.clear();
            row.marks.clear();
            if let Some(response) = &row.response {
                response.times.clear();
                response.paced.store(0, Relaxed);
            }
        }
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}
