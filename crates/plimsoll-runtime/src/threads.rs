//! Starting and parking threads.

use crate::simulation::{self, ThreadRef};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::time::Duration;

/// Handle by which other threads unpark a thread.
#[derive(Debug, Clone)]
pub struct ThreadHandle(Handle);

#[derive(Debug, Clone)]
enum Handle {
    System(std::thread::Thread),
    Simulated(ThreadRef),
}

impl ThreadHandle {
    /// Ends the next or current [`park`] of the thread.
    pub fn unpark(&self) {
        match &self.0 {
            Handle::System(thread) => thread.unpark(),
            Handle::Simulated(thread) => thread.unpark(),
        }
    }
}

/// Handle of the calling thread.
#[must_use]
pub fn current() -> ThreadHandle {
    ThreadHandle(match simulation::current() {
        Some(thread) => Handle::Simulated(thread),
        None => Handle::System(std::thread::current()),
    })
}

/// Blocks the calling thread until it is unparked or the time has passed; may return earlier.
pub fn park(timeout: Option<Duration>) {
    match (simulation::current(), timeout) {
        (Some(thread), timeout) => thread.park(timeout),
        (None, Some(timeout)) => std::thread::park_timeout(timeout),
        (None, None) => std::thread::park(),
    }
}

/// Stack size, in bytes of address space, of a thread started by [`spawn`] or [`run_on_threads`].
pub const THREAD_STACK_BYTES: usize = 2 << 20;

/// Starts a detached thread.
///
/// # Errors
/// The system's error if the thread cannot be started.
pub fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let builder = std::thread::Builder::new()
        .name(name.clone())
        .stack_size(THREAD_STACK_BYTES);
    match simulation::current() {
        None => builder.spawn(work).map(drop),
        Some(parent) => {
            let thread = parent.add_thread(name);
            builder.spawn(move || thread.main(work)).map(drop)
        }
    }
}

/// Executes `work` on `count` threads, passing each thread its index, and calls `meanwhile` every `interval` until all
/// threads have ended. If the system starts only some of the threads, `work` runs only on the started threads.
///
/// # Errors
/// The system's error if the first thread does not start.
pub fn run_on_threads(
    count: usize,
    work: impl Fn(usize) + Sync,
    interval: Duration,
    mut meanwhile: impl FnMut(),
) -> std::io::Result<()> {
    let running = AtomicUsize::new(count);
    let caller = current();
    std::thread::scope(|scope| {
        for number in 0..count {
            let (work, running, caller) = (&work, &running, caller.clone());
            let body = move || {
                work(number);
                if running.fetch_sub(1, AcqRel) == 1 {
                    caller.unpark();
                }
            };
            let builder = std::thread::Builder::new().stack_size(THREAD_STACK_BYTES);
            let started = match simulation::current() {
                None => builder.spawn_scoped(scope, body).map(drop),
                Some(parent) => {
                    let thread = parent.add_thread(format!("pool-{number}"));
                    builder
                        .spawn_scoped(scope, move || thread.main(body))
                        .map(drop)
                }
            };
            match started {
                Ok(()) => {}
                Err(e) if number == 0 => return Err(e),
                Err(_) => {
                    running.fetch_sub(count - number, AcqRel);
                    break;
                }
            }
        }
        while running.load(Acquire) > 0 {
            park(Some(interval));
            meanwhile();
        }
        Ok(())
    })
}
