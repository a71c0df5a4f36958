//! What the figures of a row are of.

use plimsoll_plan::OpKind;
use std::sync::LazyLock;

/// What a row's figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// All operations that count.
    Summary,
    /// Operations of one name and kind.
    Operation,
    /// A procedure called on a server.
    Procedure,
    /// Times from the completion of operations until their workers saw it.
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

    /// The level of the rows of a kind of operation.
    pub(crate) fn of(kind: OpKind) -> Self {
        match kind {
            OpKind::Rpc => Self::Procedure,
            OpKind::CompletionDelay => Self::CompletionDelay,
            _ => Self::Operation,
        }
    }

    /// The level of the rows of a kind, by its name in the series. Of names of other versions, which are unknown, all
    /// are operations.
    pub(crate) fn of_name(kind: &str) -> Self {
        // Tables have millions of rows, and a name is made by formatting.
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
