//! Calls and replies of ONC RPC version 2 (RFC 5531, 9).

use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, choices, put_opaque, structures};
use rustix::io::Errno;
use std::fmt;

/// Version of the protocol (RFC 5531, 9).
const RPC_VERSION: u32 = 2;

/// Longest body of credentials, in bytes (RFC 5531, 8.2).
const MAX_AUTH_BYTES: u32 = 400;

/// Longest name of a machine in AUTH_SYS, in bytes (RFC 5531, appendix A).
const MAX_MACHINE_NAME_BYTES: usize = 255;

choices! {
    /// What a message is, `msg_type` (RFC 5531, 9).
    Kind {
        /// A call.
        Call = 0,
        /// A reply.
        Reply = 1,
    }

    /// What became of a call that was accepted, `accept_stat` (RFC 5531, 9).
    Accepted {
        /// It was carried out.
        Success = 0,
        /// The program is not there.
        ProgUnavail = 1,
        /// The version of the program is not there.
        ProgMismatch = 2,
        /// The procedure is not there.
        ProcUnavail = 3,
        /// The arguments were not understood.
        GarbageArgs = 4,
        /// The server failed.
        SystemErr = 5,
    }

    /// Kinds of credentials (RFC 5531, 8.2).
    Flavor {
        /// None.
        None = 0,
        /// User, group and machine, as the client says.
        Sys = 1,
    }
}

structures! {
    /// What is called: a procedure of a version of a program (RFC 5531, 9).
    Target {
        /// The program.
        program: u32,
        /// Its version.
        version: u32,
        /// The procedure.
        procedure: u32,
    }
}

/// Why a call has no result (RFC 5531, 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RpcError {
    /// The connection cannot be made or broke.
    #[error("{}", of_system(*.0))]
    Connection(Errno),
    /// No answer came in time.
    #[error("no answer in time")]
    TimedOut,
    /// The run is over, and no answer came for a while.
    #[error("the run is over")]
    Stopped,
    /// What came is no reply.
    #[error("the answer is no RPC reply: {0}")]
    NoReply(XdrError),
    /// What the procedure gave is not what it has to give.
    #[error("the answer is not of this procedure: {0}")]
    BadResult(XdrError),
    /// The server does not speak this version of RPC.
    #[error("the server speaks another version of RPC")]
    RpcMismatch,
    /// The credentials were refused, `auth_stat`.
    #[error("the credentials were refused ({})", auth_name(*.0))]
    Denied(u32),
    /// The program is not there.
    #[error("the server does not have the program")]
    ProgUnavail,
    /// The version of the program is not there; these are.
    #[error("the server has versions {0} to {1} of the program")]
    ProgMismatch(u32, u32),
    /// The procedure is not there.
    #[error("the server does not have the procedure")]
    ProcUnavail,
    /// The server did not understand the arguments.
    #[error("the server did not understand the arguments")]
    GarbageArgs,
    /// The server failed.
    #[error("the server failed")]
    SystemErr,
}

fn of_system(e: Errno) -> String {
    let text = std::io::Error::from(e).to_string();
    text.split(" (os error").next().unwrap_or_default().into()
}

/// Names of `auth_stat` (RFC 5531, 9).
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
    /// A word for statistics.
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

    /// The error number of the system that says it best.
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

/// Credentials of a caller, as the messages carry them (RFC 5531, 8.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(Vec<u8>);

impl Credentials {
    /// None, AUTH_NONE (RFC 5531, 10.1).
    #[must_use]
    pub fn none() -> Self {
        let mut bytes = Vec::new();
        put_auth(Flavor::None, b"", &mut bytes);
        put_auth(Flavor::None, b"", &mut bytes);
        Self(bytes)
    }

    /// What the client says of its user, AUTH_SYS (RFC 5531, appendix A).
    #[must_use]
    pub fn sys(machine: &str, uid: u32, gid: u32) -> Self {
        let machine = machine.as_bytes();
        let mut body = Vec::new();
        // A number that tells calls of one machine apart; servers ignore it.
        std::process::id().encode(&mut body);
        put_opaque(
            &machine[..machine.len().min(MAX_MACHINE_NAME_BYTES)],
            &mut body,
        );
        uid.encode(&mut body);
        gid.encode(&mut body);
        // Of further groups there are none.
        0u32.encode(&mut body);
        let mut bytes = Vec::new();
        put_auth(Flavor::Sys, &body, &mut bytes);
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

fn skip_auth(from: &mut Decoder<'_>) -> Result<u32, XdrError> {
    let flavor = from.get()?;
    from.opaque(MAX_AUTH_BYTES)?;
    Ok(flavor)
}

/// A whole call as one record of one fragment (RFC 5531, 9 and 11).
#[must_use]
pub fn call(xid: u32, target: Target, who: &Credentials, args: &impl Encode) -> Vec<u8> {
    let mut out = Vec::with_capacity(192);
    0u32.encode(&mut out);
    xid.encode(&mut out);
    Kind::Call.encode(&mut out);
    RPC_VERSION.encode(&mut out);
    target.encode(&mut out);
    out.extend_from_slice(&who.0);
    args.encode(&mut out);
    seal(&mut out);
    out
}

/// Writes the mark of a record of one fragment into its first four bytes (RFC 5531, 11).
pub fn seal(record: &mut [u8]) {
    let len = (record.len() - 4) as u32;
    record[..4].copy_from_slice(&(len | 1 << 31).to_be_bytes());
}

/// A call as the called side reads it (RFC 5531, 9).
#[derive(Debug, Clone, Copy)]
pub struct IncomingCall {
    /// Number of the call.
    pub xid: u32,
    /// What is called.
    pub target: Target,
}

/// Reads the head of a call (RFC 5531, 9); the arguments follow.
///
/// # Errors
/// See [`XdrError`]; a message of another version of RPC is [`XdrError::NoSuchChoice`].
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

/// Begins the record of a reply to a call that was accepted (RFC 5531, 9); what the procedure gives
/// follows, and [`seal`] ends it.
#[must_use]
pub fn reply(xid: u32, accepted: Accepted) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    0u32.encode(&mut out);
    xid.encode(&mut out);
    Kind::Reply.encode(&mut out);
    // MSG_ACCEPTED.
    0u32.encode(&mut out);
    put_auth(Flavor::None, b"", &mut out);
    accepted.encode(&mut out);
    out
}

/// Whether a message is a reply, and to which call (RFC 5531, 9).
///
/// # Errors
/// See [`XdrError`].
pub fn kind(message: &[u8]) -> Result<(u32, Kind), XdrError> {
    let mut from = Decoder::new(message);
    Ok((from.get()?, from.get()?))
}

/// What a reply gives, after its head (RFC 5531, 9).
///
/// # Errors
/// What the server says against the call, or that this is no reply.
pub fn result(message: &[u8]) -> Result<Decoder<'_>, RpcError> {
    let mut from = Decoder::new(message);
    let _: u32 = from.get().map_err(RpcError::NoReply)?;
    match head(&mut from).map_err(RpcError::NoReply)? {
        None => Ok(from),
        Some(error) => Err(error),
    }
}

fn head(from: &mut Decoder<'_>) -> Result<Option<RpcError>, XdrError> {
    match from.get()? {
        Kind::Reply => {}
        Kind::Call => return Err(XdrError::NoSuchChoice(Kind::Call as u32)),
    }
    match from.get()? {
        // MSG_ACCEPTED.
        0u32 => {}
        // MSG_DENIED.
        1 => {
            return Ok(Some(match from.get()? {
                0u32 => {
                    let _: (u32, u32) = (from.get()?, from.get()?);
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

/// A result that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Where that failed.
    pub(crate) field: FieldPath,
    /// Why.
    pub(crate) error: XdrError,
}

impl From<Box<Malformed>> for RpcError {
    fn from(e: Box<Malformed>) -> Self {
        Self::BadResult(e.error)
    }
}

/// Reads what a procedure gave (RFC 5531, 9), and how many bytes the reply has besides it: the
/// protocol has nothing for them, and they are ignored, as other clients do.
///
/// # Errors
/// [`Malformed`].
pub(crate) fn decode_reply<'a, T: Decode<'a>>(
    reply: Decoder<'a>,
) -> Result<(T, u32), Box<Malformed>> {
    let mut from = reply;
    match from.get() {
        Ok(value) => Ok((value, from.surplus())),
        Err(error) => Err(malformed::<T>(reply, error)),
    }
}

#[cold]
fn malformed<'a, T: Decode<'a>>(reply: Decoder<'a>, error: XdrError) -> Box<Malformed> {
    Box::new(Malformed {
        field: FieldPath::of_failure::<T>(reply),
        error,
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
        // AUTH_SYS: stamp, machine, user, group, no further groups.
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
        assert_eq!(decode_reply(result(&good).unwrap()), Ok((42u32, 0)));
        // What follows a result is ignored, and counted.
        let long = reply_of(&[5, 1, 0, 0, 0, 0, 42, 43]);
        assert_eq!(decode_reply(result(&long).unwrap()), Ok((42u32, 4)));
        let short = decode_reply::<u64>(result(&good).unwrap()).unwrap_err();
        assert_eq!(short.error, XdrError::Short);
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
        /// Whatever comes is a result or an error.
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = result(&bytes).map(|from| from.rest().len());
            let _ = called(&mut Decoder::new(&bytes));
            let _ = kind(&bytes);
        }
    }
}
