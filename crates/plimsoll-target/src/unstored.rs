//! Sessions of the targets `null` and `sim`, which store no files: a file has the size that the workload planned, and
//! every operation is answered as if the file existed.

use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session::Session;
use crate::session_types::{AioDone, Attributes, EntryKind, FilesetEntry, ListTotals, OpenHow};
use plimsoll_lane::Stopped;
use plimsoll_measure::Nanos;
use plimsoll_plan::{FilesetId, Layout};
use plimsoll_sim::OperationClass;
use plimsoll_sim::OperationClass::{
    Commit, DataRead, DataWrite, MetadataChange, MetadataRead, Open,
};
use rustix::io::Errno;
use std::future::Future;

/// A step of an operation in a simulated system: class of operation, place, offset in bytes, and number of bytes read
/// or written.
pub type Step<P> = (OperationClass, P, u64, u64);

/// The part of a session that differs between the targets `null` and `sim`: when an operation completes, and with which
/// error.
pub trait Answers {
    /// Value of [`Session::HAS_FAST_PATH`] of the session.
    const HAS_FAST_PATH: bool;

    /// The properties of a file or name on which the completion depends: for `sim`, the numbers of file and directory.
    type Place: Copy;

    fn locate_path(&mut self, push: impl FnOnce(&mut Vec<u8>));

    fn locate_in_fileset(&mut self, fileset: FilesetId, layout: &Layout, entry: FilesetEntry);

    /// The place of the name that the last `locate` call located.
    fn located(&self) -> Self::Place;

    /// Whether every operation completes in its call, as on a null target without latency.
    fn answers_at_once(&self) -> bool;

    /// Waits until all steps of an operation have completed; returns the operation's error.
    fn answer(&self, steps: &[Step<Self::Place>]) -> impl Future<Output = Result<(), OpError>>;

    /// Queues an asynchronous write of `len` bytes at `offset`; `tag` identifies the write in [`Self::take`].
    fn queue(&mut self, place: Self::Place, offset: u64, len: u64, tag: u32);

    /// Number of queued writes, completed or not, that [`Self::take`] has not taken; implements
    /// [`Session::aio_pending`].
    fn queued(&self) -> usize;

    /// Waits for completed writes and takes the completed writes; implements [`Session::aio_take`].
    fn take(
        &mut self,
        count: usize,
        done: &mut Vec<AioDone>,
    ) -> impl Future<Output = Result<(), Stopped>>;

    /// Tag and queueing time of each queued write that has not completed; implements [`Session::aio_abandon`].
    fn under_way(&self) -> Vec<(u32, Nanos)>;
}

/// An open file of a target that stores no files: only its place and its planned size.
pub struct UnstoredFile<P> {
    place: P,
    size: u64,
}

impl<P: Copy> UnstoredFile<P> {
    /// Number of bytes that a read of `len` bytes at `offset` returns: fewer than `len` at the end of the file.
    #[inline(always)]
    fn available(&self, offset: u64, len: u64) -> u64 {
        self.size.saturating_sub(offset).min(len)
    }
}

fn file_of(size: u64) -> Attributes {
    Attributes {
        kind: EntryKind::File,
        size,
        changed_ns: None,
    }
}

impl<A: Answers> Session for A {
    type Handle = UnstoredFile<A::Place>;

    const HAS_FAST_PATH: bool = A::HAS_FAST_PATH;

    #[inline]
    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.locate_path(push);
    }

    #[inline]
    fn locate_entry(&mut self, fileset: FilesetId, layout: &Layout, entry: FilesetEntry) {
        self.locate_in_fileset(fileset, layout, entry);
    }

    #[inline]
    fn is_immediate(&self) -> bool {
        self.answers_at_once()
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
    async fn open(&mut self, how: OpenHow) -> Result<Self::Handle, OpError> {
        let class = if how.create { MetadataChange } else { Open };
        let place = self.located();
        self.answer(&[(class, place, 0, 0)]).await?;
        Ok(UnstoredFile {
            place,
            size: how.planned_size,
        })
    }

    #[inline(always)]
    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        self.answer(&[(Open, handle.place, 0, 0)]).await
    }

    #[inline(always)]
    async fn read(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError> {
        let len = handle.available(offset, len);
        self.answer(&[(DataRead, handle.place, offset, len)])
            .await?;
        Ok(len)
    }

    #[inline(always)]
    async fn write(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        self.answer(&[(DataWrite, handle.place, offset, len)]).await
    }

    #[inline]
    async fn read_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        self.read(handle, offset, bytes.len() as u64).await
    }

    #[inline]
    async fn write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        self.write(handle, offset, bytes.len() as u64).await
    }

    async fn append(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError> {
        self.write(handle, handle.size, len).await
    }

    async fn fsync(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        self.answer(&[(Commit, handle.place, 0, 0)]).await
    }

    async fn stat_handle(&mut self, handle: &Self::Handle) -> Result<Attributes, OpError> {
        self.answer(&[(MetadataRead, handle.place, 0, 0)]).await?;
        Ok(file_of(handle.size))
    }

    #[inline(always)]
    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.answer(&[(MetadataRead, self.located(), 0, 0)]).await?;
        Ok(file_of(0))
    }

    #[inline(always)]
    async fn unlink(&mut self) -> Result<(), OpError> {
        self.answer(&[(MetadataChange, self.located(), 0, 0)]).await
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        self.unlink().await
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.unlink().await
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.stat().await?;
        Ok(ListTotals::default())
    }

    #[inline]
    fn set_destination(&mut self) {}

    async fn rename(&mut self) -> Result<(), OpError> {
        self.unlink().await
    }

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        match operation {
            NameOperation::PrepareLink => {}
            NameOperation::Chmod(_) => self.unlink().await?,
            _ => drop(self.stat().await?),
        }
        Ok(0)
    }

    async fn on_file(
        &mut self,
        handle: &Self::Handle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let place = handle.place;
        let commit = (Commit, place, 0, 0);
        match operation {
            FileOperation::DropCache => Ok(0),
            FileOperation::FlushData => self.answer(&[commit]).await.map(|()| 0),
            FileOperation::Truncate(_) | FileOperation::Lock { .. } => {
                let change = (MetadataChange, place, 0, 0);
                self.answer(&[change]).await.map(|()| 0)
            }
            FileOperation::WriteStable { offset, len } => {
                let write = (DataWrite, place, offset.unwrap_or(handle.size), len);
                self.answer(&[write, commit]).await.map(|()| len)
            }
            FileOperation::Modify { offset, len } => {
                let steps = [DataRead, DataWrite].map(|class| (class, place, offset, len));
                self.answer(&steps).await.map(|()| len.saturating_mul(2))
            }
            FileOperation::MapRead { offset, len } => {
                let read = (DataRead, place, offset, len);
                self.answer(&[read]).await.map(|()| len)
            }
            FileOperation::MapWrite { offset, len, flush } => {
                let steps = [(DataWrite, place, offset, len), commit];
                let steps = &steps[..1 + usize::from(flush)];
                self.answer(steps).await.map(|()| len)
            }
            _ => Err(OpError(Errno::OPNOTSUPP)),
        }
    }

    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        (offset, len): (u64, u64),
    ) -> Result<u64, OpError> {
        let len = from.available(offset, len);
        let read = (DataRead, from.place, offset, len);
        let write = (DataWrite, to.place, offset, len);
        self.answer(&[read, write]).await?;
        Ok(len)
    }

    fn aio_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        self.queue(handle.place, offset, len, tag);
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.queued()
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        self.under_way()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.take(count, done).await
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
