//! Execution of timed events at their times, concurrently with the workers of a run.

use super::{EventExecutor, EventSpec};
use plimsoll_engine::Stop;
use plimsoll_measure::{Clock, Completions, Interval, IntervalSummary, Nanos, OpTotals};
use plimsoll_plan::Plan;
use plimsoll_results::{EventState, LiveEvent, RunEvent};
use plimsoll_runtime::sync::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time for which a running command of an event may continue after the end of the run.
const EVENT_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which the wait for the next event checks whether a stop was requested.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runner of the timed events of a run, with the intervals and windows from which the events' effects are computed.
pub struct EventRunner {
    schedule: Arc<Schedule>,
    thread: Option<JoinHandle<()>>,
    /// Opening time of each window, on the run's clock.
    windows: BTreeMap<u32, Nanos>,
    summaries: Vec<IntervalSummary>,
    /// Per row: whether the row counts in the summary, and whether failures of the row belong to the workload.
    rows: Vec<(bool, bool)>,
}

/// The events of a completed run, and the summaries of its intervals.
#[derive(Debug, Clone, Default)]
pub struct ExecutedEvents {
    /// Events in order of planned time, without windows and effects, which
    /// [`Run::assemble`](plimsoll_results::Run::assemble) computes.
    pub events: Vec<RunEvent>,
    /// Summaries of all intervals of the run, in order.
    pub summaries: Vec<IntervalSummary>,
}

/// An event with its planned time and, unless a simulated system executes the event, its action.
struct Scheduled {
    at: Nanos,
    event: Option<EventSpec>,
}

/// Events of a run and their state, which the event threads share with the runner.
struct Schedule {
    /// Events of the run in order of planned time.
    events: Vec<Scheduled>,
    executor: Box<dyn EventExecutor>,
    stop: Stop,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Clock of the run, and the clock's reading when the workers started; `None` before the start.
    begun: Option<(Clock, Nanos)>,
    /// Instant at which the workers had ended; `None` while the workers run.
    over_since: Option<Instant>,
    /// Whether the runner was dropped: all waits end, and no further event is executed.
    abandoned: bool,
    /// Record of each event for the results, in the order of `Schedule::events`.
    records: Vec<RunEvent>,
}

impl EventRunner {
    /// Schedules the events that `executor` executes, and the events of a simulated system (planned time and action);
    /// `None` without events.
    ///
    /// # Errors
    /// If the thread that waits for the events cannot be started.
    pub fn new(
        events: &[EventSpec],
        simulated: Vec<(Nanos, String)>,
        executor: Box<dyn EventExecutor>,
        plan: &Plan,
        stop: &Stop,
    ) -> io::Result<Option<Self>> {
        let own = events.iter().filter_map(|event| {
            let scheduled = Scheduled {
                at: event.at()?,
                event: Some(event.clone()),
            };
            Some((event.action.to_string(), scheduled))
        });
        let simulated = simulated
            .into_iter()
            .map(|(at, action)| (action, Scheduled { at, event: None }));
        let mut all: Vec<_> = own.chain(simulated).collect();
        if all.is_empty() {
            return Ok(None);
        }
        // The sort is stable: simultaneous events keep the order of the command line.
        all.sort_by_key(|(_, scheduled)| scheduled.at);
        let record = |(action, scheduled): &(String, Scheduled)| {
            RunEvent::new(scheduled.at, action.clone(), EventState::NotExecuted)
        };
        let schedule = Arc::new(Schedule {
            state: Mutex::new(State {
                begun: None,
                over_since: None,
                abandoned: false,
                records: all.iter().map(record).collect(),
            }),
            events: all.into_iter().map(|(_, scheduled)| scheduled).collect(),
            executor,
            stop: stop.clone(),
            changed: Condvar::new(),
        });
        let thread = match events.iter().any(|event| event.at().is_some()) {
            false => None,
            true => {
                let schedule = schedule.clone();
                let thread = std::thread::Builder::new().name("events".into());
                Some(thread.spawn(move || schedule.run())?)
            }
        };
        let kinds = plan.operations.iter().map(|op| op.kind);
        Ok(Some(Self {
            schedule,
            thread,
            windows: BTreeMap::new(),
            summaries: vec![],
            rows: kinds.map(|k| (k.counts(), k.is_of_workload())).collect(),
        }))
    }

    /// The records of all events in the state `unknown`, for the draft of the run, from which results are made if the
    /// process is killed.
    pub fn draft(&self) -> Vec<RunEvent> {
        let mut events = self.schedule.state().records.clone();
        for event in &mut events {
            event.state = EventState::Unknown;
        }
        events
    }

    /// Starts the schedule: planned times count from the reading `at` of the run's clock. Only the first call of
    /// `begin` has an effect.
    pub fn begin(&self, clock: &Clock, at: Nanos) {
        let mut state = self.schedule.state();
        if state.begun.is_none() {
            state.begun = Some((clock.clone(), at));
            self.schedule.changed.notify_all();
        }
    }

    /// Records that a window opened at the reading `at` of the run's clock.
    pub fn open_window(&mut self, number: u32, at: Nanos) {
        self.windows.insert(number, at);
    }

    /// Adds an interval to the summaries. Returns the interval with the actions of the events that began in the
    /// interval, preceded by the empty intervals (without completions, hence without rows so far) in which events
    /// began.
    pub fn add(&mut self, interval: &Interval) -> Vec<(Interval, Vec<String>)> {
        let is_counted = |row: usize| self.rows[row].0;
        let is_of_workload = |row: usize| self.rows[row].1;
        let summary = IntervalSummary::of(interval, is_counted, is_of_workload);
        let last = self.summaries.last();
        let next = last.filter(|last| last.window == interval.window);
        let next = next.map_or(0, |last| last.index.saturating_add(1));
        self.summaries.push(summary);
        let mut marked = Vec::new();
        if let Some(length) = interval.start.checked_div(interval.index) {
            // Empty intervals without events are not added, because a long pause contains very many empty intervals.
            for index in self.eventful(interval, length, next) {
                let silent = Interval {
                    index,
                    start: index * length,
                    length,
                    rows: vec![OpTotals::default(); interval.rows.len()],
                    completions: Completions::default(),
                    ..interval.clone()
                };
                let actions = self.begun_in(&silent);
                marked.push((silent, actions));
            }
        }
        marked.push((interval.clone(), self.begun_in(interval)));
        marked
    }

    /// Opening time of an interval's window, on the clock of this rank; the interval may carry another rank's reading.
    fn opened(&self, interval: &Interval) -> Nanos {
        let opened = self.windows.get(&interval.window);
        opened.copied().unwrap_or(interval.opened)
    }

    /// Actions of the events that began in an interval.
    fn begun_in(&self, interval: &Interval) -> Vec<String> {
        let start = self.opened(interval).saturating_add(interval.start);
        let times = start..start.saturating_add(interval.length);
        let begun = self.schedule.begun().into_iter();
        let begun = begun.filter(|(start, _)| times.contains(start));
        begun.map(|(_, action)| action).collect()
    }

    /// Indices, from `next` and below the index of `interval`, of intervals of length `length` in which events began.
    fn eventful(&self, interval: &Interval, length: Nanos, next: u64) -> BTreeSet<u64> {
        let opened = self.opened(interval);
        let starts = self.schedule.begun().into_iter();
        let index = |(start, _): (Nanos, String)| start.checked_sub(opened)?.checked_div(length);
        let numbers = starts.filter_map(index);
        numbers
            .filter(|n| (next..interval.index).contains(n))
            .collect()
    }

    /// The events that have begun so far, in order of planned time, for `live.json` and the view of the run.
    pub fn begun_so_far(&self) -> Vec<LiveEvent> {
        let state = self.schedule.state();
        let Some((clock, zero)) = &state.begun else {
            return vec![];
        };
        let now = clock.now();
        let all = self.schedule.events.iter().zip(&state.records);
        let begun = all.filter_map(|(scheduled, record)| {
            let (start, ended) = match scheduled.event {
                None => (
                    zero.saturating_add(scheduled.at),
                    Some(EventState::Executed),
                ),
                Some(_) => (nanos(record.start_s?), record.seconds.map(|_| record.state)),
            };
            let opened = self.windows.iter().rfind(|(_, opened)| **opened <= start);
            (start <= now).then(|| LiveEvent {
                at_s: record.at_s,
                action: record.action.clone(),
                start_s: seconds(start),
                lateness_s: record.lateness_s,
                window: opened.map(|(number, _)| *number),
                window_s: opened.map(|(_, opened)| seconds(start - opened)),
                state: ended,
            })
        });
        begun.collect()
    }

    /// Ends the events after the workers have ended. Running commands get a grace period of `EVENT_END_TIMEOUT`; events
    /// that have not begun are not executed.
    pub fn finish(&mut self) -> ExecutedEvents {
        {
            let mut state = self.schedule.state();
            state.over_since.get_or_insert_with(Instant::now);
            self.schedule.changed.notify_all();
        }
        self.join();
        self.schedule.note_simulated();
        ExecutedEvents {
            events: self.schedule.state().records.clone(),
            summaries: self.summaries.clone(),
        }
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported; events that the thread had not begun count as not executed.
            let _ = thread.join();
        }
    }
}

impl Drop for EventRunner {
    fn drop(&mut self) {
        self.schedule.state().abandoned = true;
        self.schedule.changed.notify_all();
        self.join();
    }
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}

fn nanos(s: f64) -> Nanos {
    (s * 1e9).round() as Nanos
}

impl Schedule {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Executes simultaneous events sequentially on one thread, with a separate thread per event time: a slow event
    /// never delays events of a later time.
    fn run(&self) {
        let Some((clock, zero)) = self.wait_for_begin() else {
            return;
        };
        let own = |i: &usize| self.events[*i].event.is_some();
        let numbers: Vec<usize> = (0..self.events.len()).filter(own).collect();
        std::thread::scope(|scope| {
            let same_time = |a: &usize, b: &usize| self.events[*a].at == self.events[*b].at;
            for group in numbers.chunk_by(same_time) {
                let due = zero.saturating_add(self.events[group[0]].at);
                if !self.wait_until(&clock, due) {
                    return;
                }
                let clock = &clock;
                let thread = std::thread::Builder::new().name("event".into());
                let execute = move || {
                    let executed = |i: &&usize| self.execute(**i, clock, zero);
                    let executed = group.iter().take_while(executed).count();
                    // The remaining events were due before the end, so the run deviates from the request: the events
                    // have failed.
                    let rest = &group[executed..];
                    if executed > 0 && !rest.is_empty() && !self.stop.is_requested() {
                        let why = "an event of the same time had not ended when the run did";
                        self.fail(rest, why.into());
                    }
                };
                if let Err(e) = thread.spawn_scoped(scope, execute) {
                    self.fail(group, format!("cannot start a thread: {e}"));
                }
            }
        });
    }

    /// Blocks until the run begins; `None` if the run ends without a begin.
    fn wait_for_begin(&self) -> Option<(Clock, Nanos)> {
        let waits = |state: &mut State| {
            state.begun.is_none() && state.over_since.is_none() && !state.abandoned
        };
        let state = self.changed.wait_while(self.state(), waits);
        state.unwrap_or_else(PoisonError::into_inner).begun.clone()
    }

    /// Blocks until the run's clock reaches `due`; returns `false` if the run ends or is stopped first.
    fn wait_until(&self, clock: &Clock, due: Nanos) -> bool {
        let mut state = self.state();
        loop {
            if state.over_since.is_some() || state.abandoned || self.stop.is_requested() {
                return false;
            }
            let left = Duration::from_nanos(due.saturating_sub(clock.now()));
            if left.is_zero() {
                return true;
            }
            let waited = self
                .changed
                .wait_timeout(state, left.min(STOP_POLL_INTERVAL));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Executes the action of a due event and records the result; returns `false` without execution if the run has
    /// ended or was stopped.
    fn execute(&self, number: usize, clock: &Clock, zero: Nanos) -> bool {
        let scheduled = &self.events[number];
        let event = scheduled.event.as_ref();
        let event = event.expect("events of a simulated system have no thread");
        let start = {
            let mut state = self.state();
            if state.over_since.is_some() || state.abandoned || self.stop.is_requested() {
                return false;
            }
            // The start time is read under the lock, so that no later interval is written without the event.
            let start = clock.now();
            let record = &mut state.records[number];
            record.start_s = Some(seconds(start));
            let late = start.saturating_sub(zero.saturating_add(scheduled.at));
            record.lateness_s = Some(seconds(late));
            start
        };
        let (ended, last_line) = self.executor.execute(event, &|| self.must_end());
        let end = clock.now();
        let mut state = self.state();
        let record = &mut state.records[number];
        record.state = match ended.succeeded() {
            true => EventState::Executed,
            false => EventState::Failed,
        };
        record.seconds = Some(seconds(end.saturating_sub(start)));
        record.end = ended;
        record.last_line = last_line;
        true
    }

    /// Whether the running commands of events must end now: `EVENT_END_TIMEOUT` has passed since the end of the
    /// workers, a stop was requested, or the runner was dropped.
    fn must_end(&self) -> bool {
        let state = self.state();
        let has_had_time = state
            .over_since
            .is_some_and(|since| since.elapsed() >= EVENT_END_TIMEOUT);
        has_had_time || state.abandoned || self.stop.is_requested()
    }

    fn fail(&self, numbers: &[usize], error: String) {
        let mut state = self.state();
        for number in numbers {
            let record = &mut state.records[*number];
            record.state = EventState::Failed;
            record.end.error = Some(error.clone());
        }
    }

    /// Marks the events of a simulated system that have happened by now as executed, with their exact start times.
    fn note_simulated(&self) {
        let mut state = self.state();
        let Some((clock, zero)) = state.begun.clone() else {
            return;
        };
        let records = self.events.iter().zip(&mut state.records);
        for (scheduled, record) in records.filter(|(s, _)| s.event.is_none()) {
            let start = zero.saturating_add(scheduled.at);
            if start <= clock.now() {
                record.state = EventState::Executed;
                record.start_s = Some(seconds(start));
            }
        }
    }

    /// Start times on the run's clock, and actions, of the events that have begun, and of all events of a simulated
    /// system.
    fn begun(&self) -> Vec<(Nanos, String)> {
        let state = self.state();
        let Some((_, zero)) = &state.begun else {
            return vec![];
        };
        let all = self.events.iter().zip(&state.records);
        let begun = all.filter_map(|(scheduled, record)| {
            let start = match scheduled.event {
                // A simulated event happens exactly at its scheduled time.
                None => zero.saturating_add(scheduled.at),
                Some(_) => nanos(record.start_s?),
            };
            Some((start, record.action.clone()))
        });
        begun.collect()
    }
}

#[cfg(test)]
mod tests;
