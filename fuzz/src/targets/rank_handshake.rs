//! What ranks say before frames: any bytes are an assignment or the first line, or neither. What is one
//! comes back.

use plimsoll_ranks::handshake::{Assignment, Hello};

/// Decodes both.
pub fn run(data: &[u8]) {
    if let Some(assignment) = Assignment::decode(data) {
        assert_eq!(assignment.encode(), data);
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
