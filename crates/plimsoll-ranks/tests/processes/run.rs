//! Starts ranks and looks how they end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
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
    out: JoinHandle<String>,
    err: JoinHandle<String>,
}

/// Starts a command.
pub fn start(mut command: Command) -> Running {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start {:?}: {e}", command.get_program()));
    let out = read(child.stdout.take().unwrap());
    let err = read(child.stderr.take().unwrap());
    Running { child, out, err }
}

fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        pipe.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    })
}

impl Running {
    /// Waits for the end: of the process, and of all that have its output open.
    pub fn end(mut self) -> Ended {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > HANGS {
                self.child.kill().unwrap();
                let (out, err) = (self.out.join(), self.err.join());
                panic!("the ranks hang; standard output {out:?}, standard error {err:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        while !(self.out.is_finished() && self.err.is_finished()) {
            assert!(begin.elapsed() < HANGS, "ranks are left behind");
            std::thread::sleep(Duration::from_millis(5));
        }
        let lines = |text: String| text.lines().map(String::from).collect::<Vec<_>>();
        let mut err = lines(self.err.join().unwrap());
        err.sort();
        Ended {
            status,
            out: lines(self.out.join().unwrap()),
            err,
        }
    }
}
