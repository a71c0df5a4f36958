//! Listing a directory part by part.

use crate::error::OpError;
use rustix::io::Errno;

/// How a part of a listing ends: the cookie of its last entry, the verifier to be sent back, and
/// whether nothing follows.
pub(crate) type ListingEnd = (Option<u64>, [u8; 8], bool);

/// Where a listing goes on.
#[derive(Default)]
pub(crate) struct ListingCursor {
    /// Cookie of the last entry; 0 at the beginning.
    pub(crate) cookie: u64,
    /// What the server said with the last part.
    pub(crate) verifier: [u8; 8],
    /// A cookie that was come to before, with which each one is compared.
    seen: u64,
    /// Parts since then, and parts after which another is remembered.
    parts: u64,
    most: u64,
}

impl ListingCursor {
    /// Goes on after a part; `false` after the last.
    ///
    /// # Errors
    /// `EBADMSG` if the server leads back to where the listing was before, which would go on for
    /// ever. That is found out after at most three times the parts that there are.
    pub(crate) fn next_part(&mut self, (next, verifier, eof): ListingEnd) -> Result<bool, OpError> {
        if eof {
            return Ok(false);
        }
        let next = next.filter(|next| *next != self.seen);
        self.cookie = next.ok_or(OpError(Errno::BADMSG))?;
        self.verifier = verifier;
        self.parts += 1;
        if self.parts >= self.most {
            (self.seen, self.parts) = (self.cookie, 0);
            self.most = (2 * self.most).max(1);
        }
        Ok(true)
    }
}

/// Whether a name that a server gives is one: it is to become a component of a path.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let leads_away = |b: &u8| matches!(b, b'/' | 0);
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(leads_away)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_in_their_directory() {
        for name in [&b"a"[..], b"...", b".a", b"a b", b"\xff"] {
            assert!(is_name(name));
        }
        for none in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            assert!(!is_name(none));
        }
    }

    #[test]
    fn a_part_without_entries_leads_nowhere() {
        let mut place = ListingCursor::default();
        assert!(place.next_part((None, [0; 8], false)).is_err());
        let mut place = ListingCursor::default();
        assert!(!place.next_part((None, [0; 8], true)).unwrap());
    }

    proptest! {
        /// Any listing that comes to an end is gone through, and any circle is left.
        #[test]
        fn circles_are_left(way in 0u64..500, circle in 0u64..500) {
            let mut place = ListingCursor::default();
            for cookie in 1..=way {
                prop_assert!(place.next_part((Some(cookie), [1; 8], false)).unwrap());
                prop_assert_eq!((place.cookie, place.verifier), (cookie, [1; 8]));
            }
            if circle == 0 {
                prop_assert!(!place.next_part((Some(way + 1), [1; 8], true)).unwrap());
                return Ok(());
            }
            let most = 3 * (way + circle) + 3;
            let round = (0..most).map(|i| way + 1 + i % circle);
            let gone = round.take_while(|c| place.next_part((Some(*c), [1; 8], false)).is_ok());
            prop_assert!(gone.count() < most as usize);
        }
    }
}
