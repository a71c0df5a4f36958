//! The arguments and results of the operations of NFS version 4 on state: clients, sessions, opens,
//! locks and delegations.

mod unions;

pub use unions::*;

use super::attributes::{Attributes, Bitmap};
use super::types::{ChangeInfo, LockType, Opaque, Owner, SessionId, StateId, Text, Time};
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, choices, structures, unions};

/// Bits of [`OpenArgs::access`] (RFC 7530, 16.16 and RFC 8881, 18.16).
pub mod share {
    /// Access for reading, `OPEN4_SHARE_ACCESS_READ` (RFC 7530, 16.16).
    pub const READ: u32 = 1;
    /// Access for writing, `OPEN4_SHARE_ACCESS_WRITE` (RFC 7530, 16.16).
    pub const WRITE: u32 = 2;
    /// The client wants a read delegation with the open (4.1; RFC 8881, 18.16).
    pub const WANT_READ_DELEGATION: u32 = 0x100;
    /// The client wants a write delegation with the open (4.1; RFC 8881, 18.16).
    pub const WANT_WRITE_DELEGATION: u32 = 0x200;
    /// The client wants no delegation with the open (4.1; RFC 8881, 18.16).
    pub const WANT_NO_DELEGATION: u32 = 0x400;
}

/// Bit `OPEN4_RESULT_CONFIRM` of [`Opened::flags`]: the open owner must be confirmed by OPEN_CONFIRM (RFC 7530, 16.16).
pub const MUST_CONFIRM: u32 = 2;

/// Bit `CREATE_SESSION4_FLAG_CONN_BACK_CHAN` of [`CreateSessionArgs::flags`]: the connection of the call also carries
/// callbacks (RFC 8881, 18.36).
pub const BACK_CHANNEL: u32 = 2;

/// Bit `EXCHGID4_FLAG_CONFIRMED_R` of [`Exchanged::flags`]: the server knows the client and has confirmed the client id
/// (RFC 8881, 18.35).
pub const CONFIRMED: u32 = 0x8000_0000;

/// Bits of [`Sequenced::status`] (RFC 8881, 18.46).
pub mod sequence_status {
    /// The server has no connection for callbacks to the client in any session (RFC 8881, 18.46).
    pub const CALLBACK_PATH_DOWN: u32 = 0x1;
    /// The server has no connection for callbacks in the session of the call (RFC 8881, 18.46).
    pub const CALLBACK_PATH_DOWN_SESSION: u32 = 0x200;
}

structures! {
    /// Arguments of CLOSE (RFC 7530, 16.2).
    CloseArgs {
        /// The next seqid of the open owner (4.0); ignored on 4.1.
        seqid: u32,
        /// The stateid of the open that CLOSE ends.
        state: StateId,
    }

    /// Arguments of OPEN_CONFIRM (RFC 7530, 16.18).
    ConfirmArgs {
        /// The stateid from the OPEN reply that requested OPEN_CONFIRM.
        state: StateId,
        /// The next seqid of the open owner, one more than in the open owner's OPEN.
        seqid: u32,
    }

    /// Arguments of OPEN_DOWNGRADE (RFC 7530, 16.19).
    DowngradeArgs {
        /// The stateid of the open whose access OPEN_DOWNGRADE reduces.
        state: StateId,
        /// The next seqid of the open owner (4.0); ignored on 4.1.
        seqid: u32,
        /// The access that the open keeps: bits of [`share`].
        access: u32,
        /// The access that the open continues to deny to other owners: bits of [`share`].
        deny: u32,
    }

    /// Arguments of OPEN (RFC 7530, 16.16).
    OpenArgs<'a> {
        /// The next seqid of the open owner (4.0); ignored on 4.1.
        seqid: u32,
        /// The access that the open needs: bits of [`share`].
        access: u32,
        /// The access that the open denies to other owners: bits of [`share`]; 0 denies nothing.
        deny: u32,
        /// The open owner, whose opens of the same file share one stateid.
        owner: Owner<'a>,
        /// The treatment of a missing and of an existing file by OPEN; `None` if OPEN creates no file.
        how: Option<CreateHow>,
        /// The file to open, by name, by handle, by a delegation or for a reclaim.
        claim: Claim<'a>,
    }

    /// The result of OPEN (RFC 7530, 16.16).
    Opened<'a> {
        /// The stateid of the open, for READ, WRITE and CLOSE.
        state: StateId = "stateid",
        /// The change of the directory in which OPEN may have created the file.
        change: ChangeInfo = "cinfo",
        /// Flags of the OPEN reply, `OPEN4_RESULT_…`, such as [`MUST_CONFIRM`].
        flags: u32 = "rflags",
        /// The initial attributes that the server has set on a file that OPEN created.
        set: Bitmap = "attrset",
        /// The delegation that the server granted with the open, or the reason for granting none.
        delegation: Delegation<'a>,
    }

    /// An access control entry, `nfsace4` (RFC 7530, 6.2.1): in an OPEN reply, the users who may open the delegated
    /// file without asking the server.
    Ace<'a> {
        /// The effect of the access control entry: 0 allows the access, 1 denies the access, 2 and 3 are for audits and
        /// alarms.
        kind: u32 = "type",
        /// Flags `ACE4_…_ACE` and `ACE4_IDENTIFIER_GROUP`: inheritance of the access control entry, and whether `who`
        /// is a group.
        flags: u32 = "flag",
        /// The kinds of access that the access control entry allows or denies: bits `ACE4_READ_DATA` to
        /// `ACE4_SYNCHRONIZE`.
        mask: u32 = "access_mask",
        /// The user or group to whom the access control entry applies, such as `OWNER@`.
        who: Text<'a>,
    }

    /// Arguments of LOCK (RFC 7530, 16.10).
    LockArgs<'a> {
        /// The kind of the requested byte-range lock: shared or exclusive, and whether a denied client will ask again.
        kind: LockType,
        /// Whether the client reclaims a lock that it held before the server's restart.
        reclaim: bool,
        /// The offset in the file at which the locked range begins, in bytes.
        offset: u64,
        /// The length of the locked range in bytes; `u64::MAX` for all bytes from the offset to the end of the file.
        len: u64,
        /// The lock owner, with the open through which the file is locked if the server does not know the lock owner.
        locker: LockOwnerArg<'a>,
    }

    /// The first lock of a lock owner on a file, `open_to_lock_owner4` (RFC 7530, 16.10).
    FirstLock<'a> {
        /// The next seqid of the open owner (4.0); ignored on 4.1.
        open_seqid: u32,
        /// The stateid of the open through which the file is locked.
        open: StateId,
        /// The seqid with which the new lock owner begins (4.0); ignored on 4.1.
        seqid: u32,
        /// The client id and the client's name of the new lock owner.
        owner: Owner<'a>,
    }

    /// A further lock of an owner that already has a lock stateid for the file, `exist_lock_owner4` (RFC 7530, 16.10).
    NextLock {
        /// The stateid of all locks of the lock owner on the file.
        state: StateId,
        /// The next seqid of the lock owner (4.0); ignored on 4.1.
        seqid: u32,
    }

    /// Arguments of LOCKU (RFC 7530, 16.12).
    UnlockArgs {
        /// The kind of the byte-range lock that LOCKU releases.
        kind: LockType,
        /// The next seqid of the lock owner (4.0); ignored on 4.1.
        seqid: u32,
        /// The stateid of all locks of the lock owner on the file.
        state: StateId,
        /// The offset in the file at which the unlocked range begins, in bytes.
        offset: u64,
        /// The length of the unlocked range in bytes; `u64::MAX` for all bytes from the offset to the end of the file.
        len: u64,
    }

    /// Arguments of SETCLIENTID (RFC 7530, 16.33).
    SetClientIdArgs<'a> {
        /// The client verifier; a new value informs the server that the client has restarted and lost its state.
        verifier: [u8; 8],
        /// The name of the client, unique among the clients of the server.
        id: Opaque<'a>,
        /// The RPC program number that the server uses in callbacks.
        program: u32,
        /// The network identifier of the callback address: `tcp`, or `tcp6` for IPv6.
        network: Opaque<'a>,
        /// The universal address for callbacks: IP address, and the port as two decimal bytes (RFC 5665, 5.2.3.3).
        address: Opaque<'a>,
        /// The number `callback_ident`, which the server repeats in each CB_COMPOUND, and by which the client
        /// recognises its client id.
        ident: u32,
    }

    /// The result of SETCLIENTID and the arguments of SETCLIENTID_CONFIRM (RFC 7530, 16.33 and 16.34).
    ClientSet {
        /// The client id that the server has assigned, for OPEN, LOCK and RENEW.
        client: u64 = "clientid",
        /// The verifier from SETCLIENTID, with which SETCLIENTID_CONFIRM confirms the client id.
        confirm: [u8; 8] = "setclientid_confirm",
    }

    /// Arguments of EXCHANGE_ID, without state protection (RFC 8881, 18.35).
    ExchangeArgs<'a> {
        /// The client verifier; a new value informs the server that the client has restarted and lost its state.
        verifier: [u8; 8],
        /// The name of the client, unique among the clients of the server.
        owner: Opaque<'a>,
        /// Flags `EXCHGID4_FLAG_…` of the EXCHANGE_ID request, such as the support of pNFS.
        flags: u32,
        /// The requested protection of the client's state against changes by other clients.
        protect: Protection,
        /// Name and build time of the client's implementation, for statistics of the server.
        made_by: AtMostOne<MadeBy<'a>>,
    }

    /// The result of EXCHANGE_ID (RFC 8881, 18.35).
    Exchanged<'a> {
        /// The client id that the server has assigned, for CREATE_SESSION.
        client: u64 = "clientid",
        /// The sequence number of the client's next CREATE_SESSION.
        sequence: u32 = "sequenceid",
        /// Flags `EXCHGID4_FLAG_…` of the EXCHANGE_ID result, such as [`CONFIRMED`].
        flags: u32,
        /// The granted protection of the client's state against changes by other clients.
        protect: Protection = "state_protect",
        /// The minor part of the server owner; addresses with equal major and minor part may share a session (RFC 8881,
        /// 2.10.5).
        minor: u64 = "so_minor_id",
        /// The major part of the server owner; addresses with an equal major part share client ids (RFC 8881, 2.10.5).
        major: Opaque<'a> = "so_major_id",
        /// The server scope; servers with an equal scope never assign one client id, handle or stateid to different
        /// objects (RFC 8881, 2.10.4).
        scope: Opaque<'a> = "server_scope",
        /// Name and build time of the server's implementation; absent if the server does not disclose its
        /// implementation.
        made_by: AtMostOne<MadeBy<'a>> = "server_impl_id",
    }

    /// The implementation of an NFS client or server, `nfs_impl_id4` (RFC 8881, 3.3.21).
    MadeBy<'a> {
        /// The DNS domain name of the authors of the NFS implementation.
        domain: Text<'a>,
        /// The product name and version of the NFS implementation, in the form that the authors choose.
        name: Text<'a>,
        /// The build time of the implementation.
        date: Time,
    }

    /// Arguments of CREATE_SESSION (RFC 8881, 18.36).
    CreateSessionArgs {
        /// The client id that EXCHANGE_ID returned, for which CREATE_SESSION creates a session.
        client: u64,
        /// The sequence number from EXCHANGE_ID, or one more than the number of the previous CREATE_SESSION.
        sequence: u32,
        /// Flags `CREATE_SESSION4_FLAG_…` of the CREATE_SESSION request, such as [`BACK_CHANNEL`].
        flags: u32,
        /// The limits of size and number that the client requests for its calls in the session.
        fore: ChannelAttributes,
        /// The limits of size and number that the client sets for the server's callbacks in the session.
        back: ChannelAttributes,
        /// The RPC program number that the server uses in callbacks.
        program: u32,
        /// The credentials that the server uses in callbacks.
        security: NoSecurity,
    }

    /// The result of CREATE_SESSION (RFC 8881, 18.36).
    SessionMade {
        /// The id of the new session, which SEQUENCE names in each call.
        session: SessionId = "sessionid",
        /// The sequence number of the CREATE_SESSION to which the server replies.
        sequence: u32,
        /// The flags of CREATE_SESSION that the server grants, such as [`BACK_CHANNEL`].
        flags: u32,
        /// The limits of size and number that the server grants for the client's calls in the session.
        fore: ChannelAttributes = "fore_chan_attrs",
        /// The limits of size and number that the server accepts for its callbacks in the session.
        back: ChannelAttributes = "back_chan_attrs",
    }

    /// The limits of one channel of a session, `channel_attrs4` (RFC 8881, 18.36): the client's calls, or the server's
    /// callbacks.
    ChannelAttributes {
        /// The maximum number of bytes of padding by which a request aligns its data; 0 for no padding.
        padding: u32 = "headerpadsize",
        /// The maximum size of a request in bytes, with RPC header.
        max_request_bytes: u32 = "maxrequestsize",
        /// The maximum size of a reply in bytes, with RPC header.
        max_reply_bytes: u32 = "maxresponsesize",
        /// The maximum size in bytes of a reply that is cached for retransmissions.
        max_cached_bytes: u32 = "maxresponsesize_cached",
        /// The maximum number of operations in one COMPOUND, including SEQUENCE.
        operations: u32 = "maxoperations",
        /// The maximum number of calls in flight, which is the number of slots.
        requests: u32 = "maxrequests",
        /// The maximum number of RDMA reads in flight; no number without RDMA.
        rdma: AtMostOne<u32> = "rdma_ird",
    }

    /// Arguments of SEQUENCE (RFC 8881, 18.46).
    SequenceArgs {
        /// The session in which the client makes the call.
        session: SessionId,
        /// The seqid of the slot, one more than in the slot's previous call.
        sequence: u32,
        /// The number of the slot that the call occupies, from 0.
        slot: u32,
        /// The highest slot number with a call in flight, by which the server may reduce its slots.
        highest_slot: u32,
        /// Whether the server must keep the whole reply for a retransmission of the call.
        cache_this: bool,
    }

    /// The result of SEQUENCE (RFC 8881, 18.46).
    Sequenced {
        /// The session of the call to which the server replies.
        session: SessionId = "sessionid",
        /// The seqid of the slot, repeated from the SEQUENCE to which the server replies.
        sequence: u32 = "sequenceid",
        /// The number of the slot, repeated from the SEQUENCE to which the server replies.
        slot: u32 = "slotid",
        /// The highest slot number that the server accepts in the session, from 0.
        highest_slot: u32 = "highest_slotid",
        /// The highest slot number that the server wants the client to use in the session, from 0.
        target: u32 = "target_highest_slotid",
        /// Warnings of the server about callbacks, lease and lost state: bits `SEQ4_STATUS_…`, of which
        /// [`sequence_status`] has some.
        status: u32 = "status_flags",
    }
}
