//! Letters around the numbers in file names.

use crate::fileset::Letters;
use crate::seed::Stream;
use rand::Rng;

/// The letter around the numbers in file names, by which `plimsoll clean` recognises files of a fileset.
pub(super) const LETTER: u8 = b'n';

impl Letters {
    /// Numbers of letters before and after the number in a file's name, drawn from a stream of the file's position.
    fn of(self, position: u32) -> (usize, usize) {
        let mut rng = Stream::new(u64::from(position)).named("letters").rng();
        let mut draw = |[least, most]: [u8; 2]| {
            debug_assert!(least <= most, "{least} to {most} letters");
            let choices = u64::from(most.saturating_sub(least)) + 1;
            usize::from(least) + (rng.next_u64() % choices) as usize
        };
        (draw(self.before), draw(self.after))
    }

    /// Appends a slash and a name: the number that `push` appends, with letters around it.
    pub(super) fn push(self, position: u32, out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
        let (before, after) = self.of(position);
        out.push(b'/');
        out.extend(std::iter::repeat_n(LETTER, before));
        let slash = out.len();
        push(out);
        debug_assert_eq!(out[slash], b'/', "a number comes with a slash");
        out.remove(slash);
        out.extend(std::iter::repeat_n(LETTER, after));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_have_as_many_letters_as_they_may(
            a in 0u8..=64, b in 0u8..=64, c in 0u8..=64, d in 0u8..=64, position in 1u32..1_000_000,
        ) {
            let letters = Letters {
                before: [a.min(b), a.max(b)],
                after: [c.min(d), c.max(d)],
            };
            let mut name = Vec::new();
            letters.push(position, &mut name, |out| out.extend(format!("/{position:08}").bytes()));
            let name = String::from_utf8(name).unwrap();
            let (before, rest) = name[1..].split_at(name[1..].find(|ch: char| ch.is_ascii_digit()).unwrap());
            let (number, after) = rest.split_at(8);
            prop_assert_eq!(number.parse::<u32>().unwrap(), position);
            prop_assert!(before.chars().chain(after.chars()).all(|ch| ch == 'n'));
            let within = |n: usize, [least, most]: [u8; 2]| (usize::from(least)..=usize::from(most)).contains(&n);
            prop_assert!(within(before.len(), letters.before) && within(after.len(), letters.after));
        }
    }

    #[test]
    fn all_lengths_occur() {
        let letters = Letters {
            before: [0, 3],
            after: [1, 2],
        };
        let seen: std::collections::BTreeSet<_> = (1..200).map(|p| letters.of(p)).collect();
        assert_eq!(seen.len(), 8);
    }
}
