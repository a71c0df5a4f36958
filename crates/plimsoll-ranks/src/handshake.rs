//! Handshake between a rank and the process that started it, before any frame.
//!
//! The rank first writes one line, its [`Hello`]. The other process replies with an [`Assignment`], preceded by its
//! length (4 bytes, little-endian). The line is text, which processes of any version can read.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Version of everything after the first line: assignments, frames and heartbeats.
pub const PROTOCOL: u32 = 2;
/// Prefix of the first line.
pub const GREETING: &str = "plimsoll-rank ";
/// Maximum length in bytes of the first line, and of unexpected text that is read instead.
pub const MAX_HELLO: usize = 4096;
/// Maximum length of an assignment in bytes.
pub const MAX_ASSIGNMENT: usize = 16 << 20;

/// The first line that a started rank writes, by which its parent checks the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Version of the started program, which must be the parent's version.
    pub version: String,
    /// The [`PROTOCOL`] version of the started program, which must be the parent's version.
    pub protocol: u32,
    /// SHA-256 of the program's file in hexadecimal digits; `None` unless the parent has sent the program.
    pub checksum: Option<String>,
}

impl Hello {
    /// Encodes the hello as a line, including the line end.
    #[must_use]
    pub fn encode(&self) -> String {
        let checksum = self.checksum.as_deref().unwrap_or("-");
        format!("{GREETING}{} {} {checksum}\n", self.version, self.protocol)
    }

    /// Decodes a hello from a line without its line end; `None` for another line, such as a login banner.
    #[must_use]
    pub fn decode(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix(GREETING)?.split(' ');
        let (version, protocol) = (words.next()?, words.next()?.parse().ok()?);
        let checksum = words.next().filter(|word| *word != "-");
        Some(Self {
            version: version.into(),
            protocol,
            checksum: checksum.map(Into::into),
        })
    }
}

/// Position of a rank in the group, and the program's start data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The ranks of the subtree; the first is the receiver's own rank.
    pub ranks: Range<u32>,
    /// Number of ranks of the group.
    pub size: u32,
    /// The rank that started the receiver.
    pub parent: u32,
    /// Whether rank 0 has workers.
    pub root_works: bool,
    /// Name of the receiver's machine; empty for the machine of rank 0.
    pub host: String,
    /// Opaque start data for the program.
    pub payload: Vec<u8>,
}

impl Assignment {
    /// Encodes the assignment without the length, which the sender puts before the assignment's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("memory takes an assignment")
    }

    /// Decodes an assignment; `None` for invalid bytes, and for ranks outside the group or not above their parent.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (sent, rest) = postcard::take_from_bytes::<Self>(bytes).ok()?;
        let Range { start, end } = sent.ranks;
        let is_sound = sent.parent < start && start < end && end <= sent.size;
        (is_sound && rest.is_empty()).then_some(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn assignments_survive_a_round_trip(
            numbers in [0u32..9, 1u32..9, 1u32..9, 0u32..9],
            root_works: bool,
            host in "[a-z@ü]{0,9}",
            payload in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let first = numbers[0] + 1;
            let end = first + numbers[1];
            let sent = Assignment {
                ranks: first..end,
                size: end + numbers[3],
                parent: numbers[0],
                root_works,
                host,
                payload,
            };
            prop_assert_eq!(Assignment::decode(&sent.encode()), Some(sent));
        }

        #[test]
        fn anything_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(assignment) = Assignment::decode(&bytes) {
                prop_assert_eq!(Assignment::decode(&assignment.encode()), Some(assignment));
            }
        }

        #[test]
        fn a_hello_survives_a_round_trip(
            version in "[0-9]\\.[0-9]{1,3}\\.[0-9]",
            protocol: u32,
            checksum in prop::option::of("[0-9a-f]{64}"),
        ) {
            let hello = Hello { version, protocol, checksum };
            let line = hello.encode();
            prop_assert!(line.starts_with(GREETING));
            prop_assert_eq!(Hello::decode(line.trim_end()), Some(hello));
        }
    }

    #[test]
    fn assignments_of_impossible_ranks_are_refused() {
        let bytes = |[start, end, size, parent]: [u32; 4]| {
            let assignment = Assignment {
                ranks: start..end,
                size,
                parent,
                root_works: false,
                host: "h".into(),
                payload: vec![7],
            };
            assignment.encode()
        };
        let decoded = |numbers| Assignment::decode(&bytes(numbers));
        assert_eq!(decoded([2, 3, 3, 1]).map(|a| a.ranks), Some(2..3));
        assert_eq!(decoded([1, 9, 9, 0]).map(|a| a.size), Some(9));
        // Parent, subtree and group are in this order, and none of them is empty.
        for numbers in [
            [2, 3, 3, 2],
            [2, 3, 9, 5],
            [2, 2, 3, 1],
            [3, 2, 9, 1],
            [2, 4, 3, 1],
        ] {
            assert_eq!(decoded(numbers), None, "{numbers:?}");
        }
        let good = bytes([2, 3, 3, 1]);
        assert_eq!(Assignment::decode(&good[..good.len() - 1]), None);
        assert_eq!(Assignment::decode(&[&good[..], &[0]].concat()), None);
    }

    #[test]
    fn other_lines_are_no_hello() {
        for text in [
            "Welcome to a",
            "plimsoll-rank",
            "plimsoll-rank 1",
            "plimsoll-rank 1 x",
        ] {
            assert_eq!(Hello::decode(text), None, "{text}");
        }
    }
}
