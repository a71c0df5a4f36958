//! Targets of load: local files, NFS servers, simulated systems and the null target.
//!
//! A run connects to a [`Target`] once; each worker opens a [`Session`] on the target and calls the session's
//! operations. A target does not depend on workloads. `tests/conformance.rs` tests the common behaviour of all targets.
//!
//! | modules | contents |
//! | --- | --- |
//! | `session`, `session_types`, `error` | the traits [`Target`] and [`Session`], their arguments and errors |
//! | `setup_session` | sessions for unmeasured work, behind one type for all targets |
//! | `rare_operation` | rare operations: an enum for names, an enum for open files |
//! | `connect`, `scheme`, `url_parser` | connecting to a target: errors, the table entry of a scheme, URLs and their options |
//! | `content`, `write_data`, `block_composer` | the bytes that writes store |
//! | `any` | all targets behind one type, by a `match` for each call |
//! | `verifying` | a target that wraps another target and verifies contents |
//! | `posix` | system calls: open files, names, asynchronous writes, operations of mixes |
//! | `posix::device` | a block device as the only file of `posix` and `posix::uring` |
//! | `posix::uring` | the operations of `posix` by an io_uring of each lane |
//! | `null` | operations without work, or with a fixed latency |
//! | `sim` | a simulated system (`plimsoll-sim`) on a lane in virtual time |
//! | `unstored` | the operations of `null` and `sim`, which store no files |
//! | `nfs` | the version-independent part of the NFS targets: target, sessions, pipelined transfers, caches, URLs |
//! | `nfs3`, `nfs4` | the calls of each NFS version, by the traits of `nfs::backend` and `nfs::transfer` |
//! | `simulated` | files in memory with faults, for simulations of the whole program (feature `simulation`) |
//! | `timed_writes` | asynchronous writes of `null` and `simulated` |
//! | `registry` | the table of targets, and properties that follow from a URL's scheme |
//!
//! A new target is a module with a `SCHEME` and a function `connect`, its name in `registry::targets!`, and a variant
//! in `any::targets!`.
//!
//! # Design
//! - A session has a method for each operation of a worker's loop; operations that take nanoseconds also have a direct
//!   form (`Session::is_immediate`). Rare operations are variants of [`NameOperation`] and [`FileOperation`]: a target
//!   has an arm for each variant that the target supports, and a wrapping target forwards a call without looking at
//!   the variant. The future of [`Session::on_file`] is as large as the future of its largest operation, so an
//!   operation that thousands of workers have in flight at once is a method.
//! - A session locates one name at a time. [`Session::set_destination`] makes the located name the second name of an
//!   operation, so that both names are located, checked and remembered in the same way.
//! - Targets own the I/O buffers (`read` takes a length): `null` needs no buffer, and the thousands of workers of a
//!   lane share one buffer.
//! - Written bytes come from a random stream of the worker, or, for files that were populated before a run, of the
//!   file, so contents do not depend on the thread. The pool of contents is larger than the caches of a processor;
//!   `Session::compose` prefetches the bytes before the write is timed, so that the fetch does not count as the
//!   time of the target.
//! - Workers are compiled for the targets `posix`, `posix::uring`, `null` and `sim`; for `AnyTarget` (`any`), which is
//!   every other target, with operations that take much longer than a `match`; and for `VerifyingTarget`
//!   (`verifying`), which wraps an `AnyTarget` if a run verifies contents. A run without verification makes no check
//!   of contents.
//! - A ring (`posix::uring`) owns the memory that its operations in flight point to. The dropped future of a ring
//!   operation leaves its slot to the ring, which cancels the operation. Operations that io_uring lacks run on a thread
//!   pool.
//! - An NFS version implements three traits: `NfsVersion` (connecting), `NfsBackend` (operations on
//!   names and open files) and `TransferCalls` (READ and WRITE).

mod any;
mod block_composer;
mod connect;
mod content;
mod error;
mod nfs;
mod nfs3;
mod nfs4;
mod null;
mod posix;
mod rare_operation;
pub mod registry;
mod scheme;
mod session;
mod session_types;
mod setup_session;
mod sim;
#[cfg(feature = "simulation")]
pub mod simulated;
mod timed_writes;
mod unstored;
mod url_parser;
mod verifying;
mod write_data;

pub use connect::{Purpose, TargetError, Visitor};
pub use content::ContentPool;
pub use error::OpError;
pub use posix::device::{DeviceInfo, look_at_device};
pub use posix::is_on_block_device;
pub use posix::uring::IoMethod;
pub use rare_operation::{FileOperation, NameOperation};
pub use registry::{
    DEFAULT_TARGET, absolute, check_url, clock, connect, connect_verifying, device_of, io_method,
    is_local, is_remote, keeps_files, option_of, procedures, scheme_of, takes_events,
    uring_unavailable, with_option, with_silence_limit,
};
pub use scheme::{FileStorage, TargetScheme};
pub use session::{Session, Target};
pub use session_types::{
    AccessAdvice, AioDone, Attributes, DataSet, Descriptors, DirectIo, EntryKind, FilesetEntry,
    ListTotals, OpenHow, OpenMode, RpcRows, SessionSpec, Space, WritePlace,
};
pub use setup_session::{OneFileSession, Pending, SetupSession};
pub use sim::{system_events, system_fingerprint, with_absolute_system, with_events};
pub use verifying::{FileCheck, Ledger, REREAD_BYTES, STAMPED_BLOCK_BYTES, Stamp, VerifiedFileset};
