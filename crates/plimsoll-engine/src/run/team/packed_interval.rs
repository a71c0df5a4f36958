//! Intervals of a run of several ranks, which are kept until all ranks have ended.

use super::{pack, unpack};
use crate::run::EngineError;
use plimsoll_measure::{Interval, Nanos};
use serde::{Deserialize, Serialize};

/// An interval in the format that ranks send. A packed interval takes tens of kilobytes; unpacked, its histograms have
/// arrays of all their buckets and take a megabyte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PackedInterval {
    /// Number of the window that contains the interval, from 1.
    pub(super) window: u32,
    /// Number of the interval in the window, from 0.
    pub(super) index: u64,
    /// Start of the interval, in nanoseconds since the window opened.
    pub(super) start: Nanos,
    /// Length of the interval in nanoseconds, which replaces the length in `packed`.
    pub(super) length: Nanos,
    packed: Vec<u8>,
}

impl PackedInterval {
    pub(crate) fn new(interval: &Interval) -> Self {
        Self {
            window: interval.window,
            index: interval.index,
            start: interval.start,
            length: interval.length,
            packed: pack(interval),
        }
    }

    /// Unpacks the interval of another rank, which may have sent invalid data.
    ///
    /// # Errors
    /// `EngineError::Failed` if the data is invalid.
    pub(super) fn read(&self) -> Result<Interval, EngineError> {
        let interval: Interval = unpack(&self.packed)?;
        Ok(Interval {
            length: self.length,
            ..interval
        })
    }

    /// Unpacks an interval that this rank has packed, or has read before.
    pub(crate) fn unpack(&self) -> Interval {
        self.read().expect("this rank has packed or read it before")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Completions, Latency, OpTotals};

    #[test]
    fn an_interval_is_small_until_it_is_unpacked() {
        // The latencies span three orders of magnitude, as from a file server.
        let latency = || Latency::of((0..3000).map(|n| 2000 + n * n));
        let row = || OpTotals {
            ops: 3000,
            service: latency(),
            response: latency(),
            ..OpTotals::default()
        };
        let interval = Interval {
            window: 2,
            index: 7,
            opened: 5,
            start: 7_000,
            length: 900,
            rows: (0..10).map(|_| row()).collect(),
            completions: Completions::new(1, 10),
        };
        let mut packed = PackedInterval::new(&interval);
        assert_eq!(packed.unpack(), interval);
        let in_memory: usize = interval
            .rows
            .iter()
            .map(|row| {
                8 * (row.service.histogram().distinct_values()
                    + row.response.histogram().distinct_values())
            })
            .sum();
        assert!(
            5 * packed.packed.len() < in_memory,
            "{} of {in_memory} bytes",
            packed.packed.len()
        );
        packed.length = 1000;
        assert_eq!(packed.unpack().length, 1000);
        packed.packed.truncate(100);
        assert!(packed.read().is_err());
    }
}
