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

/// Answers every operation with success, at once or after a fixed latency.
///
/// Files have the size the workload planned, so that reading one to its end ends.
pub(crate) struct Null {
    latency: Nanos,
}

impl Null {
    pub(crate) fn connect(rest: &str) -> Result<Self, TargetError> {
        let mut options = Options::parse("null", rest)?;
        let latency = options.duration("latency")?.unwrap_or_default();
        options.finish("latency=DURATION")?;
        Ok(Self {
            latency: latency.as_nanos() as Nanos,
        })
    }
}

impl Target for Null {
    type Session = NullSession;

    fn describe(&self) -> String {
        match self.latency {
            0 => "null".into(),
            n => format!("null, latency {} us", n as f64 / 1e3),
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
            queued: Vec::new(),
        })
    }
}

pub(crate) struct NullSession {
    lane: Lane,
    clock: Clock,
    latency: Nanos,
    queued: Vec<AioDone>,
}

impl NullSession {
    #[inline(always)]
    async fn answer(&self) {
        if self.latency > 0 {
            self.lane.timer(self.lane.now() + self.latency).await;
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
            end: start + self.latency,
            result: Ok(len),
        });
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.queued.len()
    }

    fn aio_abandon(&mut self) {}

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        // All take the same time, so they complete in the order they were queued.
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
