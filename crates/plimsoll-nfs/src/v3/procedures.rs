//! The procedures of NFS version 3 (RFC 1813, 3.3): their numbers, arguments and results.

use super::listing::Listing;
use super::types::{
    Attributes, Change, CreateHow, Data, Entry, Handle, Name, Setting, SpecialNode, Stable, Status,
    Time,
};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, choices, structures};
use std::fmt;

/// Number of the program (RFC 1813, 2.1).
pub const PROGRAM: u32 = 100_003;

/// Version of it (RFC 1813, 2.1).
pub const VERSION: u32 = 3;

/// What describes the protocol.
pub const PROTOCOL_RFC: &str = "RFC 1813";

choices! {
    /// The procedures (RFC 1813, 3.3).
    Proc {
        /// Nothing (3.3.0).
        Null = 0,
        /// Attributes (3.3.1).
        GetAttr = 1,
        /// Setting attributes (3.3.2).
        SetAttr = 2,
        /// A name's handle (3.3.3).
        Lookup = 3,
        /// What one may do (3.3.4).
        Access = 4,
        /// What a symbolic link says (3.3.5).
        ReadLink = 5,
        /// Reading (3.3.6).
        Read = 6,
        /// Writing (3.3.7).
        Write = 7,
        /// Making a file (3.3.8).
        Create = 8,
        /// Making a directory (3.3.9).
        MkDir = 9,
        /// Making a symbolic link (3.3.10).
        SymLink = 10,
        /// Making a device or pipe (3.3.11).
        MkNod = 11,
        /// Removing a file (3.3.12).
        Remove = 12,
        /// Removing a directory (3.3.13).
        RmDir = 13,
        /// Renaming (3.3.14).
        Rename = 14,
        /// Making a hard link (3.3.15).
        Link = 15,
        /// Listing a directory (3.3.16).
        ReadDir = 16,
        /// Listing a directory with attributes and handles (3.3.17).
        ReadDirPlus = 17,
        /// Space of the file system (3.3.18).
        FsStat = 18,
        /// What the file system can do (3.3.19).
        FsInfo = 19,
        /// Limits of the file system (3.3.20).
        PathConf = 20,
        /// Putting written data on stable storage (3.3.21).
        Commit = 21,
    }
}

impl Proc {
    /// The RFC's name of it, such as `READDIRPLUS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::GetAttr => "GETATTR",
            Self::SetAttr => "SETATTR",
            Self::Lookup => "LOOKUP",
            Self::Access => "ACCESS",
            Self::ReadLink => "READLINK",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Create => "CREATE",
            Self::MkDir => "MKDIR",
            Self::SymLink => "SYMLINK",
            Self::MkNod => "MKNOD",
            Self::Remove => "REMOVE",
            Self::RmDir => "RMDIR",
            Self::Rename => "RENAME",
            Self::Link => "LINK",
            Self::ReadDir => "READDIR",
            Self::ReadDirPlus => "READDIRPLUS",
            Self::FsStat => "FSSTAT",
            Self::FsInfo => "FSINFO",
            Self::PathConf => "PATHCONF",
            Self::Commit => "COMMIT",
        }
    }

    /// The procedure of a name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = |p: &Self| p.name().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(found)
    }
}

impl fmt::Display for Proc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A procedure (RFC 1813, 3): what it takes, and what it gives when it succeeds and when it fails.
pub trait Procedure {
    /// Which one it is.
    const PROC: Proc;
    /// Its arguments.
    type Args<'a>: Encode + Decode<'a>;
    /// What it gives when it succeeds.
    type ResOk<'a>: Encode + Decode<'a>;
    /// What it gives beside the status when it fails.
    type Failed: Encode + Default + for<'a> Decode<'a>;
}

/// What a procedure answers: a union on its status (RFC 1813, 3.3).
pub enum Reply<'a, P: Procedure> {
    /// It succeeded.
    Done(P::ResOk<'a>),
    /// It failed.
    Failed(Status, P::Failed),
}

impl<P: Procedure> Encode for Reply<'_, P> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Done(done) => {
                Status::Ok.encode(out);
                done.encode(out);
            }
            Self::Failed(status, failed) => {
                status.encode(out);
                failed.encode(out);
            }
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

macro_rules! procedures {
    ($($(#[$about:meta])* $name:ident($args:ty) -> $done:ty, $failed:ty;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl Procedure for $name {
            const PROC: Proc = Proc::$name;
            type Args<'a> = $args;
            type ResOk<'a> = $done;
            type Failed = $failed;
        }
    )*};
}

procedures! {
    /// GETATTR (RFC 1813, 3.3.1).
    GetAttr(Handle) -> Attributes, ();
    /// SETATTR (RFC 1813, 3.3.2).
    SetAttr(SetAttrArgs) -> Change, Change;
    /// LOOKUP (RFC 1813, 3.3.3).
    Lookup(Entry<'a>) -> Found, Option<Attributes>;
    /// ACCESS (RFC 1813, 3.3.4).
    Access(AccessArgs) -> Accessible, Option<Attributes>;
    /// READLINK (RFC 1813, 3.3.5).
    ReadLink(Handle) -> LinkText<'a>, Option<Attributes>;
    /// READ (RFC 1813, 3.3.6).
    Read(ReadArgs) -> ReadDone<'a>, Option<Attributes>;
    /// WRITE (RFC 1813, 3.3.7).
    Write(WriteArgs<'a>) -> Written, Change;
    /// CREATE (RFC 1813, 3.3.8).
    Create(CreateArgs<'a>) -> Made, Change;
    /// MKDIR (RFC 1813, 3.3.9).
    MkDir(MkDirArgs<'a>) -> Made, Change;
    /// SYMLINK (RFC 1813, 3.3.10).
    SymLink(SymLinkArgs<'a>) -> Made, Change;
    /// MKNOD (RFC 1813, 3.3.11).
    MkNod(MkNodArgs<'a>) -> Made, Change;
    /// REMOVE (RFC 1813, 3.3.12).
    Remove(Entry<'a>) -> Change, Change;
    /// RMDIR (RFC 1813, 3.3.13).
    RmDir(Entry<'a>) -> Change, Change;
    /// RENAME (RFC 1813, 3.3.14).
    Rename(RenameArgs<'a>) -> Renamed, Renamed;
    /// LINK (RFC 1813, 3.3.15).
    Link(LinkArgs<'a>) -> Linked, Linked;
    /// READDIR (RFC 1813, 3.3.16).
    ReadDir(ReadDirArgs) -> Listing<ListEntry<'a>>, Option<Attributes>;
    /// READDIRPLUS (RFC 1813, 3.3.17).
    ReadDirPlus(ReadDirPlusArgs) -> Listing<ListEntryPlus<'a>>, Option<Attributes>;
    /// FSSTAT (RFC 1813, 3.3.18).
    FsStat(Handle) -> FsStatDone, Option<Attributes>;
    /// FSINFO (RFC 1813, 3.3.19).
    FsInfo(Handle) -> FsInfoDone, Option<Attributes>;
    /// PATHCONF (RFC 1813, 3.3.20).
    PathConf(Handle) -> PathConfDone, Option<Attributes>;
    /// COMMIT (RFC 1813, 3.3.21).
    Commit(CommitArgs) -> Committed, Change;
}

/// Bits of [`AccessArgs::wanted`] (RFC 1813, 3.3.4).
pub mod access {
    /// Reading a file or a directory (RFC 1813, 3.3.4).
    pub const READ: u32 = 1;
    /// Looking names up (RFC 1813, 3.3.4).
    pub const LOOKUP: u32 = 2;
    /// Changing what is there (RFC 1813, 3.3.4).
    pub const MODIFY: u32 = 4;
    /// Adding to it (RFC 1813, 3.3.4).
    pub const EXTEND: u32 = 8;
    /// Removing entries (RFC 1813, 3.3.4).
    pub const DELETE: u32 = 16;
    /// Running it (RFC 1813, 3.3.4).
    pub const EXECUTE: u32 = 32;
}

structures! {
    /// Arguments of SETATTR (RFC 1813, 3.3.2).
    SetAttrArgs {
        /// The object.
        object: Handle,
        /// What is set.
        set: Setting,
        /// The change time that it must have.
        guard: Option<Time>,
    }

    /// What LOOKUP found (RFC 1813, 3.3.3).
    Found {
        /// Its handle.
        object: Handle,
        /// Its attributes.
        attributes: Option<Attributes> = "obj_attributes",
        /// Attributes of the directory.
        dir: Option<Attributes> = "dir_attributes",
    }

    /// Arguments of ACCESS (RFC 1813, 3.3.4).
    AccessArgs {
        /// The object.
        object: Handle,
        /// What is asked for: bits of [`access`].
        wanted: u32,
    }

    /// What ACCESS says (RFC 1813, 3.3.4).
    Accessible {
        /// Attributes of the object.
        attributes: Option<Attributes> = "obj_attributes",
        /// What of the bits asked for may be done.
        granted: u32 = "access",
    }

    /// What READLINK says (RFC 1813, 3.3.5).
    LinkText<'a> {
        /// Attributes of the link.
        attributes: Option<Attributes> = "symlink_attributes",
        /// The path in it.
        path: Name<'a> = "data",
    }

    /// Arguments of READ (RFC 1813, 3.3.6).
    ReadArgs {
        /// The file.
        file: Handle,
        /// Where to begin.
        offset: u64,
        /// Bytes.
        count: u32,
    }

    /// What READ gives (RFC 1813, 3.3.6).
    ReadDone<'a> {
        /// Attributes of the file.
        attributes: Option<Attributes> = "file_attributes",
        /// Bytes that were read.
        count: u32,
        /// Whether the file ends after them.
        eof: bool,
        /// The bytes.
        data: Data<'a>,
    }

    /// Arguments of WRITE (RFC 1813, 3.3.7).
    WriteArgs<'a> {
        /// The file.
        file: Handle,
        /// Where to begin.
        offset: u64,
        /// Bytes.
        count: u32,
        /// How stable they have to be.
        stable: Stable,
        /// The bytes.
        data: Data<'a>,
    }

    /// What WRITE says (RFC 1813, 3.3.7).
    Written {
        /// Attributes before and after.
        file: Change = "file_wcc",
        /// Bytes that were written.
        count: u32,
        /// How stable they are.
        committed: Stable,
        /// Changes when the server may have lost unstable data.
        verifier: [u8; 8] = "verf",
    }

    /// Arguments of CREATE (RFC 1813, 3.3.8).
    CreateArgs<'a> {
        /// The name.
        at: Entry<'a>,
        /// How it is made.
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
        /// The path in it.
        path: Name<'a>,
    }

    /// Arguments of MKNOD (RFC 1813, 3.3.11).
    MkNodArgs<'a> {
        /// The name.
        at: Entry<'a>,
        /// What is made.
        what: SpecialNode,
    }

    /// What CREATE, MKDIR, SYMLINK and MKNOD say (RFC 1813, 3.3.8).
    Made {
        /// Handle of what was made; a server may leave it out.
        object: Option<Handle> = "obj",
        /// Its attributes.
        attributes: Option<Attributes> = "obj_attributes",
        /// Attributes of the directory before and after.
        dir: Change = "dir_wcc",
    }

    /// Arguments of RENAME (RFC 1813, 3.3.14).
    RenameArgs<'a> {
        /// The old name.
        from: Entry<'a>,
        /// The new one.
        to: Entry<'a>,
    }

    /// Attributes of the directories of a RENAME (RFC 1813, 3.3.14).
    Renamed {
        /// Of the old name.
        from: Change = "fromdir_wcc",
        /// Of the new one.
        to: Change = "todir_wcc",
    }

    /// Arguments of LINK (RFC 1813, 3.3.15).
    LinkArgs<'a> {
        /// The file.
        file: Handle,
        /// Its other name.
        at: Entry<'a>,
    }

    /// What LINK says (RFC 1813, 3.3.15).
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
        /// After which entry; 0 from the begin.
        cookie: u64,
        /// What the server gave with the cookie.
        verifier: [u8; 8],
        /// Most bytes of the result.
        count: u32,
    }

    /// Arguments of READDIRPLUS (RFC 1813, 3.3.17).
    ReadDirPlusArgs {
        /// The directory.
        dir: Handle,
        /// After which entry; 0 from the begin.
        cookie: u64,
        /// What the server gave with the cookie.
        verifier: [u8; 8],
        /// Most bytes of names and cookies.
        dir_count: u32,
        /// Most bytes of the result.
        max_count: u32,
    }

    /// An entry of READDIR (RFC 1813, 3.3.16).
    ListEntry<'a> {
        /// Number of the object.
        fileid: u64,
        /// Its name.
        name: Name<'a>,
        /// Where to go on after it.
        cookie: u64,
    }

    /// An entry of READDIRPLUS (RFC 1813, 3.3.17).
    ListEntryPlus<'a> {
        /// Number of the object.
        fileid: u64,
        /// Its name.
        name: Name<'a>,
        /// Where to go on after it.
        cookie: u64,
        /// Its attributes.
        attributes: Option<Attributes> = "name_attributes",
        /// Its handle.
        handle: Option<Handle> = "name_handle",
    }

    /// What FSSTAT says (RFC 1813, 3.3.18).
    FsStatDone {
        /// Attributes of the object asked for.
        attributes: Option<Attributes> = "obj_attributes",
        /// Bytes of the file system.
        total_bytes: u64 = "tbytes",
        /// Bytes that are free.
        free_bytes: u64 = "fbytes",
        /// Bytes that are free to this user.
        available_bytes: u64 = "abytes",
        /// Files of the file system.
        total_files: u64 = "tfiles",
        /// Files that are free.
        free_files: u64 = "ffiles",
        /// Files that are free to this user.
        available_files: u64 = "afiles",
        /// Seconds for which this will not change.
        invariant_s: u32 = "invarsec",
    }

    /// What FSINFO says (RFC 1813, 3.3.19).
    FsInfoDone {
        /// Attributes of the object asked for.
        attributes: Option<Attributes> = "obj_attributes",
        /// Most bytes of a READ.
        read_max: u32 = "rtmax",
        /// Preferred ones.
        read_preferred: u32 = "rtpref",
        /// Multiple that they should be of.
        read_multiple: u32 = "rtmult",
        /// Most bytes of a WRITE.
        write_max: u32 = "wtmax",
        /// Preferred ones.
        write_preferred: u32 = "wtpref",
        /// Multiple that they should be of.
        write_multiple: u32 = "wtmult",
        /// Preferred bytes of a READDIR.
        dir_preferred: u32 = "dtpref",
        /// Most bytes of a file.
        largest_file: u64 = "maxfilesize",
        /// Resolution of times.
        time_delta: Time,
        /// Bits: hard links, symbolic links, homogeneous, times can be set.
        properties: u32,
    }

    /// What PATHCONF says (RFC 1813, 3.3.20).
    PathConfDone {
        /// Attributes of the object asked for.
        attributes: Option<Attributes> = "obj_attributes",
        /// Most hard links of a file.
        most_links: u32 = "linkmax",
        /// Longest name, in bytes.
        longest_name: u32 = "name_max",
        /// Longer names are refused instead of cut.
        no_trunc: bool,
        /// Only root may give files away.
        chown_restricted: bool,
        /// Upper and lower case are the same.
        case_insensitive: bool,
        /// Upper and lower case are kept.
        case_preserving: bool,
    }

    /// Arguments of COMMIT (RFC 1813, 3.3.21).
    CommitArgs {
        /// The file.
        file: Handle,
        /// Where to begin.
        offset: u64,
        /// Bytes; 0 to the end.
        count: u32,
    }

    /// What COMMIT says (RFC 1813, 3.3.21).
    Committed {
        /// Attributes before and after.
        file: Change = "file_wcc",
        /// The server's verifier, to be compared with those of the WRITEs.
        verifier: [u8; 8] = "verf",
    }
}

impl Default for Renamed {
    fn default() -> Self {
        Self {
            from: Change::UNKNOWN,
            to: Change::UNKNOWN,
        }
    }
}

impl Default for Linked {
    fn default() -> Self {
        Self {
            attributes: None,
            dir: Change::UNKNOWN,
        }
    }
}
