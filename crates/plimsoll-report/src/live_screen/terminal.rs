//! The terminal of the screen: its alternate buffer, and its attributes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// Begins the alternate buffer, and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";

/// Shows the cursor, resets colours, and ends the alternate buffer.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Columns and rows of a terminal that does not state its size.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// Maximum time for which a terminal is given to take the end of the screen.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// A terminal, of which this is a description of its own: that of the standard streams is shared with other
/// programs, for whom it must go on blocking.
pub(crate) struct Terminal {
    file: File,
    /// Attributes as they were.
    before: Termios,
}

impl Terminal {
    /// Opens the terminal that standard error goes to.
    pub(crate) fn open() -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .custom_flags((rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits() as i32)
            .open("/proc/self/fd/2")?;
        let before = tcgetattr(&file)?;
        Ok(Self { file, before })
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.file) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => DEFAULT_SIZE,
        }
    }

    /// Shows the screen. What is typed is not shown; signals of keys remain.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let mut quiet = self.before.clone();
        quiet.local_modes -= LocalModes::ECHO;
        tcsetattr(&self.file, OptionalActions::Now, &quiet)?;
        self.write_whole(ENTER);
        Ok(())
    }

    /// Shows what was there before the screen.
    pub(crate) fn leave(&self) {
        self.write_whole(LEAVE);
        let _ = tcsetattr(&self.file, OptionalActions::Now, &self.before);
    }

    /// Writes what the terminal takes now: a terminal that is stopped (Ctrl-S) causes no wait. Returns
    /// the number of bytes.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.file, bytes) {
            Ok(n) => Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits until the terminal takes something, at most for this time.
    fn await_room(&self, limit: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
        let limit = Timespec::try_from(limit).expect("a time limit of seconds");
        matches!(poll(&mut fds, Some(&limit)), Ok(1..))
    }

    fn write_whole(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) if !self.await_room(LEAVE_TIMEOUT) => return,
                Ok(n) => bytes = &bytes[n..],
                // It has been closed.
                Err(_) => return,
            }
        }
    }
}
