//! The ring of a lane: submits the operations of its workers, and takes their completions.

use super::call::{Held, Registered, RingCall};
use super::file::{RingFile, completed};
use super::kernel::Kernel;
use super::lockable::LockableMemory;
use super::slots::{Look, Slots};
use crate::content::ContentPool;
use crate::session_types::RpcRows;
use io_uring::{IoUring, opcode, squeue, types};
use plimsoll_lane::{CompletionSource, Lane};
use plimsoll_measure::{Nanos, OpTimes};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Number of the entry by which a wakeup from another thread is watched.
const WAKEUP: u64 = u64::MAX;

/// Number of entries whose completions say nothing.
const IGNORED: u64 = u64::MAX - 1;

/// Entries that are queued at a time. They are submitted early (see [`PROMPT_DEPTH`]), so that a larger queue
/// would only lock memory.
const QUEUE_ENTRIES: u32 = 128;

/// Completions of wakeups, registrations and cancellations besides those of operations.
const SPARE_COMPLETIONS: u32 = 64;

/// Operations of a lane up to which each is submitted as soon as it is queued, unless the lane's turn ends now: the
/// device has little to do, and would be idle until the end of the turn.
const PROMPT_DEPTH: u32 = 64;

/// With more operations, queued entries that are submitted together: each submission costs processor time.
const SUBMIT_BATCH: usize = 4;

/// Files that are registered at a time; the others are named by their descriptors.
const MAX_REGISTERED_FILES: u32 = 4096;

/// Buffers that are registered at a time.
const MAX_REGISTERED_BUFFERS: u32 = 8192;

/// Threads of the kernel that execute operations which would block; without this, four per processor.
const KERNEL_THREADS: u32 = 64;

/// The flag of `io_uring_enter` with which it processes completions (`IORING_ENTER_GETEVENTS`).
const GET_EVENTS: u32 = 1;

/// The number by which a place in the table of files becomes empty.
static NO_FILE: i32 = -1;

/// The ring of a lane.
pub(super) struct Ring {
    lane: Lane,
    io: RefCell<IoUring>,
    slots: RefCell<Slots>,
    /// Operations that wait until fewer are in the kernel.
    backlog: RefCell<VecDeque<squeue::Entry>>,
    /// Entries for which the kernel's queue has no room now.
    unqueued: RefCell<VecDeque<squeue::Entry>>,
    /// Operations of workers that are queued for the kernel or in it.
    in_flight: Cell<u32>,
    /// Maximum of these.
    depth: u32,
    /// Whether entries are queued that the kernel has not taken.
    is_unsubmitted: Cell<bool>,
    wakeup: Arc<OwnedFd>,
    is_wakeup_watched: Cell<bool>,
    /// The last look at the completions.
    looked: Cell<Nanos>,
    /// Tasks whose operations completed beside the lane's own looks.
    woken: RefCell<Vec<u32>>,
    delays: Option<(RpcRows, u32)>,
    /// Places in the tables of files and buffers that are not used.
    free_files: RefCell<Vec<u32>>,
    free_buffers: RefCell<Vec<u16>>,
    lockable: Option<Arc<LockableMemory>>,
    /// The contents of writes, if they were registered, or `None` inside if they could not be.
    content: RefCell<Option<(ContentPool, Option<Registered>)>>,
}

/// How a ring is made.
pub(super) struct RingSpec<'a> {
    pub(super) kernel: Kernel,
    pub(super) depth: u32,
    /// Memory that may be registered; `None` for a ring without registered files and buffers.
    pub(super) lockable: Option<Arc<LockableMemory>>,
    /// The row in which the delays of completions are recorded.
    pub(super) delays: Option<(RpcRows, u32)>,
    pub(super) lane: &'a Lane,
}

impl Ring {
    pub(super) fn new(spec: &RingSpec<'_>) -> io::Result<Self> {
        let completions = (spec.depth + SPARE_COMPLETIONS).next_power_of_two();
        let completions = completions.max(QUEUE_ENTRIES);
        let io = spec.kernel.setup.build(QUEUE_ENTRIES, 2 * completions)?;
        let submitter = io.submitter();
        // A kernel without this call, or a lower limit, leaves the threads as they are.
        let _ = submitter.register_iowq_max_workers(&mut [KERNEL_THREADS, 0]);
        let (mut free_files, mut free_buffers) = (vec![], vec![]);
        if spec.kernel.registers && spec.lockable.is_some() {
            // Without registered files and buffers everything works, at some cost.
            if submitter
                .register_files_sparse(MAX_REGISTERED_FILES)
                .is_ok()
            {
                free_files = (0..MAX_REGISTERED_FILES).rev().collect();
            }
            if submitter
                .register_buffers_sparse(MAX_REGISTERED_BUFFERS)
                .is_ok()
            {
                free_buffers = (0..MAX_REGISTERED_BUFFERS as u16).rev().collect();
            }
        }
        Ok(Self {
            lane: spec.lane.clone(),
            io: RefCell::new(io),
            slots: RefCell::default(),
            backlog: RefCell::default(),
            unqueued: RefCell::default(),
            in_flight: Cell::new(0),
            depth: spec.depth,
            is_unsubmitted: Cell::new(false),
            wakeup: spec.lane.wakeup_counter()?,
            is_wakeup_watched: Cell::new(false),
            looked: Cell::new(0),
            woken: RefCell::default(),
            delays: spec.delays.clone(),
            free_files: RefCell::new(free_files),
            free_buffers: RefCell::new(free_buffers),
            lockable: spec.lockable.clone(),
            content: RefCell::default(),
        })
    }

    /// Starts an operation of the current task.
    #[inline]
    pub(super) fn start(&self, call: RingCall) -> Operation<'_> {
        let (held, entry) = call.into_parts();
        let task = Some(self.lane.current_task());
        let submitted = self.submission_time();
        let number = self.slots.borrow_mut().add(held, task, submitted);
        let entry = entry.user_data(u64::from(number));
        if self.in_flight.get() < self.depth {
            self.in_flight.set(self.in_flight.get() + 1);
            self.push(&entry);
            self.submit_early();
        } else {
            self.backlog.borrow_mut().push_back(entry);
        }
        Operation {
            ring: self,
            number: Some(number),
        }
    }

    /// The time of a submission, if delays are recorded.
    #[inline]
    fn submission_time(&self) -> Nanos {
        match self.delays {
            Some(_) => self.lane.now(),
            None => 0,
        }
    }

    /// Queues an entry for the kernel.
    #[inline]
    fn push(&self, entry: &squeue::Entry) {
        let mut io = self.io.borrow_mut();
        self.is_unsubmitted.set(true);
        let mut unqueued = self.unqueued.borrow_mut();
        let mut is_queued = unqueued.is_empty() && queue(&mut io, entry);
        if !is_queued && unqueued.is_empty() {
            // All places are taken: what is queued is submitted early. An error repeats at the next look,
            // which heeds it.
            let _ = io.submit();
            is_queued = queue(&mut io, entry);
        }
        if !is_queued {
            // The kernel takes nothing before completions are taken, or for want of memory.
            unqueued.push_back(entry.clone());
        }
    }

    /// Submits what is queued before the end of the lane's turn, if that is worth a system call of its own.
    #[inline]
    fn submit_early(&self) {
        if !self.lane.has_ready_tasks() {
            return;
        }
        let is_prompt = self.in_flight.get() <= PROMPT_DEPTH;
        let enough = if is_prompt { 1 } else { SUBMIT_BATCH };
        let queued = self.io.borrow_mut().submission().len();
        if queued >= enough {
            self.submit();
        }
    }

    /// Submits what is queued. What is not taken now is submitted at the end of the turn.
    #[inline]
    fn submit(&self) {
        let mut io = self.io.borrow_mut();
        let _ = io.submit();
        let is_all = io.submission().is_empty() && self.unqueued.borrow().is_empty();
        self.is_unsubmitted.set(!is_all);
    }

    /// Registers a file, which is done before whatever is started next.
    pub(super) fn register_file(&self, file: &Arc<RingFile>) {
        let Some(index) = self.free_files.borrow_mut().pop() else {
            return;
        };
        let descriptor = Box::new(file.fd.as_raw_fd());
        let update = opcode::FilesUpdate::new(&raw const *descriptor, 1).offset(index as i32);
        let held = Held::Registration {
            file: file.clone(),
            _descriptor: descriptor,
            index,
        };
        let number = self.slots.borrow_mut().add(held, None, 0);
        self.push(&update.build().user_data(u64::from(number)));
    }

    /// Removes a file from the table, so that closing it releases it.
    pub(super) fn unregister_file(&self, file: &RingFile) {
        if let Some(index) = file.index() {
            file.set_index(None);
            let update = opcode::FilesUpdate::new(&raw const NO_FILE, 1).offset(index as i32);
            self.push(&update.build().user_data(IGNORED));
            self.free_files.borrow_mut().push(index);
        }
    }

    /// Registers memory; `None` if there is no place, or the system refuses to lock it.
    pub(super) fn register_memory(&self, memory: *mut u8, len: usize) -> Option<u16> {
        let lockable = self.lockable.as_ref()?;
        let index = self.free_buffers.borrow_mut().pop()?;
        if !lockable.take(len) {
            self.free_buffers.borrow_mut().push(index);
            return None;
        }
        let piece = libc::iovec {
            iov_base: memory.cast(),
            iov_len: len,
        };
        if self.update_buffer(index, piece).is_ok() {
            return Some(index);
        }
        lockable.give_back(len);
        self.free_buffers.borrow_mut().push(index);
        None
    }

    /// Sets a place of the table of buffers.
    fn update_buffer(&self, index: u16, piece: libc::iovec) -> io::Result<()> {
        let io = self.io.borrow();
        // SAFETY: the kernel keeps the pages themselves. An operation that names the memory by this index
        // also holds the memory, as long as it is mapped.
        unsafe {
            io.submitter()
                .register_buffers_update(u32::from(index), &[piece], None)
        }
    }

    /// Registers the bytes of a pool of contents, which the ring then keeps; once for all workers.
    pub(super) fn register_content(&self, pool: &ContentPool) -> Option<Registered> {
        let mut content = self.content.borrow_mut();
        let (_, registered) = content.get_or_insert_with(|| {
            let (begin, len) = (pool.bytes().as_ptr(), pool.bytes().len());
            let index = self.register_memory(begin.cast_mut(), len);
            let begin = begin as usize;
            let registered = index.map(|index| Registered { index, begin, len });
            (pool.clone(), registered)
        });
        *registered
    }

    /// Makes the place of registered memory free, and the pages once no operation uses them.
    pub(super) fn forget_memory(&self, registered: Registered) {
        let nothing = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // A place that cannot be emptied keeps its pages, and is not used again.
        if self.update_buffer(registered.index, nothing).is_ok() {
            self.free_buffers.borrow_mut().push(registered.index);
            if let Some(lockable) = &self.lockable {
                lockable.give_back(registered.len);
            }
        }
    }

    /// Whether completions are there that were not taken.
    fn has_completions(&self) -> bool {
        let mut io = self.io.borrow_mut();
        let queue = io.submission();
        let is_pending = queue.taskrun() || queue.cq_overflow();
        drop(queue);
        is_pending || !io.completion().is_empty()
    }

    /// Submits what is queued and processes completions; waits for the first as [`CompletionSource::turn`].
    fn enter(&self, timeout: Option<Duration>) -> io::Result<usize> {
        let mut io = self.io.borrow_mut();
        let mut unqueued = self.unqueued.borrow_mut();
        while unqueued.front().is_some_and(|entry| queue(&mut io, entry)) {
            unqueued.pop_front();
        }
        // The others need the room that this makes.
        let timeout = match unqueued.is_empty() {
            true => timeout,
            false => Some(Duration::ZERO),
        };
        let queued = io.submission().len() as u32;
        let submitter = io.submitter();
        let entered = match timeout {
            None => submitter.submit_and_wait(1),
            // SAFETY: the call gets no argument, and as many entries as are queued.
            Some(Duration::ZERO) => unsafe {
                submitter.enter::<libc::sigset_t>(queued, 0, GET_EVENTS, None)
            },
            Some(timeout) => {
                let timeout = types::Timespec::from(timeout);
                let arguments = types::SubmitArgs::new().timespec(&timeout);
                submitter.submit_with_args(1, &arguments)
            }
        };
        let is_all = io.submission().is_empty() && unqueued.is_empty();
        self.is_unsubmitted.set(!is_all);
        entered
    }

    /// Enters the kernel, and asserts that it could do what it was given.
    fn enter_and_check(&self, timeout: Option<Duration>) {
        match self.enter(timeout).map_err(|e| e.raw_os_error()) {
            Ok(_) => {}
            // Nothing completed in time, or the kernel is short of memory for a moment.
            Err(Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY | libc::ENOMEM)) => {}
            Err(e) => panic!("io_uring_enter failed with error {e:?}"),
        }
    }

    fn watch_wakeup(&self) {
        if !self.is_wakeup_watched.replace(true) {
            let counter = types::Fd(self.wakeup.as_raw_fd());
            let poll = opcode::PollAdd::new(counter, libc::POLLIN as u32);
            self.push(&poll.build().user_data(WAKEUP));
        }
    }

    /// Takes the completions that the kernel has reported; `waiting`: some were there before.
    fn take(&self, waiting: bool, ready: &mut Vec<u32>) {
        let look = Look {
            waiting_since: waiting.then(|| self.looked.get()),
            now: self.lane.now(),
        };
        self.looked.set(look.now);
        let (mut taken, mut is_woken) = (0, false);
        {
            let (mut io, mut slots) = (self.io.borrow_mut(), self.slots.borrow_mut());
            for completion in io.completion() {
                match completion.user_data() {
                    WAKEUP => is_woken = true,
                    IGNORED => {}
                    number => match slots.complete(number as u32, completion.result(), look) {
                        Ok(task) => {
                            taken += 1;
                            ready.push(task);
                        }
                        Err(held) => taken += self.orphan_completed(held, completion.result()),
                    },
                }
            }
        }
        if is_woken {
            self.is_wakeup_watched.set(false);
            // It does not wait, should nothing be there.
            let read = rustix::io::read(&*self.wakeup, &mut [0; 8]);
            debug_assert!(matches!(read, Ok(8) | Err(Errno::AGAIN)), "{read:?}");
        }
        debug_assert!(taken <= self.in_flight.get());
        self.in_flight.set(self.in_flight.get() - taken);
        self.push_backlog();
    }

    /// An operation that no worker waits for has completed. Returns the number of workers' operations.
    fn orphan_completed(&self, held: Held, result: i32) -> u32 {
        match held {
            Held::Registration { file, index, .. } => {
                match completed(result) {
                    Ok(1) => file.set_index(Some(index)),
                    _ => self.free_files.borrow_mut().push(index),
                }
                0
            }
            held => {
                held.discard(result);
                1
            }
        }
    }

    /// Records the time since a completion, which the worker sees now.
    #[inline]
    pub(super) fn record_delay(&self, completed: Nanos) {
        if let Some((rows, row)) = &self.delays {
            let times = OpTimes::unpaced(completed, self.lane.now());
            rows.recorder.record(*row, times, 0);
        }
    }

    /// Waits for completions while the lane polls a task, which cannot wait itself: the tasks that they
    /// wake become ready at the lane's next look.
    pub(super) fn wait_beside_lane(&self) {
        self.enter_and_check(None);
        self.take(false, &mut self.woken.borrow_mut());
    }

    /// Queues operations that waited, as far as there is room.
    fn push_backlog(&self) {
        if self.backlog.borrow().is_empty() {
            return;
        }
        let submitted = self.submission_time();
        while self.in_flight.get() < self.depth {
            let Some(entry) = self.backlog.borrow_mut().pop_front() else {
                break;
            };
            let number = entry.get_user_data() as u32;
            self.slots.borrow_mut().set_submitted(number, submitted);
            self.in_flight.set(self.in_flight.get() + 1);
            self.push(&entry);
        }
        // The tasks that completions made ready are polled before the next turn.
        self.submit();
    }

    /// Gives up an operation whose worker is gone.
    fn abandon(&self, number: u32) {
        let mut backlog = self.backlog.borrow_mut();
        let queued = backlog.len();
        backlog.retain(|entry| entry.get_user_data() != u64::from(number));
        if backlog.len() < queued {
            drop(self.slots.borrow_mut().vacate(number));
            return;
        }
        drop(backlog);
        let is_in_flight = self.slots.borrow_mut().orphan(number);
        if is_in_flight {
            self.push(
                &opcode::AsyncCancel::new(u64::from(number))
                    .build()
                    .user_data(IGNORED),
            );
        }
    }
}

/// Puts an entry into the kernel's queue, if there is room.
#[inline]
fn queue(io: &mut IoUring, entry: &squeue::Entry) -> bool {
    // SAFETY: an entry points to what its slot holds (see `RingCall`), to a static, or to nothing. A slot is
    // vacated only when the kernel has reported the completion, or before the entry was pushed, and dropping
    // the ring waits for all completions.
    unsafe { io.submission().push(entry) }.is_ok()
}

impl CompletionSource for Ring {
    #[inline]
    fn is_due(&self) -> bool {
        self.is_unsubmitted.get()
            || !self.woken.borrow().is_empty()
            || (self.in_flight.get() > 0 && self.has_completions())
    }

    fn turn(&self, timeout: Option<Duration>, ready: &mut Vec<u32>) {
        if timeout != Some(Duration::ZERO) {
            self.watch_wakeup();
        }
        let waiting = self.has_completions();
        let is_woken = !self.woken.borrow().is_empty();
        ready.append(&mut self.woken.borrow_mut());
        let timeout = if is_woken {
            Some(Duration::ZERO)
        } else {
            timeout
        };
        self.enter_and_check(timeout);
        self.take(waiting, ready);
    }
}

impl Drop for Ring {
    /// Waits for the operations whose workers are gone, because the kernel may still write to their memory.
    fn drop(&mut self) {
        if let Some((_, Some(registered))) = self.content.take() {
            self.forget_memory(registered);
        }
        for entry in self.backlog.take() {
            drop(self.slots.borrow_mut().vacate(entry.get_user_data() as u32));
        }
        let in_flight = self.slots.borrow().in_flight();
        for number in in_flight {
            self.slots.borrow_mut().orphan(number);
            self.push(
                &opcode::AsyncCancel::new(u64::from(number))
                    .build()
                    .user_data(IGNORED),
            );
        }
        while self.slots.borrow().used() > 0 {
            self.enter_and_check(None);
            self.take(false, &mut Vec::new());
        }
    }
}

/// An operation in flight; completes with its result and what it held.
pub(super) struct Operation<'r> {
    ring: &'r Ring,
    /// `None` when it was taken.
    number: Option<u32>,
}

impl Future for Operation<'_> {
    type Output = (Result<u32, Errno>, Held);

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let number = self.number.expect("a future is not polled after its end");
        let mut slots = self.ring.slots.borrow_mut();
        let Some(done) = slots.take(number) else {
            slots.set_task(number, self.ring.lane.current_task());
            return Poll::Pending;
        };
        drop(slots);
        self.ring.record_delay(done.completed);
        self.number = None;
        Poll::Ready((completed(done.result), done.held))
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.ring.abandon(number);
        }
    }
}

#[cfg(test)]
mod tests;
