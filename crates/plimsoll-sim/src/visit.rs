//! Station visits and choices of stations and nodes: the hot path of the simulation.

use crate::choice::{Candidates, choose, load};
use crate::flow::{NOWHERE, Outcome};
use crate::instance::{Begun, FlowId, Schedule};
use crate::simulation::{Event, Simulation};
use crate::steps::Then;
use crate::system::{Choice, Payload, Placement, WhenDown};
use plimsoll_measure::Nanos;
use plimsoll_plan::hash::split_mix64;

impl Simulation {
    /// Starts a flow's visit to a station.
    #[inline]
    pub(crate) fn visit(&mut self, id: FlowId, station: u16, payload: Payload) -> Then {
        let spec = &self.system.stations[station as usize];
        let placement = spec.placement;
        if !self.is_reachable(id, placement.group, Some(spec.when_down)) {
            return Then::Wait;
        }
        let spec = &self.system.stations[station as usize];
        let flow = &mut self.flows[id];
        let node = placement.group.map_or(0, |g| flow.nodes[g as usize]);
        let mut instance = placement.at_node(node).start;
        if placement.count > 1 {
            let first = instance;
            let (instances, conditions) = (&self.instances, &self.conditions);
            let busy = |i: u32| {
                let i = (first + i) as usize;
                load(conditions[i].is_down, instances[i].present())
            };
            let turn = &mut self.turns[first as usize];
            let among = Candidates {
                count: placement.count,
                salt: 0,
                client_divisor: spec.client_divisor,
            };
            instance += choose(
                spec.choose,
                &among,
                &flow.operation,
                turn,
                &mut self.rng,
                busy,
            );
            if self.is_instance_down(instance) {
                match self.other_instance(id, station, first, instance) {
                    Some(other) => instance = other,
                    None => return Then::Wait,
                }
            }
        } else if self.is_instance_down(instance) {
            let _ = self.other_instance(id, station, instance, instance);
            return Then::Wait;
        }
        self.begin_visit(id, station, instance, payload);
        Then::Wait
    }

    /// Returns another instance of the station in place of a failed instance if the flow may choose another instance;
    /// otherwise the flow fails or waits.
    #[cold]
    fn other_instance(
        &mut self,
        id: FlowId,
        station: u16,
        first: u32,
        instance: u32,
    ) -> Option<u32> {
        let spec = &self.system.stations[station as usize];
        let (count, element) = (spec.placement.count, spec.element);
        let mut others = (1..count).map(|k| first + (instance - first + k) % count);
        match self.when_down(id, spec.when_down) {
            WhenDown::Fail => self.end(id, Outcome::Failed),
            WhenDown::Retry => {
                let up = others.find(|&i| !self.is_instance_down(i));
                if up.is_none() {
                    self.park_at_instances(id, element, first..first + count);
                }
                return up;
            }
            WhenDown::Wait => self.park_at_instances(id, element, instance..instance + 1),
        }
        None
    }

    #[inline]
    fn begin_visit(&mut self, id: FlowId, station: u16, number: u32, payload: Payload) {
        let spec = &self.system.stations[station as usize];
        let flow = &mut self.flows[id];
        let bytes = match payload {
            Payload::Data => flow.bytes,
            Payload::Request { header, data } => {
                u64::from(header) + if data { flow.bytes } else { 0 }
            }
        };
        flow.instance = number;
        flow.element = spec.element;
        flow.arrived = self.now;
        let visit = flow.visit;
        let mut service = spec.service.draw(bytes, &mut self.rng);
        if self.anything_slow {
            service = (service as f64 * self.slowness(number, spec.placement)).round() as Nanos;
        }
        let instance = &mut self.instances[number as usize];
        if let Some((group, node)) = instance.node {
            self.nodes[group as usize][node as usize].present += 1;
        }
        match instance.arrive(self.now, id, service) {
            Schedule::Nothing => {}
            Schedule::End(Begun { flow, ends_at }) => {
                debug_assert_eq!(flow, id, "a flow that arrives is served, or waits");
                self.events.push(ends_at, Event::Served { flow, visit });
            }
            Schedule::WakeUp { at, epoch } => {
                let instance = number;
                self.events.push(at, Event::WakeUp { instance, epoch });
            }
        }
    }

    #[cold]
    fn slowness(&self, instance: u32, placement: Placement) -> f64 {
        let own = self.conditions[instance as usize].slowness;
        placement.group.map_or(own, |g| {
            let node = (instance - placement.base) / placement.count;
            own * self.nodes[g as usize][node as usize].condition.slowness
        })
    }

    /// Counts the departure of an operation from the node of an instance.
    #[inline]
    pub(crate) fn leave_node_of(&mut self, instance: u32) {
        if let Some((group, node)) = self.instances[instance as usize].node {
            self.nodes[group as usize][node as usize].present -= 1;
        }
    }

    /// Records the time that a flow spent at the current element, and returns the time of arrival.
    #[inline]
    pub(crate) fn leave(&mut self, id: FlowId) -> Nanos {
        let now = self.now;
        self.flows[id].leave(now)
    }

    /// Ends the service of a flow at its station.
    #[inline]
    pub(crate) fn served(&mut self, id: FlowId, visit: u32) {
        let now = self.now;
        let flow = &mut self.flows[id];
        if !flow.is_live || flow.visit != visit {
            return;
        }
        let since = flow.leave(now);
        let number = std::mem::replace(&mut flow.instance, NOWHERE);
        flow.step += 1;
        self.leave_node_of(number);
        match self.instances[number as usize].depart(now, since) {
            Schedule::Nothing => {}
            Schedule::End(Begun { flow, ends_at }) => {
                let visit = self.flows[flow].visit;
                self.events.push(ends_at, Event::Served { flow, visit });
            }
            Schedule::WakeUp { .. } => unreachable!("a shared station serves by its wake-ups"),
        }
        self.run(id);
    }

    /// Ends the service of finished operations at a processor-sharing station.
    pub(crate) fn wake_up(&mut self, number: u32, epoch: u32) {
        if !self.instances[number as usize].is_current(epoch) {
            return;
        }
        while let Some(id) = self.instances[number as usize].take_ended(self.now) {
            let since = self.leave(id);
            self.flows[id].instance = NOWHERE;
            self.leave_node_of(number);
            self.instances[number as usize].leave_shared(self.now, since);
            self.flows[id].step += 1;
            self.runnable.push_back(id);
        }
        if let Schedule::WakeUp { at, epoch } = self.instances[number as usize].wake_up() {
            let instance = number;
            self.events.push(at, Event::WakeUp { instance, epoch });
        }
    }

    /// Chooses the node of a group for a flow.
    pub(crate) fn pick_node(&mut self, id: FlowId, group: u8, by: Choice) -> u32 {
        let nodes = &self.nodes[group as usize];
        let busy = |i: u32| {
            let node = &nodes[i as usize];
            load(node.condition.is_down, node.present)
        };
        let among = Candidates {
            count: nodes.len() as u32,
            // The salt is distinct from block numbers, which `pair` combines with the file number.
            salt: split_mix64(!u64::from(group)),
            client_divisor: 1,
        };
        let turn = &mut self.turns[self.instances.len() + usize::from(group)];
        let operation = &self.flows[id].operation;
        choose(by, &among, operation, turn, &mut self.rng, busy)
    }
}
