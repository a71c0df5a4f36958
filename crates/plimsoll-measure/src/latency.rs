//! Totals of an operation over a period: counts, bytes, errors and latency distributions.

use crate::counts::Counts;
use crate::in_flight::censored_quantile;
use crate::{InFlightAges, MIN_LATENCY_NS, Nanos, Quantile, SIGNIFICANT_DIGITS};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The error of an operation: the name of an errno or of a protocol's status.
pub type ErrorCode = String;

/// A latency distribution with exact count, sum, minimum and maximum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "LatencyEncoding", into = "LatencyEncoding")]
pub struct Latency {
    histogram: Histogram<u64>,
    sum: u128,
    min: Nanos,
    max: Nanos,
}

impl Default for Latency {
    fn default() -> Self {
        let mut histogram =
            Histogram::new_with_bounds(MIN_LATENCY_NS, 2 * MIN_LATENCY_NS, SIGNIFICANT_DIGITS)
                .expect("the bounds are constants that the crate accepts");
        histogram.auto(true);
        Self {
            histogram,
            sum: 0,
            min: Nanos::MAX,
            max: 0,
        }
    }
}

/// Serialised form of a [`Latency`]: values with their numbers of occurrences.
#[derive(Serialize, Deserialize)]
struct LatencyEncoding {
    counts: Vec<(u64, u64)>,
    sum: u128,
    min: Nanos,
    max: Nanos,
}

impl From<Latency> for LatencyEncoding {
    fn from(l: Latency) -> Self {
        Self {
            counts: l.recorded().collect(),
            sum: l.sum,
            min: l.min,
            max: l.max,
        }
    }
}

impl From<LatencyEncoding> for Latency {
    fn from(r: LatencyEncoding) -> Self {
        let mut latency = Self {
            sum: r.sum,
            min: r.min,
            max: r.max,
            ..Self::default()
        };
        for (value, n) in r.counts {
            latency.record_n(value, n);
        }
        latency
    }
}

/// Rank, from 1, of the sample at which a fraction of `count` samples ends; 1 without samples.
///
/// The rank is rounded up. Rounding errors are excluded: a product such as `0.07 · 100` slightly exceeds a whole number
/// and must not be rounded up.
#[must_use]
pub fn quantile_rank(share: f64, count: u64) -> u64 {
    let rank = share * (1.0 - f64::EPSILON) * count as f64;
    (rank.ceil() as u64).max(1)
}

impl Latency {
    /// Distribution of a list of samples, in nanoseconds.
    #[must_use]
    pub fn of(samples: impl IntoIterator<Item = Nanos>) -> Self {
        let mut latency = Self::default();
        samples.into_iter().for_each(|s| latency.record(s));
        latency
    }

    /// Number of samples in the distribution, one for each operation.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Sum of all samples in nanoseconds, exact.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Arithmetic mean in nanoseconds, exact; 0 without samples.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count().max(1) as f64
    }

    /// Minimum in nanoseconds, exact; 0 without samples.
    #[must_use]
    pub fn min(&self) -> Nanos {
        if self.count() == 0 { 0 } else { self.min }
    }

    /// Maximum in nanoseconds, exact; 0 without samples.
    #[must_use]
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// Latency in nanoseconds that the fraction `q` (0 to 1) of the samples does not exceed, to three significant
    /// digits; 0 without samples. The value never exceeds the exact maximum.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Nanos {
        let rank = quantile_rank(q, self.count());
        self.of_rank(rank).min(self.max)
    }

    /// Quantile `q` of the samples of this distribution and of operations in flight, which take at least as long as
    /// their ages; see [`censored_quantile`]. If only a lower bound is known, the bound is the age of the oldest
    /// operation in flight.
    #[must_use]
    pub fn quantile_with(&self, ages: &InFlightAges, q: f64) -> Quantile {
        if ages.count() == 0 {
            return Quantile::known(self.quantile(q));
        }
        let estimate = || censored_quantile(self.recorded(), &ages.counts(), self.count(), q);
        let is_maximum = q >= 1.0 && ages.oldest() > self.max;
        match (!is_maximum).then(estimate).flatten() {
            Some(value) => Quantile::known(value.min(self.max)),
            None => Quantile::at_least(ages.oldest().max(self.max)),
        }
    }

    pub(crate) fn recorded(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let recorded = self.histogram.iter_recorded();
        recorded.map(|v| (v.value_iterated_to(), v.count_at_value()))
    }

    /// Sample number `index`, from 0, of all samples in increasing order, in nanoseconds; the last sample for a larger
    /// `index`, and 0 without samples. The first and the last sample are exact, and the other samples have three
    /// significant digits.
    #[must_use]
    pub fn nth(&self, index: u64) -> Nanos {
        let n = self.count();
        match index {
            _ if n == 0 => 0,
            0 => self.min,
            i if i + 1 >= n => self.max,
            i => self.of_rank(i + 1).min(self.max),
        }
    }

    /// Histogram value of sample number `rank`, from 1, in increasing order.
    fn of_rank(&self, rank: u64) -> Nanos {
        // The fraction is half a sample below the rank, because the histogram rounds up.
        let share = (rank as f64 - 0.5) / self.count() as f64;
        self.histogram.value_at_quantile(share)
    }

    /// The samples in nanoseconds as an HdrHistogram, with three significant digits.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Distribution of values in increasing order with their numbers of occurrences.
    #[must_use]
    pub fn of_counts(counts: &[(Nanos, u64)], sum: u128, max: Nanos) -> Self {
        let least = counts.first().map_or(Nanos::MAX, |(value, _)| *value);
        LatencyEncoding {
            counts: counts.to_vec(),
            sum,
            min: least.min(max),
            max,
        }
        .into()
    }

    /// Adds a sample of `latency` nanoseconds.
    pub fn record(&mut self, latency: Nanos) {
        self.record_n(latency, 1);
        self.sum += u128::from(latency);
        self.min = self.min.min(latency);
        self.max = self.max.max(latency);
    }

    /// Adds the samples of another distribution.
    pub fn add(&mut self, other: &Latency) {
        if other.count() > 0 {
            self.histogram
                .add(&other.histogram)
                .expect("the histogram grows as needed");
            self.sum += other.sum;
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
    }

    fn record_n(&mut self, value: Nanos, n: u64) {
        self.histogram
            .record_n(value, n)
            .expect("the histogram grows as needed");
    }

    pub(crate) fn add_counts(&mut self, counts: &Counts) {
        counts.for_each(|value, n| self.record_n(value, n));
        self.sum += counts.sum();
        self.min = self.min.min(counts.min.load(Relaxed));
        self.max = self.max.max(counts.max.load(Relaxed));
    }
}

/// Totals of one operation of the workload, a row of the results, over a period such as a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OpTotals {
    /// Number of operations that succeeded in the period.
    pub ops: u64,
    /// Number of bytes that the operations in `ops` read and wrote.
    pub bytes: u128,
    /// Number of operations that failed in the period, by error code.
    pub errors: BTreeMap<ErrorCode, u64>,
    /// Service times of the operations in `ops`, from call to return.
    pub service: Latency,
    /// Response times, from intended start to return, or from call to return of an operation
    /// without an intended start; empty if the row is never paced.
    pub response: Latency,
    /// Number of operations with an intended start.
    pub paced: u64,
    /// Processor time of `cpu_ops` operations in nanoseconds.
    pub cpu_ns: u64,
    /// Number of operations, succeeded or failed, with known processor time.
    pub cpu_ops: u64,
    /// Ages of the operations in flight at a window end; these operations are in no other figure of this struct.
    pub in_flight: InFlightAges,
}

impl OpTotals {
    /// Adds the totals of another period, lane or rank.
    pub fn add(&mut self, other: &OpTotals) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.service.add(&other.service);
        self.response.add(&other.response);
        self.paced += other.paced;
        self.cpu_ns += other.cpu_ns;
        self.cpu_ops += other.cpu_ops;
        self.in_flight.merge(&other.in_flight);
        for (code, n) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += n;
        }
    }

    /// Latency distribution: response times of operations with an intended start, service times of operations without
    /// an intended start.
    #[must_use]
    pub fn latency(&self) -> &Latency {
        match self.paced {
            0 => &self.service,
            _ => &self.response,
        }
    }

    /// Number of failed operations, over all error codes.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Mean processor time per operation in microseconds; `None` if no processor time is known.
    #[must_use]
    pub fn cpu_us_per_op(&self) -> Option<f64> {
        (self.cpu_ops > 0).then(|| self.cpu_ns as f64 / self.cpu_ops as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_within_a_thousandth_of_the_sorted_samples(
            mut samples in prop::collection::vec(1u64..10_000_000_000, 1..400),
            q in 0.0f64..=1.0,
        ) {
            let mut l = Latency::default();
            samples.iter().for_each(|s| l.record(*s));
            samples.sort_unstable();
            let rank = ((q * samples.len() as f64).ceil() as usize).clamp(1, samples.len());
            let exact = samples[rank - 1] as f64;
            let got = l.quantile(q) as f64;
            prop_assert!((got - exact).abs() <= exact * 1e-3 + 1.0, "{got} for {exact}");
            prop_assert_eq!(l.sum(), u128::from(samples.iter().sum::<u64>()));
            prop_assert_eq!((l.min(), l.max()), (samples[0], samples[samples.len() - 1]));
            let text = serde_json::to_string(&l).unwrap();
            prop_assert_eq!(serde_json::from_str::<Latency>(&text).unwrap(), l);
        }
    }

    #[test]
    fn processor_time_is_per_operation_of_which_it_is_known() {
        let sampled = OpTotals {
            ops: 1000,
            cpu_ns: 12_000,
            cpu_ops: 4,
            ..OpTotals::default()
        };
        assert_eq!(sampled.cpu_us_per_op(), Some(3.0));
        assert_eq!(OpTotals::default().cpu_us_per_op(), None);
    }

    #[test]
    fn a_quantile_is_of_the_sample_of_its_rank_whatever_the_number_of_digits() {
        for n in [20, 100, 1000, 2000] {
            let l = Latency::of(1..=n);
            for percent in (1..=100).filter(|p| p * n % 100 == 0) {
                let q = percent as f64 / 100.0;
                assert_eq!(l.quantile(q), percent * n / 100, "{percent} % of {n}");
            }
        }
    }

    #[test]
    fn operations_in_flight_are_part_of_a_quantile() {
        let mut l = Latency::default();
        (1..=10).for_each(|v| l.record(v));
        let mut ages = InFlightAges::default();
        assert_eq!(l.quantile_with(&ages, 0.5), Quantile::known(5));
        // With ten operations in flight for at least 100 ns, the fifth of ten operations becomes the fifth of twenty.
        (0..10).for_each(|_| ages.add(100));
        assert_eq!(l.quantile_with(&ages, 0.25), Quantile::known(5));
        assert_eq!(l.quantile_with(&ages, 0.9), Quantile::at_least(100));
    }

    #[test]
    fn nothing_measured_is_all_zero() {
        let l = Latency::default();
        assert_eq!(
            (l.count(), l.min(), l.max(), l.quantile(0.99)),
            (0, 0, 0, 0)
        );
        assert!(l.mean().abs() < f64::EPSILON);
    }

    #[test]
    fn samples_are_numbered_in_increasing_order() {
        let l = Latency::of([7, 3, 9, 5]);
        assert_eq!([0, 1, 2, 3, 4, 100].map(|i| l.nth(i)), [3, 5, 7, 9, 9, 9]);
        assert_eq!(Latency::of([7]).nth(0), 7);
        assert_eq!(Latency::default().nth(0), 0);
        // The first and the last sample are exact.
        let l = Latency::of([1_000_001, 2_000_001, 3_000_001]);
        assert_eq!([l.nth(0), l.nth(2)], [1_000_001, 3_000_001]);
        assert_eq!((l.sum(), l.mean()), (6_000_003, 2_000_001.0));
    }

    #[test]
    fn hours_and_centuries_are_as_exact_as_microseconds() {
        let hours = |n: u64| n * 3_600_000_000_000;
        const CENTURIES: u64 = u64::MAX - 1;
        let l = Latency::of([1, hours(2), hours(5), CENTURIES]);
        let sum = u128::from(1 + hours(7)) + u128::from(CENTURIES);
        assert_eq!((l.count(), l.max(), l.sum()), (4, CENTURIES, sum));
        for (q, exact) in [(0.5, hours(2)), (0.75, hours(5)), (1.0, CENTURIES)] {
            let error = l.quantile(q) as f64 / exact as f64 - 1.0;
            assert!(error.abs() < 1e-3, "{q}: {error}");
        }
        let text = serde_json::to_string(&l).unwrap();
        assert_eq!(serde_json::from_str::<Latency>(&text).unwrap(), l);
        let counts = [(1, 1), (hours(2), 1), (hours(5), 1), (CENTURIES, 1)];
        assert_eq!(Latency::of_counts(&counts, sum, CENTURIES), l);
    }

    #[test]
    fn distributions_add_up() {
        let mut sum = Latency::of([5, 100]);
        sum.add(&Latency::default());
        assert_eq!(sum, Latency::of([5, 100]));
        sum.add(&Latency::of([3, 200]));
        assert_eq!(sum, Latency::of([3, 5, 100, 200]));
        let mut none = Latency::default();
        none.add(&Latency::of([3, 200]));
        assert_eq!(
            (none.min(), none.max(), none.sum(), none.mean()),
            (3, 200, 203, 101.5)
        );
        let counted = Latency::of_counts(&[(3, 2), (200, 1)], 206, 200);
        assert_eq!(counted, Latency::of([3, 3, 200]));
        let empty = Latency::of_counts(&[], 0, 0);
        assert_eq!((empty.count(), empty.min(), empty.max()), (0, 0, 0));
    }

    #[test]
    fn only_a_lower_bound_is_known_where_all_that_is_as_long_is_in_flight() {
        let mut ages = InFlightAges::default();
        ages.add(50);
        let none = Latency::default();
        assert_eq!(none.quantile_with(&ages, 0.5), Quantile::at_least(50));
        let l = Latency::of([10, 80]);
        assert_eq!(l.quantile_with(&ages, 1.0), Quantile::known(80));
        ages.add(90);
        assert_eq!(l.quantile_with(&ages, 1.0), Quantile::at_least(90));
        assert_eq!(l.quantile_with(&ages, 0.25), Quantile::known(10));
    }

    #[test]
    fn an_operation_in_flight_as_old_as_all_that_completed_is_no_bound() {
        let shares = [0.5, 0.99, 0.999, 1.0];
        // The latencies fall into buckets of a single value, and into wider buckets.
        for took in [0, 700, 10_000_000] {
            let mut ages = InFlightAges::default();
            ages.add(took);
            let l = Latency::of([took; 99]);
            assert_eq!(
                shares.map(|q| l.quantile_with(&ages, q)),
                [Quantile::known(took); 4]
            );
        }
        // Three digits cannot resolve one more nanosecond: only the maximum is exact.
        let mut ages = InFlightAges::default();
        ages.add(10_000_001);
        let l = Latency::of([10_000_000; 99]);
        let [known @ .., maximum] = shares.map(|q| l.quantile_with(&ages, q));
        assert_eq!(known, [Quantile::known(10_000_000); 3]);
        assert_eq!(maximum, Quantile::at_least(10_000_001));
    }

    #[test]
    fn totals_add_up() {
        let of = |n: u64| {
            let mut in_flight = InFlightAges::default();
            in_flight.add(7 * n);
            OpTotals {
                ops: n,
                bytes: 2 * u128::from(n),
                errors: [("EIO".into(), 3 * n)].into(),
                service: Latency::of([n]),
                response: Latency::of([10 * n]),
                paced: 4 * n,
                cpu_ns: 5 * n,
                cpu_ops: 6 * n,
                in_flight,
            }
        };
        let mut sum = of(1);
        sum.errors.insert("ENOENT".into(), 1);
        sum.add(&of(10));
        let mut in_flight = InFlightAges::default();
        [7, 70].into_iter().for_each(|age| in_flight.add(age));
        let expected = OpTotals {
            ops: 11,
            bytes: 22,
            errors: [("EIO".into(), 33), ("ENOENT".into(), 1)].into(),
            service: Latency::of([1, 10]),
            response: Latency::of([10, 100]),
            paced: 44,
            cpu_ns: 55,
            cpu_ops: 66,
            in_flight,
        };
        assert_eq!(sum, expected);
        assert_eq!(sum.error_count(), 34);
    }
}
