//! Messages about replies that deviate from the protocol.

use crate::connect::TargetError;
use crate::error::OpError;
use plimsoll_measure::LongReplies;
use plimsoll_nfs::rpc::{Deviations, RpcError};
use rustix::io::Errno;

/// The message for a failed operation; for `EBADMSG`, with a description of the server's replies that could not be
/// decoded.
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

/// Explains an error of looking for the work directory; names the replies that could not be
/// decoded.
pub(crate) fn explain_work_dir_error(deviations: &Deviations, e: TargetError) -> TargetError {
    match e {
        TargetError::Place { path, error } if error == OpError(Errno::BADMSG) => {
            let why = explain_io_error(deviations, error);
            TargetError::Malformed { path, why }
        }
        e => e,
    }
}

/// The text of an RPC error; for a reply that cannot be decoded, the reply and the position of the
/// failure.
pub(crate) fn rpc_error_text(deviations: &Deviations, e: RpcError) -> String {
    let malformed = match e {
        RpcError::BadResult(_) => deviations.malformed().pop(),
        _ => None,
    };
    malformed.unwrap_or_else(|| e.to_string())
}

/// Explains why a connection to a server failed, with a hint at the cause.
pub(crate) fn explain_no_connection(deviations: &Deviations, e: RpcError) -> String {
    let hint = match e {
        RpcError::Connection(Errno::CONNREFUSED) => ": nothing listens there",
        RpcError::NoReply(_) | RpcError::BadResult(_) => ": is this its port?",
        _ => "",
    };
    rpc_error_text(deviations, e) + hint
}

/// Takes the counts of replies that were longer than the protocol allows.
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
