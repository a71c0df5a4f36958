//! The ring of a lane: submits the operations of the workers and takes the completions.

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

/// User data of the entry that polls for wakeups from other threads.
const WAKEUP: u64 = u64::MAX;

/// User data of entries whose completions are ignored.
const IGNORED: u64 = u64::MAX - 1;

/// Entries of the submission queue. Entries are submitted early (see [`PROMPT_DEPTH`]), so a larger queue would only
/// lock memory.
const QUEUE_ENTRIES: u32 = 128;

/// Room for completions of wakeups, registrations and cancellations.
const SPARE_COMPLETIONS: u32 = 64;

/// Maximum number of operations in flight at which each operation is submitted at once, unless the lane's turn ends
/// immediately: with few operations in flight, an operation that is queued until the end of the turn would leave the
/// device idle.
const PROMPT_DEPTH: u32 = 64;

/// Above `PROMPT_DEPTH`, the number of entries that one early submission covers: each submission costs processor time.
const SUBMIT_BATCH: usize = 4;

/// Maximum registered files; operations on further files use descriptors.
const MAX_REGISTERED_FILES: u32 = 4096;

/// Maximum registered buffers.
const MAX_REGISTERED_BUFFERS: u32 = 8192;

/// Kernel threads for operations that would block; the kernel's default is four per processor.
const KERNEL_THREADS: u32 = 64;

/// The `io_uring_enter` flag that processes completions (`IORING_ENTER_GETEVENTS`).
const GET_EVENTS: u32 = 1;

/// The descriptor value that empties an entry of the file table.
static NO_FILE: i32 = -1;

/// The ring of a lane.
pub(super) struct Ring {
    lane: Lane,
    io: RefCell<IoUring>,
    slots: RefCell<Slots>,
    /// Operations that wait until fewer operations are in the kernel.
    backlog: RefCell<VecDeque<squeue::Entry>>,
    /// Entries that do not fit into the submission queue.
    unqueued: RefCell<VecDeque<squeue::Entry>>,
    /// Operations of workers in the submission queue or in the kernel.
    in_flight: Cell<u32>,
    /// Maximum of `in_flight`.
    depth: u32,
    /// Whether the kernel has not yet taken all queued entries.
    is_unsubmitted: Cell<bool>,
    wakeup: Arc<OwnedFd>,
    is_wakeup_watched: Cell<bool>,
    /// The time at which completions were last taken.
    looked: Cell<Nanos>,
    /// Tasks woken by `Ring::wait_beside_lane`, which the lane has not seen yet.
    woken: RefCell<Vec<u32>>,
    delays: Option<(RpcRows, u32)>,
    /// Free entries of the file table and the buffer table.
    free_files: RefCell<Vec<u32>>,
    free_buffers: RefCell<Vec<u16>>,
    lockable: Option<Arc<LockableMemory>>,
    /// The pool of written contents, once registration was attempted; the inner `None` means that
    /// registration failed.
    content: RefCell<Option<(ContentPool, Option<Registered>)>>,
}

/// The parameters of a lane's ring: depth, memory budget and result rows.
pub(super) struct RingSpec<'a> {
    pub(super) kernel: Kernel,
    pub(super) depth: u32,
    /// The budget of registered memory; `None` for a ring without registered files and buffers.
    pub(super) lockable: Option<Arc<LockableMemory>>,
    /// The row of the results for completion delays.
    pub(super) delays: Option<(RpcRows, u32)>,
    pub(super) lane: &'a Lane,
}

impl Ring {
    pub(super) fn new(spec: &RingSpec<'_>) -> io::Result<Self> {
        let completions = (spec.depth + SPARE_COMPLETIONS).next_power_of_two();
        let completions = completions.max(QUEUE_ENTRIES);
        let io = spec.kernel.setup.build(QUEUE_ENTRIES, 2 * completions)?;
        let submitter = io.submitter();
        // If the call is missing, or the limit is already lower, the kernel keeps its number of
        // threads.
        let _ = submitter.register_iowq_max_workers(&mut [KERNEL_THREADS, 0]);
        let (mut free_files, mut free_buffers) = (vec![], vec![]);
        if spec.kernel.registers && spec.lockable.is_some() {
            // Registration only saves processor time: a failure is not an error.
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

    /// The submission time; 0 if delays are not recorded.
    #[inline]
    fn submission_time(&self) -> Nanos {
        match self.delays {
            Some(_) => self.lane.now(),
            None => 0,
        }
    }

    /// Appends an entry to the submission queue.
    #[inline]
    fn push(&self, entry: &squeue::Entry) {
        let mut io = self.io.borrow_mut();
        self.is_unsubmitted.set(true);
        let mut unqueued = self.unqueued.borrow_mut();
        let mut is_queued = unqueued.is_empty() && queue(&mut io, entry);
        if !is_queued && unqueued.is_empty() {
            // The submission queue is full, so its entries are submitted early. A later call of `Ring::enter` reports a
            // lasting error.
            let _ = io.submit();
            is_queued = queue(&mut io, entry);
        }
        if !is_queued {
            // The kernel takes no entries until completions are taken or memory is available.
            unqueued.push_back(entry.clone());
        }
    }

    /// Submits queued entries before the end of the lane's turn if enough entries are queued.
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

    /// Submits queued entries. Entries that the kernel does not take now are submitted at the end
    /// of the turn.
    #[inline]
    fn submit(&self) {
        let mut io = self.io.borrow_mut();
        let _ = io.submit();
        let is_all = io.submission().is_empty() && self.unqueued.borrow().is_empty();
        self.is_unsubmitted.set(!is_all);
    }

    /// Registers a file; the registration completes before operations that are started later.
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

    /// Removes a file from the ring's file table: the table holds a reference, so the file would stay open after its
    /// descriptor is closed.
    pub(super) fn unregister_file(&self, file: &RingFile) {
        if let Some(index) = file.index() {
            file.set_index(None);
            let update = opcode::FilesUpdate::new(&raw const NO_FILE, 1).offset(index as i32);
            self.push(&update.build().user_data(IGNORED));
            self.free_files.borrow_mut().push(index);
        }
    }

    /// Registers memory; `None` if the buffer table or the budget is exhausted, or the kernel
    /// refuses.
    pub(super) fn register_memory(&self, memory: *mut u8, len: usize) -> Option<Registered> {
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
            let begin = memory as usize;
            return Some(Registered { index, begin, len });
        }
        lockable.give_back(len);
        self.free_buffers.borrow_mut().push(index);
        None
    }

    /// Sets an entry of the buffer table.
    fn update_buffer(&self, index: u16, piece: libc::iovec) -> io::Result<()> {
        let io = self.io.borrow();
        // SAFETY: the kernel pins the pages of a registered buffer, and every operation that uses the index holds the
        // memory, so the memory stays mapped during the operation.
        unsafe {
            io.submitter()
                .register_buffers_update(u32::from(index), &[piece], None)
        }
    }

    /// Registers the bytes of a content pool, once for all workers of the lane; the ring keeps the
    /// pool.
    pub(super) fn register_content(&self, pool: &ContentPool) -> Option<Registered> {
        let mut content = self.content.borrow_mut();
        let (_, registered) = content.get_or_insert_with(|| {
            let bytes = pool.bytes();
            let registered = self.register_memory(bytes.as_ptr().cast_mut(), bytes.len());
            (pool.clone(), registered)
        });
        *registered
    }

    /// Empties the entry of registered memory in the buffer table; the kernel unpins the pages after the last operation
    /// that uses the entry.
    pub(super) fn forget_memory(&self, registered: Registered) {
        let nothing = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        // An entry that cannot be emptied keeps its pages and is not reused.
        if self.update_buffer(registered.index, nothing).is_ok() {
            self.free_buffers.borrow_mut().push(registered.index);
            if let Some(lockable) = &self.lockable {
                lockable.give_back(registered.len);
            }
        }
    }

    fn has_completions(&self) -> bool {
        let mut io = self.io.borrow_mut();
        let queue = io.submission();
        let is_pending = queue.taskrun() || queue.cq_overflow();
        drop(queue);
        is_pending || !io.completion().is_empty()
    }

    /// Submits queued entries and processes completions; waits for the first completion as [`CompletionSource::turn`]
    /// does.
    fn enter(&self, timeout: Option<Duration>) -> io::Result<usize> {
        let mut io = self.io.borrow_mut();
        let mut unqueued = self.unqueued.borrow_mut();
        while unqueued.front().is_some_and(|entry| queue(&mut io, entry)) {
            unqueued.pop_front();
        }
        // If a full submission queue leaves entries unqueued, io_uring_enter(2) only submits, without waiting for a
        // completion, so that the remaining entries can be queued next.
        let timeout = match unqueued.is_empty() {
            true => timeout,
            false => Some(Duration::ZERO),
        };
        let queued = io.submission().len() as u32;
        let submitter = io.submitter();
        let entered = match timeout {
            None => submitter.submit_and_wait(1),
            // SAFETY: the call has no argument, and `queued` is the number of queued entries.
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

    /// Enters the kernel; panics at an unexpected error.
    fn enter_and_check(&self, timeout: Option<Duration>) {
        match self.enter(timeout).map_err(|e| e.raw_os_error()) {
            Ok(_) => {}
            // A timeout, a signal or a temporary shortage of memory is no error: the lane enters the kernel again in
            // its next turn.
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

    /// Takes all completions from the completion queue, and adds the waiting tasks to `ready`. `waiting` says whether
    /// the completion queue had entries before the lane entered the kernel.
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
            // The read is non-blocking, in case the counter is 0.
            let read = rustix::io::read(&*self.wakeup, &mut [0; 8]);
            debug_assert!(matches!(read, Ok(8) | Err(Errno::AGAIN)), "{read:?}");
        }
        debug_assert!(taken <= self.in_flight.get());
        self.in_flight.set(self.in_flight.get() - taken);
        self.push_backlog();
    }

    /// Handles the completion of an operation that no worker waits for. Returns the number of workers' operations: 0 or
    /// 1.
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

    /// Records the delay from a completion until now, when the worker sees the completion.
    #[inline]
    pub(super) fn record_delay(&self, completed: Nanos) {
        if let Some((rows, row)) = &self.delays {
            let times = OpTimes::unpaced(completed, self.lane.now());
            rows.recorder.record(*row, times, 0);
        }
    }

    /// Waits for completions while the lane polls a task that cannot wait. Woken tasks become ready when the lane next
    /// looks for completions.
    pub(super) fn wait_beside_lane(&self) {
        self.enter_and_check(None);
        self.take(false, &mut self.woken.borrow_mut());
    }

    /// Queues operations of the backlog as far as the depth allows.
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
        // The next turn follows only after all ready tasks were polled, so the entries are
        // submitted now.
        self.submit();
    }

    /// Queues a request to the kernel to cancel the operation in slot `number`.
    fn cancel(&self, number: u32) {
        let cancel = opcode::AsyncCancel::new(u64::from(number));
        self.push(&cancel.build().user_data(IGNORED));
    }

    /// Abandons an operation whose worker is gone.
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
            self.cancel(number);
        }
    }
}

/// Appends an entry to the submission queue; returns `false` if the queue is full.
#[inline]
fn queue(io: &mut IoUring, entry: &squeue::Entry) -> bool {
    // SAFETY: an entry points to the memory that its slot holds (see `RingCall`), to a static, or to nothing. A slot is
    // vacated only after the kernel has reported the completion, or before the entry is pushed, and dropping the ring
    // waits for all completions.
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
    /// Waits for abandoned operations, because the kernel may still write to their memory.
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
            self.cancel(number);
        }
        while self.slots.borrow().used() > 0 {
            self.enter_and_check(None);
            self.take(false, &mut Vec::new());
        }
    }
}

/// An operation in flight; completes with its result and the held memory.
pub(super) struct Operation<'r> {
    ring: &'r Ring,
    /// Slot number of the operation; `None` once the future has returned the result.
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
