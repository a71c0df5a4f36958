//! The target without work, for measuring Plimsoll itself and for trying out workloads.

use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::session::Target;
use crate::session_types::{AioDone, FilesetEntry, SessionSpec};
use crate::timed_writes::TimedWrites;
use crate::unstored::{Answers, Step};
use crate::url_parser::UrlParser;
use plimsoll_lane::{Lane, LaneKind, Stopped};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_plan::{FilesetId, Layout, OpKind, WorkDirSpec, show_duration};
use plimsoll_runtime::sync::lock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Maximum number of servers; each server takes eight bytes.
const MAX_SERVERS: u64 = 1 << 20;

/// Maximum value of the options `latency`, `stall` and `stall_after` of the null target's URL.
const MAX_TIME: Duration = Duration::from_secs(3600);

const OPTIONS: [&str; 6] = [
    "clock",
    "lanes",
    "latency",
    "servers",
    "stall",
    "stall_after",
];

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "null",
    form: "null:?latency=TIME",
    storage: FileStorage::None,
    takes_events: false,
    options: &[&OPTIONS],
    row_names: no_rows,
};

/// The null target: completes every operation with success, at once or after a fixed latency; with the option
/// `servers`, an operation also waits for one of the servers, and with the option `stall` the target stalls once.
///
/// A file on the null target has the size that the workload planned, so that a sequential read reaches an end.
pub(crate) struct Null {
    latency: Nanos,
    servers: Option<ServerQueue>,
    stall: Option<ServiceOutage>,
    lanes: Option<usize>,
    /// Whether runs on the target are in virtual time (option `clock=virtual`).
    is_virtual: bool,
}

/// A period without service, on the clock of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ServiceOutage {
    from: Nanos,
    until: Nanos,
}

impl ServiceOutage {
    /// Completion time of service that takes `latency` and may begin at `start`.
    fn done_at(self, start: Nanos, latency: Nanos) -> Nanos {
        let done = start + latency;
        match self {
            s if done <= s.from || start >= s.until => done,
            s if start >= s.from => s.until + latency,
            // Service in progress continues after the outage.
            s => done + (s.until - s.from),
        }
    }
}

/// Servers that serve operations in order of arrival, one operation at a time per server.
#[derive(Clone)]
struct ServerQueue {
    count: u32,
    /// The time at which each server becomes free.
    free_at: Arc<Mutex<BinaryHeap<Reverse<Nanos>>>>,
}

impl ServerQueue {
    fn new(count: u32) -> Self {
        let free = (0..count).map(|_| Reverse(0)).collect();
        Self {
            count,
            free_at: Arc::new(Mutex::new(free)),
        }
    }

    /// Completion time of an operation that arrives at `now`: the server that becomes free first
    /// serves the operation; `done_at` gives the completion time for the start time of the service.
    fn done_at(&self, now: Nanos, done_at: impl FnOnce(Nanos) -> Nanos) -> Nanos {
        let mut free_at = lock(&self.free_at);
        let Reverse(first) = free_at.pop().expect("there is at least one server");
        let done = done_at(first.max(now));
        debug_assert!(
            done >= first && done >= now,
            "service ends before it begins"
        );
        free_at.push(Reverse(done));
        done
    }
}

pub(crate) fn connect(url: &str, _: &WorkDirSpec, _: Purpose) -> Result<Null, TargetError> {
    Null::parse(url)
}

pub(crate) fn check_url(url: &str) -> Result<(), TargetError> {
    Null::parse(url).map(drop)
}

/// Whether the time of runs on the target of a URL is virtual; `false` if the options cannot be parsed.
pub(crate) fn is_virtual(url: &str) -> bool {
    Null::parse(url).is_ok_and(|null| null.is_virtual)
}

impl Null {
    fn parse(url: &str) -> Result<Self, TargetError> {
        let text = UrlParser {
            scheme: SCHEME.name,
            url,
        };
        let (mut latency, mut servers, mut is_virtual) = (Duration::ZERO, None, false);
        let (mut length, mut after, mut lanes) = (None, None, None);
        for (name, value) in text.only_options()? {
            let time = || text.duration(name, value, (Duration::ZERO..=MAX_TIME, "at most 1h"));
            match name {
                "clock" => {
                    is_virtual = text.word(name, value, &[("real", false), ("virtual", true)])?;
                }
                "lanes" => lanes = text.lanes(name, value)?,
                "latency" => latency = time()?,
                "servers" => servers = Some(text.number(name, value, 1..=MAX_SERVERS)?),
                "stall" => length = Some(time()?),
                "stall_after" => after = Some(time()?),
                _ => return Err(text.unknown_option(name, &OPTIONS)),
            }
        }
        let refused = |reason: &str| Err(TargetError::of(SCHEME.name, reason));
        if length.is_none() && after.is_some() {
            return refused(
                "`stall_after` is the beginning of a stall: give its length too, stall=1s",
            );
        }
        let need_latency = [
            (
                length.is_some(),
                "operations that take no time cannot be stalled",
                "stall=1s&stall_after=5s",
            ),
            (
                servers.is_some(),
                "servers that take no time sustain any load",
                "servers=8",
            ),
            (
                lanes.is_some(),
                "without a latency each worker has its own thread",
                "lanes=2",
            ),
            (
                is_virtual,
                "without a latency virtual time does not advance",
                "clock=virtual",
            ),
        ];
        for (_, reason, example) in need_latency.into_iter().filter(|(given, ..)| *given) {
            if latency.is_zero() {
                return refused(&format!(
                    "{reason}: give a latency too, such as latency=1ms&{example}"
                ));
            }
        }
        if is_virtual && lanes.is_some() {
            return refused("virtual time has a single lane: `lanes` is an option of clock=real");
        }
        let nanos = |d: Duration| d.as_nanos() as Nanos;
        let stall = length.map(|length| {
            let from = nanos(after.unwrap_or_default());
            let until = from + nanos(length);
            ServiceOutage { from, until }
        });
        Ok(Self {
            latency: nanos(latency),
            servers: servers.map(ServerQueue::new),
            stall,
            lanes,
            is_virtual,
        })
    }
}

impl Target for Null {
    type Session = NullSession;

    fn describe(&self) -> String {
        let latency = self.latency as f64 / 1e3;
        let mut text = match (self.latency, &self.servers) {
            (0, _) => "null".into(),
            (_, None) => format!("null, latency {latency} us"),
            (_, Some(s)) => format!("null, {} servers, latency {latency} us", s.count),
        };
        if let Some(stall) = self.stall {
            let time = |ns| show_duration(Duration::from_nanos(ns));
            let (length, from) = (time(stall.until - stall.from), time(stall.from));
            text.push_str(&format!(", stalled for {length} after {from}"));
        }
        text
    }

    fn lane_kind(&self) -> LaneKind {
        match (self.latency, self.is_virtual) {
            (_, true) => LaneKind::Virtual,
            (0, false) => LaneKind::Blocking,
            (_, false) => LaneKind::Reactor,
        }
    }

    fn requested_lanes(&self) -> Option<usize> {
        self.lanes
    }

    fn keeps_files(&self) -> bool {
        false
    }

    fn unsupported_reason(&self, _: OpKind) -> Option<&'static str> {
        None
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some("the target `null` keeps no files")
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<NullSession, OpError> {
        Ok(NullSession {
            lane: lane.clone(),
            clock: spec.clock.clone(),
            latency: self.latency,
            servers: self.servers.clone(),
            stall: self.stall,
            queued: TimedWrites::default(),
        })
    }
}

pub(crate) struct NullSession {
    lane: Lane,
    clock: Clock,
    latency: Nanos,
    servers: Option<ServerQueue>,
    stall: Option<ServiceOutage>,
    queued: TimedWrites,
}

impl NullSession {
    /// Completion time of an operation that arrives at `start`.
    #[inline(always)]
    fn done_at(&self, start: Nanos) -> Nanos {
        let done_at = |start| match self.stall {
            None => start + self.latency,
            Some(stall) => stall.done_at(start, self.latency),
        };
        match &self.servers {
            None => done_at(start),
            Some(servers) => servers.done_at(start, done_at),
        }
    }
}

impl Answers for NullSession {
    const HAS_FAST_PATH: bool = true;
    type Place = ();

    #[inline(always)]
    fn locate_path(&mut self, _: impl FnOnce(&mut Vec<u8>)) {}

    #[inline(always)]
    fn locate_in_fileset(&mut self, _: FilesetId, _: &Layout, _: FilesetEntry) {}

    #[inline(always)]
    fn located(&self) {}

    #[inline(always)]
    fn answers_at_once(&self) -> bool {
        self.latency == 0
    }

    #[inline(always)]
    async fn answer(&self, _: &[Step<()>]) -> Result<(), OpError> {
        if self.latency > 0 {
            let done_at = self.done_at(self.lane.now());
            self.lane.uncancellable_sleep_until(done_at).await;
        }
        Ok(())
    }

    fn queue(&mut self, (): (), _: u64, len: u64, tag: u32) {
        let start = self.clock.now();
        self.queued.push(AioDone {
            tag,
            start,
            end: self.done_at(start),
            result: Ok(len),
        });
    }

    fn queued(&self) -> usize {
        self.queued.pending()
    }

    async fn take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.queued.take(&self.lane, count, done).await
    }

    fn under_way(&self) -> Vec<(u32, Nanos)> {
        self.queued.under_way()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_take_operations_in_the_order_they_come() {
        let servers = ServerQueue::new(2);
        let done = [0, 0, 0, 1, 25, 100].map(|now| servers.done_at(now, |at| at + 10));
        assert_eq!(done, [10, 10, 20, 20, 35, 110]);
    }

    #[test]
    fn servers_need_a_latency_and_a_number() {
        let reason = |rest: &str| {
            Null::parse(&format!("null:{rest}"))
                .err()
                .unwrap()
                .to_string()
        };
        assert!(reason("?servers=8").contains("give a latency too"));
        for bad in ["0", "x", "-1", "1048577", ""] {
            let text = reason(&format!("?latency=1ms&servers={bad}"));
            assert!(text.contains("expected 1 to 1048576"), "{bad}: {text}");
        }
        let text = reason("?latency=1ms&serves=1");
        assert!(text.contains("unknown option `serves`"), "{text}");
        let target = Null::parse("null:?latency=1ms&servers=8").ok().unwrap();
        assert_eq!(target.describe(), "null, 8 servers, latency 1000 us");
    }

    #[test]
    fn virtual_time_needs_a_latency_and_has_one_lane() {
        let kind = |url: &str| Null::parse(url).map(|null| null.lane_kind());
        assert_eq!(kind("null:?clock=real"), Ok(LaneKind::Blocking));
        assert_eq!(
            kind("null:?latency=1ms&clock=virtual"),
            Ok(LaneKind::Virtual)
        );
        for (bad, reason) in [
            ("clock=virtual", "give a latency too"),
            ("clock=fast", "clock `fast`: expected real or virtual"),
            ("lanes=2", "give a latency too"),
            ("latency=1ms&clock=virtual&lanes=1", "has a single lane"),
        ] {
            let text = kind(&format!("null:?{bad}")).unwrap_err().to_string();
            assert!(text.contains(reason), "{bad}: {text}");
        }
    }

    #[test]
    fn nothing_is_served_during_a_stall() {
        let stall = ServiceOutage {
            from: 100,
            until: 150,
        };
        let done = [0, 90, 91, 99, 100, 140, 150].map(|start| stall.done_at(start, 10));
        assert_eq!(done, [10, 100, 151, 159, 160, 160, 160]);
        let servers = ServerQueue::new(1);
        let done = [85, 86, 87].map(|now| servers.done_at(now, |at| stall.done_at(at, 10)));
        assert_eq!(done, [95, 155, 165]);
    }

    #[test]
    fn a_stall_needs_a_length_and_a_latency() {
        let reason = |rest: &str| Null::parse(rest).err().unwrap().to_string();
        let text = reason("null:?stall=1s");
        assert!(
            text.contains("cannot be stalled: give a latency too"),
            "{text}"
        );
        let text = reason("null:?latency=1ms&stall_after=1s");
        assert!(text.contains("give its length too"), "{text}");
        let target = Null::parse("null:?latency=1ms&stall=1s&stall_after=5s").ok();
        let text = target.map(|t| t.describe());
        let expected = "null, latency 1000 us, stalled for 1s after 5s";
        assert_eq!(text.as_deref(), Some(expected));
    }
}
