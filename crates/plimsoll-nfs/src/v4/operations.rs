//! The operations of NFS version 4 on files and names (RFC 7530, 16): their numbers, arguments and
//! results. Those on state are in [`state`](super::state).

use super::attributes::{Attributes, Bitmap};
use super::types::{
    ChangeInfo, Data, FileType, Handle, SessionId, Stable, StateId, Status, Text, named,
};
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, choices, structures};
use std::fmt;

/// Number of the program (RFC 7530, 3.1).
pub const PROGRAM: u32 = 100_003;

/// Version of it (RFC 7530, 3.1).
pub const VERSION: u32 = 4;

/// The procedure that does nothing (RFC 7530, 15.1).
pub const NULL: u32 = 0;

/// The procedure that does all else (RFC 7530, 15.2).
pub const COMPOUND: u32 = 1;

named! {
    /// The operations that are spoken, `nfs_opnum4` (RFC 7530, 15.2 and RFC 8881, 17).
    Op {
        /// What one may do (16.1).
        Access = 3 "ACCESS",
        /// Closing (16.2).
        Close = 4 "CLOSE",
        /// Putting written data on stable storage (16.3).
        Commit = 5 "COMMIT",
        /// Making what is no file (16.4).
        Create = 6 "CREATE",
        /// Giving a delegation back (16.6).
        DelegReturn = 8 "DELEGRETURN",
        /// Attributes (16.7).
        GetAttr = 9 "GETATTR",
        /// The current handle (16.8).
        GetFh = 10 "GETFH",
        /// Making a hard link (16.9).
        Link = 11 "LINK",
        /// Locking a range (16.10).
        Lock = 12 "LOCK",
        /// Unlocking a range (16.12).
        LockU = 14 "LOCKU",
        /// Going to a name (16.13).
        Lookup = 15 "LOOKUP",
        /// Going to the directory above (16.14).
        LookupP = 16 "LOOKUPP",
        /// Going on if attributes are not these (16.15).
        NVerify = 17 "NVERIFY",
        /// Opening or making a file (16.16).
        Open = 18 "OPEN",
        /// Confirming an owner (16.18).
        OpenConfirm = 20 "OPEN_CONFIRM",
        /// Opening for less (16.19).
        OpenDowngrade = 21 "OPEN_DOWNGRADE",
        /// Going to a handle (16.20).
        PutFh = 22 "PUTFH",
        /// Going to the root (16.22).
        PutRootFh = 24 "PUTROOTFH",
        /// Reading (16.23).
        Read = 25 "READ",
        /// Listing a directory (16.24).
        ReadDir = 26 "READDIR",
        /// What a symbolic link says (16.25).
        ReadLink = 27 "READLINK",
        /// Removing (16.26).
        Remove = 28 "REMOVE",
        /// Renaming (16.27).
        Rename = 29 "RENAME",
        /// Renewing the lease (16.28).
        Renew = 30 "RENEW",
        /// Going back to the saved handle (16.29).
        RestoreFh = 31 "RESTOREFH",
        /// Saving the current handle (16.30).
        SaveFh = 32 "SAVEFH",
        /// Setting attributes (16.32).
        SetAttr = 34 "SETATTR",
        /// Saying who the client is (16.33).
        SetClientId = 35 "SETCLIENTID",
        /// Confirming it (16.34).
        SetClientIdConfirm = 36 "SETCLIENTID_CONFIRM",
        /// Going on if attributes are these (16.35).
        Verify = 37 "VERIFY",
        /// Writing (16.36).
        Write = 38 "WRITE",
        /// Forgetting an owner of locks (16.37).
        ReleaseLockOwner = 39 "RELEASE_LOCKOWNER",
        /// Tying a connection to a session (RFC 8881, 18.34).
        BindConnToSession = 41 "BIND_CONN_TO_SESSION",
        /// Saying who the client is (RFC 8881, 18.35).
        ExchangeId = 42 "EXCHANGE_ID",
        /// Making a session (RFC 8881, 18.36).
        CreateSession = 43 "CREATE_SESSION",
        /// Ending a session (RFC 8881, 18.37).
        DestroySession = 44 "DESTROY_SESSION",
        /// The place of a compound in a session (RFC 8881, 18.46).
        Sequence = 53 "SEQUENCE",
        /// Forgetting a client (RFC 8881, 18.50).
        DestroyClientId = 57 "DESTROY_CLIENTID",
        /// Nothing more will be reclaimed (RFC 8881, 18.51).
        ReclaimComplete = 58 "RECLAIM_COMPLETE",
        /// What stands for an operation that is none (16.39).
        Illegal = 10044 "ILLEGAL",
    }
}

/// An operation (RFC 7530, 15.2): what it takes, and what it gives when it succeeds.
pub trait Operation {
    /// Which one it is.
    const OP: Op;
    /// Its arguments.
    type Args<'a>: Encode + Decode<'a>;
    /// What it gives when it succeeds.
    type ResOk<'a>: Encode + Decode<'a>;
}

macro_rules! operations {
    ($($(#[$about:meta])* $name:ident($args:ty) -> $done:ty;)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl Operation for $name {
            const OP: Op = Op::$name;
            type Args<'a> = $args;
            type ResOk<'a> = $done;
        }
    )*};
}

pub(super) use operations;

operations! {
    /// ACCESS (RFC 7530, 16.1): bits of [`access`].
    Access(u32) -> Accessible;
    /// COMMIT (RFC 7530, 16.3): what is given is the write verifier.
    Commit(Range) -> [u8; 8];
    /// CREATE (RFC 7530, 16.4).
    Create(CreateArgs<'a>) -> Created;
    /// GETATTR (RFC 7530, 16.7).
    GetAttr(Bitmap) -> Attributes;
    /// GETFH (RFC 7530, 16.8).
    GetFh(()) -> Handle;
    /// LINK (RFC 7530, 16.9): the saved object into the current directory.
    Link(Text<'a>) -> ChangeInfo;
    /// LOOKUP (RFC 7530, 16.13).
    Lookup(Text<'a>) -> ();
    /// LOOKUPP (RFC 7530, 16.14).
    LookupP(()) -> ();
    /// NVERIFY (RFC 7530, 16.15).
    NVerify(Attributes) -> ();
    /// PUTFH (RFC 7530, 16.20).
    PutFh(Handle) -> ();
    /// PUTROOTFH (RFC 7530, 16.22).
    PutRootFh(()) -> ();
    /// READ (RFC 7530, 16.23).
    Read(ReadArgs) -> ReadDone<'a>;
    /// READDIR (RFC 7530, 16.24).
    ReadDir(ReadDirArgs) -> Listing<'a>;
    /// READLINK (RFC 7530, 16.25).
    ReadLink(()) -> Text<'a>;
    /// REMOVE (RFC 7530, 16.26).
    Remove(Text<'a>) -> ChangeInfo;
    /// RENAME (RFC 7530, 16.27): from the saved directory to the current one.
    Rename(RenameArgs<'a>) -> Renamed;
    /// RESTOREFH (RFC 7530, 16.29).
    RestoreFh(()) -> ();
    /// SAVEFH (RFC 7530, 16.30).
    SaveFh(()) -> ();
    /// SETATTR (RFC 7530, 16.32).
    SetAttr(SetAttrArgs) -> Bitmap;
    /// VERIFY (RFC 7530, 16.35).
    Verify(Attributes) -> ();
    /// WRITE (RFC 7530, 16.36).
    Write(WriteArgs<'a>) -> Written;
    /// BIND_CONN_TO_SESSION (RFC 8881, 18.34).
    BindConnToSession(BindArgs) -> BindArgs;
}

/// Bits of ACCESS (RFC 7530, 16.1).
pub mod access {
    /// Reading a file or a directory (RFC 7530, 16.1).
    pub const READ: u32 = 1;
    /// Looking names up (RFC 7530, 16.1).
    pub const LOOKUP: u32 = 2;
    /// Changing what is there (RFC 7530, 16.1).
    pub const MODIFY: u32 = 4;
    /// Writing what is not there yet, and adding names (RFC 7530, 16.1).
    pub const EXTEND: u32 = 8;
}

structures! {
    /// What ACCESS gives (RFC 7530, 16.1).
    Accessible {
        /// What the server can tell.
        supported: u32,
        /// Of this, what may be done.
        granted: u32 = "access",
    }

    /// A part of a file (RFC 7530, 16.3).
    Range {
        /// Where it begins.
        offset: u64,
        /// Bytes; 0 for all to the end.
        count: u32,
    }

    /// Arguments of CREATE (RFC 7530, 16.4).
    CreateArgs<'a> {
        /// What is made.
        what: CreateType<'a>,
        /// Its name.
        name: Text<'a>,
        /// Its attributes.
        set: Attributes,
    }

    /// What CREATE gives (RFC 7530, 16.4).
    Created {
        /// How the directory changed.
        change: ChangeInfo = "cinfo",
        /// Attributes that were set.
        set: Bitmap = "attrset",
    }

    /// Arguments of READ (RFC 7530, 16.23).
    ReadArgs {
        /// The open, lock or delegation.
        state: StateId,
        /// Where it begins.
        offset: u64,
        /// Bytes.
        count: u32,
    }

    /// What READ gives (RFC 7530, 16.23).
    ReadDone<'a> {
        /// The file ends with it.
        eof: bool,
        /// The bytes.
        data: Data<'a>,
    }

    /// Arguments of READDIR (RFC 7530, 16.24).
    ReadDirArgs {
        /// Where to go on; 0 is the beginning.
        cookie: u64,
        /// What the server said with the last part.
        verifier: [u8; 8],
        /// Bytes of names and cookies.
        dir_count: u32,
        /// Bytes of everything.
        max_count: u32,
        /// Attributes of each entry.
        attributes: Bitmap,
    }

    /// An entry of a directory, `entry4` (RFC 7530, 16.24).
    ListEntry<'a> {
        /// Where the next one is.
        cookie: u64,
        /// Its name.
        name: Text<'a>,
        /// The attributes that were asked for.
        attributes: Attributes = "attrs",
    }

    /// Arguments of RENAME (RFC 7530, 16.27).
    RenameArgs<'a> {
        /// The name in the saved directory.
        from: Text<'a>,
        /// The name in the current one.
        to: Text<'a>,
    }

    /// What RENAME gives (RFC 7530, 16.27).
    Renamed {
        /// How the saved directory changed.
        from: ChangeInfo = "source_cinfo",
        /// How the current one changed.
        to: ChangeInfo = "target_cinfo",
    }

    /// Arguments of SETATTR (RFC 7530, 16.32).
    SetAttrArgs {
        /// The open, for the size of an open file; else [`StateId::ANONYMOUS`].
        state: StateId,
        /// What to set.
        set: Attributes,
    }

    /// Arguments of WRITE (RFC 7530, 16.36).
    WriteArgs<'a> {
        /// The open, lock or delegation.
        state: StateId,
        /// Where it begins.
        offset: u64,
        /// How stable it has to be.
        stable: Stable,
        /// The bytes.
        data: Data<'a>,
    }

    /// What WRITE gives (RFC 7530, 16.36).
    Written {
        /// Bytes that were written.
        count: u32,
        /// How stable they are.
        committed: Stable,
        /// Changes when the server is started anew.
        verifier: [u8; 8] = "writeverf",
    }

    /// Arguments of BIND_CONN_TO_SESSION, and what it gives (RFC 8881, 18.34).
    BindArgs {
        /// The session.
        session: SessionId = "sessid",
        /// What for: 1 calls, 2 callbacks, 3 both, 7 calls or both.
        direction: u32 = "dir",
        /// Over RDMA.
        rdma: bool = "use_conn_in_rdma_mode",
    }
}

choices! {
    /// What a connection is for (RFC 8881, 18.34).
    Direction {
        /// Calls.
        Fore = 1,
        /// Callbacks.
        Back = 2,
        /// Both.
        Both = 3,
        /// Calls, and callbacks if the server will.
        ForeOrBoth = 7,
    }
}

/// What CREATE makes, `createtype4` (RFC 7530, 16.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateType<'a> {
    /// A symbolic link that says this.
    Link(Text<'a>),
    /// A block or character device of these numbers.
    Device(FileType, u32, u32),
    /// What needs no more said.
    Other(FileType),
}

impl Encode for CreateType<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Link(text) => {
                FileType::Link.encode(out);
                text.encode(out);
            }
            Self::Device(kind, major, minor) => {
                kind.encode(out);
                major.encode(out);
                minor.encode(out);
            }
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

/// A part of a directory, `READDIR4resok` (RFC 7530, 16.24). Entries are decoded when they are
/// looked at; that they can be was made sure of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listing<'a> {
    /// What to say with the next part.
    pub verifier: [u8; 8],
    /// Nothing follows.
    pub eof: bool,
    entries: &'a [u8],
}

impl<'a> Listing<'a> {
    /// The entries.
    pub fn entries(&self) -> impl Iterator<Item = ListEntry<'a>> + use<'a> {
        let mut from = Decoder::new(self.entries);
        std::iter::from_fn(move || from.get().ok().flatten())
    }

    /// A part of these entries, encoded one after the other into `bytes`.
    #[must_use]
    pub fn new(
        verifier: [u8; 8],
        entries: &[ListEntry<'_>],
        eof: bool,
        bytes: &'a mut Vec<u8>,
    ) -> Self {
        for entry in entries {
            true.encode(bytes);
            entry.encode(bytes);
        }
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
        false.encode(out);
        self.eof.encode(out);
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

/// What an operation of a compound answers: its status, and what it gives if that is good.
pub(super) fn status_of<O: Operation>(from: &mut Decoder<'_>) -> Result<Status, XdrError> {
    let op: Op = from.get()?;
    if op != O::OP && op != Op::Illegal {
        return Err(XdrError::NoSuchChoice(op as u32));
    }
    from.get()
}
