//! Events of the system under test during a run, and their effects.

use crate::hooks::CommandResult;
use plimsoll_measure::{EventEffect, IntervalSummary, MeasuredWindow, Nanos, event_effects};
use plimsoll_plan::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::Display;

/// An event of the system under test during a run, with its result and its effect on the load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunEvent {
    /// Planned time of the event, in seconds since the workers of the run start, at the beginning of the warm-up; the
    /// workers of a pattern start with the first stage.
    pub at_s: f64,
    /// Action of the event, such as the command `sh ./failover` or, in a simulated system, the fault `down edge.3`.
    pub action: String,
    /// State of the event at the end of the run, such as executed or failed.
    pub state: EventState,
    /// Time at which the event began, in seconds since the run's clock began, like `window_start_s`; null if the event
    /// did not begin.
    pub start_s: Option<f64>,
    /// Delay of the event's begin after the planned time `at_s`, in seconds; null if the event did not begin, and in a
    /// simulated system, in which no event is late.
    pub lateness_s: Option<f64>,
    /// Number, from 1, of the measured window in which the event began; null if the event began outside of all windows,
    /// such as in the warm-up, or did not begin.
    pub window: Option<u32>,
    /// Time at which the event began, in seconds since the opening of the window `window`, or of the last measured
    /// window if the event began outside of all windows (below 0 before the window); null if the event did not begin,
    /// and without a measured window.
    pub window_s: Option<f64>,
    /// Duration of the event's command in seconds; null if the event has no command or did not begin.
    pub seconds: Option<f64>,
    /// Result of the event's action: exit status or signal of the command, or the error that kept the action from being
    /// executed.
    #[serde(flatten)]
    pub end: CommandResult,
    /// Last non-blank line that the event's command printed; null if the command printed nothing, and without a
    /// command.
    pub last_line: Option<String>,
    /// Effect of the event on the load; null if the event did not begin in a measured window.
    pub effect: Option<EventFigures>,
}

/// State of an event at the end of the run: executed, failed, not executed or unknown.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EventState {
    /// The event's action was executed and succeeded.
    Executed,
    /// The event's action failed, or was due but could not begin, because a simultaneous event had not ended when the
    /// run did, or because no thread could be started.
    Failed,
    /// The event did not begin, because the run had ended or had been stopped before.
    #[default]
    #[strum(to_string = "not executed")]
    NotExecuted,
    /// The state of the event is unknown, because the process that ran the event was killed.
    Unknown,
}

/// Effect of an event on the load, computed from the intervals of the window in which the event began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventFigures {
    /// Throughput before the event in operations per second: the mean of the intervals between the previous event, or
    /// the window start, and this event. Null if no whole interval is in between.
    pub before_ops_per_s: Option<f64>,
    /// Throughput during the effect of the event in operations per second, from the event to recovery, the next event
    /// or the window end, whichever is first: the mean of the intervals whose middle is in this time. Null if no
    /// interval has its middle in this time.
    pub during_ops_per_s: Option<f64>,
    /// Throughput after recovery in operations per second, up to the next event or the window end; an event in the
    /// interval of recovery itself does not end the time. Null without recovery, or without a whole interval.
    pub after_ops_per_s: Option<f64>,
    /// Recovery time in seconds: from the event to the first of three consecutive intervals with at least 90 % of the
    /// throughput before the event; 0 if throughput never fell below 90 %; null without recovery, or without throughput
    /// before the event. Recovery from an event may come after later events.
    pub recovery_s: Option<f64>,
    /// Resolution of the recovery time `recovery_s` in seconds: the length of an interval.
    pub recovery_resolution_s: f64,
    /// Maximum gap after the event in seconds: the longest time without a successful operation that ended after the
    /// event and began before the next event. The part of a gap before the event does not count.
    pub max_gap_s: f64,
    /// Start of the maximum gap `max_gap_s`, in seconds since the window opened.
    pub max_gap_start_s: f64,
    /// Resolution of the maximum gap and of its start (`max_gap_s`, `max_gap_start_s`), in seconds.
    pub max_gap_resolution_s: f64,
    /// Number of operations that failed from the interval in which the event began up to the interval of the next
    /// event.
    pub errors: u64,
    /// Number of the failed operations in `errors` by errno name or protocol status.
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
    /// An event with planned time `at` in nanoseconds that has not begun: without start, result and effect.
    #[must_use]
    pub fn new(at: Nanos, action: String, state: EventState) -> Self {
        Self {
            at_s: seconds(at),
            action,
            state,
            ..Self::default()
        }
    }

    /// Sets the window of each event that began, and the effect of each event that began in a measured window with
    /// intervals.
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

    /// Planned time and action of the event, such as `30 s sh ./failover`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} s {}", self.at_s, self.action)
    }

    /// Note on an event that failed, was not executed, or whose state is unknown; `None` for an executed event.
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
        if matches!(self.state, EventState::NotExecuted | EventState::Unknown) {
            return self.state.to_string();
        }
        if let Some(error) = &self.end.error {
            return format!("it failed: {error}");
        }
        let line = self.last_line.as_ref();
        let line = line.map_or(String::new(), |line| format!(": {line}"));
        match self.end.words(self.seconds.unwrap_or_default()) {
            Some(end) => format!("its command {end}{line}"),
            None => self.state.to_string(),
        }
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

    /// Successive intervals of one second in a window, with the numbers of operations in `ops`.
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
        // The workers start 1 s after the run's clock began: an event planned for 1 s begins at 2 s of the clock.
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
        event.end.exit_status = Some(0);
        assert_eq!(event.outcome(), "its command ended with exit status 0");
        (event.end.exit_status, event.last_line) = (Some(7), Some("no route".into()));
        event.state = EventState::Failed;
        assert_eq!(
            event.remark().unwrap(),
            "event `2.5 s x`: its command ended with exit status 7: no route"
        );
        assert_eq!(
            failures(&[began(1.0, 1.0), event.clone()]).unwrap(),
            "1 event failed: `2.5 s x`"
        );
        event.end.error = Some("the bed is gone".into());
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
        event.end.signal = Some(9);
        assert_eq!(event.outcome(), "its command was ended by signal 9");
        event.last_line = Some("bye".into());
        assert_eq!(event.outcome(), "its command was ended by signal 9: bye");
        (event.end.timed_out, event.seconds) = (true, Some(2.26));
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
