//! Hosts of a run: figures of the ranks on each host, and detection of a slow host.

use crate::latency::{ms, per_second};
use plimsoll_measure::HostCounts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A host is slow if its throughput per worker is below this fraction of the median of the other hosts.
const SLOW_FRACTION: f64 = 0.8;
/// A host is slow if its mean latency is above this multiple of the median of the other hosts.
const SLOW_LATENCY: f64 = 1.5;
/// Median number of operations of the other hosts below which no host counts as slow.
const MIN_OPS: f64 = 100.0;
/// Length of a window in seconds below which no host counts as slow.
const MIN_WINDOW_S: f64 = 1.0;

/// Figures of the ranks of one host in the measured window, or in all stages of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFigures {
    /// Name of the host: the name given with `--hosts`, otherwise the name that the host reports.
    pub host: String,
    /// Number of ranks with workers on the host; a coordinator does not count.
    pub ranks: u32,
    /// Number of workers of the ranks on the host.
    pub workers: u64,
    /// Number of the host's successful operations that count in the summary.
    pub ops: u64,
    /// Throughput of the host: operations in `ops` per second of the window.
    pub ops_per_s: f64,
    /// Bytes that the operations in `ops` moved, read and written.
    pub bytes: u128,
    /// Number of the host's failed operations of the kinds that count in the summary.
    pub errors: u64,
    /// Mean latency of the host's counted operations in milliseconds; 0 without operations.
    pub mean_ms: f64,
    /// Maximum latency of the host's counted operations in milliseconds; 0 without operations.
    pub max_ms: f64,
    /// Processor time that the ranks on the host used during the window, in seconds.
    pub cpu_s: f64,
    /// Busy fraction of all processors of the host during the window, 0 to 1, other programs included; null if unknown.
    pub machine_busy: Option<f64>,
    /// Bytes that the host's network interfaces received during the window, without the loopback; null if unknown.
    pub received_bytes: Option<u64>,
    /// Bytes that the host's network interfaces sent during the window, without the loopback; null if unknown.
    pub sent_bytes: Option<u64>,
}

impl HostFigures {
    fn of(counts: &HostCounts) -> Self {
        Self {
            host: counts.host.clone(),
            ranks: counts.ranks,
            workers: counts.workers,
            ops: counts.ops,
            ops_per_s: per_second(counts.ops, counts.seconds),
            bytes: counts.bytes,
            errors: counts.errors,
            mean_ms: match counts.samples {
                0 => 0.0,
                n => ms(counts.latency_ns as f64 / n as f64),
            },
            max_ms: ms(counts.max_latency_ns as f64),
            cpu_s: counts.cpu_s,
            machine_busy: counts.machine_busy,
            received_bytes: counts.received_bytes,
            sent_bytes: counts.sent_bytes,
        }
    }

    /// Figures of the hosts over all windows; empty for a single host.
    #[must_use]
    pub fn of_windows(windows: &[Vec<HostCounts>]) -> Vec<Self> {
        let all = HostCounts::of_windows(windows);
        match all.len() {
            0 | 1 => vec![],
            _ => all.iter().map(Self::of).collect(),
        }
    }

    /// A sentence that warns of the host that is farthest behind the other hosts; `None` if no host is slow, and for
    /// short windows or few operations.
    #[must_use]
    pub fn slow(hosts: &[Self]) -> Option<String> {
        let is_short = |h: &Self| (h.ops as f64) < MIN_WINDOW_S * h.ops_per_s;
        if hosts.len() < 2 || hosts.iter().any(is_short) {
            return None;
        }
        let of_others = |at: usize, value: &dyn Fn(&Self) -> f64| {
            let others = hosts.iter().enumerate().filter(|(i, _)| *i != at);
            let mut values: Vec<f64> = others.map(|(_, h)| value(h)).collect();
            values.sort_by(f64::total_cmp);
            let middle = values.len() / 2;
            match values.len() % 2 {
                0 => (values[middle - 1] + values[middle]) / 2.0,
                _ => values[middle],
            }
        };
        let per_worker = |h: &Self| h.ops_per_s / h.workers as f64;
        let judge = |(at, host): (usize, &Self)| {
            if of_others(at, &|h| h.ops as f64) < MIN_OPS {
                return None;
            }
            let rate = of_others(at, &per_worker);
            let mean = of_others(at, &|h| h.mean_ms);
            let (is_behind, is_late) = (
                per_worker(host) < SLOW_FRACTION * rate,
                host.mean_ms > SLOW_LATENCY * mean,
            );
            let is_late = is_late && host.ops as f64 >= MIN_OPS;
            (is_behind || is_late).then(|| {
                let text = format!(
                    "host {} is slower than the others: {:.1} operations per second and worker, mean \
                     latency {:.3} ms; the medians of the others are {rate:.1} and {mean:.3} ms",
                    host.host,
                    per_worker(host),
                    host.mean_ms
                );
                let deficit = (rate / per_worker(host)).max(host.mean_ms / mean);
                (deficit, text)
            })
        };
        let slow = hosts.iter().enumerate().filter_map(judge);
        let slowest = slow.max_by(|(a, _), (b, _)| a.total_cmp(b));
        slowest.map(|(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, ops: u64, mean_ms: u64) -> HostCounts {
        HostCounts {
            host: name.into(),
            ranks: 2,
            workers: 4,
            seconds: 2.0,
            ops,
            samples: ops,
            latency_ns: u128::from(ops * mean_ms * 1_000_000),
            max_latency_ns: 9_000_000,
            ..HostCounts::default()
        }
    }

    #[test]
    fn figures_follow_from_counts() {
        let windows = [vec![host("a", 400, 3), host("b", 400, 3)]];
        let hosts = HostFigures::of_windows(&windows);
        assert_eq!(hosts.len(), 2);
        assert_eq!(
            (hosts[0].ops_per_s, hosts[0].mean_ms, hosts[0].max_ms),
            (200.0, 3.0, 9.0)
        );
        assert_eq!(HostFigures::slow(&hosts), None);
        assert_eq!(HostFigures::of_windows(&[vec![host("a", 1, 1)]]), vec![]);
    }

    #[test]
    fn the_slow_host_is_named() {
        let slow =
            |hosts: &[HostCounts]| HostFigures::slow(&HostFigures::of_windows(&[hosts.to_vec()]));
        // Host b completes fewer operations, or has a higher latency at the same rate.
        for hosts in [
            [host("a", 1000, 3), host("b", 700, 3), host("c", 1000, 3)],
            [host("a", 1000, 3), host("b", 1000, 5), host("c", 1000, 3)],
        ] {
            let warning = slow(&hosts).unwrap();
            assert!(warning.starts_with("host b is slower"), "{warning}");
        }
        assert_eq!(slow(&[host("a", 900, 3), host("b", 1000, 3)]), None);
        // A slow host is named for its low rate however few operations the host completed.
        for ops in [0, 1, 50] {
            let warning = slow(&[host("a", 1000, 3), host("b", ops, 3), host("c", 1000, 3)]);
            assert!(warning.unwrap().starts_with("host b is slower"));
        }
        assert_eq!(slow(&[host("a", 90, 3), host("b", 50, 3)]), None);
        assert_eq!(slow(&[host("a", 100, 3), host("b", 90, 30)]), None);
        let short = |name, ops| HostCounts {
            seconds: 0.5,
            ..host(name, ops, 3)
        };
        assert_eq!(slow(&[short("a", 1000), short("b", 500)]), None);
    }

    /// Hosts with throughputs per worker (in operations per second) and mean latencies (in milliseconds) from `of`.
    fn hosts(of: &[(f64, f64)]) -> Vec<HostFigures> {
        let counts = HostFigures::of(&host("h", 1000, 1));
        let figures = |(number, (per_worker, mean_ms)): (usize, &(f64, f64))| HostFigures {
            host: format!("h{number}"),
            workers: 4,
            ops: 1000,
            ops_per_s: per_worker * 4.0,
            mean_ms: *mean_ms,
            ..counts.clone()
        };
        of.iter().enumerate().map(figures).collect()
    }

    #[test]
    fn a_machine_is_compared_with_the_median_of_the_others() {
        let slow = |of: &[(f64, f64)]| HostFigures::slow(&hosts(of));
        // The medians of the other hosts are (100 + 60) / 2 operations per second, and 3 ms (of 2 ms and 4 ms).
        assert_eq!(
            slow(&[(100.0, 2.0), (60.0, 4.0), (50.0, 4.0)]).unwrap(),
            "host h2 is slower than the others: 50.0 operations per second and worker, mean latency 4.000 \
             ms; the medians of the others are 80.0 and 3.000 ms"
        );
        // A host at the limits, with 80 % of the rate and 150 % of the latency of the other host, is not slow yet.
        assert_eq!(slow(&[(100.0, 2.0), (80.0, 3.0)]), None);
        assert!(
            slow(&[(100.0, 2.0), (79.9, 2.0)])
                .unwrap()
                .contains("host h1")
        );
        assert!(
            slow(&[(100.0, 2.0), (100.0, 3.01)])
                .unwrap()
                .contains("host h1")
        );
        // The host that is farthest behind is named, whether by rate or by latency.
        let all = [
            (100.0, 2.0),
            (70.0, 2.0),
            (100.0, 2.0),
            (100.0, 9.0),
            (100.0, 2.0),
        ];
        assert!(slow(&all).unwrap().contains("host h3"));
        assert_eq!(slow(&all[..1]), None);
    }

    #[test]
    fn a_short_time_or_few_operations_have_no_remark() {
        let with = |change: fn(&mut HostFigures)| {
            let mut all = hosts(&[(100.0, 2.0), (50.0, 2.0)]);
            all.iter_mut().for_each(change);
            HostFigures::slow(&all).is_some()
        };
        assert!(with(|_| ()));
        // At the rate of the first host, 400 operations per second, 400 operations take a window of the minimum length,
        // 1 s.
        assert!(with(|h| h.ops = 400) && !with(|h| h.ops = 399));
        assert!(with(|h| (h.ops, h.ops_per_s) = (100, h.ops_per_s / 10.0)));
        assert!(!with(|h| (h.ops, h.ops_per_s) = (99, h.ops_per_s / 10.0)));
    }

    #[test]
    fn a_machine_that_did_nothing_has_no_rate_and_no_latency() {
        let idle = HostFigures::of(&HostCounts {
            seconds: 0.0,
            ..host("a", 0, 0)
        });
        assert_eq!((idle.ops_per_s, idle.mean_ms, idle.max_ms), (0.0, 0.0, 9.0));
        assert_eq!(HostFigures::of_windows(&[]), vec![]);
    }
}
