//! The times of one operation.

use crate::Nanos;

/// How far apart two readings of one clock on different processors may be.
const MAX_CLOCK_SKEW_NS: Nanos = 1_000;

/// The times of one operation, all of one clock.
#[derive(Debug, Clone, Copy)]
pub struct OpTimes {
    /// When the schedule meant it to start; `None` if it was not paced.
    pub intended: Option<Nanos>,
    /// When it was called.
    pub start: Nanos,
    /// When it returned.
    pub end: Nanos,
}

impl OpTimes {
    /// The times of an operation without a schedule.
    #[inline(always)]
    #[must_use]
    pub fn unpaced(start: Nanos, end: Nanos) -> Self {
        Self {
            intended: None,
            start,
            end,
        }
    }

    /// The time from call to return, in nanoseconds.
    #[inline(always)]
    pub(crate) fn service(self) -> Nanos {
        debug_assert!(
            self.start <= self.end.saturating_add(MAX_CLOCK_SKEW_NS),
            "an operation returned before it was called: {self:?}"
        );
        self.end.saturating_sub(self.start)
    }

    /// The time from the intended start, or from the call if there is none, to the return, in
    /// nanoseconds.
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
