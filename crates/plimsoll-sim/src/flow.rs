//! Operations on their way, and what they fork into.

use crate::instance::FlowId;
use crate::system::{Acknowledgement, MAX_CACHE_DEPTH, MAX_GROUPS, OperationClass};
use plimsoll_measure::Nanos;

/// An operation that a client issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What it does, which decides its path.
    pub class: OperationClass,
    /// Row of the results that its time is attributed to; without one it is not counted.
    pub row: Option<u32>,
    /// Number of the client that issues it.
    pub client: u32,
    /// Number of the file or name.
    pub file: u64,
    /// Number of its directory.
    pub directory: u64,
    /// Position in the file, in bytes.
    pub offset: u64,
    /// Bytes that are read or written.
    pub bytes: u64,
}

/// An operation that has come to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The number that it was submitted with.
    pub ticket: u32,
    /// Whether it succeeded; an operation fails if what it needs is down.
    pub succeeded: bool,
}

/// Why a flow exists, and so what its end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client waits for it.
    Operation { ticket: u32 },
    /// Another flow forked it; that flow may have gone on without it.
    Branch {
        parent: FlowRef,
        fork: u32,
        role: BranchRole,
    },
    /// It drains bytes of this instance of a buffer.
    Drain {
        buffer: u16,
        instance: u32,
        bytes: u64,
    },
    /// It brings a node up to date.
    Rebuild { group: u8, node: u32 },
}

/// What a branch is of the flow that forked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchRole {
    /// A piece of its bytes.
    Piece,
    /// A copy of `bytes` on a node of this group.
    Copy {
        group: u8,
        is_primary: bool,
        node: u32,
        bytes: u64,
    },
}

/// How a flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    /// Its node of this group is down, and whoever chose the node has to choose another one.
    Displaced {
        group: u8,
    },
}

/// What a flow waits for that has forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Every piece.
    Pieces,
    /// The copies that this acknowledgement needs.
    Copies(Acknowledgement),
}

/// The branches of a flow that has forked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fork {
    pub(crate) join: Join,
    /// Branches that have not ended; 0 if the flow waits for none.
    pub(crate) outstanding: u32,
    pub(crate) succeeded: u32,
    /// Branches that have to succeed.
    pub(crate) needed: u32,
    /// Whether the primary copy has failed, so that another one acknowledges in its place.
    pub(crate) primary_failed: bool,
    /// Whether a copy failed only because its node went down under it.
    pub(crate) was_displaced: bool,
    /// Step at which the flow goes on.
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

/// A limit that a flow has passed, and what the flow was like before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldLimit {
    pub(crate) instance: u32,
    /// Step that passes the limit.
    pub(crate) step: u32,
    pub(crate) bytes: u64,
}

/// Where a flow chose the node that it is at, and what it was like then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeChoice {
    pub(crate) step: u32,
    /// Limits that it had passed.
    pub(crate) held: u32,
    pub(crate) bytes: u64,
}

impl Purpose {
    fn is_background(self) -> bool {
        matches!(self, Self::Drain { .. } | Self::Rebuild { .. })
    }
}

/// A flow that may have ended since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowRef {
    pub(crate) id: FlowId,
    pub(crate) generation: u32,
}

/// Marks a flow that is at no station.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// One operation, or a part of one, on its way.
///
/// What every visit to a station reads lies together at the beginning: the flows of a busy system do not
/// fit the nearest cache of the processor.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flow {
    /// Time since which it has been at its element.
    pub(crate) arrived: Nanos,
    /// Bytes that count at present: those of the operation, or those that a cache did not hold.
    pub(crate) bytes: u64,
    pub(crate) step: u32,
    /// Scheduled events of an earlier visit are void.
    pub(crate) visit: u32,
    /// Instance of a station it is at, or [`NOWHERE`].
    pub(crate) instance: u32,
    pub(crate) generation: u32,
    pub(crate) element: u16,
    pub(crate) is_live: bool,
    /// Whether it is the system's own, or a branch of such a flow: it waits for what is down.
    pub(crate) is_background: bool,
    /// Group of the node that went down under it, while it waits to choose another.
    pub(crate) displaced: Option<u8>,
    /// Where its time went: element and nanoseconds of each wait.
    pub(crate) trail: Vec<(u16, Nanos)>,
    pub(crate) operation: Operation,
    pub(crate) purpose: Purpose,
    /// Node of each group that it is at.
    pub(crate) nodes: [u32; MAX_GROUPS],
    pub(crate) fork: Fork,
    /// How often it has forked, so that a late branch of an earlier fork is known.
    pub(crate) forks: u32,
    /// Limits that it has passed.
    pub(crate) held: Vec<HeldLimit>,
    /// When it began.
    pub(crate) begun: Nanos,
    /// Nodes that have missed its copies since it forked.
    pub(crate) missed_by: Vec<u32>,
    pub(crate) saved_bytes: [u64; MAX_CACHE_DEPTH],
    /// Where it chose that node itself; a branch is at nodes that its parent chose.
    pub(crate) chosen: [Option<NodeChoice>; MAX_GROUPS],
}

impl Flow {
    /// Notes the time spent at the element since the arrival, which is returned.
    #[inline]
    pub(crate) fn leave(&mut self, now: Nanos) -> Nanos {
        let since = self.arrived;
        if now > since {
            self.trail.push((self.element, now - since));
        }
        since
    }
}

/// All flows; those that have ended are used again.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    flows: Vec<Flow>,
    free: Vec<FlowId>,
}

impl Flows {
    /// A new flow at a step.
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

    /// Ends a flow; its number may be given to another.
    pub(crate) fn end(&mut self, id: FlowId) {
        let flow = &mut self.flows[id as usize];
        debug_assert!(flow.is_live, "a flow ends twice");
        debug_assert!(flow.instance == NOWHERE, "a flow ends at a station");
        flow.is_live = false;
        flow.generation = flow.generation.wrapping_add(1);
        flow.visit = flow.visit.wrapping_add(1);
        self.free.push(id);
    }

    /// Has the processor fetch what the next visit of a flow needs.
    #[inline]
    pub(crate) fn touch(&self, id: FlowId) {
        if let Some(flow) = self.flows.get(id as usize) {
            std::hint::black_box((flow.visit, flow.trail.last()));
        }
    }

    /// The flow, if it has not ended since the reference was taken.
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

    /// All flows that are at an instance of a station, each with that instance.
    pub(crate) fn at_instances(&self) -> impl Iterator<Item = (FlowId, u32)> {
        let flows = (0..).zip(&self.flows);
        flows
            .filter(|(_, flow)| flow.is_live && flow.instance != NOWHERE)
            .map(|(id, flow)| (id, flow.instance))
    }

    /// The number of flows that have not ended.
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
