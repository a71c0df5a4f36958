//! The operations of NFS version 4 on state: clients, sessions, opens, locks and delegations.

mod unions;

pub use unions::*;

use super::attributes::{Attributes, Bitmap};
use super::operations::{Op, Operation, operations};
use super::types::{ChangeInfo, LockType, Opaque, Owner, SessionId, StateId, Text};
use crate::xdr::{Decode, Decoder, Encode, XdrError, structures};

operations! {
    /// CLOSE (RFC 7530, 16.2).
    Close(CloseArgs) -> StateId;
    /// DELEGRETURN (RFC 7530, 16.6).
    DelegReturn(StateId) -> ();
    /// LOCK (RFC 7530, 16.10).
    Lock(LockArgs<'a>) -> StateId;
    /// LOCKU (RFC 7530, 16.12).
    LockU(UnlockArgs) -> StateId;
    /// OPEN (RFC 7530, 16.16 and RFC 8881, 18.16).
    Open(OpenArgs<'a>) -> Opened<'a>;
    /// OPEN_CONFIRM (RFC 7530, 16.18).
    OpenConfirm(ConfirmArgs) -> StateId;
    /// OPEN_DOWNGRADE (RFC 7530, 16.19).
    OpenDowngrade(DowngradeArgs) -> StateId;
    /// RENEW (RFC 7530, 16.28).
    Renew(u64) -> ();
    /// SETCLIENTID (RFC 7530, 16.33).
    SetClientId(SetClientIdArgs<'a>) -> ClientSet;
    /// SETCLIENTID_CONFIRM (RFC 7530, 16.34).
    SetClientIdConfirm(ClientSet) -> ();
    /// RELEASE_LOCKOWNER (RFC 7530, 16.37).
    ReleaseLockOwner(Owner<'a>) -> ();
    /// EXCHANGE_ID (RFC 8881, 18.35).
    ExchangeId(ExchangeArgs<'a>) -> Exchanged<'a>;
    /// CREATE_SESSION (RFC 8881, 18.36).
    CreateSession(CreateSessionArgs) -> SessionMade;
    /// DESTROY_SESSION (RFC 8881, 18.37).
    DestroySession(SessionId) -> ();
    /// SEQUENCE (RFC 8881, 18.46).
    Sequence(SequenceArgs) -> Sequenced;
    /// DESTROY_CLIENTID (RFC 8881, 18.50).
    DestroyClientId(u64) -> ();
    /// RECLAIM_COMPLETE (RFC 8881, 18.51); `true` for the current file system only.
    ReclaimComplete(bool) -> ();
}

/// Bits of [`OpenArgs::access`] (RFC 7530, 16.16 and RFC 8881, 18.16).
pub mod share {
    /// Reading (RFC 7530, 16.16).
    pub const READ: u32 = 1;
    /// Writing (RFC 7530, 16.16).
    pub const WRITE: u32 = 2;
    /// A delegation for reading is wanted (4.1).
    pub const WANT_READ_DELEGATION: u32 = 0x100;
    /// A delegation for writing is wanted (4.1).
    pub const WANT_WRITE_DELEGATION: u32 = 0x200;
    /// No delegation is wanted (4.1).
    pub const WANT_NO_DELEGATION: u32 = 0x400;
}

/// Bit of [`Opened::flags`]: the owner has to be confirmed (RFC 7530, 16.16).
pub const MUST_CONFIRM: u32 = 2;

/// Bit of [`CreateSessionArgs::flags`]: callbacks come on this connection (RFC 8881, 18.36).
pub const BACK_CHANNEL: u32 = 2;

/// Bit of [`Exchanged::flags`]: the client is known and confirmed (RFC 8881, 18.35).
pub const CONFIRMED: u32 = 0x8000_0000;

/// Bits of [`Sequenced::status`] (RFC 8881, 18.46).
pub mod sequence_status {
    /// There is no connection for callbacks to this client (RFC 8881, 18.46).
    pub const CALLBACK_PATH_DOWN: u32 = 0x1;
    /// There is none to this session (RFC 8881, 18.46).
    pub const CALLBACK_PATH_DOWN_SESSION: u32 = 0x200;
}

structures! {
    /// Arguments of CLOSE (RFC 7530, 16.2).
    CloseArgs {
        /// The owner's next number (4.0).
        seqid: u32,
        /// The open.
        state: StateId,
    }

    /// Arguments of OPEN_CONFIRM (RFC 7530, 16.18).
    ConfirmArgs {
        /// The open.
        state: StateId,
        /// The owner's next number.
        seqid: u32,
    }

    /// Arguments of OPEN_DOWNGRADE (RFC 7530, 16.19).
    DowngradeArgs {
        /// The open.
        state: StateId,
        /// The owner's next number (4.0).
        seqid: u32,
        /// What it is for from now on.
        access: u32,
        /// What others may not do from now on.
        deny: u32,
    }

    /// Arguments of OPEN (RFC 7530, 16.16).
    OpenArgs<'a> {
        /// The owner's next number (4.0).
        seqid: u32,
        /// What for: bits of [`share`].
        access: u32,
        /// What others may not do meanwhile.
        deny: u32,
        /// Who opens.
        owner: Owner<'a>,
        /// Whether it is made.
        how: OpenHow,
        /// Which file.
        claim: Claim<'a>,
    }

    /// What OPEN gives (RFC 7530, 16.16).
    Opened<'a> {
        /// The open.
        state: StateId = "stateid",
        /// How the directory changed.
        change: ChangeInfo = "cinfo",
        /// Such as [`MUST_CONFIRM`].
        flags: u32 = "rflags",
        /// Attributes that were set.
        set: Bitmap = "attrset",
        /// What came with it.
        delegation: Delegation<'a>,
    }

    /// Who may do what while a delegation is held, `nfsace4` (RFC 7530, 6.2.1).
    Ace<'a> {
        /// Kind.
        kind: u32 = "type",
        /// Flags.
        flags: u32 = "flag",
        /// What.
        mask: u32 = "access_mask",
        /// Who.
        who: Text<'a>,
    }

    /// Arguments of LOCK (RFC 7530, 16.10).
    LockArgs<'a> {
        /// Kind.
        kind: LockType,
        /// It was held before the server was started anew.
        reclaim: bool,
        /// Where the range begins.
        offset: u64,
        /// Its bytes; all ones for all to the end.
        len: u64,
        /// Whose it is.
        locker: LockOwnerArg<'a>,
    }

    /// The first lock of an owner on a file, `open_to_lock_owner4` (RFC 7530, 16.10).
    FirstLock<'a> {
        /// The owner of the open: its next number (4.0).
        open_seqid: u32,
        /// The open.
        open: StateId,
        /// The owner of the lock: its first number (4.0).
        seqid: u32,
        /// The owner of the lock.
        owner: Owner<'a>,
    }

    /// A further lock, `exist_lock_owner4` (RFC 7530, 16.10).
    NextLock {
        /// The locks it has.
        state: StateId,
        /// The owner of the lock: its next number (4.0).
        seqid: u32,
    }

    /// Arguments of LOCKU (RFC 7530, 16.12).
    UnlockArgs {
        /// Kind.
        kind: LockType,
        /// The owner of the lock: its next number (4.0).
        seqid: u32,
        /// The locks it has.
        state: StateId,
        /// Where the range begins.
        offset: u64,
        /// Its bytes.
        len: u64,
    }

    /// Arguments of SETCLIENTID (RFC 7530, 16.33).
    SetClientIdArgs<'a> {
        /// Another one after each start of the client.
        verifier: [u8; 8],
        /// Who it is.
        id: Opaque<'a>,
        /// Program that callbacks call.
        program: u32,
        /// Where they go: the network, such as `tcp`.
        network: Opaque<'a>,
        /// And the address, with the port's two bytes after it (RFC 5665, 5.2.3.3).
        address: Opaque<'a>,
        /// What callbacks say that they are for.
        ident: u32,
    }

    /// A client id and what confirms it (RFC 7530, 16.33 and 16.34).
    ClientSet {
        /// The client id.
        client: u64 = "clientid",
        /// What confirms it.
        confirm: [u8; 8] = "setclientid_confirm",
    }

    /// Arguments of EXCHANGE_ID, with nothing but SP4_NONE (RFC 8881, 18.35).
    ExchangeArgs<'a> {
        /// Another one after each start of the client.
        verifier: [u8; 8],
        /// Who it is.
        owner: Opaque<'a>,
        /// Flags.
        flags: u32,
        /// How state is protected: not at all.
        protect: NoProtection,
        /// What implements the client.
        made_by: AtMostOne<MadeBy<'a>>,
    }

    /// What EXCHANGE_ID gives (RFC 8881, 18.35).
    Exchanged<'a> {
        /// The client id.
        client: u64 = "clientid",
        /// Number of the next CREATE_SESSION.
        sequence: u32 = "sequenceid",
        /// Such as [`CONFIRMED`].
        flags: u32,
        /// How state is protected: not at all.
        protect: NoProtection = "state_protect",
        /// Number of the server's owner.
        minor: u64 = "so_minor_id",
        /// The server's owner.
        major: Opaque<'a> = "so_major_id",
        /// Where its client ids mean something.
        scope: Opaque<'a> = "server_scope",
        /// What implements the server.
        made_by: AtMostOne<MadeBy<'a>> = "server_impl_id",
    }

    /// What implements a side, `nfs_impl_id4` (RFC 8881, 3.3.21).
    MadeBy<'a> {
        /// Domain of those who made it.
        domain: Text<'a>,
        /// Its name.
        name: Text<'a>,
        /// When it was made.
        date: super::types::Time,
    }

    /// Arguments of CREATE_SESSION (RFC 8881, 18.36).
    CreateSessionArgs {
        /// The client.
        client: u64,
        /// Its next number.
        sequence: u32,
        /// Such as [`BACK_CHANNEL`].
        flags: u32,
        /// What calls may be.
        fore: ChannelAttributes,
        /// What callbacks may be.
        back: ChannelAttributes,
        /// Program that callbacks call.
        program: u32,
        /// How callbacks are signed.
        security: NoSecurity,
    }

    /// What CREATE_SESSION gives (RFC 8881, 18.36).
    SessionMade {
        /// The session.
        session: SessionId = "sessionid",
        /// The client's number.
        sequence: u32,
        /// Such as [`BACK_CHANNEL`].
        flags: u32,
        /// What calls may be.
        fore: ChannelAttributes = "fore_chan_attrs",
        /// What callbacks may be.
        back: ChannelAttributes = "back_chan_attrs",
    }

    /// What calls of a session may be, `channel_attrs4` (RFC 8881, 18.36).
    ChannelAttributes {
        /// Bytes of padding before data.
        padding: u32 = "headerpadsize",
        /// Bytes of the longest request.
        longest_request: u32 = "maxrequestsize",
        /// Bytes of the longest reply.
        longest_reply: u32 = "maxresponsesize",
        /// Bytes of the longest reply that is kept.
        longest_kept: u32 = "maxresponsesize_cached",
        /// Operations of a compound.
        operations: u32 = "maxoperations",
        /// Calls under way at once: slots.
        requests: u32 = "maxrequests",
        /// For RDMA.
        rdma: AtMostOne<u32> = "rdma_ird",
    }

    /// Arguments of SEQUENCE, and the greater part of what it gives (RFC 8881, 18.46).
    SequenceArgs {
        /// The session.
        session: SessionId,
        /// The slot's next number.
        sequence: u32,
        /// The slot.
        slot: u32,
        /// Highest slot that is in use.
        highest: u32,
        /// The reply is to be kept, in case that the call is sent again.
        keep: bool,
    }

    /// What SEQUENCE gives (RFC 8881, 18.46).
    Sequenced {
        /// The session.
        session: SessionId = "sessionid",
        /// The slot's number.
        sequence: u32 = "sequenceid",
        /// The slot.
        slot: u32 = "slotid",
        /// Highest slot that the server keeps.
        highest: u32 = "highest_slotid",
        /// Highest slot that it would like to be used.
        target: u32 = "target_highest_slotid",
        /// Bits of [`sequence_status`].
        status: u32 = "status_flags",
    }
}
