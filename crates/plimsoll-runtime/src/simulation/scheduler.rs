//! Scheduler of a simulation: selects the next thread and advances time.

use super::SimulationEnd;
use crate::SimulatedDisk;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Maximum duration of a thread switch in nanoseconds.
const MAX_SWITCH_NS: u64 = 2_000;

/// Permission to run, for which an operating-system thread waits.
#[derive(Default)]
pub(super) struct Baton {
    given: Mutex<bool>,
    changed: Condvar,
}

impl Baton {
    fn give(&self) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }

    pub(super) fn take(&self) {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let given = self.changed.wait_while(given, |given| !*given);
        *given.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    Ready,
    Running,
    Sleeping,
    Parked,
    Waiting { key: usize },
    Ended,
}

pub(super) struct ThreadEntry {
    pub(super) name: String,
    pub(super) process: usize,
    pub(super) state: ThreadState,
    /// Latest time at which the thread becomes ready, in simulated nanoseconds; `None` without a time limit.
    wake_at: Option<u64>,
    /// Whether the thread was unparked before it parked.
    pub(super) permit: bool,
    pub(super) baton: Arc<Baton>,
}

pub(super) struct ProcessEntry {
    pub(super) main: usize,
    pub(super) alive: bool,
    pub(super) stopped: bool,
    pub(super) clock_ahead: i64,
    /// Clock drift in millionths; positive if the clocks run fast.
    pub(super) drift_ppm: i64,
    pub(super) disk: SimulatedDisk,
    /// Number of disk accesses so far, and number of failed accesses.
    pub(super) disk_calls: u64,
    pub(super) disk_errors: u64,
}

pub(super) struct Scheduler {
    rng: Xoshiro256PlusPlus,
    clock: Arc<AtomicU64>,
    pub(super) threads: Vec<ThreadEntry>,
    pub(super) processes: Vec<ProcessEntry>,
    /// Threads that can run now.
    ready: Vec<usize>,
    /// Blocked threads with a time limit, sorted by time.
    timers: BTreeSet<(u64, usize)>,
    pub(super) running: Option<usize>,
    /// Time limit of the simulation in nanoseconds.
    pub(super) limit: u64,
    pub(super) end: Option<SimulationEnd>,
    /// Whether the simulation is over: no thread continues.
    pub(super) is_over: bool,
    pub(super) panics: Vec<String>,
}

impl Scheduler {
    pub(super) fn new(rng: Xoshiro256PlusPlus, clock: Arc<AtomicU64>) -> Self {
        Self {
            rng,
            clock,
            threads: Vec::new(),
            processes: Vec::new(),
            ready: Vec::new(),
            timers: BTreeSet::new(),
            running: None,
            limit: u64::MAX,
            end: None,
            is_over: false,
            panics: Vec::new(),
        }
    }

    /// Adds a runnable thread.
    pub(super) fn add_thread(&mut self, process: usize, name: String) -> usize {
        let thread = self.threads.len();
        self.threads.push(ThreadEntry {
            name,
            process,
            state: ThreadState::Ready,
            wake_at: None,
            permit: false,
            baton: Arc::default(),
        });
        self.ready.push(thread);
        thread
    }

    /// Blocks the running thread.
    pub(super) fn block(&mut self, thread: usize, state: ThreadState, at_most: Option<Duration>) {
        let wake_at = at_most.map(|time| {
            let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            self.clock.load(Relaxed).saturating_add(time)
        });
        let entry = &mut self.threads[thread];
        if entry.state == ThreadState::Ended {
            // The thread's process has killed itself.
            return;
        }
        assert_eq!(entry.state, ThreadState::Running, "{} blocks", entry.name);
        entry.state = state;
        entry.wake_at = wake_at;
        if let Some(at) = wake_at {
            self.timers.insert((at, thread));
        }
    }

    fn make_ready(&mut self, thread: usize) {
        let entry = &mut self.threads[thread];
        entry.state = ThreadState::Ready;
        if let Some(at) = entry.wake_at.take() {
            self.timers.remove(&(at, thread));
        }
        self.ready.push(thread);
    }

    pub(super) fn unpark(&mut self, thread: usize) {
        match self.threads[thread].state {
            ThreadState::Parked => self.make_ready(thread),
            ThreadState::Ended => {}
            _ => self.threads[thread].permit = true,
        }
    }

    pub(super) fn wake_all(&mut self, key: usize) {
        for thread in 0..self.threads.len() {
            if self.threads[thread].state == (ThreadState::Waiting { key }) {
                self.make_ready(thread);
            }
        }
    }

    fn retire(&mut self, thread: usize) {
        let entry = &mut self.threads[thread];
        entry.state = ThreadState::Ended;
        if let Some(at) = entry.wake_at.take() {
            self.timers.remove(&(at, thread));
        }
        self.ready.retain(|t| *t != thread);
    }

    /// Ends the running thread; the first thread of a process ends the process, too.
    pub(super) fn end_thread(&mut self, thread: usize) {
        self.retire(thread);
        let process = self.threads[thread].process;
        if self.processes[process].main == thread {
            self.kill(process);
        }
    }

    /// Ends all threads of a process. Waiting threads of other processes check their conditions again.
    pub(super) fn kill(&mut self, process: usize) {
        if !std::mem::replace(&mut self.processes[process].alive, false) {
            return;
        }
        for thread in 0..self.threads.len() {
            match self.threads[thread].state {
                ThreadState::Ended => {}
                _ if self.threads[thread].process == process => self.retire(thread),
                ThreadState::Waiting { .. } => self.make_ready(thread),
                _ => {}
            }
        }
    }

    /// Selects the next thread and lets the thread run; returns whether the selected thread is `from`, which then
    /// continues.
    pub(super) fn hand_over(&mut self, from: Option<usize>) -> bool {
        if self.is_over {
            return false;
        }
        let switch = self.rng.random_range(0..MAX_SWITCH_NS);
        self.clock.fetch_add(switch, Relaxed);
        let Some(next) = self.choose() else {
            self.is_over = true;
            return false;
        };
        self.threads[next].state = ThreadState::Running;
        self.running = Some(next);
        if from == Some(next) {
            return true;
        }
        self.threads[next].baton.give();
        false
    }

    /// Selects the next thread; `None` at the end of the simulation.
    fn choose(&mut self) -> Option<usize> {
        loop {
            let now = self.clock.load(Relaxed);
            while let Some(&(at, thread)) = self.timers.first()
                && at <= now
            {
                self.make_ready(thread);
            }
            let may_run = |t: &usize| !self.processes[self.threads[*t].process].stopped;
            let candidates: Vec<usize> = self.ready.iter().copied().filter(may_run).collect();
            if !candidates.is_empty() {
                let next = candidates[self.rng.random_range(0..candidates.len())];
                self.ready.retain(|t| *t != next);
                return Some(next);
            }
            let Some(&(at, _)) = self.timers.first() else {
                self.end = Some(match self.left() {
                    left if left.is_empty() => SimulationEnd::Finished,
                    left => SimulationEnd::Deadlock(left),
                });
                return None;
            };
            if at > self.limit {
                self.end = Some(SimulationEnd::TimeLimit(self.left()));
                return None;
            }
            self.clock.fetch_max(at, Relaxed);
        }
    }

    /// Names of threads that have not ended.
    fn left(&self) -> Vec<String> {
        let left = self.threads.iter();
        let left = left.filter(|t| t.state != ThreadState::Ended);
        left.map(|t| format!("{} ({:?})", t.name, t.state))
            .collect()
    }
}
