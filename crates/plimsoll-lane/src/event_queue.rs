//! Events in the order of their times.

use plimsoll_measure::Nanos;

/// Number of buckets: one per bit of a time.
const BUCKETS: usize = Nanos::BITS as usize;

/// Maximum number of events of a bucket that are sorted at once instead of being spread over lower buckets.
const MAX_SORTED: usize = 16;

/// Maximum number of near events. Beyond the maximum, the later near events return to the buckets, since the time of an
/// insertion is proportional to the number of near events.
const MAX_NEAR: usize = 4 * MAX_SORTED;

/// A monotone priority queue: no event may be earlier than the event taken last. Events of the same time are taken in
/// insertion order.
///
/// The queue is a radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, JACM 37(2), 1990). An event lies in the bucket of the
/// highest bit in which the event's time differs from a reference time, and moves to lower buckets as the present
/// approaches the event. The earliest bucket is sorted as soon as the bucket is small. All events of the same time lie
/// in the same bucket, in insertion order.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// Time of the event taken last.
    last: Nanos,
    /// Reference time, with which the times in the buckets are compared; not after `last`.
    reference: Nanos,
    /// Events before `near_end`, the earliest at the end; among events of the same time, the event that was added first
    /// is at the end.
    near: Vec<(Nanos, E)>,
    near_end: Nanos,
    buckets: [Vec<(Nanos, E)>; BUCKETS],
    /// Earliest time of each bucket; `Nanos::MAX` for an empty bucket.
    earliest: [Nanos; BUCKETS],
    /// Bit `b` is set if bucket `b` has events.
    occupied: u64,
    len: usize,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            last: 0,
            reference: 0,
            near: Vec::new(),
            near_end: 1,
            buckets: std::array::from_fn(|_| Vec::new()),
            earliest: [Nanos::MAX; BUCKETS],
            occupied: 0,
            len: 0,
        }
    }
}

impl<E: Copy> EventQueue<E> {
    /// Number of events that were added and not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether every event that was added to the queue has been taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Time of the event taken last; 0 before the first.
    #[inline]
    #[must_use]
    pub fn last_at(&self) -> Nanos {
        self.last
    }

    /// Adds an event.
    ///
    /// # Panics
    /// If `at` is before the time of the event taken last.
    #[inline]
    pub fn push(&mut self, at: Nanos, event: E) {
        assert!(
            at >= self.last,
            "an event at {at} ns lies before the present, {} ns",
            self.last
        );
        self.len += 1;
        if at < self.near_end {
            let later = self.near.partition_point(|(time, _)| *time > at);
            self.near.insert(later, (at, event));
            if self.near.len() > MAX_NEAR {
                self.narrow();
            }
        } else {
            self.place(at, event);
        }
    }

    /// Time of the earliest event; `None` if there are no events.
    #[inline]
    #[must_use]
    pub fn next_at(&self) -> Option<Nanos> {
        if let Some((at, _)) = self.near.last() {
            return Some(*at);
        }
        (self.occupied != 0).then(|| self.earliest[self.occupied.trailing_zeros() as usize])
    }

    /// The event that is taken after `count` other events; `None` if the order of events so far ahead is not determined
    /// yet.
    #[inline]
    #[must_use]
    pub fn ahead(&self, count: usize) -> Option<&E> {
        let at = self.near.len().checked_sub(count + 1)?;
        Some(&self.near[at].1)
    }

    /// Takes the earliest event if the event's time is at most `until`.
    #[inline]
    pub fn pop_until(&mut self, until: Nanos) -> Option<(Nanos, E)> {
        if self.near.is_empty() {
            if self.next_at()? > until {
                return None;
            }
            self.advance();
        }
        if self.near.last()?.0 > until {
            return None;
        }
        self.len -= 1;
        let (at, event) = self.near.pop()?;
        self.last = at;
        Some((at, event))
    }

    /// Puts an event that is not near into its bucket.
    #[inline]
    fn place(&mut self, at: Nanos, event: E) {
        let bucket = (at ^ self.reference).ilog2() as usize;
        self.buckets[bucket].push((at, event));
        self.earliest[bucket] = self.earliest[bucket].min(at);
        self.occupied |= 1 << bucket;
    }

    /// Puts all but about [`MAX_SORTED`] of the near events into buckets.
    #[inline(never)]
    fn narrow(&mut self) {
        let kept = self.near[self.near.len() - MAX_SORTED].0;
        // Events of the same time stay together, and the times in buckets are after the reference time.
        let end = kept.max(self.reference + 1);
        let moved = self.near.partition_point(|(time, _)| *time >= end);
        if moved == 0 {
            return;
        }
        self.near_end = end;
        let mut events = std::mem::take(&mut self.near);
        // The moved events are put into the order of time and insertion, which is the order of the buckets.
        events[..moved].reverse();
        for &(at, event) in &events[..moved] {
            self.place(at, event);
        }
        events.drain(..moved);
        self.near = events;
    }

    /// Makes the earliest events near.
    #[inline(never)]
    fn advance(&mut self) {
        debug_assert!(self.near.is_empty(), "near events come first");
        let lowest = self.occupied.trailing_zeros() as usize;
        let earliest = std::mem::replace(&mut self.earliest[lowest], Nanos::MAX);
        self.occupied &= !(1 << lowest);
        self.reference = earliest;
        if self.buckets[lowest].len() <= MAX_SORTED {
            std::mem::swap(&mut self.near, &mut self.buckets[lowest]);
            self.near.sort_by_key(|(at, _)| *at);
            // All times of the bucket agree in the bits above `lowest`, and have bit `lowest` set.
            self.near_end = ((earliest >> lowest) << lowest).saturating_add(1 << lowest);
        } else {
            // The bucket keeps its memory.
            let mut events = std::mem::take(&mut self.buckets[lowest]);
            for &(at, event) in &events {
                match at == earliest {
                    true => self.near.push((at, event)),
                    false => self.place(at, event),
                }
            }
            events.clear();
            self.buckets[lowest] = events;
            self.near_end = earliest.saturating_add(1);
        }
        self.near.reverse();
        debug_assert!(!self.near.is_empty(), "one event has the earliest time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_and_then_of_addition(
            steps in prop::collection::vec((0u64..4, 0u64..5000, 0u32..40), 1..300)
        ) {
            let mut queue = EventQueue::default();
            let mut model = BinaryHeap::new();
            let mut now = 0;
            for (i, (pops, delay, shift)) in steps.into_iter().enumerate() {
                let at = now + (delay << shift) / 7;
                queue.push(at, i);
                model.push(Reverse((at, i)));
                for _ in 0..pops {
                    prop_assert_eq!(queue.next_at(), model.peek().map(|Reverse((at, _))| *at));
                    let expected = model.pop().map(|Reverse(e)| e);
                    prop_assert_eq!(queue.pop_until(Nanos::MAX), expected);
                    now = expected.map_or(now, |(at, _)| at);
                }
                prop_assert_eq!(queue.len(), model.len());
            }
        }
    }

    #[test]
    fn events_that_crowd_before_a_late_one_come_in_their_order() {
        let mut queue = EventQueue::default();
        // The near events extend to the last of ten events, and all events that are added later lie before the last
        // event.
        for i in 0..10 {
            queue.push(1 << 30 | i << 26, u64::MAX);
        }
        assert_eq!(queue.pop_until(Nanos::MAX), Some((1 << 30, u64::MAX)));
        let at = |i: u64| (1 << 30) + (i * 7919) % 1000 / 10 * 1000;
        for i in 0..3000 {
            queue.push(at(i), i);
        }
        let mut expected: Vec<(Nanos, u64)> = (0..3000).map(|i| (at(i), i)).collect();
        expected.sort_unstable();
        for event in expected {
            assert_eq!(queue.next_at(), Some(event.0));
            assert_eq!(queue.pop_until(Nanos::MAX), Some(event));
        }
        assert_eq!(queue.len(), 9);
    }

    #[test]
    fn only_events_that_are_due_are_taken() {
        let mut queue = EventQueue::default();
        assert!(queue.is_empty());
        queue.push(10, 'a');
        queue.push(20, 'b');
        assert_eq!(queue.pop_until(9), None);
        assert_eq!(queue.pop_until(10), Some((10, 'a')));
        // An event before the next event, and not before the present, can still be added.
        assert_eq!(queue.pop_until(15), None);
        queue.push(15, 'c');
        assert_eq!(queue.next_at(), Some(15));
        assert!(queue.len() == 2 && !queue.is_empty());
        assert_eq!(queue.pop_until(14), None);
        assert_eq!(queue.pop_until(15), Some((15, 'c')));
        assert_eq!(queue.last_at(), 15);
    }

    #[test]
    #[should_panic(expected = "an event at 9 ns lies before the present, 10 ns")]
    fn no_event_is_added_before_the_present() {
        let mut queue = EventQueue::default();
        queue.push(10, ());
        queue.pop_until(10);
        queue.push(10, ());
        queue.push(9, ());
    }

    #[test]
    fn events_that_are_near_are_known_ahead() {
        let mut queue = EventQueue::default();
        assert_eq!(queue.ahead(0), None);
        (9..13).for_each(|at| queue.push(at, at));
        queue.pop_until(9);
        let ahead = [0, 1, 2, 3].map(|count| queue.ahead(count).copied());
        assert_eq!(ahead, [Some(10), Some(11), Some(12), None]);
    }

    /// A queue in which the events before `1 << 21` are near: the event at `3 << 19`, and events added later.
    fn queue_with_near_events() -> EventQueue<u64> {
        let mut queue = EventQueue::default();
        queue.push(1 << 21, 1);
        queue.push(1 << 20, 2);
        queue.push(3 << 19, 3);
        assert_eq!(queue.pop_until(Nanos::MAX), Some((1 << 20, 2)));
        queue
    }

    #[test]
    fn of_many_events_few_stay_near() {
        let mut queue = queue_with_near_events();
        (1..64).for_each(|i| queue.push((1 << 20) + i, i));
        assert_eq!(queue.near.len(), 64);
        queue.push((1 << 20) + 64, 64);
        assert_eq!(queue.near.len(), 15);
        let mut taken = Vec::new();
        while let Some((at, _)) = queue.pop_until(Nanos::MAX) {
            taken.push(at);
        }
        let expected = (1..65).map(|i| (1 << 20) + i).chain([3 << 19, 1 << 21]);
        assert_eq!(taken, expected.collect::<Vec<_>>());
    }

    #[test]
    fn all_events_of_the_present_stay_near() {
        let mut queue = queue_with_near_events();
        (0..70).for_each(|i| queue.push(1 << 20, i));
        assert_eq!(queue.near.len(), 70);
        for i in 0..70 {
            assert_eq!(queue.pop_until(1 << 20), Some((1 << 20, i)));
        }
        assert_eq!(queue.next_at(), Some(3 << 19));
    }

    #[test]
    fn an_event_right_after_the_near_ones_follows_those_of_its_time() {
        let mut queue = queue_with_near_events();
        queue.push(1 << 21, 4);
        let events: Vec<u64> = (0..3)
            .filter_map(|_| Some(queue.pop_until(Nanos::MAX)?.1))
            .collect();
        assert_eq!(events, [3, 1, 4]);
    }

    #[test]
    fn a_small_bucket_is_sorted_at_once_and_a_large_one_is_spread() {
        for (events, near) in [(16, 15), (17, 0)] {
            let mut queue = EventQueue::default();
            (0..events).for_each(|i| queue.push(1 << 20 | i, i));
            assert_eq!(queue.pop_until(Nanos::MAX), Some((1 << 20, 0)));
            assert_eq!(queue.near.len(), near);
        }
    }
}
