//! The target that does nothing, for measuring Plimsoll itself and for trying workloads out.

use crate::error::OpError;
use crate::registry::{Options, TargetError};
use crate::session::{
    AioDone, Attributes, EntryKind, Listed, OpenHow, Session, SessionSpec, Target,
};
use plimsoll_lane::{Lane, LaneKind, Stopped};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_plan::OpKind;
use rustix::io::Errno;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};

/// Most servers: each takes eight bytes.
const MOST_SERVERS: u32 = 1 << 20;

/// Answers every operation with success, at once or after a fixed latency.
///
/// Files have the size the workload planned, so that reading one to its end ends.
pub(crate) struct Null {
    latency: Nanos,
    servers: Option<Servers>,
}

/// Servers that take one operation at a time, in the order they come: as many operations as there
/// are servers are carried in each latency, and no more.
#[derive(Clone)]
struct Servers {
    count: u32,
    /// When each is free again.
    free_at: Arc<Mutex<BinaryHeap<Reverse<Nanos>>>>,
}

impl Servers {
    fn new(count: u32) -> Self {
        let free = (0..count).map(|_| Reverse(0)).collect();
        Self {
            count,
            free_at: Arc::new(Mutex::new(free)),
        }
    }

    /// When an operation that comes `now` and takes `latency` is done: the server that is free
    /// first takes it.
    fn done_at(&self, now: Nanos, latency: Nanos) -> Nanos {
        // A worker that panicked elsewhere has left whole times here.
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let first = free_at.pop().map_or(0, |Reverse(at)| at);
        let done = first.max(now) + latency;
        free_at.push(Reverse(done));
        done
    }
}

impl Null {
    pub(crate) fn connect(rest: &str) -> Result<Self, TargetError> {
        let mut options = Options::parse("null", rest)?;
        let latency = options.duration("latency")?.unwrap_or_default();
        let servers = options.count("servers", MOST_SERVERS)?;
        options.finish("latency=DURATION or servers=NUMBER")?;
        if servers.is_some() && latency.is_zero() {
            return Err(TargetError::Option {
                target: "null",
                reason: "servers that take no time carry any load: give a latency too, such as \
                         latency=1ms&servers=8"
                    .into(),
            });
        }
        Ok(Self {
            latency: latency.as_nanos() as Nanos,
            servers: servers.map(Servers::new),
        })
    }
}

impl Target for Null {
    type Session = NullSession;

    fn describe(&self) -> String {
        let latency = self.latency as f64 / 1e3;
        match (self.latency, &self.servers) {
            (0, _) => "null".into(),
            (_, None) => format!("null, latency {latency} us"),
            (_, Some(s)) => format!("null, {} servers, latency {latency} us", s.count),
        }
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
        // Without a latency time would stand still for ever.
        self.latency > 0
    }

    fn cannot(&self, _: OpKind) -> Option<&'static str> {
        None
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<NullSession, OpError> {
        Ok(NullSession {
            lane: lane.clone(),
            clock: spec.clock.clone(),
            latency: self.latency,
            servers: self.servers.clone(),
            queued: Vec::new(),
        })
    }
}

pub(crate) struct NullSession {
    lane: Lane,
    clock: Clock,
    latency: Nanos,
    servers: Option<Servers>,
    queued: Vec<AioDone>,
}

impl NullSession {
    #[inline(always)]
    async fn answer(&self) {
        if self.latency > 0 {
            self.lane.timer(self.done_at(self.lane.now())).await;
        }
    }

    /// When an operation that begins at `start` is answered.
    #[inline(always)]
    fn done_at(&self, start: Nanos) -> Nanos {
        match &self.servers {
            None => start + self.latency,
            Some(servers) => servers.done_at(start, self.latency),
        }
    }
}

/// An open file: only its planned size.
pub(crate) struct NullHandle {
    size: u64,
}

impl Session for NullSession {
    type Handle = NullHandle;

    #[inline]
    fn locate(&mut self, _: impl FnOnce(&mut Vec<u8>)) {}

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
        self.answer().await;
        Ok(NullHandle {
            size: how.planned_size,
        })
    }

    #[inline(always)]
    async fn close(&mut self, _: NullHandle) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    #[inline(always)]
    async fn read(&mut self, handle: &NullHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        self.answer().await;
        Ok(handle.size.saturating_sub(offset).min(len))
    }

    #[inline(always)]
    async fn write(&mut self, _: &NullHandle, _: u64, _: u64) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    #[inline]
    async fn read_bytes(
        &mut self,
        handle: &NullHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        self.answer().await;
        Ok(handle.size.saturating_sub(offset).min(bytes.len() as u64))
    }

    #[inline]
    async fn write_bytes(&mut self, _: &NullHandle, _: u64, _: &[u8]) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn append(&mut self, _: &NullHandle, _: u64) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn fsync(&mut self, _: &NullHandle) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn stat_handle(&mut self, handle: &NullHandle) -> Result<Attributes, OpError> {
        self.answer().await;
        Ok(Attributes {
            kind: EntryKind::File,
            size: handle.size,
        })
    }

    async fn drop_cache(&mut self, _: &NullHandle) -> Result<(), OpError> {
        Ok(())
    }

    #[inline(always)]
    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.answer().await;
        Ok(Attributes {
            kind: EntryKind::File,
            size: 0,
        })
    }

    #[inline(always)]
    async fn unlink(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn list(&mut self) -> Result<Listed, OpError> {
        self.answer().await;
        Ok(Listed::default())
    }

    #[inline]
    fn locate_second(&mut self, _: impl FnOnce(&mut Vec<u8>)) {}

    async fn check_second_parent(&mut self) -> Result<(), OpError> {
        Ok(())
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn stat_missing(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn access(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn chmod(&mut self, _: u32) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn statfs(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn pathconf(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn truncate(&mut self, _: &NullHandle, _: u64) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn lock(&mut self, _: &NullHandle, _: u64, _: u64) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn write_stable(
        &mut self,
        _: &NullHandle,
        _: Option<u64>,
        _: u64,
    ) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn modify(&mut self, _: &NullHandle, _: u64, len: u64) -> Result<u64, OpError> {
        self.answer().await;
        Ok(len.saturating_mul(2))
    }

    async fn copy(
        &mut self,
        from: &NullHandle,
        _: &NullHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        self.answer().await;
        Ok(from.size.saturating_sub(offset).min(len))
    }

    async fn map_read(&mut self, _: &NullHandle, _: u64, _: u64) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn map_write(&mut self, _: &NullHandle, _: u64, _: u64, _: bool) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn lookup(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn prepare_link(&mut self) -> Result<(), OpError> {
        Ok(())
    }

    async fn read_link(&mut self) -> Result<(), OpError> {
        self.answer().await;
        Ok(())
    }

    async fn list_plus(&mut self) -> Result<Listed, OpError> {
        self.answer().await;
        Ok(Listed::default())
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
        self.queued.len()
    }

    fn aio_abandon(&mut self) {}

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        // All take the same time from their begin, so they complete in the order they were queued.
        let mut waited = Ok(());
        if let Some(last) = self.queued[..count.min(self.queued.len())].last() {
            waited = self.lane.sleep_until(last.end).await;
        }
        let now = self.lane.now();
        let completed = self.queued.iter().take_while(|q| q.end <= now).count();
        done.extend(self.queued.drain(..completed));
        waited
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
        let servers = Servers::new(2);
        let done = [0, 0, 0, 1, 25, 100].map(|now| servers.done_at(now, 10));
        assert_eq!(done, [10, 10, 20, 20, 35, 110]);
    }

    #[test]
    fn servers_need_a_latency_and_a_number() {
        let reason = |rest: &str| match Null::connect(rest) {
            Err(e) => e.to_string(),
            Ok(_) => String::new(),
        };
        assert!(reason("?servers=8").contains("give a latency too"));
        for bad in ["0", "x", "-1", "1048577", ""] {
            let text = reason(&format!("?latency=1ms&servers={bad}"));
            assert!(text.contains("from 1 to 1048576"), "{bad}: {text}");
        }
        let text = reason("?latency=1ms&serves=1");
        assert!(text.contains("unknown option `serves`"), "{text}");
        let target = Null::connect("?latency=1ms&servers=8").unwrap_or(Null {
            latency: 0,
            servers: None,
        });
        assert_eq!(target.describe(), "null, 8 servers, latency 1000 us");
    }
}
