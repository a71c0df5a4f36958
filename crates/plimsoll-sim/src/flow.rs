//! Operations in flight, and their forks.

use crate::instance::FlowId;
use crate::system::{Acknowledgement, MAX_CACHE_DEPTH, MAX_GROUPS, OperationClass};
use plimsoll_measure::Nanos;

/// Operation that a client issues to a simulated system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Class of the operation, which determines the path of the operation through the system.
    pub class: OperationClass,
    /// Result row to which the time is attributed; `None` for operations that are not counted.
    pub row: Option<u32>,
    /// Number of the client that issues the operation.
    pub client: u32,
    /// Number that identifies the file, or the name, on which the operation works.
    pub file: u64,
    /// Number that identifies the parent directory of the file.
    pub directory: u64,
    /// Position in the file at which the operation begins, in bytes.
    pub offset: u64,
    /// Number of bytes that the operation reads or writes.
    pub bytes: u64,
}

/// The end of an operation, for the client that submitted the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// Ticket that the caller gave at the submission of the operation.
    pub ticket: u32,
    /// Whether the operation succeeded; an operation fails if a required node or station is down.
    pub succeeded: bool,
}

/// Purpose of a flow, which determines the consequence of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Flow of a client's operation; the ticket tells the client which operation has ended.
    Operation { ticket: u32 },
    /// Flow of a branch of a fork; the parent may have continued without the branch.
    Branch {
        parent: FlowRef,
        fork: u32,
        role: BranchRole,
    },
    /// Background flow that drains bytes of a buffer instance.
    Drain {
        buffer: u16,
        instance: u32,
        bytes: u64,
    },
    /// Background flow that writes one piece of the bytes that a node missed while the node was down.
    Rebuild { group: u8, node: u32 },
}

/// Role of a branch in its fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchRole {
    /// Branch that executes a part of the path for one piece of the parent's bytes.
    Piece,
    /// Branch that executes a part of the path on one node of a group, for a copy of `bytes`.
    Copy {
        group: u8,
        is_primary: bool,
        node: u32,
        bytes: u64,
    },
}

/// Result of a flow, which determines whether the parent or the client sees a success, a failure or a new choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    /// The flow's node of `group` is down, and the flow that chose the node must choose another node.
    Displaced {
        group: u8,
    },
}

/// Condition for a forked flow to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// All pieces of the operation have succeeded.
    Pieces,
    /// As many copies of the operation as the acknowledgement requires have succeeded.
    Copies(Acknowledgement),
}

/// Branches of a forked flow: how many are in flight, and how many must succeed before the flow continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) join: Join,
    /// Number of branches in flight; 0 if the flow is not waiting for branches.
    pub(crate) outstanding: u32,
    pub(crate) succeeded: u32,
    /// Number of branches that must succeed before the forked flow continues; [`Acknowledgement::All`] instead waits
    /// for every branch, and continues after at least one success.
    pub(crate) needed: u32,
    /// Whether the primary copy has failed, so that another copy acknowledges instead.
    pub(crate) primary_failed: bool,
    /// Whether a copy failed only because its node went down.
    pub(crate) was_displaced: bool,
    /// Step at which the flow continues after the fork.
    pub(crate) after: u32,
}

impl Fork {
    const NONE: Self = Self {
        join: Join::Pieces,
        outstanding: 0,
        succeeded: 0,
        needed: 0,
        primary_failed: false,
        was_displaced: false,
        after: 0,
    };
}

/// A limit that a flow has passed, with the flow's state before the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldLimit {
    pub(crate) instance: u32,
    /// Number of the step at which the flow acquires the limit.
    pub(crate) step: u32,
    pub(crate) bytes: u64,
}

/// Step at which a flow chose its current node, with the flow's state at that step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeChoice {
    pub(crate) step: u32,
    /// Number of limits that the flow held when the flow chose the node.
    pub(crate) held: u32,
    pub(crate) bytes: u64,
}

impl Purpose {
    fn is_background(self) -> bool {
        matches!(self, Self::Drain { .. } | Self::Rebuild { .. })
    }
}

/// Reference to a flow, valid until the flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowRef {
    pub(crate) id: FlowId,
    pub(crate) generation: u32,
}

/// Instance number of a flow that is at no station.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// An operation, or a branch of an operation, in flight.
///
/// The fields read by every station visit come first: the flows of a busy system exceed the first-level processor
/// cache.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flow {
    /// Virtual time at which the flow arrived at the current element, in nanoseconds.
    pub(crate) arrived: Nanos,
    /// Bytes in play: the bytes of the operation, or only the bytes missed by a cache.
    pub(crate) bytes: u64,
    pub(crate) step: u32,
    /// Visit number; events of an earlier visit are void.
    pub(crate) visit: u32,
    /// Instance of the current station, or [`NOWHERE`].
    pub(crate) instance: u32,
    pub(crate) generation: u32,
    pub(crate) element: u16,
    pub(crate) is_live: bool,
    /// Whether the flow is a background flow of the system, or a branch of a background flow; background flows wait for
    /// failed nodes.
    pub(crate) is_background: bool,
    /// Group of the failed node, while the flow waits to choose another node.
    pub(crate) displaced: Option<u8>,
    /// Time spent so far: element and nanoseconds of each wait.
    pub(crate) trail: Vec<(u16, Nanos)>,
    pub(crate) operation: Operation,
    pub(crate) purpose: Purpose,
    /// Number of the flow's current node in each group.
    pub(crate) nodes: [u32; MAX_GROUPS],
    pub(crate) fork: Fork,
    /// Number of forks, by which late branches of an earlier fork are recognised.
    pub(crate) forks: u32,
    /// Limits that the flow has passed and not released, in the order of passing.
    pub(crate) held: Vec<HeldLimit>,
    /// Virtual time at which the flow began, in nanoseconds.
    pub(crate) begun: Nanos,
    /// Nodes that have missed copies since the fork.
    pub(crate) missed_by: Vec<u32>,
    pub(crate) saved_bytes: [u64; MAX_CACHE_DEPTH],
    /// Node choices of the flow itself; a branch uses the nodes that its parent chose.
    pub(crate) chosen: [Option<NodeChoice>; MAX_GROUPS],
}

impl Flow {
    /// Records and returns the time spent at the current element.
    #[inline]
    pub(crate) fn leave(&mut self, now: Nanos) -> Nanos {
        let since = self.arrived;
        if now > since {
            self.trail.push((self.element, now - since));
        }
        since
    }
}

/// Pool of flows; slots of ended flows are reused.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
    free: Vec<FlowId>,
}

impl Flows {
    /// Starts a flow at the step `step`, in a free slot of the pool.
    pub(crate) fn begin(
        &mut self,
        now: Nanos,
        operation: Operation,
        purpose: Purpose,
        step: u32,
    ) -> FlowId {
        if let Some(id) = self.free.pop() {
            let flow = &mut self.flows[id as usize];
            debug_assert!(!flow.is_live, "a free flow is in use");
            flow.operation = operation;
            flow.purpose = purpose;
            flow.is_live = true;
            flow.step = step;
            flow.bytes = operation.bytes;
            flow.begun = now;
            flow.nodes = [0; MAX_GROUPS];
            flow.chosen = [None; MAX_GROUPS];
            flow.is_background = purpose.is_background();
            debug_assert!(flow.held.is_empty(), "a flow ended within a limit");
            flow.trail.clear();
            return id;
        }
        let id = FlowId::try_from(self.flows.len()).expect("flows in flight fit 32 bits");
        self.flows.push(Flow {
            operation,
            purpose,
            generation: 0,
            is_live: true,
            step,
            bytes: operation.bytes,
            saved_bytes: [0; MAX_CACHE_DEPTH],
            nodes: [0; MAX_GROUPS],
            chosen: [None; MAX_GROUPS],
            is_background: purpose.is_background(),
            displaced: None,
            instance: NOWHERE,
            element: 0,
            arrived: 0,
            visit: 0,
            fork: Fork::NONE,
            forks: 0,
            held: Vec::new(),
            begun: now,
            missed_by: Vec::new(),
            trail: Vec::new(),
        });
        id
    }

    /// Ends a flow; the slot may be reused.
    pub(crate) fn end(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        debug_assert!(flow.is_live, "a flow ends twice");
        debug_assert!(flow.instance == NOWHERE, "a flow ends at a station");
        flow.is_live = false;
        flow.generation = flow.generation.wrapping_add(1);
        flow.visit = flow.visit.wrapping_add(1);
        self.free.push(id);
    }

    /// Prefetches the data for a flow's next visit.
    #[inline]
    pub(crate) fn touch(&self, id: FlowId) {
        if let Some(flow) = self.flows.get(id as usize) {
            std::hint::black_box((flow.visit, flow.trail.last()));
        }
    }

    /// Resolves a reference; `None` if the flow has ended.
    pub(crate) fn get(&self, flow: FlowRef) -> Option<FlowId> {
        let found = &self.flows[flow.id as usize];
        (found.is_live && found.generation == flow.generation).then_some(flow.id)
    }

    pub(crate) fn reference(&self, id: FlowId) -> FlowRef {
        FlowRef {
            id,
            generation: self.flows[id as usize].generation,
        }
    }

    /// Flows that are at a station, each with the station instance.
    pub(crate) fn at_instances(&self) -> impl Iterator<Item = (FlowId, u32)> {
        let flows = (0..).zip(&self.flows);
        flows
            .filter(|(_, flow)| flow.is_live && flow.instance != NOWHERE)
            .map(|(id, flow)| (id, flow.instance))
    }

    /// Number of flows in flight, including branches and background flows.
    pub(crate) fn live(&self) -> usize {
        self.flows.len() - self.free.len()
    }
}

impl std::ops::Index<FlowId> for Flows {
    type Output = Flow;

    #[inline]
    fn index(&self, id: FlowId) -> &Flow {
        &self.flows[id as usize]
    }
}

impl std::ops::IndexMut<FlowId> for Flows {
    #[inline]
    fn index_mut(&mut self, id: FlowId) -> &mut Flow {
        &mut self.flows[id as usize]
    }
}
