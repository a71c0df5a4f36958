//! NFS version 4: 4.0 (RFC 7530) and 4.1 (RFC 8881).
//!
//! [`operations`] and [`state`] define the arguments and results of operations, [`compound`]
//! combines operations into calls, and [`Client`] manages the state of a client.

pub mod attributes;
mod blocking;
pub mod callback;
mod client;
pub mod compound;
mod compound_args;
pub mod operations;
pub mod state;
pub mod types;

pub use blocking::BlockingClient;
pub use client::*;
pub use compound::{Compound, NfsError, Request, Results, TARGET};
pub use compound_args::{ArgOp, CompoundArgs};
