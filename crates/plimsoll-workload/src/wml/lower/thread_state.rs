//! State of a thread while its flowops are lowered.

use crate::wml::diagnostics::Span;

/// A thread while its flowops are lowered.
pub(super) struct ThreadState {
    pub(super) uses: Vec<SlotUse>,
    /// Composites being expanded, outermost first.
    pub(super) stack: Vec<String>,
    pub(super) steps_left: usize,
    /// Bytes of the largest constant transfer.
    pub(super) largest_io: u64,
    /// Targets by name, in the order of the flowops that have them.
    pub(super) pending: Vec<PendingTarget>,
    /// A flowop that may open a slot is invalid: which slots are open is not known.
    pub(super) slots_unknown: bool,
}

impl ThreadState {
    pub(super) fn new(steps_left: usize) -> Self {
        Self {
            uses: Vec::new(),
            stack: Vec::new(),
            steps_left,
            largest_io: 0,
            pending: Vec::new(),
            slots_unknown: false,
        }
    }
}

/// Use of a descriptor slot by a flowop.
pub(super) struct SlotUse {
    pub(super) slot: u8,
    pub(super) opens: bool,
    /// Opens slots in rotation, so any of them.
    pub(super) any: bool,
    /// Fails unless a flowop opens the slot.
    pub(super) needs: bool,
    pub(super) name: String,
    pub(super) span: Span,
}

/// A target that is still to be looked up.
pub(super) struct PendingTarget {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) wants: TargetKind,
}

/// Kind of flowop that a target must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    SemBlocks,
    Blocks,
    /// Any flowop that counts in the summary.
    Counted,
}
