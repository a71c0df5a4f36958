//! Futures in which workers wait for a time, for other workers of their lane, or for a descriptor.

use crate::deadline::Stopped;
use crate::state::LaneState;
use plimsoll_measure::Nanos;
use polling::{Event, PollMode};
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Waits for an instant. See [`Lane::uncancellable_sleep_until`](crate::Lane::uncancellable_sleep_until).
pub struct Timer {
    pub(crate) lane: Rc<LaneState>,
    pub(crate) due: Nanos,
    pub(crate) set: bool,
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

/// Waits for an instant or for the end of the run. See [`Lane::sleep_until`](crate::Lane::sleep_until).
pub struct Sleep(pub(crate) Timer);

impl Future for Sleep {
    type Output = Result<(), Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match Pin::new(&mut self.0).poll(context) {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending if self.0.lane.has_stopped() => Poll::Ready(Err(Stopped)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Lets other workers have a turn. See [`Lane::yield_if_exhausted`](crate::Lane::yield_if_exhausted).
pub struct Yield {
    /// In virtual time, the instant at which the yield ends.
    pub(crate) timed: Option<(Rc<LaneState>, Nanos)>,
    pub(crate) pending: bool,
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

/// Waits for a descriptor. See [`Lane::readable`](crate::Lane::readable).
pub struct Readable<'a> {
    pub(crate) write: bool,
    pub(crate) watch: FdWatch<BorrowedFd<'a>>,
}

impl Readable<'_> {
    /// Whether the descriptor is ready; if not, the poller wakes the current task once the descriptor is ready.
    fn ready_or_armed(&mut self) -> io::Result<bool> {
        if self.ready()? {
            return Ok(true);
        }
        let key = self.watch.lane.current.get() as usize;
        let event = match self.write {
            true => Event::writable(key),
            false => Event::readable(key),
        };
        // The poller reports the descriptor once.
        self.watch.arm(event, PollMode::Oneshot).map(|()| false)
    }

    fn ready(&self) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let flags = match self.write {
            true => PollFlags::OUT,
            false => PollFlags::IN,
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
        match self.ready_or_armed() {
            Ok(false) => Poll::Pending,
            done => Poll::Ready(done.map(|_| ())),
        }
    }
}

/// A watch of a descriptor: each change of readiness wakes the watching task. See [`Lane::watch`](crate::Lane::watch).
pub struct FdWatch<F: AsFd> {
    pub(crate) lane: Rc<LaneState>,
    pub(crate) fd: F,
    pub(crate) armed: bool,
}

impl<F: AsFd> FdWatch<F> {
    /// Wakes the current task from now on whenever there is more to read or more room to write than before, or the peer
    /// has closed (edge-triggered). Before the task waits, the task must read and write until the descriptor would
    /// block.
    ///
    /// # Errors
    /// The system's error.
    pub fn begin(&mut self) -> io::Result<()> {
        let event = Event::all(self.lane.current.get() as usize);
        self.arm(event, PollMode::Edge)
    }

    /// The watched descriptor.
    pub fn get(&self) -> &F {
        &self.fd
    }

    fn arm(&mut self, event: Event, mode: PollMode) -> io::Result<()> {
        assert!(
            !self.lane.waker.has_counter(),
            "a lane that waits for completions watches no descriptors"
        );
        let poller = self.lane.waker.poller()?;
        let fd = self.fd.as_fd();
        if self.armed {
            return poller.modify_with_mode(fd, event, mode);
        }
        // SAFETY: the descriptor is borrowed or owned for the lifetime of this watch, and dropping the watch removes
        // the descriptor from the poller first.
        unsafe { poller.add_with_mode(&fd, event, mode)? };
        self.armed = true;
        Ok(())
    }
}

impl<F: AsFd> Drop for FdWatch<F> {
    fn drop(&mut self) {
        if self.armed
            && let Some(poller) = self.lane.waker.poller_if_any()
        {
            let _ = poller.delete(self.fd.as_fd());
        }
    }
}
