//! Deterministic simulation of processes and their threads.

mod clock;
mod disk;
mod scheduler;

pub use clock::SimulatedClock;
pub use disk::{DiskFault, SimulatedDisk};

use crate::DiskCall;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use scheduler::{ProcessEntry, Scheduler, ThreadState};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Number of a process in its simulation, from 0 in the order of creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub(crate) usize);

impl ProcessId {
    /// Number returned by [`process_id`](crate::process_id) in the process.
    ///
    /// # Panics
    /// If the simulation has more than 2³² processes.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::try_from(self.0).expect("a simulation has few processes")
    }
}

/// Reason why [`Simulation::run`] returned: the processes ended, no thread can continue, or a time limit was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SimulationEnd {
    /// All processes have ended.
    Finished,
    /// The named threads remain, and none of them can ever continue.
    Deadlock(Vec<String>),
    /// Simulated time has reached the limit; names of the remaining threads.
    TimeLimit(Vec<String>),
    /// The named thread neither waits nor ends: the process has reached the limit of processor time, or has used almost no
    /// processor time for a real time as long as the limit.
    Livelock(String),
}

/// A simulation of processes whose threads share one simulated clock. Only one thread runs at a time.
///
/// A thread must not hold a lock of the standard library while it calls a function of this crate that waits.
pub struct Simulation {
    shared: Arc<Shared>,
}

/// Handle through which a test, and the simulated threads, start and kill processes, set their clocks and disks, and
/// wait.
#[derive(Clone)]
pub struct SimulationHandle(Arc<Shared>);

struct Shared {
    scheduler: Mutex<Scheduler>,
    ended: Condvar,
    clock: Arc<AtomicU64>,
    /// Instant of the beginning of the simulation. Only differences of instants matter.
    base: Instant,
}

/// A thread of a simulation.
#[derive(Clone)]
pub(crate) struct ThreadRef {
    shared: Arc<Shared>,
    thread: usize,
}

impl fmt::Debug for ThreadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulated thread {}", self.thread)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<ThreadRef>> = const { RefCell::new(None) };
}

/// The calling thread, if it belongs to a simulation.
pub(crate) fn current() -> Option<ThreadRef> {
    // During the destruction of thread-local variables, the thread does not wait any more.
    CURRENT
        .try_with(|current| current.borrow().clone())
        .ok()
        .flatten()
}

/// Records panics of simulated threads in their simulation; other panics are reported as usual.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match current() {
            Some(thread) => thread.shared.lock().panics.push(info.to_string()),
            None => report(info),
        }));
    });
}

/// Minimum processor time that a simulation without a livelock uses in a real time as long as the limit.
const MIN_PROGRESS: Duration = Duration::from_millis(1);

/// Processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Simulation {
    /// A simulation whose thread order is determined by the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        note_panics();
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let clock = Arc::new(AtomicU64::new(0));
        Self {
            shared: Arc::new(Shared {
                scheduler: Mutex::new(Scheduler::new(rng, clock.clone())),
                ended: Condvar::new(),
                clock,
                base: Instant::now(),
            }),
        }
    }

    /// Control of the simulation while it runs.
    #[must_use]
    pub fn handle(&self) -> SimulationHandle {
        SimulationHandle(self.shared.clone())
    }

    /// Runs until all processes have ended, until the limit of simulated time, or until a livelock. A livelock is a run
    /// that uses the processor time `busy`, or almost no processor time in two consecutive periods of `busy` of real time;
    /// other programs and pauses of the machine make no livelock. Threads that remain at a limit never continue, and keep
    /// their memory.
    #[must_use]
    pub fn run(self, simulated: Duration, busy: Duration) -> SimulationEnd {
        let mut scheduler = self.shared.lock();
        scheduler.limit = simulated.as_nanos() as u64;
        scheduler.hand_over(None);
        let begun = processor_time();
        let mut before = begun;
        let mut idle = 0;
        loop {
            let waited = self
                .shared
                .ended
                .wait_timeout_while(scheduler, busy, |s| s.end.is_none());
            (scheduler, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let now = processor_time();
            // A pause of a virtual machine is one idle period.
            idle = if now - before < MIN_PROGRESS {
                idle + 1
            } else {
                0
            };
            if scheduler.end.is_some() || now - begun >= busy || idle == 2 {
                break;
            }
            before = now;
        }
        match scheduler.end.take() {
            Some(end) => end,
            None => {
                let running = scheduler.running.map(|t| scheduler.threads[t].name.clone());
                scheduler.is_over = true;
                SimulationEnd::Livelock(running.unwrap_or_default())
            }
        }
    }
}

impl SimulationHandle {
    /// Adds a process that executes `main` and ends when `main` returns.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub fn spawn_process(&self, name: &str, main: impl FnOnce() + Send + 'static) -> ProcessId {
        let (process, thread) = {
            let mut scheduler = self.0.lock();
            let process = scheduler.processes.len();
            let thread = scheduler.add_thread(process, name.to_owned());
            scheduler.processes.push(ProcessEntry {
                main: thread,
                alive: true,
                stopped: false,
                clock_ahead: 0,
                drift_ppm: 0,
                disk: SimulatedDisk::default(),
                disk_calls: 0,
                disk_errors: 0,
            });
            (process, thread)
        };
        let thread = ThreadRef {
            shared: self.0.clone(),
            thread,
        };
        let started = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || thread.main(main));
        started.expect("the system can start a thread");
        ProcessId(process)
    }

    /// Ends a process at once, as `SIGKILL` does: its threads never continue.
    pub fn kill(&self, process: ProcessId) {
        self.0.lock().kill(process.0);
    }

    /// Whether the process has not ended yet.
    #[must_use]
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.0.lock().processes[process.0].alive
    }

    /// Stops a process as `SIGSTOP` does, or continues a stopped process.
    pub fn set_stopped(&self, process: ProcessId, stopped: bool) {
        self.0.lock().processes[process.0].stopped = stopped;
    }

    /// Sets how far a process's time of day is ahead of simulated time, in seconds; negative if behind. The offset does
    /// not change [`now`](crate::now).
    pub fn set_clock_ahead(&self, process: ProcessId, seconds: i64) {
        self.0.lock().processes[process.0].clock_ahead = seconds;
    }

    /// Sets the clock drift of a process in millionths, before the process begins; positive drift is fast. The default
    /// is no drift.
    ///
    /// # Panics
    /// If a clock would run at less than half its speed, or more than twice.
    pub fn set_clock_drift(&self, process: ProcessId, ppm: i64) {
        assert!((-500_000..=1_000_000).contains(&ppm), "{ppm} millionths");
        self.0.lock().processes[process.0].drift_ppm = ppm;
    }

    /// Sets the disk of a process. The default disk has no latency and no faults.
    pub fn set_disk(&self, process: ProcessId, disk: SimulatedDisk) {
        self.0.lock().processes[process.0].disk = disk;
    }

    /// Number of failed disk accesses of a process.
    #[must_use]
    pub fn disk_errors(&self, process: ProcessId) -> u64 {
        self.0.lock().processes[process.0].disk_errors
    }

    /// Wakes all threads that wait with [`SimulationHandle::wait`] for this key.
    pub fn wake_all(&self, key: usize) {
        self.0.lock().wake_all(key);
    }

    /// Blocks the calling thread until a call of `wake_all` with the key, the end of a process, or the end of
    /// `at_most`. The calling thread must belong to the simulation.
    pub fn wait(&self, key: usize, at_most: Duration) {
        let thread = current().expect("a thread of a simulation waits in it");
        thread.wait(key, Some(at_most));
    }

    /// Simulated nanoseconds since the beginning.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.clock.load(Relaxed)
    }

    /// Messages of the panics of simulated threads so far.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.0.lock().panics.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Unix time in seconds of the first of January 2026, 0:00 UTC.
const BEGIN_UNIX_S: u64 = 1_767_225_600;

/// The time of day at which every simulation begins.
pub(crate) fn epoch() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(BEGIN_UNIX_S)
}

impl ThreadRef {
    pub(crate) fn clock(&self) -> SimulatedClock {
        let drift_ppm = {
            let scheduler = self.shared.lock();
            scheduler.processes[scheduler.threads[self.thread].process].drift_ppm
        };
        SimulatedClock {
            now: self.shared.clock.clone(),
            drift_ppm,
        }
    }

    pub(crate) fn instant(&self) -> Instant {
        self.shared.base + Duration::from_nanos(self.clock().read())
    }

    /// Number of the thread's process.
    pub(crate) fn process(&self) -> usize {
        let scheduler = self.shared.lock();
        scheduler.threads[self.thread].process
    }

    /// Whether a process has not ended yet.
    pub(crate) fn is_alive(&self, process: usize) -> bool {
        let scheduler = self.shared.lock();
        scheduler.processes.get(process).is_some_and(|p| p.alive)
    }

    pub(crate) fn system_time(&self) -> SystemTime {
        let ahead = {
            let scheduler = self.shared.lock();
            scheduler.processes[scheduler.threads[self.thread].process].clock_ahead
        };
        let now = Duration::from_nanos(self.clock().read());
        SystemTime::UNIX_EPOCH
            + Duration::from_secs(BEGIN_UNIX_S.saturating_add_signed(ahead))
            + now
    }

    /// Executes an access to the disk of the thread's process.
    pub(crate) fn disk_call(&self, call: DiskCall) -> io::Result<()> {
        let process = self.process();
        let (disk, before) = {
            let entry = &mut self.shared.lock().processes[process];
            entry.disk_calls += 1;
            (entry.disk, entry.disk_calls - 1)
        };
        if !disk.latency.is_zero() {
            self.sleep(disk.latency);
        }
        match disk.fault.and_then(|fault| fault.error(call, before)) {
            Some(errno) => {
                self.shared.lock().processes[process].disk_errors += 1;
                Err(io::Error::from_raw_os_error(errno))
            }
            None => Ok(()),
        }
    }

    /// Adds a thread to the process of this thread. The new thread must begin with [`ThreadRef::main`].
    pub(crate) fn add_thread(&self, name: String) -> Self {
        let mut scheduler = self.shared.lock();
        let process = scheduler.threads[self.thread].process;
        let thread = scheduler.add_thread(process, name);
        Self {
            shared: self.shared.clone(),
            thread,
        }
    }

    /// Life of a thread: waits for its turn, executes `work`, and hands over.
    pub(crate) fn main(self, work: impl FnOnce()) {
        CURRENT.set(Some(self.clone()));
        self.await_turn();
        // Panics are recorded by the panic hook.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(work));
        let mut scheduler = self.shared.lock();
        scheduler.end_thread(self.thread);
        scheduler.hand_over(None);
        let over = scheduler.end.is_some();
        drop(scheduler);
        if over {
            self.shared.ended.notify_all();
        }
        CURRENT.set(None);
    }

    pub(crate) fn sleep(&self, time: Duration) {
        self.block(ThreadState::Sleeping, Some(time));
    }

    /// Blocks until the thread is woken under the key; may return earlier.
    pub(crate) fn wait(&self, key: usize, at_most: Option<Duration>) {
        self.block(ThreadState::Waiting { key }, at_most);
    }

    pub(crate) fn wake_all(&self, key: usize) {
        self.shared.lock().wake_all(key);
    }

    pub(crate) fn park(&self, timeout: Option<Duration>) {
        if !std::mem::take(&mut self.shared.lock().threads[self.thread].permit) {
            self.block(ThreadState::Parked, timeout);
            self.shared.lock().threads[self.thread].permit = false;
        }
    }

    pub(crate) fn unpark(&self) {
        self.shared.lock().unpark(self.thread);
    }

    /// Lets other threads run until this thread may continue.
    fn block(&self, state: ThreadState, at_most: Option<Duration>) {
        let clock = self.clock();
        let at_most = at_most.map(|time| clock.lasts(time));
        let mut scheduler = self.shared.lock();
        scheduler.block(self.thread, state, at_most);
        if scheduler.hand_over(Some(self.thread)) {
            return;
        }
        let over = scheduler.end.is_some();
        drop(scheduler);
        if over {
            self.shared.ended.notify_all();
        }
        self.await_turn();
    }

    /// Blocks the operating-system thread until the scheduler chooses this thread.
    fn await_turn(&self) {
        let baton = self.shared.lock().threads[self.thread].baton.clone();
        baton.take();
    }
}
