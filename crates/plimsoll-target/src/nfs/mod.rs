//! The version-independent part of the NFS targets; each version adds only its calls.

pub(crate) mod backend;
pub(crate) mod cache;
pub(crate) mod client_counts;
pub(crate) mod client_state;
mod create_verifiers;
pub(crate) mod deviation_report;
pub(crate) mod dir_handle_cache;
pub(crate) mod handle;
pub(crate) mod listing;
pub(crate) mod open;
pub(crate) mod rpc_stats;
pub(crate) mod session;
pub(crate) mod sizes;
pub(crate) mod target;
pub(crate) mod transfer;
pub(crate) mod url;
pub(crate) mod work_dir;
