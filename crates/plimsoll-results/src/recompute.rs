//! Percentiles that a run did not store, computed from its `histograms.hlog`.

use crate::histograms::{self, tag_of};
use crate::percentile::{Percentile, PercentileFigure, Percentiles};
use crate::{
    AgeFigure, Distribution, HISTOGRAMS_FILE, LatencyFigures, OperationFigures, OperationGroup,
    ResultsError, Run, Summary,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

/// Latency distributions of a log, summed by window and tag.
pub(crate) struct LogDistributions(BTreeMap<(u32, String), Distribution>);

impl LogDistributions {
    /// Reads the log in a results directory.
    pub(crate) fn read(dir: &Path) -> Result<Self, ResultsError> {
        let mut sums = BTreeMap::<(u32, String), Distribution>::new();
        histograms::read_each(&dir.join(HISTOGRAMS_FILE), &mut |line| {
            let sum = sums.entry((line.window, line.tag)).or_default();
            sum.add(&line.histogram);
        })?;
        Ok(Self(sums))
    }

    /// The distribution of a tag in a window; `None` if no operation completed.
    pub(crate) fn of(&self, window: u32, tag: &str) -> Option<&Distribution> {
        self.0.get(&(window, tag.to_owned()))
    }

    /// The distribution of a tag, summed over several windows.
    fn sum(&self, windows: &[u32], tag: &str) -> Distribution {
        let mut sum = Distribution::default();
        let found = windows.iter().filter_map(|w| self.of(*w, tag));
        found.for_each(|d| sum.merge(d));
        sum
    }
}

/// Latencies of one or several operations from the log, with the exact maximum.
#[derive(Default)]
struct LogLatencies {
    latency: Distribution,
    service: Distribution,
    ops: u64,
    paced_ops: u64,
    max_ms: Greatest,
    service_max_ms: Greatest,
    /// Operations in flight at the end: their numbers by age in nanoseconds.
    ages: BTreeMap<u64, u64>,
}

/// A maximum latency, exact or a lower bound.
#[derive(Clone, Copy, Default)]
struct Greatest {
    ms: f64,
    /// Whether `ms` is the age of an operation in flight at the end, and every completed operation took less time.
    is_lower_bound: bool,
}

impl Greatest {
    fn of(figures: &LatencyFigures) -> Self {
        Self {
            ms: figures.max_ms,
            is_lower_bound: figures.max_at_least,
        }
    }

    fn max(self, other: Self) -> Self {
        match self.ms.total_cmp(&other.ms) {
            Ordering::Greater => self,
            Ordering::Less => other,
            Ordering::Equal => Self {
                is_lower_bound: self.is_lower_bound && other.is_lower_bound,
                ..self
            },
        }
    }

    /// Figure of a percentile at `ns` nanoseconds; `None` means beyond all completed operations, so the maximum is the
    /// figure.
    fn percentile(self, percentile: Percentile, ns: Option<u64>) -> Self {
        let is_greatest = self.is_lower_bound && percentile.share() >= 1.0;
        match ns.filter(|_| !is_greatest) {
            Some(ns) => Self {
                ms: (ns as f64 / 1e6).min(self.ms),
                is_lower_bound: false,
            },
            None => self,
        }
    }
}

/// Age in nanoseconds, and number of operations of that age.
fn age(figure: &AgeFigure) -> (u64, u64) {
    ((figure.at_least_ms * 1e6).round() as u64, figure.ops)
}

impl LogLatencies {
    fn of(log: &LogDistributions, windows: &[u32], o: &OperationFigures) -> Self {
        let tag = tag_of(&o.name, o.kind);
        let service = log.sum(windows, &tag);
        let latency = match o.paced_ops {
            0 => service.clone(),
            _ => log.sum(windows, &format!("{tag}/response")),
        };
        Self {
            latency,
            service,
            ops: o.ops,
            paced_ops: o.paced_ops,
            max_ms: Greatest::of(&o.latency),
            service_max_ms: Greatest::of(o.service()),
            ages: o.in_flight_ages.iter().map(age).collect(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.ops = self.ops.saturating_add(other.ops);
        self.paced_ops = self.paced_ops.saturating_add(other.paced_ops);
        self.max_ms = self.max_ms.max(other.max_ms);
        self.service_max_ms = self.service_max_ms.max(other.service_max_ms);
        for (age, n) in &other.ages {
            let sum = self.ages.entry(*age).or_default();
            *sum = sum.saturating_add(*n);
        }
    }

    fn figure(&self, percentile: Percentile) -> PercentileFigure {
        let ages: Vec<(u64, u64)> = self.ages.iter().map(|(age, n)| (*age, *n)).collect();
        let at = |d: &Distribution, max: Greatest| {
            max.percentile(percentile, d.quantile_with(&ages, percentile.share()))
        };
        let latency = at(&self.latency, self.max_ms);
        let service = (self.paced_ops > 0).then(|| at(&self.service, self.service_max_ms));
        PercentileFigure {
            at_least: latency.is_lower_bound,
            service_at_least: service.map(|s| s.is_lower_bound),
            percentile,
            ms: latency.ms,
            service_ms: service.map(|s| s.ms),
            enough_samples: self.ops >= percentile.needs(),
        }
    }

    /// Adds the wanted percentiles that are missing in a list of figures.
    fn complete(&self, figures: &mut Vec<PercentileFigure>, wanted: &Percentiles) {
        let known: Vec<Percentile> = figures.iter().map(|f| f.percentile).collect();
        let missing = wanted.as_slice().iter().filter(|p| !known.contains(p));
        figures.extend(missing.map(|p| self.figure(*p)));
        figures.sort_by_key(|f| f.percentile);
    }
}

/// Computes wanted percentiles that the figures of a run and of its stages lack; the log is read only if any is
/// missing.
pub(crate) fn complete(
    run: &mut Run,
    dir: &Path,
    wanted: &Percentiles,
) -> Result<(), ResultsError> {
    let kept = |figures: &[PercentileFigure]| {
        let kept = |p: &Percentile| figures.iter().any(|f| f.percentile == *p);
        wanted.as_slice().iter().all(kept)
    };
    if run.window_number == 0 || kept(&run.summary.percentiles) {
        return Ok(());
    }
    let log = LogDistributions::read(dir)?;
    let mut windows: Vec<u32> = run.stages.iter().map(|s| s.window.number).collect();
    if windows.is_empty() {
        windows.push(run.window_number);
    }
    let of_window = |windows: &[u32],
                     operations: &mut [OperationFigures],
                     groups: &mut [OperationGroup],
                     procedures: &mut [OperationFigures],
                     delay: &mut Option<OperationFigures>,
                     summary: &mut Summary| {
        let mut all = LogLatencies::default();
        let mut of_groups: Vec<LogLatencies> = vec![];
        of_groups.resize_with(groups.len(), LogLatencies::default);
        for o in operations {
            let times = LogLatencies::of(&log, windows, o);
            times.complete(&mut o.percentiles, wanted);
            if o.kind.counts() {
                all.add(&times);
            }
            if let Some(group) = groups.iter().position(|g| g.contains(o.kind, &o.name)) {
                of_groups[group].add(&times);
            }
        }
        for (group, times) in groups.iter_mut().zip(of_groups) {
            times.complete(&mut group.figures.percentiles, wanted);
        }
        for p in procedures.iter_mut().chain(delay) {
            LogLatencies::of(&log, windows, p).complete(&mut p.percentiles, wanted);
        }
        all.complete(&mut summary.percentiles, wanted);
    };
    of_window(
        &windows,
        &mut run.operations,
        &mut run.groups,
        &mut run.procedures,
        &mut run.completion_delay,
        &mut run.summary,
    );
    for w in run.stages.iter_mut().map(|s| &mut s.window) {
        let number = [w.number];
        of_window(
            &number,
            &mut w.operations,
            &mut w.groups,
            &mut w.procedures,
            &mut w.completion_delay,
            &mut w.summary,
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SparseHistogram;

    fn known(ms: f64) -> Greatest {
        Greatest {
            ms,
            is_lower_bound: false,
        }
    }

    #[test]
    fn an_operation_in_flight_is_a_bound_only_if_it_is_older_than_all_that_completed() {
        let bound = Greatest {
            ms: 50.0,
            is_lower_bound: true,
        };
        let greatest = |other| {
            let greatest = bound.max(other);
            (greatest.ms, greatest.is_lower_bound)
        };
        assert_eq!(greatest(known(49.0)), (50.0, true));
        assert_eq!(greatest(known(50.0)), (50.0, false));
        assert_eq!(greatest(known(51.0)), (51.0, false));
        let p100 = "100".parse().unwrap();
        let at = |p, ns| {
            let figure = bound.percentile(p, ns);
            (figure.ms, figure.is_lower_bound)
        };
        assert_eq!(at(Percentile::P99, Some(49_000_000)), (49.0, false));
        assert_eq!(at(Percentile::P99, None), (50.0, true));
        assert_eq!(at(p100, Some(49_900_000)), (50.0, true));
    }

    #[test]
    fn a_service_time_is_a_lower_bound_by_itself() {
        let one = |ns| {
            let mut d = Distribution::default();
            d.add(&SparseHistogram {
                counts: vec![(ns, 1)],
            });
            d
        };
        let times = LogLatencies {
            latency: one(10_000_000_000),
            service: one(1_000_000),
            ops: 1,
            paced_ops: 1,
            max_ms: known(10_000.0),
            service_max_ms: Greatest {
                ms: 3000.0,
                is_lower_bound: true,
            },
            ages: BTreeMap::from([(3_000_000_000, 1)]),
        };
        let p99 = times.figure(Percentile::P99);
        assert_eq!((p99.ms, p99.at_least), (10_000.0, false));
        assert_eq!(
            (p99.service_ms, p99.service_at_least),
            (Some(3000.0), Some(true))
        );
    }

    fn of(counts: &[(u64, u64)]) -> Distribution {
        let mut d = Distribution::default();
        d.add(&SparseHistogram {
            counts: counts.to_vec(),
        });
        d
    }

    #[test]
    fn percentiles_that_are_missing_are_added_in_their_order() {
        let times = LogLatencies {
            latency: of(&[(2_000_000, 90), (7_000_000, 10)]),
            ops: 100,
            max_ms: known(6.5),
            ..LogLatencies::default()
        };
        let listed = PercentileFigure {
            ms: 99.0,
            ..times.figure(Percentile::P95)
        };
        let mut figures = vec![listed];
        times.complete(&mut figures, &"99,95,50,99.9".parse().unwrap());
        let actual: Vec<_> = figures
            .iter()
            .map(|f| (f.percentile.to_string(), f.ms.round(), f.enough_samples))
            .collect();
        let expected = [
            ("p50", 2.0, true),
            ("p95", 99.0, true),
            ("p99", 7.0, true),
            ("p99.9", 7.0, false),
        ];
        assert_eq!(
            actual,
            expected.map(|(name, ms, enough)| (name.to_owned(), ms, enough))
        );
        // No percentile exceeds the exact maximum, and an unpaced load has no service time.
        assert_eq!((figures[2].ms, figures[2].service_ms), (6.5, None));
        assert_eq!(
            (figures[2].at_least, figures[2].service_at_least),
            (false, None)
        );
    }

    #[test]
    fn latencies_of_operations_add_up() {
        let one = |ms: u64, paced_ops| LogLatencies {
            latency: of(&[(ms * 1_000_000, 1)]),
            service: of(&[(ms * 500_000, 1)]),
            ops: ms,
            paced_ops,
            max_ms: known(ms as f64),
            service_max_ms: known(ms as f64 / 2.0),
            ages: BTreeMap::from([(ms, 2), (50, 1)]),
        };
        let mut sum = one(4, 0);
        sum.add(&one(10, 3));
        sum.add(&one(6, 0));
        assert_eq!((sum.latency.count(), sum.service.count()), (3, 3));
        assert_eq!(
            (sum.ops, sum.paced_ops, sum.max_ms.ms, sum.service_max_ms.ms),
            (20, 3, 10.0, 5.0)
        );
        assert_eq!(sum.ages, [(4, 2), (6, 2), (10, 2), (50, 3)].into());
    }

    #[test]
    fn ages_are_whole_nanoseconds() {
        let figure = AgeFigure {
            at_least_ms: 0.001_234_6,
            ops: 7,
        };
        assert_eq!(age(&figure), (1235, 7));
    }
}
