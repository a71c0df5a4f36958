//! Ctrl-C: once ends the run, twice leaves its files, three times ends the program.

use crate::exit::Exit;
use plimsoll_engine::Stop;
use plimsoll_report::console;
use plimsoll_runtime::signals::{NOTICES, heeded_notices};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Maximum time for which a program that ends immediately waits for results that are being written.
const RESULTS_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time for which a process that another one started still runs once that one has closed its
/// standard input.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time for which a command that is interrupted waits until its file is removed.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which it checks whether that is done.
const WRITE_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// State of the program, for the messages of interrupts.
#[derive(Debug, Clone, Default)]
struct InterruptStatus {
    /// The directory of the results, complete or not.
    results: Option<PathBuf>,
    /// They are complete.
    are_written: bool,
    /// Files are being removed.
    removes: bool,
    /// The command that removes files that are left.
    clean: Option<String>,
    /// A fit is made, which keeps its trials.
    fits: bool,
}

static STATUS: Mutex<InterruptStatus> = Mutex::new(InterruptStatus {
    results: None,
    are_written: false,
    removes: false,
    clean: None,
    fits: false,
});

/// Taken for good by the thread that ends the program, the main thread or that of a third interrupt;
/// the first of them chooses the exit code.
static END: Mutex<()> = Mutex::new(());

/// Held while results are written.
static RESULTS_LOCK: Mutex<()> = Mutex::new(());

fn status() -> MutexGuard<'static, InterruptStatus> {
    lock(&STATUS)
}

/// Notes the start of a run with results in this directory; the command `clean` removes its files.
pub fn note_run_begin(results: &Path, clean: Option<String>) {
    *status() = InterruptStatus {
        results: Some(results.to_owned()),
        clean,
        ..InterruptStatus::default()
    };
}

/// Keeps the program from ending until the guard is dropped, because results are being written.
pub fn hold_results() -> MutexGuard<'static, ()> {
    lock(&RESULTS_LOCK)
}

/// Notes that the results are complete.
pub fn note_results_written(results: &Path) {
    let mut status = status();
    (status.results, status.are_written) = (Some(results.to_owned()), true);
}

/// Notes that there will be no results.
pub fn note_results_lost() {
    status().results = None;
}

/// Marks that the main thread ends the program: a third interrupt has no effect from now on, and an
/// earlier one ends the program instead.
pub fn ends() {
    let mut now = status();
    if !now.are_written {
        // There are no results to wait for.
        now.results = None;
    }
    drop(now);
    take_end();
}

fn take_end() {
    std::mem::forget(lock(&END));
}

/// Notes whether files are being removed.
pub fn note_removal(now: bool) {
    status().removes = now;
}

/// Notes the command that removes files that are left.
pub fn cleans_by(command: Option<String>) {
    status().clean = command;
}

/// Notes that a fit begins, which has no results and no files, and is resumed by the same command.
pub fn note_fit() {
    status().fits = true;
}

/// Makes the first SIGINT, SIGTERM or [notice](NOTICES) stop the run; a second SIGINT or SIGTERM leaves
/// the files in place, and a third ends the program immediately. No signal loses results.
///
/// A notice after the first signal has no effect, because the system repeats notices: the shell and the
/// kernel each send SIGHUP when a terminal closes, and the limit on processor time sends SIGXCPU every
/// second. Counted as a second signal, a repeated notice would leave the files in place.
///
/// SIGXFSZ would end the program where a limit on the size of files is reached; caught, it leaves
/// the operation to fail with EFBIG, like any other.
///
/// Messages are printed if `speaks`, which is so in one of the processes that run a Plan together.
///
/// # Errors
/// The system's error if signals cannot be caught.
pub fn stop_on_interrupt(stop: &Stop, speaks: bool) -> io::Result<()> {
    let signals = [SIGINT, SIGTERM, SIGXFSZ].into_iter();
    let mut signals = Signals::new(signals.chain(heeded_notices()))?;
    let stop = stop.clone();
    let say = move |line: &str| {
        if speaks {
            console::err(&format!("\n{line}\n"));
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut interrupts = 0;
            for signal in signals.forever().filter(|s| *s != SIGXFSZ) {
                interrupts += match signal {
                    notice if NOTICES.contains(&notice) && interrupts > 0 => continue,
                    _ => 1,
                };
                let now = status().clone();
                match interrupts {
                    1 => {
                        stop.request();
                        say(first_interrupt_message(&now));
                    }
                    2 => {
                        stop.skip_removal();
                        plimsoll_engine::kill_commands();
                        say(&second_interrupt_message(&now));
                    }
                    _ => {
                        take_end();
                        plimsoll_engine::kill_commands();
                        let now = status().clone();
                        if !now.are_written && !now.fits {
                            say("interrupted a third time: the program ends once the results so far are written");
                        }
                        await_results();
                        plimsoll_report::live_screen::leave();
                        say(&last_interrupt_message(&status()));
                        std::process::exit(Exit::Interrupted as i32);
                    }
                }
            }
        })
        .map(|_| ())
}

/// Makes the end of the standard input stop the run; the input ends when the parent process closes the
/// input or exits. Interrupts of the terminal have no effect, because the parent receives the same
/// interrupt. SIGTERM and the other notices also stop the run: a signal to a process group reaches each
/// process, and each process has its own limit on processor time.
///
/// # Errors
/// The system's error if signals cannot be caught.
pub fn stop_at_end_of_input(stop: &Stop) -> io::Result<()> {
    for signal in [SIGINT, SIGHUP, SIGXFSZ] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let notices = heeded_notices().filter(|signal| *signal != SIGHUP);
    let mut signals = Signals::new([SIGTERM].into_iter().chain(notices))?;
    let terminated = stop.clone();
    let await_term = move || signals.forever().for_each(|_| terminated.request());
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(await_term)?;
    let stop = stop.clone();
    let watch = move || {
        // An input that cannot be read has ended too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.request();
        std::thread::sleep(ORPHAN_TIMEOUT);
        take_end();
        std::process::exit(Exit::Interrupted as i32);
    };
    let thread = std::thread::Builder::new().name("input".into());
    thread.spawn(watch).map(|_| ())
}

/// Waits until the results are written, for at most [`RESULTS_WRITE_TIMEOUT`].
fn await_results() {
    let begun = Instant::now();
    while begun.elapsed() < RESULTS_WRITE_TIMEOUT {
        let now = status().clone();
        let are_due = now.results.is_some() && !now.are_written;
        match RESULTS_LOCK.try_lock() {
            // Held until the program has ended.
            Ok(guard) if !are_due => return std::mem::forget(guard),
            Err(TryLockError::Poisoned(_)) => return,
            Ok(_) | Err(TryLockError::WouldBlock) => {}
        }
        std::thread::sleep(WRITE_POLL_INTERVAL);
    }
}

/// The message of the first interrupt.
fn first_interrupt_message(now: &InterruptStatus) -> &'static str {
    match (now.removes, now.are_written) {
        _ if now.fits => {
            "interrupted: the fit ends, and its trials are kept; interrupt twice more to end immediately"
        }
        (true, true) => {
            "interrupted: the results are written, and the files are being removed; interrupt \
             again to leave them where they are, a third time to end immediately"
        }
        (true, false) => {
            "interrupted: the files are being removed; interrupt again to leave them where they \
             are, a third time to end immediately"
        }
        (false, _) => {
            "interrupted: the run ends with what it has measured, and its files are removed; \
             interrupt again to leave them where they are, a third time to end immediately"
        }
    }
}

/// The message of the second interrupt.
fn second_interrupt_message(now: &InterruptStatus) -> String {
    if now.fits {
        return "interrupted again: the fit ends; interrupt once more to end immediately".into();
    }
    let later = match &now.clean {
        Some(command) => format!("; {command} removes them"),
        None => String::new(),
    };
    let what = match now.removes {
        true => "the rest of the files is left where it is",
        false => "the run ends with what it has measured, and its files are left where they are",
    };
    format!("interrupted again: {what}{later}; interrupt once more to end immediately")
}

/// The message of the last interrupt.
fn last_interrupt_message(now: &InterruptStatus) -> String {
    let mut text = "ended".to_owned();
    if now.fits {
        text += "; the same command resumes the fit";
    }
    if let Some(results) = &now.results {
        let shown = results.display();
        text += &match now.are_written {
            true => format!("; the results are in {shown}"),
            false => format!("; `plimsoll report --recover {shown}` recovers its results"),
        };
    }
    if let Some(command) = &now.clean {
        text += &format!("; {command} removes files that are left");
    }
    text
}

/// Makes SIGINT, SIGTERM and [notices](NOTICES) remove the file, if one is set, and end the program. Only for commands
/// without runs.
///
/// # Errors
/// The system's error if signals cannot be caught.
pub fn remove_on_interrupt(file: Arc<Mutex<Option<PathBuf>>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(heeded_notices()))?;
    let work = move || {
        if signals.forever().next().is_some() {
            // The file system may hang, in which the file is being created or removed.
            let removal = std::thread::spawn(move || {
                if let Some(path) = lock(&file).take() {
                    // It may have been removed this instant.
                    let _ = std::fs::remove_file(path);
                }
            });
            let begin = Instant::now();
            while !removal.is_finished() && begin.elapsed() < REMOVAL_TIMEOUT {
                std::thread::sleep(WRITE_POLL_INTERVAL);
            }
            take_end();
            std::process::exit(Exit::Interrupted as i32);
        }
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(work)
        .map(drop)
}

/// Locks what a thread that panicked may have left locked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
