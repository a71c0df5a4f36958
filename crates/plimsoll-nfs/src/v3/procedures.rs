//! The procedures of NFS version 3 (RFC 1813, 3.3): their numbers, arguments and results.

pub use crate::common::access;

use super::listing::Listing;
use super::types::{
    Attributes, Change, CreateHow, Data, Entry, Handle, Name, Setting, SpecialNode, Stable, Status,
    Time,
};
use crate::rpc::Target;
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, named_choices, structures};

/// The program number (RFC 1813, 2.1).
pub const PROGRAM: u32 = 100_003;

/// The version of the program (RFC 1813, 2.1).
pub const VERSION: u32 = 3;

/// The document that specifies the protocol.
pub const PROTOCOL_RFC: &str = "RFC 1813";

/// A procedure (RFC 1813, 3): its arguments, and its results on success and on failure.
pub trait Procedure {
    /// The procedure number.
    const PROC: Proc;
    /// The arguments.
    type Args<'a>: Encode + Decode<'a>;
    /// The result on success.
    type ResOk<'a>: Encode + Decode<'a>;
    /// The result on failure, without the status.
    type Failed: Encode + Default + for<'a> Decode<'a>;
}

/// The reply of a procedure: a union on its status (RFC 1813, 3.3).
pub enum Reply<'a, P: Procedure> {
    /// The procedure succeeded.
    Done(P::ResOk<'a>),
    /// The procedure failed.
    Failed(Status, P::Failed),
}

impl<P: Procedure> Encode for Reply<'_, P> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done(done) => (Status::Ok, done).encode(out),
            Self::Failed(status, failed) => (status, failed).encode(out),
        }
    }
}

impl<'a, P: Procedure> Decode<'a> for Reply<'a, P> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        match from.get()? {
            Status::Ok => Ok(Self::Done(from.get()?)),
            status => Ok(Self::Failed(status, from.get()?)),
        }
    }

    fn decode_traced(from: &mut Decoder<'a>, path: &mut FieldPath) -> Result<Self, XdrError> {
        match path.field("status", from)? {
            Status::Ok => P::ResOk::decode_traced(from, path).map(Self::Done),
            status => {
                let failed = P::Failed::decode_traced(from, path)?;
                Ok(Self::Failed(status, failed))
            }
        }
    }
}

/// Declares the procedures as a table: number, the protocol's name, section of the RFC; arguments,
/// result on success and on failure.
macro_rules! procedures {
    ($(
        $proc:ident = $number:literal $name:literal $section:literal
            $(: $args:ty => $done:ty, $failed:ty)?;
    )*) => {
        named_choices! {
            /// The procedures (RFC 1813, 3.3).
            Proc { $($proc = $number $name $section,)* }
        }

        impl Proc {
            /// Appends the reply of a procedure that fails.
            pub(crate) fn encode_failure(self, status: Status, out: &mut Vec<u8>) {
                status.encode(out);
                match self {
                    $(Self::$proc => { $(<$failed>::default().encode(out))? })*
                }
            }
        }

        $($(
            #[doc = concat!("`", $name, "` (", $section, ").")]
            #[derive(Debug, Clone, Copy)]
            pub enum $proc {}

            impl Procedure for $proc {
                const PROC: Proc = Proc::$proc;
                type Args<'a> = $args;
                type ResOk<'a> = $done;
                type Failed = $failed;
            }
        )?)*
    };
}

procedures! {
    Null = 0 "NULL" "RFC 1813, 3.3.0";
    GetAttr = 1 "GETATTR" "RFC 1813, 3.3.1": Handle => Attributes, ();
    SetAttr = 2 "SETATTR" "RFC 1813, 3.3.2": SetAttrArgs => Change, Change;
    Lookup = 3 "LOOKUP" "RFC 1813, 3.3.3": Entry<'a> => Found, Option<Attributes>;
    Access = 4 "ACCESS" "RFC 1813, 3.3.4": AccessArgs => Accessible, Option<Attributes>;
    ReadLink = 5 "READLINK" "RFC 1813, 3.3.5": Handle => LinkText<'a>, Option<Attributes>;
    Read = 6 "READ" "RFC 1813, 3.3.6": ReadArgs => ReadDone<'a>, Option<Attributes>;
    Write = 7 "WRITE" "RFC 1813, 3.3.7": WriteArgs<'a> => Written, Change;
    Create = 8 "CREATE" "RFC 1813, 3.3.8": CreateArgs<'a> => Made, Change;
    MkDir = 9 "MKDIR" "RFC 1813, 3.3.9": MkDirArgs<'a> => Made, Change;
    SymLink = 10 "SYMLINK" "RFC 1813, 3.3.10": SymLinkArgs<'a> => Made, Change;
    MkNod = 11 "MKNOD" "RFC 1813, 3.3.11": MkNodArgs<'a> => Made, Change;
    Remove = 12 "REMOVE" "RFC 1813, 3.3.12": Entry<'a> => Change, Change;
    RmDir = 13 "RMDIR" "RFC 1813, 3.3.13": Entry<'a> => Change, Change;
    Rename = 14 "RENAME" "RFC 1813, 3.3.14": RenameArgs<'a> => Renamed, Renamed;
    Link = 15 "LINK" "RFC 1813, 3.3.15": LinkArgs<'a> => Linked, Linked;
    ReadDir = 16 "READDIR" "RFC 1813, 3.3.16":
        ReadDirArgs => Listing<ListEntry<'a>>, Option<Attributes>;
    ReadDirPlus = 17 "READDIRPLUS" "RFC 1813, 3.3.17":
        ReadDirPlusArgs => Listing<ListEntryPlus<'a>>, Option<Attributes>;
    FsStat = 18 "FSSTAT" "RFC 1813, 3.3.18": Handle => FsStatDone, Option<Attributes>;
    FsInfo = 19 "FSINFO" "RFC 1813, 3.3.19": Handle => FsInfoDone, Option<Attributes>;
    PathConf = 20 "PATHCONF" "RFC 1813, 3.3.20": Handle => PathConfDone, Option<Attributes>;
    Commit = 21 "COMMIT" "RFC 1813, 3.3.21": CommitArgs => Committed, Change;
}

impl Proc {
    /// The procedure with this name; case is ignored.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = |p: &Self| p.name().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(found)
    }

    /// The RPC target of calls of the procedure.
    pub(crate) fn target(self) -> Target {
        Target {
            program: PROGRAM,
            version: VERSION,
            procedure: self as u32,
        }
    }
}

structures! {
    /// Arguments of SETATTR (RFC 1813, 3.3.2).
    SetAttrArgs {
        /// The object.
        object: Handle,
        /// The attributes to set.
        set: Setting,
        /// The change time that the object must have, if given.
        guard: Option<Time>,
    }

    /// The result of LOOKUP (RFC 1813, 3.3.3).
    Found {
        /// The handle.
        object: Handle,
        /// The attributes.
        attributes: Option<Attributes> = "obj_attributes",
        /// Attributes of the directory.
        dir: Option<Attributes> = "dir_attributes",
    }

    /// Arguments of ACCESS (RFC 1813, 3.3.4).
    AccessArgs {
        /// The object.
        object: Handle,
        /// The bits of [`access`] to check.
        wanted: u32,
    }

    /// The result of ACCESS (RFC 1813, 3.3.4).
    Accessible {
        /// Attributes of the object.
        attributes: Option<Attributes> = "obj_attributes",
        /// The bits that are granted.
        granted: u32 = "access",
    }

    /// The result of READLINK (RFC 1813, 3.3.5).
    LinkText<'a> {
        /// Attributes of the link.
        attributes: Option<Attributes> = "symlink_attributes",
        /// The path in the link.
        path: Name<'a> = "data",
    }

    /// Arguments of READ (RFC 1813, 3.3.6).
    ReadArgs {
        /// The file.
        file: Handle,
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        count: u32,
    }

    /// The result of READ (RFC 1813, 3.3.6).
    ReadDone<'a> {
        /// Attributes of the file.
        attributes: Option<Attributes> = "file_attributes",
        /// The number of bytes read.
        count: u32,
        /// Whether the file ends after the bytes read.
        eof: bool,
        /// The bytes.
        data: Data<'a>,
    }

    /// Arguments of WRITE (RFC 1813, 3.3.7).
    WriteArgs<'a> {
        /// The file.
        file: Handle,
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        count: u32,
        /// The stability that the data must have.
        stable: Stable,
        /// The bytes.
        data: Data<'a>,
    }

    /// The result of WRITE (RFC 1813, 3.3.7).
    Written {
        /// Attributes of the file before and after the write.
        file: Change = "file_wcc",
        /// The number of bytes written.
        count: u32,
        /// The stability that the data has.
        committed: Stable,
        /// The write verifier, which changes when the server may have lost unstable data.
        verifier: [u8; 8] = "verf",
    }

    /// Arguments of CREATE (RFC 1813, 3.3.8).
    CreateArgs<'a> {
        /// The name.
        at: Entry<'a>,
        /// How the file is created.
        how: CreateHow,
    }

    /// Arguments of MKDIR (RFC 1813, 3.3.9).
    MkDirArgs<'a> {
        /// The name.
        at: Entry<'a>,
        /// Attributes of the directory.
        set: Setting,
    }

    /// Arguments of SYMLINK (RFC 1813, 3.3.10).
    SymLinkArgs<'a> {
        /// The name.
        at: Entry<'a>,
        /// Attributes of the link.
        set: Setting,
        /// The path in the link.
        path: Name<'a>,
    }

    /// Arguments of MKNOD (RFC 1813, 3.3.11).
    MkNodArgs<'a> {
        /// The name.
        at: Entry<'a>,
        /// The object to create.
        what: SpecialNode,
    }

    /// The result of CREATE, MKDIR, SYMLINK and MKNOD (RFC 1813, 3.3.8).
    Made {
        /// The handle of the new object, which a server may omit.
        object: Option<Handle> = "obj",
        /// The attributes.
        attributes: Option<Attributes> = "obj_attributes",
        /// Attributes of the directory before and after.
        dir: Change = "dir_wcc",
    }

    /// Arguments of RENAME (RFC 1813, 3.3.14).
    RenameArgs<'a> {
        /// The old name.
        from: Entry<'a>,
        /// The new name.
        to: Entry<'a>,
    }

    /// The result of RENAME: attributes of both directories before and after (RFC 1813, 3.3.14).
    #[derive(Default)]
    Renamed {
        /// The directory of the old name.
        from: Change = "fromdir_wcc",
        /// The directory of the new name.
        to: Change = "todir_wcc",
    }

    /// Arguments of LINK (RFC 1813, 3.3.15).
    LinkArgs<'a> {
        /// The file.
        file: Handle,
        /// The additional name.
        at: Entry<'a>,
    }

    /// The result of LINK (RFC 1813, 3.3.15).
    #[derive(Default)]
    Linked {
        /// Attributes of the file.
        attributes: Option<Attributes> = "file_attributes",
        /// Attributes of the directory before and after.
        dir: Change = "linkdir_wcc",
    }

    /// Arguments of READDIR (RFC 1813, 3.3.16).
    ReadDirArgs {
        /// The directory.
        dir: Handle,
        /// The cookie of the entry to resume after; 0 for the beginning.
        cookie: u64,
        /// The verifier that came with the cookie.
        verifier: [u8; 8],
        /// The maximum number of bytes of the result.
        count: u32,
    }

    /// Arguments of READDIRPLUS (RFC 1813, 3.3.17).
    ReadDirPlusArgs {
        /// The directory.
        dir: Handle,
        /// The cookie of the entry to resume after; 0 for the beginning.
        cookie: u64,
        /// The verifier that came with the cookie.
        verifier: [u8; 8],
        /// The maximum number of bytes of names and cookies.
        dir_count: u32,
        /// The maximum number of bytes of the result.
        max_count: u32,
    }

    /// An entry of READDIR (RFC 1813, 3.3.16).
    ListEntry<'a> {
        /// The number of the object.
        fileid: u64,
        /// The name.
        name: Name<'a>,
        /// The position after the entry.
        cookie: u64,
    }

    /// An entry of READDIRPLUS (RFC 1813, 3.3.17).
    ListEntryPlus<'a> {
        /// The number of the object.
        fileid: u64,
        /// The name.
        name: Name<'a>,
        /// The position after the entry.
        cookie: u64,
        /// The attributes.
        attributes: Option<Attributes> = "name_attributes",
        /// The handle.
        handle: Option<Handle> = "name_handle",
    }

    /// The result of FSSTAT (RFC 1813, 3.3.18).
    FsStatDone {
        /// Attributes of the object.
        attributes: Option<Attributes> = "obj_attributes",
        /// The size of the file system in bytes.
        total_bytes: u64 = "tbytes",
        /// The number of free bytes.
        free_bytes: u64 = "fbytes",
        /// The number of bytes free to this user.
        available_bytes: u64 = "abytes",
        /// The number of files that the file system can have.
        total_files: u64 = "tfiles",
        /// The number of free files that the file system can still have.
        free_files: u64 = "ffiles",
        /// The number of files that this user can still create.
        available_files: u64 = "afiles",
        /// The number of seconds for which these values will not change.
        invariant_s: u32 = "invarsec",
    }

    /// The result of FSINFO (RFC 1813, 3.3.19).
    FsInfoDone {
        /// Attributes of the object.
        attributes: Option<Attributes> = "obj_attributes",
        /// The maximum number of bytes of a READ.
        read_max: u32 = "rtmax",
        /// The preferred number of bytes of a READ.
        read_preferred: u32 = "rtpref",
        /// READ sizes should be multiples of this number of bytes.
        read_multiple: u32 = "rtmult",
        /// The maximum number of bytes of a WRITE.
        write_max: u32 = "wtmax",
        /// The preferred number of bytes of a WRITE.
        write_preferred: u32 = "wtpref",
        /// WRITE sizes should be multiples of this number of bytes.
        write_multiple: u32 = "wtmult",
        /// The preferred number of bytes of a READDIR.
        dir_preferred: u32 = "dtpref",
        /// The maximum size of a file in bytes.
        largest_file: u64 = "maxfilesize",
        /// The resolution of times.
        time_delta: Time,
        /// Bits: hard links, symbolic links, homogeneous, times can be set.
        properties: u32,
    }

    /// The result of PATHCONF (RFC 1813, 3.3.20).
    PathConfDone {
        /// Attributes of the object.
        attributes: Option<Attributes> = "obj_attributes",
        /// The maximum number of hard links of a file.
        most_links: u32 = "linkmax",
        /// The maximum number of bytes of a name.
        longest_name: u32 = "name_max",
        /// Whether the server refuses longer names instead of truncating them.
        no_trunc: bool,
        /// Whether only root may give files away.
        chown_restricted: bool,
        /// Whether names that differ only in case are equal.
        case_insensitive: bool,
        /// Whether the case of names is preserved.
        case_preserving: bool,
    }

    /// Arguments of COMMIT (RFC 1813, 3.3.21).
    CommitArgs {
        /// The file.
        file: Handle,
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes; 0 for all to the end.
        count: u32,
    }

    /// The result of COMMIT (RFC 1813, 3.3.21).
    Committed {
        /// Attributes of the file before and after the commit.
        file: Change = "file_wcc",
        /// The write verifier, to be compared with the verifiers of the WRITEs.
        verifier: [u8; 8] = "verf",
    }
}
