//! Size tables, from which transfer and file sizes are drawn.

use crate::seed::Rng;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum number of slots in a table.
const MAX_TABLE_SLOTS: usize = 16;

/// Maximum size of a slot in bytes: the largest transfer.
const MAX_SIZE_BYTES: u64 = 1 << 30;

/// Tolerance of sums of percentages that must be 100, in percentage points.
pub(crate) const TOLERANCE: f64 = 0.01;

/// Table of transfer or file sizes: a slot is drawn by its percentage, then a size uniformly within the slot.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SizeTable(pub Vec<SizeSlot>);

/// A range of sizes in a table of sizes, with its percentage of the draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeSlot {
    /// Minimum size in the slot, in bytes.
    pub min: u64,
    /// Maximum size in the slot, in bytes.
    pub max: u64,
    /// Percentage of the draws of a size that fall into the slot.
    pub percent: f64,
}

impl SizeTable {
    /// Table from which every draw is the size `size`, in bytes.
    #[must_use]
    pub fn fixed(size: u64) -> Self {
        Self(vec![SizeSlot {
            min: size,
            max: size,
            percent: 100.0,
        }])
    }

    /// Checks that the table has 1 to 16 slots, with sizes in order and at most 1 GiB, and percentages
    /// that sum to 100.
    ///
    /// # Errors
    /// The first violation, as a sentence without its subject.
    pub fn check(&self) -> Result<(), String> {
        let slots = self.0.len();
        if slots == 0 || slots > MAX_TABLE_SLOTS {
            return Err(format!(
                "must have 1 to {MAX_TABLE_SLOTS} slots, has {slots}"
            ));
        }
        for SizeSlot { min, max, percent } in &self.0 {
            if min > max {
                return Err(format!(
                    "has a slot whose min ({min}) is above its max ({max})"
                ));
            }
            if *max > MAX_SIZE_BYTES {
                return Err(format!("has a slot above 1 GiB ({max})"));
            }
            if !(0.0..=100.0).contains(percent) {
                return Err(format!(
                    "has a slot of {percent} percent: 0 to 100 are possible"
                ));
            }
        }
        let sum: f64 = self.0.iter().map(|s| s.percent).sum();
        if (sum - 100.0).abs() > TOLERANCE {
            return Err(format!("must sum to 100 percent, sums to {sum}"));
        }
        Ok(())
    }

    /// Mean of the sizes drawn from the table, in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let of = |s: &SizeSlot| s.percent / 100.0 * (s.min as f64 + s.max as f64) / 2.0;
        self.0.iter().map(of).sum()
    }

    /// Maximum of the sizes drawn from the table, in bytes; slots with 0 % do not count.
    #[must_use]
    pub fn greatest(&self) -> u64 {
        let drawn = self.0.iter().filter(|s| s.percent > 0.0);
        drawn.map(|s| s.max).max().unwrap_or(0)
    }

    /// Draws a size in bytes from the table.
    #[inline]
    #[must_use]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let mut at = rng.random::<f64>() * 100.0;
        let mut last = 0;
        for (i, slot) in self.0.iter().enumerate() {
            if slot.percent > 0.0 {
                last = i;
                if at < slot.percent {
                    break;
                }
            }
            at -= slot.percent;
        }
        let slot = self.0[last];
        match slot.min < slot.max {
            true => rng.random_range(slot.min..=slot.max),
            false => slot.min,
        }
    }
}

impl fmt::Display for SizeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::Bytes;
        let mut between = "";
        for s in self.0.iter().filter(|s| s.percent > 0.0) {
            write!(f, "{between}{}", Bytes(s.min))?;
            if s.max > s.min {
                write!(f, " to {}", Bytes(s.max))?;
            }
            if s.percent < 100.0 {
                write!(f, " {} %", s.percent)?;
            }
            between = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Stream;
    use proptest::prelude::*;

    fn slot(min: u64, max: u64, percent: f64) -> SizeSlot {
        SizeSlot { min, max, percent }
    }

    #[test]
    fn tables_are_checked() {
        assert_eq!(SizeTable::fixed(4096).check(), Ok(()));
        for (bad, says) in [
            (vec![], "1 to 16 slots, has 0"),
            (vec![slot(1, 1, 50.0)], "sums to 50"),
            (vec![slot(2, 1, 100.0)], "min (2) is above its max (1)"),
            (vec![slot(1, 1 << 40, 100.0)], "above 1 GiB"),
            (vec![slot(1, 1, f64::NAN)], "NaN percent"),
            (vec![slot(1, 1, 101.0), slot(1, 1, -1.0)], "101 percent"),
            (vec![slot(1, 1, 100.0 / 17.0); 17], "has 17"),
        ] {
            let error = SizeTable(bad).check().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn tables_may_be_at_the_ends_of_their_ranges() {
        let full = vec![slot(1 << 30, 1 << 30, 100.0 / 16.0); 16];
        assert_eq!(SizeTable(full).check(), Ok(()));
        let nothing = SizeTable(vec![slot(0, 0, 0.0), slot(5, 5, 100.0)]);
        assert_eq!(nothing.check(), Ok(()));
        for (sum, refused) in [
            (99.98, true),
            (99.995, false),
            (100.005, false),
            (100.02, true),
        ] {
            let table = SizeTable(vec![slot(1, 1, 50.0), slot(2, 2, sum - 50.0)]);
            assert_eq!(table.check().is_err(), refused, "{sum}");
        }
        let above = SizeTable::fixed((1 << 30) + 1).check();
        assert_eq!(above, Err("has a slot above 1 GiB (1073741825)".into()));
    }

    #[test]
    fn tables_are_shown_without_what_is_not_drawn() {
        let shown = |slots: &[SizeSlot]| SizeTable(slots.to_vec()).to_string();
        assert_eq!(shown(&[slot(4096, 4096, 100.0)]), "4 KiB");
        assert_eq!(shown(&[slot(4096, 8192, 100.0)]), "4 KiB to 8 KiB");
        assert_eq!(
            shown(&[
                slot(1, 1, 25.0),
                slot(2, 2, 0.0),
                slot(1024, 2048, 74.5),
                slot(4, 4, 0.5)
            ]),
            "1 B 25 %, 1 KiB to 2 KiB 74.5 %, 4 B 0.5 %"
        );
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn the_mean_and_the_maximum_are_those_of_the_slots_that_are_drawn() {
        let table = SizeTable(vec![
            slot(10, 30, 50.0),
            slot(100, 100, 50.0),
            slot(900, 900, 0.0),
        ]);
        assert_eq!((table.mean(), table.greatest()), (60.0, 100));
        assert_eq!(SizeTable(vec![]).greatest(), 0);
        assert_eq!(SizeTable::fixed(7).mean(), 7.0);
    }

    #[test]
    fn slots_come_as_often_as_they_say() {
        let table = SizeTable(vec![
            slot(1, 9, 25.0),
            slot(10, 10, 0.0),
            slot(100, 199, 75.0),
        ]);
        let mut rng = Stream::new(7).rng();
        let (mut small, mut sum) = (0, 0);
        for _ in 0..100_000 {
            let n = table.draw(&mut rng);
            assert!((1..=9).contains(&n) || (100..=199).contains(&n), "{n}");
            small += u64::from(n < 10);
            sum += n;
        }
        // Three standard deviations of the binomial count are 411; of the mean, 0.7.
        assert!((24_600..=25_400).contains(&small), "{small}");
        let mean = sum as f64 / 1e5;
        assert!(
            (mean - table.mean()).abs() < 0.7,
            "{mean} of {}",
            table.mean()
        );
        assert_eq!(table.greatest(), 199);
    }

    proptest! {
        #[test]
        fn draws_lie_in_a_slot_that_is_drawn(
            slots in prop::collection::vec((0u64..1000, 0u64..1000, 0.0f64..10.0), 1..16),
            seed: u64,
        ) {
            let sum: f64 = slots.iter().map(|s| s.2).sum();
            prop_assume!(sum > 0.0);
            let table = SizeTable(
                slots.iter().map(|(a, b, p)| slot(*a.min(b), *a.max(b), (p / sum * 100.0).min(100.0))).collect(),
            );
            prop_assert_eq!(table.check(), Ok(()));
            let mut rng = Stream::new(seed).rng();
            for _ in 0..50 {
                let n = table.draw(&mut rng);
                let of = |s: &SizeSlot| s.percent > 0.0 && (s.min..=s.max).contains(&n);
                prop_assert!(table.0.iter().any(of), "{}", n);
            }
        }
    }
}
