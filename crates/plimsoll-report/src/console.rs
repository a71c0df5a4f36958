//! Console of a program: width, colours, rewritten lines, and output that survives a closed pipe. All help, errors,
//! reports and live lines pass through this module and are escaped, so control characters in foreign text do not reach
//! the terminal.

use crate::terminal::Layout;
use plimsoll_diagnostics::foreign;
use rustix::fs::FileType;
use rustix::io::Errno;
use rustix::termios::tcgetwinsize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Width of a report in columns without a terminal.
const DEFAULT_WIDTH: usize = 120;

/// Width of the help in columns without a terminal.
const DEFAULT_HELP_WIDTH: usize = 100;

/// A standard stream for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Width of a report in columns: of the stream's terminal, else `COLUMNS`, else 120.
    #[must_use]
    pub fn width(self) -> usize {
        self.width_or(DEFAULT_WIDTH)
    }

    /// Width of the help in columns: as [`Stream::width`], but 100 by default.
    #[must_use]
    pub fn help_width(self) -> usize {
        self.width_or(DEFAULT_HELP_WIDTH)
    }

    /// Whether output to the stream is coloured.
    #[must_use]
    pub fn color(self) -> bool {
        color(self.is_screen(), variable)
    }

    /// Width and colours of a report on the stream.
    #[must_use]
    pub fn layout(self) -> Layout {
        Layout {
            width: self.width(),
            color: self.color(),
        }
    }

    /// Whether a line can be rewritten in place.
    #[must_use]
    pub fn rewrites(self) -> bool {
        rewrites(self.is_screen(), variable)
    }

    /// Whether the stream is a terminal whose output no launcher forwards.
    fn is_screen(self) -> bool {
        let terminal = match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        };
        terminal && !IS_FORWARDED.load(Relaxed)
    }

    fn width_or(self, default: usize) -> usize {
        // Some terminals report columns but no rows.
        let size = match self {
            _ if !self.is_screen() => None,
            Self::Out => tcgetwinsize(io::stdout()).ok(),
            Self::Err => tcgetwinsize(io::stderr()).ok(),
        };
        let columns = || variable("COLUMNS")?.trim().parse().ok();
        size.map(|size| usize::from(size.ws_col))
            .filter(|&w| w > 0)
            .or_else(columns)
            .filter(|&w| w > 0)
            .unwrap_or(default)
    }
}

/// Whether a launcher forwards the output of this process.
static IS_FORWARDED: AtomicBool = AtomicBool::new(false);

/// Declares that a launcher forwards the output of this process. Streams then do not count as terminals, because the
/// launcher may forward the output to a file.
pub fn set_forwarded() {
    IS_FORWARDED.store(true, Relaxed);
}

/// An environment variable that is not empty.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|v| !v.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

/// Applies the conventions of no-color.org and bixense.com/clicolors, strongest first:
/// `NO_COLOR` (any value) switches colours off everywhere, `CLICOLOR_FORCE` (any value but 0) on
/// everywhere, `CLICOLOR=0` and `TERM=dumb` off on a terminal.
fn color(screen: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name, value: &str| variable(name).is_some_and(|v| v == value);
    if variable("NO_COLOR").is_some() {
        return false;
    }
    if variable("CLICOLOR_FORCE").is_some_and(|v| v != "0") {
        return true;
    }
    screen && !is("CLICOLOR", "0") && !is("TERM", "dumb")
}

/// Whether a line can be rewritten: a terminal that is dumb, or whose type is unknown, cannot do so.
fn rewrites(screen: bool, variable: impl Fn(&str) -> Option<String>) -> bool {
    screen && variable("TERM").is_some_and(|t| t != "dumb")
}

/// A text with control characters escaped, except our own colours.
fn shown(text: &str, stream: Stream) -> Cow<'_, str> {
    match stream.color() {
        true => foreign::escaped_but_colors(text),
        false => foreign::escaped_lines(text),
    }
}

/// Whether an error of standard output means that the reader is gone: a closed pipe, or a closed terminal, for which
/// writes fail with EIO.
fn is_reader_gone(e: &io::Error) -> bool {
    let is_device = || {
        let stat = rustix::fs::fstat(io::stdout());
        stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::CharacterDevice)
    };
    e.kind() == io::ErrorKind::BrokenPipe
        || e.raw_os_error() == Some(Errno::IO.raw_os_error()) && is_device()
}

/// Writes to standard output. A closed pipe (`| head`) or a closed terminal is not an error.
///
/// # Errors
/// An error of the system; [`has_lost_output`] is true afterwards.
pub fn out(text: &str) -> io::Result<()> {
    let text = shown(text, Stream::Out);
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(e) if !is_reader_gone(&e) => {
            OUTPUT_LOST.store(true, Relaxed);
            Err(e)
        }
        _ => Ok(()),
    }
}

/// Whether a write to standard output failed.
static OUTPUT_LOST: AtomicBool = AtomicBool::new(false);

/// Whether a write to standard output failed for any reason but a closed pipe or terminal; the program then fails.
#[must_use]
pub fn has_lost_output() -> bool {
    OUTPUT_LOST.load(Relaxed)
}

/// Writes to standard error; a failure is ignored because it cannot be reported.
pub fn err(text: &str) {
    let text = shown(text, Stream::Err);
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether output to a terminal (`screen`) or a file has colours and rewritten lines, given environment variables.
    fn with(screen: bool, environment: &[(&str, &str)]) -> (bool, bool) {
        let variable = |name: &str| {
            let found = environment.iter().find(|(n, _)| *n == name);
            found.map(|(_, value)| value.to_string())
        };
        (color(screen, variable), rewrites(screen, variable))
    }

    #[test]
    fn the_conventions_of_the_environment_hold() {
        let term = ("TERM", "xterm");
        assert_eq!(with(true, &[term]), (true, true));
        assert_eq!(with(false, &[term]), (false, false));
        assert_eq!(with(true, &[]), (true, false));
        assert_eq!(with(true, &[("TERM", "dumb")]), (false, false));
        assert_eq!(with(true, &[term, ("NO_COLOR", "0")]), (false, true));
        assert_eq!(with(true, &[term, ("CLICOLOR", "0")]), (false, true));
        assert_eq!(with(true, &[term, ("CLICOLOR", "1")]), (true, true));
        assert_eq!(with(true, &[term, ("CLICOLOR_FORCE", "0")]), (true, true));
        let force = ("CLICOLOR_FORCE", "1");
        assert_eq!(with(false, &[force]), (true, false));
        assert_eq!(with(false, &[force, ("CLICOLOR", "0")]), (true, false));
        assert_eq!(with(true, &[force, ("NO_COLOR", "1")]), (false, false));
    }
}
