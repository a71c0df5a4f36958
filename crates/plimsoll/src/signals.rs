//! Interrupts (Ctrl-C): the first interrupt ends the run, the second leaves the run's files, the third ends the
//! program.

use crate::exit::{CommandError, Exit};
use plimsoll_engine::Stop;
use plimsoll_report::console;
use plimsoll_runtime::signals::{NOTICES, heeded_notices};
use plimsoll_runtime::sync::lock;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Maximum time for which a third interrupt waits until the results are written.
const RESULTS_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Grace period of a child process after the parent has closed the child's standard input.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum delay of the exit of an interrupted command until its file is removed.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval at which an interrupted command checks whether its results are complete, or its file is removed.
const WRITE_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// State of the command from which the messages of interrupts say what happens next.
#[derive(Debug, Clone, Default)]
struct InterruptStatus {
    /// Results directory of the current run, complete or not; `None` without a run, or if no results can be written.
    results: Option<PathBuf>,
    /// Whether the results of the current run are complete.
    are_written: bool,
    /// Whether the run's files are being removed.
    removes: bool,
    /// `plimsoll clean` command that removes the run's remaining files; `None` if no files remain or no command is
    /// known.
    clean: Option<String>,
    /// Whether a fit is running, which keeps its trials.
    fits: bool,
}

static STATUS: Mutex<InterruptStatus> = Mutex::new(InterruptStatus {
    results: None,
    are_written: false,
    removes: false,
    clean: None,
    fits: false,
});

/// Lock that the thread that ends the program takes and never releases: the main thread, or the thread that handles the
/// third interrupt. The first of the two threads determines the exit code.
static END: Mutex<()> = Mutex::new(());

/// Lock that [`hold_results`] takes while results are written, and that the exit after a third interrupt waits for.
static RESULTS_LOCK: Mutex<()> = Mutex::new(());

fn status() -> MutexGuard<'static, InterruptStatus> {
    lock(&STATUS)
}

/// Records the start of a run for the messages of interrupts: its results directory, and the command line `clean` that
/// removes the run's files.
pub fn note_run_begin(results: &Path, clean: Option<String>) {
    *status() = InterruptStatus {
        results: Some(results.to_owned()),
        clean,
        ..InterruptStatus::default()
    };
}

/// Delays the end of the program until the guard is dropped, because results are being written.
pub fn hold_results() -> MutexGuard<'static, ()> {
    lock(&RESULTS_LOCK)
}

/// Records that the results of the current run are complete in the directory `results`.
pub fn note_results_written(results: &Path) {
    let mut status = status();
    (status.results, status.are_written) = (Some(results.to_owned()), true);
}

/// Records that the results of the current run could not be written, so that no interrupt waits for them.
pub fn note_results_lost() {
    status().results = None;
}

/// Reserves the end of the program for the main thread and its exit code: a later third interrupt has no effect. If a
/// third interrupt came first, the function does not return, and the interrupt's thread ends the program.
pub fn ends() {
    let mut now = status();
    if !now.are_written {
        // The results of the run will not be written any more, so that a third interrupt must not wait for the results.
        now.results = None;
    }
    drop(now);
    take_end();
}

fn take_end() {
    std::mem::forget(lock(&END));
}

/// Records for the messages of interrupts whether the run's files are being removed.
pub fn note_removal(now: bool) {
    status().removes = now;
}

/// Records for the messages of interrupts the command that removes the remaining files; `None` if no files remain.
pub fn cleans_by(command: Option<String>) {
    status().clean = command;
}

/// Records for the messages of interrupts that a fit runs, which has neither results nor files: the same command
/// resumes the fit from its trials.
pub fn note_fit() {
    status().fits = true;
}

/// Makes the first SIGINT, SIGTERM or [notice](NOTICES) stop the run; a second SIGINT or SIGTERM leaves the files in
/// place, and a third signal ends the program immediately. No signal loses results.
///
/// A notice after the first signal has no effect, because the system repeats notices: the shell and the
/// kernel each send SIGHUP when a terminal closes, and the limit on processor time sends SIGXCPU every
/// second. Counted as a second signal, a repeated notice would leave the files in place.
///
/// SIGXFSZ would end the program at the file size limit. A caught SIGXFSZ lets the operation fail with EFBIG.
///
/// `speaks`: whether this process prints messages; true for one of the processes that run a Plan together.
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

/// Makes the end of the standard input stop the run; the input ends when the parent process closes the pipe or exits.
/// Terminal interrupts have no effect, because the parent receives the same interrupt. SIGTERM and the other notices
/// also stop the run: a signal to a process group reaches every process, and every process has its own limit on
/// processor time.
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
        // A read error counts as the end of the input.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        stop.request();
        std::thread::sleep(ORPHAN_TIMEOUT);
        take_end();
        std::process::exit(Exit::Interrupted as i32);
    };
    let thread = std::thread::Builder::new().name("input".into());
    thread.spawn(watch).map(|_| ())
}

/// Waits until the results are written, at most [`RESULTS_WRITE_TIMEOUT`].
fn await_results() {
    let begun = Instant::now();
    while begun.elapsed() < RESULTS_WRITE_TIMEOUT {
        let now = status().clone();
        let are_due = now.results.is_some() && !now.are_written;
        match RESULTS_LOCK.try_lock() {
            // Keep the lock until the process ends.
            Ok(guard) if !are_due => return std::mem::forget(guard),
            Err(TryLockError::Poisoned(_)) => return,
            Ok(_) | Err(TryLockError::WouldBlock) => {}
        }
        std::thread::sleep(WRITE_POLL_INTERVAL);
    }
}

/// Message of the first interrupt (Ctrl-C), which says what ends now and what further interrupts do.
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

/// Message of the second interrupt: which files stay, and which command removes them.
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

/// Message of the third interrupt, printed just before the program ends: where the results are, and which command
/// removes the remaining files.
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

/// Catches the signals that end a server: SIGINT, SIGTERM and SIGHUP.
///
/// # Errors
/// The system's error if signals cannot be caught.
pub fn of_server() -> Result<Signals, CommandError> {
    Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|e| CommandError::failed(format!("cannot catch Ctrl-C: {e}")))
}

/// Makes SIGINT, SIGTERM and [notices](NOTICES) remove the temporary file whose path `file` holds, if any, and end the
/// program. Only commands without runs, such as `systems hosts`, may call the function.
///
/// # Errors
/// The system's error if signals cannot be caught.
pub fn remove_on_interrupt(file: Arc<Mutex<Option<PathBuf>>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(heeded_notices()))?;
    let work = move || {
        if signals.forever().next().is_some() {
            // The temporary file is removed on a separate thread, because the file system may hang in the file's
            // creation or removal, and the program ends nevertheless.
            let removal = std::thread::spawn(move || {
                if let Some(path) = lock(&file).take() {
                    // The removal fails without harm if the command itself has just removed the file.
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
