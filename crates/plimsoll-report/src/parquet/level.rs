//! Level of a row: the calls that its figures cover.

use plimsoll_plan::OpKind;
use std::sync::LazyLock;

/// The calls that a row's figures cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// All operations that count, together.
    Summary,
    /// Operations with the same name and kind.
    Operation,
    /// A procedure that the target called on a server.
    Procedure,
    /// Completion delays of a ring.
    CompletionDelay,
}

impl Level {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Operation => "operation",
            Self::Procedure => "procedure",
            Self::CompletionDelay => "completion_delay",
        }
    }

    /// Level of the rows of a kind of operation.
    pub(crate) fn of(kind: OpKind) -> Self {
        match kind {
            OpKind::Rpc => Self::Procedure,
            OpKind::CompletionDelay => Self::CompletionDelay,
            _ => Self::Operation,
        }
    }

    /// Level of the rows of a kind, by its name in the time series. A kind that this version does not know counts as an
    /// operation.
    pub(crate) fn of_name(kind: &str) -> Self {
        // Computed once: tables have millions of rows, and formatting a name is slow.
        static BESIDE: LazyLock<[(String, Level); 2]> = LazyLock::new(|| {
            [OpKind::Rpc, OpKind::CompletionDelay].map(|kind| (kind.to_string(), Level::of(kind)))
        });
        let known = BESIDE.iter().find(|(name, _)| name == kind);
        known.map_or(Self::Operation, |(_, level)| *level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_have_the_level_of_their_kind() {
        for kind in [OpKind::Rpc, OpKind::CompletionDelay, OpKind::Read] {
            assert_eq!(Level::of_name(&kind.to_string()), Level::of(kind));
        }
        assert_eq!(Level::of_name("?"), Level::Operation);
    }
}
