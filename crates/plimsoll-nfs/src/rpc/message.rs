//! Calls and replies of ONC RPC version 2 (RFC 5531, 9).

use crate::xdr::{Decoder, Encode, XdrError, choices, put_opaque, structures};
use rustix::io::Errno;
use std::fmt;
use std::io::ErrorKind;

/// The version of the protocol (RFC 5531, 9).
const RPC_VERSION: u32 = 2;

/// The maximum number of bytes of the body of credentials (RFC 5531, 8.2).
const MAX_AUTH_BYTES: u32 = 400;

/// The maximum number of bytes of a machine's name in AUTH_SYS (RFC 5531, appendix A).
const MAX_MACHINE_NAME_BYTES: usize = 255;

/// The `reply_stat` of an accepted call (RFC 5531, 9).
const MSG_ACCEPTED: u32 = 0;

/// The `reply_stat` of a refused call (RFC 5531, 9).
const MSG_DENIED: u32 = 1;

choices! {
    /// The kind of a message, `msg_type` (RFC 5531, 9).
    Kind {
        Call = 0,
        Reply = 1,
    }

    /// The outcome of an accepted call, `accept_stat` (RFC 5531, 9).
    Accepted {
        Success = 0,
        /// The server does not have the program.
        ProgUnavail = 1,
        /// The server does not have the version of the program.
        ProgMismatch = 2,
        /// The program does not have the procedure.
        ProcUnavail = 3,
        /// The arguments cannot be decoded.
        GarbageArgs = 4,
        /// An error in the server, such as lack of memory.
        SystemErr = 5,
    }

    /// The kind of credentials (RFC 5531, 8.2).
    Flavor {
        /// AUTH_NONE: no credentials.
        None = 0,
        /// AUTH_SYS: user, group and machine name, as the client states them.
        Sys = 1,
    }
}

structures! {
    /// A procedure of a version of a program (RFC 5531, 9).
    Target {
        /// The RPC program number, such as 100003 for NFS.
        program: u32,
        /// The version number of the RPC program, such as 3 for NFSv3.
        version: u32,
        /// The number of the procedure in the RPC program's version, such as 6 for READ of NFSv3.
        procedure: u32,
    }
}

/// An error because of which a call has no result (RFC 5531, 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// The connection cannot be established, or is broken.
    #[error("{}", of_system(*.0))]
    Connection(Errno),
    /// No reply came in time.
    #[error("no reply in time")]
    TimedOut,
    /// The run has ended, and no reply came within the grace period.
    #[error("the run is over")]
    Stopped,
    /// The message is not a reply.
    #[error("the message is not an RPC reply: {0}")]
    NoReply(XdrError),
    /// The result cannot be decoded.
    #[error("the reply is not of this procedure: {0}")]
    BadResult(XdrError),
    /// The server does not support this version of RPC.
    #[error("the server speaks another version of RPC")]
    RpcMismatch,
    /// The server refused the credentials for the reason `auth_stat`.
    #[error("the credentials were refused ({})", auth_name(*.0))]
    Denied(u32),
    /// The server does not have the program.
    #[error("the server does not have the program")]
    ProgUnavail,
    /// The server does not have the version of the program; the numbers are the lowest and the
    /// highest supported version.
    #[error("the server has versions {0} to {1} of the program")]
    ProgMismatch(u32, u32),
    /// The program does not have the procedure.
    #[error("the server does not have the procedure")]
    ProcUnavail,
    /// The server cannot decode the arguments.
    #[error("the server did not understand the arguments")]
    GarbageArgs,
    /// An error in the server, such as lack of memory.
    #[error("the server failed")]
    SystemErr,
}

fn of_system(e: Errno) -> String {
    let text = std::io::Error::from(e).to_string();
    let message = text.split(" (os error").next();
    message.expect("a split has a first part").into()
}

/// The name of an `auth_stat` (RFC 5531, 9).
fn auth_name(stat: u32) -> &'static str {
    match stat {
        1 => "AUTH_BADCRED",
        2 => "AUTH_REJECTEDCRED",
        3 => "AUTH_BADVERF",
        4 => "AUTH_REJECTEDVERF",
        5 => "AUTH_TOOWEAK",
        6 => "AUTH_INVALIDRESP",
        7 => "AUTH_FAILED",
        _ => "for an unknown reason",
    }
}

impl RpcError {
    /// The name of the error in the results' statistics of errors, such as `RPC_TIMEDOUT`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection(_) => "RPC_CONNECTION",
            Self::TimedOut => "RPC_TIMEDOUT",
            Self::Stopped => "RPC_STOPPED",
            Self::NoReply(_) => "RPC_NO_REPLY",
            Self::BadResult(_) => "RPC_BAD_RESULT",
            Self::RpcMismatch => "RPC_MISMATCH",
            Self::Denied(_) => "RPC_AUTH_ERROR",
            Self::ProgUnavail => "RPC_PROG_UNAVAIL",
            Self::ProgMismatch(..) => "RPC_PROG_MISMATCH",
            Self::ProcUnavail => "RPC_PROC_UNAVAIL",
            Self::GarbageArgs => "RPC_GARBAGE_ARGS",
            Self::SystemErr => "RPC_SYSTEM_ERR",
        }
    }

    /// The closest error number of the operating system.
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Connection(e) => e,
            Self::TimedOut => Errno::TIMEDOUT,
            Self::Stopped => Errno::CANCELED,
            Self::NoReply(_) | Self::BadResult(_) | Self::GarbageArgs => Errno::BADMSG,
            Self::Denied(_) => Errno::ACCESS,
            Self::RpcMismatch | Self::ProgUnavail | Self::ProgMismatch(..) => Errno::PROTONOSUPPORT,
            Self::ProcUnavail => Errno::OPNOTSUPP,
            Self::SystemErr => Errno::REMOTEIO,
        }
    }
}

impl From<std::io::Error> for RpcError {
    fn from(e: std::io::Error) -> Self {
        match e.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => Self::TimedOut,
            ErrorKind::UnexpectedEof => Self::Connection(Errno::CONNRESET),
            _ => Self::Connection(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
        }
    }
}

/// Encoded credentials of a caller, and the empty verifier that follows the credentials in a call (RFC 5531, 8.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(Vec<u8>);

impl Credentials {
    /// No credentials, AUTH_NONE (RFC 5531, 10.1).
    #[must_use]
    pub fn none() -> Self {
        Self::new(Flavor::None, b"")
    }

    /// The user as the client states it, AUTH_SYS (RFC 5531, appendix A), without additional groups. `machine` is cut
    /// after 255 bytes.
    #[must_use]
    pub fn sys(machine: &str, uid: u32, gid: u32) -> Self {
        let machine = machine.as_bytes();
        let mut body = Vec::new();
        // The stamp of AUTH_SYS is an arbitrary number of the caller, which servers ignore (RFC 5531, appendix A).
        std::process::id().encode(&mut body);
        put_opaque(
            &machine[..machine.len().min(MAX_MACHINE_NAME_BYTES)],
            &mut body,
        );
        let further_groups = 0u32;
        (uid, gid, further_groups).encode(&mut body);
        Self::new(Flavor::Sys, &body)
    }

    fn new(flavor: Flavor, body: &[u8]) -> Self {
        let mut bytes = Vec::new();
        put_auth(flavor, body, &mut bytes);
        put_auth(Flavor::None, b"", &mut bytes);
        Self(bytes)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({} bytes)", self.0.len())
    }
}

fn put_auth(flavor: Flavor, body: &[u8], out: &mut Vec<u8>) {
    flavor.encode(out);
    put_opaque(body, out);
}

fn skip_auth(from: &mut Decoder<'_>) -> Result<(), XdrError> {
    let _flavor: u32 = from.get()?;
    from.opaque(MAX_AUTH_BYTES).map(|_| ())
}

/// A random first xid: a server that caches replies must not mistake the calls of this process for
/// the calls of an earlier process.
pub(super) fn first_xid() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}

/// Encodes a call as one record of one fragment (RFC 5531, 9 and 11).
#[must_use]
pub fn call(xid: u32, target: Target, who: &Credentials, args: &impl Encode) -> Vec<u8> {
    let mut out = Vec::with_capacity(192);
    let mark = 0u32;
    (mark, xid, Kind::Call, RPC_VERSION, target).encode(&mut out);
    out.extend_from_slice(&who.0);
    args.encode(&mut out);
    seal(&mut out);
    out
}

/// Writes the record mark of a single-fragment record into the first four bytes (RFC 5531, 11). The record must have at
/// least four bytes.
pub fn seal(record: &mut [u8]) {
    let len = (record.len() - 4) as u32;
    record[..4].copy_from_slice(&(len | 1 << 31).to_be_bytes());
}

/// The decoded head of a call (RFC 5531, 9).
#[derive(Debug, Clone, Copy)]
pub struct IncomingCall {
    /// The transaction identifier of the call, by which the client matches the server's reply to the call.
    pub xid: u32,
    /// The RPC program, version and procedure that the client calls.
    pub target: Target,
}

/// Decodes the head of a call (RFC 5531, 9); `from` continues with the arguments.
///
/// # Errors
/// See [`XdrError`]; [`XdrError::NoSuchChoice`] for a message of another RPC version.
pub fn called(from: &mut Decoder<'_>) -> Result<IncomingCall, XdrError> {
    let xid = from.get()?;
    match from.get()? {
        Kind::Call => {}
        Kind::Reply => return Err(XdrError::NoSuchChoice(Kind::Reply as u32)),
    }
    let version: u32 = from.get()?;
    if version != RPC_VERSION {
        return Err(XdrError::NoSuchChoice(version));
    }
    let target = from.get()?;
    skip_auth(from)?;
    skip_auth(from)?;
    Ok(IncomingCall { xid, target })
}

/// Begins the record of the reply to an accepted call (RFC 5531, 9). The result follows, and
/// [`seal`] completes the record.
#[must_use]
pub fn reply(xid: u32, accepted: Accepted) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let mark = 0u32;
    (mark, xid, Kind::Reply, MSG_ACCEPTED).encode(&mut out);
    put_auth(Flavor::None, b"", &mut out);
    accepted.encode(&mut out);
    out
}

/// Decodes the xid and the kind of a message (RFC 5531, 9).
///
/// # Errors
/// See [`XdrError`].
pub fn kind(message: &[u8]) -> Result<(u32, Kind), XdrError> {
    let mut from = Decoder::new(message);
    Ok((from.get()?, from.get()?))
}

/// Decodes the head of a reply (RFC 5531, 9); the returned decoder continues with the result.
///
/// # Errors
/// The server's error, or [`RpcError::NoReply`] for a message that is not a reply.
pub fn result(message: &[u8]) -> Result<Decoder<'_>, RpcError> {
    let mut from = Decoder::new(message);
    match head(&mut from).map_err(RpcError::NoReply)? {
        None => Ok(from),
        Some(error) => Err(error),
    }
}

fn head(from: &mut Decoder<'_>) -> Result<Option<RpcError>, XdrError> {
    let _xid: u32 = from.get()?;
    match from.get()? {
        Kind::Reply => {}
        Kind::Call => return Err(XdrError::NoSuchChoice(Kind::Call as u32)),
    }
    match from.get()? {
        MSG_ACCEPTED => {}
        MSG_DENIED => {
            return Ok(Some(match from.get()? {
                0u32 => {
                    let _versions: (u32, u32) = (from.get()?, from.get()?);
                    RpcError::RpcMismatch
                }
                1 => RpcError::Denied(from.get()?),
                other => return Err(XdrError::NoSuchChoice(other)),
            }));
        }
        other => return Err(XdrError::NoSuchChoice(other)),
    }
    skip_auth(from)?;
    Ok(match from.get()? {
        Accepted::Success => None,
        Accepted::ProgUnavail => Some(RpcError::ProgUnavail),
        Accepted::ProgMismatch => Some(RpcError::ProgMismatch(from.get()?, from.get()?)),
        Accepted::ProcUnavail => Some(RpcError::ProcUnavail),
        Accepted::GarbageArgs => Some(RpcError::GarbageArgs),
        Accepted::SystemErr => Some(RpcError::SystemErr),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GETATTR: Target = Target {
        program: 100_003,
        version: 3,
        procedure: 1,
    };

    #[test]
    fn a_call_is_read_as_it_was_made() {
        let record = call(77, GETATTR, &Credentials::sys("here", 4, 5), &9u32);
        let mark = u32::from_be_bytes(record[..4].try_into().unwrap());
        assert_eq!(mark, 1 << 31 | (record.len() - 4) as u32);
        let mut from = Decoder::new(&record[4..]);
        let read = called(&mut from).unwrap();
        assert_eq!((read.xid, read.target), (77, GETATTR));
        assert_eq!(from.get::<u32>(), Ok(9));
        assert_eq!(from.finish(), Ok(()));
        // AUTH_SYS: stamp, machine, user, group, no additional groups.
        let body = &record[36..];
        assert_eq!(&body[4..8], &4u32.to_be_bytes());
        assert_eq!(&body[8..12], b"here");
        assert_eq!(body[12..24], [0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 0]);
    }

    #[test]
    fn replies_are_results_or_errors() {
        let reply_of =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_be_bytes()).collect() };
        let error = |words: &[u32]| result(&reply_of(words)).err();
        let good = reply_of(&[5, 1, 0, 0, 0, 0, 42]);
        assert_eq!(result(&good).unwrap().get(), Ok(42u32));
        assert_eq!(error(&[5, 1, 1, 1, 5]), Some(RpcError::Denied(5)));
        assert_eq!(error(&[5, 1, 1, 0, 2, 2]), Some(RpcError::RpcMismatch));
        assert_eq!(
            error(&[5, 1, 0, 0, 0, 2, 2, 4]),
            Some(RpcError::ProgMismatch(2, 4))
        );
        assert_eq!(error(&[5, 1, 0, 0, 0, 3]), Some(RpcError::ProcUnavail));
        assert_eq!(
            error(&[5, 0, 0]),
            Some(RpcError::NoReply(XdrError::NoSuchChoice(0)))
        );
        assert_eq!(error(&[5, 1, 0]), Some(RpcError::NoReply(XdrError::Short)));
        assert_eq!(
            RpcError::Denied(5).to_string(),
            "the credentials were refused (AUTH_TOOWEAK)"
        );
    }

    proptest! {
        /// Decoding returns a result or an error for any bytes.
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = result(&bytes).map(|from| from.rest().len());
            let _ = called(&mut Decoder::new(&bytes));
            let _ = kind(&bytes);
        }
    }
}
