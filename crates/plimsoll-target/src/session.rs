//! What a target can do.

use crate::error::OpError;
use crate::long_replies::LongReplies;
use crate::session_types::{
    AioDone, Attributes, DirectIo, EntryKind, ListTotals, OpenHow, SessionSpec, Space,
};
use plimsoll_lane::{Lane, LaneKind, Stopped};
use plimsoll_measure::Nanos;
use plimsoll_plan::{OpKind, Stream};
use rustix::io::Errno;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Something that load can be put on.
pub trait Target: Send + Sync + 'static {
    /// What a worker does its operations with.
    type Session: Session + 'static;

    /// One line for the results: what this is and its parameters.
    fn describe(&self) -> String;

    /// Kind of lane its sessions want in real time.
    fn lane_kind(&self) -> LaneKind;

    /// Whether its sessions take time only from their lane, so that it may be virtual.
    fn can_be_virtual(&self) -> bool {
        false
    }

    /// Whether files that are made are there afterwards; without it nothing is populated.
    fn keeps_files(&self) -> bool {
        true
    }

    /// Whether an open file takes a descriptor of this process, of which there is a limit.
    fn takes_descriptors(&self) -> bool {
        false
    }

    /// Whether the work directory exists; only a target that is looked at may say no.
    fn exists(&self) -> bool {
        true
    }

    /// Whether connecting made the work directory.
    fn created_work_dir(&self) -> bool {
        false
    }

    /// Removes the work directory, which must be empty.
    ///
    /// # Errors
    /// What the system says.
    fn remove_work_dir(&self) -> Result<(), OpError> {
        Ok(())
    }

    /// Whether the work directory can be written to.
    ///
    /// # Errors
    /// What stands against it.
    fn writable(&self) -> Result<(), OpError> {
        Ok(())
    }

    /// Free space and inodes; `None` where that has no meaning.
    ///
    /// # Errors
    /// What the system says.
    fn space(&self) -> Result<Option<Space>, OpError> {
        Ok(None)
    }

    /// What the work directory's file system says of direct I/O. Asked before a run.
    fn direct_io(&self) -> DirectIo {
        DirectIo::Refused
    }

    /// Why dropping files from this machine's page cache changes nothing; `None` if it may. Asked
    /// before a run.
    fn uncacheable_reason(&self) -> Option<&'static str>;

    /// Why operations of this kind cannot be done; `None` if they can. Asked before a run.
    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        match kind {
            OpKind::Lookup | OpKind::ReadLink | OpKind::ListDirPlus => Some(
                "procedures of NFS that no system call asks for alone need a target that speaks NFS",
            ),
            _ => None,
        }
    }

    /// What an error of an operation means, with what the target knows of how it came about.
    fn explain(&self, e: OpError) -> String {
        e.to_string()
    }

    /// Replies of a server that had more than its protocol says, since this was last called. Those
    /// to sessions count once their lane has ended.
    fn take_long_replies(&self) -> Vec<LongReplies> {
        vec![]
    }

    /// A session for a worker that runs on `lane`.
    ///
    /// # Errors
    /// What the system says.
    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<Self::Session, OpError>;
}

/// The operations of one worker on a target.
///
/// Operations on names work on the name given by the last [`Session::locate`], which is called
/// before the operation is timed. Nothing here follows a symbolic link.
#[allow(async_fn_in_trait)] // futures stay on their lane's thread and are never boxed
pub trait Session {
    /// An open file.
    type Handle;

    /// Chooses the name that the next operation works on: `push` appends the path, relative to
    /// the work directory. A target that needs no names never calls it.
    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>));

    /// Chooses likewise the name that `push_name` appends to the path of a directory.
    ///
    /// Names of one directory often follow each other. `dir` is a number that no other directory
    /// of the run has, so that a target need not have the path appended again that it has still.
    #[inline]
    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        let _ = dir;
        self.locate(|path| {
            push_dir(path);
            push_name(path);
        });
    }

    /// Whether every operation on a file or a name is over when its call returns: the futures of
    /// all of them, [`Session::aio_take`] apart, are ready when they are first polled. A worker
    /// then calls those that end in `_now` where there is one.
    ///
    /// A target whose operations are system calls has these as functions of its own that are
    /// always inlined. A function that returns after the system call inside it makes the
    /// processor guess where to, from a stack of return addresses that the kernel has used since:
    /// the wrong guess takes a tenth of the time of the whole call.
    #[inline]
    fn is_immediate(&self) -> bool {
        false
    }

    /// Makes room for transfers of `len` bytes, so that none has to be made while one is timed.
    fn reserve(&mut self, len: u64) -> Result<(), OpError>;

    /// Makes the bytes that the next write of `len` bytes takes, if they have to be made, or has
    /// them brought near the processor, so that they need not be while it is timed.
    fn compose(&mut self, _len: u64) -> Result<(), OpError> {
        Ok(())
    }

    /// Has what is written next follow from a stream, not from what this session wrote before.
    fn begin_content(&mut self, _stream: Stream) {}

    /// Makes sure that the directory of the located name lies in the work directory and is
    /// reached without a symbolic link. Called before operations that change a directory, which
    /// are plain calls on the whole path as an application's would be.
    async fn check_parent(&mut self) -> Result<(), OpError>;

    /// Opens the file.
    ///
    /// # Errors
    /// What the target says; so for every operation below.
    async fn open(&mut self, how: OpenHow) -> Result<Self::Handle, OpError>;

    /// Closes the file, after its asynchronous writes have completed.
    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError>;

    /// Reads up to `len` bytes at `offset`; returns how many there were.
    async fn read(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError>;

    /// Writes `len` bytes at `offset`.
    async fn write(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError>;

    /// Reads into `bytes` from `offset`; returns how many there were.
    async fn read_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError>;

    /// Writes these bytes at `offset`.
    async fn write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError>;

    /// Writes `len` bytes at the end.
    async fn append(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError>;

    /// Flushes the file to stable storage.
    async fn fsync(&mut self, handle: &Self::Handle) -> Result<(), OpError>;

    /// Attributes of an open file.
    async fn stat_handle(&mut self, handle: &Self::Handle) -> Result<Attributes, OpError>;

    /// Drops the file from the client's cache.
    async fn drop_cache(&mut self, handle: &Self::Handle) -> Result<(), OpError>;

    /// Attributes of the name.
    async fn stat(&mut self) -> Result<Attributes, OpError>;

    /// Removes the file.
    async fn unlink(&mut self) -> Result<(), OpError>;

    /// Makes the directory.
    async fn make_dir(&mut self) -> Result<(), OpError>;

    /// Removes the empty directory.
    async fn remove_dir(&mut self) -> Result<(), OpError>;

    /// Opens the directory, reads it to the end and closes it.
    async fn list(&mut self) -> Result<ListTotals, OpError>;

    /// Chooses a second name, for [`Session::rename`].
    fn locate_second(&mut self, push: impl FnOnce(&mut Vec<u8>));

    /// [`Session::check_parent`] of the second name.
    async fn check_second_parent(&mut self) -> Result<(), OpError>;

    /// Gives what has the located name the second name.
    async fn rename(&mut self) -> Result<(), OpError>;

    /// Finds that nothing has the located name.
    ///
    /// # Errors
    /// `EEXIST` if something has it.
    async fn stat_missing(&mut self) -> Result<(), OpError> {
        match self.stat().await {
            Err(OpError(Errno::NOENT)) => Ok(()),
            Err(e) => Err(e),
            Ok(_) => Err(OpError(Errno::EXIST)),
        }
    }

    /// Asks whether the name may be read and written.
    async fn access(&mut self) -> Result<(), OpError>;

    /// Sets the permissions of the name, which must not be a symbolic link; the lowest nine bits
    /// of `mode`.
    async fn chmod(&mut self, mode: u32) -> Result<(), OpError>;

    /// Asks for the space of the file system.
    async fn statfs(&mut self) -> Result<(), OpError>;

    /// Asks for the length that a name may have in the work directory.
    async fn pathconf(&mut self) -> Result<(), OpError>;

    /// Sets the length of an open file.
    async fn truncate(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError>;

    /// Locks `len` bytes at `offset` for writing, waiting while somebody else has them, and
    /// unlocks them. Locks belong to the handle, so that workers of one process keep each other
    /// out as those of several do.
    async fn lock(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError>;

    /// Writes `len` bytes at `offset`, or at the end without one; they are on stable storage when
    /// it returns.
    async fn write_stable(
        &mut self,
        handle: &Self::Handle,
        offset: Option<u64>,
        len: u64,
    ) -> Result<(), OpError>;

    /// Reads `len` bytes at `offset`, which must be there, changes some in each 4 KiB, and writes
    /// them to the same place. Returns the bytes that were read and those that were written,
    /// together.
    async fn modify(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError>;

    /// Reads up to `len` bytes at `offset` of one file and writes them at the same place of
    /// another. Returns how many there were.
    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError>;

    /// Maps `len` bytes at `offset`, which must be there, reads all of them and unmaps them.
    async fn map_read(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError>;

    /// Maps `len` bytes at `offset`, which must be there, writes all of them, flushes them to
    /// stable storage if asked, and unmaps them.
    async fn map_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        flush: bool,
    ) -> Result<(), OpError>;

    /// Looks the name up.
    async fn lookup(&mut self) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    /// Makes sure that a symbolic link to the second name has the name, before it is read: a
    /// target that can read links makes those that are missing.
    async fn prepare_link(&mut self) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    /// Reads the symbolic link that has the name.
    async fn read_link(&mut self) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    /// Reads the directory to its end, with the attributes of its entries.
    async fn list_plus(&mut self) -> Result<ListTotals, OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    /// [`Session::check_parent`] of a target that answers at once.
    #[inline(always)]
    fn check_parent_now(&mut self) -> Result<(), OpError> {
        now(self.check_parent())
    }

    /// [`Session::open`] of a target that answers at once.
    #[inline(always)]
    fn open_now(&mut self, how: OpenHow) -> Result<Self::Handle, OpError> {
        now(self.open(how))
    }

    /// [`Session::close`] of a target that answers at once.
    #[inline(always)]
    fn close_now(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        now(self.close(handle))
    }

    /// [`Session::read`] of a target that answers at once.
    #[inline(always)]
    fn read_now(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError> {
        now(self.read(handle, offset, len))
    }

    /// [`Session::write`] of a target that answers at once.
    #[inline(always)]
    fn write_now(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        now(self.write(handle, offset, len))
    }

    /// [`Session::read_bytes`] of a target that answers at once.
    #[inline(always)]
    fn read_bytes_now(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        now(self.read_bytes(handle, offset, bytes))
    }

    /// [`Session::write_bytes`] of a target that answers at once.
    #[inline(always)]
    fn write_bytes_now(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        now(self.write_bytes(handle, offset, bytes))
    }

    /// [`Session::fsync`] of a target that answers at once.
    #[inline(always)]
    fn fsync_now(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        now(self.fsync(handle))
    }

    /// [`Session::stat`] of a target that answers at once.
    #[inline(always)]
    fn stat_now(&mut self) -> Result<Attributes, OpError> {
        now(self.stat())
    }

    /// [`Session::unlink`] of a target that answers at once.
    #[inline(always)]
    fn unlink_now(&mut self) -> Result<(), OpError> {
        now(self.unlink())
    }

    /// As [`Session::compose`] for a write that is queued.
    fn aio_compose(&mut self, _len: u64) -> Result<(), OpError> {
        Ok(())
    }

    /// Queues a write; `tag` comes back in [`AioDone`].
    fn aio_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError>;

    /// Asynchronous writes that were queued and not yet taken by [`Session::aio_take`].
    fn aio_pending(&self) -> usize;

    /// Tag and begin of each that has not completed, once those that have were taken. Not for the
    /// hot path.
    fn aio_under_way(&self) -> Vec<(u32, Nanos)>;

    /// Waits until at least `count` queued writes have completed, and appends all that have to
    /// `done`; cut short when the run stops.
    fn aio_take(
        &mut self,
        count: usize,
        done: &mut Vec<AioDone>,
    ) -> impl Future<Output = Result<(), Stopped>>;

    /// Forgets queued writes that have not begun, because the run is over.
    fn aio_abandon(&mut self);

    /// Names and kinds of the directory's entries. Not for the hot path.
    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError>;

    /// Contents of a small file. Not for the hot path.
    async fn get(&mut self) -> Result<Vec<u8>, OpError>;

    /// Makes or replaces a small file. Not for the hot path.
    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError>;

    /// Removes a file or an empty directory, making sure that no component of its path is a
    /// symbolic link. Not for the hot path.
    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError>;
}

/// What a future gives that is ready when it is first polled.
#[inline(always)]
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the target says that it answers at once"),
    }
}
