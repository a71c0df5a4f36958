//! Pool of child processes, each with one task.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval at which a wait for the end of a process checks for a stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of concurrent processes for the value of `--jobs`; 0 selects the number of available processors.
#[must_use]
pub fn process_count(jobs: usize) -> NonZeroUsize {
    let processors = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(jobs).unwrap_or_else(processors)
}

/// Child processes, each with the number of its task; at most `limit` at a time.
///
/// The standard input of each child is a pipe. The pool closes the pipe to end the child early, and the kernel closes
/// the pipe when this process ends; a child stops at the end of its input. Standard output and error are collected
/// until the child ends.
pub struct ProcessPool {
    limit: usize,
    /// Standard input of each running process, by task number; `None` after a request to end.
    running: BTreeMap<u64, Option<ChildStdin>>,
    sender: Sender<(u64, io::Result<Output>)>,
    ended: Receiver<(u64, io::Result<Output>)>,
}

/// A child process that has ended.
pub struct EndedProcess {
    /// Number of the process's task, as given to [`ProcessPool::start`].
    pub task: u64,
    /// Exit status, standard output and standard error of the process, or the system's error of waiting for the
    /// process.
    pub output: io::Result<Output>,
    /// Whether the pool asked the process to end early, by closing its standard input.
    pub was_stopped: bool,
}

impl ProcessPool {
    /// A pool of at most `limit` concurrent processes, none of which is running.
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

    /// Whether fewer processes than the limit are running, so that another process can be started.
    pub fn has_room(&self) -> bool {
        self.running.len() < self.limit
    }

    /// Starts a process for a task.
    ///
    /// # Errors
    /// The system's error if the process cannot be started.
    pub fn start(&mut self, task: u64, command: &mut Command) -> io::Result<()> {
        assert!(self.has_room(), "processes are started as there is room");
        // The waiting thread starts before the child, so that no child exists without a thread that reaps the child.
        let (give, started) = channel::<Child>();
        let sender = self.sender.clone();
        let wait = move || {
            if let Ok(child) = started.recv() {
                // The pool may have been dropped, and the receiver with the pool.
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

    /// Asks the processes of all tasks with a greater number to end early.
    pub fn stop_above(&mut self, task: u64) {
        for (_, input) in self.running.range_mut(task.saturating_add(1)..) {
            drop(input.take());
        }
    }

    /// Asks all processes to end early, by closing their standard input; the processes still appear as ended.
    pub fn stop_all(&mut self) {
        for input in self.running.values_mut() {
            drop(input.take());
        }
    }

    /// Waits for the next process to end; `None` if no process is running. Polls `is_stopped` during the wait, and asks
    /// all processes to end early once `is_stopped` returns true.
    pub fn next_ended(&mut self, is_stopped: impl Fn() -> bool) -> Option<EndedProcess> {
        while !self.running.is_empty() {
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

/// Description of a process that ended without a report: exit code or signal, and last line of standard error.
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
        // The process `cat` runs until the pool closes its standard input.
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
        // A process that could not be started must not count as running.
        let missing = pool.start(11, &mut Command::new("/nonexistent/program"));
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(pool.next_ended(|| false).is_none());
    }
}
