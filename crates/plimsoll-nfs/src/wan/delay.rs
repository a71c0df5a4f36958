//! The times at which data leaves a link.
//!
//! The functions only compute instants; no function waits.

use crate::wan::link::{BitRate, Link};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::{Duration, Instant};

/// The number of bytes of TCP data in an Ethernet packet.
pub(crate) const TCP_SEGMENT_BYTES: usize = 1448;

/// The minimum by which the Linux retransmission timeout exceeds the round-trip time:
/// `TCP_RTO_MIN`.
pub(crate) const MIN_RETRANSMIT_TIMEOUT: Duration = Duration::from_millis(200);

/// The bandwidth of one direction of a link, shared by all connections: data is serialised.
pub(crate) struct LinkDirection {
    bandwidth: Option<BitRate>,
    free_at: Option<Instant>,
}

impl LinkDirection {
    pub(crate) fn new(link: &Link) -> Self {
        Self {
            bandwidth: link.bandwidth,
            free_at: None,
        }
    }

    /// The time at which the last of `bytes` bytes has been sent.
    pub(crate) fn sent_at(&mut self, now: Instant, bytes: usize) -> Instant {
        let Some(bandwidth) = self.bandwidth else {
            return now;
        };
        let begins = self.free_at.map_or(now, |free| free.max(now));
        let sent = begins + bandwidth.time(bytes);
        self.free_at = Some(sent);
        sent
    }

    /// The time for which data that arrives at `now` would wait for earlier data, because of the link's bandwidth.
    pub(crate) fn backlog(&self, now: Instant) -> Duration {
        let free_at = self.free_at.unwrap_or(now);
        free_at.saturating_duration_since(now)
    }
}

/// The arrival times of data that the link must deliver in order: the data of one connection in one direction.
pub(crate) struct DeliveryOrder {
    link: Link,
    random: Xoshiro256PlusPlus,
    last: Option<Instant>,
}

impl DeliveryOrder {
    /// Arrival times with random numbers that depend only on `number`.
    pub(crate) fn new(link: &Link, number: u64) -> Self {
        Self {
            link: link.clone(),
            random: Xoshiro256PlusPlus::seed_from_u64(number),
            last: None,
        }
    }

    /// Changes the round-trip time, and limits the jitter to the round-trip time.
    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.link.rtt = rtt;
        self.link.jitter = self.link.jitter.min(rtt);
    }

    /// The arrival time of data sent at `sent`.
    pub(crate) fn arrives_at(&mut self, sent: Instant) -> Instant {
        let mut delay = self.link.rtt / 2;
        if !self.link.jitter.is_zero() {
            let range = self.link.jitter.as_nanos() as u64;
            // Uniformly distributed from half the jitter early to half the jitter late.
            let shift = Duration::from_nanos(self.random.random_range(0..=range));
            delay = (delay + shift).saturating_sub(self.link.jitter / 2);
        }
        let arrives = self
            .last
            .map_or(sent + delay, |last| last.max(sent + delay));
        self.last = Some(arrives);
        arrives
    }

    /// Whether the next packet is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.link.loss > 0.0 && self.random.random_bool(self.link.loss)
    }

    /// The delay of a stream's chunk if one of its packets is lost and retransmitted; `None`
    /// without a loss.
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

    /// At 8 Mbit/s, a kilobyte takes a millisecond, and later data waits.
    #[test]
    fn bytes_leave_one_after_the_other() {
        let mut wire = LinkDirection::new(&Link {
            bandwidth: "8mbit".parse().ok(),
            ..Link::default()
        });
        let now = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(wire.backlog(now), ms(0));
        assert_eq!(wire.sent_at(now, 1000), now + ms(1));
        assert_eq!(wire.sent_at(now, 3000), now + ms(4));
        assert_eq!(wire.backlog(now + ms(1)), ms(3));
        assert_eq!(wire.sent_at(now + ms(10), 1000), now + ms(11));
        let mut free = LinkDirection::new(&Link::default());
        assert_eq!(free.sent_at(now, 1 << 30), now);
    }

    #[test]
    fn losses_are_as_many_as_asked_for() {
        let lossy = Link {
            loss: 0.1,
            ..link(100, 0)
        };
        let mut order = DeliveryOrder::new(&lossy, 3);
        let lost = (0..10_000).filter(|_| order.loses()).count();
        // Ten standard deviations of 30 each.
        assert!((700..1300).contains(&lost), "{lost}");
        // Of 100 chunks of ten packets, 65 lose at least one packet.
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
        /// Data arrives neither too early nor too late, and in order.
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
                let comes = order.arrives_at(left);
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
