//! Processes of this machine, by which a directory knows its owner.

use crate::simulation;

/// The number of this process; in a simulation that of the simulated process.
#[must_use]
pub fn process_id() -> u32 {
    let Some(thread) = simulation::current() else {
        return std::process::id();
    };
    u32::try_from(thread.process()).expect("a simulation has few processes")
}

/// When a process started, which tells it from a later one of the same number: field 22 of `/proc/PID/stat`, in clock
/// ticks since the machine did. `None` if no process has the number.
#[must_use]
pub fn process_start(number: u32) -> Option<u64> {
    if let Some(thread) = simulation::current() {
        // Numbers of simulated processes are not used again.
        return thread.is_alive(number as usize).then_some(1);
    }
    let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    // The name before it may hold spaces, so it is counted from the closing parenthesis.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}
