//! What this program and those that it calls write to the terminal while the screen is shown.

use plimsoll_diagnostics::foreign;
use rustix::io::dup;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Bytes of a stream that are kept for after the screen; what comes then is only counted.
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Maximum time for which the rest of a stream is awaited: a program that still runs in the background may hold
/// it open.
const END_TIMEOUT: Duration = Duration::from_millis(300);

/// A standard stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// A stream that goes to a pipe instead of the terminal.
struct CapturedStream {
    stream: Stream,
    /// The terminal.
    before: OwnedFd,
    /// What was written, once the pipe has been read to its end.
    written: Receiver<Vec<u8>>,
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
        let (sender, written) = channel();
        std::thread::Builder::new()
            .name("messages".into())
            .spawn(move || read_all(File::from(read), &sender, &show, late))?;
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
        let _ = io::stdout().flush();
        for captured in &self.streams {
            // The pipe ends with its last descriptor.
            let _ = match captured.stream {
                Stream::Out => dup2_stdout(&captured.before),
                Stream::Err => dup2_stderr(&captured.before),
            };
        }
        for captured in self.streams {
            let Ok(written) = captured.written.recv_timeout(END_TIMEOUT) else {
                continue;
            };
            let _ = match captured.stream {
                Stream::Out => io::stdout().lock().write_all(&written),
                Stream::Err => io::stderr().lock().write_all(&written),
            };
            let _ = io::stdout().flush();
        }
    }
}

/// Reads a stream to its end; shows each line, and sends everything. If it is awaited no more, what was read
/// goes to the terminal.
fn read_all(mut pipe: File, sender: &Sender<Vec<u8>>, show: &dyn Fn(&str), late: OwnedFd) {
    let (mut kept, mut line, mut lost) = (Vec::new(), Vec::new(), 0);
    let mut piece = [0; 4096];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => break,
            Ok(n) => {
                let bytes = &piece[..n];
                let room = MAX_KEPT_BYTES.saturating_sub(kept.len()).min(n);
                kept.extend_from_slice(&bytes[..room]);
                lost += n - room;
                for byte in bytes {
                    match byte {
                        b'\n' => {
                            show(&foreign::escaped(&String::from_utf8_lossy(&line)));
                            line.clear();
                        }
                        _ if line.len() < piece.len() => line.push(*byte),
                        _ => {}
                    }
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if lost > 0 {
        kept.extend_from_slice(format!("\n({lost} bytes of output are left out)\n").as_bytes());
    }
    if let Err(unsent) = sender.send(kept) {
        let _ = File::from(late).write_all(&unsent.0);
    }
}
