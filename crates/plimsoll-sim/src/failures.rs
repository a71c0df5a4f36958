//! Failures: nodes and stations that go down, come up, slow down and catch up, and the reaction of flows.

use crate::flow::{NOWHERE, Operation, Outcome, Purpose};
use crate::instance::FlowId;
use crate::simulation::{Condition, Event, Simulation};
use crate::system::{
    Change, DEFAULT_RETRY_NS, GroupSpec, OperationClass, Placement, Subject, WhenDown,
};
use plimsoll_measure::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

impl Simulation {
    /// Applies the script's changes of this time, beginning with number `first`. Simultaneous changes are applied as a
    /// batch.
    pub(crate) fn change(&mut self, first: u32) {
        let changes = &self.system.changes[first as usize..];
        let now = self.now;
        let changes: Vec<_> = changes.iter().take_while(|c| c.0 == now).copied().collect();
        for &(_, subject, change) in &changes {
            self.set_condition(subject, |condition| match change {
                Change::Slow(factor) => condition.slowness = factor,
                Change::Down => condition.is_down = true,
                Change::Up => condition.is_down = false,
            });
        }
        let nodes = self.nodes.iter().flatten().map(|n| &n.condition);
        let all = || nodes.clone().chain(&self.conditions);
        self.anything_down = all().any(|c| c.is_down);
        self.anything_slow = all().any(|c| c.slowness != 1.0);
        let subjects = |wanted: Change| {
            let wanted = changes.iter().filter(move |c| c.2 == wanted);
            wanted.map(|c| c.1).collect::<Vec<_>>()
        };
        let (down, up) = (subjects(Change::Down), subjects(Change::Up));
        if !down.is_empty() {
            self.interrupt(&down);
        }
        if !up.is_empty() {
            self.release_parked(&up);
        }
    }

    /// Whether node number `node`, from 0, of a group is down.
    #[inline]
    pub(crate) fn is_node_down(&self, group: u8, node: u32) -> bool {
        self.anything_down && self.nodes[group as usize][node as usize].condition.is_down
    }

    /// Whether an instance of a station is down independently of its node.
    #[inline]
    pub(crate) fn is_instance_down(&self, instance: u32) -> bool {
        self.anything_down && self.conditions[instance as usize].is_down
    }

    /// Reaction of a flow to a failed node or station. Background flows always wait.
    pub(crate) fn when_down(&self, id: FlowId, of_operations: WhenDown) -> WhenDown {
        match self.flows[id].is_background {
            true => WhenDown::Wait,
            false => of_operations,
        }
    }

    /// Whether the flow's node of a group is up. If not, the flow fails, waits or chooses another node, according to
    /// `when_down` or else the group.
    #[inline]
    pub(crate) fn is_reachable(
        &mut self,
        id: FlowId,
        group: Option<u8>,
        when_down: Option<WhenDown>,
    ) -> bool {
        !self.anything_down || self.reach(id, group, when_down)
    }

    #[cold]
    fn reach(&mut self, id: FlowId, group: Option<u8>, when_down: Option<WhenDown>) -> bool {
        let Some(group) = group else {
            return true;
        };
        let node = self.flows[id].nodes[group as usize];
        if !self.is_node_down(group, node) {
            return true;
        }
        let policy = when_down.unwrap_or(self.system.groups[group as usize].when_down);
        self.leave_node(id, group, node, policy);
        false
    }

    /// Lets a flow whose node is down fail, wait for the node, or choose another node.
    fn leave_node(&mut self, id: FlowId, group: u8, node: u32, policy: WhenDown) {
        match self.when_down(id, policy) {
            WhenDown::Fail => self.end(id, Outcome::Failed),
            WhenDown::Wait => self.park_at_node(id, group, node),
            WhenDown::Retry => {
                let GroupSpec {
                    retry_after,
                    element,
                    ..
                } = self.system.groups[group as usize];
                self.arrive_at(id, element);
                self.flows[id].displaced = Some(group);
                self.try_later(id, retry_after);
            }
        }
    }

    /// Queues the flow to repeat its current step when the node is up.
    pub(crate) fn park_at_node(&mut self, id: FlowId, group: u8, node: u32) {
        self.arrive_at(id, self.system.groups[group as usize].element);
        self.nodes[group as usize][node as usize].parked.push(id);
    }

    /// Queues the flow to repeat its current step when any node of the group comes up.
    pub(crate) fn park_at_group(&mut self, id: FlowId, group: u8) {
        self.arrive_at(id, self.system.groups[group as usize].element);
        self.parked_at_groups[group as usize].push(id);
    }

    /// Queues the flow to repeat its current step when one of the instances is up.
    pub(crate) fn park_at_instances(&mut self, id: FlowId, element: u16, instances: Range<u32>) {
        self.arrive_at(id, element);
        self.parked.push((instances, id));
    }

    fn try_later(&mut self, id: FlowId, after: Nanos) {
        let visit = self.flows[id].visit;
        let at = self.now.saturating_add(after);
        self.events.push(at, Event::Resume { flow: id, visit });
    }

    /// Resumes a flow after the retry timeout; no effect if the flow has ended or continued in the meantime.
    pub(crate) fn try_again(&mut self, id: FlowId, visit: u32) {
        if !self.flows[id].is_live || self.flows[id].visit != visit {
            return;
        }
        self.leave(id);
        match self.flows[id].displaced.take() {
            Some(group) => self.displace(id, group),
            None => self.runnable.push_back(id),
        }
    }

    /// Moves a flow to another node of a group: the flow returns to the step that chose the node, with the limits and
    /// bytes of that time. A branch that did not choose the node ends as displaced, and its parent moves.
    pub(crate) fn displace(&mut self, id: FlowId, group: u8) {
        // Branches still in flight are abandoned.
        self.flows[id].fork.outstanding = 0;
        let Some(choice) = self.flows[id].chosen[group as usize] else {
            self.end(id, Outcome::Displaced { group });
            return;
        };
        while self.flows[id].held.len() > choice.held as usize {
            self.release(id);
        }
        let flow = &mut self.flows[id];
        flow.step = choice.step;
        flow.bytes = choice.bytes;
        self.runnable.push_back(id);
    }

    /// Changes the condition of the node or instances that an event affects.
    fn set_condition(&mut self, subject: Subject, change: impl Fn(&mut Condition)) {
        match subject {
            Subject::Node { group, node } => {
                change(&mut self.nodes[group as usize][node as usize].condition)
            }
            Subject::Station { .. } => {
                for (_, instance) in self.instances_of(subject) {
                    change(&mut self.conditions[instance as usize]);
                }
            }
        }
    }

    /// The affected instances, each with the number of its station.
    fn instances_of(&self, subject: Subject) -> Vec<(u16, u32)> {
        let mut found = vec![];
        for (number, station) in self.system.stations.iter().enumerate() {
            let placement = station.placement;
            let instances = match subject {
                Subject::Station { station, instance } if usize::from(station) == number => {
                    let all = self.system.instances(placement);
                    instance.map_or(all, |i| placement.base + i..placement.base + i + 1)
                }
                Subject::Node { group, node } if placement.group == Some(group) => {
                    placement.at_node(node)
                }
                _ => continue,
            };
            found.extend(instances.map(|i| (number as u16, i)));
        }
        found
    }

    /// Interrupts operations in service at failed nodes or instances: each fails, waits or moves.
    fn interrupt(&mut self, subjects: &[Subject]) {
        let mut flows: BTreeMap<u32, Vec<FlowId>> = BTreeMap::new();
        let mut interrupted = vec![];
        for &subject in subjects {
            let instances = self.instances_of(subject);
            flows.extend(instances.iter().map(|&(_, i)| (i, vec![])));
            interrupted.extend(instances.into_iter().map(|at| (subject, at)));
        }
        for (id, instance) in self.flows.at_instances() {
            if let Some(flows) = flows.get_mut(&instance) {
                flows.push(id);
            }
        }
        for (subject, (station, instance)) in interrupted {
            // An instance may fail both individually and with its node.
            let Some(flows) = flows.remove(&instance) else {
                continue;
            };
            let now = self.now;
            let since: Vec<_> = flows.iter().map(|&id| self.leave(id)).collect();
            self.instances[instance as usize].abandon(now, since.into_iter());
            for id in flows {
                self.leave_node_of(instance);
                let flow = &mut self.flows[id];
                flow.instance = NOWHERE;
                flow.visit = flow.visit.wrapping_add(1);
                self.redirect(id, subject, station, instance);
            }
        }
        for &subject in subjects {
            if let Subject::Node { group, node } = subject {
                self.forget_caches(group, node);
                self.interrupt_waiting(group, node);
            }
        }
    }

    /// Interrupts operations that wait for a limit or for buffer space of a failed node: each fails, waits or moves.
    fn interrupt_waiting(&mut self, group: u8, node: u32) {
        let policy = self.system.groups[group as usize].when_down;
        let of_node = |placement: Placement| {
            let instance = placement.at_node(node).start as usize;
            (placement.group == Some(group)).then_some(instance)
        };
        let limits = { self.system.limits.iter() }.filter_map(|l| of_node(l.placement));
        let mut waiting = vec![];
        for limit in limits {
            for id in self.limits[limit].take_waiting() {
                // The flow has not passed the limit yet.
                self.flows[id].held.pop();
                waiting.push(id);
            }
        }
        let buffers = { self.system.buffers.iter() }.filter_map(|b| of_node(b.placement));
        for buffer in buffers {
            waiting.extend(std::mem::take(&mut self.buffers[buffer].waiting));
        }
        for id in waiting {
            self.leave(id);
            self.leave_node(id, group, node, policy);
        }
    }

    /// Lets a flow whose service was interrupted fail, wait, or be sent elsewhere.
    fn redirect(&mut self, id: FlowId, subject: Subject, station: u16, instance: u32) {
        let spec = &self.system.stations[station as usize];
        let (policy, element, group) = (spec.when_down, spec.element, spec.placement.group);
        if let Subject::Node { group, node } = subject {
            return self.leave_node(id, group, node, policy);
        }
        match self.when_down(id, policy) {
            WhenDown::Fail => self.end(id, Outcome::Failed),
            WhenDown::Wait => self.park_at_instances(id, element, instance..instance + 1),
            WhenDown::Retry => {
                let after = group.map_or(DEFAULT_RETRY_NS, |g| {
                    self.system.groups[g as usize].retry_after
                });
                self.arrive_at(id, element);
                self.try_later(id, after);
            }
        }
    }

    /// Resumes flows that waited for nodes or instances which are up now, and starts the rebuild of missed writes.
    fn release_parked(&mut self, subjects: &[Subject]) {
        let mut released = vec![];
        let mut instances = BTreeSet::new();
        for &subject in subjects {
            match subject {
                Subject::Node { group, node } => {
                    let (g, n) = (group as usize, node as usize);
                    released.append(&mut self.nodes[g][n].parked);
                    released.append(&mut self.parked_at_groups[g]);
                }
                Subject::Station { .. } => {
                    instances.extend(self.instances_of(subject).into_iter().map(|(_, i)| i));
                }
            }
        }
        self.parked.retain(|(waits_for, id)| {
            let is_up = instances.range(waits_for.clone()).next().is_some();
            if is_up {
                released.push(*id);
            }
            !is_up
        });
        for id in released {
            self.leave(id);
            self.runnable.push_back(id);
        }
        for group in 0..self.system.groups.len() as u8 {
            for node in 0..self.system.groups[group as usize].count {
                self.rebuild(group, node);
            }
        }
    }

    fn forget_caches(&mut self, group: u8, node: u32) {
        for spec in self
            .system
            .caches
            .iter()
            .filter(|c| c.volatile && c.placement.group == Some(group))
        {
            for i in spec.placement.at_node(node) {
                self.caches[i as usize].clear();
            }
        }
    }

    /// Starts rebuild flows for a node, up to the permitted number in flight.
    pub(crate) fn rebuild(&mut self, group: u8, node: u32) {
        let Some(spec) = self.system.groups[group as usize].rebuild else {
            return;
        };
        let state = &mut self.nodes[group as usize][node as usize];
        while state.missed_bytes > 0
            && state.rebuilding < spec.in_flight
            && !state.condition.is_down
        {
            let bytes = state.missed_bytes.min(spec.chunk);
            state.missed_bytes -= bytes;
            state.rebuilding += 1;
            let operation = Operation {
                class: OperationClass::DataWrite,
                row: None,
                client: 0,
                file: state.missed_bytes,
                directory: 0,
                offset: 0,
                bytes,
            };
            let purpose = Purpose::Rebuild { group, node };
            let id = self.flows.begin(self.now, operation, purpose, spec.step);
            self.flows[id].nodes[group as usize] = node;
            self.runnable.push_back(id);
        }
    }

    /// Called when a rebuild flow of a node has ended: starts the next rebuild flow if the node has missed more bytes.
    pub(crate) fn rebuilt(&mut self, group: u8, node: u32) {
        self.nodes[group as usize][node as usize].rebuilding -= 1;
        self.rebuild(group, node);
    }
}
