//! Programs of the user that are told of the phases of each load point, to start and stop what
//! watches the system under test.

use plimsoll_engine::{Event, Observer, Stop};
use rustix::process::{Pid, Signal};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest that a call may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The same once the user has asked for the end.
const LIMIT_AT_THE_END: Duration = Duration::from_secs(2);

/// How often a call is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Phases of a load point that a monitor is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the files are made.
    Init,
    /// The load has begun.
    Warm,
    /// The measured window opens.
    Run,
    /// The point is over.
    End,
}

impl Phase {
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
    calls: Option<Sender<(u64, Phase)>>,
    /// What is wrong with a call, or nothing; one answer a call.
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
        let shown = program.display();
        let meta = std::fs::metadata(program)
            .map_err(|e| format!("cannot use the monitor {shown}: {e}"))?;
        if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
            return Err(format!(
                "the monitor {shown} is no program: it must be a file that may be executed \
                 (`chmod +x`)"
            ));
        }
        let caller = Caller {
            program: program.to_owned(),
            workload: workload.to_owned(),
            stop: stop.clone(),
        };
        let (calls, queue) = channel::<(u64, Phase)>();
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

    /// Has the program called; does not wait for it.
    pub fn tell(&mut self, load: u64, phase: Phase) {
        let sent = self.calls.as_ref().map(|c| c.send((load, phase)));
        self.pending += usize::from(matches!(sent, Some(Ok(()))));
    }

    /// Has the program called, and waits until all its calls have ended.
    pub fn tell_and_wait(&mut self, load: u64, phase: Phase) {
        self.tell(load, phase);
        while self.pending > 0 {
            self.pending -= 1;
            self.notes.extend(self.answers.recv().ok().flatten());
        }
    }

    /// What went wrong with calls since this was last asked.
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

/// What the thread that calls knows.
struct Caller {
    program: PathBuf,
    workload: String,
    stop: Stop,
}

impl Caller {
    /// Calls the program; says what went wrong.
    fn call(&self, load: u64, phase: Phase) -> Option<String> {
        let wrong = self.run(load, phase).err()?;
        Some(format!(
            "load {load}: the monitor {wrong} at {}",
            phase.name()
        ))
    }

    fn run(&self, load: u64, phase: Phase) -> Result<(), String> {
        let mut child = Command::new(&self.program)
            .arg(&self.workload)
            .arg(load.to_string())
            .arg(phase.name())
            .stdin(Stdio::null())
            // Standard output belongs to the report.
            .stdout(std::io::stderr())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("could not be called ({e})"))?;
        let begun = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("ended with {status}")),
                Ok(None) => {}
                Err(e) => return Err(format!("could not be waited for ({e})")),
            }
            let limit = match self.stop.is_requested() {
                true => LIMIT_AT_THE_END,
                false => LIMIT,
            };
            if begun.elapsed() >= limit {
                if let Some(group) = Pid::from_raw(child.id() as i32) {
                    // What it started ends with it.
                    let _ = rustix::process::kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(format!("was ended after {} s", limit.as_secs()));
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Tells a monitor of the phases of a run, and another observer of everything.
pub struct Watched<'a, O> {
    /// Is told of everything.
    pub observer: &'a mut O,
    /// The monitor, if there is one.
    pub monitor: Option<&'a mut Monitor>,
    /// The load of the point.
    pub load: u64,
}

impl<O: Observer> Observer for Watched<'_, O> {
    fn event(&mut self, event: Event<'_>) {
        let phase = match &event {
            Event::Started { .. } => Some(Phase::Warm),
            Event::WindowOpened { .. } => Some(Phase::Run),
            _ => None,
        };
        if let (Some(phase), Some(monitor)) = (phase, &mut self.monitor) {
            monitor.tell(self.load, phase);
        }
        self.observer.event(event);
    }
}
