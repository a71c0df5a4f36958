//! Signals that end a run in order, with results.

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};

/// Signals that announce that the program will be ended, perhaps again and again: a terminal is closed, the time of a
/// job is nearly over, or the limit on processor time is reached.
pub const NOTICES: [i32; 5] = [SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU];

/// Whether a signal ends a run in order, as Ctrl-C does.
#[must_use]
pub fn ends_a_run(signal: i32) -> bool {
    [SIGINT, SIGTERM].contains(&signal) || NOTICES.contains(&signal)
}
