//! Starts ranks and observes how the ranks end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time after which a group of ranks counts as hung; far longer than any scenario takes.
const HANGS: Duration = Duration::from_secs(100);

/// Result of a group of ranks that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Exit status of the process that the test started.
    pub status: ExitStatus,
    /// Lines that ranks wrote to their standard output.
    pub out: Vec<String>,
    /// Lines that ranks wrote to their standard error, sorted.
    pub err: Vec<String>,
}

impl Ended {
    /// Results that ranks of the test program reported on standard error (lines with the prefix `told: `), sorted.
    pub fn told(&self) -> Vec<&str> {
        let told = self.err.iter().filter_map(|l| l.strip_prefix("told: "));
        told.collect()
    }

    /// Asserts that the process succeeded, and that a rank printed `ok`.
    pub fn assert_ok(&self) {
        assert!(self.status.success(), "{self:?}");
        assert!(self.out.iter().any(|l| l == "ok"), "{self:?}");
    }

    /// Asserts that every rank of `size` ranks, except the ranks in `without`, reported `what`, and that no other rank
    /// reported.
    pub fn assert_all_told(&self, size: u32, without: &[u32], what: &str) {
        let ranks = (0..size).filter(|rank| !without.contains(rank));
        let expected: Vec<_> = ranks.map(|rank| format!("{rank}: {what}")).collect();
        assert_eq!(self.told(), expected, "{self:?}");
    }
}

/// A running group of ranks.
pub struct Running {
    pub child: Child,
    out: Stream,
    err: Stream,
}

/// Output read from a pipe so far, and the reading thread.
struct Stream {
    come: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Starts a command.
pub fn start(mut command: Command) -> Running {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start {:?}: {e}", command.get_program()));
    let out = Stream::read(child.stdout.take().unwrap());
    let err = Stream::read(child.stderr.take().unwrap());
    Running { child, out, err }
}

impl Stream {
    fn read(mut pipe: impl Read + Send + 'static) -> Self {
        let come = Arc::new(Mutex::new(Vec::new()));
        let into = come.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                let got = pipe.read(&mut bytes).unwrap();
                if got == 0 {
                    break;
                }
                into.lock().unwrap().extend(&bytes[..got]);
            }
        });
        Self { come, reader }
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.come.lock().unwrap()).into_owned();
        text.lines().map(String::from).collect()
    }
}

impl Running {
    /// Waits until the process has ended, and all processes that hold its output open.
    pub fn end(mut self) -> Ended {
        let begin = Instant::now();
        let mut status = None;
        while status.is_none() || !self.out.reader.is_finished() || !self.err.reader.is_finished() {
            status = status.or(self.child.try_wait().unwrap());
            if begin.elapsed() > HANGS {
                // Copies end with their parent, and a launcher ends the processes that it started.
                let _ = self.child.kill();
                let said = (self.out.lines(), self.err.lines());
                panic!("the ranks hang or are left behind ({status:?}); they said {said:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut err = self.err.lines();
        err.sort();
        Ended {
            status: status.unwrap(),
            out: self.out.lines(),
            err,
        }
    }
}
