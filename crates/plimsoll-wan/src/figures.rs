//! What went through a line.

use hdrhistogram::Histogram;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest delay that is told apart, in nanoseconds; longer ones count as this.
const MAX_RECORDED_DELAY_NS: u64 = 600_000_000_000;

/// Counters that many threads write.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) up: Direction,
    pub(crate) down: Direction,
}

/// Counters of one direction.
pub(crate) struct Direction {
    bytes: AtomicU64,
    dropped: AtomicU64,
    stalled: AtomicU64,
    /// Nanoseconds between the ends of the line.
    delays: Mutex<Option<Histogram<u64>>>,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
            delays: Mutex::new(Histogram::new_with_bounds(1, MAX_RECORDED_DELAY_NS, 3).ok()),
        }
    }
}

impl Direction {
    pub(crate) fn passed(&self, bytes: usize, delay: Duration) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        if let Some(delays) = self.delays().as_mut() {
            delays.saturating_record(
                u64::try_from(delay.as_nanos())
                    .unwrap_or(MAX_RECORDED_DELAY_NS)
                    .max(1),
            );
        }
    }

    pub(crate) fn dropped(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn stalled(&self) {
        self.stalled.fetch_add(1, Relaxed);
    }

    fn delays(&self) -> MutexGuard<'_, Option<Histogram<u64>>> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn summary(&self) -> DirectionTotals {
        let delays = self.delays();
        let at = |quantile| {
            let known = delays.as_ref().filter(|d| !d.is_empty());
            known.map(|d| Duration::from_nanos(d.value_at_quantile(quantile)))
        };
        DirectionTotals {
            bytes: self.bytes.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            stalled: self.stalled.load(Relaxed),
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

/// What went through a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Connections that were taken; none in a tunnel, which knows of packets alone.
    pub connections: u64,
    /// Of these, those that the server did not take.
    pub refused: u64,
    /// To the server; in a tunnel, from the first namespace to the second.
    pub up: DirectionTotals,
    /// The other way.
    pub down: DirectionTotals,
}

/// What went through a line in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectionTotals {
    /// Bytes: of data, or of packets with the headers of IP.
    pub bytes: u64,
    /// Packets that were lost or found the queue full.
    pub dropped: u64,
    /// Pieces of connections that waited because a packet of theirs was taken for lost.
    pub stalled: u64,
    /// Median of the times between coming in and going out.
    pub delay_p50: Option<Duration>,
    /// 99th percentile of the same.
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
