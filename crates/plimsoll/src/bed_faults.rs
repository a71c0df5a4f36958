//! Faults of test beds as actions of events.

use plimsoll_series::events::{Action, EventExecutor, Execution, ShellExecutor};
use plimsoll_testbed::{BedError, Fault, Store, TestBed};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time between two looks at whether an action is to end.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The bed of a target.
fn bed(target: &str) -> Result<TestBed, BedError> {
    let name = plimsoll_target::testbed::name_of(target).unwrap_or_default();
    TestBed::find(&Store::of_user()?, name)
}

/// Whether a fault can happen to the test bed of a target.
///
/// # Errors
/// A sentence if it is none, or applies to no node.
pub fn check(target: &str, fault: &str) -> Result<(), String> {
    let fault: Fault = fault.parse()?;
    bed(target)
        .and_then(|bed| bed.fault(&fault, true))
        .map_err(|e| e.to_string())
}

/// Executes faults of a test bed, and commands.
struct BedExecutor {
    bed: Arc<TestBed>,
    shell: ShellExecutor,
}

impl EventExecutor for BedExecutor {
    fn execute(&self, action: &Action, stopped: &dyn Fn() -> bool) -> Execution {
        let Action::Fault(fault) = action else {
            return self.shell.execute(action, stopped);
        };
        let fault: Fault = fault.parse().expect("it was checked before the run");
        let (bed, (sender, done)) = (self.bed.clone(), channel());
        // A restart takes until the node is ready, which the end of a run does not wait for.
        std::thread::spawn(move || sender.send(bed.fault(&fault, false)));
        loop {
            match done.recv_timeout(STOP_POLL_INTERVAL) {
                Ok(Ok(())) => return Execution::default(),
                Ok(Err(e)) => return Execution::failed(e),
                Err(RecvTimeoutError::Timeout) if !stopped() => {}
                Err(_) => {
                    return Execution {
                        timed_out: true,
                        ..Execution::default()
                    };
                }
            }
        }
    }
}

/// The executor of a target's events.
///
/// # Errors
/// If the target is a test bed that is not up any more.
pub fn executor(target: &str, shell: ShellExecutor) -> Result<Box<dyn EventExecutor>, BedError> {
    Ok(match plimsoll_target::testbed::name_of(target) {
        Some(_) => Box::new(BedExecutor {
            bed: Arc::new(bed(target)?),
            shell,
        }),
        None => Box::new(shell),
    })
}
