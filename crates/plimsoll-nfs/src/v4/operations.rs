//! The operations of NFS version 4 (RFC 7530, 16 and RFC 8881, 18), and the arguments and results
//! of operations on files and names. Operations on state are in [`state`](super::state).

pub use crate::common::access;

use super::attributes::{Attributes, Bitmap};
use super::state::*;
use super::types::{
    ChangeInfo, Data, FileType, Handle, Owner, SessionId, Stable, StateId, Status, Text,
};
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, named_choices, structures};

/// The RPC program number of NFS (`NFS4_PROGRAM` of RFC 7531).
pub const PROGRAM: u32 = 100_003;

/// The RPC version number of NFS version 4 (`NFS_V4` of RFC 7531).
pub const VERSION: u32 = 4;

/// The number of the NULL procedure, which does nothing (RFC 7530, 15.1).
pub const NULL: u32 = 0;

/// The number of the COMPOUND procedure, which executes operations in sequence (RFC 7530, 15.2).
pub const COMPOUND: u32 = 1;

/// An operation of a COMPOUND (RFC 7530, 15.2): types of its arguments, and of its result on success.
pub trait Operation {
    /// The operation's number in a COMPOUND, as in `nfs_opnum4`.
    const OP: Op;
    /// The operation's arguments, which follow the operation's number.
    type Args<'a>: Encode + Decode<'a>;
    /// The operation's result on success, which follows the status `NFS4_OK`.
    type ResOk<'a>: Encode + Decode<'a>;
}

/// Declares the operations as a table: number, name in the protocol, section of the RFC; arguments,
/// result, and a note on arguments or result.
macro_rules! operations {
    ($(
        $op:ident = $number:literal $name:literal $section:literal
            $(: $args:ty => $done:ty $(, $note:literal)?)?;
    )*) => {
        named_choices! {
            /// The supported operations, `nfs_opnum4` (RFC 7530, 15.2 and RFC 8881, 17).
            Op { $($op = $number $name $section,)* }
        }

        /// Decodes and drops the arguments of an operation; `NoSuchChoice` for `ILLEGAL`, which has no arguments.
        pub(super) fn skip_args<'a, F: Fields>(
            op: Op,
            from: &mut Decoder<'a, F>,
        ) -> Result<(), XdrError> {
            match op {
                $($(Op::$op => from.get::<$args>().map(|_| ()),)?)*
                Op::Illegal => Err(XdrError::NoSuchChoice(op as u32)),
            }
        }

        $($(
            #[doc = concat!("`", $name, "` (", $section, ").", $(" ", $note)?)]
            #[derive(Debug, Clone, Copy)]
            pub enum $op {}

            impl Operation for $op {
                const OP: Op = Op::$op;
                type Args<'a> = $args;
                type ResOk<'a> = $done;
            }
        )?)*
    };
}

operations! {
    Access = 3 "ACCESS" "RFC 7530, 16.1": u32 => Accessible,
        "The arguments are bits of [`access`].";
    Close = 4 "CLOSE" "RFC 7530, 16.2": CloseArgs => StateId;
    Commit = 5 "COMMIT" "RFC 7530, 16.3": Range => [u8; 8], "The result is the write verifier.";
    Create = 6 "CREATE" "RFC 7530, 16.4": CreateArgs<'a> => Created;
    DelegReturn = 8 "DELEGRETURN" "RFC 7530, 16.6": StateId => ();
    GetAttr = 9 "GETATTR" "RFC 7530, 16.7": Bitmap => Attributes;
    GetFh = 10 "GETFH" "RFC 7530, 16.8": () => Handle;
    Link = 11 "LINK" "RFC 7530, 16.9": Text<'a> => ChangeInfo,
        "Links the saved object into the current directory.";
    Lock = 12 "LOCK" "RFC 7530, 16.10": LockArgs<'a> => StateId;
    LockU = 14 "LOCKU" "RFC 7530, 16.12": UnlockArgs => StateId;
    Lookup = 15 "LOOKUP" "RFC 7530, 16.13": Text<'a> => ();
    LookupP = 16 "LOOKUPP" "RFC 7530, 16.14": () => ();
    NVerify = 17 "NVERIFY" "RFC 7530, 16.15": Attributes => ();
    Open = 18 "OPEN" "RFC 7530, 16.16 and RFC 8881, 18.16": OpenArgs<'a> => Opened<'a>;
    OpenConfirm = 20 "OPEN_CONFIRM" "RFC 7530, 16.18": ConfirmArgs => StateId;
    OpenDowngrade = 21 "OPEN_DOWNGRADE" "RFC 7530, 16.19": DowngradeArgs => StateId;
    PutFh = 22 "PUTFH" "RFC 7530, 16.20": Handle => ();
    PutRootFh = 24 "PUTROOTFH" "RFC 7530, 16.22": () => ();
    Read = 25 "READ" "RFC 7530, 16.23": ReadArgs => ReadDone<'a>;
    ReadDir = 26 "READDIR" "RFC 7530, 16.24": ReadDirArgs => Listing<'a>;
    ReadLink = 27 "READLINK" "RFC 7530, 16.25": () => Text<'a>;
    Remove = 28 "REMOVE" "RFC 7530, 16.26": Text<'a> => ChangeInfo;
    Rename = 29 "RENAME" "RFC 7530, 16.27": RenameArgs<'a> => Renamed,
        "Renames from the saved directory to the current one.";
    Renew = 30 "RENEW" "RFC 7530, 16.28": u64 => (), "The argument is the client id.";
    RestoreFh = 31 "RESTOREFH" "RFC 7530, 16.29": () => ();
    SaveFh = 32 "SAVEFH" "RFC 7530, 16.30": () => ();
    SetAttr = 34 "SETATTR" "RFC 7530, 16.32": SetAttrArgs => Bitmap;
    SetClientId = 35 "SETCLIENTID" "RFC 7530, 16.33": SetClientIdArgs<'a> => ClientSet;
    SetClientIdConfirm = 36 "SETCLIENTID_CONFIRM" "RFC 7530, 16.34": ClientSet => ();
    Verify = 37 "VERIFY" "RFC 7530, 16.35": Attributes => ();
    Write = 38 "WRITE" "RFC 7530, 16.36": WriteArgs<'a> => Written;
    ReleaseLockOwner = 39 "RELEASE_LOCKOWNER" "RFC 7530, 16.37": Owner<'a> => ();
    BindConnToSession = 41 "BIND_CONN_TO_SESSION" "RFC 8881, 18.34": BindArgs => BindArgs;
    ExchangeId = 42 "EXCHANGE_ID" "RFC 8881, 18.35": ExchangeArgs<'a> => Exchanged<'a>;
    CreateSession = 43 "CREATE_SESSION" "RFC 8881, 18.36": CreateSessionArgs => SessionMade;
    DestroySession = 44 "DESTROY_SESSION" "RFC 8881, 18.37": SessionId => ();
    Sequence = 53 "SEQUENCE" "RFC 8881, 18.46": SequenceArgs => Sequenced;
    DestroyClientId = 57 "DESTROY_CLIENTID" "RFC 8881, 18.50": u64 => (),
        "The argument is the client id.";
    ReclaimComplete = 58 "RECLAIM_COMPLETE" "RFC 8881, 18.51": bool => (),
        "The argument is `true` for the current file system only.";
    Illegal = 10044 "ILLEGAL" "RFC 7530, 16.38";
}

structures! {
    /// The result of ACCESS (RFC 7530, 16.1).
    Accessible {
        /// The permissions that the server can check on the object: bits of [`access`].
        supported: u32,
        /// The permissions that the caller has on the object, a subset of `supported`.
        granted: u32 = "access",
    }

    /// The range of a file that COMMIT moves to stable storage (RFC 7530, 16.3).
    Range {
        /// The offset in the file at which the range to commit begins, in bytes.
        offset: u64,
        /// The length in bytes of the range to commit; 0 for all bytes from the offset to the end of the file.
        count: u32,
    }

    /// Arguments of CREATE (RFC 7530, 16.4).
    CreateArgs<'a> {
        /// The type of the object that CREATE creates, with the target of a symbolic link or the numbers of a device.
        what: CreateType<'a>,
        /// The name of the new object in the current directory.
        name: Text<'a>,
        /// The initial attributes of the new object.
        set: Attributes,
    }

    /// The result of CREATE (RFC 7530, 16.4).
    Created {
        /// The change of the directory in which CREATE created the object.
        change: ChangeInfo = "cinfo",
        /// The initial attributes that the server has set on the object that CREATE created.
        set: Bitmap = "attrset",
    }

    /// Arguments of READ (RFC 7530, 16.23).
    ReadArgs {
        /// The stateid of the open, lock or delegation that permits the READ.
        state: StateId,
        /// The offset in the file at which READ begins, in bytes.
        offset: u64,
        /// The number of bytes that READ requests; the server may return fewer bytes.
        count: u32,
    }

    /// The result of READ (RFC 7530, 16.23).
    ReadDone<'a> {
        /// Whether the READ reached the end of the file.
        eof: bool,
        /// The file data in the READ reply, at most the requested number of bytes.
        data: Data<'a>,
    }

    /// Arguments of READDIR (RFC 7530, 16.24).
    ReadDirArgs {
        /// The cookie of the last entry that the client has; 0 starts at the first entry.
        cookie: u64,
        /// The verifier of the READDIR reply with the cookie; zero for the first call.
        verifier: [u8; 8],
        /// A hint: the maximum number of bytes of names and cookies in the READDIR result, without attributes.
        dir_count: u32,
        /// The maximum size in bytes of the whole READDIR result, including XDR overhead.
        max_count: u32,
        /// The attributes that READDIR returns of each directory entry.
        attributes: Bitmap,
    }

    /// An entry of a directory, `entry4` (RFC 7530, 16.24).
    ListEntry<'a> {
        /// The cookie at which a further READDIR continues after this entry.
        cookie: u64,
        /// The name of the object in the listed directory, as bytes without a checked encoding.
        name: Text<'a>,
        /// Attributes of the object that the entry names, as far as the READDIR requested attributes.
        attributes: Attributes = "attrs",
    }

    /// Arguments of RENAME (RFC 7530, 16.27).
    RenameArgs<'a> {
        /// The name of the object before RENAME, in the saved directory.
        from: Text<'a>,
        /// The name of the object after RENAME, in the current directory; an existing object of the name is replaced.
        to: Text<'a>,
    }

    /// The result of RENAME (RFC 7530, 16.27).
    Renamed {
        /// The change of the saved directory, from which RENAME removed the old name.
        from: ChangeInfo = "source_cinfo",
        /// The change of the current directory, to which RENAME added the new name.
        to: ChangeInfo = "target_cinfo",
    }

    /// Arguments of SETATTR (RFC 7530, 16.32).
    SetAttrArgs {
        /// The stateid of the open, if SETATTR changes the size of an open file; otherwise [`StateId::ANONYMOUS`].
        state: StateId,
        /// The attributes that SETATTR changes; all other attributes of the object keep their values.
        set: Attributes,
    }

    /// Arguments of WRITE (RFC 7530, 16.36).
    WriteArgs<'a> {
        /// The stateid of the open, lock or delegation that permits the WRITE.
        state: StateId,
        /// The offset in the file at which WRITE begins, in bytes.
        offset: u64,
        /// The lowest stability that the data of a WRITE must have when the server replies.
        stable: Stable,
        /// The file data that WRITE writes, in full or, if the server accepts fewer bytes, in part.
        data: Data<'a>,
    }

    /// The result of WRITE (RFC 7530, 16.36).
    Written {
        /// The number of bytes that the server has written, at most the bytes of the WRITE.
        count: u32,
        /// The stability of the written data, at least the requested stability.
        committed: Stable,
        /// The write verifier; a verifier that differs from an earlier reply's means that unstable data may be lost.
        verifier: [u8; 8] = "writeverf",
    }

    /// Arguments and result of BIND_CONN_TO_SESSION (RFC 8881, 18.34).
    BindArgs {
        /// The session whose calls or callbacks the connection carries.
        session: SessionId = "sessid",
        /// The channels for which the connection is used, such as [`FORE_OR_BOTH`].
        direction: u32 = "dir",
        /// Whether the connection is used in RDMA mode; `false` for TCP.
        rdma: bool = "use_conn_in_rdma_mode",
    }
}

/// The value `CDFC4_FORE_OR_BOTH` of [`BindArgs::direction`]: calls, and callbacks if the server agrees (RFC 8881,
/// 18.34). A connection that has carried calls cannot be bound for callbacks alone.
pub const FORE_OR_BOTH: u32 = 3;

/// The bit `CDFS4_BACK` in the result of BIND_CONN_TO_SESSION, also part of `CDFS4_BOTH`: the connection carries
/// callbacks (RFC 8881, 18.34).
pub const BACK: u32 = 2;

/// The type of an object that CREATE creates, `createtype4` (RFC 7530, 16.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateType<'a> {
    /// CREATE creates a symbolic link: the path to which the link points.
    Link(Text<'a>),
    /// CREATE creates a block or character device: type, major number and minor number.
    Device(FileType, u32, u32),
    /// CREATE creates a directory, socket or named pipe; the server refuses other types with `NFS4ERR_BADTYPE`.
    Other(FileType),
}

impl Encode for CreateType<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Link(text) => (FileType::Link, text).encode(out),
            Self::Device(kind, major, minor) => (kind, major, minor).encode(out),
            Self::Other(kind) => kind.encode(out),
        }
    }
}

impl<'a> Decode<'a> for CreateType<'a> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        Ok(match from.get()? {
            FileType::Link => Self::Link(from.get()?),
            kind @ (FileType::Block | FileType::Character) => {
                Self::Device(kind, from.get()?, from.get()?)
            }
            kind => Self::Other(kind),
        })
    }
}

/// A part of a directory, `READDIR4resok` (RFC 7530, 16.24). Decoding a part checks the entries, and
/// [`Listing::entries`] decodes the entries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The cookie verifier, which a client returns in the next READDIR together with a cookie.
    pub verifier: [u8; 8],
    /// Whether no entries follow the returned entries in the directory.
    pub eof: bool,
    entries: &'a [u8],
}

impl<'a> Listing<'a> {
    /// Decodes the directory entries of this READDIR reply, in the server's order.
    pub fn entries(&self) -> impl Iterator<Item = ListEntry<'a>> + use<'a> {
        let mut from = Decoder::new(self.entries);
        std::iter::from_fn(move || match from.rest() {
            [] => None,
            _ => from.get().expect("the entries have been checked"),
        })
    }

    /// Creates the result of a READDIR from directory entries; `bytes` receives the encoded entries.
    #[must_use]
    pub fn new(
        verifier: [u8; 8],
        entries: &[ListEntry<'_>],
        eof: bool,
        bytes: &'a mut Vec<u8>,
    ) -> Self {
        entries.iter().for_each(|entry| (true, entry).encode(bytes));
        Self {
            verifier,
            eof,
            entries: bytes,
        }
    }
}

impl Encode for Listing<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.verifier.encode(out);
        out.extend_from_slice(self.entries);
        (false, self.eof).encode(out);
    }
}

impl<'a> Decode<'a> for Listing<'a> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        let verifier = from.field("cookieverf")?;
        let all = from.rest();
        loop {
            let taken = all.len() - from.rest().len();
            if from.field::<Option<ListEntry<'a>>>("entries")?.is_none() {
                return Ok(Self {
                    verifier,
                    eof: from.field("eof")?,
                    entries: &all[..taken],
                });
            }
        }
    }
}

/// Decodes the operation number and the status at the beginning of an operation's result; `NoSuchChoice` for the number
/// of another operation.
pub(super) fn status_of<O: Operation>(from: &mut Decoder<'_>) -> Result<Status, XdrError> {
    let op: Op = from.get()?;
    if op != O::OP && op != Op::Illegal {
        return Err(XdrError::NoSuchChoice(op as u32));
    }
    from.get()
}
