//! What flows do, step by step.

use crate::flow::{Completion, NOWHERE, NodeChoice, Outcome, Purpose};
use crate::hash::pair;
use crate::instance::{Begun, FlowId, Schedule};
use crate::simulation::{Event, Simulation};
use crate::system::{Choice, Payload, Placement, Step, WhenDown};
use crate::window::RowTotals;
use plimsoll_measure::Nanos;
use plimsoll_plan::hash::mix64;
use rand::RngExt as _;

/// Blocks by which [`Choice::Block`] spreads a file.
const CHOICE_BLOCK_BYTES: u64 = 1 << 20;

/// What becomes of a flow after a step.
enum Then {
    /// It goes on with its next step.
    GoOn,
    /// It waits for an event or another flow.
    Wait,
}

impl Simulation {
    /// Lets a flow go on until it waits or ends.
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
                // Jumps set the step before the one they go to.
                Then::GoOn => self.flows[id].step += 1,
                Then::Wait => return,
            }
        }
    }

    /// A number below `count` for this flow. `load` tells how busy each is, `turn` counts for round robin.
    fn choose(
        &mut self,
        id: FlowId,
        choose: Choice,
        count: u32,
        turn: usize,
        load: impl Fn(&Self, u32) -> u32,
    ) -> u32 {
        if count == 1 {
            return 0;
        }
        let operation = self.flows[id].operation;
        let hashed = match choose {
            Choice::Client => return operation.client % count,
            Choice::RoundRobin => {
                let next = &mut self.turns[turn];
                *next = (*next + 1) % count;
                return *next;
            }
            Choice::LeastBusy => {
                let least = (0..count).min_by_key(|&i| load(self, i));
                return least.expect("there is at least one to choose");
            }
            Choice::Random => self.rng.random::<u64>(),
            Choice::File => mix64(operation.file),
            Choice::Directory => mix64(operation.directory ^ 0x5851_f42d_4c95_7f2d),
            Choice::Block => pair(operation.file, operation.offset / CHOICE_BLOCK_BYTES),
        };
        // The upper half of hash times count: as even as the hash, without a division.
        ((u128::from(hashed) * u128::from(count)) >> 64) as u32
    }

    fn choose_node(&mut self, id: FlowId, group: u8, choose: Choice) -> Then {
        let g = group as usize;
        let count = self.system.groups[g].count;
        let turn = self.system.stations.len() + g;
        let mut node = self.choose(id, choose, count, turn, |s, i| s.load_of_node(group, i));
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

    /// Operations at the stations of a node; more than any other has if it is down.
    fn load_of_node(&self, group: u8, node: u32) -> u32 {
        match self.is_node_down(group, node) {
            true => u32::MAX,
            false => self.nodes[group as usize][node as usize].present,
        }
    }

    /// Operations at an instance; more than any other has if it is down.
    fn load_of_instance(&self, instance: u32) -> u32 {
        match self.is_instance_down(instance) {
            true => u32::MAX,
            false => self.instances[instance as usize].present(),
        }
    }

    /// A flow is at an element from now on.
    pub(crate) fn arrive_at(&mut self, id: FlowId, element: u16) {
        let now = self.now;
        let flow = &mut self.flows[id];
        flow.element = element;
        flow.arrived = now;
    }

    /// Notes the time that a flow spent at its element.
    pub(crate) fn leave(&mut self, id: FlowId) -> Nanos {
        let now = self.now;
        let flow = &mut self.flows[id];
        let since = flow.arrived;
        if now > since {
            flow.trail.push((flow.element, now - since));
        }
        since
    }

    /// First instance of an element's at the node that the flow is at.
    fn base(&self, id: FlowId, placement: Placement) -> u32 {
        let node = placement
            .group
            .map_or(0, |g| self.flows[id].nodes[g as usize]);
        placement.base + node * placement.count
    }

    fn visit(&mut self, id: FlowId, station: u16, payload: Payload) -> Then {
        let spec = &self.system.stations[station as usize];
        let (placement, choose) = (spec.placement, spec.choose);
        let (when_down, element) = (spec.when_down, spec.element);
        if !self.is_reachable(id, placement.group, Some(when_down)) {
            return Then::Wait;
        }
        let base = self.base(id, placement);
        let chosen = self.choose(id, choose, placement.count, station as usize, |s, i| {
            s.load_of_instance(base + i)
        });
        let mut instance = base + chosen;
        if self.is_instance_down(instance) {
            let mut others = (1..placement.count).map(|k| base + (chosen + k) % placement.count);
            let up = others.find(|&i| !self.is_instance_down(i));
            match (self.when_down(id, when_down), up) {
                (WhenDown::Fail, _) => {
                    self.end(id, Outcome::Failed);
                    return Then::Wait;
                }
                (WhenDown::Retry, Some(other)) => instance = other,
                _ => {
                    self.park_at_instance(id, element, instance);
                    return Then::Wait;
                }
            }
        }
        let flow = &mut self.flows[id];
        let bytes = match payload {
            Payload::Data => flow.bytes,
            Payload::Request { header, data } => {
                u64::from(header) + if data { flow.bytes } else { 0 }
            }
        };
        flow.instance = instance;
        flow.element = element;
        flow.arrived = self.now;
        let service = &self.system.stations[station as usize].service;
        let drawn = service.draw(bytes, &mut self.rng);
        let service = match self.slowness(instance, placement) {
            1.0 => drawn,
            factor => (drawn as f64 * factor).round() as Nanos,
        };
        self.count_at_node(instance, 1);
        let schedule = self.instances[instance as usize].arrive(self.now, id, service);
        self.schedule(instance, schedule);
        Then::Wait
    }

    /// Counts an operation that arrives at an instance (1) or leaves it (-1) at the node of the instance.
    #[inline]
    pub(crate) fn count_at_node(&mut self, instance: u32, change: i32) {
        if let Some((group, node)) = self.instances[instance as usize].node {
            let node = &mut self.nodes[group as usize][node as usize];
            node.present = node.present.wrapping_add_signed(change);
        }
    }

    #[inline]
    fn slowness(&self, instance: u32, placement: Placement) -> f64 {
        if !self.anything_slow {
            return 1.0;
        }
        let own = self.conditions[instance as usize].slowness;
        placement.group.map_or(own, |g| {
            let node = (instance - placement.base) / placement.count;
            own * self.nodes[g as usize][node as usize].condition.slowness
        })
    }

    pub(crate) fn schedule(&mut self, instance: u32, schedule: Schedule) {
        match schedule {
            Schedule::Nothing => {}
            Schedule::End(Begun { flow, ends_at }) => {
                let visit = self.flows[flow].visit;
                self.events.push(ends_at, Event::Served { flow, visit });
            }
            Schedule::WakeUp { at, epoch } => {
                self.events.push(at, Event::WakeUp { instance, epoch })
            }
        }
    }

    /// The service of a flow at its station is over.
    pub(crate) fn served(&mut self, id: FlowId, visit: u32) {
        if !self.flows[id].is_live || self.flows[id].visit != visit {
            return;
        }
        let since = self.leave(id);
        let instance = std::mem::replace(&mut self.flows[id].instance, NOWHERE);
        self.count_at_node(instance, -1);
        let schedule = self.instances[instance as usize].depart(self.now, since);
        self.schedule(instance, schedule);
        self.flows[id].step += 1;
        self.run(id);
    }

    /// A shared station has operations whose service may be over.
    pub(crate) fn wake_up(&mut self, instance: u32, epoch: u32) {
        if !self.instances[instance as usize].is_current(epoch) {
            return;
        }
        while let Some(id) = self.instances[instance as usize].take_ended(self.now) {
            let since = self.leave(id);
            self.flows[id].instance = NOWHERE;
            self.count_at_node(instance, -1);
            self.instances[instance as usize].leave_shared(self.now, since);
            self.flows[id].step += 1;
            self.runnable.push_back(id);
        }
        let schedule = self.instances[instance as usize].wake_up();
        self.schedule(instance, schedule);
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

    /// References the blocks of an operation. Returns the bytes of those that were not held; at least
    /// one byte for a block, so that an operation without bytes can miss too.
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
            // The first and the last block may be wanted in part only.
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
        // Those that wait go first.
        if !held.waiting.is_empty() || !held.reserve(self.now, bytes) {
            held.waiting.push_back(id);
            return Then::Wait;
        }
        self.drain_later(id, buffer, instance);
        Then::GoOn
    }

    /// The bytes of a flow lie in a buffer now: they are drained behind it.
    fn drain_later(&mut self, id: FlowId, buffer: u16, instance: u32) {
        let flow = &self.flows[id];
        let entry = (flow.operation, flow.bytes, flow.nodes);
        self.buffers[instance as usize].undrained.push_back(entry);
        self.drain(buffer, instance);
    }

    /// Begins to drain as much as may be drained at once.
    pub(crate) fn drain(&mut self, buffer: u16, instance: u32) {
        let spec = &self.system.buffers[buffer as usize];
        let (step, in_flight) = (spec.drain, spec.in_flight);
        while self.buffers[instance as usize].draining < in_flight {
            let held = &mut self.buffers[instance as usize];
            let Some((operation, bytes, nodes)) = held.undrained.pop_front() else {
                return;
            };
            held.draining += 1;
            let id = self.flows.begin(
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
        self.flows[id].held.push(instance);
        match self.limits[instance as usize].acquire(id) {
            true => Then::GoOn,
            false => Then::Wait,
        }
    }

    /// A flow leaves the limit that it passed last.
    pub(crate) fn release(&mut self, id: FlowId) {
        let instance = self.flows[id]
            .held
            .pop()
            .expect("paths leave the limits that they pass");
        if let Some(next) = self.limits[instance as usize].release() {
            self.resume(next);
        }
    }

    /// A flow that waited at an element has what it waited for.
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

    /// A flow has come to its end.
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
                self.completions.push(Completion { ticket, succeeded });
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
            // A flow that fails leaves its limits on the way out.
            self.release(id);
        }
        self.flows.end(id);
    }

    /// Adds a request that succeeded to the sums of its row.
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

    /// Bytes of a buffer have been drained: operations that wait for room go on.
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
