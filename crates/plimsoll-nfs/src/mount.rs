//! The MOUNT protocol, version 3 (RFC 1813, appendix I): from the path of an export to the handle
//! of its root.

use crate::rpc::{
    BlockingTransport, Credentials, Deviations, Flavor, ProcedureName, RpcError, Target,
    TrailingBytes, decode_reply, result,
};
use crate::v3::{Handle, Name, PROTOCOL_RFC};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, choices};
use std::fmt;

/// Number of the program (RFC 1813, 5.1).
pub const PROGRAM: u32 = 100_005;

/// Version of it (RFC 1813, 5.1).
pub const VERSION: u32 = 3;

choices! {
    /// Its procedures that are used (RFC 1813, 5.2).
    Proc {
        /// Nothing.
        Null = 0,
        /// The root of an export.
        Mnt = 1,
        /// The client uses an export no more.
        Umnt = 3,
        /// The exports.
        Export = 5,
    }

    /// Why an export cannot be mounted, `mountstat3` (RFC 1813, 5.1.5).
    Status {
        /// It can.
        Ok = 0,
        /// Not the owner.
        Perm = 1,
        /// No such directory.
        NoEnt = 2,
        /// An error of the storage.
        Io = 5,
        /// Permission denied.
        Acces = 13,
        /// Not a directory.
        NotDir = 20,
        /// An invalid argument.
        Inval = 22,
        /// The name is too long.
        NameTooLong = 63,
        /// Not supported.
        NotSupp = 10004,
        /// The server failed.
        ServerFault = 10006,
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "MNT3_OK",
            Self::Perm => "MNT3ERR_PERM",
            Self::NoEnt => "MNT3ERR_NOENT",
            Self::Io => "MNT3ERR_IO",
            Self::Acces => "MNT3ERR_ACCES",
            Self::NotDir => "MNT3ERR_NOTDIR",
            Self::Inval => "MNT3ERR_INVAL",
            Self::NameTooLong => "MNT3ERR_NAMETOOLONG",
            Self::NotSupp => "MNT3ERR_NOTSUPP",
            Self::ServerFault => "MNT3ERR_SERVERFAULT",
        })
    }
}

/// Why there is no handle of the root (RFC 1813, 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// No answer.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// The server refuses.
    #[error("the server refuses it ({0})")]
    Refused(Status),
    /// The server takes only other kinds of credentials.
    #[error("the export does not take sec=sys")]
    NoSys,
}

/// What MNT gives (RFC 1813, 5.2.1): the root's handle and the kinds of credentials that the export
/// takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The root.
    pub root: Handle,
    /// Kinds of credentials, by number.
    pub flavors: Vec<u32>,
}

impl Encode for Mounted {
    fn encode(&self, out: &mut Vec<u8>) {
        self.root.encode(out);
        (self.flavors.len() as u32).encode(out);
        self.flavors.iter().for_each(|f| f.encode(out));
    }
}

impl Decode<'_> for Mounted {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Self::decode_traced(from, &mut FieldPath::default())
    }

    fn decode_traced(from: &mut Decoder<'_>, path: &mut FieldPath) -> Result<Self, XdrError> {
        let root = path.field("fhandle", from)?;
        let count: u32 = path.field("auth_flavors", from)?;
        let flavors = (0..count).map(|_| path.field("auth_flavors", from));
        Ok(Self {
            root,
            flavors: flavors.collect::<Result<_, _>>()?,
        })
    }
}

fn target(procedure: Proc) -> Target {
    Target {
        program: PROGRAM,
        version: VERSION,
        procedure: procedure as u32,
    }
}

/// What MNT answers: a union on its status (RFC 1813, 5.2.1).
enum Reply {
    Mounted(Mounted),
    Refused(Status),
}

impl Decode<'_> for Reply {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Self::decode_traced(from, &mut FieldPath::default())
    }

    fn decode_traced(from: &mut Decoder<'_>, path: &mut FieldPath) -> Result<Self, XdrError> {
        match path.field("fhs_status", from)? {
            Status::Ok => path.field("mountinfo", from).map(Self::Mounted),
            status => Ok(Self::Refused(status)),
        }
    }
}

/// Calls a procedure and reads what it gives; how that deviates from the protocol is added to
/// `deviations`.
fn ask<T: for<'a> Decode<'a>>(
    caller: &mut BlockingTransport,
    who: &Credentials,
    (procedure, name): (Proc, &'static str),
    export: &[u8],
    deviations: &Deviations,
) -> Result<T, RpcError> {
    let message = caller.call(target(procedure), who, &Name(export))?;
    let name = ProcedureName {
        name,
        standard: PROTOCOL_RFC,
    };
    match decode_reply(result(&message)?) {
        Ok((value, 0)) => Ok(value),
        Ok((value, surplus)) => {
            deviations.add_surplus(name, TrailingBytes::of_reply(surplus));
            Ok(value)
        }
        Err(malformed) => {
            deviations.add_malformed(name, &malformed.field, malformed.error);
            Err(malformed.into())
        }
    }
}

/// Asks for the root of an export (RFC 1813, 5.2.1).
///
/// # Errors
/// See [`MountError`].
pub fn mount(
    caller: &mut BlockingTransport,
    who: &Credentials,
    export: &[u8],
    deviations: &Deviations,
) -> Result<Handle, MountError> {
    let mounted = match ask(caller, who, (Proc::Mnt, "MNT"), export, deviations)? {
        Reply::Mounted(mounted) => mounted,
        Reply::Refused(status) => return Err(MountError::Refused(status)),
    };
    // A server that lists none takes any.
    let takes = mounted.flavors.is_empty() || mounted.flavors.contains(&(Flavor::Sys as u32));
    match takes {
        true => Ok(mounted.root),
        false => Err(MountError::NoSys),
    }
}

/// Tells the server that the export is not used any more (RFC 1813, 5.2.3).
///
/// # Errors
/// What kept the answer from coming.
pub fn unmount(
    caller: &mut BlockingTransport,
    who: &Credentials,
    export: &[u8],
    deviations: &Deviations,
) -> Result<(), RpcError> {
    ask(caller, who, (Proc::Umnt, "UMNT"), export, deviations)
}
