//! Residency of files in the page cache.

use std::fs::File;
use std::io;
use std::path::Path;

/// Whether the page cache contains the page with the byte at `offset` of a file, which this user must own.
///
/// The query of the page cache (`mincore`) reads no data. A non-blocking read would start read-ahead, and on a fast
/// device would find the data of the read-ahead in the page cache.
///
/// # Errors
/// If the file cannot be opened or mapped.
///
/// # Panics
/// If the file ends before `offset`.
pub fn is_cached(path: &Path, offset: u64) -> io::Result<bool> {
    let file = File::open(path)?;
    // SAFETY: the mapped memory is never accessed.
    let map = unsafe { memmap2::Mmap::map(&file)? };
    let at = usize::try_from(offset).expect("a file that can be mapped");
    assert!(at < map.len(), "{} ends before {offset}", path.display());
    let page = rustix::param::page_size();
    let first = map.as_ptr().wrapping_add(at / page * page);
    let mut resident = 0;
    // SAFETY: the page is within the map, and one page is one byte of the answer.
    let done = unsafe { libc::mincore(first.cast_mut().cast(), page, &mut resident) };
    match done {
        0 => Ok(resident & 1 == 1),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::is_cached;

    /// All written pages of a file in memory are in the page cache.
    #[test]
    fn only_pages_that_were_written_are_cached() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("f");
        let page = rustix::param::page_size() as u64;
        std::fs::write(&path, vec![1; page as usize]).unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(3 * page)
            .unwrap();
        let found = [0, page - 1, page, 2 * page].map(|at| is_cached(&path, at).unwrap());
        assert_eq!(found, [true, true, false, false]);
    }
}
