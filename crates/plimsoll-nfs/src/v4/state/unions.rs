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
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
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
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match (from.get()?, from.get()?) {
            (1u32, 0u32) => Ok(Self),
            (_, other) => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// Whether OPEN creates the file, `openflag4` (RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHow {
    /// The file must exist.
    Existing,
    /// The file is created; an existing file is opened.
    Unchecked(Attributes),
    /// The file is created; it must not exist.
    Guarded(Attributes),
    /// The file is created; it must not exist unless a request with the same verifier created it.
    Exclusive([u8; 8]),
    /// As [`Self::Exclusive`], with attributes (4.1).
    ExclusiveWith([u8; 8], Attributes),
}

impl Encode for OpenHow {
    fn encode(&self, out: &mut Vec<u8>) {
        const CREATE: u32 = 1;
        match self {
            Self::Existing => 0u32.encode(out),
            Self::Unchecked(set) => (CREATE, 0u32, set).encode(out),
            Self::Guarded(set) => (CREATE, 1u32, set).encode(out),
            Self::Exclusive(verifier) => (CREATE, 2u32, verifier).encode(out),
            Self::ExclusiveWith(verifier, set) => (CREATE, 3u32, verifier, set).encode(out),
        }
    }
}

impl Decode<'_> for OpenHow {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        let creates: bool = from.get()?;
        if !creates {
            return Ok(Self::Existing);
        }
        Ok(match from.get()? {
            0u32 => Self::Unchecked(from.get()?),
            1 => Self::Guarded(from.get()?),
            2 => Self::Exclusive(from.get()?),
            3 => Self::ExclusiveWith(from.get()?, from.get()?),
            other => return Err(XdrError::NoSuchChoice(other)),
        })
    }
}

unions! {
    /// The file that OPEN opens, `open_claim4` (RFC 7530, 16.16 and RFC 8881, 18.16).
    Claim<'a> {
        /// The file with this name in the current directory.
        0 => Name(name: Text<'a>),
        /// The current file, which the client had open before the server restarted, with a
        /// delegation of this type: 0 none, 1 read, 2 write.
        1 => Previous(kind: u32),
        /// The file with this name, for which the client holds a delegation.
        2 => Delegated(state: StateId, name: Text<'a>),
        /// The current file (4.1).
        4 => Current,
        /// The current file, for which the client holds a delegation (4.1).
        5 => CurrentDelegated(state: StateId),
    }

    /// How far a file may grow before its data must be written, `nfs_space_limit4` (RFC 7530,
    /// 16.16).
    SpaceLimit {
        /// Up to this number of bytes.
        1 => Size(bytes: u64),
        /// Up to this number of blocks, each with this number of bytes.
        2 => Blocks(count: u32, bytes: u32),
    }

    /// The owner of a lock, `locker4` (RFC 7530, 16.10).
    LockOwnerArg<'a> {
        /// An owner that has locks on the file.
        0 => Next(next: NextLock),
        /// An owner that has no locks on the file yet.
        1 => First(first: FirstLock<'a>),
    }
}

/// The delegation that comes with an OPEN, `open_delegation4` (RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation<'a> {
    /// No delegation.
    None,
    /// A read delegation: no other client writes while it is held. The boolean is whether the
    /// delegation is recalled already.
    Read(StateId, bool, Ace<'a>),
    /// A write delegation: no other client reads or writes while it is held. The boolean is whether
    /// the delegation is recalled already.
    Write(StateId, bool, SpaceLimit, Ace<'a>),
    /// No delegation, and the reason (4.1, RFC 8881, 18.16). For contention and lack of resources,
    /// the boolean is whether the server will inform the client when a delegation becomes
    /// available.
    Refused(u32, bool),
}

/// Whether a reason for refusing a delegation is followed by a boolean.
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
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
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
