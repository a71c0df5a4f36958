//! Verification of a run: contents that follow from file and offset, checks of what is read, and what is
//! known of each file.
//!
//! [`VerifyingTarget`] is a target around another one. Its sessions write stamped contents and check what
//! they read; a run that is not verified does not have them, and costs nothing more. The [`Ledger`] is what
//! they know together: after the run every file is compared with it.

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
