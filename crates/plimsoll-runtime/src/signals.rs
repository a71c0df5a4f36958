//! Signals that end a run in order, and ignored signals.

use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};

/// Signals that announce the end of the program, possibly repeatedly: a terminal is closed, the time limit of a job is
/// near, or the limit of processor time is reached.
pub const NOTICES: [i32; 5] = [SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU];

/// Whether a signal ends a run in order, as Ctrl-C does.
#[must_use]
pub fn ends_a_run(signal: i32) -> bool {
    [SIGINT, SIGTERM].contains(&signal) || NOTICES.contains(&signal)
}

/// The [`NOTICES`] that are not ignored: a signal that `nohup` or a shell's `trap` ignores stays ignored.
pub fn heeded_notices() -> impl Iterator<Item = i32> {
    NOTICES.into_iter().filter(|signal| !is_ignored(*signal))
}

/// Whether a signal is ignored. Before a handler is installed, the parent process has determined which signals are
/// ignored, and the program respects the parent's choice.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored_in(&status, signal)
}

/// Reads `SigIgn` of `/proc/PID/status` (proc_pid_status(5)): signal N is bit N - 1.
fn ignored_in(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000004001\n";
        assert!(ignored_in(status, SIGHUP) && ignored_in(status, SIGTERM));
        assert!(!ignored_in(status, SIGINT));
        assert!(!ignored_in("", SIGHUP));
    }
}
