//! A WAN link on one machine.
//!
//! [`Relay`] works at the level of TCP: it accepts connections, makes one to the server for each,
//! and passes data on after a delay. TCP ends on both sides of it, so there is neither slow start
//! nor a window that limits a connection. [`Tunnel`] passes packets between two network namespaces,
//! so TCP runs end to end and behaves as on such a link.
//!
//! Both delay by the same rules, those of a [`Link`].

mod delay;
mod figures;
mod link;
mod relay;
mod tunnel;

pub use figures::{DirectionTotals, Summary};
pub use link::{BitRate, Link, LinkError, MAX_RTT};
pub use relay::Relay;
pub use tunnel::{Namespace, Tunnel, TunnelError};
