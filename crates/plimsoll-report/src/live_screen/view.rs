//! Content of the screen.

use plimsoll_measure::system::{DiskUse, SystemUse};
use plimsoll_plan::LoadTime;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Length of time that the charts show.
pub const CHART_SPAN: Duration = Duration::from_secs(300);

/// Maximum number of points of a chart: more than any terminal can show.
const MAX_SAMPLES: usize = 1200;

/// Maximum number of kept messages.
const MAX_MESSAGES: usize = 100;

/// Point of a chart of the live screen: seconds since the workers started, and the figure's value.
pub type Sample = (f64, f64);

/// Row of the live screen's table: figures of an operation in the last interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationRow {
    /// Name of the operation in the workload.
    pub name: String,
    /// Calls of the operation completed per second in the last interval.
    pub ops_per_s: f64,
    /// Bytes that the operation read and wrote per second in the last interval.
    pub bytes_per_s: f64,
    /// Mean latency of the operation in milliseconds; `None` if no call completed in the last interval.
    pub mean_ms: Option<f64>,
    /// 99th percentile of the operation's latency in milliseconds; `None` if no call completed.
    pub p99_ms: Option<f64>,
    /// Maximum latency of the operation in milliseconds; `None` if no call completed.
    pub max_ms: Option<f64>,
    /// Number of failed calls of the operation since the workers started.
    pub errors: u64,
}

/// Use of this machine in the last second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machine {
    /// Processor time of this process per second, in processors, such as 1.5.
    pub process_cpus: Option<f64>,
    /// CPU quota in processors, and throttled time of threads in seconds per second.
    pub quota: Option<(Option<f64>, f64)>,
    /// Busy fraction of all processors, from 0 to 1, and number of processors.
    pub busy: Option<(f64, u32)>,
    /// Disks in use: name, bytes read and written per second, fraction of the time with I/O in flight.
    pub disks: Vec<(String, f64, f64, f64)>,
    /// Bytes received and sent per second through all network interfaces.
    pub network: Option<(f64, f64)>,
}

impl Machine {
    /// Figures from the use of the machine over a period.
    #[must_use]
    pub fn of(used: &SystemUse) -> Self {
        let seconds = used.seconds.max(f64::MIN_POSITIVE);
        let per_s = |n: u64| n as f64 / seconds;
        let networks = used.networks.iter().flatten();
        let (received, sent) = networks.fold((0, 0), |(received, sent), (_, n)| {
            (received + n.received_bytes, sent + n.sent_bytes)
        });
        let disk = |(name, d): (&String, &DiskUse)| {
            let busy = (d.busy_s / seconds).min(1.0);
            (
                name.clone(),
                per_s(d.read_bytes),
                per_s(d.written_bytes),
                busy,
            )
        };
        let process = used.process.as_ref();
        let quota = used.quota.as_ref();
        let network = used.networks.as_ref();
        Self {
            process_cpus: process.map(|p| p.cpu_s() / seconds),
            quota: quota.map(|q| (q.processors, q.throttled_s / seconds)),
            busy: used.machine.as_ref().map(|m| (m.busy_share, m.cpus)),
            disks: used.disks.iter().flatten().map(disk).collect(),
            network: network.map(|_| (per_s(received), per_s(sent))),
        }
    }
}

/// Content of the live screen (`--live`) at one instant.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveView {
    /// Parts of the title line: workload, files, target and further facts, the most important first.
    pub title: Vec<String>,
    /// Present phase of the run, such as `measuring`.
    pub phase: String,
    /// Time since the workers started; `None` before.
    pub elapsed: Option<Duration>,
    /// Planned time of the load; `None` without a limit.
    pub planned: Option<LoadTime>,
    /// Bytes that all operations together read and wrote per second in the last interval.
    pub bytes_per_s: f64,
    /// Operations per second over time.
    pub rates: VecDeque<Sample>,
    /// Mean latencies in milliseconds over time, one per interval.
    pub means: VecDeque<Sample>,
    /// 99th percentiles of the latency in milliseconds over time, one per interval.
    pub p99s: VecDeque<Sample>,
    /// Operations of the last interval, a row each.
    pub operations: Vec<OperationRow>,
    /// Number of failed operations since the workers started, by error code such as `EIO`.
    pub errors: BTreeMap<String, u64>,
    /// Use of this machine's processors, disks and networks; `None` in the first second.
    pub machine: Option<Machine>,
    /// Events of the run that have begun, the latest last.
    pub events: Vec<String>,
    /// Messages, the latest last.
    pub messages: VecDeque<String>,
}

impl LiveView {
    /// Adds a point to the chart of rates.
    pub fn push_rate(&mut self, sample: Sample) {
        push(&mut self.rates, sample);
    }

    /// Adds a point to the chart of latencies: mean and 99th percentile in milliseconds.
    pub fn push_latency(&mut self, at_s: f64, mean_ms: f64, p99_ms: f64) {
        push(&mut self.means, (at_s, mean_ms));
        push(&mut self.p99s, (at_s, p99_ms));
    }

    /// Adds a message.
    pub fn push_message(&mut self, line: &str) {
        if self.messages.len() == MAX_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(line.to_owned());
    }

    /// Clears the charts when workers start.
    pub fn restart(&mut self) {
        for samples in [&mut self.rates, &mut self.means, &mut self.p99s] {
            samples.clear();
        }
        self.operations.clear();
        self.errors.clear();
        self.elapsed = Some(Duration::ZERO);
    }
}

/// Adds a point, and removes points that are older than the chart.
fn push(samples: &mut VecDeque<Sample>, sample: Sample) {
    let first = sample.0 - CHART_SPAN.as_secs_f64();
    while samples.front().is_some_and(|s| s.0 < first) || samples.len() >= MAX_SAMPLES {
        samples.pop_front();
    }
    samples.push_back(sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_keep_the_last_minutes() {
        let mut view = LiveView::default();
        for at in 0..1000 {
            view.push_rate((f64::from(at), 1.0));
        }
        let span = CHART_SPAN.as_secs_f64();
        assert_eq!(view.rates.front().unwrap().0, 999.0 - span);
        assert_eq!(view.rates.len() as f64, span + 1.0);
        for at in 0..100_000 {
            view.push_latency(999.0 + f64::from(at) * 1e-3, 1.0, 2.0);
        }
        assert_eq!(
            (view.means.len(), view.p99s.len()),
            (MAX_SAMPLES, MAX_SAMPLES)
        );
        view.restart();
        assert!(view.rates.is_empty() && view.elapsed == Some(Duration::ZERO));
    }

    #[test]
    fn the_machine_is_per_second() {
        let used = SystemUse {
            seconds: 2.0,
            process: Some(plimsoll_measure::system::ProcessUse {
                user_s: 2.0,
                system_s: 1.0,
                ..Default::default()
            }),
            disks: Some(BTreeMap::from([(
                "vda".into(),
                plimsoll_measure::system::DiskUse {
                    read_bytes: 4 << 20,
                    written_bytes: 2 << 20,
                    busy_s: 1.0,
                    ..Default::default()
                },
            )])),
            quota: Some(plimsoll_measure::control_groups::QuotaUse {
                processors: Some(0.5),
                throttled_s: 1.5,
                ..Default::default()
            }),
            ..SystemUse::default()
        };
        let machine = Machine::of(&used);
        assert_eq!(machine.process_cpus, Some(1.5));
        let mib = f64::from(1 << 20);
        assert_eq!(machine.disks, [("vda".to_owned(), 2.0 * mib, mib, 0.5)]);
        assert_eq!((machine.busy, machine.network), (None, None));
        assert_eq!(machine.quota, Some((Some(0.5), 0.75)));
    }
}
