//! What has one of several forms, said by a number before it.

use super::*;

/// None or one (RFC 4506, 4.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtMostOne<T>(pub Option<T>);

impl<T: Encode> Encode for AtMostOne<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        // An array of one has the form of optional data.
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

/// State is not protected, SP4_NONE (RFC 8881, 18.35).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoProtection;

impl Encode for NoProtection {
    fn encode(&self, out: &mut Vec<u8>) {
        0u32.encode(out);
    }
}

impl Decode<'_> for NoProtection {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => Ok(Self),
            other => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// Callbacks are not signed: one entry, AUTH_NONE (RFC 8881, 18.36).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSecurity;

impl Encode for NoSecurity {
    fn encode(&self, out: &mut Vec<u8>) {
        1u32.encode(out);
        0u32.encode(out);
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

/// Whether OPEN makes the file, `openflag4` (RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenHow {
    /// It has to be there.
    Existing,
    /// It is made, or opened if it is there.
    Unchecked(Attributes),
    /// It is made and must not be there.
    Guarded(Attributes),
    /// The same, so that a request that is sent twice makes one file.
    Exclusive([u8; 8]),
    /// The same, with attributes (4.1).
    ExclusiveWith([u8; 8], Attributes),
}

impl Encode for OpenHow {
    fn encode(&self, out: &mut Vec<u8>) {
        let mode = match self {
            Self::Existing => return 0u32.encode(out),
            Self::Unchecked(_) => 0u32,
            Self::Guarded(_) => 1,
            Self::Exclusive(_) => 2,
            Self::ExclusiveWith(..) => 3,
        };
        1u32.encode(out);
        mode.encode(out);
        match self {
            Self::Existing => {}
            Self::Unchecked(set) | Self::Guarded(set) => set.encode(out),
            Self::Exclusive(verifier) => verifier.encode(out),
            Self::ExclusiveWith(verifier, set) => {
                verifier.encode(out);
                set.encode(out);
            }
        }
    }
}

impl Decode<'_> for OpenHow {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => return Ok(Self::Existing),
            1 => {}
            other => return Err(XdrError::NoSuchChoice(other)),
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

/// Which file OPEN opens, `open_claim4` (RFC 7530, 16.16 and RFC 8881, 18.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim<'a> {
    /// That of a name in the current directory.
    Name(Text<'a>),
    /// The current file, which was open before the server was started anew, with a delegation of
    /// this type: 0 none, 1 read, 2 write.
    Previous(u32),
    /// That of a name, for which a delegation is held.
    Delegated(StateId, Text<'a>),
    /// The current file (4.1).
    Current,
    /// The current file, for which a delegation is held (4.1).
    CurrentDelegated(StateId),
}

impl Encode for Claim<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Name(name) => {
                0u32.encode(out);
                name.encode(out);
            }
            Self::Previous(kind) => {
                1u32.encode(out);
                kind.encode(out);
            }
            Self::Delegated(state, name) => {
                2u32.encode(out);
                state.encode(out);
                name.encode(out);
            }
            Self::Current => 4u32.encode(out),
            Self::CurrentDelegated(state) => {
                5u32.encode(out);
                state.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for Claim<'a> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(match from.get()? {
            0u32 => Self::Name(from.get()?),
            1 => Self::Previous(from.get()?),
            2 => Self::Delegated(from.get()?, from.get()?),
            4 => Self::Current,
            5 => Self::CurrentDelegated(from.get()?),
            other => return Err(XdrError::NoSuchChoice(other)),
        })
    }
}

/// A delegation that came with an OPEN, `open_delegation4` (RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation<'a> {
    /// None.
    None,
    /// Nobody will write meanwhile; whether it is recalled already.
    Read(StateId, bool, Ace<'a>),
    /// Nobody will read or write meanwhile; whether it is recalled already.
    Write(StateId, bool, SpaceLimit, Ace<'a>),
    /// None, and why (4.1, RFC 8881, 18.16); for contention and want of resources, whether the
    /// server will say when there is one.
    Refused(u32, bool),
}

/// How far a file may grow before its data has to be written, `nfs_space_limit4` (RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceLimit {
    /// So many bytes.
    Size(u64),
    /// So many blocks of so many bytes.
    Blocks(u32, u32),
}

impl Encode for SpaceLimit {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Size(bytes) => {
                1u32.encode(out);
                bytes.encode(out);
            }
            Self::Blocks(count, bytes) => {
                2u32.encode(out);
                count.encode(out);
                bytes.encode(out);
            }
        }
    }
}

impl Decode<'_> for SpaceLimit {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            1u32 => Ok(Self::Size(from.get()?)),
            2 => Ok(Self::Blocks(from.get()?, from.get()?)),
            other => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// Whether a reason for refusing a delegation is followed by a word.
fn has_more(why: u32) -> bool {
    // WND4_CONTENTION and WND4_RESOURCE.
    matches!(why, 1 | 2)
}

impl Encode for Delegation<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => 0u32.encode(out),
            Self::Read(state, recall, who) => {
                1u32.encode(out);
                state.encode(out);
                recall.encode(out);
                who.encode(out);
            }
            Self::Write(state, recall, limit, who) => {
                2u32.encode(out);
                state.encode(out);
                recall.encode(out);
                limit.encode(out);
                who.encode(out);
            }
            Self::Refused(why, will_say) => {
                3u32.encode(out);
                why.encode(out);
                if has_more(*why) {
                    will_say.encode(out);
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
                let will_say = has_more(why) && from.get()?;
                Self::Refused(why, will_say)
            }
            other => return Err(XdrError::NoSuchChoice(other)),
        })
    }
}

/// Whose a lock is, `locker4` (RFC 7530, 16.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOwnerArg<'a> {
    /// An owner's that has none on the file yet.
    First(FirstLock<'a>),
    /// An owner's that has.
    Next(NextLock),
}

impl Encode for LockOwnerArg<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::First(first) => {
                true.encode(out);
                first.encode(out);
            }
            Self::Next(next) => {
                false.encode(out);
                next.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for LockOwnerArg<'a> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        match from.get()? {
            true => Ok(Self::First(from.get()?)),
            false => Ok(Self::Next(from.get()?)),
        }
    }
}
