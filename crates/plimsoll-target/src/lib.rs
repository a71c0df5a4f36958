//! Targets: what load is applied to.
//!
//! A [`Target`] is connected to once; each worker opens a [`Session`] on it and calls the
//! session's operations. A target knows nothing of workloads. `tests/conformance.rs` tests what all
//! of them must do.
//!
//! | modules | contents |
//! | --- | --- |
//! | `session`, `session_types`, `error` | the traits [`Target`] and [`Session`], their arguments and errors |
//! | `connect`, `scheme`, `url_options` | what a target needs to be connected to: errors, its entry in the table, options |
//! | `content`, `write_data`, `block_composer` | the bytes that writes store |
//! | `verifying` | a target around another one, whose contents are verified |
//! | `posix` | system calls: open files, names, asynchronous writes, operations of mixes |
//! | `posix::uring` | the same through an io_uring of each lane |
//! | `null` | nothing, or a fixed latency |
//! | `sim` | a simulated system (`plimsoll-sim`) on a lane in virtual time |
//! | `nfs` | what both versions share: target, sessions, pipelined transfers, caches, URLs |
//! | `nfs3`, `nfs4` | the calls of each version, by the traits of `nfs::backend` and `nfs::transfer` |
//! | `simulated` | files in memory with faults, for simulations of the whole program (feature `simulation`) |
//! | `timed_writes` | asynchronous writes of `null` and `simulated` |
//! | `registry` | the table of targets, and all that follows from a URL's scheme |
//!
//! A new target is a module with a `SCHEME` and a function `connect`, and its name in
//! `registry::targets!`.
//!
//! # Design
//! - Targets own the I/O buffers (`read` takes a length): `null` needs no buffer, and thousands of workers of a
//!   lane share one.
//! - Bytes of writes come from a stream of the worker, or of the file for files that were populated before a run,
//!   so contents do not depend on the thread. The pool of contents is larger than the caches of a processor;
//!   `Session::compose` prefetches the bytes before the write is timed, so that the fetch does not count as the
//!   time of the target.
//! - `--verify` is a target around the target (`verifying`): the run is compiled for the verifying target a second
//!   time, and a run without verification has none of the checks.
//! - A ring (`posix::uring`) owns what its operations in flight point to. A future that is dropped leaves its slot to
//!   the ring, which cancels the operation. Operations that a ring lacks run on a pool of threads.
//! - Three traits are what a version of NFS implements: `NfsVersion` (connecting), `NfsBackend` (operations on
//!   names and open files) and `TransferCalls` (READ and WRITE).

mod block_composer;
mod connect;
mod content;
mod error;
mod long_replies;
mod nfs;
mod nfs3;
mod nfs4;
mod null;
mod posix;
pub mod registry;
mod scheme;
mod session;
mod session_types;
mod sim;
#[cfg(feature = "simulation")]
pub mod simulated;
mod timed_writes;
mod url_options;
mod verifying;
mod write_data;

pub use connect::{Purpose, TargetError, Visitor};
pub use content::ContentPool;
pub use error::OpError;
pub use long_replies::LongReplies;
pub use posix::is_on_block_device;
pub use registry::{
    DEFAULT_TARGET, absolute, can_use_uring, check_url, connect, is_local, is_remote, is_virtual,
    keeps_files, procedures, scheme_of, takes_events, uring_unavailable, uses_uring,
    with_silence_limit,
};
pub use scheme::{FileStorage, TargetScheme};
pub use session::{Session, Target};
pub use session_types::{
    AioDone, Attributes, DataSet, Descriptors, DirectIo, EntryKind, FilesetEntry, ListTotals,
    OpenHow, OpenMode, RpcRows, SessionSpec, Space, WritePlace,
};
pub use sim::{system_events, system_fingerprint, with_absolute_system, with_events};
pub use verifying::{FileCheck, Ledger, REREAD_BYTES, STAMPED_BLOCK_BYTES, Stamp, VerifiedFileset};
