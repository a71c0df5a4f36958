//! NFS version 4: 4.0 (RFC 7530) and 4.1 (RFC 8881).
//!
//! [`operations`] and [`state`] have what goes over the wire, [`compound`] puts it together, and
//! [`Client`] keeps what a client has to know.

mod asked;
pub mod attributes;
mod blocking;
pub mod callback;
mod client;
pub mod compound;
pub mod operations;
pub mod state;
pub mod types;

pub use asked::{Asked, Part};
pub use blocking::Talk;
pub use client::*;
pub use compound::{Compound, NfsError, Request, Results, TARGET};
