//! Files of results are regular files: a pipe that lies in the place of one would be waited for
//! without end, and a device has no end.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file to read it.
///
/// # Errors
/// An error of the system; or if the path is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Not waited for: a pipe most likely has no writer.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// The text of a regular file.
///
/// # Errors
/// As [`open_regular`]; if it is not UTF-8.
pub fn read_regular(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.read_to_string(&mut text)?;
    Ok(text)
}
