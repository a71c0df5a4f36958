//! Execution of events at their times, concurrently with the workers of a run.

use super::{EventExecutor, EventSpec};
use plimsoll_engine::Stop;
use plimsoll_measure::{Clock, Completions, Interval, IntervalSummary, Nanos, OpTotals};
use plimsoll_plan::Plan;
use plimsoll_results::{EventState, LiveEvent, RunEvent};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Grace period for running commands after the end of the run.
const EVENT_END_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval at which a wait for the next event checks for a stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The events of a run, with the intervals and windows needed to report the events' effects.
pub struct EventRunner {
    schedule: Arc<Schedule>,
    thread: Option<JoinHandle<()>>,
    /// Opening time of each window, on the run's clock.
    windows: BTreeMap<u32, Nanos>,
    summaries: Vec<IntervalSummary>,
    /// Per row: whether the row counts in the summary, and whether failures of the row belong to the workload.
    rows: Vec<(bool, bool)>,
}

/// The events of a completed run, and the interval summaries.
#[derive(Debug, Clone, Default)]
pub struct ExecutedEvents {
    /// In order of time. Measured effects are not filled in.
    pub events: Vec<RunEvent>,
    /// All intervals.
    pub summaries: Vec<IntervalSummary>,
}

/// An event and its executable action; `None` for an event that a simulated system executes itself.
struct Scheduled {
    at: Nanos,
    event: Option<EventSpec>,
}

/// State shared by the event threads.
struct Schedule {
    /// In order of time.
    events: Vec<Scheduled>,
    executor: Box<dyn EventExecutor>,
    stop: Stop,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The clock of the run, and the reading at the start of the run.
    begun: Option<(Clock, Nanos)>,
    /// Time at which the workers had ended.
    over_since: Option<Instant>,
    /// Set to end all waits without executing further events.
    abandoned: bool,
    /// Indexed like `Schedule::events`.
    records: Vec<RunEvent>,
}

impl EventRunner {
    /// Schedules the events that `executor` executes, and the events of a simulated system. Returns `None` without
    /// events.
    ///
    /// # Errors
    /// If a thread cannot be started.
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
        // The sort is stable: simultaneous events keep the order in which they were given.
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

    /// The events as recorded if this process is killed: state unknown.
    pub fn draft(&self) -> ExecutedEvents {
        let mut events = self.schedule.state().records.clone();
        for event in &mut events {
            event.state = EventState::Unknown;
        }
        ExecutedEvents {
            events,
            summaries: vec![],
        }
    }

    /// Starts the event clock at this reading of the run's clock. Later calls have no effect.
    pub fn begin(&self, clock: &Clock, at: Nanos) {
        let mut state = self.schedule.state();
        if state.begun.is_none() {
            state.begun = Some((clock.clone(), at));
            self.schedule.changed.notify_all();
        }
    }

    /// Records the opening of a window, in time of the run's clock.
    pub fn open_window(&mut self, number: u32, at: Nanos) {
        self.windows.insert(number, at);
    }

    /// Adds an interval. Returns the interval with the actions of the events that began in it, preceded by the empty
    /// intervals (no completions, hence no row so far) in which events began.
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
            // Only empty intervals with events: a long pause can contain very many empty intervals.
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

    /// Indices, at least `next` and below the index of `interval`, of the intervals of this length in which events
    /// began.
    fn eventful(&self, interval: &Interval, length: Nanos, next: u64) -> BTreeSet<u64> {
        let opened = self.opened(interval);
        let starts = self.schedule.begun().into_iter();
        let index = |(start, _): (Nanos, String)| start.checked_sub(opened)?.checked_div(length);
        let numbers = starts.filter_map(index);
        numbers
            .filter(|n| (next..interval.index).contains(n))
            .collect()
    }

    /// The events that have begun so far, for the live view.
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
            // The panic was reported by the thread; its events count as not executed.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Blocks until the clock has this reading; `false` if the run ends or is stopped first.
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

    /// Executes a due event; `false` if the run is over or stopped.
    fn execute(&self, number: usize, clock: &Clock, zero: Nanos) -> bool {
        let scheduled = &self.events[number];
        let event = scheduled.event.as_ref();
        let event = event.expect("events of a simulated system have no thread");
        let start = {
            let mut state = self.state();
            if state.over_since.is_some() || state.abandoned || self.stop.is_requested() {
                return false;
            }
            // The start time is read under the lock: no later interval can be written without this event.
            let start = clock.now();
            let record = &mut state.records[number];
            record.start_s = Some(seconds(start));
            let late = start.saturating_sub(zero.saturating_add(scheduled.at));
            record.lateness_s = Some(seconds(late));
            start
        };
        let ended = self.executor.execute(event, &|| self.must_end());
        let end = clock.now();
        let mut state = self.state();
        let record = &mut state.records[number];
        record.state = match ended.succeeded() {
            true => EventState::Executed,
            false => EventState::Failed,
        };
        record.seconds = Some(seconds(end.saturating_sub(start)));
        record.exit_status = ended.exit_status;
        record.signal = ended.signal;
        record.timed_out = ended.timed_out;
        record.error = ended.error;
        record.last_line = ended.last_line;
        true
    }

    /// Whether running commands must end now.
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
            record.error = Some(error.clone());
        }
    }

    /// Marks the events of a simulated system that have happened.
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

    /// Start times, on the run's clock, and actions of the events that have begun or are simulated.
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
