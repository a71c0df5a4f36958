//! Result files are regular files of bounded size. Anything else in the place of a result file is refused: opening a
//! pipe would block for ever, a device or a sparse file would fill the memory, and a symbolic link in another person's
//! results could name any file that the reader may read.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum size of a document in bytes; a document on a thousand hosts with all workers takes a tenth of the limit.
const MAX_DOCUMENT_BYTES: u64 = 128 << 20;

/// Maximum size of a time series in bytes: enough for days of intervals of many operations.
const MAX_SERIES_BYTES: u64 = 4 << 30;

/// Opens a regular file for reading.
///
/// # Errors
/// An error of the system; an error if the path is a symbolic link or not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Without `O_NONBLOCK`, opening a pipe that has no writer would block.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = opened.map_err(|e| match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            io::Error::other("it is a symbolic link, which is not followed among results")
        }
        _ => e,
    })?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Reads a text document: a regular file of at most 128 MiB.
///
/// # Errors
/// As [`open_regular`]; an error if the file is larger or not UTF-8.
pub fn read_regular(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    at_most(open_regular(path)?, MAX_DOCUMENT_BYTES)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a time series: a regular file of at most 4 GiB.
pub(crate) fn open_series(path: &Path) -> io::Result<impl Read + use<>> {
    at_most(open_regular(path)?, MAX_SERIES_BYTES)
}

/// Limits reads to `limit` bytes, even if the file grows.
fn at_most(file: File, limit: u64) -> io::Result<io::Take<File>> {
    let size = file.metadata()?.len();
    if size > limit {
        let text = format!("it has {size} bytes, and at most {limit} are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(file.take(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_link_or_too_large_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("secret"), "secret").unwrap();
        assert_eq!(read_regular(&path("secret")).unwrap(), "secret");
        std::os::unix::fs::symlink(path("secret"), path("link")).unwrap();
        let said = read_regular(&path("link")).unwrap_err().to_string();
        assert!(said.starts_with("it is a symbolic link"), "{said}");
        assert!(open_series(&path("link")).is_err());
        let hole = File::create(path("hole")).unwrap();
        hole.set_len(MAX_DOCUMENT_BYTES + 1).unwrap();
        let said = read_regular(&path("hole")).unwrap_err().to_string();
        assert!(said.contains("at most 134217728 are read"), "{said}");
        assert!(open_series(&path("hole")).is_ok());
        hole.set_len(MAX_SERIES_BYTES + 1).unwrap();
        assert!(open_series(&path("hole")).is_err());
        let missing = read_regular(&path("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_may_have_as_many_bytes_as_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        let read = |limit| {
            let mut text = String::new();
            let file = at_most(open_regular(&path)?, limit);
            file?.read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(
            (read(6).unwrap(), read(5).unwrap()),
            ("12345".to_owned(), "12345".to_owned())
        );
        assert_eq!(read(4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let message = open_regular(dir.path()).unwrap_err().to_string();
        assert_eq!(message, "it is not a regular file");
    }
}
