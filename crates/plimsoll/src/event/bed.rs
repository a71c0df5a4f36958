//! Faults of test beds as actions of events.

use super::executor::Execution;
use super::{Action, EventExecutor, ShellExecutor};
use plimsoll_testbed::{BedError, Fault, Store, TestBed};

/// The bed of a target.
fn bed(target: &str) -> Result<TestBed, BedError> {
    let name = plimsoll_target::testbed::name_of(target).unwrap_or_default();
    TestBed::find(&Store::of_user()?, name)
}

/// Whether a fault can happen to the test bed of a target.
///
/// # Errors
/// A sentence if it is none, or applies to no node.
pub(super) fn check(target: &str, fault: &str) -> Result<(), String> {
    let fault: Fault = fault.parse()?;
    bed(target)
        .and_then(|bed| bed.fault(&fault, true))
        .map_err(|e| e.to_string())
}

/// Executes faults of a test bed, and commands.
struct BedExecutor {
    bed: TestBed,
    shell: ShellExecutor,
}

impl EventExecutor for BedExecutor {
    fn execute(&self, action: &Action, stopped: &dyn Fn() -> bool) -> Execution {
        let Action::Fault(fault) = action else {
            return self.shell.execute(action, stopped);
        };
        let fault: Fault = fault.parse().expect("it was checked before the run");
        match self.bed.fault(&fault, false) {
            Ok(()) => Execution::default(),
            Err(e) => Execution::failed(e),
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
            bed: bed(target)?,
            shell,
        }),
        None => Box::new(shell),
    })
}
