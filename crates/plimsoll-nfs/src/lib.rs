//! NFS without a kernel client.
//!
//! All received data is decoded as untrusted: any bytes give a value or an error, and decoding
//! allocates no more memory than the bytes justify.
//!
//! Modules:
//!
//! | module | content |
//! | --- | --- |
//! | [`xdr`] | encoding and decoding; the macros that declare structures, unions and enumerations |
//! | `common` | data types that both versions share |
//! | [`rpc`] | calls and replies, records; `blocking`: one call at a time; `channel`, `connection`: many workers of a lane share a few connections, each call is a future |
//! | [`mount`], [`portmap`] | the protocols that find a version 3 export |
//! | [`v3`] | version 3: the table of procedures, their arguments and results, the client |
//! | [`v4::types`], [`v4::attributes`] | data types of version 4 |
//! | [`v4::operations`] | the table of operations; arguments and results of operations on files and names |
//! | [`v4::state`] | arguments and results of operations on clients, sessions, opens, locks and delegations |
//! | [`v4::compound`] | compounds as a client encodes them, and their results; `compound_args`: compounds as a server decodes them |
//! | [`v4::callback`] | calls of the server, and the replies to them |
//! | `v4::blocking` | one compound at a time: for questions before a run, and for the client's shutdown |
//! | `v4::client` | a client on a lane: `identity` (client id, session, lease), `slots`, `opens`, `delegations`, `locks`, `listener` (callbacks of 4.0) |
//! | [`server`] | a server of version 3 in memory: `service` (procedures), `tree` (files), `faults` |
//! | [`wan`] | an emulated WAN link: a relay of TCP connections |
//!
//! # Design
//! The message types and the in-memory server are Plimsoll's own. The crate `nfs3_types` allocates the length that a
//! message announces before the bytes arrive. The crate `nfs3_server` does not reply to a retransmission and fails an
//! UNCHECKED CREATE of an existing file.
//!
//! A channel belongs to a lane, and the sessions of the lane share the channel. A background task of the lane sends
//! calls after all workers that can proceed have queued their calls, so that one system call sends the calls of many
//! workers. A call without a reply stays in flight for 3 s after the end of a run; then the connection abandons the
//! call and reports the begin of the server's silence.
//!
//! The Plan has a row for each procedure that a target calls (`OpKind::Rpc`), so windows, intervals and the merging of
//! ranks treat procedures as operations. Sums over operations exclude procedure rows.

mod acceptor;
mod common;
mod lock;
pub mod mount;
pub mod portmap;
pub mod rpc;
pub mod server;
pub mod v3;
pub mod v4;
pub mod wan;
pub mod xdr;

pub use common::FileHandle;
