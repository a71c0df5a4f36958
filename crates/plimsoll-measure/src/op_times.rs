//! The times of one operation.

use crate::Nanos;

/// Maximum difference in nanoseconds between readings of one clock on different processors.
const MAX_CLOCK_SKEW_NS: Nanos = 1_000;

/// Intended start, start and end of one operation, all from the run's clock.
#[derive(Debug, Clone, Copy)]
pub struct OpTimes {
    /// Intended start of the operation by its schedule, in nanoseconds of the run's clock; `None` if the operation was
    /// not paced.
    pub intended: Option<Nanos>,
    /// Time at which the target was called, in nanoseconds of the run's clock.
    pub start: Nanos,
    /// Time at which the call of the target returned, in nanoseconds of the run's clock.
    pub end: Nanos,
}

impl OpTimes {
    /// Times of an operation without a schedule.
    #[inline(always)]
    #[must_use]
    pub fn unpaced(start: Nanos, end: Nanos) -> Self {
        Self {
            intended: None,
            start,
            end,
        }
    }

    /// Service time, from call to return, in nanoseconds.
    #[inline(always)]
    pub(crate) fn service(self) -> Nanos {
        debug_assert!(
            self.start <= self.end.saturating_add(MAX_CLOCK_SKEW_NS),
            "an operation returned before it was called: {self:?}"
        );
        self.end.saturating_sub(self.start)
    }

    /// Response time, from the intended start (or the call, without an intended start) to the return, in nanoseconds.
    #[inline(always)]
    pub(crate) fn response(self) -> Nanos {
        let from = self.intended.unwrap_or(self.start);
        debug_assert!(
            from <= self.end.saturating_add(MAX_CLOCK_SKEW_NS),
            "an operation returned before its intended start: {self:?}"
        );
        self.end.saturating_sub(from)
    }
}
