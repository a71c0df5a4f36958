//! The arguments and results of the operations of NFS version 4 on state: clients, sessions, opens,
//! locks and delegations.

mod unions;

pub use unions::*;

use super::attributes::{Attributes, Bitmap};
use super::types::{ChangeInfo, LockType, Opaque, Owner, SessionId, StateId, Text, Time};
use crate::xdr::{Decode, Decoder, Encode, XdrError, choices, structures, unions};

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

/// Bit of [`Opened::flags`]: the owner must be confirmed (RFC 7530, 16.16).
pub const MUST_CONFIRM: u32 = 2;

/// Bit of [`CreateSessionArgs::flags`]: callbacks use this connection (RFC 8881, 18.36).
pub const BACK_CHANNEL: u32 = 2;

/// Bit of [`Exchanged::flags`]: the client is known and confirmed (RFC 8881, 18.35).
pub const CONFIRMED: u32 = 0x8000_0000;

/// Bits of [`Sequenced::status`] (RFC 8881, 18.46).
pub mod sequence_status {
    /// No connection for callbacks to the client (RFC 8881, 18.46).
    pub const CALLBACK_PATH_DOWN: u32 = 0x1;
    /// No connection for callbacks of the session (RFC 8881, 18.46).
    pub const CALLBACK_PATH_DOWN_SESSION: u32 = 0x200;
}

structures! {
    /// Arguments of CLOSE (RFC 7530, 16.2).
    CloseArgs {
        /// The owner's next seqid (4.0).
        seqid: u32,
        /// The open.
        state: StateId,
    }

    /// Arguments of OPEN_CONFIRM (RFC 7530, 16.18).
    ConfirmArgs {
        /// The open.
        state: StateId,
        /// The owner's next seqid.
        seqid: u32,
    }

    /// Arguments of OPEN_DOWNGRADE (RFC 7530, 16.19).
    DowngradeArgs {
        /// The open.
        state: StateId,
        /// The owner's next seqid (4.0).
        seqid: u32,
        /// The access from now on: bits of [`share`].
        access: u32,
        /// The access that others are denied from now on.
        deny: u32,
    }

    /// Arguments of OPEN (RFC 7530, 16.16).
    OpenArgs<'a> {
        /// The owner's next seqid (4.0).
        seqid: u32,
        /// The access: bits of [`share`].
        access: u32,
        /// The access denied to others while the file is open.
        deny: u32,
        /// The owner of the open.
        owner: Owner<'a>,
        /// Whether the file is created.
        how: OpenHow,
        /// The file.
        claim: Claim<'a>,
    }

    /// The result of OPEN (RFC 7530, 16.16).
    Opened<'a> {
        /// The open.
        state: StateId = "stateid",
        /// The change of the directory.
        change: ChangeInfo = "cinfo",
        /// Flags, such as [`MUST_CONFIRM`].
        flags: u32 = "rflags",
        /// The attributes that were set.
        set: Bitmap = "attrset",
        /// The delegation that came with the open.
        delegation: Delegation<'a>,
    }

    /// The access that users have while a delegation is held, `nfsace4` (RFC 7530, 6.2.1).
    Ace<'a> {
        /// The kind.
        kind: u32 = "type",
        /// The flags.
        flags: u32 = "flag",
        /// The access.
        mask: u32 = "access_mask",
        /// The users.
        who: Text<'a>,
    }

    /// Arguments of LOCK (RFC 7530, 16.10).
    LockArgs<'a> {
        /// The kind.
        kind: LockType,
        /// Whether the client reclaims a lock that it held before the server restarted.
        reclaim: bool,
        /// The offset of the range.
        offset: u64,
        /// The number of bytes; all ones for all bytes up to the end of the file.
        len: u64,
        /// The owner of the lock.
        locker: LockOwnerArg<'a>,
    }

    /// The first lock of an owner on a file, `open_to_lock_owner4` (RFC 7530, 16.10).
    FirstLock<'a> {
        /// The next seqid of the owner of the open (4.0).
        open_seqid: u32,
        /// The open.
        open: StateId,
        /// The first seqid of the owner of the lock (4.0).
        seqid: u32,
        /// The owner of the lock.
        owner: Owner<'a>,
    }

    /// A further lock, `exist_lock_owner4` (RFC 7530, 16.10).
    NextLock {
        /// The stateid of the lock owner's locks.
        state: StateId,
        /// The next seqid of the owner of the lock (4.0).
        seqid: u32,
    }

    /// Arguments of LOCKU (RFC 7530, 16.12).
    UnlockArgs {
        /// The kind.
        kind: LockType,
        /// The next seqid of the owner of the lock (4.0).
        seqid: u32,
        /// The stateid of the lock owner's locks.
        state: StateId,
        /// The offset of the range.
        offset: u64,
        /// The number of bytes.
        len: u64,
    }

    /// Arguments of SETCLIENTID (RFC 7530, 16.33).
    SetClientIdArgs<'a> {
        /// A value that changes with each start of the client.
        verifier: [u8; 8],
        /// The name of the client.
        id: Opaque<'a>,
        /// The program that callbacks call.
        program: u32,
        /// The network of callbacks, such as `tcp`.
        network: Opaque<'a>,
        /// The address of callbacks, followed by the two bytes of the port (RFC 5665, 5.2.3.3).
        address: Opaque<'a>,
        /// The identifier that callbacks contain.
        ident: u32,
    }

    /// A client id and the verifier that confirms it (RFC 7530, 16.33 and 16.34).
    ClientSet {
        /// The client id.
        client: u64 = "clientid",
        /// The verifier.
        confirm: [u8; 8] = "setclientid_confirm",
    }

    /// Arguments of EXCHANGE_ID, without state protection (RFC 8881, 18.35).
    ExchangeArgs<'a> {
        /// A value that changes with each start of the client.
        verifier: [u8; 8],
        /// The name of the client.
        owner: Opaque<'a>,
        /// Flags.
        flags: u32,
        /// The protection of state.
        protect: Protection,
        /// The implementation of the client.
        made_by: AtMostOne<MadeBy<'a>>,
    }

    /// The result of EXCHANGE_ID (RFC 8881, 18.35).
    Exchanged<'a> {
        /// The client id.
        client: u64 = "clientid",
        /// The sequence number of the client's next CREATE_SESSION.
        sequence: u32 = "sequenceid",
        /// Flags, such as [`CONFIRMED`].
        flags: u32,
        /// The protection of state.
        protect: Protection = "state_protect",
        /// The minor identifier of the server's owner.
        minor: u64 = "so_minor_id",
        /// The major identifier of the server's owner.
        major: Opaque<'a> = "so_major_id",
        /// The scope of the server's client ids.
        scope: Opaque<'a> = "server_scope",
        /// The implementation of the server.
        made_by: AtMostOne<MadeBy<'a>> = "server_impl_id",
    }

    /// The implementation of a client or server, `nfs_impl_id4` (RFC 8881, 3.3.21).
    MadeBy<'a> {
        /// The domain name of the authors.
        domain: Text<'a>,
        /// The name of the implementation.
        name: Text<'a>,
        /// The build time of the implementation.
        date: Time,
    }

    /// Arguments of CREATE_SESSION (RFC 8881, 18.36).
    CreateSessionArgs {
        /// The client id.
        client: u64,
        /// The client's next sequence number.
        sequence: u32,
        /// Flags, such as [`BACK_CHANNEL`].
        flags: u32,
        /// The limits of calls.
        fore: ChannelAttributes,
        /// The limits of callbacks.
        back: ChannelAttributes,
        /// The program that callbacks call.
        program: u32,
        /// The credentials of callbacks.
        security: NoSecurity,
    }

    /// The result of CREATE_SESSION (RFC 8881, 18.36).
    SessionMade {
        /// The session.
        session: SessionId = "sessionid",
        /// The sequence number of the executed CREATE_SESSION.
        sequence: u32,
        /// Flags, such as [`BACK_CHANNEL`].
        flags: u32,
        /// The limits of calls.
        fore: ChannelAttributes = "fore_chan_attrs",
        /// The limits of callbacks.
        back: ChannelAttributes = "back_chan_attrs",
    }

    /// The limits of calls of a session, `channel_attrs4` (RFC 8881, 18.36).
    ChannelAttributes {
        /// The number of bytes of padding before data.
        padding: u32 = "headerpadsize",
        /// The maximum number of bytes of a request.
        max_request_bytes: u32 = "maxrequestsize",
        /// The maximum number of bytes of a reply.
        max_reply_bytes: u32 = "maxresponsesize",
        /// The maximum number of bytes of a reply that is cached.
        max_cached_bytes: u32 = "maxresponsesize_cached",
        /// The maximum number of operations of a compound.
        operations: u32 = "maxoperations",
        /// The maximum number of calls in flight, which is the number of slots.
        requests: u32 = "maxrequests",
        /// The number of RDMA reads, only for RDMA.
        rdma: AtMostOne<u32> = "rdma_ird",
    }

    /// Arguments of SEQUENCE (RFC 8881, 18.46).
    SequenceArgs {
        /// The session.
        session: SessionId,
        /// The slot's next seqid.
        sequence: u32,
        /// The slot.
        slot: u32,
        /// The highest slot in use.
        highest_slot: u32,
        /// Whether the server must cache the reply for a retransmission.
        cache_this: bool,
    }

    /// The result of SEQUENCE (RFC 8881, 18.46).
    Sequenced {
        /// The session.
        session: SessionId = "sessionid",
        /// The slot's seqid.
        sequence: u32 = "sequenceid",
        /// The slot.
        slot: u32 = "slotid",
        /// The highest slot that the server supports.
        highest_slot: u32 = "highest_slotid",
        /// The highest slot that the server wants the client to use.
        target: u32 = "target_highest_slotid",
        /// Bits of [`sequence_status`].
        status: u32 = "status_flags",
    }
}
