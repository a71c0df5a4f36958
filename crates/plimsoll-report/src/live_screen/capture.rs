//! What this program and those that it calls write to the terminal while the screen is shown.

use plimsoll_diagnostics::foreign;
use rustix::io::dup;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a stream that are kept for after the screen; what comes then is only counted.
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Bytes of a line that are shown.
const MAX_LINE_BYTES: usize = 4096;

/// Maximum time for which the rest of a stream is awaited: a program that still runs in the background may hold
/// it open.
const END_TIMEOUT: Duration = Duration::from_millis(300);

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// What was written to a stream, which its reader and its owner share.
#[derive(Default)]
struct Written {
    state: Mutex<WrittenState>,
    changed: Condvar,
}

#[derive(Default)]
struct WrittenState {
    kept: Vec<u8>,
    /// Bytes that were not kept.
    lost: usize,
    /// The pipe has been read to its end.
    is_whole: bool,
    /// What was kept has been printed, and what follows goes to the terminal.
    is_over: bool,
}

impl WrittenState {
    /// What was kept, and how much was not.
    fn take(&mut self) -> Vec<u8> {
        let mut kept = std::mem::take(&mut self.kept);
        if self.lost > 0 {
            let note = format!("\n({} bytes of output are left out)\n", self.lost);
            kept.extend_from_slice(note.as_bytes());
        }
        kept
    }
}

fn lock(state: &Mutex<WrittenState>) -> MutexGuard<'_, WrittenState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream that goes to a pipe instead of the terminal.
struct CapturedStream {
    stream: Stream,
    /// The terminal.
    before: OwnedFd,
    written: Arc<Written>,
}

impl CapturedStream {
    /// Prints what was written, and lets the rest go to the terminal.
    fn print(&self) {
        let state = lock(&self.written.state);
        let changed = &self.written.changed;
        let waited = changed.wait_timeout_while(state, END_TIMEOUT, |state| !state.is_whole);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let kept = state.take();
        // The reader waits for the state, so that what follows comes after this.
        let _ = match self.stream {
            Stream::Out => io::stdout().lock().write_all(&kept),
            Stream::Err => io::stderr().lock().write_all(&kept),
        };
        let _ = io::stdout().flush();
        state.is_over = true;
    }
}

/// The standard streams that would go to the terminal.
pub(crate) struct Capture {
    streams: Vec<CapturedStream>,
}

impl Capture {
    /// Captures standard error, and standard output if it is a terminal. `show` is given each line.
    pub(crate) fn begin(show: impl Fn(&str) + Clone + Send + 'static) -> io::Result<Self> {
        let mut capture = Self { streams: vec![] };
        // Output that is buffered belongs before the screen.
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

    /// Gives the streams back, and what was written to each: standard output first.
    pub(crate) fn end(self) {
        drop(self);
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = io::stdout().flush();
        for captured in &self.streams {
            // The pipe ends with its last descriptor.
            let _ = match captured.stream {
                Stream::Out => dup2_stdout(&captured.before),
                Stream::Err => dup2_stderr(&captured.before),
            };
        }
        self.streams.iter().for_each(CapturedStream::print);
    }
}

/// Shows the lines of a stream.
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

/// Reads a stream to its end; shows each line, and keeps everything. What comes when the capture is over goes to
/// the terminal.
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
