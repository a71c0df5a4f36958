//! Messages between ranks.
//!
//! A frame is at most [`MAX_FRAME`] bytes long. Longer values are split into several frames, so that a failure never
//! waits behind a long value. Numbers are little-endian.
//!
//! | first byte | rest |
//! | --- | --- |
//! | 1 part of a collective call | call (1 byte), last part? (1), number of the call (4), payload |
//! | 2 stop | |
//! | 3 failure | rank (4), reason (UTF-8) |
//! | 4 end | |
//! | 5 close | |

use crate::{MAX_REASON_BYTES, RankError};

/// Maximum length of a frame's payload in bytes.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// Maximum length of a frame in bytes.
pub const MAX_FRAME: usize = MAX_PAYLOAD + CALL_HEADER;
/// Maximum length in bytes of a frame other than [`Frame::Part`]; the longest of the short frames is [`Frame::Fail`].
pub const MAX_SHORT_FRAME: usize = FAIL_HEADER + MAX_REASON_BYTES;

const CALL_HEADER: usize = 7;
const FAIL_HEADER: usize = 5;
const TAG_CALL: u8 = 1;
const STOP: u8 = 2;
const FAIL: u8 = 3;
const END: u8 = 4;
const CLOSE: u8 = 5;

/// A collective call: a method of [`Ranks`](crate::Ranks).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// [`barrier`](crate::Ranks::barrier).
    Barrier = 1,
    /// [`broadcast`](crate::Ranks::broadcast).
    Broadcast,
    /// [`reduce`](crate::Ranks::reduce).
    Reduce,
    /// [`collect`](crate::Ranks::collect).
    Collect,
    /// [`max`](crate::Ranks::max).
    Max,
    /// [`min`](crate::Ranks::min).
    Min,
    /// [`sum`](crate::Ranks::sum).
    Sum,
    /// [`agree_on_start`](crate::Ranks::agree_on_start).
    Start,
    /// [`report_start`](crate::Ranks::report_start).
    Started,
    /// [`reduce_survivors`](crate::Ranks::reduce_survivors).
    Survivors,
}

impl Call {
    const ALL: [Self; 10] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::Collect,
        Self::Max,
        Self::Min,
        Self::Sum,
        Self::Start,
        Self::Started,
        Self::Survivors,
    ];

    /// Name of the call in failure reasons: the variant's name in lower case.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The collective call that a frame belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallId {
    /// Method of [`Ranks`](crate::Ranks) that the sender of the frame has called.
    pub call: Call,
    /// Number of collective calls that the sender had made before the call; the number wraps around to 0 after
    /// `u32::MAX`.
    pub number: u32,
}

/// A message to or from a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A part of a value of a collective call.
    Part {
        /// Collective call that exchanges the value of which the frame carries a part.
        id: CallId,
        /// Whether the part is the last part of the value.
        last: bool,
        /// Bytes of the value that the frame carries, at most [`MAX_PAYLOAD`].
        payload: Vec<u8>,
    },
    /// All ranks should stop the run in order.
    Stop,
    /// A rank has failed.
    Fail(RankError),
    /// The neighbour has ended and makes no more calls.
    End,
    /// Frame to a parent after all ranks of the sender's subtree have sent their final message, or, after a failure and
    /// on links that report process exits, after all processes below the sender have ended. A `Close` to a child says
    /// that all ranks of the group have sent their final message.
    Close,
}

impl Frame {
    /// Encodes the frame: one byte for the kind of the frame, then little-endian numbers and bytes.
    #[must_use]
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

    /// Decodes a frame; `None` for bytes that no rank of this version sends.
    #[must_use]
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
            (FAIL, FAIL_HEADER..) => {
                let rank = u32::from_le_bytes(bytes[1..FAIL_HEADER].try_into().ok()?);
                let reason = std::str::from_utf8(&bytes[FAIL_HEADER..]).ok()?;
                Some(Self::Fail(RankError::new(rank, reason)))
            }
            (END, 1) => Some(Self::End),
            (CLOSE, 1) => Some(Self::Close),
            _ => None,
        }
    }
}

/// Encodes a [`Frame::Part`] without copying the payload into a frame first.
///
/// # Panics
/// If the payload is longer than [`MAX_PAYLOAD`].
#[must_use]
pub fn encode_part(id: CallId, last: bool, payload: &[u8]) -> Vec<u8> {
    assert!(
        payload.len() <= MAX_PAYLOAD,
        "a payload of {} bytes exceeds a frame",
        payload.len()
    );
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

    #[test]
    fn frames_of_other_lengths_are_refused() {
        let id = CallId {
            call: Call::Sum,
            number: 3,
        };
        let longest = encode_part(id, true, &vec![1; MAX_PAYLOAD]);
        assert_eq!(longest.len(), MAX_FRAME);
        let mut too_long = longest.clone();
        too_long.push(1);
        assert!(Frame::decode(longest).is_some());
        assert_eq!(Frame::decode(too_long), None);
        let part = encode_part(id, true, &[]);
        assert!(Frame::decode(part.clone()).is_some());
        assert_eq!(Frame::decode(part[..6].to_vec()), None);
        let changed = |at: usize, byte: u8| {
            let mut bytes = part.clone();
            bytes[at] = byte;
            Frame::decode(bytes)
        };
        // The call, and whether it is the last part.
        assert_eq!(
            (changed(1, 0), changed(1, 11), changed(2, 2)),
            (None, None, None)
        );
        let failure = |bytes: &[u8]| Frame::decode([&[3], bytes].concat());
        let error = |reason| Some(Frame::Fail(RankError::new(258, reason)));
        assert_eq!(failure(&[2, 1, 0, 0]), error(""));
        assert_eq!(failure(&[2, 1, 0, 0, b'x']), error("x"));
        assert_eq!(
            (failure(&[2, 1, 0]), failure(&[2, 1, 0, 0, 0xff])),
            (None, None)
        );
        for tag in [2, 4, 5] {
            assert!(Frame::decode(vec![tag]).is_some());
            assert_eq!(Frame::decode(vec![tag, 0]), None);
        }
        assert_eq!(
            (Frame::decode(vec![]), Frame::decode(vec![6])),
            (None, None)
        );
    }

    #[test]
    #[should_panic(expected = "a payload of 1048577 bytes exceeds a frame")]
    fn a_longer_payload_is_not_encoded() {
        let (call, number) = (Call::Sum, 0);
        let _ = encode_part(CallId { call, number }, true, &vec![0; MAX_PAYLOAD + 1]);
    }

    #[test]
    fn calls_have_the_names_of_their_methods() {
        let names: Vec<String> = Call::ALL.iter().map(|call| call.name()).collect();
        let expected = "barrier broadcast reduce collect max min sum start started survivors";
        assert_eq!(names.join(" "), expected);
        let numbers: Vec<u8> = Call::ALL.iter().map(|call| *call as u8).collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<u8>>());
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
            // A decoded reason is normalised to one line, so its encoding may differ from the input.
            if let Some(frame) = frame.filter(|f| !matches!(f, Frame::Fail(_))) {
                prop_assert_eq!(frame.encode(), bytes);
            }
        }
    }
}
