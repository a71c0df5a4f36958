//! Unions: arguments and results in one of several forms, which a preceding number selects.

use super::*;

/// An array of zero or one element (RFC 4506, 4.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtMostOne<T>(pub Option<T>);

impl<T: Encode> Encode for AtMostOne<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        // An array of at most one element has the encoding of optional data.
        self.0.encode(out);
    }
}

impl<'a, T: Decode<'a>> Decode<'a> for AtMostOne<T> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => Ok(Self(None)),
            1 => Ok(Self(Some(from.get()?))),
            more => Err(XdrError::TooLong(more)),
        }
    }
}

choices! {
    /// The protection of a client's state against other clients, `state_protect_how4` (RFC 8881,
    /// 18.35); only one kind is supported.
    Protection {
        /// SP4_NONE: no protection.
        None = 0,
    }
}

/// The credentials of callbacks: one entry, AUTH_NONE (RFC 8881, 18.36).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSecurity;

impl Encode for NoSecurity {
    fn encode(&self, out: &mut Vec<u8>) {
        (1u32, 0u32).encode(out);
    }
}

impl Decode<'_> for NoSecurity {
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        match (from.get()?, from.get()?) {
            (1u32, 0u32) => Ok(Self),
            (_, other) => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

unions! {
    /// The treatment of missing and existing files by an OPEN that may create, `createhow4` (RFC 8881, 18.16.1).
    CreateHow {
        /// OPEN creates a missing file with the attributes `set`; an existing file is truncated if `set` has the size
        /// 0, and keeps all other attributes.
        0 => Unchecked(set: Attributes),
        /// OPEN fails with `NFS4ERR_EXIST` if the file exists; a new file gets the attributes `set`.
        1 => Guarded(set: Attributes),
        /// OPEN fails with `NFS4ERR_EXIST` if the file exists, unless an OPEN with the same verifier created the file.
        2 => Exclusive(verifier: [u8; 8]),
        /// OPEN checks the verifier as for `Exclusive`, and gives a new file the attributes `set` (4.1).
        3 => ExclusiveWith(verifier: [u8; 8], set: Attributes),
    }

    /// The file that OPEN opens, `open_claim4` (RFC 7530, 16.16 and RFC 8881, 18.16).
    Claim<'a> {
        /// OPEN of the file named `name` in the current directory, `CLAIM_NULL`.
        0 => Name(name: Text<'a>),
        /// OPEN of the current file, which the client reclaims after the server's restart, with a delegation of type
        /// `kind`: 0 none, 1 read, 2 write (`CLAIM_PREVIOUS`).
        1 => Previous(kind: u32),
        /// OPEN of the file named `name` in the current directory, of which the client holds the delegation `state`
        /// (`CLAIM_DELEGATE_CUR`).
        2 => Delegated(state: StateId, name: Text<'a>),
        /// OPEN of the file of the current handle, `CLAIM_FH` (4.1).
        4 => Current,
        /// OPEN of the file of the current handle, of which the client holds the delegation `state`,
        /// `CLAIM_DELEG_CUR_FH` (4.1).
        5 => CurrentDelegated(state: StateId),
    }

    /// The limit of unwritten data up to which the holder of a write delegation may close a file without writing the
    /// data, `nfs_space_limit4` (RFC 7530, 16.16).
    SpaceLimit {
        /// Limit of the size of the delegated file: `bytes` bytes (`NFS_LIMIT_SIZE`).
        1 => Size(bytes: u64),
        /// Limit of the modified blocks of the delegated file: `count` blocks of `bytes` bytes each
        /// (`NFS_LIMIT_BLOCKS`).
        2 => Blocks(count: u32, bytes: u32),
    }

    /// The lock owner in a LOCK, `locker4` (RFC 7530, 16.10).
    LockOwnerArg<'a> {
        /// LOCK by a lock owner that already has a lock stateid for the file.
        0 => Next(next: NextLock),
        /// LOCK by a lock owner without a lock stateid for the file, with the open through which the file is locked.
        1 => First(first: FirstLock<'a>),
    }
}

/// The delegation in an OPEN reply, `open_delegation4` (RFC 7530, 16.16 and RFC 8881, 18.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation<'a> {
    /// The server has granted no delegation with the OPEN, and states no reason.
    None,
    /// The server has granted a read delegation, during which no other client writes: the stateid; whether the server
    /// already recalls the delegation; and the users who may open the file without a further check.
    Read(StateId, bool, Ace<'a>),
    /// The server has granted a write delegation, during which no other client reads or writes: the stateid; whether
    /// the server already recalls the delegation; the limit of cached writes; and the users who may open the file
    /// without a further check.
    Write(StateId, bool, SpaceLimit, Ace<'a>),
    /// The server has granted no delegation, for the reason `why_no_delegation4` (4.1; RFC 8881, 18.16). If the reason
    /// is contention or a lack of resources, the boolean is whether the server will inform the client when a delegation
    /// becomes available; otherwise the boolean is `false`.
    Refused(u32, bool),
}

/// Whether a boolean follows the reason `why` for refusing a delegation.
fn has_more(why: u32) -> bool {
    // WND4_CONTENTION and WND4_RESOURCE.
    matches!(why, 1 | 2)
}

impl Encode for Delegation<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => 0u32.encode(out),
            Self::Read(state, recall, who) => (1u32, state, recall, who).encode(out),
            Self::Write(state, recall, limit, who) => (2u32, state, recall, limit, who).encode(out),
            Self::Refused(why, will_inform) => {
                (3u32, why).encode(out);
                if has_more(*why) {
                    will_inform.encode(out);
                }
            }
        }
    }
}

impl<'a> Decode<'a> for Delegation<'a> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        Ok(match from.get()? {
            0u32 => Self::None,
            1 => Self::Read(from.get()?, from.get()?, from.get()?),
            2 => Self::Write(from.get()?, from.get()?, from.get()?, from.get()?),
            3 => {
                let why = from.get()?;
                let will_inform = has_more(why) && from.get()?;
                Self::Refused(why, will_inform)
            }
            other => return Err(XdrError::NoSuchChoice(other)),
        })
    }
}
