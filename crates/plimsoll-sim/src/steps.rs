//! Execution of flows, step by step.

use crate::buffer::Undrained;
use crate::flow::{Completion, HeldLimit, NodeChoice, Outcome, Purpose};
use crate::hash::pair;
use crate::instance::FlowId;
use crate::simulation::{Event, Simulation};
use crate::system::{Choice, Placement, Step, WhenDown};
use crate::window::RowTotals;
use plimsoll_measure::Nanos;
use plimsoll_plan::hash::mix64;

/// Duration in nanoseconds of an operation whose path takes no time.
const MIN_OPERATION_NS: Nanos = 1_000;

/// Decision after a step of a flow: to execute the next step at once, or to stop executing steps.
pub(crate) enum Then {
    /// The flow continues with the next step at the same virtual time.
    GoOn,
    /// The flow waits for an event or another flow, or has ended.
    Wait,
}

impl Simulation {
    /// Executes the steps of a flow until the flow waits or ends.
    pub(crate) fn run(&mut self, id: FlowId) {
        loop {
            let step = self.flows[id].step;
            let then = match self.system.steps[step as usize] {
                Step::Choose { group, choose } => self.choose_node(id, group, choose),
                Step::Visit { station, payload } => self.visit(id, station, payload),
                Step::Lookup {
                    cache,
                    depth,
                    after,
                } => self.look_up(id, cache, depth, after),
                Step::Restore { depth } => {
                    let flow = &mut self.flows[id];
                    flow.bytes = flow.saved_bytes[depth as usize];
                    Then::GoOn
                }
                Step::Store { cache } => {
                    self.count_missing(id, cache);
                    Then::GoOn
                }
                Step::Append { buffer } => self.append(id, buffer),
                Step::Acquire { limit } => self.acquire(id, limit),
                Step::Release => {
                    self.release(id);
                    Then::GoOn
                }
                Step::Replicate { group, wait, after } => {
                    self.replicate(id, group, wait, after);
                    Then::Wait
                }
                Step::Stripe { unit, after } => {
                    self.stripe(id, unit, after);
                    Then::Wait
                }
                Step::Token { table, after } => self.take_token(id, table, after),
                Step::End => {
                    self.end(id, Outcome::Succeeded);
                    return;
                }
            };
            match then {
                // Jumps set the step before their destination.
                Then::GoOn => self.flows[id].step += 1,
                Then::Wait => return,
            }
        }
    }

    fn choose_node(&mut self, id: FlowId, group: u8, choose: Choice) -> Then {
        let g = group as usize;
        let count = self.system.groups[g].count;
        let mut node = self.pick_node(id, group, choose);
        if self.is_node_down(group, node) {
            match self.when_down(id, self.system.groups[g].when_down) {
                WhenDown::Fail => {
                    self.end(id, Outcome::Failed);
                    return Then::Wait;
                }
                WhenDown::Wait => {
                    self.park_at_node(id, group, node);
                    return Then::Wait;
                }
                WhenDown::Retry => {
                    let mut others = (1..count).map(|k| (node + k) % count);
                    let Some(other) = others.find(|&i| !self.is_node_down(group, i)) else {
                        self.park_at_group(id, group);
                        return Then::Wait;
                    };
                    node = other;
                }
            }
        }
        let flow = &mut self.flows[id];
        flow.nodes[g] = node;
        flow.chosen[g] = Some(NodeChoice {
            step: flow.step,
            held: flow.held.len() as u32,
            bytes: flow.bytes,
        });
        Then::GoOn
    }

    /// Records the arrival of a flow at an element.
    pub(crate) fn arrive_at(&mut self, id: FlowId, element: u16) {
        let now = self.now;
        let flow = &mut self.flows[id];
        flow.element = element;
        flow.arrived = now;
    }

    /// First instance of an element at the flow's node.
    pub(crate) fn base(&self, id: FlowId, placement: Placement) -> u32 {
        let node = placement
            .group
            .map_or(0, |g| self.flows[id].nodes[g as usize]);
        placement.base + node * placement.count
    }

    fn look_up(&mut self, id: FlowId, cache: u16, depth: u8, after: u32) -> Then {
        let group = self.system.caches[cache as usize].placement.group;
        if !self.is_reachable(id, group, None) {
            return Then::Wait;
        }
        let missing = self.count_missing(id, cache);
        let flow = &mut self.flows[id];
        flow.saved_bytes[depth as usize] = flow.bytes;
        if missing == 0 {
            flow.step = after - 1;
            return Then::GoOn;
        }
        flow.bytes = missing;
        Then::GoOn
    }

    /// Looks up the blocks of an operation. Returns the number of missed bytes, at least one byte per missed block:
    /// operations without bytes can miss, too.
    fn count_missing(&mut self, id: FlowId, cache: u16) -> u64 {
        let instance = self.base(id, self.system.caches[cache as usize].placement);
        let spec = &self.system.caches[cache as usize];
        let held = &mut self.caches[instance as usize];
        let flow = &self.flows[id];
        let file = flow.operation.file;
        let Some(block) = spec.block else {
            let hit = held.reference(mix64(file), &mut self.rng);
            return if hit { 0 } else { flow.bytes.max(1) };
        };
        let first = flow.operation.offset / block;
        let last = (flow.operation.offset + flow.bytes.saturating_sub(1)) / block;
        let rng = &mut self.rng;
        let missing = (first..=last)
            .filter(|&b| !held.reference(pair(file, b), rng))
            .count() as u64;
        let bytes = flow.bytes.max(1);
        match missing == last - first + 1 {
            true => bytes,
            // The first and the last block may be accessed partially.
            false => bytes.min(missing * block),
        }
    }

    fn append(&mut self, id: FlowId, buffer: u16) -> Then {
        let spec = &self.system.buffers[buffer as usize];
        let (element, placement) = (spec.element, spec.placement);
        if !self.is_reachable(id, placement.group, None) {
            return Then::Wait;
        }
        let instance = self.base(id, placement);
        self.arrive_at(id, element);
        let bytes = self.flows[id].bytes;
        let held = &mut self.buffers[instance as usize];
        // Queued operations go first.
        if !held.waiting.is_empty() || !held.reserve(self.now, bytes) {
            held.waiting.push_back(id);
            return Then::Wait;
        }
        self.drain_later(id, buffer, instance);
        Then::GoOn
    }

    /// Queues the buffered bytes of a flow for draining.
    fn drain_later(&mut self, id: FlowId, buffer: u16, instance: u32) {
        let flow = &self.flows[id];
        let entry = Undrained {
            operation: flow.operation,
            bytes: flow.bytes,
            nodes: flow.nodes,
        };
        self.buffers[instance as usize].undrained.push_back(entry);
        self.drain(buffer, instance);
    }

    /// Starts drain flows, up to the permitted number in flight.
    pub(crate) fn drain(&mut self, buffer: u16, instance: u32) {
        let spec = &self.system.buffers[buffer as usize];
        let (step, in_flight) = (spec.drain, spec.in_flight);
        while self.buffers[instance as usize].draining < in_flight {
            let held = &mut self.buffers[instance as usize];
            let Some(next) = held.undrained.pop_front() else {
                return;
            };
            let (operation, bytes, nodes) = (next.operation, next.bytes, next.nodes);
            held.draining += 1;
            let id = self.flows.begin(
                self.now,
                operation,
                Purpose::Drain {
                    buffer,
                    instance,
                    bytes,
                },
                step,
            );
            let flow = &mut self.flows[id];
            flow.bytes = bytes;
            flow.nodes = nodes;
            self.runnable.push_back(id);
        }
    }

    fn acquire(&mut self, id: FlowId, limit: u16) -> Then {
        let spec = &self.system.limits[limit as usize];
        let (element, placement) = (spec.element, spec.placement);
        if !self.is_reachable(id, placement.group, None) {
            return Then::Wait;
        }
        let instance = self.base(id, placement);
        self.arrive_at(id, element);
        let flow = &mut self.flows[id];
        flow.held.push(HeldLimit {
            instance,
            step: flow.step,
            bytes: flow.bytes,
        });
        match self.limits[instance as usize].acquire(id) {
            true => Then::GoOn,
            false => Then::Wait,
        }
    }

    /// Releases the limit that the flow acquired last.
    pub(crate) fn release(&mut self, id: FlowId) {
        let flow = &mut self.flows[id];
        let left = { &mut flow.held }
            .pop()
            .expect("paths leave the limits that they pass");
        // A flow that returns to a choice made within the limit must acquire the limit again.
        let held = flow.held.len() as u32;
        for choice in flow.chosen.iter_mut().flatten().filter(|c| c.held > held) {
            *choice = NodeChoice {
                step: left.step,
                held,
                bytes: left.bytes,
            };
        }
        if let Some(next) = self.limits[left.instance as usize].release() {
            self.resume(next);
        }
    }

    /// Resumes a flow that was admitted by a limit or buffer.
    fn resume(&mut self, id: FlowId) {
        self.leave(id);
        self.flows[id].step += 1;
        self.runnable.push_back(id);
    }

    fn take_token(&mut self, id: FlowId, table: u16, after: u32) -> Then {
        let flow = &mut self.flows[id];
        if self.tokens[table as usize].take(flow.operation.file, flow.operation.client) {
            flow.step = after - 1;
        }
        Then::GoOn
    }

    /// Ends a flow: tells the client, the parent, the buffer or the node for which the flow ran.
    pub(crate) fn end(&mut self, id: FlowId, outcome: Outcome) {
        match self.flows[id].purpose {
            Purpose::Operation { ticket } => {
                let succeeded = match outcome {
                    Outcome::Succeeded => true,
                    Outcome::Failed => false,
                    Outcome::Displaced { .. } => {
                        unreachable!("an operation has chosen every node that it is at")
                    }
                };
                if succeeded {
                    self.count(id);
                }
                let completion = Completion { ticket, succeeded };
                match self.now > self.flows[id].begun {
                    true => self.completions.push(completion),
                    // Without a minimum duration, virtual time would not advance for a client that issues the next
                    // operation immediately.
                    false => {
                        let at = self.now + MIN_OPERATION_NS;
                        self.events.push(at, Event::Ended(completion));
                    }
                }
            }
            Purpose::Branch { parent, fork, role } => {
                self.end_branch(id, parent, fork, role, outcome)
            }
            Purpose::Drain {
                buffer,
                instance,
                bytes,
            } => self.drained(buffer, instance, bytes),
            Purpose::Rebuild { group, node } => self.rebuilt(group, node),
        }
        while !self.flows[id].held.is_empty() {
            // A failed flow still holds limits.
            self.release(id);
        }
        self.flows.end(id);
    }

    /// Adds a successful request to the sums of its row.
    #[inline]
    fn count(&mut self, id: FlowId) {
        let flow = &self.flows[id];
        let Some(row) = flow.operation.row else {
            return;
        };
        let row = row as usize;
        if self.rows.len() <= row {
            self.rows.resize_with(row + 1, RowTotals::default);
        }
        let row = &mut self.rows[row];
        row.requests += 1;
        row.time_ns.resize(self.system.elements.len(), 0);
        for &(element, time) in &flow.trail {
            row.time_ns[element as usize] += u128::from(time);
        }
    }

    /// Frees the space of drained bytes and admits waiting operations.
    fn drained(&mut self, buffer: u16, instance: u32, bytes: u64) {
        let held = &mut self.buffers[instance as usize];
        held.draining -= 1;
        held.release(self.now, bytes);
        while let Some(&next) = self.buffers[instance as usize].waiting.front() {
            let bytes = self.flows[next].bytes;
            if !self.buffers[instance as usize].reserve(self.now, bytes) {
                break;
            }
            self.buffers[instance as usize].waiting.pop_front();
            self.drain_later(next, buffer, instance);
            self.resume(next);
        }
        self.drain(buffer, instance);
    }
}
