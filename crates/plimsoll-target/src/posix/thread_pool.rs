//! A thread pool for blocking jobs that all workers of a target share.

use plimsoll_runtime::sync::lock;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum threads of a pool, which is also the maximum number of jobs in progress.
pub(super) const MAX_POOL_THREADS: usize = 32;

/// A job of a pool.
pub(super) trait PoolJob: Send + 'static {
    /// Name of the pool's threads.
    const THREAD: &'static str;

    /// Executes the job on a thread of the pool.
    fn run(self);
}

pub(super) struct JobQueue<J> {
    pub(super) queue: VecDeque<J>,
    idle: usize,
    pub(super) threads: usize,
    /// Whether threads end once the queue is empty.
    closed: bool,
}

/// The thread pool; starts threads on demand, and ends all threads when dropped.
pub(super) struct ThreadPool<J: PoolJob> {
    pub(super) shared: Arc<PoolShared<J>>,
}

pub(super) struct PoolShared<J> {
    pub(super) jobs: Mutex<JobQueue<J>>,
    changed: Condvar,
}

pub(super) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let woken = condition.wait(guard);
    woken.unwrap_or_else(PoisonError::into_inner)
}

impl<J: PoolJob> Default for ThreadPool<J> {
    fn default() -> Self {
        Self {
            shared: Arc::new(PoolShared {
                jobs: Mutex::new(JobQueue {
                    queue: VecDeque::new(),
                    idle: 0,
                    threads: 0,
                    closed: false,
                }),
                changed: Condvar::new(),
            }),
        }
    }
}

impl<J: PoolJob> ThreadPool<J> {
    /// Starts the first thread, so that later jobs always find a thread.
    ///
    /// # Errors
    /// `EAGAIN` if the thread cannot be started.
    pub(super) fn start(&self) -> Result<(), Errno> {
        let mut jobs = lock(&self.shared.jobs);
        match jobs.threads {
            0 => self.add_thread(&mut jobs),
            _ => Ok(()),
        }
    }

    fn add_thread(&self, jobs: &mut JobQueue<J>) -> Result<(), Errno> {
        let shared = self.shared.clone();
        let started = std::thread::Builder::new()
            .name(format!("{}-{}", J::THREAD, jobs.threads))
            .spawn(move || shared.run_worker_thread());
        started.map_err(|_| Errno::AGAIN)?;
        jobs.threads += 1;
        Ok(())
    }

    /// Queues a job.
    ///
    /// # Errors
    /// `EAGAIN` if the first thread cannot be started; the job is dropped.
    pub(super) fn submit(&self, job: J) -> Result<(), Errno> {
        let mut jobs = lock(&self.shared.jobs);
        if jobs.idle <= jobs.queue.len() && jobs.threads < MAX_POOL_THREADS {
            let started = self.add_thread(&mut jobs);
            // Without any thread the job would never run.
            if jobs.threads == 0 {
                started?;
            }
        }
        jobs.queue.push_back(job);
        drop(jobs);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl<J: PoolJob> Drop for ThreadPool<J> {
    fn drop(&mut self) {
        lock(&self.shared.jobs).closed = true;
        self.shared.changed.notify_all();
    }
}

impl<J: PoolJob> PoolShared<J> {
    fn run_worker_thread(&self) {
        let mut jobs = lock(&self.jobs);
        loop {
            if let Some(job) = jobs.queue.pop_front() {
                drop(jobs);
                job.run();
                jobs = lock(&self.jobs);
            } else if jobs.closed {
                return;
            } else {
                jobs.idle += 1;
                jobs = wait(&self.changed, jobs);
                jobs.idle -= 1;
            }
        }
    }
}
