//! Targets: what load is put on.
//!
//! A [`Target`] is connected to once; each worker opens a [`Session`] on it and calls the
//! session's operations. A target knows nothing of workloads. A new one is a module here and one
//! line in [`registry::connect`]; `tests/conformance.rs` says what all of them must do.

mod block_composer;
mod content;
mod error;
mod long_replies;
mod nfs;
mod nfs3;
mod nfs4;
mod null;
mod posix;
pub mod registry;
mod session;
mod session_types;
mod write_data;

pub use content::ContentPool;
pub use error::OpError;
pub use long_replies::LongReplies;
pub use nfs::present_option_name;
pub use registry::{
    Purpose, TargetError, Visitor, absolute, connect, keeps_files, procedures, with_silence_limit,
};
pub use session::{Session, Target};
pub use session_types::{
    AioDone, Attributes, DirectIo, EntryKind, ListTotals, OpenHow, OpenMode, RpcRows, SessionSpec,
    Space,
};
