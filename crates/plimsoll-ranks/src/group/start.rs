//! Synchronised start without clock comparison.
//!
//! Each rank measures the transfer time of a frame to each of its children as half of the shortest of a few round
//! trips. Rank 0 chooses a start instant that is far enough in the future for the slowest path down the tree, and sends
//! each child the remaining time at the arrival of the message. The start error is half the asymmetry of a path plus
//! the variation of the path's delay. After the start each rank reports the start to its parent, and the parent
//! compares the arrival with its own start.

use super::Ranks;
use crate::frame::{Call, CallId};
use crate::{RankError, StartSpread};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Round trips to each child. The first round trip includes the time until the child makes the call.
const ROUND_TRIPS: u32 = 4;
/// Allowance for sending to all children of a rank sequentially.
const SEND_ALLOWANCE: Duration = Duration::from_millis(2);

impl Ranks {
    /// Collective call that agrees on a time at which all ranks start, a few round trips in the future. Each rank gets
    /// the start time on the clock of its own machine; the ranks' clocks need not agree.
    pub fn agree_on_start(&self) -> Result<Instant, RankError> {
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
                at + Duration::from_nanos(self.number_in(&left, parent)?)
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

    /// Measures the transfer time of a frame to each child.
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

    /// Collective call that reports the start of this rank, and that every rank makes immediately after its start. The
    /// call returns the spread of all ranks' starts at rank 0, and `None` at other ranks.
    pub fn report_start(&self, started: Instant) -> Result<Option<StartSpread>, RankError> {
        let id = self.begin(Call::Started)?;
        if let Some(parent) = self.parent() {
            // The arrival time tells the parent when this rank started.
            self.send(parent, id, &[])?;
        }
        let mut starts = Starts::default();
        let delays = self.delays.borrow().clone();
        for (child, delay) in self.children().zip(delays) {
            let (_, at) = self.receive_timed(child, id)?;
            let theirs = self.receive(child, id)?;
            let theirs = postcard::from_bytes::<Starts>(&theirs)
                .map_err(|_| self.neighbour_failure(child, super::UNKNOWN_FRAME))?;
            starts.add(
                &theirs,
                signed_ns(started, at) - delay.as_nanos() as i64,
                delay,
            );
        }
        match self.parent() {
            Some(parent) => {
                let starts = postcard::to_allocvec(&starts).expect("memory takes the starts");
                self.send(parent, id, &starts).map(|()| None)
            }
            None => Ok(Some(StartSpread {
                spread: Duration::from_nanos(starts.latest_ns.abs_diff(starts.earliest_ns)),
                round_trip: 2 * Duration::from_nanos(starts.delay_ns as u64),
            })),
        }
    }
}

/// Signed time from one instant to another, in nanoseconds.
fn signed_ns(from: Instant, to: Instant) -> i64 {
    match to.checked_duration_since(from) {
        Some(later) => later.as_nanos() as i64,
        None => -((from - to).as_nanos() as i64),
    }
}

/// Start times of the ranks of a subtree, relative to the start of the subtree's first rank.
#[derive(Default, Serialize, Deserialize)]
struct Starts {
    earliest_ns: i64,
    latest_ns: i64,
    /// Longest transfer time to a rank of the subtree, in nanoseconds.
    delay_ns: i64,
}

impl Starts {
    /// Merges the subtree of a child that started `offset_ns` after this rank, at transfer time `delay`.
    fn add(&mut self, child: &Self, offset_ns: i64, delay: Duration) {
        self.earliest_ns = self.earliest_ns.min(offset_ns + child.earliest_ns);
        self.latest_ns = self.latest_ns.max(offset_ns + child.latest_ns);
        self.delay_ns = self.delay_ns.max(delay.as_nanos() as i64 + child.delay_ns);
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
        root.add(&leader, ms(4), Duration::from_millis(25));
        assert_eq!((root.earliest_ns, root.latest_ns), (0, ms(6)));
        assert_eq!(root.delay_ns, ms(28));
    }

    #[test]
    fn the_order_of_instants_has_a_sign() {
        let now = Instant::now();
        let later = now + Duration::from_millis(5);
        assert_eq!(signed_ns(now, later), 5_000_000);
        assert_eq!(signed_ns(later, now), -5_000_000);
    }
}
