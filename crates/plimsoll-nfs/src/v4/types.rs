//! The data types of NFS version 4 (RFC 7530, 2 and RFC 8881, 3).

pub use crate::common::{FileType, Stable, Text};

use crate::common::{FileHandle, unix_errno};
use crate::xdr::{choices, named_choices, structures};
use rustix::io::Errno;

/// A file handle, `nfs_fh4`, of at most `NFS4_FHSIZE` bytes (RFC 7530, 2.1).
pub type Handle = FileHandle<128>;

/// An opaque name of a client, open owner or lock owner, of at most `NFS4_OPAQUE_LIMIT` bytes (RFC 7530, 2.2.12 to
/// 2.2.14).
pub type Opaque<'a> = Text<'a, 1024>;

/// Data of a file (RFC 7530, 16.23); only the size of the message limits the data.
pub type Data<'a> = Text<'a, { u32::MAX }>;

/// The identifier of a session, `sessionid4` (RFC 8881, 3.2).
pub type SessionId = [u8; 16];

named_choices! {
    /// The outcome of an operation, `nfsstat4` (RFC 7530, 13.1 and RFC 8881, 15.1).
    Status {
        Ok = 0 "NFS4_OK" "success",
        Perm = 1 "NFS4ERR_PERM" "not the owner",
        NoEnt = 2 "NFS4ERR_NOENT" "no such file or directory",
        Io = 5 "NFS4ERR_IO" "a hard error of the storage",
        NxIo = 6 "NFS4ERR_NXIO" "no such device",
        Access = 13 "NFS4ERR_ACCESS" "permission denied",
        Exist = 17 "NFS4ERR_EXIST" "the file exists",
        XDev = 18 "NFS4ERR_XDEV" "a hard link across file systems",
        NotDir = 20 "NFS4ERR_NOTDIR" "not a directory",
        IsDir = 21 "NFS4ERR_ISDIR" "a directory",
        Inval = 22 "NFS4ERR_INVAL" "an invalid argument",
        FBig = 27 "NFS4ERR_FBIG" "the file would be too large",
        NoSpc = 28 "NFS4ERR_NOSPC" "no space left",
        RoFs = 30 "NFS4ERR_ROFS" "a read-only file system",
        MLink = 31 "NFS4ERR_MLINK" "too many hard links",
        NameTooLong = 63 "NFS4ERR_NAMETOOLONG" "the name is too long",
        NotEmpty = 66 "NFS4ERR_NOTEMPTY" "the directory is not empty",
        DQuot = 69 "NFS4ERR_DQUOT" "the quota is exceeded",
        Stale = 70 "NFS4ERR_STALE" "the file no longer exists",
        BadHandle = 10001 "NFS4ERR_BADHANDLE" "the handle is not valid",
        BadCookie = 10003 "NFS4ERR_BAD_COOKIE" "the cookie of a READDIR is stale",
        NotSupp = 10004 "NFS4ERR_NOTSUPP" "not supported",
        TooSmall = 10005 "NFS4ERR_TOOSMALL" "the buffer is too small",
        ServerFault = 10006 "NFS4ERR_SERVERFAULT" "a server error without a status",
        BadType = 10007 "NFS4ERR_BADTYPE" "objects of this type are not supported",
        Delay = 10008 "NFS4ERR_DELAY" "the client should retry later",
        Same = 10009 "NFS4ERR_SAME" "the attributes are the same",
        Denied = 10010 "NFS4ERR_DENIED" "another owner has the lock",
        Expired = 10011 "NFS4ERR_EXPIRED" "the lease has expired",
        Locked = 10012 "NFS4ERR_LOCKED" "the file is locked",
        Grace = 10013 "NFS4ERR_GRACE" "clients may still reclaim their state",
        FhExpired = 10014 "NFS4ERR_FHEXPIRED" "the handle has expired",
        ShareDenied = 10015 "NFS4ERR_SHARE_DENIED" "another open's share reservation conflicts",
        WrongSec = 10016 "NFS4ERR_WRONGSEC" "the security flavour is wrong",
        ClidInUse = 10017 "NFS4ERR_CLID_INUSE" "another client uses the name",
        Resource = 10018 "NFS4ERR_RESOURCE" "the server lacks a resource",
        Moved = 10019 "NFS4ERR_MOVED" "the file system is on another server",
        NoFileHandle = 10020 "NFS4ERR_NOFILEHANDLE" "there is no current file handle",
        MinorVersMismatch = 10021 "NFS4ERR_MINOR_VERS_MISMATCH" "an unsupported minor version",
        StaleClientId = 10022 "NFS4ERR_STALE_CLIENTID" "the client id predates a restart",
        StaleStateId = 10023 "NFS4ERR_STALE_STATEID" "the stateid predates a restart",
        OldStateId = 10024 "NFS4ERR_OLD_STATEID" "there is a newer stateid",
        BadStateId = 10025 "NFS4ERR_BAD_STATEID" "the stateid is not valid",
        BadSeqId = 10026 "NFS4ERR_BAD_SEQID" "the owner's seqid is not the next",
        NotSame = 10027 "NFS4ERR_NOT_SAME" "the attributes are not the same",
        LockRange = 10028 "NFS4ERR_LOCK_RANGE" "ranges of locks may not overlap",
        SymLink = 10029 "NFS4ERR_SYMLINK" "a symbolic link",
        RestoreFh = 10030 "NFS4ERR_RESTOREFH" "there is no saved file handle",
        LeaseMoved = 10031 "NFS4ERR_LEASE_MOVED" "a lease was moved to another server",
        AttrNotSupp = 10032 "NFS4ERR_ATTRNOTSUPP" "the attribute is not supported",
        NoGrace = 10033 "NFS4ERR_NO_GRACE" "the grace period is over",
        ReclaimBad = 10034 "NFS4ERR_RECLAIM_BAD" "the reclaimed state did not exist",
        ReclaimConflict = 10035 "NFS4ERR_RECLAIM_CONFLICT" "another client has the state",
        BadXdr = 10036 "NFS4ERR_BADXDR" "the arguments cannot be decoded",
        LocksHeld = 10037 "NFS4ERR_LOCKS_HELD" "the file is still locked",
        OpenMode = 10038 "NFS4ERR_OPENMODE" "the file is not open for this",
        BadOwner = 10039 "NFS4ERR_BADOWNER" "the owner is not valid",
        BadChar = 10040 "NFS4ERR_BADCHAR" "an invalid character",
        BadName = 10041 "NFS4ERR_BADNAME" "an invalid name",
        BadRange = 10042 "NFS4ERR_BAD_RANGE" "a range that cannot be locked",
        LockNotSupp = 10043 "NFS4ERR_LOCK_NOTSUPP" "locks of this kind are not supported",
        OpIllegal = 10044 "NFS4ERR_OP_ILLEGAL" "there is no such operation",
        Deadlock = 10045 "NFS4ERR_DEADLOCK" "waiting for the lock would never end",
        FileOpen = 10046 "NFS4ERR_FILE_OPEN" "the file is open",
        AdminRevoked = 10047 "NFS4ERR_ADMIN_REVOKED" "the administrator revoked the state",
        CbPathDown = 10048 "NFS4ERR_CB_PATH_DOWN" "the server cannot call the client back",
        BadIoMode = 10049 "NFS4ERR_BADIOMODE" "an invalid I/O mode of a layout",
        BadLayout = 10050 "NFS4ERR_BADLAYOUT" "an invalid layout",
        BadSessionDigest = 10051 "NFS4ERR_BAD_SESSION_DIGEST" "a wrong digest",
        BadSession = 10052 "NFS4ERR_BADSESSION" "the session does not exist",
        BadSlot = 10053 "NFS4ERR_BADSLOT" "the slot does not exist",
        CompleteAlready = 10054 "NFS4ERR_COMPLETE_ALREADY" "sent before",
        ConnNotBound = 10055 "NFS4ERR_CONN_NOT_BOUND_TO_SESSION" "not of this session",
        DelegAlreadyWanted = 10056 "NFS4ERR_DELEG_ALREADY_WANTED" "requested before",
        BackChanBusy = 10057 "NFS4ERR_BACK_CHAN_BUSY" "callbacks are in flight",
        LayoutTryLater = 10058 "NFS4ERR_LAYOUTTRYLATER" "the layout is not available yet",
        LayoutUnavailable = 10059 "NFS4ERR_LAYOUTUNAVAILABLE" "there is no layout",
        NoMatchingLayout = 10060 "NFS4ERR_NOMATCHING_LAYOUT" "no layout of this kind",
        RecallConflict = 10061 "NFS4ERR_RECALLCONFLICT" "a recall is in progress",
        UnknownLayoutType = 10062 "NFS4ERR_UNKNOWN_LAYOUTTYPE" "an unknown type of layout",
        SeqMisordered = 10063 "NFS4ERR_SEQ_MISORDERED" "the slot's seqid is not the next",
        SequencePos = 10064 "NFS4ERR_SEQUENCE_POS" "SEQUENCE must be first",
        ReqTooBig = 10065 "NFS4ERR_REQ_TOO_BIG" "the request is too long for the session",
        RepTooBig = 10066 "NFS4ERR_REP_TOO_BIG" "the reply is too long for the session",
        RepTooBigToCache = 10067 "NFS4ERR_REP_TOO_BIG_TO_CACHE" "the reply is too long to cache",
        RetryUncachedRep = 10068 "NFS4ERR_RETRY_UNCACHED_REP" "the reply was not cached",
        UnsafeCompound = 10069 "NFS4ERR_UNSAFE_COMPOUND" "the compound is not safe",
        TooManyOps = 10070 "NFS4ERR_TOO_MANY_OPS" "the compound has too many operations",
        OpNotInSession = 10071 "NFS4ERR_OP_NOT_IN_SESSION" "the operation needs a session",
        HashAlgUnsupp = 10072 "NFS4ERR_HASH_ALG_UNSUPP" "the hash is not supported",
        ClientIdBusy = 10074 "NFS4ERR_CLIENTID_BUSY" "the client id still has state",
        PnfsIoHole = 10075 "NFS4ERR_PNFS_IO_HOLE" "a hole of a striped file",
        SeqFalseRetry = 10076 "NFS4ERR_SEQ_FALSE_RETRY" "not the original request",
        BadHighSlot = 10077 "NFS4ERR_BAD_HIGH_SLOT" "the highest slot does not exist",
        DeadSession = 10078 "NFS4ERR_DEADSESSION" "the client no longer exists",
        EncrAlgUnsupp = 10079 "NFS4ERR_ENCR_ALG_UNSUPP" "the cipher is not supported",
        PnfsNoLayout = 10080 "NFS4ERR_PNFS_NO_LAYOUT" "I/O without a layout",
        NotOnlyOp = 10081 "NFS4ERR_NOT_ONLY_OP" "the operation must be alone",
        WrongCred = 10082 "NFS4ERR_WRONG_CRED" "other credentials than before",
        WrongType = 10083 "NFS4ERR_WRONG_TYPE" "the object is of another type",
        DirDelegUnavail = 10084 "NFS4ERR_DIRDELEG_UNAVAIL" "not available",
        RejectDeleg = 10085 "NFS4ERR_REJECT_DELEG" "the client does not want it",
        ReturnConflict = 10086 "NFS4ERR_RETURNCONFLICT" "a return is in progress",
        DelegRevoked = 10087 "NFS4ERR_DELEG_REVOKED" "the delegation was revoked",
    }
}

/// The base of error numbers for statuses without an equivalent in the operating system; the error number is
/// `ERRNO_BASE` + status - 10000. The Linux kernel's own numbers end at 531.
const ERRNO_BASE: i32 = 1000;

impl Status {
    /// The closest error number of the operating system (RFC 7530, 13.1). A status without an
    /// equivalent gets a number of its own, which [`Status::of_errno`] converts back.
    #[must_use]
    pub fn errno(self) -> Errno {
        match self {
            Self::FhExpired => Errno::STALE,
            Self::SymLink => Errno::LOOP,
            Self::Denied | Self::Locked => Errno::AGAIN,
            Self::Deadlock => Errno::DEADLK,
            other => unix_errno(other as u32)
                .unwrap_or_else(|| Errno::from_raw_os_error(ERRNO_BASE + (other as i32 - 10_000))),
        }
    }

    /// The status to which [`Status::errno`] gives the error number `e` of its own; `None` for
    /// other error numbers.
    #[must_use]
    pub fn of_errno(e: Errno) -> Option<Self> {
        let above = u32::try_from(e.raw_os_error() - ERRNO_BASE).ok()?;
        Self::of(10_000 + above).filter(|s| s.errno() == e)
    }

    /// A short explanation for the user.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Delay | Self::Grace => "The server requests a later retry",
            Self::BadHandle => "The server takes the handle for none",
            Self::BadCookie => "The server cannot resume the listing",
            Self::ServerFault => "The server failed",
            Self::Expired => "The lease has expired",
            Self::StaleClientId | Self::StaleStateId | Self::BadSession | Self::DeadSession => {
                "The server has lost the client's state"
            }
            Self::BadStateId | Self::OldStateId | Self::AdminRevoked | Self::DelegRevoked => {
                "The server does not know the file as open"
            }
            Self::ShareDenied => "Another open's share reservation conflicts",
            Self::Resource => "The server lacks a resource",
            _ => "The server refuses it",
        }
    }
}

choices! {
    /// The kind of a byte-range lock, `nfs_lock_type4` (RFC 7530, 16.10).
    LockType {
        /// A shared lock; a client that is denied the lock does not ask again.
        Read = 1,
        /// An exclusive lock; a client that is denied the lock does not ask again.
        Write = 2,
        /// A shared lock for which a denied client will ask again (RFC 7530, 9.4).
        ReadWait = 3,
        /// An exclusive lock for which a denied client will ask again (RFC 7530, 9.4).
        WriteWait = 4,
    }
}

structures! {
    /// An instant, `nfstime4`: seconds since 1970, as a number of 64 bits with a sign, and nanoseconds (RFC 7530,
    /// 2.2.1).
    Time {
        /// Whole seconds of the instant since the beginning of 1970, UTC, as the two's complement of a signed number.
        seconds: u64,
        /// Nanoseconds of the instant after the whole second, 0 to 999,999,999.
        nanoseconds: u32,
    }

    /// The identifier of a file system on its server, `fsid4` (RFC 7530, 2.2.5).
    FsId {
        /// The major part of the file system's identifier; two file systems of a server differ in at least one part.
        major: u64,
        /// The minor part of the file system's identifier; two file systems of a server differ in at least one part.
        minor: u64,
    }

    /// The change counter of a directory before and after an operation, `change_info4` (RFC 7530, 2.2.9).
    ChangeInfo {
        /// Whether the server read `before` and `after` atomically with the operation, so that no other client's change
        /// lies between the two.
        atomic: bool,
        /// The directory's `change` attribute before the operation.
        before: u64,
        /// The directory's `change` attribute after the operation.
        after: u64,
    }

    /// The identifier of an open, lock or delegation, `stateid4` (RFC 7530, 9.1.4).
    StateId {
        /// The version number of the open or of the locks, which the server raises at each change; on 4.1, 0 in a call
        /// selects the newest version.
        seqid: u32,
        /// The server's opaque identifier of the open, lock or delegation.
        other: [u8; 12],
    }

    /// An open owner or lock owner of a client, `open_owner4` and `lock_owner4` (RFC 7530, 2.2.13 and 2.2.14).
    Owner<'a> {
        /// The client id of the owner's client; ignored by 4.1 servers.
        client: u64,
        /// The name that distinguishes the open owner or lock owner from all other owners of the client.
        name: Opaque<'a>,
    }
}

impl StateId {
    /// The anonymous stateid (RFC 7530, 9.1.4.3), for SETATTR of a file that is not open.
    pub const ANONYMOUS: Self = Self {
        seqid: 0,
        other: [0; 12],
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decoder, XdrError, put_opaque};

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
