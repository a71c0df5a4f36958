//! What the replies of a server have beyond its protocol, and what they lack.

use crate::error::OpError;
use crate::long_replies::LongReplies;
use crate::registry::TargetError;
use plimsoll_nfs::rpc::Deviations;
use rustix::io::Errno;

/// What an error means, and which replies of the server led to it if they could not be decoded.
pub(crate) fn explain_io_error(deviations: &Deviations, e: OpError) -> String {
    let malformed = match e {
        OpError(Errno::BADMSG) => deviations.malformed(),
        _ => vec![],
    };
    match malformed.is_empty() {
        true => e.to_string(),
        false => format!("{e}: {}", malformed.join("; ")),
    }
}

/// The same for an error of looking for the work directory.
pub(crate) fn explain_work_dir_error(deviations: &Deviations, e: TargetError) -> TargetError {
    match e {
        TargetError::Place { path, error } if error == OpError(Errno::BADMSG) => {
            let why = explain_io_error(deviations, error);
            TargetError::Malformed { path, why }
        }
        e => e,
    }
}

/// Replies that had more than they may have, and counts from nothing again.
pub(crate) fn drain_long_replies(deviations: &Deviations) -> Vec<LongReplies> {
    let long = deviations.take_surplus().into_iter();
    long.map(|(procedure, surplus)| LongReplies {
        procedure: procedure.name.into(),
        standard: procedure.standard.into(),
        count: surplus.replies,
        min_bytes: surplus.min_bytes,
        max_bytes: surplus.max_bytes,
    })
    .collect()
}
