//! What the replies of a server have beyond its protocol, and what they lack.

use crate::error::OpError;
use crate::registry::TargetError;
use crate::replies::LongReplies;
use plimsoll_nfs::rpc::Deviations;
use rustix::io::Errno;

/// What an error means, and which replies of the server led to it if they could not be decoded.
pub(crate) fn explain(deviations: &Deviations, e: OpError) -> String {
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
pub(crate) fn explain_place(deviations: &Deviations, e: TargetError) -> TargetError {
    match e {
        TargetError::Place { path, error } if error == OpError(Errno::BADMSG) => {
            let why = explain(deviations, error);
            TargetError::Malformed { path, why }
        }
        e => e,
    }
}

/// Replies that had more than they may have, and counts from nothing again.
pub(crate) fn take_long(deviations: &Deviations) -> Vec<LongReplies> {
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
