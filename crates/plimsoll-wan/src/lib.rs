//! A wide area network on one machine.
//!
//! [`Relay`] is one at the level of TCP: it takes connections, makes one to the server for each,
//! and passes on what comes, later. TCP ends on both sides of it, so that there is neither slow
//! start nor a window that limits a connection. [`Tunnel`] passes packets between two network
//! namespaces, so that TCP goes all the way and behaves as it does on such a line.
//!
//! Both delay by the same rules, which are a [`Link`].

mod delay;
mod figures;
mod link;
mod relay;
mod tunnel;

pub use figures::{DirectionTotals, Summary};
pub use link::{BitRate, Link, LinkError, MAX_RTT};
pub use relay::Relay;
pub use tunnel::{Namespace, Tunnel, TunnelError};
