//! Verification of a run: contents that follow from file and offset, checks of read contents, and knowledge about each
//! file.
//!
//! [`VerifyingTarget`] wraps any target that keeps files. Sessions of a verifying target write stamped contents and
//! check the contents of reads. A run without verification uses the plain target and has no additional cost. The
//! sessions of a verifying target share a [`Ledger`], with which every file is compared after the run.

mod buffers;
mod ledger;
mod rare_operations;
mod record;
mod reread;
mod session;
mod session_state;
mod stamp;
mod target;

pub use ledger::{Ledger, VerifiedFileset};
pub use reread::{FileCheck, REREAD_BYTES};
pub use stamp::{STAMPED_BLOCK_BYTES, Stamp};
pub(crate) use target::VerifyingTarget;
