//! The distance of a run from its criteria.

use plimsoll_plan::Criteria;

/// Returns the minimum distance of a run from a criterion, as a fraction of that criterion: above 0 the
/// run passed, below 0 it failed. `None` if nothing can be compared.
///
/// `total_percent` is the percentage of the scheduled operations that all processes completed,
/// `slowest_percent` the minimum percentage of one process, `latency_ms` the mean response time.
#[must_use]
pub fn margin(
    criteria: &Criteria,
    total_percent: Option<f64>,
    slowest_percent: Option<f64>,
    latency_ms: Option<f64>,
) -> Option<f64> {
    let above = |value: Option<f64>, least: f64| Some((value? - least) / least);
    let limit = criteria.latency.map(|l| l.as_secs_f64() * 1e3);
    let below = limit.and_then(|limit| Some((limit - latency_ms?) / limit));
    [
        above(total_percent, criteria.total_percent),
        above(slowest_percent, criteria.process_percent),
        below,
    ]
    .into_iter()
    .flatten()
    // A limit of zero leaves nothing to compare with.
    .filter(|m| m.is_finite())
    .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_nearest_criterion_counts() {
        let criteria = Criteria {
            process_percent: 75.0,
            total_percent: 95.0,
            latency: Some(Duration::from_millis(20)),
        };
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        let all = margin(&criteria, Some(100.0), Some(90.0), Some(19.0)).unwrap();
        assert!(near(all, 0.05), "{all}");
        let rate = margin(&criteria, Some(96.9), Some(90.0), Some(10.0)).unwrap();
        assert!(near(rate, 0.02), "{rate}");
        let missed = margin(&criteria, Some(96.9), Some(60.0), Some(10.0)).unwrap();
        assert!(near(missed, -0.2), "{missed}");
        let slow = margin(&criteria, Some(100.0), Some(100.0), Some(50.0)).unwrap();
        assert!(near(slow, -1.5), "{slow}");
        assert_eq!(margin(&criteria, None, None, None), None);
        let none = Criteria {
            process_percent: 0.0,
            total_percent: 0.0,
            latency: None,
        };
        assert_eq!(margin(&none, Some(100.0), Some(100.0), Some(1.0)), None);
    }
}
