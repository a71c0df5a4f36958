//! The entries of a fileset, and the workers that wait for entries.

use super::entries::{Choice, Entries, Existence, RankPart};
use crate::sync::{BlockedCount, Fifo, Wait, WaitQueue, Woken, lock};
use plimsoll_lane::{Lane, LaneKind, Stopped};
use plimsoll_runtime::sync::Mutex;
use plimsoll_runtime::sync::atomic::Ordering::SeqCst;
use plimsoll_runtime::sync::atomic::{AtomicUsize, fence};
use std::collections::HashMap;
use std::ops::Deref;
use std::task::Waker;

/// Number of failed retries of a waiter with its own thread, after which a releasing worker hands the waiter an entry.
const MAX_RETRIES_BEFORE_GRANT: u32 = 32;

/// Entries of a fileset, and the workers that wait for entries in the order of arrival.
///
/// Among workers that share threads, a worker that releases an entry hands the entry to the first waiter and wakes this
/// waiter.
///
/// If each worker has its own thread, a handover would cost every operation a thread wakeup. The release then wakes the
/// first waiter to retry, and running workers may take the entry before the waiter does. Only one waiter is awake at a
/// time; a waiter that gets an entry wakes the next waiter if another entry is idle. After [`MAX_RETRIES_BEFORE_GRANT`]
/// failed retries, the waiter is handed an entry.
pub(crate) struct EntryPool {
    entries: Entries,
    waiting: WaiterCount,
    queues: Mutex<Queues>,
}

/// Number of workers in the queues. Every release reads this number, so it has its own cache line.
#[repr(align(64))]
#[derive(Default)]
struct WaiterCount(AtomicUsize);

#[derive(Default)]
struct Queues {
    /// For each kind of entry, the queue of workers that wait for any entry of the kind.
    kinds: [Fifo<Request, Choice>; 2],
    /// For each kind, whether the first waiter was woken to retry and has not retried yet.
    trying: [bool; 2],
    /// Workers that wait for a particular entry, by the number of the entry.
    claims: HashMap<u32, Fifo<Request, Choice>>,
    /// Number of requests that have joined a queue since the pool was created.
    arrivals: u64,
}

struct Request {
    /// Number of the request in the order of arrival in all queues.
    arrival: u64,
    /// Entry with which the search begins; `None` if the worker has no preference.
    from: Option<u64>,
    /// Number of retries left before the worker is handed an entry.
    tries_left: u32,
}

/// The request of a waiting worker: an entry of a kind, or one particular entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// Request for any entry of a kind; with a number, for the entry with the number or the next entry of the kind.
    Any(Existence, Option<u64>),
    /// Request for the entry with the given number; the wait ends without an entry if the entry is missing.
    This(u32),
}

/// The position of a waiter in the queue of a kind, or in the queue of a particular entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitPosition {
    want: Want,
    at: u32,
}

impl Queues {
    fn join(&mut self, want: Want, tries: u32) -> WaitPosition {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let (queue, from) = match want {
            Want::Any(kind, from) => (&mut self.kinds[kind as usize], from),
            Want::This(i) => (self.claims.entry(i).or_default(), None),
        };
        let at = queue.join(Request {
            arrival,
            from,
            tries_left: tries,
        });
        WaitPosition { want, at }
    }

    /// Whether the queue of `want` has waiters, behind which a new waiter would wait.
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
        act: impl FnOnce(&mut Fifo<Request, Choice>, u32) -> T,
    ) -> T {
        match place.want {
            Want::Any(kind, _) => act(&mut self.kinds[kind as usize], place.at),
            Want::This(i) => {
                let queue = self.claims.get_mut(&i);
                let queue = queue.expect("a queue stays while a waiter has a position in it");
                let result = act(queue, place.at);
                if queue.is_unused() {
                    self.claims.remove(&i);
                }
                result
            }
        }
    }
}

/// Exclusive access to the queues, and the workers to wake once the lock of the queues is released.
struct Handover<'a> {
    entries: &'a Entries,
    waiting: &'a AtomicUsize,
    queues: &'a mut Queues,
    woken: Woken,
}

impl Handover<'_> {
    /// Hands entry `i`, released with existence `now`, to the waiter that arrived first among the waiters for entry `i`
    /// and for the kind `now`; if no waiter takes an entry, waiters for the other kind may learn that no entry of the
    /// other kind is left.
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
        // An entry that is busy, or about to be, may become an entry of the other kind.
        if !has_gone && self.queues.kinds[now as usize].first().is_none() {
            self.serve_kind(now.other(), i);
        }
    }

    /// Serves the waiters for entry `i`. Returns whether a waiter got the entry.
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

    /// Serves the waiters for an entry of this kind. The first waiter gets an entry or is woken to retry, or all
    /// waiters are informed that no entry is left. Returns whether a waiter got an entry; at most one waiter does,
    /// because every release hands over its own entry.
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

    /// Wakes the first waiter for an entry of this kind, unless the waiter was woken already and has not retried yet.
    fn wake_first_to_retry(&mut self, kind: Existence) {
        let queue = &mut self.queues.kinds[kind as usize];
        if queue.first().is_some() && !self.queues.trying[kind as usize] {
            self.queues.trying[kind as usize] = true;
            self.woken.add(queue.waker_of_first());
        }
    }

    /// Retries for a worker that was woken to retry; returns the worker's grant.
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
            // The next waiter is woken, because another entry of the kind is idle.
            Choice::Taken(_) if self.entries.has_idle(kind) => self.wake_first_to_retry(kind),
            Choice::Taken(_) | Choice::AllBusy => {}
            // No entry of the kind is left, which ends the waits of all other waiters for the kind.
            Choice::None => drop(self.serve_kind(kind, 0)),
        }
        Some(choice)
    }
}

impl EntryPool {
    /// A pool of `len` entries; `initial` and `part` as in [`Entries::new`].
    pub(crate) fn new(len: u32, initial: impl Fn(u32) -> u64, part: RankPart) -> Self {
        Self {
            entries: Entries::new(len, initial, part),
            waiting: WaiterCount::default(),
            queues: Mutex::default(),
        }
    }

    /// Makes the taken entry `i` idle with the existence `now`, and serves the waiters for the entry and for its kind.
    #[inline]
    pub(crate) fn release(&self, i: u32, now: Existence) {
        self.entries.put(i, now);
        if self.has_waiters() {
            self.hand_over(i, now);
        }
    }

    /// Whether a worker waits. Must be called after an entry was released by a sequentially consistent
    /// read-modify-write, which orders the release before this load as a fence would.
    #[inline(always)]
    fn has_waiters(&self) -> bool {
        self.waiting.0.load(SeqCst) > 0
    }

    /// Serves the waiters after the release of entry `i` with the existence `now`.
    #[cold]
    #[inline(never)]
    fn hand_over(&self, i: u32, now: Existence) {
        self.change(|handover| handover.hand_over(i, now));
    }

    /// Changes the queues, and wakes the workers that may continue.
    fn change<T>(&self, change: impl FnOnce(&mut Handover<'_>) -> T) -> T {
        let mut queues = lock(&self.queues);
        let mut handover = Handover {
            entries: &self.entries,
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

    /// Waits for an entry while all candidates are busy; `look` checks once more whether the candidates are busy.
    pub(crate) async fn wait(
        &self,
        want: Want,
        lane: &Lane,
        idle: &BlockedCount,
        look: impl FnOnce() -> Choice,
    ) -> Result<Choice, Stopped> {
        let tries = match lane.kind() {
            LaneKind::Blocking => MAX_RETRIES_BEFORE_GRANT,
            LaneKind::Reactor | LaneKind::Virtual => 0,
        };
        match self.join(want, tries, look) {
            Err(choice) => Ok(choice),
            Ok(place) => Wait::at(self, place, lane, idle).await,
        }
    }

    /// Joins the waiters, unless the queue is empty and `look` finds no reason to wait.
    fn join(
        &self,
        want: Want,
        tries: u32,
        look: impl FnOnce() -> Choice,
    ) -> Result<WaitPosition, Choice> {
        let mut queues = lock(&self.queues);
        // From now on every release hands over the released entry. `look` sees entries of earlier releases, except
        // entries that were handed to earlier waiters.
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

impl Deref for EntryPool {
    type Target = Entries;

    #[inline]
    fn deref(&self) -> &Entries {
        &self.entries
    }
}

impl WaitQueue for EntryPool {
    type Position = WaitPosition;
    type Grant = Choice;

    fn take(&self, place: WaitPosition, waker: &Waker) -> Option<Choice> {
        self.change(|handover| {
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
        // Only an existing entry is claimed by number, so a waiter's grant of a particular entry is an existing entry.
        let (kind, first_of) = match place.want {
            Want::Any(kind, _) => (kind, Some(kind)),
            Want::This(_) => (Existence::Existing, None),
        };
        let given = self.change(|handover| {
            let was_first =
                first_of.filter(|k| handover.queues.kinds[*k as usize].is_first(place.at));
            let given = handover.queues.with(place, |queue, at| queue.leave(at));
            if given.is_none() {
                handover.waiting.fetch_sub(1, SeqCst);
            }
            // The waiter was woken to retry: the next waiter retries instead.
            if let Some(kind) = was_first
                && std::mem::take(&mut handover.queues.trying[kind as usize])
            {
                handover.wake_first_to_retry(kind);
            }
            given
        });
        if let Some(Choice::Taken(i)) = given {
            self.release(i, kind);
        }
    }
}

#[cfg(test)]
mod tests;
