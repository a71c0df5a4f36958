//! The nfs3 target on a server in memory: the state of the server after the operations, and the procedures that each
//! operation calls.

mod bench;
mod data;
mod malformed_servers;
mod names;
mod servers;
