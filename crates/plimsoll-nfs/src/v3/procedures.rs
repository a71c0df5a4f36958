//! The procedures of NFS version 3 (RFC 1813, 3.3): their numbers, arguments and results.

pub use crate::common::access;

use super::listing::Listing;
use super::types::{
    Attributes, Change, CreateHow, Data, Entry, Handle, Name, Setting, SpecialNode, Stable, Status,
    Time,
};
use crate::rpc::Target;
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, named_choices, structures};

/// The RPC program number of NFS (RFC 1813, 2.2).
pub const PROGRAM: u32 = 100_003;

/// The RPC version number of NFS version 3 (RFC 1813, 2.2).
pub const VERSION: u32 = 3;

/// The document that specifies NFS version 3 and MOUNT version 3, for messages about a server's deviations.
pub const PROTOCOL_RFC: &str = "RFC 1813";

/// A procedure of NFS version 3 (RFC 1813, 3.3): types of the arguments, and of the results on success and on failure.
pub trait Procedure {
    /// The procedure's number in the RPC call header.
    const PROC: Proc;
    /// The procedure's arguments, which follow the RPC call header.
    type Args<'a>: Encode + Decode<'a>;
    /// The procedure's result on success, which follows the status `NFS3_OK`.
    type ResOk<'a>: Encode + Decode<'a>;
    /// The procedure's result on failure, which follows the error status; `()` for a procedure that returns no
    /// attributes with an error.
    type Failed: Encode + Default + for<'a> Decode<'a>;
}

/// The reply of a procedure: a union on its status (RFC 1813, 3.3).
pub enum Reply<'a, P: Procedure> {
    /// Reply with the status `NFS3_OK`: the procedure's result.
    Done(P::ResOk<'a>),
    /// Reply with an error status, and the attributes that the server returns with the error.
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
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        match from.field("status")? {
            Status::Ok => from.get().map(Self::Done),
            status => Ok(Self::Failed(status, from.get()?)),
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
            /// The procedures of NFS version 3 (RFC 1813, 3.3).
            Proc { $($proc = $number $name $section,)* }
        }

        impl Proc {
            /// Appends the reply of a procedure that fails with `status`, without attributes.
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
    /// The procedure with the RFC's name `name`, such as `READ`, in upper or lower case; `None` for any other name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = |p: &Self| p.name().eq_ignore_ascii_case(name);
        Self::ALL.iter().copied().find(found)
    }

    /// Program, version and procedure number for the RPC header of a call.
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
        /// Handle of the object whose attributes SETATTR changes.
        object: Handle,
        /// The attributes that SETATTR changes; all other attributes of the object keep their values.
        set: Setting,
        /// The `ctime` that the object must have, or SETATTR fails with `NFS3ERR_NOT_SYNC`; `None` to set the
        /// attributes in any case.
        guard: Option<Time>,
    }

    /// The result of LOOKUP (RFC 1813, 3.3.3).
    Found {
        /// The handle of the object that LOOKUP found.
        object: Handle,
        /// Attributes of the object that LOOKUP found; `None` if the server returned none.
        attributes: Option<Attributes> = "obj_attributes",
        /// Attributes of the directory that was searched; `None` if the server returned none.
        dir: Option<Attributes> = "dir_attributes",
    }

    /// Arguments of ACCESS (RFC 1813, 3.3.4).
    AccessArgs {
        /// Handle of the object on which the caller's permissions are checked.
        object: Handle,
        /// The permissions that ACCESS checks: bits of [`access`].
        wanted: u32,
    }

    /// The result of ACCESS (RFC 1813, 3.3.4).
    Accessible {
        /// Attributes of the object of which ACCESS checked the permissions; `None` if the server returned none.
        attributes: Option<Attributes> = "obj_attributes",
        /// The permissions that the caller has on the object: a subset of the checked bits of [`access`].
        granted: u32 = "access",
    }

    /// The result of READLINK (RFC 1813, 3.3.5).
    LinkText<'a> {
        /// Attributes of the symbolic link; `None` if the server returned none.
        attributes: Option<Attributes> = "symlink_attributes",
        /// The path to which the symbolic link points, as SYMLINK stored the path.
        path: Name<'a> = "data",
    }

    /// Arguments of READ (RFC 1813, 3.3.6).
    ReadArgs {
        /// Handle of the file from which READ reads.
        file: Handle,
        /// The offset in the file at which READ begins, in bytes.
        offset: u64,
        /// The number of bytes that READ requests; the server may return fewer bytes.
        count: u32,
    }

    /// The result of READ (RFC 1813, 3.3.6).
    ReadDone<'a> {
        /// Attributes of the file after the read; `None` if the server returned none.
        attributes: Option<Attributes> = "file_attributes",
        /// The number of bytes of file data in the READ reply, the length of `data`.
        count: u32,
        /// Whether the READ reached the end of the file.
        eof: bool,
        /// The file data in the READ reply, at most the requested number of bytes.
        data: Data<'a>,
    }

    /// Arguments of WRITE (RFC 1813, 3.3.7).
    WriteArgs<'a> {
        /// Handle of the file to which WRITE writes.
        file: Handle,
        /// The offset in the file at which WRITE begins, in bytes.
        offset: u64,
        /// The number of bytes that WRITE writes, the length of `data`.
        count: u32,
        /// The lowest stability that the data of a WRITE must have when the server replies.
        stable: Stable,
        /// The file data that WRITE writes, in full or, if the server accepts fewer bytes, in part.
        data: Data<'a>,
    }

    /// The result of WRITE (RFC 1813, 3.3.7).
    Written {
        /// Attributes of the file before and after the write, for the client's cache.
        file: Change = "file_wcc",
        /// The number of bytes that the server has written, at most the count in the arguments of WRITE.
        count: u32,
        /// The stability of the written data, at least the requested stability.
        committed: Stable,
        /// The write verifier; a verifier that differs from an earlier reply's means that unstable data may be lost.
        verifier: [u8; 8] = "verf",
    }

    /// Arguments of CREATE (RFC 1813, 3.3.8).
    CreateArgs<'a> {
        /// The directory in which CREATE creates the file, and the name of the new file.
        at: Entry<'a>,
        /// The treatment of an existing file by CREATE, and the initial attributes of a new file or the verifier.
        how: CreateHow,
    }

    /// Arguments of MKDIR (RFC 1813, 3.3.9).
    MkDirArgs<'a> {
        /// The directory in which MKDIR creates the directory, and the name of the new directory.
        at: Entry<'a>,
        /// The initial attributes of the directory that MKDIR creates.
        set: Setting,
    }

    /// Arguments of SYMLINK (RFC 1813, 3.3.10).
    SymLinkArgs<'a> {
        /// The directory in which SYMLINK creates the symbolic link, and the name of the link.
        at: Entry<'a>,
        /// The initial attributes of the symbolic link that SYMLINK creates.
        set: Setting,
        /// The path to which the new symbolic link points; the server stores the path unchecked.
        path: Name<'a>,
    }

    /// Arguments of MKNOD (RFC 1813, 3.3.11).
    MkNodArgs<'a> {
        /// The directory in which MKNOD creates the special file, and the name of the special file.
        at: Entry<'a>,
        /// The type and the initial attributes of the special file that MKNOD creates, and the numbers of a device.
        what: SpecialNode,
    }

    /// The result of CREATE, MKDIR, SYMLINK and MKNOD (RFC 1813, 3.3.8 to 3.3.11).
    Made {
        /// The handle of the new object; `None` if the server omits the handle, so that the client must call LOOKUP for
        /// the handle.
        object: Option<Handle> = "obj",
        /// Attributes of the new object; `None` if the server returned none.
        attributes: Option<Attributes> = "obj_attributes",
        /// Attributes of the parent directory before and after the creation.
        dir: Change = "dir_wcc",
    }

    /// Arguments of RENAME (RFC 1813, 3.3.14).
    RenameArgs<'a> {
        /// The directory and the name of the object before RENAME.
        from: Entry<'a>,
        /// The directory and the name of the object after RENAME; an existing object of the name is replaced.
        to: Entry<'a>,
    }

    /// The result of RENAME: attributes of both directories before and after (RFC 1813, 3.3.14).
    #[derive(Default)]
    Renamed {
        /// Attributes of the directory of the old name before and after RENAME.
        from: Change = "fromdir_wcc",
        /// Attributes of the directory of the new name before and after RENAME.
        to: Change = "todir_wcc",
    }

    /// Arguments of LINK (RFC 1813, 3.3.15).
    LinkArgs<'a> {
        /// Handle of the file to which LINK gives a further name.
        file: Handle,
        /// The directory in which LINK creates the hard link, and the name of the hard link.
        at: Entry<'a>,
    }

    /// The result of LINK (RFC 1813, 3.3.15).
    #[derive(Default)]
    Linked {
        /// Attributes of the linked file; `None` if the server returned none.
        attributes: Option<Attributes> = "file_attributes",
        /// Attributes of the directory of the new hard link before and after LINK.
        dir: Change = "linkdir_wcc",
    }

    /// Arguments of READDIR (RFC 1813, 3.3.16).
    ReadDirArgs {
        /// Handle of the directory whose entries READDIR lists.
        dir: Handle,
        /// The cookie of the last entry that the client has; 0 starts at the first entry.
        cookie: u64,
        /// The verifier of the READDIR reply with the cookie; zero for the first call.
        verifier: [u8; 8],
        /// The maximum size in bytes of the whole READDIR result, including XDR overhead.
        count: u32,
    }

    /// Arguments of READDIRPLUS (RFC 1813, 3.3.17).
    ReadDirPlusArgs {
        /// Handle of the directory whose entries READDIRPLUS lists.
        dir: Handle,
        /// The cookie of the last entry that the client has; 0 starts at the first entry.
        cookie: u64,
        /// The verifier of the READDIRPLUS reply with the cookie; zero for the first call.
        verifier: [u8; 8],
        /// The maximum number of bytes of file numbers, names and cookies in the READDIRPLUS result, without attributes
        /// and handles.
        dir_count: u32,
        /// The maximum size in bytes of the whole READDIRPLUS result, including XDR overhead.
        max_count: u32,
    }

    /// An entry of READDIR (RFC 1813, 3.3.16).
    ListEntry<'a> {
        /// The file number (inode number) of the object, unique within the file system.
        fileid: u64,
        /// The name of the object in the listed directory, as bytes without a fixed encoding.
        name: Name<'a>,
        /// The cookie at which a further READDIR continues after this entry.
        cookie: u64,
    }

    /// An entry of READDIRPLUS (RFC 1813, 3.3.17).
    ListEntryPlus<'a> {
        /// The file number (inode number) of the object, unique within the file system.
        fileid: u64,
        /// The name of the object in the listed directory, as bytes without a fixed encoding.
        name: Name<'a>,
        /// The cookie at which a further READDIRPLUS continues after this entry.
        cookie: u64,
        /// Attributes of the object that the entry names; `None` if the server returned none.
        attributes: Option<Attributes> = "name_attributes",
        /// Handle of the object that the entry names; `None` if the server returned none.
        handle: Option<Handle> = "name_handle",
    }

    /// The result of FSSTAT (RFC 1813, 3.3.18).
    FsStatDone {
        /// Attributes of the object whose handle FSSTAT was called with; `None` if the server returned none.
        attributes: Option<Attributes> = "obj_attributes",
        /// The size of the file system in bytes.
        total_bytes: u64 = "tbytes",
        /// The free space of the file system in bytes.
        free_bytes: u64 = "fbytes",
        /// The free space of the file system in bytes that the calling user may use, without space reserved for other
        /// users.
        available_bytes: u64 = "abytes",
        /// The maximum number of files (inodes) of the file system.
        total_files: u64 = "tfiles",
        /// The number of free file slots (inodes) of the file system.
        free_files: u64 = "ffiles",
        /// The number of free file slots (inodes) of the file system that the calling user may use.
        available_files: u64 = "afiles",
        /// The time in seconds for which the file system's figures will not change; 0 for a volatile file system.
        invariant_s: u32 = "invarsec",
    }

    /// The result of FSINFO (RFC 1813, 3.3.19).
    FsInfoDone {
        /// Attributes of the object whose handle FSINFO was called with; `None` if the server returned none.
        attributes: Option<Attributes> = "obj_attributes",
        /// The maximum size of a READ in bytes.
        read_max: u32 = "rtmax",
        /// The preferred size of a READ in bytes.
        read_preferred: u32 = "rtpref",
        /// The number of bytes of which the size of a READ should be a multiple.
        read_multiple: u32 = "rtmult",
        /// The maximum size of a WRITE in bytes.
        write_max: u32 = "wtmax",
        /// The preferred size of a WRITE in bytes.
        write_preferred: u32 = "wtpref",
        /// The number of bytes of which the size of a WRITE should be a multiple.
        write_multiple: u32 = "wtmult",
        /// The preferred size of a READDIR request in bytes.
        dir_preferred: u32 = "dtpref",
        /// The maximum size of a file in bytes.
        largest_file: u64 = "maxfilesize",
        /// The resolution of the time stamps that SETATTR can set.
        time_delta: Time,
        /// Bits `FSF3_…` of the file system: 1 hard links, 2 symbolic links, 8 PATHCONF is the same for all objects, 16
        /// SETATTR sets times.
        properties: u32,
    }

    /// The result of PATHCONF (RFC 1813, 3.3.20).
    PathConfDone {
        /// Attributes of the object whose handle PATHCONF was called with; `None` if the server returned none.
        attributes: Option<Attributes> = "obj_attributes",
        /// The maximum number of hard links of an object.
        most_links: u32 = "linkmax",
        /// The maximum length of a file name in bytes.
        longest_name: u32 = "name_max",
        /// Whether the server rejects names longer than the maximum; otherwise the server truncates longer names.
        no_trunc: bool,
        /// Whether only a privileged user may change the owner or the group of a file.
        chown_restricted: bool,
        /// Whether the file system ignores the case of file names.
        case_insensitive: bool,
        /// Whether the file system stores the case of file names as given.
        case_preserving: bool,
    }

    /// Arguments of COMMIT (RFC 1813, 3.3.21).
    CommitArgs {
        /// Handle of the file whose unstable data is committed.
        file: Handle,
        /// The offset in the file of the first byte that COMMIT moves to stable storage.
        offset: u64,
        /// The number of bytes that COMMIT moves to stable storage; 0 for all bytes from the offset to the end of the
        /// file.
        count: u32,
    }

    /// The result of COMMIT (RFC 1813, 3.3.21).
    Committed {
        /// Attributes of the file before and after the commit, for the client's cache.
        file: Change = "file_wcc",
        /// The write verifier; unstable data whose WRITE returned another verifier must be written again.
        verifier: [u8; 8] = "verf",
    }
}
