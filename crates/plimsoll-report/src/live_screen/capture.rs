//! Capture of the output of this program and its subprocesses while the screen is shown.

use crate::console::Stream;
use plimsoll_diagnostics::foreign;
use plimsoll_runtime::sync::lock;
use rustix::io::dup;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of bytes of a stream that are printed after the screen; further bytes are only counted.
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Maximum number of bytes of a line on the screen.
const MAX_LINE_BYTES: usize = 4096;

/// Maximum wait for the end of a stream: a program in the background may keep the stream open.
const END_TIMEOUT: Duration = Duration::from_millis(300);

/// Output to a stream, shared by the reader thread and the owner of the capture.
#[derive(Default)]
struct Written {
    state: Mutex<WrittenState>,
    changed: Condvar,
}

#[derive(Default)]
struct WrittenState {
    kept: Vec<u8>,
    /// Number of discarded bytes.
    lost: usize,
    /// Whether the pipe has been read to its end.
    is_whole: bool,
    /// Whether the kept bytes have been printed, so that further output goes to the terminal.
    is_over: bool,
}

impl WrittenState {
    /// Takes the kept bytes, with a note on discarded bytes.
    fn take(&mut self) -> Vec<u8> {
        let mut kept = std::mem::take(&mut self.kept);
        if self.lost > 0 {
            let note = format!("\n({} bytes of output are left out)\n", self.lost);
            kept.extend_from_slice(note.as_bytes());
        }
        kept
    }
}

/// A stream whose output goes to a pipe instead of the terminal.
struct CapturedStream {
    stream: Stream,
    /// Descriptor of the terminal.
    before: OwnedFd,
    written: Arc<Written>,
}

impl CapturedStream {
    /// Prints the kept output, and lets further output pass to the terminal.
    fn print(&self) {
        let state = lock(&self.written.state);
        let changed = &self.written.changed;
        let waited = changed.wait_timeout_while(state, END_TIMEOUT, |state| !state.is_whole);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let kept = state.take();
        // The reader waits for this lock, so further output follows the kept output.
        let _ = match self.stream {
            Stream::Out => io::stdout().lock().write_all(&kept),
            Stream::Err => io::stderr().lock().write_all(&kept),
        };
        let _ = io::stdout().flush();
        state.is_over = true;
    }
}

/// The captured standard streams.
pub(crate) struct Capture {
    streams: Vec<CapturedStream>,
}

impl Capture {
    /// Captures standard error, and standard output if it is a terminal. `show` receives each line.
    pub(crate) fn begin(show: impl Fn(&str) + Clone + Send + 'static) -> io::Result<Self> {
        let mut capture = Self { streams: vec![] };
        // Buffered output belongs before the screen.
        io::stdout().flush()?;
        if io::stdout().is_terminal() {
            capture.add(Stream::Out, show.clone())?;
        }
        capture.add(Stream::Err, show)?;
        Ok(capture)
    }

    fn add(&mut self, stream: Stream, show: impl Fn(&str) + Send + 'static) -> io::Result<()> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        let before = match stream {
            Stream::Out => rustix::io::fcntl_dupfd_cloexec(stdout(), 3)?,
            Stream::Err => rustix::io::fcntl_dupfd_cloexec(stderr(), 3)?,
        };
        let late = dup(&before)?;
        let written = Arc::new(Written::default());
        let shared = written.clone();
        std::thread::Builder::new()
            .name("messages".into())
            .spawn(move || read_all(File::from(read), &shared, show, late))?;
        match stream {
            Stream::Out => dup2_stdout(&write)?,
            Stream::Err => dup2_stderr(&write)?,
        }
        self.streams.push(CapturedStream {
            stream,
            before,
            written,
        });
        Ok(())
    }
}

/// Restores standard output and standard error, and prints the captured output: the text of standard output first.
impl Drop for Capture {
    fn drop(&mut self) {
        let _ = io::stdout().flush();
        for captured in &self.streams {
            // Replacing the last descriptor of the pipe ends the pipe.
            let _ = match captured.stream {
                Stream::Out => dup2_stdout(&captured.before),
                Stream::Err => dup2_stderr(&captured.before),
            };
        }
        self.streams.iter().for_each(CapturedStream::print);
    }
}

/// Splits output into lines for the screen.
struct Lines<F> {
    show: F,
    line: Vec<u8>,
}

impl<F: Fn(&str)> Lines<F> {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => {
                    (self.show)(&foreign::escaped(&String::from_utf8_lossy(&self.line)));
                    self.line.clear();
                }
                _ if self.line.len() < MAX_LINE_BYTES => self.line.push(*byte),
                _ => {}
            }
        }
    }
}

/// Reads a stream to its end; shows each line, and keeps the output up to a limit. Output after the end of the capture
/// goes to the terminal.
fn read_all(mut pipe: File, written: &Written, show: impl Fn(&str), late: OwnedFd) {
    let mut late = File::from(late);
    let mut lines = Lines { show, line: vec![] };
    let mut piece = [0; 4096];
    loop {
        let bytes = match pipe.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => &piece[..n],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut state = lock(&written.state);
        if state.is_over {
            drop(state);
            let _ = late.write_all(bytes);
            continue;
        }
        let room = MAX_KEPT_BYTES.saturating_sub(state.kept.len());
        let room = room.min(bytes.len());
        state.kept.extend_from_slice(&bytes[..room]);
        state.lost += bytes.len() - room;
        drop(state);
        lines.add(bytes);
    }
    lock(&written.state).is_whole = true;
    written.changed.notify_all();
}
