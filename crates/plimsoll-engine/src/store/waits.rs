//! Workers that wait for entries.

use super::entries::{Choice, Entries, Kind};
use crate::sync::{Fifo, Idle, Queue, Wait, Woken, lock};
use plimsoll_lane::{Lane, Stopped};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicUsize, fence};
use std::task::Waker;

/// Workers that wait for entries of a set, in the order of their arrival.
///
/// Whoever releases an entry takes it out again for the first that waits for it, so that it goes
/// from hand to hand: the worker that is woken has it.
#[derive(Default)]
pub(super) struct Waits {
    waiting: Waiting,
    queues: Mutex<Queues>,
}

/// Workers in the queues. Every release reads it, so that it has a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
struct Waiting(AtomicUsize);

#[derive(Default)]
struct Queues {
    /// Those who wait for any entry of a kind.
    kinds: [Fifo<Request, Choice>; 2],
    /// Those who wait for one entry in particular, by its number.
    claims: HashMap<u32, Fifo<Request, Choice>>,
    /// Requests so far.
    arrivals: u64,
}

struct Request {
    /// Number of the request, in the order of arrival in all queues.
    arrival: u64,
    /// Entry to begin the search with.
    from: Option<u64>,
}

/// What a worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// Any entry of the kind; with a number, the one of that number or the next that qualifies.
    Any(Kind, Option<u64>),
    /// This entry.
    This(u32),
}

/// A place in one of the queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    want: Want,
    at: u32,
}

impl Queues {
    fn join(&mut self, want: Want) -> Place {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let from = match want {
            Want::Any(_, from) => from,
            Want::This(_) => None,
        };
        let queue = match want {
            Want::Any(kind, _) => &mut self.kinds[kind as usize],
            Want::This(i) => self.claims.entry(i).or_default(),
        };
        let at = queue.join(Request { arrival, from });
        Place { want, at }
    }

    /// Whether there is somebody to come before a new waiter.
    fn has_waiters(&self, want: Want) -> bool {
        let queue = match want {
            Want::Any(kind, _) => Some(&self.kinds[kind as usize]),
            Want::This(i) => self.claims.get(&i),
        };
        queue.is_some_and(|q| q.first().is_some())
    }

    fn with<T>(
        &mut self,
        place: Place,
        act: impl FnOnce(&mut Fifo<Request, Choice>, u32) -> Option<T>,
    ) -> Option<T> {
        match place.want {
            Want::Any(kind, _) => act(&mut self.kinds[kind as usize], place.at),
            Want::This(i) => {
                let Entry::Occupied(mut queue) = self.claims.entry(i) else {
                    debug_assert!(false, "a queue stays while somebody has a place in it");
                    return None;
                };
                let result = act(queue.get_mut(), place.at);
                if queue.get().is_unused() {
                    queue.remove();
                }
                result
            }
        }
    }
}

/// The queues while an entry is handed on.
struct Handover<'a> {
    entries: &'a Entries,
    waiting: &'a AtomicUsize,
    queues: &'a mut Queues,
    woken: Woken,
}

impl Handover<'_> {
    /// Entry `i` was released as one of the kind `now`: it goes to the first of those who wait for
    /// it, or nobody works on any entry any more and those who wait for the other kind hear that
    /// there is none.
    fn hand_on(&mut self, i: u32, now: Kind) {
        let arrival = |q: &Fifo<Request, Choice>| q.first().map(|r| r.arrival);
        let of_kind = arrival(&self.queues.kinds[now as usize]);
        let of_this = self.queues.claims.get(&i).and_then(arrival);
        let claim_first = match (of_this, of_kind) {
            (Some(this), Some(kind)) => this < kind,
            (this, _) => this.is_some(),
        };
        let mut has_gone = claim_first && self.serve_claims(i);
        has_gone |= self.serve_kind(now, i);
        if of_this.is_some() && !claim_first {
            has_gone |= self.serve_claims(i);
        }
        // While somebody works on an entry, it may become one of the other kind.
        if !has_gone && self.queues.kinds[now as usize].first().is_none() {
            self.serve_kind(now.other(), i);
        }
    }

    /// Serves those who wait for this entry; whether one of them got it.
    fn serve_claims(&mut self, i: u32) -> bool {
        let Some(queue) = self.queues.claims.get_mut(&i) else {
            return false;
        };
        let mut taken = false;
        while queue.first().is_some() {
            let choice = self.entries.claim(i);
            if choice == Choice::AllBusy {
                break;
            }
            taken |= choice != Choice::None;
            self.woken.add(queue.give(choice));
            self.waiting.fetch_sub(1, SeqCst);
        }
        taken
    }

    /// Serves those who wait for an entry of this kind: the first gets one, or all hear that there
    /// is none. Whether one got an entry. No more than one does, since whoever released another
    /// entry hands that on.
    fn serve_kind(&mut self, kind: Kind, i: u32) -> bool {
        let queue = &mut self.queues.kinds[kind as usize];
        while let Some(first) = queue.first() {
            let from = first.from.unwrap_or(i.into());
            let choice = self.entries.choose_at(kind, from);
            if choice == Choice::AllBusy {
                return false;
            }
            self.woken.add(queue.give(choice));
            self.waiting.fetch_sub(1, SeqCst);
            if choice != Choice::None {
                return true;
            }
        }
        false
    }
}

impl Waits {
    /// Whether anybody waits. Called after an entry was put in by a sequentially consistent
    /// read-modify-write, which orders that before this look as a fence would.
    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        self.waiting.0.load(SeqCst) > 0
    }

    /// Hands on what can be after entry `i` was released as one of the kind `now`.
    #[cold]
    #[inline(never)]
    pub(super) fn hand_on(&self, entries: &Entries, i: u32, now: Kind) {
        let mut queues = lock(&self.queues);
        let mut handover = Handover {
            entries,
            waiting: &self.waiting.0,
            queues: &mut queues,
            woken: Woken::default(),
        };
        handover.hand_on(i, now);
        let woken = handover.woken;
        drop(queues);
        woken.wake();
    }

    /// Joins those who wait, unless nobody does and `look` finds that there is nothing to wait for.
    fn join(&self, want: Want, look: impl FnOnce() -> Choice) -> Result<Place, Choice> {
        let mut queues = lock(&self.queues);
        // Whoever releases an entry from now on hands it on; what was released before is seen by
        // the look, or handed on to who came first.
        self.waiting.0.fetch_add(1, SeqCst);
        fence(SeqCst);
        if !queues.has_waiters(want) {
            let choice = look();
            if choice != Choice::AllBusy {
                self.waiting.0.fetch_sub(1, SeqCst);
                return Err(choice);
            }
        }
        Ok(queues.join(want))
    }
}

/// The queues of a set.
struct Line<'a> {
    entries: &'a Entries,
    waits: &'a Waits,
}

impl Queue for Line<'_> {
    type Place = Place;
    type Given = Choice;

    fn take(&self, place: Place, waker: &Waker) -> Option<Choice> {
        let mut queues = lock(&self.waits.queues);
        queues.with(place, |queue, at| queue.take(at, waker))
    }

    fn leave(&self, place: Place) {
        let mut queues = lock(&self.waits.queues);
        let given = queues.with(place, |queue, at| Some(queue.leave(at)));
        drop(queues);
        match given.flatten() {
            // It was still waiting.
            None => drop(self.waits.waiting.0.fetch_sub(1, SeqCst)),
            Some(Choice::Taken(i)) => {
                let kind = match place.want {
                    Want::Any(kind, _) => kind,
                    // Only entries that exist are claimed.
                    Want::This(_) => Kind::Present,
                };
                self.entries.release(i, kind);
            }
            Some(Choice::None | Choice::AllBusy) => {}
        }
    }
}

/// Waits for an entry; `look` says once more whether there is nothing to wait for.
pub(super) async fn wait(
    (entries, waits): (&Entries, &Waits),
    want: Want,
    lane: &Lane,
    idle: &Idle,
    look: impl FnOnce() -> Choice,
) -> Result<Choice, Stopped> {
    match waits.join(want, look) {
        Err(choice) => Ok(choice),
        Ok(place) => {
            let line = Line { entries, waits };
            Wait::at(&line, place, lane, idle).await
        }
    }
}

#[cfg(test)]
mod tests;
