//! Making, checking and removing the tree of a fileset.

use super::marker::{MARKER, PatternNames};
use super::setup_pool::{BulkTask, SetupError, SetupPool};
use crate::tree_names::{is_our_link, is_ours};
use plimsoll_plan::{DirId, FileId, Layout, Stream};
use plimsoll_target::{EntryKind, OpError, OpenHow, OpenMode, Session, Target};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes written at a time when a file is made.
const WRITE_CHUNK_BYTES: u64 = 1 << 20;

/// How far populating is.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

pub(super) fn path_of(push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut path = Vec::new();
    push(&mut path);
    path
}

struct MakeDirs<'a> {
    layout: &'a Layout,
    dirs: &'a [u32],
    /// They may be there.
    missing_only: bool,
}

impl<S: Session> BulkTask<S> for MakeDirs<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        let dir = DirId(self.dirs[index as usize]);
        session.locate(|p| self.layout.push_dir(dir, p));
        match session.make_dir().await {
            // The root may be the guarded directory itself.
            Err(OpError(Errno::EXIST)) if dir == DirId(0) || self.missing_only => Ok(()),
            other => other.map_err(|e| {
                SetupError::failed(
                    "make directory",
                    &path_of(|p| self.layout.push_dir(dir, p)),
                    e,
                )
            }),
        }
    }
}

struct MakeFiles<'a> {
    layout: &'a Layout,
    /// What the bytes of the files follow from.
    content: Stream,
    progress: &'a Progress,
    /// The first of them.
    first: u64,
}

impl MakeFiles<'_> {
    async fn make<S: Session>(&self, session: &mut S, file: FileId) -> Result<(), OpError> {
        let size = self.layout.size(file);
        session.locate(|p| self.layout.push_file(file, p));
        let how = OpenHow {
            create: true,
            ..OpenHow::plain(OpenMode::Write)
        };
        let handle = session.open(how).await?;
        session.begin_content(self.content.branch(u64::from(file.0)));
        let written = fill(session, &handle, 0..size, self.progress).await;
        session.close(handle).await.and(written)
    }
}

/// Writes a part of an open file.
pub(super) async fn fill<S: Session>(
    session: &mut S,
    handle: &S::Handle,
    part: Range<u64>,
    progress: &Progress,
) -> Result<(), OpError> {
    let mut at = part.start;
    while at < part.end {
        let n = WRITE_CHUNK_BYTES.min(part.end - at);
        session.write(handle, at, n).await?;
        at += n;
        progress.bytes.fetch_add(n, Relaxed);
    }
    Ok(())
}

impl<S: Session> BulkTask<S> for MakeFiles<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        let file = FileId((self.first + index) as u32);
        if !self.layout.starts_with(file) {
            return Ok(());
        }
        self.progress.files.fetch_add(1, Relaxed);
        self.make(session, file).await.map_err(|e| {
            SetupError::failed("make file", &path_of(|p| self.layout.push_file(file, p)), e)
        })
    }
}

struct MakeLeafDirs<'a> {
    layout: &'a Layout,
}

impl<S: Session> BulkTask<S> for MakeLeafDirs<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        let leaf = index as u32;
        if !self.layout.starts_with_leaf_dir(leaf) {
            return Ok(());
        }
        session.locate(|p| self.layout.push_leaf_dir(leaf, p));
        session.make_dir().await.map_err(|e| {
            SetupError::failed(
                "make directory",
                &path_of(|p| self.layout.push_leaf_dir(leaf, p)),
                e,
            )
        })
    }
}

/// Makes the directories of a tree but its leaf directories, or those that are missing; its
/// root's parent is there.
pub(crate) fn make_dirs<T: Target>(
    pool: &SetupPool<T>,
    layout: &Layout,
    missing_only: bool,
    mut tell: impl FnMut(),
) -> Result<(), SetupError> {
    // Level by level: a directory is made after the one that holds it.
    let mut levels: Vec<Vec<u32>> = Vec::new();
    let mut level = vec![0u8; layout.dirs() as usize];
    for dir in 0..layout.dirs() {
        let at = layout
            .parent(DirId(dir))
            .map_or(0, |p| level[p.0 as usize] + 1);
        level[dir as usize] = at;
        if levels.len() <= usize::from(at) {
            levels.push(Vec::new());
        }
        levels[usize::from(at)].push(dir);
    }
    for dirs in &levels {
        let make = MakeDirs {
            layout,
            dirs,
            missing_only,
        };
        pool.all(dirs.len() as u64, &make, &mut tell)?;
    }
    Ok(())
}

/// Makes the leaf directories of a tree that it begins with.
pub(crate) fn make_leaf_dirs<T: Target>(
    pool: &SetupPool<T>,
    layout: &Layout,
    tell: impl FnMut(),
) -> Result<(), SetupError> {
    let leaf_dirs = u64::from(layout.leaf_dirs());
    pool.all(leaf_dirs, &MakeLeafDirs { layout }, tell)
}

/// What the bytes that the files of a tree begin with follow from.
pub(super) fn content_of<T: Target>(pool: &SetupPool<T>, layout: &Layout) -> Stream {
    let root = path_of(|p| layout.push_dir(DirId(0), p));
    pool.content
        .stream_of_files(&String::from_utf8_lossy(&root))
}

/// Makes the files of a tree whose numbers are in `part`; the directories are there.
pub(crate) fn make_files<T: Target>(
    pool: &SetupPool<T>,
    layout: &Layout,
    part: Range<u64>,
    progress: &Progress,
    tell: impl FnMut(),
) -> Result<(), SetupError> {
    let files = MakeFiles {
        layout,
        content: content_of(pool, layout),
        progress,
        first: part.start,
    };
    pool.all(part.end - part.start, &files, tell)
}

struct CheckFiles<'a> {
    layout: &'a Layout,
}

/// What checking says of a tree that is not as it was laid out.
const TREE_DIFFERS: OpError = OpError(Errno::STALE);

impl<S: Session> BulkTask<S> for CheckFiles<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        let file = FileId(index as u32);
        session.locate(|p| self.layout.push_file(file, p));
        let found = match session.stat().await {
            Ok(found) => Some((found.kind, found.size)),
            Err(OpError(Errno::NOENT)) => None,
            Err(e) => return Err(SetupError::failed("check", b"", e)),
        };
        let size = self.layout.size(file);
        let want = self
            .layout
            .starts_with(file)
            .then_some((EntryKind::File, size));
        if found == want {
            Ok(())
        } else {
            Err(SetupError::failed("check", b"", TREE_DIFFERS))
        }
    }
}

struct CheckDirs<'a> {
    layout: &'a Layout,
    entries: &'a [u32],
}

impl<S: Session> BulkTask<S> for CheckDirs<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        session.locate(|p| self.layout.push_dir(DirId(index as u32), p));
        let mut found = session
            .entries()
            .await
            .map_err(|e| SetupError::failed("check", b"", e))?;
        found.retain(|(name, _)| name != MARKER.as_bytes());
        let whole = found.len() == self.entries[index as usize] as usize
            && found
                .iter()
                .all(|(_, kind)| matches!(kind, EntryKind::File | EntryKind::Dir));
        if whole {
            Ok(())
        } else {
            Err(SetupError::failed("check", b"", TREE_DIFFERS))
        }
    }
}

/// Whether the tree is there exactly as it was laid out: every file with its size, and nothing
/// else. Of a `trusted` tree only the directories are looked at: that they are there, and no
/// symbolic links to somewhere else.
pub(crate) fn is_whole<T: Target>(
    pool: &SetupPool<T>,
    layout: &Layout,
    trusted: bool,
    mut tell: impl FnMut(),
) -> Result<bool, SetupError> {
    let mut entries = vec![0u32; layout.dirs() as usize];
    for dir in 1..layout.dirs() {
        if let Some(parent) = layout.parent(DirId(dir)) {
            entries[parent.0 as usize] += 1;
        }
    }
    for file in (0..layout.files())
        .map(FileId)
        .filter(|f| layout.starts_with(*f))
    {
        entries[layout.dir_of(file).0 as usize] += 1;
    }
    // Leaf directories share their parents with directories of the tree; a fileset that has
    // them is made anew instead of being counted out.
    if layout.leaf_dirs() > 0 {
        return Ok(false);
    }
    let checked = pool
        .all(
            u64::from(layout.dirs()),
            &CheckDirs {
                layout,
                entries: &entries,
            },
            &mut tell,
        )
        .and_then(|()| match trusted {
            true => Ok(()),
            false => pool.all(u64::from(layout.files()), &CheckFiles { layout }, &mut tell),
        });
    match checked {
        Ok(()) => Ok(true),
        Err(SetupError::Failed { error, .. }) if error == TREE_DIFFERS => Ok(false),
        Err(SetupError::Failed {
            error: OpError(Errno::NOENT | Errno::LOOP | Errno::NOTDIR),
            ..
        }) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether an entry so deep below the root is one that Plimsoll makes.
pub(super) fn is_named(
    names: Option<&PatternNames>,
    depth: usize,
    name: &[u8],
    kind: EntryKind,
) -> bool {
    let Some(PatternNames { set, object }) = names else {
        return match kind {
            EntryKind::Link => is_our_link(name),
            _ => is_ours(name),
        };
    };
    match (kind, set.is_empty(), depth) {
        (EntryKind::Dir, false, 0) => set.matches(name),
        (EntryKind::File, false, 1) | (EntryKind::File, true, 0) => object.matches(name),
        _ => false,
    }
}
