//! Nodes and stations that go down, come up, become slower, and are brought up to date.

use crate::flow::{NOWHERE, Operation, Purpose};
use crate::instance::FlowId;
use crate::simulation::{Event, Simulation};
use crate::system::{Change, OperationClass, Subject, WhenDown};

impl Simulation {
    /// Does what the script says at this time.
    pub(crate) fn change(&mut self, number: u32) {
        let (_, subject, change) = self.system.changes[number as usize];
        match change {
            Change::Slow(factor) => self.conditions_of(subject, |c| c.slowness = factor),
            Change::Down => {
                self.conditions_of(subject, |c| c.is_down = true);
                self.interrupt(subject);
            }
            Change::Up => {
                self.conditions_of(subject, |c| c.is_down = false);
                self.release_parked(subject);
            }
        }
    }

    fn conditions_of(
        &mut self,
        subject: Subject,
        change: impl Fn(&mut crate::simulation::Condition),
    ) {
        match subject {
            Subject::Node { group, node } => {
                change(&mut self.nodes[group as usize][node as usize].condition)
            }
            Subject::Station { .. } => {
                for instance in self.instances_of(subject) {
                    change(&mut self.conditions[instance as usize]);
                }
            }
        }
    }

    /// Numbers of the instances that a change applies to.
    fn instances_of(&self, subject: Subject) -> Vec<u32> {
        match subject {
            Subject::Station { station, instance } => {
                let placement = self.system.stations[station as usize].placement;
                let count = placement.count * self.system.nodes(placement);
                match instance {
                    Some(i) => vec![placement.base + i],
                    None => (placement.base..placement.base + count).collect(),
                }
            }
            Subject::Node { group, node } => {
                let of_group = self
                    .system
                    .stations
                    .iter()
                    .filter(|s| s.placement.group == Some(group));
                let placements = of_group.map(|s| s.placement);
                placements
                    .flat_map(|p| (0..p.count).map(move |i| p.base + node * p.count + i))
                    .collect()
            }
        }
    }

    /// Operations in flight at what is down now fail, wait or are sent elsewhere.
    fn interrupt(&mut self, subject: Subject) {
        if let Subject::Node { group, node } = subject {
            self.forget_caches(group, node);
        }
        for instance in self.instances_of(subject) {
            let flows = self.flows.at(|at| at == instance);
            let now = self.now;
            let since: Vec<_> = flows.iter().map(|&id| self.leave(id)).collect();
            self.instances[instance as usize].abandon(now, since.into_iter());
            for id in flows {
                let flow = &mut self.flows[id];
                flow.instance = NOWHERE;
                flow.visit = flow.visit.wrapping_add(1);
                self.redirect(id, subject, instance);
            }
        }
    }

    fn redirect(&mut self, id: FlowId, subject: Subject, instance: u32) {
        let (policy, retry_after) = match subject {
            Subject::Node { group, .. } => {
                let group = &self.system.groups[group as usize];
                (group.when_down, group.retry_after)
            }
            Subject::Station { station, .. } => {
                let station = &self.system.stations[station as usize];
                let group = station
                    .placement
                    .group
                    .map(|g| &self.system.groups[g as usize]);
                (station.when_down, group.map_or(0, |g| g.retry_after))
            }
        };
        match (self.when_down(id, policy), subject) {
            (WhenDown::Fail, _) => self.end(id, false),
            (WhenDown::Wait, Subject::Node { group, node }) => self.park_at_node(id, group, node),
            (WhenDown::Wait, Subject::Station { .. }) => {
                self.flows[id].arrived = self.now;
                self.parked.push((instance, id));
            }
            (WhenDown::Retry, _) => {
                let flow = &mut self.flows[id];
                if let Subject::Node { group, .. } = subject {
                    flow.element = self.system.groups[group as usize].element;
                    flow.step = flow.chosen_at[group as usize];
                }
                flow.arrived = self.now;
                let visit = flow.visit;
                self.events
                    .push(self.now + retry_after, Event::Resume { flow: id, visit });
            }
        }
    }

    /// A flow tries again after a timeout.
    pub(crate) fn try_again(&mut self, id: FlowId, visit: u32) {
        if self.flows[id].is_live && self.flows[id].visit == visit {
            self.leave(id);
            self.runnable.push_back(id);
        }
    }

    /// Flows that waited for what is up now go on, and what it missed is brought up to date.
    fn release_parked(&mut self, subject: Subject) {
        let flows = match subject {
            Subject::Node { group, node } => {
                std::mem::take(&mut self.nodes[group as usize][node as usize].parked)
            }
            Subject::Station { .. } => {
                let up = self.instances_of(subject);
                let (free, still): (Vec<_>, Vec<_>) =
                    self.parked.drain(..).partition(|(i, _)| up.contains(i));
                self.parked = still;
                free.into_iter().map(|(_, id)| id).collect()
            }
        };
        for id in flows {
            self.leave(id);
            self.runnable.push_back(id);
        }
        if let Subject::Node { group, node } = subject {
            self.rebuild(group, node);
        }
    }

    fn forget_caches(&mut self, group: u8, node: u32) {
        for spec in self
            .system
            .caches
            .iter()
            .filter(|c| c.volatile && c.placement.group == Some(group))
        {
            let first = spec.placement.base + node * spec.placement.count;
            for i in first..first + spec.placement.count {
                self.caches[i as usize].clear();
            }
        }
    }

    /// Begins as many flows as may bring the node up to date at once.
    fn rebuild(&mut self, group: u8, node: u32) {
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
            let id = self
                .flows
                .begin(operation, Purpose::Rebuild { group, node }, spec.step);
            self.flows[id].nodes[group as usize] = node;
            self.runnable.push_back(id);
        }
    }

    /// A piece of what a node missed has been brought up to date.
    pub(crate) fn rebuilt(&mut self, group: u8, node: u32) {
        self.nodes[group as usize][node as usize].rebuilding -= 1;
        self.rebuild(group, node);
    }
}
