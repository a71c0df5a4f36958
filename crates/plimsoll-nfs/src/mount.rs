//! The MOUNT protocol, version 3 (RFC 1813, appendix I): returns the root handle of an export.

use crate::rpc::{
    BlockingTransport, Credentials, Deviations, Flavor, ProcedureName, RpcError, Target, read_reply,
};
use crate::v3::{Handle, Name, PROTOCOL_RFC};
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, choices, named_choices};

/// The program number (RFC 1813, 5.1).
pub const PROGRAM: u32 = 100_005;

/// The version of the program (RFC 1813, 5.1).
pub const VERSION: u32 = 3;

choices! {
    /// The supported procedures (RFC 1813, 5.2).
    Proc {
        /// NULL: does nothing, so that a client can test whether the MOUNT server responds.
        Null = 0,
        /// MNT: returns the NFS file handle of an exported directory.
        Mnt = 1,
        /// UMNT: reports that the client no longer uses an export.
        Umnt = 3,
        /// EXPORT: lists the exported directories of the server, and who may mount each directory.
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

/// An error of MNT (RFC 1813, 5.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The server has sent no valid reply.
    #[error("{0}")]
    Rpc(#[from] RpcError),
    /// The server refuses the mount with an MNT status other than MNT3_OK (RFC 1813, 5.1.5).
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
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        let root = from.field("fhandle")?;
        let count: u32 = from.field("auth_flavors")?;
        let flavors = (0..count).map(|_| from.field("auth_flavors"));
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
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        match from.field("fhs_status")? {
            Status::Ok => from.field("mountinfo").map(Self::Mounted),
            status => Ok(Self::Refused(status)),
        }
    }
}

/// Calls MNT for the root handle of `export`, the path of an exported directory (RFC 1813, 5.2.1).
///
/// # Errors
/// See [`MountError`].
pub fn mount(
    caller: &mut BlockingTransport,
    who: &Credentials,
    export: &[u8],
    deviations: &Deviations,
) -> Result<Handle, MountError> {
    let target = Target {
        program: PROGRAM,
        version: VERSION,
        procedure: Proc::Mnt as u32,
    };
    let name = ProcedureName {
        name: "MNT",
        standard: PROTOCOL_RFC,
    };
    let export: Name<'_> = Name(export);
    let reply = caller.call(target, who, &export)?;
    let mounted = match read_reply(Ok(&reply), |deviation| deviations.add(name, deviation))? {
        Reply::Mounted(mounted) => mounted,
        Reply::Refused(status) => return Err(MountError::Refused(status)),
    };
    // A server that lists no kinds of credentials accepts all kinds.
    match mounted.flavors.is_empty() || mounted.flavors.contains(&(Flavor::Sys as u32)) {
        true => Ok(mounted.root),
        false => Err(MountError::NoSys),
    }
}
