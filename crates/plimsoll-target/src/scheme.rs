//! The description of a kind of target, by which its scheme is registered.

/// A kind of target.
#[derive(Debug, Clone, Copy)]
pub struct TargetScheme {
    /// First part of its URLs.
    pub name: &'static str,
    /// The form of its URLs, for the help.
    pub form: &'static str,
    /// The storage of its files.
    pub storage: FileStorage,
    /// Whether it exists in virtual time only.
    pub is_virtual: bool,
    /// Whether its URLs may name events, which happen to it during a run.
    pub takes_events: bool,
    /// Names of the rows for the procedures that it calls on a server.
    pub(crate) row_names: fn() -> Vec<&'static str>,
}

impl TargetScheme {
    /// Whether created files exist afterwards.
    #[must_use]
    pub fn keeps_files(&self) -> bool {
        self.storage != FileStorage::None
    }
}

/// The storage of a target's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStorage {
    /// None: it keeps no files.
    None,
    /// A file system of this machine.
    Local,
    /// A server, where paths of this machine have no meaning.
    Server,
}

/// The rows of a target that calls no procedures.
pub(crate) fn no_rows() -> Vec<&'static str> {
    vec![]
}
