//! Forks: replication to several nodes, striping into pieces, and their joins.

use crate::flow::{BranchRole, FlowRef, Fork, Join, Outcome, Purpose};
use crate::instance::FlowId;
use crate::simulation::Simulation;
use crate::system::{Acknowledgement, OperationClass, WhenDown};

/// Maximum number of pieces of an operation; the last piece gets all remaining bytes.
const MAX_PIECES: u64 = 65_536;

impl Simulation {
    /// Starts a copy on every node of a group that is up. Other nodes miss the copy and catch up when they are up
    /// again. If fewer nodes are up than `wait` requires, the flow fails, or waits for a node of the group.
    pub(crate) fn replicate(&mut self, id: FlowId, group: u8, wait: Acknowledgement, after: u32) {
        let g = group as usize;
        let count = self.system.groups[g].count;
        let up = (0..count).filter(|&n| !self.is_node_down(group, n)).count() as u32;
        let needed = match wait {
            Acknowledgement::All => up,
            Acknowledgement::Quorum => count / 2 + 1,
            Acknowledgement::Primary => 1,
        };
        if up < needed.max(1) {
            match self.when_down(id, self.system.groups[g].when_down) {
                WhenDown::Fail => self.end(id, Outcome::Failed),
                WhenDown::Wait | WhenDown::Retry => self.park_at_group(id, group),
            }
            return;
        }
        self.begin_fork(id, Join::Copies(wait), up, needed, after);
        let bytes = self.flows[id].bytes;
        // The copy on the first node that is up is the primary.
        let mut is_primary = true;
        for node in 0..count {
            if self.is_node_down(group, node) {
                self.flows[id].missed_by.push(node);
                continue;
            }
            let role = BranchRole::Copy {
                group,
                is_primary,
                node,
                bytes,
            };
            let copy = self.begin_branch(id, role);
            self.flows[copy].nodes[g] = node;
            is_primary = false;
        }
    }

    /// Starts a branch for each piece; all pieces except the last end at multiples of `unit` bytes.
    pub(crate) fn stripe(&mut self, id: FlowId, unit: u64, after: u32) {
        let (offset, bytes) = (self.flows[id].operation.offset, self.flows[id].bytes);
        let end = offset.saturating_add(bytes);
        let pieces = (offset % unit + bytes).div_ceil(unit).clamp(1, MAX_PIECES);
        self.begin_fork(id, Join::Pieces, pieces as u32, pieces as u32, after);
        let first = offset - offset % unit;
        for piece in 0..pieces {
            let from = offset.max(first + piece * unit);
            let to = match piece + 1 == pieces {
                true => end,
                false => first + (piece + 1) * unit,
            };
            let branch = self.begin_branch(id, BranchRole::Piece);
            let flow = &mut self.flows[branch];
            flow.operation.offset = from;
            flow.bytes = to - from;
        }
    }

    /// Prepares the flow to wait for `branches` new branches and to continue at `after`.
    fn begin_fork(&mut self, id: FlowId, join: Join, branches: u32, needed: u32, after: u32) {
        let flow = &mut self.flows[id];
        flow.forks = flow.forks.wrapping_add(1);
        flow.missed_by.clear();
        flow.fork = Fork {
            join,
            outstanding: branches,
            succeeded: 0,
            needed,
            primary_failed: false,
            was_displaced: false,
            after,
        };
    }

    /// Starts a branch at the parent's next step, with the parent's state.
    fn begin_branch(&mut self, id: FlowId, role: BranchRole) -> FlowId {
        let parent = self.flows.reference(id);
        let flow = &self.flows[id];
        let purpose = Purpose::Branch {
            parent,
            fork: flow.forks,
            role,
        };
        let (operation, bytes, step) = (flow.operation, flow.bytes, flow.step + 1);
        let (nodes, saved_bytes, is_background) =
            (flow.nodes, flow.saved_bytes, flow.is_background);
        let branch = self.flows.begin(self.now, operation, purpose, step);
        let flow = &mut self.flows[branch];
        (flow.bytes, flow.nodes, flow.saved_bytes) = (bytes, nodes, saved_bytes);
        flow.is_background = is_background;
        self.runnable.push_back(branch);
        branch
    }

    /// Handles the end of a branch: the parent may continue, fail, or repeat its step.
    pub(crate) fn end_branch(
        &mut self,
        id: FlowId,
        parent: FlowRef,
        fork: u32,
        role: BranchRole,
        outcome: Outcome,
    ) {
        let waits = self.flows.get(parent).filter(|&parent| {
            let flow = &self.flows[parent];
            flow.forks == fork && flow.fork.outstanding > 0
        });
        let Some(parent) = waits else {
            // The parent has continued without this branch.
            if outcome != Outcome::Succeeded
                && let BranchRole::Copy {
                    group, node, bytes, ..
                } = role
            {
                self.miss(id, group, node, bytes);
            }
            return;
        };
        let copied_to = match role {
            BranchRole::Piece => None,
            BranchRole::Copy { group, .. } => Some(group),
        };
        match outcome {
            Outcome::Displaced { group } if copied_to != Some(group) => {
                self.pass_trail(id, parent);
                return self.displace(parent, group);
            }
            Outcome::Failed if copied_to.is_none() => {
                self.flows[parent].fork.outstanding = 0;
                return self.end(parent, Outcome::Failed);
            }
            _ => {}
        }
        if outcome != Outcome::Succeeded
            && let BranchRole::Copy { node, .. } = role
        {
            self.flows[parent].missed_by.push(node);
        }
        let flow = &mut self.flows[parent];
        match flow.fork.end_of_branch(role, outcome) {
            Joined::NotYet => {}
            Joined::Enough => {
                flow.fork.outstanding = 0;
                flow.step = flow.fork.after;
                self.pass_trail(id, parent);
                if let BranchRole::Copy { group, bytes, .. } = role {
                    self.acknowledge(parent, group, bytes);
                }
                self.runnable.push_back(parent);
            }
            Joined::TooFew if flow.fork.was_displaced => {
                // Repeat the current step, on the nodes that are up.
                flow.fork.outstanding = 0;
                self.pass_trail(id, parent);
                self.runnable.push_back(parent);
            }
            Joined::TooFew => {
                flow.fork.outstanding = 0;
                self.end(parent, Outcome::Failed);
            }
        }
    }

    /// Attributes the time of the slowest awaited branch to the parent.
    fn pass_trail(&mut self, branch: FlowId, parent: FlowId) {
        let trail = std::mem::take(&mut self.flows[branch].trail);
        self.flows[parent].trail.extend_from_slice(&trail);
        self.flows[branch].trail = trail;
    }

    /// Acknowledges the copies of a flow: nodes without a copy have missed the bytes.
    fn acknowledge(&mut self, id: FlowId, group: u8, bytes: u64) {
        while let Some(node) = self.flows[id].missed_by.pop() {
            self.miss(id, group, node, bytes);
        }
    }

    /// Records that a node has missed bytes of a flow. Reads cannot be missed.
    fn miss(&mut self, id: FlowId, group: u8, node: u32, bytes: u64) {
        if matches!(
            self.flows[id].operation.class,
            OperationClass::DataWrite | OperationClass::MetadataChange | OperationClass::Commit
        ) {
            self.nodes[group as usize][node as usize].missed_bytes += bytes;
            self.rebuild(group, node);
        }
    }
}

/// Consequence of the end of a branch.
enum Joined {
    NotYet,
    Enough,
    /// Too few copies can still succeed for the acknowledgement.
    TooFew,
}

impl Fork {
    /// Counts an ended branch, and returns whether the parent continues, waits for further branches, or has too few
    /// branches left.
    fn end_of_branch(&mut self, role: BranchRole, outcome: Outcome) -> Joined {
        let is_primary = matches!(
            role,
            BranchRole::Copy {
                is_primary: true,
                ..
            }
        );
        let succeeded = outcome == Outcome::Succeeded;
        self.outstanding -= 1;
        self.succeeded += u32::from(succeeded);
        self.primary_failed |= is_primary && !succeeded;
        self.was_displaced |= matches!(outcome, Outcome::Displaced { .. });
        let is_last = self.outstanding == 0;
        let (is_enough, are_too_few) = match self.join {
            Join::Pieces => (self.succeeded == self.needed, false),
            // Copies missed since the fork are not awaited.
            Join::Copies(Acknowledgement::All) => (
                is_last && self.succeeded > 0,
                is_last && self.succeeded == 0,
            ),
            Join::Copies(Acknowledgement::Quorum) => (
                self.succeeded == self.needed,
                self.succeeded + self.outstanding < self.needed,
            ),
            Join::Copies(Acknowledgement::Primary) => (
                is_primary && succeeded || self.primary_failed && self.succeeded > 0,
                is_last && self.succeeded == 0,
            ),
        };
        match (is_enough, are_too_few) {
            (true, _) => Joined::Enough,
            (false, true) => Joined::TooFew,
            (false, false) => Joined::NotYet,
        }
    }
}
