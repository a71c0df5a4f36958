//! Identification of a worker within the run of all ranks.

/// A worker: its group, its number within the group, and its number in the run.
#[derive(Clone, Copy)]
pub(crate) struct WorkerId {
    pub(crate) group: u32,
    pub(crate) number: u32,
    pub(crate) index: u32,
}
