//! Events of the system under test during a run, and their effects.

use plimsoll_measure::{EventEffect, IntervalSummary, MeasuredWindow, Nanos, event_effects};
use plimsoll_plan::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// When it was to happen, in seconds since the beginning of the run: the instant at which its
    /// workers start, with the warm-up; those of a pattern start with its first stage.
    pub at_s: f64,
    /// What was to happen, such as `sh ./failover` or, in a simulated system, `down edge.3`.
    pub action: String,
    /// Whether it happened.
    pub state: EventState,
    /// When it began, in seconds since the run's clock began, as for `window_start_s`; null if it
    /// did not.
    pub start_s: Option<f64>,
    /// How much later than `at_s` it began, in seconds; null if it did not, and in a simulated
    /// system, where nothing is late.
    pub lateness_s: Option<f64>,
    /// Number of the window in which it began; null if it began in none, such as in the warm-up.
    pub window: Option<u32>,
    /// When it began, in seconds since that window opened; without one, since the measured window
    /// did, below 0 in the warm-up. Null if it did not begin.
    pub window_s: Option<f64>,
    /// How long its command ran, in seconds; null if it has none, or did not begin.
    pub seconds: Option<f64>,
    /// Exit status of its command; null if it has none, or if a signal ended it.
    pub exit_status: Option<i32>,
    /// The signal that ended its command.
    pub signal: Option<i32>,
    /// The command was terminated: its timeout had passed, or the run was over or interrupted.
    pub timed_out: bool,
    /// Error that kept it from happening; null if it happened.
    pub error: Option<String>,
    /// The last line that its command printed; null if it printed none.
    pub last_line: Option<String>,
    /// What it did; null if it did not begin in a window.
    pub effect: Option<EventFigures>,
}

/// Whether an event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventState {
    /// It did.
    Executed,
    /// It began, but its action failed.
    Failed,
    /// It did not: the run was over before.
    NotExecuted,
    /// The process that ran it was killed, so that it is not known.
    Unknown,
}

/// What an event did, computed from the intervals of the window in which it began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventFigures {
    /// Operations per second before it: the mean of the intervals between the event before, or the
    /// beginning of the window, and this one; null without such an interval.
    pub before_ops_per_s: Option<f64>,
    /// Operations per second until the throughput was back, the next event began or the window
    /// ended, whichever came first: the mean of the intervals whose middle lies in that time; null
    /// without one.
    pub during_ops_per_s: Option<f64>,
    /// Operations per second once the throughput was back, up to the next event, but for one in the
    /// very interval in which it was back, or the end of the window; null if it did not come back.
    pub after_ops_per_s: Option<f64>,
    /// Seconds from the event to the first of three consecutive intervals with at least 90 % of the
    /// throughput before, which may come after other events; 0 if it never fell below. Null if it did
    /// not come back, or if there was no throughput before.
    pub recovery_s: Option<f64>,
    /// Resolution of that time in seconds: the length of an interval.
    pub recovery_resolution_s: f64,
    /// The longest time without a successful operation that lasted after the event and began before the
    /// next one, in seconds: the part of it that is after the event.
    pub max_gap_s: f64,
    /// When it began, in seconds since the window opened.
    pub max_gap_start_s: f64,
    /// Resolution of both in seconds.
    pub max_gap_resolution_s: f64,
    /// Operations that failed from the interval in which the event began up to that in which the next
    /// one did.
    pub errors: u64,
    /// They by errno or protocol status.
    pub error_codes: BTreeMap<String, u64>,
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

impl EventFigures {
    fn of(effect: EventEffect, interval: Nanos) -> Self {
        Self {
            before_ops_per_s: effect.before_per_s,
            during_ops_per_s: effect.during_per_s,
            after_ops_per_s: effect.after_per_s,
            recovery_s: effect.time_to_recover.map(seconds),
            recovery_resolution_s: seconds(interval),
            max_gap_s: seconds(effect.max_gap.length()),
            max_gap_start_s: seconds(effect.max_gap.from),
            max_gap_resolution_s: seconds(effect.gap_resolution),
            errors: effect.errors.values().sum(),
            error_codes: effect.errors,
        }
    }
}

impl RunEvent {
    /// An event that has not begun.
    #[must_use]
    pub fn new(at: Nanos, action: String, state: EventState) -> Self {
        Self {
            at_s: seconds(at),
            action,
            state,
            start_s: None,
            lateness_s: None,
            window: None,
            window_s: None,
            seconds: None,
            exit_status: None,
            signal: None,
            timed_out: false,
            error: None,
            last_line: None,
            effect: None,
        }
    }

    /// Adds the window in which each event began, and the effect of the event there. `summaries` are the intervals of
    /// all windows.
    pub(crate) fn judged(
        mut events: Vec<Self>,
        windows: &[MeasuredWindow],
        summaries: &[IntervalSummary],
    ) -> Vec<Self> {
        let nanos = |s: f64| (s * 1e9).round() as Nanos;
        for event in &mut events {
            let Some(start_s) = event.start_s else {
                continue;
            };
            let start = nanos(start_s);
            let totals = || windows.iter().map(|w| &w.totals);
            let own = totals().find(|w| (w.start..w.end).contains(&start));
            event.window = own.map(|w| w.number);
            let opened = own.or(windows.last().map(|w| &w.totals)).map(|w| w.start);
            event.window_s = opened.map(|opened| start_s - seconds(opened));
        }
        for totals in windows.iter().map(|w| &w.totals) {
            let of_window = |s: &&IntervalSummary| s.window == totals.number;
            let intervals: Vec<_> = summaries.iter().filter(of_window).cloned().collect();
            if intervals.is_empty() {
                continue;
            }
            let interval = IntervalSummary::full_length(&intervals);
            let mut own: Vec<&mut Self> = events
                .iter_mut()
                .filter(|e| e.window == Some(totals.number))
                .collect();
            let began = |e: &Self| nanos(e.window_s.unwrap_or_default().max(0.0));
            own.sort_by_key(|e| began(e));
            let times: Vec<Nanos> = own.iter().map(|e| began(e)).collect();
            let length = totals.end.saturating_sub(totals.start);
            for (event, effect) in own
                .into_iter()
                .zip(event_effects(&intervals, length, &times))
            {
                event.effect = Some(EventFigures::of(effect, interval));
            }
        }
        events
    }

    /// Time and action of the event, as on the command line.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} s {}", self.at_s, self.action)
    }

    /// A sentence about an event that was not executed successfully; `None` for an executed event.
    pub(crate) fn remark(&self) -> Option<String> {
        let said = match self.state {
            EventState::Executed => return None,
            EventState::Unknown => "it is not known whether it was executed".into(),
            EventState::NotExecuted => "it was not executed: the run was over before".into(),
            EventState::Failed => self.outcome(),
        };
        Some(format!("event `{}`: {said}", self.name()))
    }

    /// End of the event in words, such as `its command ended with exit status 1: no such server`.
    #[must_use]
    pub fn outcome(&self) -> String {
        let line = match &self.last_line {
            Some(line) => format!(": {line}"),
            None => String::new(),
        };
        match (self.state, &self.error) {
            (EventState::NotExecuted | EventState::Unknown, _) => self.state.to_string(),
            (_, Some(error)) => format!("it failed: {error}"),
            _ if self.timed_out => {
                let after = self.seconds.unwrap_or_default();
                format!("its command was terminated after {after:.1} s{line}")
            }
            _ => match (self.exit_status, self.signal) {
                (Some(status), _) => format!("its command ended with exit status {status}{line}"),
                (None, Some(signal)) => format!("its command was ended by signal {signal}{line}"),
                (None, None) => self.state.to_string(),
            },
        }
    }
}

impl fmt::Display for EventState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Executed => "executed",
            Self::Failed => "failed",
            Self::NotExecuted => "not executed",
            Self::Unknown => "unknown",
        })
    }
}

/// A sentence that names the failed events, as a reason against the run; `None` without failed events.
pub(crate) fn failures(events: &[RunEvent]) -> Option<String> {
    let failed: Vec<String> = events
        .iter()
        .filter(|e| e.state == EventState::Failed)
        .map(|e| format!("`{}`", e.name()))
        .collect();
    let count = counted(failed.len() as u64, "event", "events");
    (!failed.is_empty()).then(|| format!("{count} failed: {}", failed.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{OpTotals, Successes, WindowTotals};

    const SECOND: Nanos = 1_000_000_000;

    fn window(number: u32, start: Nanos, end: Nanos) -> MeasuredWindow {
        let totals = WindowTotals {
            number,
            start,
            end,
            rows: vec![OpTotals::default()],
            ..WindowTotals::default()
        };
        totals.into()
    }

    /// Intervals of one second with these numbers of operations.
    fn intervals(window: u32, ops: &[u64]) -> Vec<IntervalSummary> {
        let summary = |(index, ops): (u64, &u64)| IntervalSummary {
            window,
            index,
            start: index * SECOND,
            length: SECOND,
            ops: *ops,
            errors: BTreeMap::new(),
            successes: Successes::default(),
        };
        (0..).zip(ops).map(summary).collect()
    }

    fn began(at_s: f64, start_s: f64) -> RunEvent {
        let new = RunEvent::new((at_s * 1e9) as Nanos, "x".into(), EventState::Executed);
        RunEvent {
            start_s: Some(start_s),
            ..new
        }
    }

    #[test]
    fn an_event_is_judged_by_the_window_in_which_it_began() {
        // The workers start when the clock of the run is at 1 s.
        let windows = [
            window(1, 3 * SECOND, 6 * SECOND),
            window(2, 8 * SECOND, 14 * SECOND),
        ];
        let all = [
            intervals(1, &[100, 10, 20]),
            intervals(2, &[50, 10, 48, 50, 50, 50]),
        ]
        .concat();
        let events = vec![
            began(1.0, 2.0),
            began(3.0, 4.0),
            began(8.0, 9.0),
            RunEvent::new(99 * SECOND, "x".into(), EventState::NotExecuted),
        ];
        let judged = RunEvent::judged(events, &windows, &all);
        let places: Vec<_> = judged.iter().map(|e| (e.window, e.window_s)).collect();
        assert_eq!(
            places,
            [
                (None, Some(-6.0)),
                (Some(1), Some(1.0)),
                (Some(2), Some(1.0)),
                (None, None)
            ]
        );
        let effects: Vec<_> = judged.iter().map(|e| e.effect.clone()).collect();
        assert_eq!((effects[0].clone(), effects[3].clone()), (None, None));
        let first = effects[1].as_ref().unwrap();
        assert_eq!(
            (first.before_ops_per_s, first.during_ops_per_s),
            (Some(100.0), Some(15.0))
        );
        assert_eq!((first.recovery_s, first.after_ops_per_s), (None, None));
        let second = effects[2].as_ref().unwrap();
        assert_eq!(second.recovery_s, Some(1.0));
        assert_eq!(second.recovery_resolution_s, 1.0);
        assert_eq!(second.after_ops_per_s, Some(198.0 / 4.0));
    }

    #[test]
    fn the_end_of_an_event_is_described() {
        let mut event = began(2.5, 2.5);
        assert_eq!((event.outcome(), event.remark()), ("executed".into(), None));
        event.exit_status = Some(0);
        assert_eq!(event.outcome(), "its command ended with exit status 0");
        (event.exit_status, event.last_line) = (Some(7), Some("no route".into()));
        event.state = EventState::Failed;
        assert_eq!(
            event.remark().unwrap(),
            "event `2.5 s x`: its command ended with exit status 7: no route"
        );
        assert_eq!(
            failures(&[began(1.0, 1.0), event.clone()]).unwrap(),
            "1 event failed: `2.5 s x`"
        );
        event.error = Some("the bed is gone".into());
        assert_eq!(event.outcome(), "it failed: the bed is gone");
        let late = RunEvent::new(9 * SECOND, "x".into(), EventState::NotExecuted);
        assert_eq!(
            late.remark().unwrap(),
            "event `9 s x`: it was not executed: the run was over before"
        );
        assert_eq!(failures(&[late]), None);
    }

    #[test]
    fn commands_end_by_themselves_or_by_a_signal_or_with_the_run() {
        let mut event = began(1.0, 1.5);
        event.signal = Some(9);
        assert_eq!(event.outcome(), "its command was ended by signal 9");
        event.last_line = Some("bye".into());
        assert_eq!(event.outcome(), "its command was ended by signal 9: bye");
        (event.timed_out, event.seconds) = (true, Some(2.26));
        assert_eq!(
            event.outcome(),
            "its command was terminated after 2.3 s: bye"
        );
        event.state = EventState::Unknown;
        assert_eq!(event.outcome(), "unknown");
        let message = "event `1 s x`: it is not known whether it was executed";
        assert_eq!(event.remark().as_deref(), Some(message));
        assert_eq!(
            format!("{:>13}|", EventState::NotExecuted),
            " not executed|"
        );
        let mut failed = began(2.0, 2.0);
        failed.state = EventState::Failed;
        let two = failures(&[failed.clone(), failed]).unwrap();
        assert_eq!(two, "2 events failed: `2 s x`, `2 s x`");
    }

    #[test]
    fn figures_of_an_event_are_in_seconds() {
        let effect = EventEffect {
            before_per_s: Some(1.0),
            during_per_s: Some(2.0),
            after_per_s: Some(3.0),
            time_to_recover: Some(4 * SECOND),
            max_gap: plimsoll_measure::Gap {
                from: 5 * SECOND,
                to: 11 * SECOND,
            },
            gap_resolution: SECOND / 2,
            errors: [("EIO".into(), 7), ("ESTALE".into(), 8)].into(),
        };
        let figures = EventFigures::of(effect, SECOND / 4);
        let rates = (
            figures.before_ops_per_s,
            figures.during_ops_per_s,
            figures.after_ops_per_s,
        );
        assert_eq!(rates, (Some(1.0), Some(2.0), Some(3.0)));
        assert_eq!(
            (figures.recovery_s, figures.recovery_resolution_s),
            (Some(4.0), 0.25)
        );
        let gap = (
            figures.max_gap_s,
            figures.max_gap_start_s,
            figures.max_gap_resolution_s,
        );
        assert_eq!(gap, (6.0, 5.0, 0.5));
        assert_eq!((figures.errors, figures.error_codes.len()), (15, 2));
    }

    #[test]
    fn events_of_a_window_are_judged_in_the_order_in_which_they_began() {
        let windows = [window(1, 10 * SECOND, 16 * SECOND)];
        let events = vec![began(5.0, 14.0), began(1.0, 11.0), began(9.0, 16.0)];
        let judged = RunEvent::judged(events, &windows, &intervals(1, &[10, 20, 30, 40, 50, 60]));
        let before: Vec<_> = judged
            .iter()
            .map(|e| e.effect.as_ref().map(|f| f.before_ops_per_s.unwrap()))
            .collect();
        assert_eq!(before, [Some(30.0), Some(10.0), None]);
        assert_eq!((judged[2].window, judged[2].window_s), (None, Some(6.0)));
        let unknown = RunEvent::judged(vec![began(1.0, 11.0)], &windows, &[]);
        assert_eq!((unknown[0].window, &unknown[0].effect), (Some(1), &None));
        assert_eq!(
            RunEvent::judged(vec![began(1.0, 2.0)], &[], &[])[0].window_s,
            None
        );
    }
}
