//! Counts per machine of the ranks in a window.

use crate::OpTotals;
use crate::system::SystemUse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of the ranks of one machine in a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCounts {
    /// Name of the machine in its network (nodename of uname(2)).
    pub host: String,
    /// Number of ranks with workers on the machine.
    pub ranks: u32,
    /// Number of workers on the machine.
    pub workers: u64,
    /// Length of the window in seconds: the maximum over the ranks.
    pub seconds: f64,
    /// Number of successful operations of the rows that count in the summary.
    pub ops: u64,
    /// Number of bytes that the operations in `ops` read and wrote.
    pub bytes: u128,
    /// Number of failed operations of the rows that count in the summary.
    pub errors: u64,
    /// Number of operations whose latencies `latency_ns` adds up.
    pub samples: u64,
    /// Sum of the latencies of the operations of the counted rows, in nanoseconds.
    pub latency_ns: u128,
    /// Maximum latency of an operation of the counted rows, in nanoseconds; 0 without operations.
    pub max_latency_ns: u64,
    /// Processor time of the machine's ranks in the window, in seconds.
    pub cpu_s: f64,
    /// Busy fraction of all processors of the machine, 0 to 1; `None` if unknown.
    pub machine_busy: Option<f64>,
    /// Bytes received by the machine's network interfaces, without the loopback; `None` if unknown.
    pub received_bytes: Option<u64>,
    /// Bytes sent by the machine's network interfaces, without the loopback; `None` if unknown.
    pub sent_bytes: Option<u64>,
}

/// Spread of the ranks' starts, measured without comparing clocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartFigures {
    /// Spread of starts: the time between the first start of a rank and the last in milliseconds; of several load
    /// phases, the maximum. If messages take longer in one direction than in the other, the spread is wrong by half of
    /// the difference.
    pub spread_ms: f64,
    /// Longest round-trip time between rank 0 and another rank, in milliseconds.
    pub round_trip_ms: f64,
}

impl HostCounts {
    /// Counts of a rank, from its totals in a window; `counted` marks the rows of the summary.
    #[must_use]
    pub fn of_rank(
        host: &str,
        workers: u64,
        rows: &[OpTotals],
        counted: &[bool],
        system: &SystemUse,
    ) -> Self {
        let networks = system.networks.as_ref();
        let traffic = |of: fn(&crate::system::NetworkUse) -> u64| {
            let all = networks?.iter().filter(|(name, _)| *name != "lo");
            Some(all.map(|(_, n)| of(n)).sum())
        };
        let mut counts = Self {
            host: host.into(),
            ranks: 1,
            workers,
            seconds: system.seconds,
            cpu_s: system.process.as_ref().map_or(0.0, |p| p.cpu_s()),
            machine_busy: system.machine.as_ref().map(|m| m.busy_share),
            received_bytes: traffic(|n| n.received_bytes),
            sent_bytes: traffic(|n| n.sent_bytes),
            ..Self::default()
        };
        for (row, _) in rows.iter().zip(counted).filter(|(_, counted)| **counted) {
            counts.ops += row.ops;
            counts.bytes += row.bytes;
            counts.errors += row.errors.values().sum::<u64>();
            counts.samples += row.latency().count();
            counts.latency_ns += row.latency().sum();
            counts.max_latency_ns = counts.max_latency_ns.max(row.latency().max());
        }
        counts
    }

    /// Adds other ranks of the same machine in the same window.
    fn add_ranks(&mut self, other: &Self) {
        self.add_operations(other);
        self.ranks += other.ranks;
        self.workers += other.workers;
        self.seconds = self.seconds.max(other.seconds);
        // All ranks of a machine read the same machine counters, apart from microseconds.
        self.machine_busy = larger(self.machine_busy, other.machine_busy, f64::max);
        self.received_bytes = larger(self.received_bytes, other.received_bytes, u64::max);
        self.sent_bytes = larger(self.sent_bytes, other.sent_bytes, u64::max);
    }

    /// Adds the same ranks in another window.
    fn add_window(&mut self, other: &Self) {
        self.add_operations(other);
        let both = self.seconds + other.seconds;
        self.machine_busy = self
            .machine_busy
            .zip(other.machine_busy)
            .map(|(mine, theirs)| match both > 0.0 {
                true => (mine * self.seconds + theirs * other.seconds) / both,
                false => mine,
            });
        self.seconds = both;
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
        self.received_bytes = sum(self.received_bytes, other.received_bytes);
        self.sent_bytes = sum(self.sent_bytes, other.sent_bytes);
    }

    fn add_operations(&mut self, other: &Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.samples += other.samples;
        self.latency_ns += other.latency_ns;
        self.max_latency_ns = self.max_latency_ns.max(other.max_latency_ns);
        self.cpu_s += other.cpu_s;
    }

    /// Adds the machines of other ranks in the same window; new machines are appended.
    pub fn add_all(all: &mut Vec<Self>, others: &[Self]) {
        Self::join(all, others, Self::add_ranks);
    }

    /// Adds the counts of each machine in several windows, such as the stages of a pattern.
    #[must_use]
    pub fn of_windows(windows: &[Vec<Self>]) -> Vec<Self> {
        let mut all = Vec::new();
        for window in windows {
            Self::join(&mut all, window, Self::add_window);
        }
        all
    }

    fn join(all: &mut Vec<Self>, others: &[Self], add: fn(&mut Self, &Self)) {
        for theirs in others {
            match all.iter_mut().find(|mine| mine.host == theirs.host) {
                Some(mine) => add(mine, theirs),
                None => all.push(theirs.clone()),
            }
        }
    }
}

fn larger<T>(a: Option<T>, b: Option<T>, max: fn(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(max(a, b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, ops: u64, received: u64) -> HostCounts {
        HostCounts {
            host: name.into(),
            ranks: 1,
            workers: 4,
            seconds: 2.0,
            ops,
            cpu_s: 0.5,
            machine_busy: Some(0.5),
            received_bytes: Some(received),
            ..HostCounts::default()
        }
    }

    #[test]
    fn ranks_of_a_machine_add_up_and_its_counters_do_not() {
        let mut all = vec![host("a", 10, 1000)];
        HostCounts::add_all(&mut all, &[host("b", 5, 7), host("a", 20, 1003)]);
        let of = |at: usize| (&*all[at].host, all[at].ranks, all[at].workers, all[at].ops);
        assert_eq!((of(0), of(1)), (("a", 2, 8, 30), ("b", 1, 4, 5)));
        assert_eq!((all[0].received_bytes, all[0].seconds), (Some(1003), 2.0));
        assert_eq!((all[0].cpu_s, all[0].machine_busy), (1.0, Some(0.5)));
    }

    #[test]
    fn counts_of_a_rank_are_those_of_the_rows_that_count() {
        use crate::system::{NetworkUse, ProcessUse};
        let row = |ops, bytes, failed| OpTotals {
            ops,
            bytes,
            errors: [("EIO".into(), failed)].into(),
            ..OpTotals::default()
        };
        let rows = [row(10, 100, 1), row(1000, 10_000, 1000), row(20, 300, 2)];
        let traffic = |received_bytes, sent_bytes| NetworkUse {
            received_bytes,
            sent_bytes,
            ..NetworkUse::default()
        };
        let networks = [
            ("eth0", traffic(5, 6)),
            ("eth1", traffic(7, 8)),
            ("lo", traffic(900, 900)),
        ];
        let system = SystemUse {
            seconds: 2.5,
            process: Some(ProcessUse {
                user_s: 1.0,
                system_s: 0.25,
                ..ProcessUse::default()
            }),
            networks: Some(networks.map(|(name, n)| (name.into(), n)).into()),
            ..SystemUse::default()
        };
        let mut counts = HostCounts::of_rank("a", 4, &rows, &[true, false, true], &system);
        let expected = HostCounts {
            host: "a".into(),
            ranks: 1,
            workers: 4,
            seconds: 2.5,
            ops: 30,
            bytes: 400,
            errors: 3,
            cpu_s: 1.25,
            received_bytes: Some(12),
            sent_bytes: Some(14),
            ..HostCounts::default()
        };
        assert_eq!(counts, expected);
        let more = HostCounts {
            samples: 3,
            latency_ns: 30,
            max_latency_ns: 20,
            ..expected.clone()
        };
        counts.add_operations(&more);
        let sum = HostCounts {
            ops: 60,
            bytes: 800,
            errors: 6,
            samples: 3,
            latency_ns: 30,
            max_latency_ns: 20,
            cpu_s: 2.5,
            ..expected
        };
        assert_eq!(counts, sum);
    }

    #[test]
    fn windows_add_up_in_time() {
        let longer = HostCounts {
            seconds: 6.0,
            machine_busy: Some(0.9),
            ..host("a", 1, 1)
        };
        let sum = HostCounts::of_windows(&[vec![host("a", 10, 1)], vec![longer]]);
        assert_eq!((sum[0].seconds, sum[0].machine_busy), (8.0, Some(0.8)));

        let sum = HostCounts::of_windows(&[vec![host("a", 10, 1)], vec![host("a", 30, 2)]]);
        assert_eq!(sum.len(), 1);
        assert_eq!((sum[0].ops, sum[0].ranks, sum[0].workers), (40, 1, 4));
        assert_eq!((sum[0].seconds, sum[0].received_bytes), (4.0, Some(3)));
        assert_eq!(sum[0].machine_busy, Some(0.5));
    }

    #[test]
    fn latencies_of_a_rank_are_those_of_its_operations() {
        let row = |samples: &[u64]| OpTotals {
            service: crate::Latency::of(samples.iter().copied()),
            ..OpTotals::default()
        };
        let rows = [row(&[5, 70]), row(&[9000]), row(&[30])];
        let counted = [true, false, true];
        let counts = HostCounts::of_rank("a", 1, &rows, &counted, &SystemUse::default());
        let latencies = (counts.samples, counts.latency_ns, counts.max_latency_ns);
        assert_eq!(latencies, (3, 105, 70));
        assert_eq!((counts.received_bytes, counts.sent_bytes), (None, None));
        assert_eq!((counts.machine_busy, counts.cpu_s), (None, 0.0));
    }

    #[test]
    fn counters_of_a_machine_are_the_largest_that_a_rank_read() {
        let of = |busy, received, sent| HostCounts {
            machine_busy: busy,
            received_bytes: received,
            sent_bytes: sent,
            ..host("a", 1, 0)
        };
        let mut all = vec![of(Some(0.2), Some(5), None)];
        HostCounts::add_all(
            &mut all,
            &[
                of(Some(0.4), None, Some(7)),
                of(Some(0.3), Some(4), Some(6)),
            ],
        );
        assert_eq!(
            all,
            [HostCounts {
                ranks: 3,
                workers: 12,
                ops: 3,
                cpu_s: 1.5,
                ..of(Some(0.4), Some(5), Some(7))
            }]
        );
    }

    #[test]
    fn what_is_not_known_of_all_windows_is_not_known_of_their_sum() {
        let of = |seconds, busy, sent| HostCounts {
            seconds,
            machine_busy: busy,
            sent_bytes: sent,
            ..host("a", 1, 1)
        };
        let sum = |a, b| HostCounts::of_windows(&[vec![a], vec![b]]).remove(0);
        let known = sum(of(0.0, Some(0.5), Some(3)), of(0.0, Some(0.7), Some(4)));
        assert_eq!(
            (known.seconds, known.machine_busy, known.sent_bytes),
            (0.0, Some(0.5), Some(7))
        );
        let unknown = sum(of(1.0, Some(0.5), Some(3)), of(3.0, None, None));
        assert_eq!(
            (unknown.seconds, unknown.machine_busy, unknown.sent_bytes),
            (4.0, None, None)
        );
    }
}
