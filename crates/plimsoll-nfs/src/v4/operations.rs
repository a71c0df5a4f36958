//! The operations of NFS version 4 (RFC 7530, 16 and RFC 8881, 18), and the arguments and results
//! of operations on files and names. Operations on state are in [`state`](super::state).

pub use crate::common::access;

use super::attributes::{Attributes, Bitmap};
use super::state::*;
use super::types::{
    ChangeInfo, Data, FileType, Handle, Owner, SessionId, Stable, StateId, Status, Text,
};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, named_choices, structures};

/// The program number (RFC 7530, 3.1).
pub const PROGRAM: u32 = 100_003;

/// The version of the program (RFC 7530, 3.1).
pub const VERSION: u32 = 4;

/// The procedure that does nothing (RFC 7530, 15.1).
pub const NULL: u32 = 0;

/// The procedure that executes operations (RFC 7530, 15.2).
pub const COMPOUND: u32 = 1;

/// An operation (RFC 7530, 15.2): its arguments, and its result on success.
pub trait Operation {
    /// The number.
    const OP: Op;
    /// The arguments.
    type Args<'a>: Encode + Decode<'a>;
    /// The result on success.
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

        /// Skips the arguments of an operation.
        pub(super) fn skip_args<'a>(op: Op, from: &mut Decoder<'a>) -> Result<(), XdrError> {
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
    Illegal = 10044 "ILLEGAL" "RFC 7530, 16.39";
}

structures! {
    /// The result of ACCESS (RFC 7530, 16.1).
    Accessible {
        /// The bits that the server can check.
        supported: u32,
        /// The granted bits, a subset of `supported`.
        granted: u32 = "access",
    }

    /// A range of a file (RFC 7530, 16.3).
    Range {
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes; 0 for all bytes up to the end of the file.
        count: u32,
    }

    /// Arguments of CREATE (RFC 7530, 16.4).
    CreateArgs<'a> {
        /// The type of the object.
        what: CreateType<'a>,
        /// The name.
        name: Text<'a>,
        /// The attributes.
        set: Attributes,
    }

    /// The result of CREATE (RFC 7530, 16.4).
    Created {
        /// The change of the directory.
        change: ChangeInfo = "cinfo",
        /// The attributes that were set.
        set: Bitmap = "attrset",
    }

    /// Arguments of READ (RFC 7530, 16.23).
    ReadArgs {
        /// The stateid of the open, lock or delegation.
        state: StateId,
        /// The offset of the first byte.
        offset: u64,
        /// The number of bytes.
        count: u32,
    }

    /// The result of READ (RFC 7530, 16.23).
    ReadDone<'a> {
        /// Whether the file ends after the bytes.
        eof: bool,
        /// The bytes.
        data: Data<'a>,
    }

    /// Arguments of READDIR (RFC 7530, 16.24).
    ReadDirArgs {
        /// The cookie of the entry to resume after; 0 for the beginning.
        cookie: u64,
        /// The verifier that came with the cookie.
        verifier: [u8; 8],
        /// The maximum number of bytes of names and cookies.
        dir_count: u32,
        /// The maximum number of bytes of the result.
        max_count: u32,
        /// The attributes to return of each entry.
        attributes: Bitmap,
    }

    /// An entry of a directory, `entry4` (RFC 7530, 16.24).
    ListEntry<'a> {
        /// The position after the entry.
        cookie: u64,
        /// The name.
        name: Text<'a>,
        /// The requested attributes.
        attributes: Attributes = "attrs",
    }

    /// Arguments of RENAME (RFC 7530, 16.27).
    RenameArgs<'a> {
        /// The name in the saved directory.
        from: Text<'a>,
        /// The name in the current directory.
        to: Text<'a>,
    }

    /// The result of RENAME (RFC 7530, 16.27).
    Renamed {
        /// The change of the saved directory.
        from: ChangeInfo = "source_cinfo",
        /// The change of the current directory.
        to: ChangeInfo = "target_cinfo",
    }

    /// Arguments of SETATTR (RFC 7530, 16.32).
    SetAttrArgs {
        /// The stateid of the open, for the size of an open file; else [`StateId::ANONYMOUS`].
        state: StateId,
        /// The attributes to set.
        set: Attributes,
    }

    /// Arguments of WRITE (RFC 7530, 16.36).
    WriteArgs<'a> {
        /// The stateid of the open, lock or delegation.
        state: StateId,
        /// The offset of the first byte.
        offset: u64,
        /// The stability that the data must have.
        stable: Stable,
        /// The bytes.
        data: Data<'a>,
    }

    /// The result of WRITE (RFC 7530, 16.36).
    Written {
        /// The number of bytes written.
        count: u32,
        /// The stability that the data has.
        committed: Stable,
        /// The write verifier, which changes when the server restarts.
        verifier: [u8; 8] = "writeverf",
    }

    /// Arguments and result of BIND_CONN_TO_SESSION (RFC 8881, 18.34).
    BindArgs {
        /// The session.
        session: SessionId = "sessid",
        /// The use of the connection, such as [`FORE_OR_BOTH`].
        direction: u32 = "dir",
        /// Whether the connection uses RDMA.
        rdma: bool = "use_conn_in_rdma_mode",
    }
}

/// The value `CDFC4_FORE_OR_BOTH` of [`BindArgs::direction`]: calls, and callbacks if the server agrees (RFC 8881,
/// 18.34). A connection that has carried calls cannot be bound for callbacks alone.
pub const FORE_OR_BOTH: u32 = 3;

/// The bit of a result's direction for callbacks: `CDFS4_BACK`, which `CDFS4_BOTH` contains.
pub const BACK: u32 = 2;

/// The type of an object that CREATE creates, `createtype4` (RFC 7530, 16.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateType<'a> {
    /// A symbolic link with this target path.
    Link(Text<'a>),
    /// A block or character device with these major and minor numbers.
    Device(FileType, u32, u32),
    /// A type without additional data.
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
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(match from.get()? {
            FileType::Link => Self::Link(from.get()?),
            kind @ (FileType::Block | FileType::Character) => {
                Self::Device(kind, from.get()?, from.get()?)
            }
            kind => Self::Other(kind),
        })
    }
}

/// A part of a directory, `READDIR4resok` (RFC 7530, 16.24). Decoding the part checks the entries;
/// reading the entries decodes them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    /// The verifier, which the client returns with a cookie.
    pub verifier: [u8; 8],
    /// Whether the directory ends after the entries.
    pub eof: bool,
    entries: &'a [u8],
}

impl<'a> Listing<'a> {
    /// Decodes the entries of the part.
    pub fn entries(&self) -> impl Iterator<Item = ListEntry<'a>> + use<'a> {
        let mut from = Decoder::new(self.entries);
        std::iter::from_fn(move || match from.rest() {
            [] => None,
            _ => from.get().expect("the entries have been checked"),
        })
    }

    /// Creates a part of a directory; `bytes` receives the encoded entries.
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
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let verifier = from.get()?;
        let all = from.rest();
        loop {
            let taken = all.len() - from.rest().len();
            if from.get::<Option<ListEntry<'a>>>()?.is_none() {
                return Ok(Self {
                    verifier,
                    eof: from.get()?,
                    entries: &all[..taken],
                });
            }
        }
    }

    fn decode_traced(from: &mut Decoder<'a>, path: &mut FieldPath) -> Result<Self, XdrError> {
        let verifier = path.field("cookieverf", from)?;
        let all = from.rest();
        loop {
            let taken = all.len() - from.rest().len();
            let entry: Option<ListEntry<'a>> = path.field("entries", from)?;
            if entry.is_none() {
                return Ok(Self {
                    verifier,
                    eof: path.field("eof", from)?,
                    entries: &all[..taken],
                });
            }
        }
    }
}

/// Decodes the number and the status of an operation's result.
pub(super) fn status_of<O: Operation>(from: &mut Decoder<'_>) -> Result<Status, XdrError> {
    let op: Op = from.get()?;
    if op != O::OP && op != Op::Illegal {
        return Err(XdrError::NoSuchChoice(op as u32));
    }
    from.get()
}
