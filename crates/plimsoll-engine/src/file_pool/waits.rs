//! Workers that wait for entries.

use super::entries::{Choice, Entries, Existence};
use crate::sync::{BlockedCount, Fifo, Wait, WaitQueue, Woken, lock};
use plimsoll_lane::{Lane, LaneKind, Stopped};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicUsize, fence};
use std::task::Waker;

/// Times that a worker with a thread of its own is woken and finds the entry gone again, before
/// one is kept for it.
const MAX_RETRIES_BEFORE_GRANT: u32 = 32;

/// Workers that wait for entries of a set, in the order of their arrival.
///
/// Among workers that share threads, whoever releases an entry takes it out again for the first
/// that waits for it: an entry goes from one to the next, and the worker that is woken has it.
///
/// Where each worker has a thread of its own that would cost every operation the time that a
/// thread takes to wake up. There the first that waits is woken and the entry left where it is:
/// workers that run may take it meanwhile, and the one that was woken tries again. Only one is
/// woken at a time, and wakes the next when it got an entry and there is another. After
/// [`MAX_RETRIES_BEFORE_GRANT`] in vain it is handed one.
#[derive(Default)]
pub(super) struct Waits {
    waiting: WaiterCount,
    queues: Mutex<Queues>,
}

/// Workers in the queues. Every release reads it, so that it has a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
struct WaiterCount(AtomicUsize);

#[derive(Default)]
struct Queues {
    /// Those who wait for any entry of a kind.
    kinds: [Fifo<Request, Choice>; 2],
    /// Whether the first of them was woken to try, and has not tried yet.
    trying: [bool; 2],
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
    /// Times that the worker may be woken to try before it is handed an entry.
    tries_left: u32,
}

/// What a worker waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// Any entry of the kind; with a number, the one of that number or the next that qualifies.
    Any(Existence, Option<u64>),
    /// This entry.
    This(u32),
}

/// A place in one of the queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitPosition {
    want: Want,
    at: u32,
}

impl Queues {
    fn join(&mut self, want: Want, tries: u32) -> WaitPosition {
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
        let at = queue.join(Request {
            arrival,
            from,
            tries_left: tries,
        });
        WaitPosition { want, at }
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
        place: WaitPosition,
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
    fn hand_over(&mut self, i: u32, now: Existence) {
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
        // While somebody works on an entry, or is about to, it may become one of the other kind.
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
            self.woken.add(queue.grant(choice));
            self.waiting.fetch_sub(1, SeqCst);
        }
        taken
    }

    /// Serves those who wait for an entry of this kind: the first gets one or is woken to try, or
    /// all hear that there is none. Whether one got an entry. No more than one does, since whoever
    /// released another entry hands that on.
    fn serve_kind(&mut self, kind: Existence, i: u32) -> bool {
        let (entries, at) = (self.entries, kind as usize);
        while let Some(first) = self.queues.kinds[at].first() {
            let choice = match first.tries_left {
                0 => entries.choose_at(kind, first.from.unwrap_or(i.into())),
                _ if entries.has_idle(kind) => {
                    self.wake_first_to_retry(kind);
                    return false;
                }
                _ => entries.nothing(kind),
            };
            if choice == Choice::AllBusy {
                return false;
            }
            self.grant(kind, choice);
            if choice != Choice::None {
                return true;
            }
        }
        false
    }

    fn grant(&mut self, kind: Existence, choice: Choice) {
        self.woken
            .add(self.queues.kinds[kind as usize].grant(choice));
        self.queues.trying[kind as usize] = false;
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// Wakes the first that waits for an entry of this kind, unless it was woken and is yet to
    /// try.
    fn wake_first_to_retry(&mut self, kind: Existence) {
        let queue = &mut self.queues.kinds[kind as usize];
        if queue.first().is_some() && !self.queues.trying[kind as usize] {
            self.queues.trying[kind as usize] = true;
            self.woken.add(queue.waker_of_first());
        }
    }

    /// The worker that was woken to try does: what it got, if that is anything.
    fn retry(&mut self, kind: Existence, at: u32) -> Option<Choice> {
        let (queue, trying) = (
            &mut self.queues.kinds[kind as usize],
            &mut self.queues.trying[kind as usize],
        );
        if !queue.is_first(at) || !std::mem::take(trying) {
            return None;
        }
        let first = queue.first_mut()?;
        let choice = self.entries.choose_at(kind, first.from.unwrap_or(0));
        if choice == Choice::AllBusy {
            first.tries_left -= 1;
            return None;
        }
        queue.leave(at);
        self.waiting.fetch_sub(1, SeqCst);
        match choice {
            // There may be another for the next.
            Choice::Taken(_) if self.entries.has_idle(kind) => self.wake_first_to_retry(kind),
            Choice::Taken(_) | Choice::AllBusy => {}
            // It is the same for all.
            Choice::None => drop(self.serve_kind(kind, 0)),
        }
        Some(choice)
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
    pub(super) fn hand_over(&self, entries: &Entries, i: u32, now: Existence) {
        self.change(entries, |handover| handover.hand_over(i, now));
    }

    /// Changes the queues, and wakes whom that lets go on.
    fn change<T>(&self, entries: &Entries, change: impl FnOnce(&mut Handover<'_>) -> T) -> T {
        let mut queues = lock(&self.queues);
        let mut handover = Handover {
            entries,
            waiting: &self.waiting.0,
            queues: &mut queues,
            woken: Woken::default(),
        };
        let result = change(&mut handover);
        let woken = handover.woken;
        drop(queues);
        woken.wake();
        result
    }

    /// Joins those who wait, unless nobody does and `look` finds that there is nothing to wait for.
    fn join(
        &self,
        want: Want,
        tries: u32,
        look: impl FnOnce() -> Choice,
    ) -> Result<WaitPosition, Choice> {
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
        Ok(queues.join(want, tries))
    }
}

/// The queues of a set.
struct EntryQueue<'a> {
    entries: &'a Entries,
    waits: &'a Waits,
}

impl WaitQueue for EntryQueue<'_> {
    type Position = WaitPosition;
    type Grant = Choice;

    fn take(&self, place: WaitPosition, waker: &Waker) -> Option<Choice> {
        self.waits.change(self.entries, |handover| {
            let given = handover
                .queues
                .with(place, |queue, at| queue.take(at, waker));
            match (given, place.want) {
                (None, Want::Any(kind, _)) => handover.retry(kind, place.at),
                (given, _) => given,
            }
        })
    }

    fn leave(&self, place: WaitPosition) {
        let given = self.waits.change(self.entries, |handover| {
            let was_first = match place.want {
                Want::Any(kind, _) => Some(kind)
                    .filter(|kind| handover.queues.kinds[*kind as usize].is_first(place.at)),
                Want::This(_) => None,
            };
            let given = handover
                .queues
                .with(place, |queue, at| Some(queue.leave(at)))
                .flatten();
            if given.is_none() {
                handover.waiting.fetch_sub(1, SeqCst);
            }
            // It was woken to try: the next does instead.
            if let Some(kind) = was_first
                && std::mem::take(&mut handover.queues.trying[kind as usize])
            {
                handover.wake_first_to_retry(kind);
            }
            given
        });
        if let Some(Choice::Taken(i)) = given {
            let kind = match place.want {
                Want::Any(kind, _) => kind,
                // Only entries that exist are claimed.
                Want::This(_) => Existence::Existing,
            };
            self.entries.release(i, kind);
        }
    }
}

/// Waits for an entry; `look` says once more whether there is nothing to wait for.
pub(super) async fn wait(
    (entries, waits): (&Entries, &Waits),
    want: Want,
    lane: &Lane,
    idle: &BlockedCount,
    look: impl FnOnce() -> Choice,
) -> Result<Choice, Stopped> {
    let tries = match lane.kind() {
        LaneKind::Blocking => MAX_RETRIES_BEFORE_GRANT,
        LaneKind::Reactor | LaneKind::Virtual => 0,
    };
    match waits.join(want, tries, look) {
        Err(choice) => Ok(choice),
        Ok(place) => {
            let line = EntryQueue { entries, waits };
            Wait::at(&line, place, lane, idle).await
        }
    }
}

#[cfg(test)]
mod tests;
