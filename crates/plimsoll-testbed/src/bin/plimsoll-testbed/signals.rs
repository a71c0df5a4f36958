//! Signals that do not end this process, so that it ends what it has started.

use plimsoll_runtime::signals::heeded_notices;
use plimsoll_testbed::BedError;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Time between two looks at a command that runs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Signals that this process has caught.
pub struct CaughtSignals {
    /// SIGINT, which a terminal sends to all processes of a command.
    interrupt: Arc<AtomicBool>,
    /// SIGTERM, and notices that the program will be ended.
    termination: Arc<AtomicBool>,
}

impl CaughtSignals {
    /// Catches signals from now on.
    ///
    /// # Errors
    /// If they cannot be caught.
    pub fn new() -> Result<Self, BedError> {
        let this = Self {
            interrupt: Arc::default(),
            termination: Arc::default(),
        };
        let (interrupt, termination) = (&this.interrupt, &this.termination);
        let ends = heeded_notices().map(|notice| (notice, termination));
        for (signal, flag) in ends.chain([(SIGINT, interrupt), (SIGTERM, termination)]) {
            signal_hook::flag::register(signal, flag.clone())
                .map_err(|e| BedError::failed("cannot catch signals", e))?;
        }
        Ok(this)
    }

    /// Whether a signal was caught.
    pub fn any(&self) -> bool {
        self.interrupt.load(Relaxed) || self.termination.load(Relaxed)
    }

    /// Waits for the end of a command. A termination of this process is passed on; an interrupt from a
    /// terminal reaches the command anyway.
    pub fn wait_for(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        wait_and_end_when(child, || self.termination.load(Relaxed))
    }

    /// Waits for the end of a command in a process group of its own, to which each of the signals is passed
    /// on as a termination.
    pub fn end_and_wait_for(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        wait_and_end_when(child, || self.any())
    }
}

/// Waits for the end of a command, which is terminated once if `is_ended` is true.
fn wait_and_end_when(
    child: &mut Child,
    is_ended: impl Fn() -> bool,
) -> std::io::Result<ExitStatus> {
    let mut is_passed_on = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if is_ended() && !is_passed_on {
            is_passed_on = true;
            if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
                // It may end meanwhile.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
