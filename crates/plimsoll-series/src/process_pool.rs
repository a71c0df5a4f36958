//! Copies of the program that work at the same time, each on a task of its own.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval at which a wait for the end of a process calls back.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The number of processes for `--jobs`, of which 0 stands for the number of processors.
#[must_use]
pub fn process_count(jobs: usize) -> NonZeroUsize {
    let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(jobs).unwrap_or_else(processors)
}

/// Processes, each with the number of its task; at most `limit` at a time.
///
/// The standard input of each is a pipe that is closed to end it early, and by the system when this
/// process is gone: a copy stops at the end of its input. Its
/// output is collected until it ends.
pub struct ProcessPool {
    limit: usize,
    /// Inputs of the processes that run; none of one that was asked to end.
    running: BTreeMap<u64, Option<ChildStdin>>,
    sender: Sender<(u64, io::Result<Output>)>,
    ended: Receiver<(u64, io::Result<Output>)>,
}

/// A process that has ended.
pub struct EndedProcess {
    /// Number of its task.
    pub task: u64,
    /// How it ended and its output, or why that is not known.
    pub output: io::Result<Output>,
    /// Whether it was asked to end early.
    pub was_stopped: bool,
}

impl ProcessPool {
    /// A pool without processes.
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0, "a pool without processes does nothing");
        let (sender, ended) = channel();
        Self {
            limit,
            running: BTreeMap::new(),
            sender,
            ended,
        }
    }

    /// Whether another process may be started.
    pub fn has_room(&self) -> bool {
        self.running.len() < self.limit
    }

    /// Whether no process runs.
    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Starts a process for a task.
    ///
    /// # Errors
    /// The system's error if the process cannot be started.
    pub fn start(&mut self, task: u64, command: &mut Command) -> io::Result<()> {
        assert!(self.has_room(), "processes are started as there is room");
        // The thread comes first: without it no process is started that none would wait for.
        let (give, started) = channel::<Child>();
        let sender = self.sender.clone();
        let wait = move || {
            if let Ok(child) = started.recv() {
                // The pool may be gone, and with it everyone who wants to know.
                let _ = sender.send((task, child.wait_with_output()));
            }
        };
        let thread = std::thread::Builder::new().name(format!("task {task}"));
        thread.spawn(wait)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        let before = self.running.insert(task, input);
        assert!(before.is_none(), "a task has one process");
        give.send(child).expect("the thread waits for the process");
        Ok(())
    }

    /// Asks the processes of tasks above this one to end early.
    pub fn stop_above(&mut self, task: u64) {
        for (_, input) in self.running.range_mut(task.saturating_add(1)..) {
            drop(input.take());
        }
    }

    /// Asks all processes to end early.
    pub fn stop_all(&mut self) {
        for input in self.running.values_mut() {
            drop(input.take());
        }
    }

    /// Waits for the next process that ends; `None` if none runs. While it waits it asks `is_stopped`
    /// now and then whether all are to end early.
    pub fn next_ended(&mut self, is_stopped: impl Fn() -> bool) -> Option<EndedProcess> {
        while !self.is_idle() {
            if is_stopped() {
                self.stop_all();
            }
            match self.ended.recv_timeout(POLL_INTERVAL) {
                Ok((task, output)) => {
                    let input = self.running.remove(&task);
                    let input = input.expect("a process that ends was started");
                    return Some(EndedProcess {
                        task,
                        output,
                        was_stopped: input.is_none(),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the pool has a sender"),
            }
        }
        None
    }
}

/// How a process ended that reported nothing: its exit code or signal, and the last line it wrote to
/// standard error.
pub fn describe_end(output: &io::Result<Output>) -> String {
    let output = match output {
        Ok(output) => output,
        Err(e) => return format!("was lost: {e}"),
    };
    let how = match (output.status.code(), output.status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("died (signal {signal})"),
        (None, None) => format!("ended ({})", output.status),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    match errors.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how}; its last line: {}", line.trim()),
        None => how,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn processes_end_with_their_output_or_when_they_are_asked_to() {
        let mut pool = ProcessPool::new(2);
        pool.start(
            7,
            &mut shell("echo done; echo first >&2; echo last >&2; exit 3"),
        )
        .unwrap();
        // Until its input ends.
        pool.start(8, &mut shell("cat > /dev/null")).unwrap();
        assert!(!pool.has_room());
        let first = pool.next_ended(|| false).unwrap();
        assert_eq!((first.task, first.was_stopped), (7, false));
        assert_eq!(first.output.as_ref().unwrap().stdout, b"done\n");
        let text = describe_end(&first.output);
        assert_eq!(text, "ended with exit code 3; its last line: last");
        pool.stop_above(7);
        let second = pool.next_ended(|| false).unwrap();
        assert_eq!((second.task, second.was_stopped), (8, true));
        assert!(pool.next_ended(|| false).is_none());
        pool.start(9, &mut shell("kill -KILL $$")).unwrap();
        pool.start(10, &mut shell("cat > /dev/null")).unwrap();
        let killed = pool.next_ended(|| false).unwrap();
        assert_eq!(describe_end(&killed.output), "died (signal 9)");
        assert!(pool.next_ended(|| true).is_some_and(|e| e.was_stopped));
        // A process that cannot be started takes no room.
        let missing = pool.start(11, &mut Command::new("/nonexistent/program"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(pool.is_idle() && pool.next_ended(|| false).is_none());
    }
}
