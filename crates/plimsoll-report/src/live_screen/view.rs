//! Content of the screen.

use plimsoll_measure::system::SystemUse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Length of time that the charts show.
pub const CHART_SPAN: Duration = Duration::from_secs(300);

/// Maximum number of points of a chart: more than any terminal can show.
const MAX_SAMPLES: usize = 1200;

/// Maximum number of kept messages.
const MAX_MESSAGES: usize = 100;

/// A value of a figure at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds since the workers started.
    pub at_s: f64,
    /// Value of the figure.
    pub value: f64,
}

/// Figures of an operation in the last interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OperationRow {
    /// Name of the operation in the workload.
    pub name: String,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency in milliseconds; `None` if no operation completed.
    pub mean_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds.
    pub p99_ms: Option<f64>,
    /// Maximum latency in milliseconds.
    pub max_ms: Option<f64>,
    /// Errors since the workers started.
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
        let disks = used.disks.iter().flatten();
        let networks = used.networks.iter().flatten();
        let (received, sent) = networks.fold((0, 0), |(received, sent), (_, n)| {
            (received + n.received_bytes, sent + n.sent_bytes)
        });
        Self {
            process_cpus: used
                .process
                .as_ref()
                .map(|p| (p.user_s + p.system_s) / seconds),
            quota: used
                .quota
                .as_ref()
                .map(|q| (q.processors, q.throttled_s / seconds)),
            busy: used.machine.as_ref().map(|m| (m.busy_share, m.cpus)),
            disks: disks
                .map(|(name, d)| {
                    let busy = (d.busy_s / seconds).min(1.0);
                    (
                        name.clone(),
                        per_s(d.read_bytes),
                        per_s(d.written_bytes),
                        busy,
                    )
                })
                .collect(),
            network: used
                .networks
                .as_ref()
                .map(|_| (per_s(received), per_s(sent))),
        }
    }
}

/// Content of the screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveView {
    /// The workload, its files and the target.
    pub title: String,
    /// Present phase of the run, such as `measuring (window 1)`.
    pub phase: String,
    /// Time since the workers started; `None` before.
    pub elapsed: Option<Duration>,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Operations per second over time.
    pub rates: VecDeque<Sample>,
    /// Mean latencies in milliseconds over time, one per interval.
    pub means: VecDeque<Sample>,
    /// 99th percentiles of the latency in milliseconds over time, one per interval.
    pub p99s: VecDeque<Sample>,
    /// Operations of the last interval, a row each.
    pub operations: Vec<OperationRow>,
    /// Errors since the workers started, by code.
    pub errors: BTreeMap<String, u64>,
    /// This machine; `None` in the first second.
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
        push(
            &mut self.means,
            Sample {
                at_s,
                value: mean_ms,
            },
        );
        push(
            &mut self.p99s,
            Sample {
                at_s,
                value: p99_ms,
            },
        );
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
    let first = sample.at_s - CHART_SPAN.as_secs_f64();
    while samples.front().is_some_and(|s| s.at_s < first) || samples.len() >= MAX_SAMPLES {
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
            view.push_rate(Sample {
                at_s: f64::from(at),
                value: 1.0,
            });
        }
        let span = CHART_SPAN.as_secs_f64();
        assert_eq!(view.rates.front().unwrap().at_s, 999.0 - span);
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
