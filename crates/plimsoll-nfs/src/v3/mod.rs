//! NFS version 3 (RFC 1813).

mod client;
mod procedures;
mod types;

pub use client::{Client, NfsError, Observe, Sent, call_blocking};
pub use procedures::*;
pub use types::*;
