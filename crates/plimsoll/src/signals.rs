//! Ctrl-C: once ends the run with its results, twice ends the program.

use crate::console;
use crate::exit::Exit;
use plimsoll_engine::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io;

/// Makes the first SIGINT, SIGTERM or SIGHUP stop the run, and a second SIGINT or SIGTERM end
/// the program at once.
///
/// SIGHUP never ends the program at once: a terminal that is closed may send it twice, once by
/// the shell and once by the system, and the files would stay. Where it is ignored (`nohup`), it
/// stays ignored.
///
/// SIGXFSZ would end the program where a limit on the size of files is reached; caught, it leaves
/// the operation to fail with EFBIG, like any other.
///
/// Of the processes that run a Plan together only one speaks of it.
///
/// # Errors
/// What the system says if signals cannot be caught.
pub fn stop_on_interrupt(stop: &Stop, speaks: bool) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGXFSZ])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    let stop = stop.clone();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut stopping = false;
            for signal in signals.forever().filter(|s| *s != SIGXFSZ) {
                if stopping && signal != SIGHUP {
                    plimsoll_engine::kill_commands();
                    std::process::exit(Exit::Interrupted as i32);
                }
                stop.request();
                if !stopping && speaks {
                    console::err(
                        "\ninterrupted: writing what there is; once more to end at once\n",
                    );
                }
                stopping = true;
            }
        })
        .map(|_| ())
}

/// Whether whoever started the program had it ignore a signal.
fn is_ignored(signal: i32) -> bool {
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
