//! Starts ranks and looks how they end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A group of ranks that has not ended after this long hangs. Far longer than any takes.
const HANGS: Duration = Duration::from_secs(100);

/// How a group of ranks ended.
#[derive(Debug)]
pub struct Ended {
    /// How the process ended that was started.
    pub status: ExitStatus,
    /// What ranks wrote to their standard output, by line.
    pub out: Vec<String>,
    /// What ranks wrote to their standard error, by line, sorted.
    pub err: Vec<String>,
}

impl Ended {
    /// The lines of standard error in which ranks of the test program tell a result, sorted.
    pub fn told(&self) -> Vec<&str> {
        let told = self.err.iter().filter_map(|l| l.strip_prefix("told: "));
        told.collect()
    }

    /// Checks that the group ended well, and that rank 0 said so.
    pub fn assert_ok(&self) {
        assert!(self.status.success(), "{self:?}");
        assert!(self.out.iter().any(|l| l == "ok"), "{self:?}");
    }

    /// Checks that each of `size` ranks but those of `without` told the same.
    pub fn assert_all_told(&self, size: u32, without: &[u32], what: &str) {
        let ranks = (0..size).filter(|rank| !without.contains(rank));
        let expected: Vec<_> = ranks.map(|rank| format!("{rank}: {what}")).collect();
        assert_eq!(self.told(), expected, "{self:?}");
    }
}

/// A group that runs.
pub struct Running {
    pub child: Child,
    out: Stream,
    err: Stream,
}

/// What comes out of a pipe, and the thread that reads it.
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
    /// Waits for the end: of the process, and of all that have its output open.
    pub fn end(mut self) -> Ended {
        let begin = Instant::now();
        let mut status = None;
        while status.is_none() || !self.out.reader.is_finished() || !self.err.reader.is_finished() {
            status = status.or(self.child.try_wait().unwrap());
            if begin.elapsed() > HANGS {
                // Copies end with their parent, and a launcher ends what it has started.
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
