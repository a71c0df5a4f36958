//! The target without work, for measuring Plimsoll itself and for trying out workloads.

use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::session::{Session, Target};
use crate::session_types::{
    AioDone, Attributes, EntryKind, FilesetEntry, ListTotals, OpenHow, SessionSpec,
};
use crate::timed_writes::TimedWrites;
use crate::url_options::UrlOptions;
use crate::verifying::Ledger;
use plimsoll_lane::{Lane, LaneKind, Stopped};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_plan::{FilesetId, Layout, OpKind, WorkDirSpec, show_duration};
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of servers; each server takes eight bytes.
const MAX_SERVERS: u32 = 1 << 20;

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "null",
    form: "null:?latency=TIME",
    storage: FileStorage::None,
    is_virtual: false,
    takes_events: false,
    row_names: no_rows,
};

/// Completes every operation with success, at once or after a fixed latency; may include one stall.
///
/// Files have the size that the workload planned, so that a sequential read reaches an end.
pub(crate) struct Null {
    latency: Nanos,
    servers: Option<ServerQueue>,
    stall: Option<ServiceOutage>,
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
        // A worker that panicked has left no partial change in the heap.
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
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

impl Null {
    fn parse(url: &str) -> Result<Self, TargetError> {
        let mut options = UrlOptions::parse(SCHEME.name, url)?;
        let latency = options.duration("latency")?.unwrap_or_default();
        let servers = options.count("servers", MAX_SERVERS)?;
        let length = options.duration("stall")?;
        let after = options.duration("stall_after")?;
        options
            .finish("latency=DURATION, servers=NUMBER, stall=DURATION or stall_after=DURATION")?;
        let refused = |reason: &str| Err(TargetError::of(SCHEME.name, reason));
        if length.is_none() && after.is_some() {
            return refused(
                "`stall_after` is the beginning of a stall: give its length too, stall=1s",
            );
        }
        if latency.is_zero() && length.is_some() {
            return refused(
                "operations that take no time cannot be stalled: give a latency too, such as \
                 latency=1ms&stall=1s&stall_after=5s",
            );
        }
        if latency.is_zero() && servers.is_some() {
            return refused(
                "servers that take no time sustain any load: give a latency too, such as \
                 latency=1ms&servers=8",
            );
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
        })
    }
}

impl Target for Null {
    type Session = NullSession;
    type Verifying = Self;

    /// Stores no contents, so there is nothing to verify.
    fn verifying(self, _: Arc<Ledger>) -> Self {
        self
    }

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
        if self.latency == 0 {
            LaneKind::Blocking
        } else {
            LaneKind::Reactor
        }
    }

    fn keeps_files(&self) -> bool {
        false
    }

    fn can_be_virtual(&self) -> bool {
        // Without a latency, virtual time would never advance.
        self.latency > 0
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
    #[inline(always)]
    async fn answer(&self) -> Result<(), OpError> {
        if self.latency > 0 {
            let done_at = self.done_at(self.lane.now());
            self.lane.uncancellable_sleep_until(done_at).await;
        }
        Ok(())
    }

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

/// An open file: only its planned size.
pub(crate) struct NullHandle {
    size: u64,
}

impl NullHandle {
    /// Bytes of the file from `offset` on, at most `len`.
    #[inline(always)]
    fn available(&self, offset: u64, len: u64) -> u64 {
        self.size.saturating_sub(offset).min(len)
    }
}

impl Session for NullSession {
    type Handle = NullHandle;

    #[inline]
    fn locate(&mut self, _: impl FnOnce(&mut Vec<u8>)) {}

    #[inline]
    fn locate_entry(&mut self, _: FilesetId, _: &Layout, _: FilesetEntry) {}

    #[inline]
    fn is_immediate(&self) -> bool {
        self.latency == 0
    }

    #[inline]
    fn reserve(&mut self, _: u64) -> Result<(), OpError> {
        Ok(())
    }

    #[inline(always)]
    async fn check_parent(&mut self) -> Result<(), OpError> {
        Ok(())
    }

    #[inline(always)]
    async fn open(&mut self, how: OpenHow) -> Result<NullHandle, OpError> {
        self.answer().await?;
        Ok(NullHandle {
            size: how.planned_size,
        })
    }

    #[inline(always)]
    async fn close(&mut self, _: NullHandle) -> Result<(), OpError> {
        self.answer().await
    }

    #[inline(always)]
    async fn read(&mut self, handle: &NullHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        self.answer().await?;
        Ok(handle.available(offset, len))
    }

    #[inline(always)]
    async fn write(&mut self, _: &NullHandle, _: u64, _: u64) -> Result<(), OpError> {
        self.answer().await
    }

    #[inline]
    async fn read_bytes(
        &mut self,
        handle: &NullHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        self.answer().await?;
        Ok(handle.available(offset, bytes.len() as u64))
    }

    #[inline]
    async fn write_bytes(&mut self, _: &NullHandle, _: u64, _: &[u8]) -> Result<(), OpError> {
        self.answer().await
    }

    async fn append(&mut self, _: &NullHandle, _: u64) -> Result<(), OpError> {
        self.answer().await
    }

    async fn fsync(&mut self, _: &NullHandle) -> Result<(), OpError> {
        self.answer().await
    }

    async fn stat_handle(&mut self, handle: &NullHandle) -> Result<Attributes, OpError> {
        self.answer().await?;
        Ok(Attributes {
            kind: EntryKind::File,
            size: handle.size,
        })
    }

    #[inline(always)]
    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.answer().await?;
        Ok(Attributes {
            kind: EntryKind::File,
            size: 0,
        })
    }

    #[inline(always)]
    async fn unlink(&mut self) -> Result<(), OpError> {
        self.answer().await
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        self.answer().await
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.answer().await
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.answer().await?;
        Ok(ListTotals::default())
    }

    #[inline]
    fn set_destination(&mut self) {}

    async fn rename(&mut self) -> Result<(), OpError> {
        self.answer().await
    }

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        if operation != NameOperation::PrepareLink {
            self.answer().await?;
        }
        Ok(0)
    }

    async fn on_file(
        &mut self,
        _: &NullHandle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let moved = match operation {
            FileOperation::DropCache => return Ok(0),
            FileOperation::Modify { len, .. } => len.saturating_mul(2),
            FileOperation::WriteStable { len, .. }
            | FileOperation::MapRead { len, .. }
            | FileOperation::MapWrite { len, .. } => len,
            _ => 0,
        };
        self.answer().await?;
        Ok(moved)
    }

    async fn copy(
        &mut self,
        from: &NullHandle,
        _: &NullHandle,
        (offset, len): (u64, u64),
    ) -> Result<u64, OpError> {
        self.answer().await?;
        Ok(from.available(offset, len))
    }

    fn aio_write(&mut self, _: &NullHandle, _: u64, len: u64, tag: u32) -> Result<(), OpError> {
        let start = self.clock.now();
        self.queued.push(AioDone {
            tag,
            start,
            end: self.done_at(start),
            result: Ok(len),
        });
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.queued.pending()
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        self.queued.under_way()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.queued.take(&self.lane, count, done).await
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        Err(OpError(Errno::NOENT))
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        Err(OpError(Errno::NOENT))
    }

    async fn put(&mut self, _: &[u8]) -> Result<(), OpError> {
        Ok(())
    }

    async fn remove(&mut self, _: EntryKind) -> Result<(), OpError> {
        Ok(())
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
            assert!(text.contains("from 1 to 1048576"), "{bad}: {text}");
        }
        let text = reason("?latency=1ms&serves=1");
        assert!(text.contains("unknown option `serves`"), "{text}");
        let target = Null::parse("null:?latency=1ms&servers=8").ok().unwrap();
        assert_eq!(target.describe(), "null, 8 servers, latency 1000 us");
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
