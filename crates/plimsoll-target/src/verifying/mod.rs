//! Verification of a run: contents that follow from file and offset, checks of read contents, and knowledge about each
//! file.
//!
//! [`VerifyingTarget`] wraps another target. Its sessions write stamped contents and check the contents that they read.
//! A run without verification uses the plain target and has no additional cost. The sessions share a [`Ledger`], with
//! which every file is compared after the run.

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
