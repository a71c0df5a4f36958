//! The nfs3 target against the server in memory: what is on the server afterwards, and which
//! procedures an operation became.

mod bench;
mod data;
mod malformed_servers;
mod names;
mod servers;
