//! The data types of NFS version 4 (RFC 7530, 2 and RFC 8881, 3).

use crate::handle::FileHandle;
use crate::xdr::{Decode, Decoder, Encode, XdrError, choices, put_opaque, structures};
use rustix::io::Errno;
use std::fmt;

/// Longest file handle, in bytes (`NFS4_FHSIZE`, RFC 7530, 2.1).
pub const HANDLE_SIZE: usize = 128;

/// Longest opaque that names an owner or a client, in bytes (`NFS4_OPAQUE_LIMIT`, RFC 7530, 2.1).
pub const MAX_OPAQUE_BYTES: u32 = 1024;

/// Longest text that is taken from a message where the protocol sets no limit, in bytes (RFC 7530,
/// 2.1).
pub const MAX_TEXT_BYTES: u32 = 4096;

/// A file handle, `nfs_fh4` (RFC 7530, 2.1).
pub type Handle = FileHandle<HANDLE_SIZE>;

/// A name, an owner, or another text or opaque of at most `MOST` bytes (RFC 7530, 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a, const MOST: u32 = MAX_TEXT_BYTES>(pub &'a [u8]);

/// A name of an owner or a client (RFC 7530, 2.1).
pub type Opaque<'a> = Text<'a, MAX_OPAQUE_BYTES>;

/// Data of a file (RFC 7530, 16.23). What a message holds bounds it.
pub type Data<'a> = Text<'a, { u32::MAX }>;

impl<const MOST: u32> Encode for Text<'_, MOST> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_opaque(self.0, out);
    }
}

impl<'a, const MOST: u32> Decode<'a> for Text<'a, MOST> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(Self(from.opaque(MOST)?))
    }
}

/// Number of a session, `sessionid4` (RFC 8881, 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionId(pub [u8; 16]);

impl Encode for SessionId {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Decode<'_> for SessionId {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Ok(Self(from.fixed()?))
    }
}

/// Makes enumerations of XDR whose choices have the protocol's names.
macro_rules! named {
    ($(#[$about:meta])* $enum:ident {
        $($(#[$of:meta])* $choice:ident = $number:literal $name:literal,)*
    }) => {
        choices! {
            $(#[$about])*
            $enum { $($(#[$of])* $choice = $number,)* }
        }

        impl $enum {
            /// The protocol's name of it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$choice => $name,)*
                }
            }
        }

        impl fmt::Display for $enum {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(super) use named;

named! {
    /// What became of an operation, `nfsstat4` (RFC 7530, 13.1 and RFC 8881, 15.1).
    Status {
        /// It succeeded.
        Ok = 0 "NFS4_OK",
        /// Not the owner.
        Perm = 1 "NFS4ERR_PERM",
        /// No such file or directory.
        NoEnt = 2 "NFS4ERR_NOENT",
        /// A hard error of the storage.
        Io = 5 "NFS4ERR_IO",
        /// No such device.
        NxIo = 6 "NFS4ERR_NXIO",
        /// Permission denied.
        Access = 13 "NFS4ERR_ACCESS",
        /// The file exists.
        Exist = 17 "NFS4ERR_EXIST",
        /// A hard link across file systems.
        XDev = 18 "NFS4ERR_XDEV",
        /// Not a directory.
        NotDir = 20 "NFS4ERR_NOTDIR",
        /// A directory.
        IsDir = 21 "NFS4ERR_ISDIR",
        /// An invalid argument.
        Inval = 22 "NFS4ERR_INVAL",
        /// The file would be too large.
        FBig = 27 "NFS4ERR_FBIG",
        /// No space left.
        NoSpc = 28 "NFS4ERR_NOSPC",
        /// A read-only file system.
        RoFs = 30 "NFS4ERR_ROFS",
        /// Too many hard links.
        MLink = 31 "NFS4ERR_MLINK",
        /// The name is too long.
        NameTooLong = 63 "NFS4ERR_NAMETOOLONG",
        /// The directory is not empty.
        NotEmpty = 66 "NFS4ERR_NOTEMPTY",
        /// The quota is exceeded.
        DQuot = 69 "NFS4ERR_DQUOT",
        /// The handle is of a file that is gone.
        Stale = 70 "NFS4ERR_STALE",
        /// The handle is none.
        BadHandle = 10001 "NFS4ERR_BADHANDLE",
        /// The cookie of a READDIR is stale.
        BadCookie = 10003 "NFS4ERR_BAD_COOKIE",
        /// Not supported.
        NotSupp = 10004 "NFS4ERR_NOTSUPP",
        /// The buffer is too small.
        TooSmall = 10005 "NFS4ERR_TOOSMALL",
        /// The server failed in a way that no other status says.
        ServerFault = 10006 "NFS4ERR_SERVERFAULT",
        /// The server has no objects of this type.
        BadType = 10007 "NFS4ERR_BADTYPE",
        /// The server needs time; the client is to ask again.
        Delay = 10008 "NFS4ERR_DELAY",
        /// The attributes are the same.
        Same = 10009 "NFS4ERR_SAME",
        /// Somebody else has the lock.
        Denied = 10010 "NFS4ERR_DENIED",
        /// The lease has expired.
        Expired = 10011 "NFS4ERR_EXPIRED",
        /// The file is locked.
        Locked = 10012 "NFS4ERR_LOCKED",
        /// The server waits for clients to reclaim what they had.
        Grace = 10013 "NFS4ERR_GRACE",
        /// The handle has expired.
        FhExpired = 10014 "NFS4ERR_FHEXPIRED",
        /// Another's share reservation stands against it.
        ShareDenied = 10015 "NFS4ERR_SHARE_DENIED",
        /// The security flavour is not the right one.
        WrongSec = 10016 "NFS4ERR_WRONGSEC",
        /// Another client has the name.
        ClidInUse = 10017 "NFS4ERR_CLID_INUSE",
        /// The server is out of something.
        Resource = 10018 "NFS4ERR_RESOURCE",
        /// The file system is elsewhere.
        Moved = 10019 "NFS4ERR_MOVED",
        /// There is no current file handle.
        NoFileHandle = 10020 "NFS4ERR_NOFILEHANDLE",
        /// The server does not have the minor version.
        MinorVersMismatch = 10021 "NFS4ERR_MINOR_VERS_MISMATCH",
        /// The client id is of before the server was started.
        StaleClientId = 10022 "NFS4ERR_STALE_CLIENTID",
        /// The state id is of before the server was started.
        StaleStateId = 10023 "NFS4ERR_STALE_STATEID",
        /// There is a newer state id.
        OldStateId = 10024 "NFS4ERR_OLD_STATEID",
        /// The state id is none.
        BadStateId = 10025 "NFS4ERR_BAD_STATEID",
        /// The sequence number of the owner is not the next.
        BadSeqId = 10026 "NFS4ERR_BAD_SEQID",
        /// The attributes are not the same.
        NotSame = 10027 "NFS4ERR_NOT_SAME",
        /// Ranges of locks may not overlap.
        LockRange = 10028 "NFS4ERR_LOCK_RANGE",
        /// A symbolic link.
        SymLink = 10029 "NFS4ERR_SYMLINK",
        /// There is no saved file handle.
        RestoreFh = 10030 "NFS4ERR_RESTOREFH",
        /// A lease was moved to another server.
        LeaseMoved = 10031 "NFS4ERR_LEASE_MOVED",
        /// The attribute is not supported.
        AttrNotSupp = 10032 "NFS4ERR_ATTRNOTSUPP",
        /// The time to reclaim is over.
        NoGrace = 10033 "NFS4ERR_NO_GRACE",
        /// What is reclaimed was not there.
        ReclaimBad = 10034 "NFS4ERR_RECLAIM_BAD",
        /// Another has what is reclaimed.
        ReclaimConflict = 10035 "NFS4ERR_RECLAIM_CONFLICT",
        /// The server could not decode the arguments.
        BadXdr = 10036 "NFS4ERR_BADXDR",
        /// Locks are held still.
        LocksHeld = 10037 "NFS4ERR_LOCKS_HELD",
        /// The file was not opened for this.
        OpenMode = 10038 "NFS4ERR_OPENMODE",
        /// The owner is none.
        BadOwner = 10039 "NFS4ERR_BADOWNER",
        /// A character that is none.
        BadChar = 10040 "NFS4ERR_BADCHAR",
        /// A name that is none.
        BadName = 10041 "NFS4ERR_BADNAME",
        /// A range that cannot be locked.
        BadRange = 10042 "NFS4ERR_BAD_RANGE",
        /// Locks of this kind are not supported.
        LockNotSupp = 10043 "NFS4ERR_LOCK_NOTSUPP",
        /// There is no such operation.
        OpIllegal = 10044 "NFS4ERR_OP_ILLEGAL",
        /// Waiting for the lock would never end.
        Deadlock = 10045 "NFS4ERR_DEADLOCK",
        /// The file is open.
        FileOpen = 10046 "NFS4ERR_FILE_OPEN",
        /// The server's administrator took the state away.
        AdminRevoked = 10047 "NFS4ERR_ADMIN_REVOKED",
        /// The server cannot call the client back.
        CbPathDown = 10048 "NFS4ERR_CB_PATH_DOWN",
        /// An I/O mode of layouts that is none.
        BadIoMode = 10049 "NFS4ERR_BADIOMODE",
        /// A layout that is none.
        BadLayout = 10050 "NFS4ERR_BADLAYOUT",
        /// A digest that is wrong.
        BadSessionDigest = 10051 "NFS4ERR_BAD_SESSION_DIGEST",
        /// The session is none.
        BadSession = 10052 "NFS4ERR_BADSESSION",
        /// The slot is none.
        BadSlot = 10053 "NFS4ERR_BADSLOT",
        /// The reclaiming was said to be over before.
        CompleteAlready = 10054 "NFS4ERR_COMPLETE_ALREADY",
        /// The connection is not the session's.
        ConnNotBound = 10055 "NFS4ERR_CONN_NOT_BOUND_TO_SESSION",
        /// The delegation was asked for before.
        DelegAlreadyWanted = 10056 "NFS4ERR_DELEG_ALREADY_WANTED",
        /// Callbacks are under way.
        BackChanBusy = 10057 "NFS4ERR_BACK_CHAN_BUSY",
        /// A layout may be had later.
        LayoutTryLater = 10058 "NFS4ERR_LAYOUTTRYLATER",
        /// There is no layout.
        LayoutUnavailable = 10059 "NFS4ERR_LAYOUTUNAVAILABLE",
        /// No layout is of this kind.
        NoMatchingLayout = 10060 "NFS4ERR_NOMATCHING_LAYOUT",
        /// A recall is under way.
        RecallConflict = 10061 "NFS4ERR_RECALLCONFLICT",
        /// A type of layout that is none.
        UnknownLayoutType = 10062 "NFS4ERR_UNKNOWN_LAYOUTTYPE",
        /// The sequence number of the slot is not the next.
        SeqMisordered = 10063 "NFS4ERR_SEQ_MISORDERED",
        /// SEQUENCE has to be first.
        SequencePos = 10064 "NFS4ERR_SEQUENCE_POS",
        /// The request is too long for the session.
        ReqTooBig = 10065 "NFS4ERR_REQ_TOO_BIG",
        /// The reply is too long for the session.
        RepTooBig = 10066 "NFS4ERR_REP_TOO_BIG",
        /// The reply is too long to be kept.
        RepTooBigToCache = 10067 "NFS4ERR_REP_TOO_BIG_TO_CACHE",
        /// The reply to a call that was sent again was not kept.
        RetryUncachedRep = 10068 "NFS4ERR_RETRY_UNCACHED_REP",
        /// The compound is not safe.
        UnsafeCompound = 10069 "NFS4ERR_UNSAFE_COMPOUND",
        /// The compound has too many operations.
        TooManyOps = 10070 "NFS4ERR_TOO_MANY_OPS",
        /// The operation needs a session.
        OpNotInSession = 10071 "NFS4ERR_OP_NOT_IN_SESSION",
        /// The hash is not supported.
        HashAlgUnsupp = 10072 "NFS4ERR_HASH_ALG_UNSUPP",
        /// The client id has state still.
        ClientIdBusy = 10074 "NFS4ERR_CLIENTID_BUSY",
        /// A hole of a striped file.
        PnfsIoHole = 10075 "NFS4ERR_PNFS_IO_HOLE",
        /// What was sent again is another request.
        SeqFalseRetry = 10076 "NFS4ERR_SEQ_FALSE_RETRY",
        /// The highest slot is none.
        BadHighSlot = 10077 "NFS4ERR_BAD_HIGH_SLOT",
        /// The session is of a client that is gone.
        DeadSession = 10078 "NFS4ERR_DEADSESSION",
        /// The cipher is not supported.
        EncrAlgUnsupp = 10079 "NFS4ERR_ENCR_ALG_UNSUPP",
        /// I/O without a layout.
        PnfsNoLayout = 10080 "NFS4ERR_PNFS_NO_LAYOUT",
        /// The operation has to be alone.
        NotOnlyOp = 10081 "NFS4ERR_NOT_ONLY_OP",
        /// The credentials are not those of before.
        WrongCred = 10082 "NFS4ERR_WRONG_CRED",
        /// The object is of another type.
        WrongType = 10083 "NFS4ERR_WRONG_TYPE",
        /// There is no delegation of a directory.
        DirDelegUnavail = 10084 "NFS4ERR_DIRDELEG_UNAVAIL",
        /// The delegation is not wanted.
        RejectDeleg = 10085 "NFS4ERR_REJECT_DELEG",
        /// A return is under way.
        ReturnConflict = 10086 "NFS4ERR_RETURNCONFLICT",
        /// The delegation was taken away.
        DelegRevoked = 10087 "NFS4ERR_DELEG_REVOKED",
    }
}

/// Error numbers that stand for statuses no application knows begin here: number - `ERRNO_BASE` is
/// the status - 10000. The system's own end at 529.
const ERRNO_BASE: u16 = 1000;

impl Status {
    /// The error number of the system that says it best (RFC 7530, 13.1). Statuses without one have
    /// numbers of their own, which [`Status::of_errno`] knows.
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::Perm => Errno::PERM,
            Self::NoEnt => Errno::NOENT,
            Self::Ok | Self::Io => Errno::IO,
            Self::NxIo => Errno::NXIO,
            Self::Access => Errno::ACCESS,
            Self::Exist => Errno::EXIST,
            Self::XDev => Errno::XDEV,
            Self::NotDir => Errno::NOTDIR,
            Self::IsDir => Errno::ISDIR,
            Self::Inval => Errno::INVAL,
            Self::FBig => Errno::FBIG,
            Self::NoSpc => Errno::NOSPC,
            Self::RoFs => Errno::ROFS,
            Self::MLink => Errno::MLINK,
            Self::NameTooLong => Errno::NAMETOOLONG,
            Self::NotEmpty => Errno::NOTEMPTY,
            Self::DQuot => Errno::DQUOT,
            Self::Stale | Self::FhExpired => Errno::STALE,
            Self::NotSupp => Errno::OPNOTSUPP,
            Self::SymLink => Errno::LOOP,
            Self::Denied | Self::Locked => Errno::AGAIN,
            Self::Deadlock => Errno::DEADLK,
            other => Errno::from_raw_os_error(i32::from(ERRNO_BASE) + (other as i32 - 10_000)),
        }
    }

    /// The status that an error number of [`Status::errno`] stands for, if it stands for nothing
    /// else.
    #[must_use]
    pub fn of_errno(e: Errno) -> Option<Self> {
        let above = u32::try_from(e.raw_os_error() - i32::from(ERRNO_BASE)).ok()?;
        Self::of(10_000 + above).filter(|s| s.errno() == e)
    }

    /// What it means, in a few words.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Delay | Self::Grace => "The server asks to be asked later",
            Self::BadHandle => "The server takes the handle for none",
            Self::BadCookie => "The server cannot go on with the listing",
            Self::ServerFault => "The server failed",
            Self::Expired => "The lease has expired",
            Self::StaleClientId | Self::StaleStateId | Self::BadSession | Self::DeadSession => {
                "The server has lost the client's state"
            }
            Self::BadStateId | Self::OldStateId | Self::AdminRevoked | Self::DelegRevoked => {
                "The server does not know the file as open"
            }
            Self::ShareDenied => "Another's open stands against it",
            Self::Resource => "The server is out of something",
            _ => "The server refuses it",
        }
    }
}

choices! {
    /// What an object is, `nfs_ftype4` (RFC 7530, 2.1).
    FileType {
        /// A regular file.
        Regular = 1,
        /// A directory.
        Directory = 2,
        /// A block device.
        Block = 3,
        /// A character device.
        Character = 4,
        /// A symbolic link.
        Link = 5,
        /// A socket.
        Socket = 6,
        /// A named pipe.
        Fifo = 7,
        /// A directory of named attributes.
        AttributeDirectory = 8,
        /// A named attribute.
        NamedAttribute = 9,
    }

    /// How stable written data has to be, or is, `stable_how4` (RFC 7530, 16.36).
    Stable {
        /// It may be lost until a COMMIT.
        Unstable = 0,
        /// The data is on stable storage.
        DataSync = 1,
        /// Data and attributes are on stable storage.
        FileSync = 2,
    }

    /// Kinds of byte-range lock, `nfs_lock_type4` (RFC 7530, 2.1).
    LockType {
        /// Shared.
        Read = 1,
        /// Exclusive.
        Write = 2,
        /// Shared; the client will ask again.
        ReadWait = 3,
        /// Exclusive; the client will ask again.
        WriteWait = 4,
    }
}

structures! {
    /// An instant, `nfstime4`: seconds since 1970, as a number of 64 bits with a sign, and
    /// nanoseconds (RFC 7530, 2.1).
    Time {
        /// Whole seconds, in two's complement.
        seconds: u64,
        /// Nanoseconds above them.
        nanoseconds: u32,
    }

    /// Number of a file system, `fsid4` (RFC 7530, 2.1).
    FsId {
        /// First part.
        major: u64,
        /// Second part.
        minor: u64,
    }

    /// How a directory changed, `change_info4` (RFC 7530, 2.1).
    ChangeInfo {
        /// Nothing else came between.
        atomic: bool,
        /// Its `change` before.
        before: u64,
        /// Its `change` after.
        after: u64,
    }

    /// Number of a state: an open, a lock or a delegation, `stateid4` (RFC 7530, 9.1.4).
    StateId {
        /// Counts its changes.
        seqid: u32,
        /// What the server knows it by.
        other: Other,
    }

    /// An owner of opens or locks of a client (RFC 7530, 2.1).
    Owner<'a> {
        /// The client.
        client: u64,
        /// What the client knows it by.
        name: Opaque<'a>,
    }
}

impl StateId {
    /// That of no state (RFC 7530, 9.1.4.3): for SETATTR of what is not open.
    pub const ANONYMOUS: Self = Self {
        seqid: 0,
        other: Other([0; 12]),
    };
}

/// What a server knows a state by (RFC 7530, 9.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Other(pub [u8; 12]);

impl Encode for Other {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Decode<'_> for Other {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Ok(Self(from.fixed()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_told_apart_by_error_numbers_or_say_the_same() {
        for status in Status::ALL {
            let errno = status.errno();
            match Status::of_errno(errno) {
                Some(back) => assert_eq!(back, *status),
                None => assert!(errno.raw_os_error() < 529, "{status} is {errno:?}"),
            }
            assert!(!status.says().is_empty());
        }
        assert_eq!(Status::of_errno(Errno::NOENT), None);
        assert_eq!(Status::Expired.errno().raw_os_error(), 1011);
        assert_eq!(Status::of(10_011).unwrap().name(), "NFS4ERR_EXPIRED");
    }

    #[test]
    fn handles_are_at_most_128_bytes() {
        assert!(Handle::new(&[1; 128]).is_some());
        assert!(Handle::new(&[1; 129]).is_none());
        let mut long = Vec::new();
        put_opaque(&[1; 129], &mut long);
        assert_eq!(
            Decoder::new(&long).get::<Handle>(),
            Err(XdrError::TooLong(129))
        );
    }
}
