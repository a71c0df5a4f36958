//! The names that a session's operations use, and the parent directories of the names.

use super::handle::flags_and_mode;
use crate::session_types::OpenHow;
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;

/// No component may be a symbolic link, and the path must not leave the work directory.
pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// The flags of openat2(2) for checked relative paths: no component may be a symbolic link. Without links, a path
/// without `..` cannot leave the work directory, so `RESOLVE_BENEATH` is not needed; `RESOLVE_BENEATH` takes the global
/// mount lock and costs 190 ns of the 1.5 µs of an open.
const NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS;

/// Nanoseconds for which a checked directory is assumed to be unchanged.
const PARENT_CHECK_VALID_NS: Nanos = 1_000_000;

/// The flags with which a directory is opened to check the directory.
pub(super) const PARENT_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Number of remembered directories: workers often return to a few directories. Must be a power of
/// two for `slot_of`.
const CHECKED_DIRS: usize = 64;

/// A path relative to the work directory; empty before the first path is located.
#[derive(Default)]
pub(super) struct LocatedPath {
    path: Option<CString>,
    /// The number of the directory at the beginning of the path, and the length of the directory's
    /// path.
    dir: Option<(u64, usize)>,
    /// Whether the path is relative and has no `..`, like all paths of a Plan.
    goes_down: bool,
    /// Whether no locate changes the path, as on a block device.
    is_fixed: bool,
}

impl LocatedPath {
    /// A path that no later locate changes: the name of a block device that is the only file of its target.
    pub(super) fn fixed(path: CString) -> Self {
        Self {
            path: Some(path),
            is_fixed: true,
            ..Self::default()
        }
    }

    #[inline(always)]
    pub(super) fn get(&self) -> &CStr {
        self.path.as_deref().unwrap_or(c"")
    }

    /// The flags with which path resolution stays in the work directory.
    #[inline(always)]
    pub(super) fn resolve_flags(&self) -> ResolveFlags {
        match self.goes_down {
            _ if self.is_fixed => ResolveFlags::empty(),
            true => NO_LINKS,
            false => BENEATH,
        }
    }

    /// The flags of openat2, and the permissions of a file that the open creates. A fixed path is a link in `/proc` to
    /// an open device: the open follows the link, and neither creates nor truncates a file.
    #[inline(always)]
    pub(super) fn flags_and_mode(&self, how: OpenHow) -> (OFlags, Mode) {
        if self.is_fixed {
            let how = OpenHow {
                create: false,
                truncate: false,
                ..how
            };
            let (flags, mode) = flags_and_mode(how);
            return (flags - OFlags::NOFOLLOW, mode);
        }
        flags_and_mode(how)
    }

    /// Sets the located path to the bytes that `push` appends; without bytes, to `.`, the work directory.
    #[inline]
    pub(super) fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        if self.is_fixed {
            return;
        }
        self.dir = None;
        let mut path = self.take();
        path.clear();
        push(&mut path);
        if path.is_empty() {
            path.push(b'.');
        }
        self.set(path);
    }

    /// Sets the path to directory `dir` followed by the name that `push_name` appends. Composes the directory's path
    /// only if the last path was in another directory.
    #[inline]
    pub(super) fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.is_fixed {
            return;
        }
        let mut path = self.take();
        match self.dir {
            Some((known, len)) if known == dir => path.truncate(len),
            _ => {
                path.clear();
                push_dir(&mut path);
                self.dir = Some((dir, path.len()));
            }
        }
        push_name(&mut path);
        self.set(path);
    }

    /// Takes the path's buffer for reuse: paths of equal length need no new allocation.
    #[inline]
    fn take(&mut self) -> Vec<u8> {
        self.path
            .take()
            .map(CString::into_bytes_with_nul)
            .unwrap_or_default()
    }

    /// Checks for zero bytes once, before the operation is timed, rather than in each system call. A path with a zero
    /// byte becomes empty, and the system call returns an error.
    #[inline]
    fn set(&mut self, mut path: Vec<u8>) {
        path.push(0);
        // Names that merely contain two dots also use the slower resolution.
        self.goes_down = path[0] != b'/' && !path.windows(2).any(|two| two == b"..");
        self.path = CString::from_vec_with_nul(path).ok();
        if self.path.is_none() {
            self.dir = None;
        }
    }
}

/// Directories that a recent check found in the work directory, reached without a symbolic link.
pub(super) struct CheckedParents([CheckedDir; CHECKED_DIRS]);

/// A checked directory, and the time of the check in nanoseconds.
#[derive(Default)]
struct CheckedDir {
    path: Vec<u8>,
    at: Nanos,
}

impl Default for CheckedParents {
    fn default() -> Self {
        Self(std::array::from_fn(|_| CheckedDir::default()))
    }
}

impl CheckedParents {
    /// Checks the parent directory of `name` unless a recent check found the directory.
    #[inline(always)]
    pub(super) fn check(&mut self, root: &OwnedFd, lane: &Lane, name: &CStr) -> Result<(), Errno> {
        let now = lane.now();
        let Some(parent) = self.unchecked(name, now) else {
            return Ok(());
        };
        rustix::fs::openat2(root, parent, PARENT_FLAGS, Mode::empty(), BENEATH)?;
        self.note(parent, now);
        Ok(())
    }

    /// The parent directory of `name`; `None` if a recent check found the directory.
    #[inline(always)]
    pub(super) fn unchecked<'n>(&self, name: &'n CStr, now: Nanos) -> Option<&'n [u8]> {
        let path = name.to_bytes();
        // A name directly in the work directory has no parent component that could be a symbolic
        // link.
        let slash = path.iter().rposition(|b| *b == b'/')?;
        let parent = &path[..slash];
        let found = &self.0[slot_of(parent)];
        let is_valid = found.path == parent && now < found.at + PARENT_CHECK_VALID_NS;
        (!is_valid).then_some(parent)
    }

    /// Notes that a check has found a directory in the work directory.
    pub(super) fn note(&mut self, parent: &[u8], now: Nanos) {
        let found = &mut self.0[slot_of(parent)];
        found.path.clear();
        found.path.extend_from_slice(parent);
        found.at = now;
    }
}

/// The slot of a directory in [`CheckedParents`]: directories that are used together differ in the
/// last digits of their own names and of their parents' names.
#[inline]
fn slot_of(path: &[u8]) -> usize {
    let word = |piece: &[u8]| match piece.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => piece.iter().fold(0, |word, b| word << 8 | u64::from(*b)),
    };
    let (rest, last) = path.split_at(path.len().saturating_sub(8));
    let before = &rest[rest.len().saturating_sub(8)..];
    let (last, before) = (word(last), word(before));
    // Fibonacci hashing: the highest bits of a product with 2^64 divided by the golden ratio.
    let mixed = (last ^ before.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - CHECKED_DIRS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &LocatedPath) -> &str {
        name.get().to_str().unwrap()
    }

    #[test]
    fn a_name_is_what_was_located_last() {
        let mut name = LocatedPath::default();
        assert_eq!(text(&name), "");
        name.locate(|p| p.extend_from_slice(b"a/b"));
        assert_eq!(text(&name), "a/b");
        name.locate(|_| {});
        assert_eq!(text(&name), ".");
    }

    #[test]
    fn a_directory_is_appended_once_while_names_in_it_follow_each_other() {
        let (mut name, dirs) = (LocatedPath::default(), std::cell::Cell::new(0));
        let locate = |name: &mut LocatedPath, dir: u64, file: &str| {
            let push_dir = |path: &mut Vec<u8>| {
                dirs.set(dirs.get() + 1);
                path.extend_from_slice(format!("d{dir}").as_bytes());
            };
            name.locate_in(dir, push_dir, |p| p.extend_from_slice(file.as_bytes()));
            (text(name).to_owned(), dirs.get())
        };
        assert_eq!(locate(&mut name, 7, "/a"), ("d7/a".into(), 1));
        assert_eq!(locate(&mut name, 7, "/long"), ("d7/long".into(), 1));
        assert_eq!(locate(&mut name, 12, "/b"), ("d12/b".into(), 2));
        assert_eq!(locate(&mut name, 7, "/c"), ("d7/c".into(), 3));
        // An invalid name, or a name located by `locate`, leaves nothing of the remembered
        // directory.
        assert_eq!(locate(&mut name, 7, "/\0").0, "");
        assert_eq!(locate(&mut name, 7, "/d"), ("d7/d".into(), 4));
        name.locate(|p| p.extend_from_slice(b"elsewhere"));
        assert_eq!(locate(&mut name, 7, "/e"), ("d7/e".into(), 5));
    }

    #[test]
    fn a_few_directories_side_by_side_have_places_of_their_own() {
        let places: std::collections::BTreeSet<usize> = (1..=16)
            .map(|n| slot_of(format!("bench/files/{n:08}").as_bytes()))
            .collect();
        assert!(places.len() >= 12, "{places:?}");
        let short: std::collections::BTreeSet<usize> = (0..10)
            .map(|n| slot_of(format!("0_{n}").as_bytes()))
            .collect();
        assert!(short.len() >= 8, "{short:?}");
    }
}
