//! The MOUNT protocol, version 3 (RFC 1813, appendix I): returns the root handle of an export.

use crate::rpc::{
    BlockingTransport, Credentials, Deviations, Flavor, ProcedureName, RpcError, Target, read_reply,
};
use crate::v3::{Handle, Name, PROTOCOL_RFC};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, choices, named_choices};

/// The program number (RFC 1813, 5.1).
pub const PROGRAM: u32 = 100_005;

/// The version of the program (RFC 1813, 5.1).
pub const VERSION: u32 = 3;

choices! {
    /// The supported procedures (RFC 1813, 5.2).
    Proc {
        /// Does nothing.
        Null = 0,
        /// Returns the root handle of an export.
        Mnt = 1,
        /// Reports that the client no longer uses an export.
        Umnt = 3,
        /// Lists the exports.
        Export = 5,
    }
}

named_choices! {
    /// The outcome of MNT, `mountstat3` (RFC 1813, 5.1.5).
    Status {
        Ok = 0 "MNT3_OK" "success",
        Perm = 1 "MNT3ERR_PERM" "not the owner",
        NoEnt = 2 "MNT3ERR_NOENT" "no such directory",
        Io = 5 "MNT3ERR_IO" "an error of the storage",
        Acces = 13 "MNT3ERR_ACCES" "permission denied",
        NotDir = 20 "MNT3ERR_NOTDIR" "not a directory",
        Inval = 22 "MNT3ERR_INVAL" "an invalid argument",
        NameTooLong = 63 "MNT3ERR_NAMETOOLONG" "the name is too long",
        NotSupp = 10004 "MNT3ERR_NOTSUPP" "not supported",
        ServerFault = 10006 "MNT3ERR_SERVERFAULT" "a server error",
    }
}

/// An error of mounting (RFC 1813, 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The server has sent no valid reply.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// The server refuses the mount.
    #[error("the server refuses it ({0})")]
    Refused(Status),
    /// The export requires credentials other than AUTH_SYS.
    #[error("the export does not take sec=sys")]
    NoSys,
}

/// The result of MNT (RFC 1813, 5.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounted {
    /// The handle of the export's root.
    pub root: Handle,
    /// The kinds of credentials that the export accepts, by number.
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

/// The reply of MNT: a union on its status (RFC 1813, 5.2.1).
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

/// Calls a procedure and decodes the result. Adds deviations of the reply to `deviations`.
fn call<T: for<'a> Decode<'a>>(
    caller: &mut BlockingTransport,
    who: &Credentials,
    (procedure, name): (Proc, &'static str),
    export: &[u8],
    deviations: &Deviations,
) -> Result<T, RpcError> {
    let target = Target {
        program: PROGRAM,
        version: VERSION,
        procedure: procedure as u32,
    };
    let export: Name<'_> = Name(export);
    let reply = caller.call(target, who, &export)?;
    let name = ProcedureName {
        name,
        standard: PROTOCOL_RFC,
    };
    read_reply(Ok(&reply), |deviation| deviations.add(name, deviation))
}

/// Requests the root handle of an export (RFC 1813, 5.2.1).
///
/// # Errors
/// See [`MountError`].
pub fn mount(
    caller: &mut BlockingTransport,
    who: &Credentials,
    export: &[u8],
    deviations: &Deviations,
) -> Result<Handle, MountError> {
    let mounted = match call(caller, who, (Proc::Mnt, "MNT"), export, deviations)? {
        Reply::Mounted(mounted) => mounted,
        Reply::Refused(status) => return Err(MountError::Refused(status)),
    };
    // A server that lists no kinds of credentials accepts all kinds.
    match mounted.flavors.is_empty() || mounted.flavors.contains(&(Flavor::Sys as u32)) {
        true => Ok(mounted.root),
        false => Err(MountError::NoSys),
    }
}

/// Informs the server that the client no longer uses the export (RFC 1813, 5.2.3).
///
/// # Errors
/// See [`RpcError`].
pub fn unmount(
    caller: &mut BlockingTransport,
    who: &Credentials,
    export: &[u8],
    deviations: &Deviations,
) -> Result<(), RpcError> {
    call(caller, who, (Proc::Umnt, "UMNT"), export, deviations)
}
