//! Programs of the user that are informed of the phases of each load point, to start and stop
//! monitoring of the system under test.

use plimsoll_engine::{CommandEnd, Limits, Stop, run_command};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum duration of a call.
const MONITOR_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum duration of a call once the user has requested the end.
const MONITOR_STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Phases of a load point of which a monitor is informed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MonitorPhase {
    /// Before the files are created.
    Init,
    /// The load has begun.
    Warm,
    /// The measured window opens.
    Run,
    /// The point is over.
    End,
}

impl MonitorPhase {
    fn name(self) -> &'static str {
        match self {
            Self::Init => "INIT",
            Self::Warm => "WARM",
            Self::Run => "RUN",
            Self::End => "END",
        }
    }
}

/// A program that is called with workload, load and phase, one call after the other.
pub struct Monitor {
    calls: Option<Sender<(u64, MonitorPhase)>>,
    /// The error of each call, if it has one.
    answers: Receiver<Option<String>>,
    pending: usize,
    notes: Vec<String>,
    thread: Option<JoinHandle<()>>,
}

impl Monitor {
    /// A monitor of this program; nothing is called yet.
    ///
    /// # Errors
    /// A sentence if there is no such program.
    pub fn new(program: &Path, workload: &str, stop: &Stop) -> Result<Self, String> {
        Self::check(program)?;
        let caller = MonitorThread {
            program: program.to_owned(),
            workload: workload.to_owned(),
            stop: stop.clone(),
            limit: MONITOR_CALL_TIMEOUT,
        };
        let (calls, queue) = channel::<(u64, MonitorPhase)>();
        let (answer, answers) = channel();
        let thread = std::thread::Builder::new().name("monitor".into());
        let thread = thread.spawn(move || {
            for (load, phase) in queue {
                if answer.send(caller.call(load, phase)).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            calls: Some(calls),
            answers,
            pending: 0,
            notes: vec![],
            thread: Some(thread.map_err(|e| format!("cannot start a thread: {e}"))?),
        })
    }

    /// Checks that the program exists and is executable.
    ///
    /// # Errors
    /// A sentence if it does not, or is not.
    pub fn check(program: &Path) -> Result<(), String> {
        let shown = program.display();
        let meta = std::fs::metadata(program)
            .map_err(|e| format!("cannot use the monitor {shown}: {e}"))?;
        match meta.is_file() && meta.permissions().mode() & 0o111 != 0 {
            true => Ok(()),
            false => Err(format!(
                "the monitor {shown} is not a program: it must be an executable file (`chmod +x`)"
            )),
        }
    }

    /// Queues a call of the program, without waiting for it.
    pub fn notify(&mut self, load: u64, phase: MonitorPhase) {
        let sent = self.calls.as_ref().map(|c| c.send((load, phase)));
        self.pending += usize::from(matches!(sent, Some(Ok(()))));
    }

    /// Queues a call of the program and waits until all its calls have ended.
    pub fn notify_and_wait(&mut self, load: u64, phase: MonitorPhase) {
        self.notify(load, phase);
        while self.pending > 0 {
            self.pending -= 1;
            self.notes.extend(self.answers.recv().ok().flatten());
        }
    }

    /// The errors of calls since this was last called.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread that makes the calls.
struct MonitorThread {
    program: PathBuf,
    workload: String,
    stop: Stop,
    limit: Duration,
}

impl MonitorThread {
    /// Calls the program; returns the error, if there is one.
    fn call(&self, load: u64, phase: MonitorPhase) -> Option<String> {
        let wrong = self.run(load, phase).err()?;
        Some(format!(
            "load {load}: the monitor {wrong} at {}",
            phase.name()
        ))
    }

    fn run(&self, load: u64, phase: MonitorPhase) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command
            .arg(&self.workload)
            .arg(load.to_string())
            .arg(phase.name())
            .stdin(Stdio::null())
            // Standard output belongs to the report.
            .stdout(std::io::stderr());
        let limits = Limits {
            time: Some(self.limit),
            time_once_stopped: MONITOR_STOP_TIMEOUT,
        };
        match run_command(&mut command, limits, &|| self.stop.is_requested()) {
            Ok(CommandEnd::Ended(status)) if status.success() => Ok(()),
            Ok(CommandEnd::Ended(status)) => Err(format!("ended with {status}")),
            Ok(CommandEnd::TimedOut(limit)) => {
                Err(format!("was ended after {} s", limit.as_secs()))
            }
            Err(e) => Err(format!("could not be called ({e})")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(dir: &Path, script: &str, limit: Duration) -> MonitorThread {
        let program = dir.join("monitor");
        // Another process writes it: a child that a test beside this one has just forked would hold
        // the file open for writing, and then it cannot be executed.
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
        let written = std::process::Command::new("sh")
            .args(["-c", write, "sh", script])
            .arg(&program)
            .status();
        assert!(written.unwrap().success());
        MonitorThread {
            program,
            workload: "users".into(),
            stop: Stop::default(),
            limit,
        }
    }

    #[test]
    fn a_call_says_workload_load_and_phase() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let script = format!("echo \"$# $*\" > {}", log.display());
        let caller = caller(dir.path(), &script, MONITOR_CALL_TIMEOUT);
        assert_eq!(caller.call(7, MonitorPhase::Init), None);
        assert_eq!(std::fs::read_to_string(log).unwrap(), "3 users 7 INIT\n");
    }

    #[test]
    fn a_call_that_hangs_is_ended_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", pid.display());
        let mut caller = caller(dir.path(), &script, Duration::from_secs(2));
        let note = caller.call(7, MonitorPhase::Warm).unwrap();
        assert_eq!(note, "load 7: the monitor was ended after 2 s at WARM");
        let pid = std::fs::read_to_string(pid).unwrap();
        let gone = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
            // A zombie that has not been reaped yet.
            stat.map_or(true, |s| s.contains(") Z "))
        };
        while !gone(&pid) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // At the end of a curve it has less time.
        caller.limit = Duration::from_secs(3600);
        caller.stop.request();
        let note = caller.call(7, MonitorPhase::End).unwrap();
        assert_eq!(note, "load 7: the monitor was ended after 2 s at END");
    }

    #[test]
    fn a_call_that_fails_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let caller = caller(dir.path(), "exit 3", MONITOR_CALL_TIMEOUT);
        let note = caller.call(2, MonitorPhase::Run).unwrap();
        assert_eq!(note, "load 2: the monitor ended with exit status: 3 at RUN");
        std::fs::remove_file(&caller.program).unwrap();
        let note = caller.call(2, MonitorPhase::Run).unwrap();
        assert!(note.contains("could not be called (No such file"), "{note}");
    }

    #[test]
    fn calls_are_made_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let script = format!("echo $3 >> {}; [ $3 != WARM ] || exit 1", log.display());
        let program = caller(dir.path(), &script, MONITOR_CALL_TIMEOUT).program;
        let mut monitor = Monitor::new(&program, "users", &Stop::default()).unwrap();
        monitor.notify_and_wait(1, MonitorPhase::Init);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "INIT\n");
        assert_eq!(monitor.take_notes(), [""; 0]);
        monitor.notify(1, MonitorPhase::Warm);
        monitor.notify(1, MonitorPhase::Run);
        monitor.notify_and_wait(1, MonitorPhase::End);
        let said = std::fs::read_to_string(&log).unwrap();
        assert_eq!(said, "INIT\nWARM\nRUN\nEND\n");
        assert_eq!(monitor.take_notes().len(), 1);
        assert!(Monitor::new(dir.path(), "users", &Stop::default()).is_err());
    }
}
