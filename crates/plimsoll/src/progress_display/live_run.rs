//! Full-screen view of a run in progress (`--live`): converts the figures of the engine for the terminal.

use crate::console::Stream;
use plimsoll_diagnostics::foreign;
use plimsoll_measure::Interval;
use plimsoll_plan::{LoadTime, Plan};
use plimsoll_report::live::LiveFigures;
use plimsoll_report::live_screen::{LiveScreen, LiveView, OperationRow};
use plimsoll_results::{LiveEvent, Percentiles, figures};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Full-screen view of a run in progress, and the numbers of errors that the view shows for the whole run.
pub struct LiveRunView {
    screen: LiveScreen,
    /// Errors per operation since the workers started, by name and kind: asynchronous writes and their completions have
    /// equal names.
    errors: BTreeMap<(String, String), u64>,
}

impl LiveRunView {
    /// Opens the screen.
    ///
    /// # Errors
    /// The system's error if the terminal cannot be used.
    pub fn show(title: &[String], planned: Option<LoadTime>) -> io::Result<Self> {
        let escaped = |text: &String| foreign::escaped(text).into_owned();
        let view = LiveView {
            title: title.iter().map(escaped).collect(),
            planned,
            phase: "preparing".into(),
            ..LiveView::default()
        };
        Ok(Self {
            screen: LiveScreen::show(view, Stream::Err.color())?,
            errors: BTreeMap::new(),
        })
    }

    /// Shows the name of the current phase, whose unprintable characters are escaped.
    pub fn phase(&self, phase: &str) {
        let phase = foreign::escaped(phase).trim().to_owned();
        self.screen.update(|view| view.phase = phase);
    }

    /// Clears the rates, operations and errors that the view shows; called when the workers have started.
    pub fn start(&mut self) {
        self.errors.clear();
        self.screen.update(LiveView::restart);
    }

    /// Shows in the view the time since the workers started, warm-up included.
    pub fn elapsed(&self, elapsed: Duration) {
        self.screen.update(|view| view.elapsed = Some(elapsed));
    }

    /// Appends the current operations per second to the view's chart of rates, and shows the current bytes per second.
    pub fn rates(&self, figures: &LiveFigures) {
        let at_s = figures.elapsed.as_secs_f64();
        self.screen.update(|view| {
            view.bytes_per_s = figures.bytes_per_s;
            view.push_rate((at_s, figures.ops_per_s));
        });
    }

    /// Shows the operations of the last complete interval, a row for each. `latency_ms` is the mean and the 99th
    /// percentile of the latency of all operations in milliseconds, and is `None` if no operation completed.
    pub fn interval(
        &mut self,
        plan: &Plan,
        interval: &Interval,
        elapsed: Duration,
        latency_ms: Option<(f64, f64)>,
    ) {
        let seconds = (interval.length as f64 / 1e9).max(1e-9);
        let (_, operations) = figures(plan, &interval.rows, seconds, &Percentiles::kept(None));
        let mut codes = BTreeMap::<String, u64>::new();
        let rows: Vec<OperationRow> = operations
            .into_iter()
            .map(|op| {
                let errors = self.errors.entry((op.name.clone(), op.kind.to_string()));
                let errors = errors.or_default();
                *errors += op.errors;
                for (code, n) in op.error_codes {
                    *codes.entry(code).or_default() += n;
                }
                let known = |ms: f64| (op.ops > 0).then_some(ms);
                OperationRow {
                    ops_per_s: op.ops_per_s,
                    bytes_per_s: op.bytes_per_s,
                    mean_ms: known(op.latency.mean_ms),
                    p99_ms: known(op.latency.p99_ms),
                    max_ms: known(op.latency.max_ms),
                    errors: *errors,
                    name: op.name,
                }
            })
            .collect();
        self.screen.update(|view| {
            view.operations = rows;
            for (code, n) in codes {
                *view.errors.entry(code).or_default() += n;
            }
            if let Some((mean, p99)) = latency_ms {
                view.push_latency(elapsed.as_secs_f64(), mean, p99);
            }
        });
    }

    /// Replaces the view's list of events by `begun`, each with its start in seconds.
    pub fn events(&self, begun: &[LiveEvent]) {
        let line = |e: &LiveEvent| format!("{:.1} s  {}", e.start_s, foreign::escaped(&e.action));
        let lines = begun.iter().map(line).collect();
        self.screen.update(|view| view.events = lines);
    }
}
