//! The script of a run: populate, start, wait, measure, stop.

use crate::ids::FilesetId;
use crate::plan::Plan;
use crate::steady_rule::{SteadyRule, Warmup};
use crate::units::{optional_seconds, seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Phase of a run: one statement of the script, executed when the previous phase has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Populating: creation of the trees of filesets, or reuse of identical trees.
    Populate {
        /// Filesets to populate, by index; a fileset that an earlier phase populated stays unchanged.
        filesets: Vec<FilesetId>,
    },
    /// Start of all workers of the Plan at the same time.
    Start,
    /// Start of the ranks of a pattern together for one stage; each rank ends after its work.
    StartStage {
        /// Number of the stage in the pattern's list of stages, from 0.
        stage: u32,
    },
    /// Opening of a measured window, which discards the measurements of a window that is still open.
    OpenWindow,
    /// Wait while the workers execute their programs, until a condition holds.
    Wait {
        /// Condition that ends the wait, beside the end of all workers and the quit mode.
        until: Until,
        /// Statistics that are printed during the wait; null if no statistics are printed.
        snapshots: Option<Snapshots>,
    },
    /// Closing of the measured window, which ends the measurement.
    CloseWindow,
    /// Stop of all workers; the phase ends when the workers have ended.
    Stop,
    /// Output of a message of the workload to the user.
    Echo {
        /// Text of the message to the user.
        text: String,
    },
    /// Shell command of the workload, which requires `--allow-commands`.
    System {
        /// Shell command as one text, which the shell splits into words.
        command: String,
    },
}

/// Time from the start of the workers to the end of the load, as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadTime {
    /// Maximum time.
    pub at_most: Duration,
    /// Whether no rule can end the load before the maximum time.
    pub is_fixed: bool,
}

impl LoadTime {
    /// Words before a duration that is derived from the maximum time: `at most `, or none for a fixed time.
    #[must_use]
    pub fn limit_words(self) -> &'static str {
        if self.is_fixed { "" } else { "at most " }
    }
}

/// Default lengths of an interval of the time series in milliseconds, the longest first.
const DEFAULT_INTERVALS: [u64; 4] = [1000, 500, 200, 100];

/// Number of intervals of a measured window that permits the estimate of confidence intervals.
const MANY_INTERVALS: u32 = 40;

/// Minimum length of a default interval for each worker, which bounds the processor time of the deliveries of the
/// workers' figures at interval ends.
const TIME_PER_WORKER: Duration = Duration::from_millis(8);

impl Plan {
    /// Sums of the timed waits before the first window opens (warm-up) and after it opens (measured time). A wait that
    /// ends by a rule counts with its maximum.
    #[must_use]
    pub fn times(&self) -> (Duration, Duration) {
        let mut times = [Duration::ZERO; 2];
        let mut window = 0;
        for phase in &self.script {
            if let Phase::OpenWindow = phase {
                window = 1;
            }
            times[window] += phase.max_time().unwrap_or_default();
        }
        (times[0], times[1])
    }

    /// Planned time of the load: the sum of all waits. `None` if a wait has no limit, or if workers start more than once.
    #[must_use]
    pub fn load_time(&self) -> Option<LoadTime> {
        let mut time = LoadTime {
            at_most: Duration::ZERO,
            is_fixed: true,
        };
        for phase in &self.script {
            if let Phase::Wait { until, .. } = phase {
                time.at_most += until.max_time()?;
                time.is_fixed &= matches!(until, Until::Elapsed { .. });
            }
        }
        let starts = self.script.iter().filter(|phase| phase.begins_load());
        (starts.count() == 1).then_some(time)
    }

    /// Default length of an interval of the time series: 1 s, or less if the shortest measured window of a fixed length
    /// would have fewer than 40 intervals, but at least 100 ms, and at least 8 ms for each worker.
    #[must_use]
    pub fn default_interval(&self) -> Duration {
        let mut windows: Vec<Duration> = vec![];
        for phase in &self.script {
            if let Phase::OpenWindow = phase {
                windows.push(Duration::ZERO);
            }
            if let (Some(window), Some(time)) = (windows.last_mut(), phase.max_time()) {
                *window += time;
            }
        }
        let fixed = windows.into_iter().filter(|window| !window.is_zero());
        let shortest = fixed.min().unwrap_or(Duration::MAX);
        let least = TIME_PER_WORKER * u32::try_from(self.workers()).unwrap_or(u32::MAX);
        let lengths = DEFAULT_INTERVALS.map(Duration::from_millis);
        let mut lengths = lengths.into_iter().filter(|length| *length >= least);
        let has_many = |length: &Duration| *length * MANY_INTERVALS <= shortest;
        let shortest_allowed = lengths.clone().next_back();
        let found = lengths.find(has_many).or(shortest_allowed);
        found.unwrap_or(Duration::from_secs(1))
    }
}

impl Phase {
    /// Whether workers start in the phase, so that load begins.
    #[must_use]
    pub fn begins_load(&self) -> bool {
        matches!(self, Self::Start | Self::StartStage { .. })
    }

    /// Maximum time of a wait that does not end by the work; `None` for other phases.
    fn max_time(&self) -> Option<Duration> {
        match self {
            Self::Wait {
                until: Until::Done { .. },
                ..
            } => None,
            Self::Wait { until, .. } => until.max_time(),
            _ => None,
        }
    }

    /// Phase that waits until the condition `until`, without printed statistics.
    #[must_use]
    pub fn wait(until: Until) -> Self {
        Self::Wait {
            until,
            snapshots: None,
        }
    }

    /// Phase that waits for the time `time`, without printed statistics.
    #[must_use]
    pub fn wait_for(time: Duration) -> Self {
        Self::wait(Until::Elapsed { time })
    }
}

impl Until {
    /// End of a measured window after `time`, or when the confidence interval of the main figure is within `percent`
    /// percent of the figure.
    #[must_use]
    pub fn window(time: Duration, percent: Option<f64>) -> Self {
        match percent {
            Some(percent) => Self::Precise {
                percent,
                at_most: time,
            },
            None => Self::Elapsed { time },
        }
    }

    /// Maximum length of the wait; `None` without a limit.
    #[must_use]
    pub fn max_time(self) -> Option<Duration> {
        match self {
            Self::Elapsed { time: most }
            | Self::Steady { at_most: most, .. }
            | Self::Precise { at_most: most, .. } => Some(most),
            Self::Done { at_most } => at_most,
        }
    }
}

impl From<Warmup> for Until {
    fn from(warmup: Warmup) -> Self {
        match warmup {
            Warmup::Fixed(time) => Self::Elapsed { time },
            Warmup::Steady { rule, at_most } => Self::Steady { rule, at_most },
        }
    }
}

/// Condition that ends a wait. A wait also ends when every worker has ended, or by the quit mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Wait that ends after a fixed time.
    Elapsed {
        /// Length of the wait in seconds.
        #[serde(with = "seconds", rename = "seconds")]
        #[schemars(with = "f64", rename = "seconds")]
        time: Duration,
    },
    /// Warm-up that ends when a rule finds the rate of operations steady, or at a time limit. The rule holds at every
    /// rank.
    Steady {
        /// Rule that ends the wait.
        rule: SteadyRule,
        /// Maximum length of the wait in seconds.
        #[serde(with = "seconds", rename = "seconds")]
        #[schemars(with = "f64", rename = "seconds")]
        at_most: Duration,
    },
    /// Measurement that ends when the confidence interval of the window's main figure is narrow, or at a time limit. The
    /// main figure is the 99th percentile of the latency of a load with a schedule, and else the throughput.
    Precise {
        /// Maximum half width of the interval, in percent of the figure.
        percent: f64,
        /// Maximum length of the wait in seconds.
        #[serde(with = "seconds", rename = "seconds")]
        #[schemars(with = "f64", rename = "seconds")]
        at_most: Duration,
    },
    /// Wait that ends when all workers have ended, or at a time limit.
    Done {
        /// Maximum length of the wait in seconds; null without a limit.
        #[serde(with = "optional_seconds", rename = "seconds")]
        #[schemars(with = "Option<f64>", rename = "seconds")]
        at_most: Option<Duration>,
    },
}

/// Statistics that are printed at intervals during a wait.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshots {
    /// Time between two outputs of the statistics, in seconds.
    #[serde(with = "seconds", rename = "every_s")]
    #[schemars(with = "f64", rename = "every_s")]
    pub every: Duration,
    /// Whether each output of the statistics covers only the time since the previous output, instead of the whole
    /// window so far.
    pub cleared: bool,
}

/// Quit mode: the condition that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuitMode {
    /// The run ends when its time is over. If a worker finds no file to work on before the time is over, the run ends
    /// early, and is valid only if the workload ends by itself.
    #[default]
    Timeout,
    /// The run ends with its last worker; a worker ends when the worker finds no file to work on.
    AllDone,
    /// The run ends with the first worker that ends, for example because the worker finds no file to work on.
    FirstDone,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, WorkerGroup};

    #[test]
    fn a_window_has_40_intervals_unless_the_window_is_short() {
        let interval_of = |windows: &[Duration]| {
            let mut plan = Plan::empty("p");
            plan.script.push(Phase::wait_for(Duration::from_secs(1)));
            for window in windows {
                let measured = [
                    Phase::OpenWindow,
                    Phase::wait_for(*window),
                    Phase::CloseWindow,
                ];
                plan.script.extend(measured);
            }
            plan.default_interval().as_millis()
        };
        let seconds = Duration::from_secs_f64;
        for (window, expected) in [
            (0.5, 100),
            (4.0, 100),
            (8.0, 200),
            (39.9, 500),
            (40.0, 1000),
        ] {
            assert_eq!(interval_of(&[seconds(window)]), expected, "{window}");
        }
        assert_eq!(interval_of(&[seconds(60.0), seconds(10.0)]), 200);
        // Without a window of a fixed length.
        assert_eq!(interval_of(&[]), 1000);
    }

    #[test]
    fn many_workers_have_longer_intervals() {
        for (threads, expected) in [(1, 100), (12, 100), (13, 200), (50, 500), (64, 1000)] {
            let mut plan = Plan::empty("p");
            let program = Program::Sequence(vec![]);
            plan.groups.push(WorkerGroup {
                thread_instances: threads,
                ..WorkerGroup::new("g", 1, "t", program)
            });
            let window = Phase::wait_for(Duration::from_secs(2));
            plan.script.extend([Phase::OpenWindow, window]);
            assert_eq!(plan.default_interval().as_millis(), expected, "{threads}");
        }
    }
}
