//! Page of a run in progress: the measurements so far, and the event stream that sends later measurements to a browser.

use crate::address::{address, run_address};
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::{Path, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use maud::{Markup, html};
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{Count, OpKind};
use plimsoll_report::html::charts::{TimeSeriesInput, mark_times, over_time};
use plimsoll_report::html::timeline::{Point, Timeline, WindowSpan};
use plimsoll_report::html::{OpName, label, page};
use plimsoll_report::{duration_text, latency, mib_per_s, rate};
use plimsoll_results::{
    IntervalRow, LatencyKind, LiveDir, LiveEvent, LiveLocation, LiveReader, per_second,
};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

/// Time between two reads of `intervals.csv` and `live.json` of a run in progress.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum number of intervals in the charts of a run in progress; older intervals are not shown.
const MAX_SHOWN_INTERVALS: u64 = 600;

/// Totals of an operation of a run in progress: successful operations, bytes moved, and failed operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) ops: u64,
    pub(crate) bytes: u128,
    pub(crate) errors: u64,
}

impl Totals {
    fn add(&mut self, row: &IntervalRow) {
        self.ops += row.ops;
        self.bytes += row.bytes;
        self.errors += row.errors;
    }
}

/// Measurements of a run in progress, up to the last written interval.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Totals of each operation, by the operation's name and kind, over all measured intervals.
    pub(crate) operations: BTreeMap<(String, String), Totals>,
    /// Rows of the latest intervals of the current window, at most [`MAX_SHOWN_INTERVALS`] intervals.
    recent: VecDeque<IntervalRow>,
    /// Events of the system under test that have begun.
    events: Vec<LiveEvent>,
}

/// Figures of the last interval of a run in progress, over all operations that count in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct LastInterval {
    /// Number of the measured window that contains the interval, from 1.
    pub(crate) window: u32,
    /// Length of the window measured so far, in seconds.
    pub(crate) measured_s: f64,
    pub(crate) ops_per_s: f64,
    pub(crate) bytes_per_s: f64,
    /// Mean latency in milliseconds: response time of paced operations, service time of the other operations; null if
    /// no operation completed.
    pub(crate) mean_ms: Option<f64>,
    /// Maximum of the operations' 99th percentiles of the latency in milliseconds; null if no operation completed.
    pub(crate) p99_ms: Option<f64>,
    /// Number of operations of the interval that had an intended start.
    pub(crate) paced_ops: u64,
    /// Mean service time in milliseconds; null if no operation was paced.
    pub(crate) service_mean_ms: Option<f64>,
    /// Maximum of the operations' 99th percentiles of the service time in milliseconds; null if no operation was paced.
    pub(crate) service_p99_ms: Option<f64>,
    /// Number of counted operations that succeeded in the interval.
    pub(crate) ops: u64,
    /// Number of operations of every kind that failed, in all measured intervals so far.
    pub(crate) errors: u64,
}

/// Whether the summary of a run counts operations of the kind with the name `kind`; false for an unknown name.
fn counts(kind: &str) -> bool {
    let kind: Result<OpKind, _> = serde_json::from_value(kind.into());
    kind.is_ok_and(OpKind::counts)
}

impl Progress {
    pub(crate) fn add(&mut self, rows: Vec<IntervalRow>) {
        for row in rows {
            let key = (row.operation.clone(), row.kind.clone());
            self.operations.entry(key).or_default().add(&row);
            if self.recent.back().is_some_and(|b| b.window != row.window) {
                self.recent.clear();
            }
            let first = row.interval.saturating_sub(MAX_SHOWN_INTERVALS - 1);
            while self.recent.front().is_some_and(|r| r.interval < first) {
                self.recent.pop_front();
            }
            self.recent.push_back(row);
        }
    }

    /// Rows of the last interval that was read; empty before the first interval.
    pub(crate) fn last(&self) -> impl Iterator<Item = &IntervalRow> {
        let last = self.recent.back().map(|r| r.interval);
        self.recent.iter().filter(move |r| Some(r.interval) == last)
    }

    /// Computes the figures of the last interval over all counted operations; `None` before the first interval.
    pub(crate) fn latest(&self) -> Option<LastInterval> {
        let end = self.recent.back()?;
        let mut sum = Point::default();
        let rows = self.last().filter(|r| counts(&r.kind));
        rows.for_each(|row| sum.add(row));
        let paced = |ms: Option<f64>| ms.filter(|_| sum.paced > 0);
        Some(LastInterval {
            window: end.window,
            measured_s: end.start_s + end.length_s,
            ops_per_s: per_second(sum.ops, end.length_s),
            bytes_per_s: per_second(sum.bytes, end.length_s),
            mean_ms: sum.mean_ms(sum.latency),
            p99_ms: sum.p99_ms(sum.latency),
            paced_ops: sum.paced,
            service_mean_ms: paced(sum.mean_ms(sum.service)),
            service_p99_ms: paced(sum.p99_ms(sum.service)),
            ops: sum.ops,
            errors: self.operations.values().map(|t| t.errors).sum(),
        })
    }

    /// Figures, charts and events of the run as HTML, which replace the former content of the page.
    pub(crate) fn markup(&self) -> Markup {
        let Some(latest) = self.latest() else {
            return html! {
                p { "Nothing has been measured yet: files are being created, or the run warms up." }
                (self.list_of_events())
            };
        };
        let mut tiles = vec![
            ("measured".to_owned(), duration_text(latest.measured_s)),
            ("ops/s".to_owned(), rate(latest.ops_per_s)),
            ("MiB/s".to_owned(), mib_per_s(latest.bytes_per_s)),
        ];
        let time = |ms: Option<f64>| ms.map_or("-".into(), latency);
        let of = match LatencyKind::of(latest.paced_ops, latest.ops) {
            LatencyKind::Service => String::new(),
            kind => format!("{}, ", kind.name()),
        };
        tiles.push((format!("{of}mean"), time(latest.mean_ms)));
        tiles.push((format!("{of}p99"), time(latest.p99_ms)));
        if latest.service_mean_ms.is_some() {
            let [mean, p99] = [latest.service_mean_ms, latest.service_p99_ms].map(time);
            tiles.push(("service time, mean".to_owned(), mean));
            tiles.push(("service time, p99".to_owned(), p99));
        }
        tiles.push(("errors".to_owned(), Count(latest.errors).to_string()));
        html! {
            (page::tiles(&tiles))
            (self.list_of_events())
            (self.charts())
        }
    }

    fn charts(&self) -> Markup {
        let (Some(first), Some(last)) = (self.recent.front(), self.recent.back()) else {
            return html! {};
        };
        let mut named: Vec<(&(String, String), &Totals)> = self.operations.iter().collect();
        named.retain(|((_, kind), _)| counts(kind));
        named.sort_by_key(|(_, t)| std::cmp::Reverse(t.ops));
        let operation = |((name, kind), _): &(&(String, String), _)| {
            let shared = named.iter().filter(|((n, _), _)| n == name).count() > 1;
            OpName::of_row(name, kind, label(name, kind, shared), LatencyKind::Service)
        };
        let operations: Vec<OpName> = named.iter().map(operation).collect();
        let begin = first.interval;
        let mut rows: Vec<IntervalRow> = self.recent.iter().cloned().collect();
        for row in &mut rows {
            row.interval = row.interval.saturating_sub(begin);
        }
        let span = WindowSpan {
            number: last.window,
            start_s: first.start_s,
            length_s: last.start_s + last.length_s - first.start_s,
        };
        let timeline = Timeline::of(&rows, &[span], &operations);
        let mut charts = over_time(TimeSeriesInput {
            timeline: &timeline,
            operations: &operations,
            staged: false,
        });
        let shown = span.start_s..=span.start_s + span.length_s;
        let of_window = |event: &&LiveEvent| event.window == Some(span.number);
        let times = self.events.iter().filter(of_window).filter_map(|event| {
            let at = event.window_s.filter(|at| shown.contains(at))?;
            Some((at, event.action.clone()))
        });
        mark_times(&mut charts, times);
        page::figures(&charts)
    }

    /// List of the events that have begun, with lateness and state of each event.
    fn list_of_events(&self) -> Markup {
        let course = |event: &LiveEvent| {
            let state = event.state.map_or("in progress".into(), |s| s.to_string());
            match event.lateness_s {
                Some(late) => format!("begun {} late, {state}", latency(late * 1e3)),
                None => state,
            }
        };
        html! {
            @if !self.events.is_empty() {
                h2 id="events" { "Events" }
                ul { @for event in &self.events {
                    li { (duration_text(event.at_s)) ": " code { (event.action) } ", " (course(event)) }
                } }
            }
        }
    }
}

/// Finds a run in progress by its id, the random characters of its hidden directory.
pub(crate) fn find_run(app: &Shared, id: &str) -> Result<LiveDir, Problem> {
    let mut all = app.live()?.into_iter();
    all.find(|d| d.id() == id)
        .ok_or_else(|| Problem::missing("There is no such run in progress; it may have ended."))
}

/// Reads all measurements of a run so far; the returned reader continues with later intervals.
pub(crate) fn progress(dir: &LiveDir) -> Result<(LiveReader, Progress), Problem> {
    let mut reader = dir.open_reader()?;
    let mut progress = Progress::default();
    read_news(&mut reader, &mut progress)?;
    Ok((reader, progress))
}

/// Reads the rows written since the last call, and the events; returns whether anything has changed.
fn read_news(reader: &mut LiveReader, progress: &mut Progress) -> Result<bool, Problem> {
    let mut any = false;
    loop {
        let rows = reader.rows()?;
        if rows.is_empty() {
            break;
        }
        any = true;
        progress.add(rows);
    }
    // Read after the rows: `events` then contains the events of all rows. Read even without rows, which an outage may
    // hold up for long. A run that has just ended has no event list, so the known events stay.
    if let Some(events) = reader.events()
        && events != progress.events
    {
        any = true;
        progress.events = events;
    }
    Ok(any)
}

/// State of the event stream (server-sent events) by which a browser follows a run.
enum StreamState {
    Begin(LiveDir),
    Following(Box<(LiveReader, Progress)>),
    End,
}

pub(crate) async fn events(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let root = app.root.clone();
    let dir = run_blocking(move || find_run(&app, &id)).await?;
    let stream = futures_util::stream::unfold(StreamState::Begin(dir), move |state| {
        let root = root.clone();
        async move {
            let (event, next) = next(state, root).await?;
            Some((Ok(event), next))
        }
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// Waits until the run has new rows or events, or has ended, and returns the next event of the stream; `None` at the
/// end of the stream.
async fn next(state: StreamState, root: PathBuf) -> Option<(Event, StreamState)> {
    let ended = |word, address: Option<&str>| Some((end(word, address), StreamState::End));
    let mut following = match state {
        StreamState::End => return None,
        StreamState::Following(following) => following,
        StreamState::Begin(dir) => {
            let begun = run_blocking(move || {
                let following = progress(&dir)?;
                let markup = following.1.markup().into_string();
                Ok((
                    interval(&markup),
                    StreamState::Following(Box::new(following)),
                ))
            });
            return begun.await.ok().or_else(|| ended("ended", None));
        }
    };
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let read = run_blocking(move || {
            let (reader, progress) = &mut *following;
            // The location is read before the rows: rows written before the run ended are not missed.
            let location = reader.location();
            let is_new = read_news(reader, progress)?;
            let markup = is_new.then(|| progress.markup().into_string());
            Ok((following, markup, location))
        });
        let Ok((read, markup, location)) = read.await else {
            return ended("ended", None);
        };
        following = read;
        if let Some(markup) = markup {
            return Some((interval(&markup), StreamState::Following(following)));
        }
        match location {
            LiveLocation::InProgress => {}
            LiveLocation::Finished(path) => {
                return ended("ended", page_of(&root, &path).as_deref());
            }
            LiveLocation::Gone => return ended("ended without results", None),
        }
    }
}

/// Address of the page on the results at a path below the root.
fn page_of(root: &FilePath, path: &FilePath) -> Option<String> {
    let below = path.strip_prefix(root).ok()?;
    let mut names = below.iter().map(|n| n.to_str());
    let name = names.next()??;
    let run: Vec<&str> = names.collect::<Option<_>>()?;
    Some(match run.is_empty() {
        true => address(name),
        false => run_address(name, &run.join("/")),
    })
}

fn interval(markup: &str) -> Event {
    // Foreign names may contain control characters, which HTML does not permit; an event must not contain a carriage
    // return.
    Event::default()
        .event("interval")
        .data(foreign::replaced(markup))
}

fn end(word: &str, address: Option<&str>) -> Event {
    let data = match address {
        Some(address) => format!("{word}\n{address}"),
        None => word.to_owned(),
    };
    Event::default().event("end").data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(window: u32, interval: u64, operation: &str, kind: &str, ops: u64) -> IntervalRow {
        IntervalRow {
            window,
            interval,
            start_s: interval as f64,
            length_s: 1.0,
            operation: operation.into(),
            kind: kind.into(),
            ops,
            bytes: 10 * u128::from(ops),
            errors: 1,
            mean_ms: ops as f64,
            p50_ms: 1.0,
            p99_ms: 2.0 * ops as f64,
            max_ms: 9.0,
            ..IntervalRow::default()
        }
    }

    #[test]
    fn the_last_interval_of_a_paced_run_has_response_and_service_times() {
        let mut progress = Progress::default();
        let paced = IntervalRow {
            paced_ops: 4,
            service_mean_ms: Some(0.5),
            service_p99_ms: Some(1.0),
            ..row(1, 0, "a", "read", 4)
        };
        progress.add(vec![paced, row(1, 0, "b", "write", 1)]);
        let latest = progress.latest().unwrap();
        // Means over five operations: (4 × 4 ms + 1 × 1 ms) / 5, and (4 × 0.5 ms + 1 × 1 ms) / 5.
        assert_eq!((latest.mean_ms, latest.p99_ms), (Some(3.4), Some(8.0)));
        assert_eq!(latest.service_mean_ms, Some(0.6));
        assert_eq!(latest.service_p99_ms, Some(2.0));
        let markup = progress.markup().into_string();
        for text in ["latency, mean", "service time, mean", "Mean service time"] {
            assert!(markup.contains(text), "{text}");
        }
    }

    #[test]
    fn the_last_interval_is_that_of_all_operations_that_count() {
        let mut progress = Progress::default();
        assert_eq!(progress.latest(), None);
        progress.add(vec![
            row(1, 0, "a", "read", 5),
            row(1, 1, "a", "read", 1),
            row(1, 1, "b", "write", 3),
            row(1, 1, "wait", "delay", 100),
        ]);
        let latest = progress.latest().unwrap();
        assert_eq!((latest.ops_per_s, latest.bytes_per_s), (4.0, 40.0));
        assert_eq!((latest.measured_s, latest.errors), (2.0, 4));
        // Mean over four operations: (1 × 1 ms + 3 × 3 ms) / 4.
        assert_eq!((latest.mean_ms, latest.p99_ms), (Some(2.5), Some(6.0)));
        assert_eq!((latest.paced_ops, latest.service_mean_ms), (0, None));
        let total = progress.operations[&("a".to_owned(), "read".to_owned())];
        assert_eq!((total.ops, total.bytes, total.errors), (6, 60, 2));
    }

    fn event(action: &str, window: Option<u32>, window_s: f64) -> LiveEvent {
        LiveEvent {
            at_s: 9.0,
            action: action.into(),
            start_s: 9.25,
            lateness_s: Some(0.25),
            window,
            window_s: window.map(|_| window_s),
            state: None,
        }
    }

    #[test]
    fn events_of_the_shown_time_are_lines_and_all_are_listed() {
        let mut progress = Progress::default();
        for i in 0..MAX_SHOWN_INTERVALS + 5 {
            progress.add(vec![row(2, i, "a", "read", 2)]);
        }
        progress.events = vec![
            event("sh warm-up", None, 0.0),
            event("sh other window", Some(1), 7.0),
            event("sh out of sight", Some(2), 2.0),
            event("sh <b>seen</b>", Some(2), 7.0),
        ];
        let charts = progress.charts().into_string();
        assert!(charts.contains("Vertical lines: events."));
        assert!(charts.contains("sh &lt;b&gt;seen&lt;/b&gt;") && !charts.contains("<b>"));
        for hidden in ["sh warm-up", "sh other window", "sh out of sight"] {
            assert!(!charts.contains(hidden), "{hidden}");
        }
        let markup = progress.markup().into_string();
        for event in &progress.events[..3] {
            assert!(markup.contains(&event.action), "{markup}");
        }
        assert!(markup.contains("9s: <code>sh warm-up</code>, begun 250 ms late, in progress"));
        progress.events[0].state = Some(plimsoll_results::EventState::Failed);
        let markup = progress.markup().into_string();
        assert!(markup.contains("begun 250 ms late, failed"), "{markup}");
    }

    #[test]
    fn a_long_run_is_shown_by_its_end_and_counted_whole() {
        let mut progress = Progress::default();
        for i in 0..5000 {
            progress.add(vec![row(1, i, "a", "read", 2)]);
        }
        assert_eq!(progress.recent.len() as u64, MAX_SHOWN_INTERVALS);
        assert_eq!(progress.operations.values().next().unwrap().ops, 10_000);
        let markup = progress.charts().into_string();
        assert_eq!(
            markup.matches("<tr data-at").count() as u64,
            5 * MAX_SHOWN_INTERVALS
        );
        progress.add(vec![row(2, 0, "a", "read", 2)]);
        assert_eq!(progress.recent.len(), 1);
    }
}
