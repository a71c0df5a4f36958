//! Totals of a link.

use crate::lock::lock;
use hdrhistogram::Histogram;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The maximum recorded delay, in nanoseconds; longer delays count as this delay.
const MAX_RECORDED_DELAY_NS: u64 = 600_000_000_000;

/// Totals to which many threads add.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) up: Direction,
    pub(crate) down: Direction,
}

/// Totals of one direction of a link.
#[derive(Default)]
pub(crate) struct Direction(Mutex<DirectionCounters>);

struct DirectionCounters {
    bytes: u64,
    dropped: u64,
    stalled: u64,
    /// Times from one end of the link to the other, in nanoseconds.
    delays: Histogram<u64>,
}

impl Default for DirectionCounters {
    fn default() -> Self {
        Self {
            bytes: 0,
            dropped: 0,
            stalled: 0,
            delays: Histogram::new_with_bounds(1, MAX_RECORDED_DELAY_NS, 3)
                .expect("the bounds are valid"),
        }
    }
}

impl Direction {
    pub(crate) fn passed(&self, bytes: usize, delay: Duration) {
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(MAX_RECORDED_DELAY_NS);
        let mut totals = lock(&self.0);
        totals.bytes += bytes as u64;
        totals.delays.saturating_record(delay_ns.max(1));
    }

    pub(crate) fn dropped(&self) {
        lock(&self.0).dropped += 1;
    }

    pub(crate) fn stalled(&self) {
        lock(&self.0).stalled += 1;
    }

    fn summary(&self) -> DirectionTotals {
        let totals = lock(&self.0);
        let delays = &totals.delays;
        let at = |quantile| {
            let recorded = !delays.is_empty();
            recorded.then(|| Duration::from_nanos(delays.value_at_quantile(quantile)))
        };
        DirectionTotals {
            bytes: totals.bytes,
            dropped: totals.dropped,
            stalled: totals.stalled,
            delay_p50: at(0.5),
            delay_p99: at(0.99),
        }
    }
}

impl Counters {
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            connections: self.connections.load(Relaxed),
            refused: self.refused.load(Relaxed),
            up: self.up.summary(),
            down: self.down.summary(),
        }
    }
}

/// Totals of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The number of accepted connections; 0 for a tunnel, which transfers packets only.
    pub connections: u64,
    /// The number of accepted connections that the relay could not pass on to the server.
    pub refused: u64,
    /// The direction to the server; for a tunnel, from the first namespace to the second.
    pub up: DirectionTotals,
    /// The direction from the server; for a tunnel, from the second namespace to the first.
    pub down: DirectionTotals,
}

/// Totals of a link in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionTotals {
    /// The number of transferred bytes: of TCP data, or of packets with their IP headers.
    pub bytes: u64,
    /// The number of packets that were lost or found a full queue.
    pub dropped: u64,
    /// The number of chunks of connections that were delayed by an emulated packet loss.
    pub stalled: u64,
    /// The median time in the link.
    pub delay_p50: Option<Duration>,
    /// The 99th percentile of the time in the link.
    pub delay_p99: Option<Duration>,
}

impl fmt::Display for DirectionTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes)?;
        if let (Some(p50), Some(p99)) = (self.delay_p50, self.delay_p99) {
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            write!(
                f,
                ", delayed {:.2} ms (p50), {:.2} ms (p99)",
                ms(p50),
                ms(p99)
            )?;
        }
        for (count, what) in [
            (self.dropped, "packets lost"),
            (self.stalled, "delayed by a loss"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}
