//! What a worker can wait for.

use crate::deadline::Stopped;
use crate::lane::Lane;
use plimsoll_measure::Nanos;
use polling::Event;
use std::future::Future;
use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits for an instant that does not move. See [`Lane::timer`].
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

/// Lets other workers have a turn. See [`Lane::breathe`].
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
    lane: Lane,
    fd: BorrowedFd<'a>,
    write: bool,
    registered: bool,
}

impl<'a> Readable<'a> {
    pub(crate) fn new(lane: Lane, fd: BorrowedFd<'a>, write: bool) -> Self {
        Self {
            lane,
            fd,
            write,
            registered: false,
        }
    }

    fn register(&mut self) -> io::Result<()> {
        let poller = self.lane.remote().poller()?;
        let key = self.lane.current() as usize;
        let event = if self.write {
            Event::writable(key)
        } else {
            Event::readable(key)
        };
        // SAFETY: the descriptor is borrowed for as long as this future lives, and dropping the
        // future takes it out of the poller.
        unsafe { poller.add(&self.fd, event)? };
        self.registered = true;
        Ok(())
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
        Ok(poll(&mut [PollFd::new(&self.fd, flags)], Some(&now))? > 0)
    }
}

impl Future for Readable<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.ready() {
            Ok(false) => {}
            other => return Poll::Ready(other.map(|_| ())),
        }
        if self.registered {
            // The poller forgets a descriptor once it has told of it.
            let key = self.lane.current() as usize;
            let event = if self.write {
                Event::writable(key)
            } else {
                Event::readable(key)
            };
            let again = self
                .lane
                .remote()
                .poller()
                .and_then(|p| p.modify(self.fd, event));
            return match again {
                Ok(()) => Poll::Pending,
                Err(e) => Poll::Ready(Err(e)),
            };
        }
        match self.register() {
            Ok(()) => Poll::Pending,
            Err(e) => Poll::Ready(Err(e)),
        }
    }
}

impl Drop for Readable<'_> {
    fn drop(&mut self) {
        if self.registered
            && let Some(poller) = self.lane.remote().poller_if_any()
        {
            let _ = poller.delete(self.fd);
        }
    }
}
