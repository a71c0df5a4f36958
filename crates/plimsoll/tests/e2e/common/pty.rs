//! The program on a terminal.

use super::Ended;
use nix::pty::{OpenptyResult, Winsize, openpty};
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Which streams a terminal takes; the other one is a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTerminal {
    Out,
    Err,
}

/// Variables that have a say in what a terminal is written.
pub const VARIABLES: [&str; 11] = [
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "PMI_SIZE",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_STEP_NUM_TASKS",
];

/// Runs a command with one stream on a terminal of so many columns, whose name is `xterm` unless
/// `environment` says otherwise; both streams as they were written.
pub fn ended_on_terminal(
    mut command: Command,
    which: OnTerminal,
    columns: u16,
    environment: &[(&str, &str)],
) -> Ended {
    for name in VARIABLES {
        command.env_remove(name);
    }
    command
        .env("TERM", "xterm")
        .envs(environment.iter().copied());
    let (ours, theirs) = terminal(columns);
    match which {
        OnTerminal::Out => command.stdout(theirs).stderr(Stdio::piped()),
        OnTerminal::Err => command.stderr(theirs).stdout(Stdio::piped()),
    };
    let begun = Instant::now();
    let child = command.spawn().unwrap();
    // With the command goes its end of the terminal, so that ours ends with the program.
    drop(command);
    let shown = std::thread::spawn(move || read_shown(ours));
    let mut ended = Ended::wait(child, begun);
    let shown = shown.join().unwrap();
    match which {
        OnTerminal::Out => ended.stdout = shown,
        OnTerminal::Err => ended.stderr = shown,
    }
    ended
}

/// A terminal: our end, and that of the program.
fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let size = Winsize {
        // As shells in editors say; columns are what matters.
        ws_row: 0,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
    // Programs that other tests start meanwhile are not to hold it open.
    fcntl_setfd(&master, FdFlags::CLOEXEC).unwrap();
    fcntl_setfd(&slave, FdFlags::CLOEXEC).unwrap();
    (master, slave)
}

/// What a terminal was written until its other end was closed, which reads as an error.
fn read_shown(ours: OwnedFd) -> String {
    let (mut file, mut bytes, mut piece) = (std::fs::File::from(ours), Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = file.read(&mut piece) {
        bytes.extend_from_slice(&piece[..n]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
