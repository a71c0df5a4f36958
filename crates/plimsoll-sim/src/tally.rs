//! Cumulative sums of stations; figures of a window are differences.

use plimsoll_measure::Nanos;

/// Sums over the operations and the time of a station instance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Virtual time of the last change of the sums, in nanoseconds.
    changed_at: Nanos,
    present: u32,
    busy: u32,
    /// Time integral of the number of operations present at the station, in nanoseconds.
    present_ns: u128,
    /// Time integral of the number of busy servers, in nanoseconds.
    busy_ns: u128,
    /// Sum of the arrival times of the operations present, in nanoseconds.
    present_since: u128,
    completed: u64,
    /// Sum of the times from arrival to departure of the departed operations, in nanoseconds.
    residence_ns: u128,
    most_waiting: u32,
}

/// Sums over the operations and the time of a station, or of one instance, between two instants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StationTotals {
    /// Number of operations that departed after their service at the station; interrupted operations are not counted.
    pub completed: u64,
    /// Time integral of the number of operations present at the station, in nanoseconds.
    pub present_ns: u128,
    /// Time integral of the number of busy servers, in nanoseconds.
    pub busy_ns: u128,
    /// Sum of the times from arrival to departure of the departed operations, in nanoseconds.
    pub residence_ns: u128,
    /// Maximum number of operations that waited at one instance of the station at a time.
    pub max_waiting: u32,
}

impl StationTotals {
    /// Adds the figures of another instance for the same period.
    pub(crate) fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.present_ns += other.present_ns;
        self.busy_ns += other.busy_ns;
        self.residence_ns += other.residence_ns;
        self.max_waiting = self.max_waiting.max(other.max_waiting);
    }

    /// Figures since `before`, which belong to the same station.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            completed: self.completed - before.completed,
            present_ns: self.present_ns - before.present_ns,
            busy_ns: self.busy_ns - before.busy_ns,
            residence_ns: self.residence_ns - before.residence_ns,
            max_waiting: self.max_waiting,
        }
    }
}

impl Tally {
    #[inline]
    fn advance(&mut self, now: Nanos) {
        debug_assert!(now >= self.changed_at, "virtual time only goes forward");
        let elapsed = u128::from(now - self.changed_at);
        self.present_ns += elapsed * u128::from(self.present);
        self.busy_ns += elapsed * u128::from(self.busy);
        self.changed_at = now;
    }

    /// Number of operations at the instance, waiting or in service.
    #[inline]
    pub(crate) fn present(&self) -> u32 {
        self.present
    }

    /// Counts an arrival, after which `busy` servers are working.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Nanos, busy: u32) {
        self.advance(now);
        self.present += 1;
        self.present_since += u128::from(now);
        self.set_busy(busy);
    }

    /// Counts a departure of an operation that arrived at `since`, after which `busy` servers are working.
    #[inline]
    pub(crate) fn depart(&mut self, now: Nanos, since: Nanos, busy: u32) {
        self.advance(now);
        debug_assert!(self.present > 0, "an operation departs that never arrived");
        self.present -= 1;
        self.present_since -= u128::from(since);
        self.completed += 1;
        self.residence_ns += u128::from(now - since);
        self.set_busy(busy);
    }

    /// Counts an operation that arrived at `since` and leaves unserved; all servers become idle.
    pub(crate) fn abandon(&mut self, now: Nanos, since: Nanos) {
        let most_waiting = self.most_waiting;
        self.depart(now, since, 0);
        self.completed -= 1;
        // Operations that leave together are not counted as waiting.
        self.most_waiting = most_waiting;
    }

    fn set_busy(&mut self, busy: u32) {
        debug_assert!(
            busy <= self.present,
            "a server without an operation is idle"
        );
        self.busy = busy;
        self.most_waiting = self.most_waiting.max(self.present - busy);
    }

    /// The sums up to now.
    ///
    /// # Panics
    /// If Little's law does not hold: the integral of the number of operations present must equal the total time of all
    /// departed and present operations at the instance.
    pub(crate) fn totals(&self, now: Nanos) -> StationTotals {
        let mut at = *self;
        at.advance(now);
        let waited = u128::from(now) * u128::from(at.present) - at.present_since;
        assert!(
            at.present_ns == at.residence_ns + waited,
            "Little's law: {} ns in the system, {} ns of operations",
            at.present_ns,
            at.residence_ns + waited
        );
        StationTotals {
            completed: at.completed,
            present_ns: at.present_ns,
            busy_ns: at.busy_ns,
            residence_ns: at.residence_ns,
            max_waiting: at.most_waiting,
        }
    }

    /// Restarts the maximum number of waiting operations at the start of a window.
    pub(crate) fn begin_window(&mut self) {
        self.most_waiting = self.present - self.busy;
    }
}
