//! NFS version 3 (RFC 1813).

mod client;
mod listing;
mod procedures;
mod types;

pub use client::{Client, NfsError, PendingCall, RpcObserver, call_blocking};
pub use listing::Listing;
pub use procedures::*;
pub use types::*;
