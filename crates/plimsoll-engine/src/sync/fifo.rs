//! Waiters in the order of arrival.

use std::task::Waker;

/// Index that no position has: end of a list of positions.
const NO_NODE: u32 = u32::MAX;

/// Waiters in the order of arrival; each waiter leaves with its grant. The cost of joining, granting and leaving does
/// not depend on the number of waiters.
pub(crate) struct Fifo<R, G> {
    places: Vec<FifoNode<R, G>>,
    /// First vacant position; vacant positions are linked by `next`.
    vacant: u32,
    first: u32,
    last: u32,
    /// Number of positions that are not vacant.
    used: usize,
}

enum FifoNode<R, G> {
    Vacant { next: u32 },
    Waiting(Waiter<R>),
    Given(G),
}

struct Waiter<R> {
    request: R,
    /// Set when the waiter is first polled.
    waker: Option<Waker>,
    before: u32,
    behind: u32,
}

impl<R, G> Default for Fifo<R, G> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            vacant: NO_NODE,
            first: NO_NODE,
            last: NO_NODE,
            used: 0,
        }
    }
}

impl<R, G> Fifo<R, G> {
    /// Joins the end of the queue. Returns the number of the position, which belongs to the waiter until the waiter
    /// takes its grant or leaves.
    pub(crate) fn join(&mut self, request: R) -> u32 {
        let waiter = FifoNode::Waiting(Waiter {
            request,
            waker: None,
            before: self.last,
            behind: NO_NODE,
        });
        let at = match self.places.get(self.vacant as usize) {
            Some(FifoNode::Vacant { next }) => {
                let at = std::mem::replace(&mut self.vacant, *next);
                self.places[at as usize] = waiter;
                at
            }
            _ => {
                debug_assert_eq!(self.vacant, NO_NODE, "vacant positions link to vacant ones");
                self.places.push(waiter);
                self.places.len() as u32 - 1
            }
        };
        match self.waiter(self.last) {
            Some(last) => last.behind = at,
            None => self.first = at,
        }
        self.last = at;
        self.used += 1;
        at
    }

    /// The request of the first waiter.
    pub(crate) fn first(&self) -> Option<&R> {
        match self.places.get(self.first as usize)? {
            FifoNode::Waiting(waiter) => Some(&waiter.request),
            FifoNode::Vacant { .. } | FifoNode::Given(_) => None,
        }
    }

    /// The request of the first waiter, for changes.
    pub(crate) fn first_mut(&mut self) -> Option<&mut R> {
        let first = self.first;
        self.waiter(first).map(|waiter| &mut waiter.request)
    }

    pub(crate) fn is_first(&self, at: u32) -> bool {
        self.first == at
    }

    /// The waker of the first waiter, who keeps waiting; `None` if the first waiter was not polled yet.
    pub(crate) fn waker_of_first(&mut self) -> Option<Waker> {
        let first = self.first;
        self.waiter(first)?.waker.clone()
    }

    /// Whether no position is in use, not even by a waiter that has not taken its grant yet.
    pub(crate) fn is_unused(&self) -> bool {
        self.used == 0
    }

    /// Grants `given` to the first waiter. Returns the waiter's waker; `None` if the waiter was not polled yet.
    ///
    /// # Panics
    /// If there is no waiter.
    pub(crate) fn grant(&mut self, given: G) -> Option<Waker> {
        let at = self.first;
        let waker = self.unlink(at).and_then(|waiter| waiter.waker.take());
        self.places[at as usize] = FifoNode::Given(given);
        waker
    }

    /// Takes the waiter's grant; without a grant, `waker` is woken once the waiter has a grant.
    pub(crate) fn take(&mut self, at: u32, waker: &Waker) -> Option<G> {
        match &mut self.places[at as usize] {
            FifoNode::Waiting(waiter) => {
                if !waiter.waker.as_ref().is_some_and(|w| w.will_wake(waker)) {
                    waiter.waker = Some(waker.clone());
                }
                None
            }
            FifoNode::Given(_) | FifoNode::Vacant { .. } => self.leave(at),
        }
    }

    /// Removes the waiter; returns a grant that the waiter has not taken.
    pub(crate) fn leave(&mut self, at: u32) -> Option<G> {
        self.unlink(at);
        let vacant = FifoNode::Vacant { next: self.vacant };
        let left = std::mem::replace(&mut self.places[at as usize], vacant);
        self.vacant = at;
        self.used -= 1;
        match left {
            FifoNode::Given(given) => Some(given),
            FifoNode::Waiting(_) => None,
            FifoNode::Vacant { .. } => unreachable!("a waiter leaves once"),
        }
    }

    fn waiter(&mut self, at: u32) -> Option<&mut Waiter<R>> {
        match self.places.get_mut(at as usize)? {
            FifoNode::Waiting(waiter) => Some(waiter),
            FifoNode::Vacant { .. } | FifoNode::Given(_) => None,
        }
    }

    /// Unlinks a waiter from the queue, if the waiter is still in the queue.
    fn unlink(&mut self, at: u32) -> Option<&mut Waiter<R>> {
        let waiter = self.waiter(at)?;
        let (before, behind) = (waiter.before, waiter.behind);
        match self.waiter(before) {
            Some(before) => before.behind = behind,
            None => self.first = behind,
        }
        match self.waiter(behind) {
            Some(behind) => behind.before = before,
            None => self.last = before,
        }
        self.waiter(at)
    }
}

/// Wakers that are woken after a lock has been released.
#[derive(Default)]
pub(crate) struct Woken {
    first: Option<Waker>,
    /// Further wakers; usually empty.
    more: Vec<Waker>,
}

impl Woken {
    pub(crate) fn add(&mut self, waker: Option<Waker>) {
        match (&self.first, waker) {
            (_, None) => {}
            (None, waker) => self.first = waker,
            (Some(_), Some(waker)) => self.more.push(waker),
        }
    }

    pub(crate) fn wake(self) {
        self.first.into_iter().for_each(Waker::wake);
        self.more.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    #[derive(Default)]
    struct Count(AtomicU64);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Join,
        Give,
        /// The waiter with this index among the present waiters takes its grant.
        Take(usize),
        Leave(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Join),
            2 => Just(Step::Give),
            2 => (0..100usize).prop_map(Step::Take),
            1 => (0..100usize).prop_map(Step::Leave),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        /// Compares the queue with a slow and simple model.
        #[test]
        fn the_first_to_come_is_the_first_to_be_given(steps in steps()) {
            let mut fifo = Fifo::<u32, u32>::default();
            let (mut queue, mut given) = (VecDeque::new(), BTreeMap::new());
            let mut there: Vec<(u32, u32)> = Vec::new();
            let waker = Waker::noop();
            for (number, step) in (0u32..).zip(steps) {
                match step {
                    Step::Join => {
                        let at = fifo.join(number);
                        prop_assert!(there.iter().all(|(_, place)| *place != at));
                        there.push((number, at));
                        queue.push_back(number);
                    }
                    Step::Give => {
                        prop_assert_eq!(fifo.first(), queue.front());
                        if let Some(first) = queue.pop_front() {
                            fifo.grant(number);
                            given.insert(first, number);
                        }
                    }
                    Step::Take(i) if !there.is_empty() => {
                        let i = i % there.len();
                        let (who, at) = there[i];
                        let taken = fifo.take(at, waker);
                        prop_assert_eq!(taken, given.remove(&who));
                        if taken.is_some() {
                            there.remove(i);
                        }
                    }
                    Step::Leave(i) if !there.is_empty() => {
                        let (who, at) = there.remove(i % there.len());
                        queue.retain(|q| *q != who);
                        prop_assert_eq!(fifo.leave(at), given.remove(&who));
                    }
                    Step::Take(_) | Step::Leave(_) => {}
                }
                prop_assert_eq!(fifo.is_unused(), there.is_empty());
                prop_assert_eq!(fifo.first(), queue.front());
            }
            prop_assert!(fifo.places.len() <= 300);
        }
    }

    #[test]
    fn a_waiter_that_has_looked_is_woken_once() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut fifo = Fifo::<(), u8>::default();
        let (a, b) = (fifo.join(()), fifo.join(()));
        assert_eq!((fifo.take(a, &waker), fifo.take(a, &waker)), (None, None));
        let mut woken = Woken::default();
        woken.add(fifo.grant(1));
        // The second waiter has not looked for its grant yet, and finds the grant when it looks.
        woken.add(fifo.grant(2));
        woken.wake();
        assert_eq!(count.0.load(SeqCst), 1);
        assert_eq!((fifo.take(b, &waker), fifo.leave(a)), (Some(2), Some(1)));
        assert!(fifo.is_unused());
    }
}
