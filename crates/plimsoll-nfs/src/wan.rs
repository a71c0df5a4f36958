//! An emulated WAN link on one machine.
//!
//! [`Relay`] accepts TCP connections, opens a connection to the server for each accepted connection, and passes data on
//! after a delay, as the properties of a [`Link`] say. TCP ends on both sides of the relay, so neither slow start nor a
//! window limits a connection. docs/wan.md has the commands that delay packets in the kernel.

mod delay;
mod figures;
mod link;
mod relay;

pub use figures::{DirectionTotals, Summary};
pub use link::{BitRate, Link, LinkError, MAX_RTT};
pub use relay::Relay;
