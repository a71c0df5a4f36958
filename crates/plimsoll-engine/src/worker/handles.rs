//! Data files that a worker keeps open.

/// The open file of each descriptor slot of a worker; the least recently used file is replaced.
///
/// Every operation searches the keys of open files, so the keys are contiguous in few cache lines.
pub(super) struct Handles {
    /// Key of the open file of each slot, or [`NO_FILE`].
    files: Box<[u64]>,
    /// For each slot, the value of `uses` at the latest use.
    used: Box<[u64]>,
    uses: u64,
}

/// Key of an empty slot.
const NO_FILE: u64 = u64::MAX;

/// Key of a file of the working set that is open with or without direct I/O.
fn key(member: u64, direct: bool) -> u64 {
    debug_assert!(member < NO_FILE >> 1, "a working set has fewer files");
    member << 1 | u64::from(direct)
}

impl Handles {
    pub(super) fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        Self {
            files: vec![NO_FILE; slots].into(),
            used: vec![0; slots].into(),
            uses: 0,
        }
    }

    /// The slot of an open file; marks the slot as used. `None` if the file is not open.
    pub(super) fn find(&mut self, member: u64, direct: bool) -> Option<usize> {
        let key = key(member, direct);
        let found = self.files.iter().position(|k| *k == key)?;
        self.uses += 1;
        self.used[found] = self.uses;
        Some(found)
    }

    /// Empties and returns an empty slot or, without an empty slot, the least recently used slot.
    pub(super) fn make_room(&mut self) -> usize {
        let slots = 0..self.files.len();
        let oldest = slots.min_by_key(|i| (self.files[*i] != NO_FILE, self.used[*i]));
        let slot = oldest.expect("there is at least one slot");
        self.files[slot] = NO_FILE;
        slot
    }

    /// Records the file that was opened in an empty slot.
    pub(super) fn hold(&mut self, slot: usize, member: u64, direct: bool) {
        debug_assert!(self.files[slot] == NO_FILE, "slot {slot} has another file");
        self.uses += 1;
        self.files[slot] = key(member, direct);
        self.used[slot] = self.uses;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_gives_way() {
        let mut h = Handles::new(2);
        for (member, slot) in [(7, 0), (8, 1)] {
            assert_eq!(h.find(member, false), None);
            assert_eq!(h.make_room(), slot);
            h.hold(slot, member, false);
        }
        assert_eq!(h.find(7, false), Some(0));
        assert_eq!(h.find(7, true), None, "the other way of opening it");
        assert_eq!(h.make_room(), 1);
        assert_eq!(h.find(8, false), None);
        // An empty slot is used before a slot with a file.
        assert_eq!(h.make_room(), 1);
        h.hold(1, 9, true);
        assert_eq!((h.find(9, true), h.find(7, false)), (Some(1), Some(0)));
    }

    #[test]
    fn a_file_is_found_by_its_number_and_way_of_opening() {
        let mut h = Handles::new(4);
        for (slot, (member, direct)) in [(0, false), (0, true), (1, false), (1, true)]
            .into_iter()
            .enumerate()
        {
            assert_eq!(h.make_room(), slot);
            h.hold(slot, member, direct);
        }
        let found =
            [(0, false), (0, true), (1, false), (1, true), (2, false)].map(|(m, d)| h.find(m, d));
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3), None]);
        // The slots are used in the order 2, 0, 3, 1.
        for (member, direct) in [(1, false), (0, false), (1, true), (0, true)] {
            h.find(member, direct);
        }
        let order: Vec<usize> = (10..14)
            .map(|member| {
                let slot = h.make_room();
                h.hold(slot, member, false);
                slot
            })
            .collect();
        assert_eq!(order, [2, 0, 3, 1]);
        let mut one = Handles::new(0);
        assert_eq!(one.make_room(), 0, "there is at least one slot");
    }
}
