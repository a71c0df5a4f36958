//! Results per rank in a stage of a pattern.

use crate::{Latency, Nanos, OpTotals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Results of one rank in a stage that all ranks began together.
///
/// Times are from the rank's own clock; clocks of different ranks are never compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankStage {
    /// Number of the rank, from 0.
    pub rank: u32,
    /// Time from the common start to the end of the rank's own work, in nanoseconds, without the wait for other ranks
    /// at a stonewall.
    pub time_ns: Nanos,
    /// Time from the common start until every rank had finished, in nanoseconds.
    pub time_with_barrier_ns: Nanos,
    /// Number of rounds that the rank completed in the stage; in a search, names of files in the directories that the
    /// rank listed.
    pub rounds: u64,
    /// Number of matching files that the rank found in a search; null in other stages.
    #[serde(default)]
    pub matches: Option<u64>,
    /// Number of rounds that the rank had completed at the stonewall; null if the stage ended before the stonewall.
    pub stonewall_rounds: Option<u64>,
    /// Time from the common start until the rank noticed the stonewall, in nanoseconds; null if the stage ended before
    /// the stonewall.
    pub stonewall_ns: Option<Nanos>,
    /// Results of the rank for each operation of the Plan, in the Plan's order.
    pub rows: Vec<RankRow>,
}

/// Results of one rank for one operation in a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankRow {
    /// Number of operations of the rank that succeeded in the stage.
    pub ops: u64,
    /// Number of bytes that the operations in `ops` read and wrote.
    pub bytes: u128,
    /// Number of operations of the rank that failed in the stage.
    pub errors: u64,
    /// Seven-number summary of the service time in nanoseconds: minimum, first quartile, median, third quartile, 90th
    /// percentile, 99th percentile and maximum; all 0 without operations.
    pub quantiles_ns: [Nanos; 7],
}

/// Totals of one operation of a rank in a stage.
#[derive(Debug, Clone, Default)]
pub struct RankTotals {
    /// Number of operations of the rank that succeeded.
    pub ops: u64,
    /// Number of bytes that the operations in `ops` read and wrote.
    pub bytes: u128,
    /// Number of operations of the rank that failed.
    pub errors: u64,
    /// Service times of the operations in `ops`, from call to return.
    pub latency: Latency,
}

impl From<&RankTotals> for RankRow {
    fn from(totals: &RankTotals) -> Self {
        Self {
            ops: totals.ops,
            bytes: totals.bytes,
            errors: totals.errors,
            quantiles_ns: seven_number_summary(&totals.latency),
        }
    }
}

impl From<&OpTotals> for RankRow {
    fn from(totals: &OpTotals) -> Self {
        Self {
            ops: totals.ops,
            bytes: totals.bytes,
            errors: totals.error_count(),
            quantiles_ns: seven_number_summary(&totals.service),
        }
    }
}

/// Minimum, first quartile, median, third quartile, 90th and 99th percentile, and maximum by
/// MD-Workbench's rule, in nanoseconds; all 0 without samples.
///
/// MD-Workbench's quantile `q` of `n` sorted samples is sample number `round(q·n + 0.49)`, counted from 0 and limited
/// to the last sample; the median of an even number of samples is the mean of the middle two. Minimum and maximum are
/// exact, and the other five figures are exact to a thousandth.
#[must_use]
pub fn seven_number_summary(latency: &Latency) -> [Nanos; 7] {
    let n = latency.count();
    if n == 0 {
        return [0; 7];
    }
    let at = |q: f64| latency.nth((q * n as f64 + 0.49).round() as u64);
    let median = if n.is_multiple_of(2) {
        let (low, high) = (latency.nth(n / 2 - 1), latency.nth(n / 2));
        low + (high - low) / 2
    } else {
        latency.nth(n / 2)
    };
    [
        latency.min(),
        at(0.25),
        median,
        at(0.75),
        at(0.90),
        at(0.99),
        latency.max(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_is_that_of_the_totals() {
        let mut totals = RankTotals {
            ops: 3,
            bytes: 50,
            errors: 2,
            ..RankTotals::default()
        };
        [10, 20, 30]
            .into_iter()
            .for_each(|v| totals.latency.record(v));
        let row = RankRow::from(&totals);
        assert_eq!((row.ops, row.bytes, row.errors), (3, 50, 2));
        assert_eq!(row.quantiles_ns, [10, 20, 20, 30, 30, 30, 30]);
        let of_window = OpTotals {
            ops: 3,
            bytes: 50,
            errors: [("EIO".into(), 2)].into(),
            service: totals.latency,
            ..OpTotals::default()
        };
        assert_eq!(RankRow::from(&of_window), row);
    }

    proptest! {
        #[test]
        fn seven_numbers_are_those_of_the_sorted_samples(
            mut samples in prop::collection::vec(1u64..10_000_000_000, 1..300),
        ) {
            let mut latency = Latency::default();
            samples.iter().for_each(|s| latency.record(*s));
            samples.sort_unstable();
            let n = samples.len();
            let at = |q: f64| samples[((q * n as f64 + 0.49).round() as usize).min(n - 1)] as f64;
            let middle = if n % 2 == 0 {
                (samples[n / 2 - 1] + samples[n / 2]) as f64 / 2.0
            } else {
                samples[n / 2] as f64
            };
            let exact = [samples[0] as f64, at(0.25), middle, at(0.75), at(0.9), at(0.99), samples[n - 1] as f64];
            for (got, exact) in seven_number_summary(&latency).into_iter().zip(exact) {
                prop_assert!((got as f64 - exact).abs() <= exact * 1e-3 + 1.0, "{got} for {exact}");
            }
        }
    }
}
