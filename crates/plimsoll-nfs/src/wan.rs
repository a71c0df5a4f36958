//! An emulated WAN link on one machine.
//!
//! [`Relay`] works on TCP connections: it accepts connections, opens a connection to the server for
//! each, and passes data on after a delay. TCP ends on both sides of the relay, so neither slow
//! start nor a window limits a connection. [`Tunnel`] passes packets between two network
//! namespaces, so TCP runs end to end and behaves as on a real WAN link.
//!
//! Relay and tunnel delay data by the same rules, the properties of a [`Link`].

mod delay;
mod figures;
mod link;
mod relay;
mod tunnel;

pub use figures::{DirectionTotals, Summary};
pub use link::{BitRate, Link, LinkError, MAX_RTT};
pub use relay::Relay;
pub use tunnel::{Namespace, Tunnel, TunnelError};
