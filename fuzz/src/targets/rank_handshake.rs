//! Messages of ranks before the first frame: any bytes are an assignment or the first line, or neither. Encoded values
//! decode to the same values.

use plimsoll_ranks::handshake::{Assignment, Hello};

/// Decodes the input as an assignment of ranks and as the first line of a connection; encodes and decodes accepted
/// values again.
pub fn run(data: &[u8]) {
    if let Some(assignment) = Assignment::decode(data) {
        let again = Assignment::decode(&assignment.encode());
        assert_eq!(again.as_ref(), Some(&assignment));
        assert!(assignment.ranks.end <= assignment.size);
    }
    if let Ok(text) = std::str::from_utf8(data)
        && !text.contains('\n')
        && let Some(hello) = Hello::decode(text)
    {
        let line = hello.encode();
        assert_eq!(Hello::decode(&line[..line.len() - 1]), Some(hello));
    }
}
