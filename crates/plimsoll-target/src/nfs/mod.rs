//! What the targets of NFS have in common.

pub(crate) mod backend;
pub(crate) mod cache;
pub(crate) mod create_verifiers;
pub(crate) mod deviation_report;
pub(crate) mod dir_handle_cache;
pub(crate) mod listing;
pub(crate) mod open;
pub(crate) mod rpc_stats;
pub(crate) mod session;
pub(crate) mod url;
pub use url::present_option_name;
pub(crate) mod work_dir;

/// Why `--drop-caches` changes nothing for NFS without the kernel's client.
pub(crate) const NEVER_COLD: &str =
    "this client keeps no pages of files, and the server's cache is out of reach";
