//! When what comes to one end of a line comes out of the other.
//!
//! Nothing here waits: instants go in and instants come out.

use crate::link::Link;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::{Duration, Instant};

/// Bytes of TCP's data in a packet of Ethernet.
pub(crate) const TCP_SEGMENT_BYTES: usize = 1448;

/// Shortest timeout after which Linux sends a packet again: `TCP_RTO_MIN`, which is added to the
/// round trip.
pub(crate) const MIN_RETRANSMIT_TIMEOUT: Duration = Duration::from_millis(200);

/// One direction of a line, which all that goes through it shares: bytes leave one after the other.
pub(crate) struct LineDirection {
    link: Link,
    free_at: Option<Instant>,
}

impl LineDirection {
    pub(crate) fn new(link: &Link) -> Self {
        Self {
            link: link.clone(),
            free_at: None,
        }
    }

    /// When the last of these bytes has left.
    pub(crate) fn leaves(&mut self, now: Instant, bytes: usize) -> Instant {
        let Some(rate) = self.link.rate else {
            return now;
        };
        let begins = self.free_at.map_or(now, |free| free.max(now));
        let leaves = begins + rate.time(bytes);
        self.free_at = Some(leaves);
        leaves
    }

    /// Time until what comes now would begin to leave.
    pub(crate) fn backlog(&self, now: Instant) -> Duration {
        let free_at = self.free_at.unwrap_or(now);
        free_at.saturating_duration_since(now)
    }
}

/// What must stay in its order: a connection in one direction, or all packets of one.
pub(crate) struct DeliveryOrder {
    link: Link,
    random: Xoshiro256PlusPlus,
    last: Option<Instant>,
}

impl DeliveryOrder {
    /// `number` is another for each, so that they differ; the same number gives the same.
    pub(crate) fn new(link: &Link, number: u64) -> Self {
        Self {
            link: link.clone(),
            random: Xoshiro256PlusPlus::seed_from_u64(number),
            last: None,
        }
    }

    /// When what left at `left` comes out.
    pub(crate) fn comes(&mut self, left: Instant) -> Instant {
        let mut delay = self.link.rtt / 2;
        if !self.link.jitter.is_zero() {
            let range = self.link.jitter.as_nanos() as u64;
            // Evenly from half the jitter too early to half of it too late.
            let shift = Duration::from_nanos(self.random.random_range(0..=range));
            delay = (delay + shift).saturating_sub(self.link.jitter / 2);
        }
        let comes = self
            .last
            .map_or(left + delay, |last| last.max(left + delay));
        self.last = Some(comes);
        comes
    }

    /// Whether a packet is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.link.loss > 0.0 && self.random.random_bool(self.link.loss)
    }

    /// Time for which a chunk of a stream waits because one of its packets was lost and sent again.
    pub(crate) fn stalls(&mut self, bytes: usize) -> Option<Duration> {
        let packets = bytes.div_ceil(TCP_SEGMENT_BYTES);
        let lost = (0..packets).any(|_| self.loses());
        lost.then_some(self.link.rtt + MIN_RETRANSMIT_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn link(rtt_ms: u64, jitter_ms: u64) -> Link {
        Link {
            jitter: Duration::from_millis(jitter_ms),
            ..Link::of_rtt(Duration::from_millis(rtt_ms))
        }
    }

    /// At 8 Mbit/s a kilobyte takes a millisecond, and the next waits for it.
    #[test]
    fn bytes_leave_one_after_the_other() {
        let mut wire = LineDirection::new(&Link {
            rate: "8mbit".parse().ok(),
            ..Link::default()
        });
        let now = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(wire.backlog(now), ms(0));
        assert_eq!(wire.leaves(now, 1000), now + ms(1));
        assert_eq!(wire.leaves(now, 3000), now + ms(4));
        assert_eq!(wire.backlog(now + ms(1)), ms(3));
        assert_eq!(wire.leaves(now + ms(10), 1000), now + ms(11));
        let mut free = LineDirection::new(&Link::default());
        assert_eq!(free.leaves(now, 1 << 30), now);
    }

    #[test]
    fn losses_are_as_many_as_asked_for() {
        let lossy = Link {
            loss: 0.1,
            ..link(100, 0)
        };
        let mut order = DeliveryOrder::new(&lossy, 3);
        let lost = (0..10_000).filter(|_| order.loses()).count();
        // Ten standard deviations, which are 30 each.
        assert!((700..1300).contains(&lost), "{lost}");
        // Of ten packets one is lost in 65 of 100 chunks.
        let stalled = (0..10_000)
            .filter(|_| order.stalls(10 * TCP_SEGMENT_BYTES).is_some())
            .count();
        assert!((6000..7000).contains(&stalled), "{stalled}");
        let all = Link { loss: 1.0, ..lossy };
        let stall = DeliveryOrder::new(&all, 0).stalls(1);
        assert_eq!(stall, Some(Duration::from_millis(300)));
        assert_eq!(DeliveryOrder::new(&link(100, 0), 0).stalls(1 << 30), None);
    }

    proptest! {
        /// Nothing comes too early, too late, or before what went before it.
        #[test]
        fn delays(
            rtt in 1u64..500, jitter in 0u64..500, number: u64,
            gaps in prop::collection::vec(0u64..20_000, 1..200),
        ) {
            let jitter = jitter.min(rtt);
            let mut order = DeliveryOrder::new(&link(rtt, jitter), number);
            let us = |ms: u64| Duration::from_micros(ms * 500);
            let (mut left, mut last) = (Instant::now(), None);
            let mut latest = left;
            for gap in gaps {
                left += Duration::from_micros(gap);
                let comes = order.comes(left);
                latest = latest.max(left + us(rtt) + us(jitter));
                prop_assert!(comes >= left + us(rtt) - us(jitter) && comes <= latest);
                prop_assert!(last.is_none_or(|last| comes >= last));
                if jitter == 0 {
                    prop_assert_eq!(comes, left + us(rtt));
                }
                last = Some(comes);
            }
        }
    }
}
