//! What the targets of NFS have in common.

pub(crate) mod cache;
pub(crate) mod dirs;
pub(crate) mod listing;
pub(crate) mod once;
pub(crate) mod open;
pub(crate) mod place;
pub(crate) mod replies;
pub(crate) mod rows;
pub(crate) mod session;
pub(crate) mod url;
pub(crate) mod wire;

/// Why `--cold` changes nothing for NFS without the kernel's client.
pub(crate) const NEVER_COLD: &str =
    "this client keeps no pages of files, and the server's cache is out of reach";
