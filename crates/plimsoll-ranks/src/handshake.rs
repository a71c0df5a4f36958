//! Handshake between a rank and the process that started it, before any frame.
//!
//! The rank first writes one line, its [`Hello`]. The other process replies with an [`Assignment`], preceded by its
//! length. The line is text, which processes of any version can read.

use std::ops::Range;

/// Version of everything after the first line: assignments, frames and heartbeats.
pub const PROTOCOL: u32 = 1;
/// Prefix of the first line.
pub const GREETING: &str = "plimsoll-rank ";
/// Maximum length in bytes of the first line, and of unexpected text that is read instead.
pub const MAX_HELLO: usize = 4096;
/// Maximum length of an assignment in bytes.
pub const MAX_ASSIGNMENT: usize = 16 << 20;

/// The first line of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Version of the program.
    pub version: String,
    /// The rank's [`PROTOCOL`].
    pub protocol: u32,
    /// Checksum of the program's file, if requested.
    pub checksum: Option<String>,
}

impl Hello {
    /// Encodes the line, including the line end.
    #[must_use]
    pub fn encode(&self) -> String {
        let checksum = self.checksum.as_deref().unwrap_or("-");
        format!("{GREETING}{} {} {checksum}\n", self.version, self.protocol)
    }

    /// Parses a line without its line end; `None` if it is not a hello.
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Encodes the assignment; numbers are little-endian.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(25 + self.host.len() + self.payload.len());
        let numbers = [self.ranks.start, self.ranks.end, self.size, self.parent];
        for number in numbers {
            bytes.extend(number.to_le_bytes());
        }
        bytes.push(u8::from(self.root_works));
        bytes.extend((self.host.len() as u32).to_le_bytes());
        bytes.extend(self.host.as_bytes());
        bytes.extend(&self.payload);
        bytes
    }

    /// Decodes an assignment; `None` for bytes that no process of this protocol sends.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.split_first_chunk::<16>()?;
        let number = |at: usize| {
            let (numbers, _) = numbers.as_chunks::<4>();
            u32::from_le_bytes(numbers[at])
        };
        let (root_works, rest) = match rest.split_first()? {
            (0, rest) => (false, rest),
            (1, rest) => (true, rest),
            _ => return None,
        };
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (host, payload) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let (ranks, size, parent) = (number(0)..number(1), number(2), number(3));
        let is_sound = parent < ranks.start && ranks.start < ranks.end && ranks.end <= size;
        is_sound.then_some(Self {
            ranks,
            size,
            parent,
            root_works,
            host: std::str::from_utf8(host).ok()?.to_owned(),
            payload: payload.to_vec(),
        })
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
                prop_assert_eq!(assignment.encode(), bytes);
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
        let changed = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            Assignment::decode(&bytes)
        };
        // Whether rank 0 works, the length of the name, and the name.
        assert_eq!(changed(16, 1).map(|a| a.root_works), Some(true));
        assert_eq!(changed(16, 2), None);
        assert_eq!(changed(17, 2).map(|a| a.host), Some("h\u{7}".into()));
        assert_eq!(changed(17, 3), None);
        assert_eq!(changed(21, 0xff), None);
        assert_eq!(Assignment::decode(&good[..20]), None);
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
