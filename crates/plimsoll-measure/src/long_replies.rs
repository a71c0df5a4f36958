//! Server replies that are longer than the protocol allows.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Replies of a procedure with extra bytes after the result, which were ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongReplies {
    /// Name of the procedure, such as `FSSTAT`.
    pub procedure: String,
    /// Document that defines the procedure, such as `RFC 1813`.
    pub standard: String,
    /// Number of replies of the procedure that were longer than the protocol allows.
    pub count: u64,
    /// Minimum number of bytes after the result in a long reply.
    pub min_bytes: u32,
    /// Maximum number of bytes after the result in a long reply.
    pub max_bytes: u32,
}

impl LongReplies {
    /// Merges the replies `more` into `all`, one entry per procedure.
    pub fn add(all: &mut Vec<Self>, more: Vec<Self>) {
        for new in more {
            let same = |known: &&mut Self| {
                (&known.procedure, &known.standard) == (&new.procedure, &new.standard)
            };
            match all.iter_mut().find(same) {
                None => all.push(new),
                Some(known) => {
                    known.count += new.count;
                    known.min_bytes = known.min_bytes.min(new.min_bytes);
                    known.max_bytes = known.max_bytes.max(new.max_bytes);
                }
            }
        }
    }
}

impl fmt::Display for LongReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            procedure,
            standard,
            count,
            min_bytes: min,
            max_bytes: max,
        } = self;
        write!(f, "the server's {procedure} replies are ")?;
        match (min, max) {
            (1, 1) => write!(f, "1 byte")?,
            (min, max) if min == max => write!(f, "{max} bytes")?,
            _ => write!(f, "{min} to {max} bytes")?,
        }
        let replies = if *count == 1 { "reply" } else { "replies" };
        write!(
            f,
            " longer than {standard} says ({count} {replies}); the surplus was ignored"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(procedure: &str, count: u64, min_bytes: u32, max_bytes: u32) -> LongReplies {
        LongReplies {
            procedure: procedure.into(),
            standard: "RFC 1813".into(),
            count,
            min_bytes,
            max_bytes,
        }
    }

    #[test]
    fn replies_of_a_procedure_are_added_up() {
        let mut all = vec![long("FSSTAT", 1, 4, 4)];
        LongReplies::add(
            &mut all,
            vec![long("READ", 2, 8, 8), long("FSSTAT", 3, 4, 12)],
        );
        assert_eq!(all, [long("FSSTAT", 4, 4, 12), long("READ", 2, 8, 8)]);
    }

    #[test]
    fn notes_say_what_and_how_much() {
        assert_eq!(
            long("FSSTAT", 1, 4, 4).to_string(),
            "the server's FSSTAT replies are 4 bytes longer than RFC 1813 says (1 reply); the \
             surplus was ignored"
        );
        assert_eq!(
            long("READ", 7, 4, 12).to_string(),
            "the server's READ replies are 4 to 12 bytes longer than RFC 1813 says (7 replies); \
             the surplus was ignored"
        );
    }
}
