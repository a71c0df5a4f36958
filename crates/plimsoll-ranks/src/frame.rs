//! What ranks say to each other.
//!
//! A frame is at most [`MAX_FRAME`] bytes long; longer values go as several of them, so that news of
//! a failure never wait behind a long one. Numbers are little-endian.
//!
//! | first byte | rest |
//! | --- | --- |
//! | 1 part of a collective call | call (1 byte), last part? (1), number of the call (4), payload |
//! | 2 stop | |
//! | 3 failure | rank (4), reason (UTF-8) |
//! | 4 end | |
//! | 5 close | |

use crate::RankError;

/// Bytes of payload in one frame at most.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Bytes of a frame at most.
pub const MAX_FRAME: usize = MAX_PAYLOAD + CALL_HEADER;

const CALL_HEADER: usize = 7;
const TAG_CALL: u8 = 1;
const STOP: u8 = 2;
const FAIL: u8 = 3;
const END: u8 = 4;
const CLOSE: u8 = 5;

/// A collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// All ranks have come.
    Barrier = 1,
    /// Rank 0's bytes to all.
    Broadcast,
    /// Bytes combined.
    Reduce,
    /// Bytes in rank order.
    Collect,
    /// Largest number.
    Max,
    /// Smallest number.
    Min,
    /// Sum of numbers.
    Sum,
}

impl Call {
    const ALL: [Self; 7] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::Collect,
        Self::Max,
        Self::Min,
        Self::Sum,
    ];

    /// The name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Collect => "collect",
            Self::Max => "max",
            Self::Min => "min",
            Self::Sum => "sum",
        }
    }
}

/// Which collective call a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId {
    /// Which method.
    pub call: Call,
    /// How many collective calls there were before; wraps around.
    pub number: u32,
}

/// Something a neighbour says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A part of a value of a collective call.
    Part {
        /// The call.
        id: CallId,
        /// Whether the value ends here.
        last: bool,
        /// The bytes.
        payload: Vec<u8>,
    },
    /// All ranks should stop the run in order.
    Stop,
    /// A rank has failed.
    Fail(RankError),
    /// The neighbour has ended and makes no more calls.
    End,
    /// Going up, all ranks of the neighbour's subtree have said their last word; going down, all
    /// ranks have.
    Close,
}

impl Frame {
    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Part { id, last, payload } => encode_part(*id, *last, payload),
            Self::Stop => vec![STOP],
            Self::Fail(error) => {
                let mut bytes = vec![FAIL];
                bytes.extend(error.rank.to_le_bytes());
                bytes.extend(error.reason.as_bytes());
                bytes
            }
            Self::End => vec![END],
            Self::Close => vec![CLOSE],
        }
    }

    /// Reads what was received; `None` if no rank can have sent it.
    pub fn decode(mut bytes: Vec<u8>) -> Option<Self> {
        match (*bytes.first()?, bytes.len()) {
            (TAG_CALL, len) if (CALL_HEADER..=MAX_FRAME).contains(&len) => {
                let call = *Call::ALL.iter().find(|&&c| c as u8 == bytes[1])?;
                let last = match bytes[2] {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                let number = u32::from_le_bytes(bytes[3..CALL_HEADER].try_into().ok()?);
                bytes.drain(..CALL_HEADER);
                Some(Self::Part {
                    id: CallId { call, number },
                    last,
                    payload: bytes,
                })
            }
            (STOP, 1) => Some(Self::Stop),
            (FAIL, 5..) => {
                let rank = u32::from_le_bytes(bytes[1..5].try_into().ok()?);
                let reason = std::str::from_utf8(&bytes[5..]).ok()?;
                Some(Self::Fail(RankError::new(rank, reason)))
            }
            (END, 1) => Some(Self::End),
            (CLOSE, 1) => Some(Self::Close),
            _ => None,
        }
    }
}

/// A [`Frame::Part`], without a copy of the payload for the frame.
pub fn encode_part(id: CallId, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CALL_HEADER + payload.len());
    bytes.extend([TAG_CALL, id.call as u8, u8::from(last)]);
    bytes.extend(id.number.to_le_bytes());
    bytes.extend(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let call = prop::sample::select(Call::ALL.to_vec());
        let payload = prop::collection::vec(any::<u8>(), 0..200);
        prop_oneof![
            (call, any::<u32>(), any::<bool>(), payload).prop_map(
                |(call, number, last, payload)| Frame::Part {
                    id: CallId { call, number },
                    last,
                    payload
                }
            ),
            Just(Frame::Stop),
            (any::<u32>(), "[a-zäß:]{1,9}( [a-z]{1,9}){0,3}")
                .prop_map(|(rank, reason)| Frame::Fail(RankError { rank, reason })),
            Just(Frame::End),
            Just(Frame::Close),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive_a_round_trip(frame in frame()) {
            prop_assert_eq!(Frame::decode(frame.encode()), Some(frame));
        }

        #[test]
        fn anything_can_be_decoded(mut bytes in prop::collection::vec(any::<u8>(), 0..40), kind in 0u8..7) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let frame = Frame::decode(bytes.clone());
            // A reason is made one line again, so it may differ from what came.
            if let Some(frame) = frame.filter(|f| !matches!(f, Frame::Fail(_))) {
                prop_assert_eq!(frame.encode(), bytes);
            }
        }
    }
}
