//! Listing a directory part by part.

use crate::error::OpError;
use rustix::io::Errno;

/// The end of one part of a listing: the cookie of the last entry, the verifier for the next
/// request, and whether the listing is complete.
pub(crate) type ListingEnd = (Option<u64>, [u8; 8], bool);

/// The position from which the next part of a listing continues.
#[derive(Default)]
pub(crate) struct ListingCursor {
    /// Cookie of the last entry; 0 before the first part.
    pub(crate) cookie: u64,
    /// The verifier that the server returned with the last part.
    pub(crate) verifier: [u8; 8],
    /// An earlier cookie, with which each later cookie is compared (Brent's cycle detection).
    seen: u64,
    /// Number of parts since `seen` was set.
    parts: u64,
    /// Number of parts after which `seen` is set to the current cookie.
    max_parts: u64,
}

impl ListingCursor {
    /// Advances past a part; returns `false` after the last part.
    ///
    /// # Errors
    /// `EBADMSG` if the server returns to an earlier position, so that the listing would never end. The cycle is
    /// detected after at most three times the number of distinct parts.
    pub(crate) fn next_part(&mut self, (next, verifier, eof): ListingEnd) -> Result<bool, OpError> {
        if eof {
            return Ok(false);
        }
        let next = next.filter(|next| *next != self.seen);
        self.cookie = next.ok_or(OpError(Errno::BADMSG))?;
        self.verifier = verifier;
        self.parts += 1;
        if self.parts >= self.max_parts {
            (self.seen, self.parts) = (self.cookie, 0);
            self.max_parts = (2 * self.max_parts).max(1);
        }
        Ok(true)
    }
}

/// Whether a name that a server returned may become a component of a path.
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
        /// Every finite listing is read to its end, and every cycle is detected.
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
