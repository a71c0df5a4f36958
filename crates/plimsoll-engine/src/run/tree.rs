//! Creation, repair and check of the tree of a fileset.

use super::marker::{self, PatternNames};
use super::setup_pool::{BulkTask, SetupError, SetupPool};
use crate::tree_names::{is_our_link, is_ours};
use plimsoll_plan::{DirId, FileId, FilesetId, InitialData, Layout, Plan, Stream};
use plimsoll_target::{
    ContentPool, EntryKind, FileOperation, OpError, OpenHow, OpenMode, SetupSession,
};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes per write when a file is created.
const WRITE_CHUNK_BYTES: u64 = 1 << 20;

/// Numbers of files begun and of bytes written so far.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// Number of directories that a fileset begins with.
pub(super) fn initial_dirs(plan: &Plan, id: FilesetId, layout: &Layout) -> u64 {
    u64::from(layout.dirs()) + layout.count_initial_leaf_dirs(plan.leaf_dirs_used(id))
}

struct MakeDirs<'a> {
    layout: &'a Layout,
    dirs: &'a [u32],
}

/// Creates the located directory of a tree unless the directory exists: a growing tree has directories already, the
/// root may be the guarded directory itself, and a server refuses a retransmission of a request that it has executed.
pub(super) async fn ensure_dir(session: &mut dyn SetupSession) -> Result<(), OpError> {
    let done = session.make_dir().await;
    if done != Err(OpError(Errno::EXIST)) {
        return done;
    }
    match session.stat().await {
        Ok(found) if found.kind == EntryKind::Dir => Ok(()),
        _ => done,
    }
}

impl BulkTask for MakeDirs<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let dir = DirId(self.dirs[index as usize]);
        session.locate(|p| self.layout.push_dir(dir, p));
        ensure_dir(session).await.map_err(|e| {
            SetupError::failed_at("make directory", |p| self.layout.push_dir(dir, p), e)
        })
    }
}

struct MakeFiles<'a> {
    id: FilesetId,
    layout: &'a Layout,
    /// Pool of the bytes of the files.
    pool: &'a ContentPool,
    /// Stream from which the contents of the files are generated.
    content: Stream,
    progress: &'a Progress,
    /// Number of the first file to create, which is item 0 of the task.
    first: u64,
    /// Whether files may exist already, with right or wrong sizes.
    repair: bool,
    initially: InitialData,
}

impl MakeFiles<'_> {
    async fn make(&self, session: &mut dyn SetupSession, file: FileId) -> Result<(), OpError> {
        self.progress.files.fetch_add(1, Relaxed);
        let how = OpenHow {
            create: true,
            ..OpenHow::plain(OpenMode::Write)
        };
        session.begin_populating(self.id, file);
        session.open(how).await?;
        session.begin_content(self.content.branch(u64::from(file.0)));
        let size = self.layout.size(file);
        let written = match self.initially {
            InitialData::Written => fill(session, 0..size, self.progress).await,
            InitialData::Allocated | InitialData::Sparse => {
                self.progress.bytes.fetch_add(size, Relaxed);
                let allocates = self.initially == InitialData::Allocated;
                extend(session, size, allocates).await
            }
            InitialData::Empty => Ok(()),
        };
        let closed = session.close().await;
        // Populating reads nothing, so the check of reads only discards the record of written data.
        session.check_reads();
        closed.and(written)
    }

    /// Creates, resizes or removes a file, so that the file is as in the layout.
    async fn repair(&self, session: &mut dyn SetupSession, file: FileId) -> Result<(), OpError> {
        let found = match session.stat().await {
            Err(OpError(Errno::NOENT)) => None,
            other => Some(other?),
        };
        let wanted = self.layout.starts_with(file);
        let size = self.layout.size(file);
        match found {
            None if wanted => self.make(session, file).await,
            None => Ok(()),
            Some(found) if found.kind != EntryKind::File => Err(OpError(Errno::EXIST)),
            Some(found) if wanted && found.size == size => Ok(()),
            Some(found) => {
                self.progress.files.fetch_add(1, Relaxed);
                match wanted {
                    true => self.resize(session, file, found.size, size).await,
                    false => session.remove(EntryKind::File).await,
                }
            }
        }
    }

    async fn resize(
        &self,
        session: &mut dyn SetupSession,
        file: FileId,
        from: u64,
        size: u64,
    ) -> Result<(), OpError> {
        session.open(OpenHow::plain(OpenMode::Write)).await?;
        // Each size has a branch of the stream, so that a file that grows twice does not repeat the bytes of its first
        // growth.
        let content = self.content.branch(u64::from(file.0));
        session.begin_content(match from {
            0 => content,
            from => content.branch(from),
        });
        let done = match from > size {
            true => {
                let truncate = FileOperation::Truncate(size);
                session.on_file(truncate).await.map(drop)
            }
            false => fill(session, from..size, self.progress).await,
        };
        session.close().await.and(done)
    }
}

/// Gives the located empty file its size, with blocks for all bytes if `allocates` is set and the target can allocate.
async fn extend(session: &mut dyn SetupSession, size: u64, allocates: bool) -> Result<(), OpError> {
    if allocates && size > 0 {
        let done = session.on_file(FileOperation::Allocate(size)).await;
        if done != Err(OpError(Errno::OPNOTSUPP)) {
            return done.map(drop);
        }
    }
    let truncate = FileOperation::Truncate(size);
    session.on_file(truncate).await.map(drop)
}

/// Writes the bytes `part` of the located open file, in pieces of at most 1 MiB.
async fn fill(
    session: &mut dyn SetupSession,
    part: Range<u64>,
    progress: &Progress,
) -> Result<(), OpError> {
    let mut at = part.start;
    while at < part.end {
        let n = WRITE_CHUNK_BYTES.min(part.end - at);
        session.write(at, n).await?;
        at += n;
        progress.bytes.fetch_add(n, Relaxed);
    }
    Ok(())
}

impl BulkTask for MakeFiles<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let file = FileId((self.first + index) as u32);
        if !self.repair && !self.layout.starts_with(file) {
            return Ok(());
        }
        session.locate(|p| self.layout.push_file(file, p));
        let done = match self.repair {
            true => self.repair(session, file).await,
            false => self.make(session, file).await,
        };
        done.map_err(|e| SetupError::failed_at("make file", |p| self.layout.push_file(file, p), e))
    }

    fn content(&self) -> Option<&ContentPool> {
        Some(self.pool)
    }
}

struct MakeLeafDirs<'a> {
    layout: &'a Layout,
}

impl BulkTask for MakeLeafDirs<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let leaf = index as u32;
        if !self.layout.starts_with_leaf_dir(leaf) {
            return Ok(());
        }
        session.locate(|p| self.layout.push_leaf_dir(leaf, p));
        ensure_dir(session).await.map_err(|e| {
            SetupError::failed_at("make directory", |p| self.layout.push_leaf_dir(leaf, p), e)
        })
    }
}

/// Creates the missing directories of a tree except its leaf directories. The root's parent must exist.
pub(crate) fn make_dirs(
    pool: &SetupPool,
    layout: &Layout,
    mut tell: impl FnMut(),
) -> Result<(), SetupError> {
    // Directories are created level by level, so that each directory is created after its parent.
    let mut levels: Vec<Vec<u32>> = Vec::new();
    let mut level = vec![0u8; layout.dirs() as usize];
    for dir in 0..layout.dirs() {
        let parent = layout.parent(DirId(dir));
        assert!(parent.is_none_or(|p| p.0 < dir), "parents come first");
        let at = parent.map_or(0, |p| level[p.0 as usize] + 1);
        level[dir as usize] = at;
        if levels.len() <= usize::from(at) {
            levels.push(Vec::new());
        }
        levels[usize::from(at)].push(dir);
    }
    for dirs in &levels {
        let make = MakeDirs { layout, dirs };
        pool.all(dirs.len() as u64, &make, &mut tell)?;
    }
    Ok(())
}

/// Creates the leaf directories that a tree begins with.
pub(crate) fn make_leaf_dirs(
    pool: &SetupPool,
    layout: &Layout,
    tell: impl FnMut(),
) -> Result<(), SetupError> {
    let leaf_dirs = u64::from(layout.leaf_dirs());
    pool.all(leaf_dirs, &MakeLeafDirs { layout }, tell)
}

/// The stream that generates the contents of a tree's files.
fn content_of(pool: &ContentPool, layout: &Layout) -> Stream {
    let mut root = Vec::new();
    layout.push_dir(DirId(0), &mut root);
    pool.stream_of_files(&String::from_utf8_lossy(&root))
}

/// Creates or repairs the files of a tree whose numbers are in `part`. The directories must exist.
pub(crate) fn make_files(
    pool: &SetupPool,
    (id, layout, initially): (FilesetId, &Layout, InitialData),
    part: Range<u64>,
    repair: bool,
    progress: &Progress,
    tell: impl FnMut(),
) -> Result<(), SetupError> {
    let content = pool.contents.of(layout.content());
    let files = MakeFiles {
        id,
        layout,
        pool: content,
        content: content_of(content, layout),
        progress,
        first: part.start,
        repair,
        initially,
    };
    pool.all(part.end - part.start, &files, tell)
}

struct CheckFiles<'a> {
    layout: &'a Layout,
}

/// Error of a check that finds a tree other than laid out.
const TREE_DIFFERS: OpError = OpError(Errno::STALE);

impl BulkTask for CheckFiles<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
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
        match found == want {
            true => Ok(()),
            false => Err(SetupError::failed("check", b"", TREE_DIFFERS)),
        }
    }
}

struct CheckDirs<'a> {
    layout: &'a Layout,
    entries: &'a [u32],
}

impl BulkTask for CheckDirs<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        session.locate(|p| self.layout.push_dir(DirId(index as u32), p));
        let mut found = session
            .entries()
            .await
            .map_err(|e| SetupError::failed("check", b"", e))?;
        found.retain(|(name, _)| !marker::is_own_name(name));
        let whole = found.len() == self.entries[index as usize] as usize
            && found
                .iter()
                .all(|(_, kind)| matches!(kind, EntryKind::File | EntryKind::Dir));
        match whole {
            true => Ok(()),
            false => Err(SetupError::failed("check", b"", TREE_DIFFERS)),
        }
    }
}

/// Whether the tree is exactly as it was laid out: every file with its size, and no other entries. Of a `trusted` tree
/// only the directories are checked: each directory must exist, not be a symbolic link, and have as many entries as
/// planned. Always `false` for a tree with leaf directories.
pub(crate) fn is_whole(
    pool: &SetupPool,
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
    for file in layout.initial_file_ids() {
        entries[layout.dir_of(file).0 as usize] += 1;
    }
    // Leaf directories share their parents with other directories of the tree, so the entries of the parents cannot be
    // counted, and a fileset with leaf directories is created again.
    if layout.leaf_dirs() > 0 {
        return Ok(false);
    }
    let entries = &entries;
    let dirs = CheckDirs { layout, entries };
    let mut checked = pool.all(u64::from(layout.dirs()), &dirs, &mut tell);
    if checked.is_ok() && !trusted {
        checked = pool.all(u64::from(layout.files()), &CheckFiles { layout }, tell);
    }
    match checked {
        Ok(()) => Ok(true),
        Err(SetupError::Failed {
            error: TREE_DIFFERS | OpError(Errno::NOENT | Errno::LOOP | Errno::NOTDIR),
            ..
        }) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether Plimsoll gives the name `name` to entries of the kind `kind` that lie `depth` directories below the root of
/// a tree. With `names`, only names that fit the templates of the pattern count.
pub(super) fn is_named(
    names: Option<&PatternNames>,
    depth: usize,
    name: &[u8],
    kind: EntryKind,
) -> bool {
    match names {
        Some(names) => names.fit(depth, name, kind),
        None if kind == EntryKind::Link => is_our_link(name),
        None => is_ours(name),
    }
}
