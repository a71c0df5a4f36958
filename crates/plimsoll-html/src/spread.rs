//! How latencies are spread, over all and over time, from `histograms.hlog`.

use crate::OpName;
use crate::timeline::Span;
use plimsoll_results::{SparseHistogram, SparseInterval, tag_of_text};
use std::collections::BTreeMap;

/// Most columns of a heat map.
pub const MOST_COLUMNS: usize = 96;

/// Rows of a heat map for latencies ten times as great.
const ROWS_A_DECADE: f64 = 8.0;

/// Bits of a value that tell a bucket from its neighbours; at least as many as the log keeps.
const KEPT_BITS: u32 = 10;

/// A latency distribution that is added to quickly. Values keep three significant digits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distribution {
    counts: Vec<u64>,
    total: u64,
}

impl Distribution {
    fn index(value: u64) -> usize {
        let bucket = value.max(1).ilog2().saturating_sub(KEPT_BITS);
        ((u64::from(bucket) << KEPT_BITS) + (value >> bucket)) as usize
    }

    /// Greatest value that is counted at an index.
    fn greatest(index: usize) -> u64 {
        let index = index as u64;
        let bucket = (index >> KEPT_BITS).saturating_sub(1);
        let within = index - (bucket << KEPT_BITS);
        ((within + 1) << bucket) - 1
    }

    /// Adds the samples of a histogram, given in nanoseconds; latencies beyond an hour count as
    /// an hour.
    pub fn add(&mut self, histogram: &SparseHistogram) {
        for (value, n) in &histogram.counts {
            let index = Self::index((*value).min(plimsoll_measure::GREATEST_LATENCY));
            if index >= self.counts.len() {
                self.counts.resize(index + 1, 0);
            }
            self.counts[index] = self.counts[index].saturating_add(*n);
            self.total = self.total.saturating_add(*n);
        }
    }

    /// Samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Latencies in milliseconds that shares of the samples, in increasing order and from 0 to 1,
    /// do not exceed; `None` for shares so great that less than one sample is beyond them.
    #[must_use]
    pub fn quantiles_ms(&self, shares: &[f64]) -> Vec<Option<f64>> {
        let mut counts = self.counts.iter().enumerate();
        let (mut seen, mut value) = (0u64, 0u64);
        let mut out = Vec::new();
        for share in shares {
            let beyond = (1.0 - share) * self.total as f64;
            // A little less than one is one that was rounded.
            if self.total == 0 || beyond < 0.999 {
                out.push(None);
                continue;
            }
            let rank = ((share * self.total as f64).ceil() as u64).max(1);
            while seen < rank {
                let Some((index, n)) = counts.next() else {
                    break;
                };
                if *n > 0 {
                    value = Self::greatest(index);
                    seen += n;
                }
            }
            out.push(Some(value as f64 / 1e6));
        }
        out
    }
}

/// Samples of an operation by time and latency.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Heat {
    /// Begin and end of each column, in seconds since the first window shown.
    pub columns: Vec<(f64, f64)>,
    /// Samples by column and row; see [`Heat::row_ms`].
    pub cells: Vec<BTreeMap<i32, u64>>,
}

impl Heat {
    fn new(columns: &[(f64, f64)]) -> Self {
        Self {
            columns: columns.to_vec(),
            cells: vec![BTreeMap::new(); columns.len()],
        }
    }

    fn add(&mut self, at_s: f64, histogram: &SparseHistogram) {
        let behind = self.columns.partition_point(|c| c.0 <= at_s);
        let Some(cells) = behind.checked_sub(1).and_then(|i| self.cells.get_mut(i)) else {
            return;
        };
        // Values come in increasing order, so that a row is looked up once for all that are in it.
        let (mut row, mut end, mut samples) = (0, 0.0, 0);
        for (value, n) in &histogram.counts {
            let value = (*value).max(1) as f64;
            if value >= end {
                if samples > 0 {
                    *cells.entry(row).or_default() += samples;
                }
                row = (value.log10() * ROWS_A_DECADE).floor() as i32;
                end = Self::row_ms(row).1 * 1e6;
                samples = 0;
            }
            samples += n;
        }
        if samples > 0 {
            *cells.entry(row).or_default() += samples;
        }
    }

    /// Begin and end of a row in milliseconds.
    #[must_use]
    pub fn row_ms(row: i32) -> (f64, f64) {
        let edge = |row: i32| 10f64.powf(f64::from(row) / ROWS_A_DECADE) / 1e6;
        (edge(row), edge(row + 1))
    }
}

/// How the latencies of an operation are spread.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spread {
    /// Service times.
    pub service: Distribution,
    /// Response times; empty if the operation was not paced.
    pub response: Distribution,
    /// Service times over time.
    pub heat: Heat,
}

/// Adds up the lines of a log as they are read.
pub struct Spreads {
    /// Windows that are shown, each with when it opened on the clock of the log.
    spans: Vec<Span>,
    /// When the first window opened, in seconds since the run's clock began.
    origin_s: f64,
    tags: BTreeMap<String, (usize, bool)>,
    spreads: Vec<Spread>,
}

impl Spreads {
    /// Takes the lines of some windows and operations, with heat maps of these columns.
    #[must_use]
    pub fn new(
        spans: &[Span],
        origin_s: f64,
        operations: &[OpName],
        columns: &[(f64, f64)],
    ) -> Self {
        let mut tags = BTreeMap::new();
        for (i, op) in operations.iter().enumerate() {
            let tag = tag_of_text(&op.name, &op.kind);
            tags.insert(format!("{tag}/response"), (i, true));
            tags.insert(tag, (i, false));
        }
        let spread = Spread {
            heat: Heat::new(columns),
            ..Spread::default()
        };
        Self {
            spans: spans.to_vec(),
            origin_s,
            tags,
            spreads: vec![spread; operations.len()],
        }
    }

    /// Adds a line.
    pub fn add(&mut self, line: &SparseInterval) {
        let Some((op, response)) = self.tags.get(&line.tag) else {
            return;
        };
        if !self.spans.iter().any(|s| s.number == line.window) {
            return;
        }
        let spread = &mut self.spreads[*op];
        if *response {
            spread.response.add(&line.histogram);
        } else {
            spread.service.add(&line.histogram);
            // The log rounds times to milliseconds: the middle lies in the column for sure.
            let middle = line.start.as_secs_f64() + line.length.as_secs_f64() / 2.0;
            spread.heat.add(middle - self.origin_s, &line.histogram);
        }
    }

    /// One entry an operation, in the order that was asked for.
    #[must_use]
    pub fn finish(self) -> Vec<Spread> {
        self.spreads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_samples(
            mut samples in prop::collection::vec(1u64..10_000_000_000, 1..300),
            at in 0usize..9,
        ) {
            let mut d = Distribution::default();
            for s in &samples {
                d.add(&SparseHistogram { counts: vec![(*s, 1)] });
            }
            samples.sort_unstable();
            let share = at as f64 / 10.0;
            let rank = ((share * samples.len() as f64).ceil() as usize).max(1);
            let exact = samples[rank - 1] as f64 / 1e6;
            prop_assert_eq!(d.count(), samples.len() as u64);
            match d.quantiles_ms(&[0.0, share])[1] {
                Some(got) => prop_assert!((got - exact).abs() <= exact * 1e-3 + 1e-6, "{got} {exact}"),
                None => prop_assert!((1.0 - share) * (samples.len() as f64) < 1.0),
            }
        }

        #[test]
        fn a_value_is_counted_where_it_is_found_again(value in 0u64..=plimsoll_measure::GREATEST_LATENCY) {
            let index = Distribution::index(value);
            let greatest = Distribution::greatest(index);
            prop_assert!(greatest >= value);
            prop_assert!((greatest - value) as f64 <= value as f64 * 1e-3);
            prop_assert_eq!(Distribution::index(greatest), index);
            if index > 0 {
                prop_assert!(Distribution::greatest(index - 1) < value);
            }
        }
    }

    #[test]
    fn heat_is_where_and_when_the_samples_were() {
        let mut heat = Heat::new(&[(0.0, 1.0), (1.0, 2.0)]);
        let samples = |counts: &[(u64, u64)]| SparseHistogram {
            counts: counts.to_vec(),
        };
        heat.add(0.0, &samples(&[(1_000_000, 3)]));
        heat.add(1.0, &samples(&[(1_000_001, 2), (1_100_000, 4)]));
        heat.add(-5.0, &samples(&[(7, 100)]));
        assert_eq!(heat.cells[0].values().sum::<u64>(), 3);
        assert_eq!(heat.cells[1].values().sum::<u64>(), 6);
        let (row, n) = heat.cells[1].first_key_value().unwrap();
        let (from, to) = Heat::row_ms(*row);
        assert!(from <= 1.000_001 && 1.1 < to && *n == 6, "{from} {to} {n}");
    }
}
