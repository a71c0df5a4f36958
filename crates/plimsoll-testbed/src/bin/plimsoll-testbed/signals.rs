//! Signals such as SIGINT, which `plimsoll-testbed` catches to end beds and commands before it ends itself.

use plimsoll_runtime::signals::heeded_notices;
use plimsoll_testbed::BedError;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Time between two checks whether a command has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Signals that this process has caught.
pub struct CaughtSignals {
    /// SIGINT, which a terminal sends to all processes of its foreground group.
    interrupt: Arc<AtomicBool>,
    /// SIGTERM, and signals by which a batch system or a terminal announces the end of the program.
    termination: Arc<AtomicBool>,
}

impl CaughtSignals {
    /// Begins to catch signals.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
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

    /// Waits for the end of a command in the process group of this process. The command gets SIGTERM if this process
    /// gets a termination signal; SIGINT from a terminal reaches the command anyway.
    pub fn wait_for(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        wait_and_end_when(child, || self.termination.load(Relaxed))
    }

    /// Waits for the end of a command in a process group of its own. The command gets SIGTERM if this process gets any
    /// signal.
    pub fn end_and_wait_for(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        wait_and_end_when(child, || self.any())
    }
}

/// Waits for the end of a command; sends SIGTERM once, when `is_ended` becomes true.
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
                // The command may have ended since the last check.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
