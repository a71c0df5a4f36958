//! Terminal of the screen: alternate buffer and attributes.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fstat, makedev};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

/// Switches to the alternate buffer, hides the cursor and clears the screen.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";

/// Resets colours, shows the cursor and leaves the alternate buffer.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Default columns and rows, for a terminal that does not report its size.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// Maximum wait until a stopped terminal accepts output.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// A terminal with an open file description of its own: the non-blocking mode must not affect the description of the
/// standard streams, which other programs share.
pub(crate) struct Terminal {
    file: File,
    /// Attributes of the terminal before the screen.
    before: Termios,
}

impl Terminal {
    /// Opens the terminal of standard error. After `su`, the terminal's file belongs to another user, but a process may
    /// open its controlling terminal under the name `/dev/tty`.
    pub(crate) fn open() -> io::Result<Self> {
        let open = |path| {
            File::options()
                .read(true)
                .write(true)
                .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32)
                .open(path)
        };
        let file = match open("/proc/self/fd/2") {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied && is_controlling()? => {
                open("/dev/tty")?
            }
            opened => opened?,
        };
        let before = tcgetattr(&file)?;
        Ok(Self { file, before })
    }

    /// Size of the terminal in columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        match tcgetwinsize(&self.file) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => DEFAULT_SIZE,
        }
    }

    /// Shows the screen. Typed characters are not echoed and do not wait for the end of a line; keys still send signals.
    pub(crate) fn enter(&self) -> io::Result<()> {
        let mut quiet = self.before.clone();
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        tcsetattr(&self.file, OptionalActions::Now, &quiet)?;
        self.write_whole(ENTER);
        Ok(())
    }

    /// Restores the content and attributes of the terminal.
    pub(crate) fn leave(&self) {
        self.write_whole(LEAVE);
        let _ = tcsetattr(&self.file, OptionalActions::Now, &self.before);
    }

    /// Writes as much as the terminal accepts without blocking, which is nothing if the terminal is stopped (Ctrl-S).
    /// Returns the number of bytes.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.file, bytes) {
            Ok(n) => Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// Keys that were pressed since the last call. An error of the terminal counts as no keys.
    pub(crate) fn keys(&self) -> Vec<u8> {
        let mut typed = [0; 64];
        let n = rustix::io::read(&self.file, &mut typed).unwrap_or(0);
        typed[..n].to_vec()
    }

    /// Waits until the terminal accepts output, at most for `limit`; returns whether it does.
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
                // The terminal has been closed.
                Err(_) => return,
            }
        }
    }
}

/// Whether standard error is the controlling terminal of this process, by field `tty_nr` of proc_pid_stat(5): bits 8 to
/// 19 are the major number, the others the minor number.
fn is_controlling() -> io::Result<bool> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field, in parentheses, may contain spaces.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let number = fields.split(' ').nth(4).and_then(|text| text.parse().ok());
    let number: i32 = number.unwrap_or(0);
    let number = number.cast_unsigned();
    let minor = number & 0xff | number >> 12 & 0xf_ff00;
    let device = makedev(number >> 8 & 0xfff, minor);
    Ok(number != 0 && fstat(io::stderr())?.st_rdev == device)
}
