//! The target traits: `Target` for connections and properties, `Session` for the operations of a
//! worker.

use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session_types::{
    AioDone, Attributes, DataSet, Descriptors, DirectIo, EntryKind, FilesetEntry, ListTotals,
    OpenHow, SessionSpec, Space, WritePlace,
};
use memmap2::MmapMut;
use plimsoll_lane::{Lane, LaneKind, Stopped};
use plimsoll_measure::{LongReplies, Nanos, NfsClients, SimulatedWindow};
use plimsoll_plan::{FileId, FilesetId, Layout, OpKind, Stream};
use rustix::io::Errno;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A connected target of load, such as a directory, a server or a simulated system.
///
/// Workers are compiled for the type of their target, to avoid virtual calls in timed operations; code that is not
/// timed uses a `dyn Target`.
pub trait Target: Send + Sync + 'static {
    /// The session type with which a worker executes its operations on the target.
    type Session: Session + 'static
    where
        Self: Sized;

    /// One line for the results: the target and its parameters.
    fn describe(&self) -> String;

    /// Kind of lane that the sessions need, such as a blocking lane if operations are system calls.
    fn lane_kind(&self) -> LaneKind;

    /// Number of lanes per rank that the URL requests; `None` for one lane per processor. Lanes that block have one
    /// worker each, whatever the URL requests.
    fn requested_lanes(&self) -> Option<usize> {
        None
    }

    /// Takes the figures of a simulated system for each measured window that has ended, with the number of the window.
    fn take_simulated_windows(&self) -> Vec<(u32, SimulatedWindow)> {
        vec![]
    }

    /// Whether files that a run creates exist until they are removed; if not, filesets need not be populated.
    fn keeps_files(&self) -> bool {
        true
    }

    /// Size in bytes of the block device that is the only file of the target; `None` for a target with directories.
    fn block_device_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether the target stores the bytes of writes.
    fn stores_data(&self) -> bool {
        self.keeps_files() || self.block_device_bytes().is_some()
    }

    /// Descriptors of this process that the sessions use; `ulimit -n` limits their number.
    fn descriptors(&self) -> Descriptors {
        Descriptors::default()
    }

    /// Whether the work directory exists; it may be missing only if the purpose is to inspect.
    fn exists(&self) -> bool {
        true
    }

    /// Whether the connection created the work directory.
    fn created_work_dir(&self) -> bool {
        false
    }

    /// Removes the work directory, which must be empty.
    ///
    /// # Errors
    /// The error of the operating system or of the server.
    fn remove_work_dir(&self) -> Result<(), OpError> {
        Ok(())
    }

    /// Checks that this user may write to the work directory.
    ///
    /// # Errors
    /// The reason why the directory is not writable.
    fn writable(&self) -> Result<(), OpError> {
        Ok(())
    }

    /// Free space and inodes; `None` for a target without a space limit.
    ///
    /// # Errors
    /// The error of the operating system or of the server.
    fn space(&self) -> Result<Option<Space>, OpError> {
        Ok(None)
    }

    /// Whether the work directory's file system supports direct I/O. Called before a run.
    fn direct_io(&self) -> DirectIo {
        DirectIo::Refused
    }

    /// The reason why dropping files from this machine's page cache cannot make later reads slower, such as files in
    /// memory; `None` if dropping may have an effect; asked before a run.
    fn uncacheable_reason(&self) -> Option<&'static str>;

    /// The reason why operations of a kind are not supported; `None` for supported operations; asked before a run.
    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        without_procedures(kind)
    }

    /// Advice to the user about the target and the files of the run, in sentences. Called before a run.
    fn remarks(&self, _data_set: &dyn Fn() -> DataSet) -> Vec<String> {
        vec![]
    }

    /// Explains an error of an operation; adds what the target knows of the cause.
    fn explain(&self, e: OpError) -> String {
        e.to_string()
    }

    /// Takes the counts of replies that were longer than the protocol allows. Replies to sessions are included once the
    /// lane of the session has ended.
    fn take_long_replies(&self) -> Vec<LongReplies> {
        vec![]
    }

    /// Takes the numbers of NFS clients, connections and sessions of a load phase whose lanes have ended; `None` for a
    /// target that is not NFS, and if the server never replied.
    fn take_nfs_clients(&self) -> Option<NfsClients> {
        None
    }

    /// Creates a session for a worker that runs on `lane`.
    ///
    /// # Errors
    /// The error of the operating system.
    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<Self::Session, OpError>
    where
        Self: Sized;
}

/// The reason why a target that makes system calls does not support operations of a kind.
pub(crate) fn without_procedures(kind: OpKind) -> Option<&'static str> {
    match kind {
        OpKind::Lookup | OpKind::ReadLink | OpKind::ListDirPlus => {
            Some("NFS procedures that no system call requests alone need an NFS target")
        }
        _ => None,
    }
}

/// Defines the properties of a [`Target`] as the properties of the target `inner`; without `all`, all properties except
/// the description, the kind of lane and the descriptors.
macro_rules! forward_properties {
    (all $self:ident => $inner:expr) => {
        fn describe(&$self) -> String { $inner.describe() }
        fn lane_kind(&$self) -> plimsoll_lane::LaneKind { $inner.lane_kind() }
        fn descriptors(&$self) -> crate::Descriptors { $inner.descriptors() }
        fn requested_lanes(&$self) -> Option<usize> { $inner.requested_lanes() }
        crate::session::forward_properties!($self => $inner);
    };
    ($self:ident => $inner:expr) => {
        fn take_simulated_windows(&$self) -> Vec<(u32, plimsoll_measure::SimulatedWindow)> {
            $inner.take_simulated_windows()
        }
        fn keeps_files(&$self) -> bool { $inner.keeps_files() }
        fn block_device_bytes(&$self) -> Option<u64> { $inner.block_device_bytes() }
        fn exists(&$self) -> bool { $inner.exists() }
        fn created_work_dir(&$self) -> bool { $inner.created_work_dir() }
        fn remove_work_dir(&$self) -> Result<(), OpError> { $inner.remove_work_dir() }
        fn writable(&$self) -> Result<(), OpError> { $inner.writable() }
        fn space(&$self) -> Result<Option<crate::Space>, OpError> { $inner.space() }
        fn direct_io(&$self) -> crate::DirectIo { $inner.direct_io() }
        fn uncacheable_reason(&$self) -> Option<&'static str> { $inner.uncacheable_reason() }
        fn unsupported_reason(&$self, kind: plimsoll_plan::OpKind) -> Option<&'static str> {
            $inner.unsupported_reason(kind)
        }
        fn remarks(&$self, data_set: &dyn Fn() -> crate::DataSet) -> Vec<String> {
            $inner.remarks(data_set)
        }
        fn explain(&$self, e: OpError) -> String { $inner.explain(e) }
        fn take_long_replies(&$self) -> Vec<plimsoll_measure::LongReplies> {
            $inner.take_long_replies()
        }
        fn take_nfs_clients(&$self) -> Option<plimsoll_measure::NfsClients> {
            $inner.take_nfs_clients()
        }
    };
}
pub(crate) use forward_properties;

/// The operations of one worker on a target. An operation of the worker's loop has a method of its own; rare
/// operations are variants of [`NameOperation`] and [`FileOperation`].
///
/// Operations on names use the name of the last [`Session::locate`], which is called before the
/// operation is timed. No operation follows a symbolic link.
#[allow(async_fn_in_trait)] // futures stay on their lane's thread and are never boxed
pub trait Session {
    /// An open file.
    type Handle;

    /// Whether workers have a fast path of calls of the functions with the suffix `_now`. A fast path takes seconds to
    /// compile, so only sessions whose operations take nanoseconds have a fast path.
    const HAS_FAST_PATH: bool = false;

    /// Sets the name of the next operation: `push` appends the path, relative to the work directory. A target without
    /// names never calls `push`.
    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>));

    /// Sets the name of the next operation to a directory's path followed by a name in the
    /// directory.
    ///
    /// Consecutive names are often in one directory. `dir` is a number that no other directory of the run has, so a
    /// target composes the path only when the directory changes.
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

    /// Sets the name of the next operation to an entry of a fileset, whose tree is `layout`. A target that identifies
    /// files by number composes no path.
    #[inline(always)]
    fn locate_entry(&mut self, fileset: FilesetId, layout: &Layout, entry: FilesetEntry) {
        match entry {
            FilesetEntry::File(file) => {
                let dir = layout.dir_of(file);
                self.locate_in(
                    u64::from(fileset.0) << 32 | u64::from(dir.0),
                    |path| layout.push_dir(dir, path),
                    |path| layout.push_file_name(file, path),
                );
            }
            FilesetEntry::Dir(dir) => self.locate(|path| layout.push_dir(dir, path)),
            FilesetEntry::LeafDir(dir) => self.locate(|path| layout.push_leaf_dir(dir, path)),
        }
    }

    /// Whether every operation on a file or a name completes in its call: all futures, except the future of
    /// [`Session::aio_take`], are ready when first polled. With [`Session::HAS_FAST_PATH`], a worker then calls
    /// functions with the suffix `_now`, where such functions exist.
    ///
    /// A target whose operations are system calls has `_now` functions of its own, always inlined: when a function
    /// returns after a system call, the kernel's use of the return stack makes the processor mispredict the return
    /// address. The misprediction of the return address takes a tenth of the time of the whole system call.
    #[inline]
    fn is_immediate(&self) -> bool {
        false
    }

    /// Allocates room for transfers of `len` bytes, so that no timed transfer allocates memory.
    fn reserve(&mut self, len: u64) -> Result<(), OpError>;

    /// Prepares the next `len` bytes to write, by composing or prefetching the bytes, before the time of the write
    /// begins. The contents of verified files depend on the `place` of the write.
    #[inline(always)]
    fn compose(&mut self, _place: WritePlace<'_, Self::Handle>, _len: u64) -> Result<(), OpError> {
        Ok(())
    }

    /// Declares that the next opened file is a file of a fileset that is being populated; the file gets its initial
    /// contents.
    fn begin_populating(&mut self, _fileset: FilesetId, _file: FileId) {}

    /// Checks the bytes read since the last call; called after the end time of the operation. Returns the number of
    /// reads with wrong contents.
    #[inline(always)]
    fn check_reads(&mut self) -> u64 {
        0
    }

    /// Derives the following content from `stream`, independently of earlier writes of this
    /// session.
    fn begin_content(&mut self, _stream: Stream) {}

    /// Checks that the directory of the located name is in the work directory and is reached without a symbolic link.
    /// Called before operations that change a directory: the operations themselves use the whole path, as an
    /// application does.
    async fn check_parent(&mut self) -> Result<(), OpError>;

    /// Opens the located file.
    ///
    /// # Errors
    /// The target's error, for this and every later operation.
    async fn open(&mut self, how: OpenHow) -> Result<Self::Handle, OpError>;

    /// Closes the file, after its asynchronous writes have completed.
    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError>;

    /// Whether the last close succeeded without a call to the target's server.
    fn was_close_local(&self) -> bool {
        false
    }

    /// Reads up to `len` bytes at `offset`; returns the number of bytes.
    async fn read(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError>;

    /// Writes `len` bytes at `offset`.
    async fn write(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError>;

    /// Reads into `bytes` from `offset`; returns the number of bytes.
    async fn read_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError>;

    /// Writes `bytes` at `offset`.
    async fn write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError>;

    /// Writes `len` bytes at the end of the file.
    async fn append(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError>;

    /// Flushes the file to stable storage.
    async fn fsync(&mut self, handle: &Self::Handle) -> Result<(), OpError>;

    /// Attributes of an open file.
    async fn stat_handle(&mut self, handle: &Self::Handle) -> Result<Attributes, OpError>;

    /// Attributes of the located name.
    async fn stat(&mut self) -> Result<Attributes, OpError>;

    /// Removes the located file.
    async fn unlink(&mut self) -> Result<(), OpError>;

    /// Creates the located directory.
    async fn make_dir(&mut self) -> Result<(), OpError>;

    /// Removes the located directory, which must be empty.
    async fn remove_dir(&mut self) -> Result<(), OpError>;

    /// Opens, reads and closes the located directory.
    async fn list(&mut self) -> Result<ListTotals, OpError>;

    /// Makes the located name the destination of the next operation on two names: the new name of [`Session::rename`],
    /// or the target of a symbolic link. The caller then locates the other name.
    fn set_destination(&mut self);

    /// Renames the located name to the destination.
    async fn rename(&mut self) -> Result<(), OpError>;

    /// Executes a rare operation on the located name, or on the file system of the work directory. Returns the
    /// number of bytes that the operation moved.
    ///
    /// # Errors
    /// The target's error; `EOPNOTSUPP` for an operation that the target lacks.
    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError>;

    /// Executes a rare operation on an open file; returns the number of bytes that the operation moved, 0 for an
    /// operation without data.
    ///
    /// # Errors
    /// The target's error; `EOPNOTSUPP` for an operation that the target lacks.
    async fn on_file(
        &mut self,
        handle: &Self::Handle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError>;

    /// Copies up to `len` bytes of `from` to the same offset of `to`, by a read and a write; `range` is (`offset`,
    /// `len`) in bytes. The result of a copy is the number of copied bytes: fewer than `len` only at the end of `from`.
    ///
    /// # Errors
    /// The target's error; `EOPNOTSUPP` if the target cannot copy.
    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        range: (u64, u64),
    ) -> Result<u64, OpError>;

    /// [`Session::check_parent`] of a target whose operations complete at once.
    #[inline(always)]
    fn check_parent_now(&mut self) -> Result<(), OpError> {
        now(self.check_parent())
    }

    /// [`Session::open`] of a target whose operations complete at once.
    #[inline(always)]
    fn open_now(&mut self, how: OpenHow) -> Result<Self::Handle, OpError> {
        now(self.open(how))
    }

    /// [`Session::close`] of a target whose operations complete at once.
    #[inline(always)]
    fn close_now(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        now(self.close(handle))
    }

    /// [`Session::read`] of a target whose operations complete at once.
    #[inline(always)]
    fn read_now(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError> {
        now(self.read(handle, offset, len))
    }

    /// [`Session::write`] of a target whose operations complete at once.
    #[inline(always)]
    fn write_now(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        now(self.write(handle, offset, len))
    }

    /// [`Session::read_bytes`] of a target whose operations complete at once.
    #[inline(always)]
    fn read_bytes_now(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        now(self.read_bytes(handle, offset, bytes))
    }

    /// [`Session::write_bytes`] of a target whose operations complete at once.
    #[inline(always)]
    fn write_bytes_now(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        now(self.write_bytes(handle, offset, bytes))
    }

    /// [`Session::fsync`] of a target whose operations complete at once.
    #[inline(always)]
    fn fsync_now(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        now(self.fsync(handle))
    }

    /// [`Session::stat`] of a target whose operations complete at once.
    #[inline(always)]
    fn stat_now(&mut self) -> Result<Attributes, OpError> {
        now(self.stat())
    }

    /// [`Session::unlink`] of a target whose operations complete at once.
    #[inline(always)]
    fn unlink_now(&mut self) -> Result<(), OpError> {
        now(self.unlink())
    }

    /// Queues a write of the first `len` bytes of `bytes`; [`AioDone`] returns `tag`.
    fn aio_write_bytes(
        &mut self,
        _handle: &Self::Handle,
        _offset: u64,
        _bytes: MmapMut,
        _len: usize,
        _tag: u32,
    ) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    /// Queues a write of the session's content; [`AioDone`] returns `tag`.
    fn aio_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError>;

    /// Number of queued writes that [`Session::aio_take`] has not yet taken.
    fn aio_pending(&self) -> usize;

    /// Waits until at least `count` queued writes have completed or the run stops, and appends all completed writes to
    /// `done`.
    fn aio_take(
        &mut self,
        count: usize,
        done: &mut Vec<AioDone>,
    ) -> impl Future<Output = Result<(), Stopped>>;

    /// Discards queued writes that have not begun, because the run has ended; returns tag and queueing time of every
    /// incomplete write, including the discarded writes.
    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)>;

    /// Names and kinds of the entries of the located directory, without `.` and `..`; of the measured operations, only
    /// a search of a directory tree uses the names.
    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError>;

    /// The whole contents of the located file, which is small; used outside measured operations only.
    async fn get(&mut self) -> Result<Vec<u8>, OpError>;

    /// Creates or replaces the located file by a small file with the contents `bytes`; used outside measured operations
    /// only.
    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError>;

    /// Removes the located file or empty directory, unless a component of the located path is a symbolic link; used
    /// outside measured operations only.
    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError>;
}

/// The output of a future that is ready when first polled.
#[inline(always)]
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the target states that its operations complete at once"),
    }
}
