//! Data files that a worker keeps open.

/// The open file of each of a worker's descriptor slots; the least recently used one is replaced.
pub(super) struct Handles {
    /// File of the working set and whether it bypasses the page cache, and when it was last used.
    slots: Vec<(Option<(u64, bool)>, u64)>,
    uses: u64,
}

impl Handles {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: vec![(None, 0); slots.max(1)],
            uses: 0,
        }
    }

    /// The slot of an open file.
    pub(super) fn find(&mut self, member: u64, direct: bool) -> Option<usize> {
        let key = Some((member, direct));
        let found = self.slots.iter().position(|(k, _)| *k == key)?;
        self.uses += 1;
        self.slots[found].1 = self.uses;
        Some(found)
    }

    /// Empties the least recently used slot, which it returns.
    pub(super) fn make_room(&mut self) -> usize {
        let oldest = (0..self.slots.len()).min_by_key(|i| {
            let (key, used) = self.slots[*i];
            (key.is_some(), used)
        });
        let slot = oldest.expect("there is at least one slot");
        self.slots[slot].0 = None;
        slot
    }

    /// Notes the file that was opened in an empty slot.
    pub(super) fn hold(&mut self, slot: usize, member: u64, direct: bool) {
        debug_assert!(self.slots[slot].0.is_none(), "slot {slot} has another file");
        self.uses += 1;
        self.slots[slot] = (Some((member, direct)), self.uses);
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
        // A slot that holds nothing comes first.
        assert_eq!(h.make_room(), 1);
        h.hold(1, 9, true);
        assert_eq!((h.find(9, true), h.find(7, false)), (Some(1), Some(0)));
    }
}
