//! Cached handles of directories by path.

use crate::error::OpError;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;

/// Maximum number of cached handles; a full cache is emptied.
const MAX_DIR_HANDLES: usize = 1 << 18;

/// Handles of directories by their path in the work directory.
pub(crate) struct DirHandleCache<H> {
    dirs: RefCell<HashMap<Box<[u8]>, H>>,
}

impl<H> Default for DirHandleCache<H> {
    fn default() -> Self {
        Self {
            dirs: RefCell::default(),
        }
    }
}

impl<H: Copy> DirHandleCache<H> {
    pub(crate) fn get(&self, path: &[u8]) -> Option<H> {
        self.dirs.borrow().get(path).copied()
    }

    /// The handle of the nearest cached ancestor of a path, and the position of the remaining
    /// components.
    fn nearest_ancestor(&self, path: &[u8]) -> Option<(usize, H)> {
        let ends = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
        ends.map(|(end, _)| end)
            .find_map(|end| Some((end + 1, self.get(&path[..end])?)))
    }

    /// Resolves a path from the root; calls `step` for each directory without a cached handle.
    pub(crate) async fn walk<E>(
        &self,
        root: H,
        path: &[u8],
        step: impl AsyncFn(H, &[u8]) -> Result<H, E>,
    ) -> Result<H, E> {
        if path.is_empty() {
            return Ok(root);
        }
        if let Some(known) = self.get(path) {
            return Ok(known);
        }
        let (mut begin, mut at) = self.nearest_ancestor(path).unwrap_or((0, root));
        while begin < path.len() {
            let rest = &path[begin..];
            let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            let name = &rest[..end];
            if !name.is_empty() {
                at = step(at, name).await?;
                self.remember(&path[..begin + end], at);
            }
            begin += end + 1;
        }
        Ok(at)
    }

    /// Calls `work`, and repeats the call once if a handle on the path to the directory was stale.
    pub(crate) async fn within<R, E>(
        &self,
        dir: &[u8],
        is_stale: impl FnOnce(&E) -> bool,
        work: impl AsyncFn() -> Result<R, E>,
    ) -> Result<R, E> {
        match work().await {
            Err(e) if is_stale(&e) && !dir.is_empty() => {
                self.invalidate_path(dir);
                work().await
            }
            done => done,
        }
    }

    fn remember(&self, path: &[u8], dir: H) {
        let mut dirs = self.dirs.borrow_mut();
        if dirs.len() >= MAX_DIR_HANDLES {
            dirs.clear();
        }
        dirs.insert(path.into(), dir);
    }

    /// Drops the cached handles of the directory `path` and of all directories in its tree, after a stale handle or a
    /// removal.
    pub(crate) fn invalidate(&self, path: &[u8]) {
        let mut dirs = self.dirs.borrow_mut();
        if dirs.remove(path).is_some() {
            let below = |p: &[u8]| {
                p.strip_prefix(path)
                    .is_some_and(|r| r.first() == Some(&b'/'))
            };
            dirs.retain(|p, _| !below(p));
        }
    }

    /// Drops the handles of a directory and of its ancestors.
    pub(crate) fn invalidate_path(&self, mut path: &[u8]) {
        while !path.is_empty() {
            self.invalidate(path);
            path = split(path).0;
        }
    }
}

/// Splits a path into the directory and the last component.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Checks that a path component is not `..`, which would lead out of the work directory; `EINVAL` otherwise.
pub(crate) fn check_component(name: &[u8]) -> Result<(), OpError> {
    match name {
        b".." => Err(OpError(Errno::INVAL)),
        _ => Ok(()),
    }
}

/// Checks that a path stays in the work directory. Plan validation checks paths too.
pub(crate) fn check(path: &[u8]) -> Result<(), OpError> {
    path.split(|b| *b == b'/').try_for_each(check_component)
}
