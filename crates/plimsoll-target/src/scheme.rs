//! The description of a kind of target in the table of schemes.

/// A kind of target: one scheme of target URLs.
#[derive(Debug, Clone, Copy)]
pub struct TargetScheme {
    /// The scheme, before the colon of a URL.
    pub name: &'static str,
    /// The form of URLs, for the help text.
    pub form: &'static str,
    /// Storage of the target's files: none, a file system of this machine, or a server.
    pub storage: FileStorage,
    /// Whether URLs may name events, which happen to the target during a run.
    pub takes_events: bool,
    /// Lists of the names of the options of URLs, which `--vary` varies. Options of simulated systems, such as events,
    /// are not in the lists.
    pub(crate) options: &'static [&'static [&'static str]],
    /// Names of the rows for the procedures that the target calls on a server.
    pub(crate) row_names: fn() -> Vec<&'static str>,
}

impl TargetScheme {
    /// Names of the options of URLs.
    pub fn options(&self) -> impl Iterator<Item = &'static str> {
        self.options.iter().flat_map(|list| list.iter().copied())
    }

    /// Whether created files still exist after a run.
    #[must_use]
    pub fn keeps_files(&self) -> bool {
        self.storage != FileStorage::None
    }
}

/// The storage of a target's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStorage {
    /// The target keeps no files.
    None,
    /// A file system of this machine.
    Local,
    /// A server, where local paths have no meaning.
    Server,
}

/// The row names of a target that calls no procedures.
pub(crate) fn no_rows() -> Vec<&'static str> {
    vec![]
}
