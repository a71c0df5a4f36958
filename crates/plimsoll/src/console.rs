//! The terminal: its width, its colours, and writing that survives a closed pipe.

use std::io::{self, IsTerminal, Write};
use terminal_size::{Width, terminal_size_of};

/// Columns where nobody says how many there are.
const DEFAULT_WIDTH: usize = 120;

/// Columns of the terminal that standard output goes to.
pub fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    terminal_size_of(io::stdout())
        .map(|(Width(w), _)| usize::from(w))
        .or(columns)
        .unwrap_or(DEFAULT_WIDTH)
}

/// Whether standard output takes colours: a terminal, and nobody set `NO_COLOR`.
pub fn color_out() -> bool {
    io::stdout().is_terminal() && color_wanted()
}

/// Whether standard error takes colours.
pub fn color_err() -> bool {
    io::stderr().is_terminal() && color_wanted()
}

/// The convention of no-color.org: any value but the empty one switches colours off.
fn color_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Writes to standard output. A reader that has gone (`| head`) is no error.
pub fn out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e),
        _ => Ok(()),
    }
}

/// Writes to standard error; there is nowhere left to complain if that fails.
pub fn err(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
