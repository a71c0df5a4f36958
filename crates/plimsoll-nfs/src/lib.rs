//! NFS without a kernel client.
//!
//! [`rpc`] carries calls: many workers of a lane share a few connections, and each call is one
//! future. [`v3`] has the procedures of NFS version 3, [`v4`] the operations and the state of
//! version 4, [`mount`] and [`portmap`] what leads to them, and [`server`] is a file server in
//! memory to try all of it on. Everything that comes from the other side is decoded without trust:
//! whatever it is, it takes no more memory than it has bytes, and gives an error or a value.

mod handle;
pub mod mount;
pub mod portmap;
pub mod rpc;
pub mod server;
pub mod v3;
pub mod v4;
pub mod xdr;

pub use handle::FileHandle;
