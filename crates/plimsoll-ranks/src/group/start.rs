//! Starting at the same time, without comparing clocks.
//!
//! Each rank measures the time that a frame takes to each of its children: half of the shortest of a few
//! round trips. Rank 0 chooses an instant that is as far in the future as the longest way down the
//! tree takes, and informs each child how long after the arrival of the message that is. So the error is
//! half the difference of the two directions of a way, and what the way varies by. Afterwards each
//! rank reports its start at that instant, and its parent compares the arrival with its own start.

use super::TreeGroup;
use crate::frame::{Call, CallId};
use crate::link::Link;
use crate::{RankError, StartSpread};
use std::time::{Duration, Instant};

/// Round trips to each child; the first also waits for the child to make the call.
const ROUND_TRIPS: u32 = 4;
/// Time for informing all children of a rank, one after the other.
const SEND_ALLOWANCE: Duration = Duration::from_millis(2);

impl<L: Link> TreeGroup<L> {
    /// The instant at which this rank starts, at about the same time as the others.
    pub(super) fn start_instant(&self) -> Result<Instant, RankError> {
        let id = self.begin(Call::Start)?;
        if let Some(parent) = self.parent() {
            for _ in 0..ROUND_TRIPS {
                self.receive(parent, id)?;
                self.send(parent, id, &[])?;
            }
        }
        let delays = self.measure_delays(id)?;
        let mut depth = Duration::ZERO;
        for (child, delay) in self.children().zip(&delays) {
            let below = Duration::from_nanos(self.number(child, id)?);
            depth = depth.max(*delay + SEND_ALLOWANCE + below);
        }
        let start = match self.parent() {
            None => plimsoll_runtime::now() + depth,
            Some(parent) => {
                self.send(parent, id, &(depth.as_nanos() as u64).to_le_bytes())?;
                let (left, at) = self.receive_timed(parent, id)?;
                let left = left.as_slice().try_into();
                let left =
                    left.map_err(|_| self.neighbour_failure(parent, super::UNKNOWN_FRAME))?;
                at + Duration::from_nanos(u64::from_le_bytes(left))
            }
        };
        for (child, delay) in self.children().zip(&delays) {
            let arrival = plimsoll_runtime::now() + *delay;
            let left = start.saturating_duration_since(arrival).as_nanos() as u64;
            self.send(child, id, &left.to_le_bytes())?;
        }
        *self.delays.borrow_mut() = delays;
        Ok(start)
    }

    /// Measures the time that a frame takes to each child.
    fn measure_delays(&self, id: CallId) -> Result<Vec<Duration>, RankError> {
        let mut shortest = vec![Duration::MAX; self.children().len()];
        for _ in 0..ROUND_TRIPS {
            let mut sent = Vec::with_capacity(shortest.len());
            for child in self.children() {
                sent.push(plimsoll_runtime::now());
                self.send(child, id, &[])?;
            }
            let trips = self.children().zip(&sent).zip(&mut shortest);
            for ((child, sent), shortest) in trips {
                let (_, at) = self.receive_timed(child, id)?;
                *shortest = (*shortest).min(at.saturating_duration_since(*sent));
            }
        }
        Ok(shortest.into_iter().map(|trip| trip / 2).collect())
    }

    /// How far the starts of all ranks lie apart, at rank 0.
    pub(super) fn start_spread(&self, started: Instant) -> Result<Option<StartSpread>, RankError> {
        let id = self.begin(Call::Started)?;
        if let Some(parent) = self.parent() {
            // Its arrival tells the parent when this rank started.
            self.send(parent, id, &[])?;
        }
        let mut starts = Starts::default();
        let delays = self.delays.borrow().clone();
        for (child, delay) in self.children().zip(delays) {
            let (_, at) = self.receive_timed(child, id)?;
            let theirs = self.receive(child, id)?;
            let theirs = Starts::decode(&theirs)
                .ok_or_else(|| self.neighbour_failure(child, super::UNKNOWN_FRAME))?;
            starts.add(
                &theirs,
                signed_ns(started, at) - delay.as_nanos() as i64,
                delay,
            );
        }
        match self.parent() {
            Some(parent) => self.send(parent, id, &starts.encode()).map(|()| None),
            None => Ok(Some(StartSpread {
                spread: Duration::from_nanos(starts.latest_ns.abs_diff(starts.earliest_ns)),
                round_trip: 2 * Duration::from_nanos(starts.delay_ns as u64),
            })),
        }
    }
}

/// The time from one instant to another, in nanoseconds.
fn signed_ns(from: Instant, to: Instant) -> i64 {
    match to.checked_duration_since(from) {
        Some(later) => later.as_nanos() as i64,
        None => -((from - to).as_nanos() as i64),
    }
}

/// The starts of the ranks of a subtree, relative to that of its first rank.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Starts {
    earliest_ns: i64,
    latest_ns: i64,
    /// The longest way to a rank of the subtree.
    delay_ns: i64,
}

impl Starts {
    /// Adds the subtree of a child that started `offset_ns` after this rank and is `delay` away.
    fn add(&mut self, child: &Self, offset_ns: i64, delay: Duration) {
        self.earliest_ns = self.earliest_ns.min(offset_ns + child.earliest_ns);
        self.latest_ns = self.latest_ns.max(offset_ns + child.latest_ns);
        self.delay_ns = self.delay_ns.max(delay.as_nanos() as i64 + child.delay_ns);
    }

    fn encode(&self) -> Vec<u8> {
        let numbers = [self.earliest_ns, self.latest_ns, self.delay_ns];
        numbers.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let [earliest_ns, latest_ns, delay_ns] = numbers else {
            return None;
        };
        Some(Self {
            earliest_ns: i64::from_le_bytes(*earliest_ns),
            latest_ns: i64::from_le_bytes(*latest_ns),
            delay_ns: i64::from_le_bytes(*delay_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_add_up_along_the_tree() {
        let ms = |n: i64| n * 1_000_000;
        let mut leader = Starts::default();
        leader.add(&Starts::default(), ms(2), Duration::from_millis(1));
        leader.add(&Starts::default(), ms(-1), Duration::from_millis(3));
        assert_eq!((leader.earliest_ns, leader.latest_ns), (ms(-1), ms(2)));
        let mut root = Starts::default();
        let sent = Starts::decode(&leader.encode()).unwrap();
        root.add(&sent, ms(4), Duration::from_millis(25));
        assert_eq!((root.earliest_ns, root.latest_ns), (0, ms(6)));
        assert_eq!(root.delay_ns, ms(28));
        assert_eq!(Starts::decode(&[0; 23]), None);
        assert_eq!(Starts::decode(&[0; 32]), None);
    }

    #[test]
    fn the_order_of_instants_has_a_sign() {
        let now = Instant::now();
        let later = now + Duration::from_millis(5);
        assert_eq!(signed_ns(now, later), 5_000_000);
        assert_eq!(signed_ns(later, now), -5_000_000);
    }
}
