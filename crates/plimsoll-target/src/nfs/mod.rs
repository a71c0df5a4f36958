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
