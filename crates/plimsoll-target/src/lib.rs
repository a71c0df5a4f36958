//! Targets: what load is put on.
//!
//! A [`Target`] is connected to once; each worker opens a [`Session`] on it and calls the
//! session's operations. A target knows nothing of workloads. A new one is a module here and one
//! line in [`registry::connect`]; `tests/conformance.rs` says what all of them must do.

mod compose;
mod content;
mod error;
mod nfs;
mod nfs3;
mod nfs4;
mod null;
mod posix;
pub mod registry;
mod replies;
mod session;
mod source;

pub use content::ContentPool;
pub use error::OpError;
pub use registry::{
    Purpose, TargetError, Visitor, absolute, connect, impatient, keeps_files, procedures,
};
pub use replies::LongReplies;
pub use session::{
    AioDone, Attributes, DirectIo, EntryKind, Listed, OpenHow, OpenMode, RpcRows, Session,
    SessionSpec, Space, Target,
};
