//! State of a thread during the lowering of its flowops.

use crate::wml::diagnostics::Span;

#[derive(Default)]
pub(super) struct ThreadState {
    pub(super) uses: Vec<SlotUse>,
    /// Composites that are being expanded, outermost first.
    pub(super) stack: Vec<String>,
    /// Size of the largest constant transfer in bytes.
    pub(super) largest_io: u64,
    /// Whether an invalid flowop may open a slot, so the open slots are unknown.
    pub(super) slots_unknown: bool,
}

/// Use of a descriptor slot by one flowop.
pub(super) struct SlotUse {
    pub(super) slot: u8,
    pub(super) opens: bool,
    /// Whether the flowop opens slots in rotation, and so may open any slot.
    pub(super) any: bool,
    /// Whether the flowop fails unless a flowop opens the slot.
    pub(super) needs: bool,
    pub(super) name: String,
    pub(super) span: Span,
}

/// A target that has not been resolved yet.
pub(super) struct PendingTarget {
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) wants: TargetKind,
}

/// Kinds of flowops that a target may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    SemBlocks,
    Blocks,
    /// Flowops that count in the summary.
    Counted,
}
