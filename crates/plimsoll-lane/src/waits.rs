//! What a worker can wait for.

use crate::deadline::Stopped;
use crate::lane::Lane;
use plimsoll_measure::Nanos;
use polling::{Event, PollMode};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits for an instant that does not move. See [`Lane::uncancellable_sleep_until`].
pub struct Timer {
    lane: Lane,
    due: Nanos,
    set: bool,
}

impl Timer {
    pub(crate) fn new(lane: Lane, due: Nanos) -> Self {
        Self {
            lane,
            due,
            set: false,
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.lane.now() >= self.due {
            return Poll::Ready(());
        }
        if !self.set {
            self.set = true;
            self.lane.set_timer(self.due);
        }
        Poll::Pending
    }
}

/// Waits for an instant or for the end of the run. See [`Lane::sleep_until`].
pub struct Sleep {
    timer: Timer,
}

impl Sleep {
    pub(crate) fn new(lane: Lane, due: Nanos) -> Self {
        Self {
            timer: Timer::new(lane, due),
        }
    }
}

impl Future for Sleep {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if Pin::new(&mut self.timer).poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if self.timer.lane.now() >= self.timer.lane.deadline() {
            return Poll::Ready(Err(Stopped));
        }
        Poll::Pending
    }
}

/// Lets other workers have a turn. See [`Lane::yield_if_exhausted`].
pub struct Yield {
    /// In virtual time, until when.
    timed: Option<(Lane, Nanos)>,
    pending: bool,
}

impl Yield {
    #[inline]
    pub(crate) fn new(timed: Option<(Lane, Nanos)>, pending: bool) -> Self {
        Self { timed, pending }
    }
}

impl Future for Yield {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.pending, false) {
            return Poll::Ready(());
        }
        match &self.timed {
            Some((lane, due)) => lane.set_timer(*due),
            None => context.waker().wake_by_ref(),
        }
        Poll::Pending
    }
}

/// Waits for a descriptor. See [`Lane::readable`].
pub struct Readable<'a> {
    write: bool,
    watch: FdWatch<BorrowedFd<'a>>,
}

impl<'a> Readable<'a> {
    pub(crate) fn new(lane: Lane, fd: BorrowedFd<'a>, write: bool) -> Self {
        Self {
            write,
            watch: FdWatch::new(lane, fd),
        }
    }

    fn ready(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let flags = if self.write {
            PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        Ok(poll(&mut [PollFd::new(&self.watch.fd, flags)], Some(&now))? > 0)
    }
}

impl Future for Readable<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.ready() {
            Ok(false) => {}
            other => return Poll::Ready(other.map(|_| ())),
        }
        let key = self.watch.lane.current() as usize;
        let event = if self.write {
            Event::writable(key)
        } else {
            Event::readable(key)
        };
        // The poller forgets a descriptor once it has told of it.
        match self.watch.arm(event, PollMode::Oneshot) {
            Ok(()) => Poll::Pending,
            Err(e) => Poll::Ready(Err(e)),
        }
    }
}

/// A descriptor whose every change wakes the task that watches it. See [`Lane::watch`].
pub struct FdWatch<F: AsFd> {
    lane: Lane,
    fd: F,
    armed: bool,
}

impl<F: AsFd> FdWatch<F> {
    pub(crate) fn new(lane: Lane, fd: F) -> Self {
        Self {
            lane,
            fd,
            armed: false,
        }
    }

    /// Wakes the current task from now on whenever there is more to read or more room to write
    /// than before, or the other side has gone: what can be read and written has to be, until it
    /// would block, before the task waits.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(&mut self) -> io::Result<()> {
        let event = Event::all(self.lane.current() as usize);
        self.arm(event, PollMode::Edge)
    }

    /// The descriptor.
    pub fn get(&self) -> &F {
        &self.fd
    }

    fn arm(&mut self, event: Event, mode: PollMode) -> io::Result<()> {
        let poller = self.lane.remote().poller()?;
        let fd = self.fd.as_fd();
        if self.armed {
            return poller.modify_with_mode(fd, event, mode);
        }
        // SAFETY: the descriptor is borrowed or owned for as long as this lives, and dropping
        // this takes it out of the poller first.
        unsafe { poller.add_with_mode(&fd, event, mode)? };
        self.armed = true;
        Ok(())
    }
}

impl<F: AsFd> Drop for FdWatch<F> {
    fn drop(&mut self) {
        if self.armed
            && let Some(poller) = self.lane.remote().poller_if_any()
        {
            let _ = poller.delete(self.fd.as_fd());
        }
    }
}
