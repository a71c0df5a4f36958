//! Discrete-event simulation of a system in virtual time.

use crate::buffer::Buffer;
use crate::cache::{Cache, CacheTotals};
use crate::flow::{Completion, Flows, Operation, Purpose};
use crate::instance::{FlowId, Instance};
use crate::limit::Limit;
use crate::system::System;
use crate::tally::StationTotals;
use crate::tokens::Tokens;
use crate::window::RowTotals;
use plimsoll_lane::EventQueue;
use plimsoll_measure::Nanos;
use plimsoll_plan::{Rng, Stream};
use std::collections::VecDeque;
use std::ops::Range;

/// An event of the event queue, handled when virtual time reaches the instant of the event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// End of a flow's service; void if the visit was cut short.
    Served { flow: FlowId, visit: u32 },
    /// Check of a processor-sharing instance for ended operations; void if a later wake-up was scheduled.
    WakeUp { instance: u32, epoch: u32 },
    /// Retry of a flow; void if the flow has continued in the meantime.
    Resume { flow: FlowId, visit: u32 },
    /// Changes of the script at this time, beginning with number `first`.
    Changes { first: u32 },
    /// Delayed end of an operation whose path took no time.
    Ended(Completion),
}

/// Condition of a node or a station instance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    pub(crate) is_down: bool,
    /// Factor by which service times are longer than in the system file; 1 without a slowdown.
    pub(crate) slowness: f64,
}

impl Default for Condition {
    fn default() -> Self {
        Self {
            is_down: false,
            slowness: 1.0,
        }
    }
}

/// State of one node of a group: condition, flows at the node, and missed bytes.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) condition: Condition,
    /// Number of operations at the stations of the node; counted only if a path chooses the least busy node of the
    /// group.
    pub(crate) present: u32,
    /// Flows that wait until the node is up.
    pub(crate) parked: Vec<FlowId>,
    /// Number of bytes that the node missed while the node was down, and that no rebuild flow has written or is
    /// writing.
    pub(crate) missed_bytes: u64,
    /// Number of rebuild flows of the node in flight.
    pub(crate) rebuilding: u32,
}

/// A system with operations in flight.
///
/// The caller submits operations and advances the time to the next event; operations that end on the way are returned
/// with their tickets.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) system: System,
    pub(crate) now: Nanos,
    pub(crate) rng: Rng,
    pub(crate) events: EventQueue<Event>,
    pub(crate) flows: Flows,
    pub(crate) nodes: Vec<Vec<Node>>,
    pub(crate) instances: Vec<Instance>,
    /// Condition of each instance by itself, in addition to the condition of its node.
    pub(crate) conditions: Vec<Condition>,
    /// Whether any node or instance is down.
    pub(crate) anything_down: bool,
    pub(crate) anything_slow: bool,
    /// Flows that wait until an instance of a range is up.
    pub(crate) parked: Vec<(Range<u32>, FlowId)>,
    /// Flows that wait for any node of a group, by group.
    pub(crate) parked_at_groups: Vec<Vec<FlowId>>,
    /// Last choice of [`Choice::RoundRobin`], for each first instance and for each group.
    pub(crate) turns: Vec<u32>,
    pub(crate) caches: Vec<Cache>,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) tokens: Vec<Tokens>,
    pub(crate) completions: Vec<Completion>,
    /// Requests and their times at each element, by row of the results.
    pub(crate) rows: Vec<RowTotals>,
    /// Flows that can continue at the current virtual time.
    pub(crate) runnable: VecDeque<FlowId>,
}

impl Simulation {
    /// A system at time 0, with random choices from `seed`. Caches that begin full hold as much as fits of a data set
    /// of `dataset` bytes in `files` files.
    #[must_use]
    pub fn new(system: System, seed: u64, dataset: u128, files: u64) -> Self {
        let mut events = EventQueue::default();
        for (i, (at, ..)) in system.changes.iter().enumerate() {
            // Events with equal timestamps are applied as a batch.
            if i == 0 || system.changes[i - 1].0 != *at {
                events.push(*at, Event::Changes { first: i as u32 });
            }
        }
        let nodes = system
            .groups
            .iter()
            .map(|g| (0..g.count).map(|_| Node::default()).collect())
            .collect();
        let mut instances = Vec::new();
        for station in &system.stations {
            assert_eq!(
                station.placement.base as usize,
                instances.len(),
                "instances follow each other"
            );
            let placement = station.placement;
            // Only the least-busy choice of a node needs the node's load.
            let group = placement.group.filter(|&g| system.has_least_busy(g));
            let nodes = group.map(|group| move |i| (group, i / placement.count));
            let count = system.instances(placement).len() as u32;
            instances.extend((0..count).map(|i| {
                Instance::new(
                    station.discipline,
                    station.servers,
                    nodes.map(|node| node(i)),
                )
            }));
        }
        let caches = system.caches.iter().flat_map(|c| {
            let count = system.instances(c.placement).len();
            let blocks = match c.block {
                Some(block) => {
                    let share = system.working_set.unwrap_or(1.0);
                    ((dataset as f64 * share) as u64).div_ceil(block)
                }
                None => files,
            } / count as u64;
            let resident = if c.begins_full {
                blocks.min(c.capacity)
            } else {
                0
            };
            (0..count).map(move |_| Cache::new(c.policy, c.capacity, resident, blocks))
        });
        let buffers = system.buffers.iter().flat_map(|b| {
            system
                .instances(b.placement)
                .map(move |_| Buffer::new(b.capacity))
        });
        let limits = system.limits.iter().flat_map(|l| {
            system
                .instances(l.placement)
                .map(move |_| Limit::new(l.in_flight))
        });
        Self {
            now: 0,
            rng: Stream::new(seed).named("simulation").rng(),
            events,
            flows: Flows::default(),
            nodes,
            conditions: vec![Condition::default(); instances.len()],
            anything_down: false,
            anything_slow: false,
            parked: Vec::new(),
            parked_at_groups: vec![Vec::new(); system.groups.len()],
            turns: vec![0; instances.len() + system.groups.len()],
            caches: caches.collect(),
            buffers: buffers.collect(),
            limits: limits.collect(),
            tokens: system.tokens.iter().map(|_| Tokens::default()).collect(),
            completions: Vec::new(),
            rows: Vec::new(),
            runnable: VecDeque::new(),
            instances,
            system,
        }
    }

    /// Current virtual time in nanoseconds.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Time of the next event; `None` if nothing is in flight or scheduled.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        if !self.completions.is_empty() {
            return Some(self.now);
        }
        self.events.next_at()
    }

    /// Submits an operation at `now`; the completion returns `ticket`.
    ///
    /// # Panics
    /// If `now` is earlier than the current virtual time.
    pub fn submit(&mut self, now: Nanos, operation: Operation, ticket: u32) {
        assert!(now >= self.now, "an operation was submitted in the past");
        self.process(now);
        self.now = now;
        let step = self.system.entries[operation.class as usize];
        let flow = self
            .flows
            .begin(now, operation, Purpose::Operation { ticket }, step);
        self.run(flow);
        self.run_flows();
    }

    /// Advances the time to `until`, and appends the operations that ended to `completed`.
    pub fn advance(&mut self, until: Nanos, completed: &mut Vec<Completion>) {
        self.process(until);
        self.now = until.max(self.now);
        completed.append(&mut self.completions);
    }

    /// Handles at most `max_events` events up to `limit`, and stops at the first instant at which an operation ends.
    /// Returns the current time if an operation has ended or more events may follow; `None` if no event up to `limit`
    /// is left.
    pub fn proceed(&mut self, limit: Nanos, max_events: usize) -> Option<Nanos> {
        for _ in 0..max_events {
            if !self.completions.is_empty() {
                // Remaining events of this instant precede the clients' reactions.
                self.process(self.now);
                return Some(self.now);
            }
            let (at, event) = self.events.pop_until(limit)?;
            self.handle(at, event);
        }
        Some(self.now)
    }

    fn process(&mut self, until: Nanos) {
        while let Some((at, event)) = self.events.pop_until(until) {
            self.handle(at, event);
        }
    }

    #[inline]
    fn handle(&mut self, at: Nanos, event: Event) {
        debug_assert!(at >= self.now, "virtual time only goes forward");
        self.now = at;
        // The flow of the next event is prefetched into the processor cache while this event is handled.
        if let Some(Event::Served { flow, .. }) = self.events.ahead(0) {
            self.flows.touch(*flow);
        }
        match event {
            Event::Served { flow, visit } => self.served(flow, visit),
            Event::WakeUp { instance, epoch } => self.wake_up(instance, epoch),
            Event::Resume { flow, visit } => self.try_again(flow, visit),
            Event::Changes { first } => self.change(first),
            Event::Ended(completion) => self.completions.push(completion),
        }
        self.run_flows();
    }

    /// Runs each runnable flow until the flow waits or ends.
    fn run_flows(&mut self) {
        while let Some(flow) = self.runnable.pop_front() {
            self.run(flow);
        }
    }

    /// Number of flows in flight: operations, their branches, and background flows.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flows.live()
    }

    /// Figures of every station from the beginning to the current time, in the order of the system's stations.
    ///
    /// # Panics
    /// If Little's law does not hold at an instance.
    #[must_use]
    pub fn station_totals(&self) -> Vec<(&str, StationTotals)> {
        let stations = self.system.stations.iter();
        let totals = stations.map(|s| {
            let mut sum = StationTotals::default();
            for i in self.system.instances(s.placement) {
                sum.add(&self.instances[i as usize].tally.totals(self.now));
            }
            (s.name.as_str(), sum)
        });
        totals.collect()
    }

    /// Counts of every cache from the beginning to the current time.
    #[must_use]
    pub fn cache_totals(&self) -> Vec<(&str, CacheTotals)> {
        let caches = self.system.caches.iter();
        let totals = caches.map(|c| {
            let mut sum = CacheTotals::default();
            for i in self.system.instances(c.placement) {
                sum.add(&self.caches[i as usize].totals);
            }
            (c.name.as_str(), sum)
        });
        totals.collect()
    }
}
