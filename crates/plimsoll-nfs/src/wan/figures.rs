//! Totals of an emulated link: connections, bytes, emulated packet losses, and delays.

use crate::lock::lock;
use hdrhistogram::Histogram;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The longest delay in nanoseconds that the histogram distinguishes; longer delays count as this delay.
const MAX_RECORDED_DELAY_NS: u64 = 600_000_000_000;

/// Totals to which many threads add.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) up: Direction,
    pub(crate) down: Direction,
}

/// Totals of one direction of a link, behind a mutex, because the threads of all connections add to the totals.
#[derive(Default)]
pub(crate) struct Direction(Mutex<DirectionTotals>);

impl Direction {
    pub(crate) fn passed(&self, bytes: usize, delay: Duration) {
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(MAX_RECORDED_DELAY_NS);
        let mut totals = lock(&self.0);
        totals.bytes += bytes as u64;
        totals.delays.saturating_record(delay_ns.max(1));
    }

    pub(crate) fn stalled(&self) {
        lock(&self.0).stalled += 1;
    }
}

impl Counters {
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            connections: self.connections.load(Relaxed),
            refused: self.refused.load(Relaxed),
            up: lock(&self.up.0).clone(),
            down: lock(&self.down.0).clone(),
        }
    }
}

/// Connections, and data in both directions, of an emulated link since the start of the relay.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The number of connections that the relay has accepted from clients.
    pub connections: u64,
    /// The number of accepted connections that the relay could not pass on to the server.
    pub refused: u64,
    /// Totals of the data from clients to the server.
    pub up: DirectionTotals,
    /// Totals of the data from the server to clients.
    pub down: DirectionTotals,
}

/// Totals of a link in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionTotals {
    /// The number of bytes of TCP payload that the link has delivered.
    pub bytes: u64,
    /// The number of chunks of connections that were delayed by an emulated packet loss.
    pub stalled: u64,
    /// Times in nanoseconds from the receipt of each chunk at one end of the link to its delivery at the other end.
    delays: Histogram<u64>,
}

impl Default for DirectionTotals {
    fn default() -> Self {
        Self {
            bytes: 0,
            stalled: 0,
            delays: Histogram::new_with_bounds(1, MAX_RECORDED_DELAY_NS, 3)
                .expect("the bounds are valid"),
        }
    }
}

impl DirectionTotals {
    /// The quantile of the times that chunks of data spent in the link, with `quantile` from 0 to 1; `None` if the link
    /// has delivered no data.
    #[must_use]
    pub fn delay(&self, quantile: f64) -> Option<Duration> {
        let delay = || Duration::from_nanos(self.delays.value_at_quantile(quantile));
        (!self.delays.is_empty()).then(delay)
    }
}

impl fmt::Display for DirectionTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes)?;
        if let (Some(p50), Some(p99)) = (self.delay(0.5), self.delay(0.99)) {
            let ms = |d: Duration| d.as_secs_f64() * 1e3;
            write!(
                f,
                ", delayed {:.2} ms (p50), {:.2} ms (p99)",
                ms(p50),
                ms(p99)
            )?;
        }
        match self.stalled {
            0 => Ok(()),
            count => write!(f, ", {count} delayed by a loss"),
        }
    }
}
