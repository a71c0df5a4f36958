//! A client of a simulated system.

use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session::Session;
use crate::session_types::{
    AioDone, Attributes, EntryKind, FilesetEntry, ListTotals, OpenHow, SessionSpec,
};
use crate::sim::lane_simulation::{InSystem, LaneSimulation};
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{InFlight, Nanos};
use plimsoll_plan::hash::{FNV1A_BASIS, fnv1a};
use plimsoll_plan::{FilesetId, Layout};
use plimsoll_sim::OperationClass::{
    Commit, DataRead, DataWrite, MetadataChange, MetadataRead, Open,
};
use plimsoll_sim::{Operation, OperationClass};
use rustix::io::Errno;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// A session on a simulated system. Files have the sizes that the workload planned.
pub(crate) struct SimSession {
    lane: Lane,
    simulation: Rc<LaneSimulation>,
    client: u32,
    /// The worker's current operation.
    in_flight: Arc<InFlight>,
    /// Path of a located name outside all filesets; a hash of the path serves as file number.
    path: Vec<u8>,
    /// Numbers of the located name and of its directory.
    file: u64,
    directory: u64,
    /// Queued writes that the worker has not taken yet, in queue order.
    queued: Vec<QueuedWrite>,
}

/// A queued write that the worker has not taken yet.
struct QueuedWrite {
    tag: u32,
    start: Nanos,
    bytes: u64,
    in_system: InSystem,
}

/// An open file.
pub(crate) struct SimHandle {
    file: u64,
    directory: u64,
    size: u64,
}

impl SimSession {
    pub(super) fn new(lane: Lane, simulation: Rc<LaneSimulation>, spec: &SessionSpec) -> Self {
        Self {
            lane,
            simulation,
            client: spec.process as u32,
            in_flight: spec.in_flight.clone(),
            path: Vec::new(),
            file: 0,
            directory: 0,
            queued: Vec::new(),
        }
    }

    fn submit(
        &self,
        class: OperationClass,
        handle: &SimHandle,
        offset: u64,
        bytes: u64,
    ) -> InSystem {
        let operation = Operation {
            class,
            row: self.in_flight.row(),
            client: self.client,
            file: handle.file,
            directory: handle.directory,
            offset,
            bytes,
        };
        self.simulation
            .submit(self.lane.now(), operation, self.lane.current_task())
    }

    async fn perform(
        &self,
        class: OperationClass,
        handle: &SimHandle,
        offset: u64,
        bytes: u64,
    ) -> Result<(), OpError> {
        match self.submit(class, handle, offset, bytes).await {
            (_, true) => Ok(()),
            (_, false) => Err(OpError(Errno::IO)),
        }
    }

    /// Performs an operation of this class on the located name.
    async fn on_located(&self, class: OperationClass) -> Result<(), OpError> {
        self.perform(class, &self.handle(0), 0, 0).await
    }

    fn handle(&self, size: u64) -> SimHandle {
        SimHandle {
            file: self.file,
            directory: self.directory,
            size,
        }
    }

    /// Bytes of a file from `offset` on, at most `len`.
    fn available(handle: &SimHandle, offset: u64, len: u64) -> u64 {
        handle.size.saturating_sub(offset).min(len)
    }
}

/// The number of a path and the number of its directory: FNV-1a hashes of the bytes, the same on every machine.
fn numbers(path: &[u8]) -> (u64, u64) {
    let (mut hash, mut directory) = (FNV1A_BASIS, 0);
    for &byte in path {
        if byte == b'/' {
            directory = hash;
        }
        hash = fnv1a(hash, byte);
    }
    (hash, directory)
}

impl Session for SimSession {
    type Handle = SimHandle;

    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.path.clear();
        push(&mut self.path);
        (self.file, self.directory) = numbers(&self.path);
    }

    #[inline]
    fn locate_entry(&mut self, fileset: FilesetId, layout: &Layout, entry: FilesetEntry) {
        let number =
            |kind: u64, number: u32| kind << 62 | u64::from(fileset.0) << 32 | u64::from(number);
        (self.file, self.directory) = match entry {
            FilesetEntry::File(file) => (number(0, file.0), number(1, layout.dir_of(file).0)),
            FilesetEntry::Dir(dir) => (number(1, dir.0), number(1, dir.0)),
            FilesetEntry::LeafDir(dir) => (number(2, dir), number(2, dir)),
        };
    }

    fn reserve(&mut self, _: u64) -> Result<(), OpError> {
        Ok(())
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        Ok(())
    }

    async fn open(&mut self, how: OpenHow) -> Result<SimHandle, OpError> {
        let class = if how.create { MetadataChange } else { Open };
        self.on_located(class).await?;
        Ok(self.handle(how.planned_size))
    }

    async fn close(&mut self, handle: SimHandle) -> Result<(), OpError> {
        self.perform(Open, &handle, 0, 0).await
    }

    async fn read(&mut self, handle: &SimHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        let len = Self::available(handle, offset, len);
        self.perform(DataRead, handle, offset, len)
            .await
            .map(|()| len)
    }

    async fn write(&mut self, handle: &SimHandle, offset: u64, len: u64) -> Result<(), OpError> {
        self.perform(DataWrite, handle, offset, len).await
    }

    async fn read_bytes(
        &mut self,
        handle: &SimHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        self.read(handle, offset, bytes.len() as u64).await
    }

    async fn write_bytes(
        &mut self,
        handle: &SimHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        self.write(handle, offset, bytes.len() as u64).await
    }

    async fn append(&mut self, handle: &SimHandle, len: u64) -> Result<(), OpError> {
        self.write(handle, handle.size, len).await
    }

    async fn fsync(&mut self, handle: &SimHandle) -> Result<(), OpError> {
        self.perform(Commit, handle, 0, 0).await
    }

    async fn stat_handle(&mut self, handle: &SimHandle) -> Result<Attributes, OpError> {
        self.perform(MetadataRead, handle, 0, 0).await?;
        Ok(Attributes {
            kind: EntryKind::File,
            size: handle.size,
        })
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.on_located(MetadataRead).await?;
        Ok(Attributes {
            kind: EntryKind::File,
            size: 0,
        })
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        self.on_located(MetadataChange).await
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        self.on_located(MetadataChange).await
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.on_located(MetadataChange).await
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.on_located(MetadataRead).await?;
        Ok(ListTotals::default())
    }

    fn set_destination(&mut self) {}

    async fn rename(&mut self) -> Result<(), OpError> {
        self.on_located(MetadataChange).await
    }

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        match operation {
            NameOperation::PrepareLink => {}
            NameOperation::Chmod(_) => self.on_located(MetadataChange).await?,
            _ => self.on_located(MetadataRead).await?,
        }
        Ok(0)
    }

    async fn on_file(
        &mut self,
        handle: &SimHandle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let at = |class, offset, len| self.perform(class, handle, offset, len);
        match operation {
            FileOperation::DropCache => Ok(0),
            FileOperation::Truncate(_) | FileOperation::Lock { .. } => {
                at(MetadataChange, 0, 0).await.map(|()| 0)
            }
            FileOperation::WriteStable { offset, len } => {
                at(DataWrite, offset.unwrap_or(handle.size), len).await?;
                at(Commit, 0, 0).await.map(|()| len)
            }
            FileOperation::Modify { offset, len } => {
                at(DataRead, offset, len).await?;
                at(DataWrite, offset, len).await?;
                Ok(len.saturating_mul(2))
            }
            FileOperation::MapRead { offset, len } => at(DataRead, offset, len).await.map(|()| len),
            FileOperation::MapWrite { offset, len, flush } => {
                at(DataWrite, offset, len).await?;
                if flush {
                    at(Commit, 0, 0).await?;
                }
                Ok(len)
            }
            // The system keeps no contents, so given bytes can neither be written nor returned.
            _ => Err(OpError(Errno::OPNOTSUPP)),
        }
    }

    async fn copy(
        &mut self,
        from: &SimHandle,
        to: &SimHandle,
        (offset, len): (u64, u64),
    ) -> Result<u64, OpError> {
        let len = self.read(from, offset, len).await?;
        self.perform(DataWrite, to, offset, len).await?;
        Ok(len)
    }

    fn aio_write(
        &mut self,
        handle: &SimHandle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        let in_system = self.submit(DataWrite, handle, offset, len);
        self.queued.push(QueuedWrite {
            tag,
            start: self.lane.now(),
            bytes: len,
            in_system,
        });
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.queued.len()
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        let in_flight = self
            .queued
            .iter()
            .filter(|write| write.in_system.ended().is_none());
        in_flight.map(|write| (write.tag, write.start)).collect()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        let (lane, queued) = (&self.lane, &mut self.queued);
        let waited = poll_fn(|_| {
            let ended = queued
                .iter()
                .filter(|write| write.in_system.ended().is_some())
                .count();
            match ended >= count.min(queued.len()) {
                true => Poll::Ready(Ok(())),
                false if lane.now() >= lane.deadline() => Poll::Ready(Err(Stopped)),
                false => Poll::Pending,
            }
        })
        .await;
        queued.retain(|write| {
            let Some((end, succeeded)) = write.in_system.ended() else {
                return true;
            };
            let result = if succeeded {
                Ok(write.bytes)
            } else {
                Err(OpError(Errno::IO))
            };
            done.push(AioDone {
                tag: write.tag,
                start: write.start,
                end,
                result,
            });
            false
        });
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
