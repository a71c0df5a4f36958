//! The directories that crashes can leave.

use crate::crash_points::disk::{DirNode, Disk, FileNode, Node, NodeId, Tree};
use crate::crash_points::recorder::Recording;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Crash of the recorded program or of its machine: a kill of the process, or a power cut with the unsynced changes
/// that reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crash {
    /// Kill of the recorded process: the kernel keeps running, so every change before the kill persists.
    Kill,
    /// Power cut of the machine: of the changes that were not synced before the cut, exactly the given changes of names
    /// and of contents are on the disk.
    PowerCut(Names, Contents),
}

/// Unsynced changes of directory entries (creations, links, renames, removals) that are on the disk after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// Crash state in which every change of a name that was not synced before the crash is on the disk.
    Kept,
    /// Crash state in which no change of a name that was not synced before the crash is on the disk.
    Lost,
    /// Crash state in which the disk has only the first unsynced changes of names in one directory, as many as the
    /// number says, and every change of names in other directories.
    First(NodeId, usize),
    /// Crash state in which the disk lacks one unsynced change of a name: in one directory, the change with the given
    /// number, counted from 0.
    AllBut(NodeId, usize),
    /// Crash state in which the disk has every unsynced change of names in one directory, and no unsynced change of
    /// names in other directories.
    Only(NodeId),
}

/// Unsynced contents of files that are on the disk after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contents {
    /// Crash state in which every file has the content that the program wrote last, synced or not.
    Kept,
    /// Crash state in which every file has its content at the last `fsync`; a new file without an `fsync` is empty.
    Lost,
    /// Crash state with torn writes: every file has the prefix that equals its synced content, and half of the unsynced
    /// bytes after the prefix.
    Half,
    /// Crash state in which every file has its new length, but zeros after the prefix that equals its synced content.
    Zeros,
    /// Crash state in which one file has its content at the last `fsync`, and every other file the content that the
    /// program wrote last.
    AllBut(NodeId),
    /// Crash state with one torn file, which has the prefix that equals its synced content, and half of the unsynced
    /// bytes after the prefix; every other file has the content that the program wrote last.
    HalfOf(NodeId),
}

/// Possible content of the recorded directory after a crash, with the crash.
#[derive(Debug, Clone)]
pub struct CrashState {
    /// Number of the program's changes before the crash; the highest number if several crashes leave the same content.
    pub changes: usize,
    /// Kind of crash that leaves `tree` after `changes` changes.
    pub crash: Crash,
    /// Files and directories that the crash leaves in the recorded directory.
    pub tree: Tree,
}

impl fmt::Display for CrashState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} after {} changes", self.crash, self.changes)
    }
}

impl CrashState {
    /// Makes the directory, which must be empty or missing.
    ///
    /// # Errors
    /// If a file or directory cannot be created.
    pub fn make(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        // A directory sorts before its content.
        for (path, content) in &self.tree {
            let path = dir.join(path);
            match content {
                Some(bytes) => std::fs::write(path, &**bytes)?,
                None => std::fs::create_dir(path)?,
            }
        }
        Ok(())
    }
}

impl Recording {
    /// Every distinct directory that a crash after some change can leave, in the order of the changes.
    #[must_use]
    pub fn crash_states(&self) -> Vec<CrashState> {
        let mut disk = self.before.clone();
        let mut found: HashMap<Tree, (usize, Crash)> = HashMap::new();
        for made in 0..=self.changes.len() {
            if let Some(change) = made.checked_sub(1).map(|last| &self.changes[last]) {
                disk.apply(change)
                    .expect("it was applied when it was recorded");
            }
            for (crash, tree) in of_disk(&disk) {
                // If several crashes leave the same files, the latest crash is kept: after more changes, more data must
                // have persisted.
                found.insert(tree, (made, crash));
            }
        }
        let state = |(tree, (changes, crash))| CrashState {
            changes,
            crash,
            tree,
        };
        let mut states: Vec<_> = found.into_iter().map(state).collect();
        states.sort_by(|a, b| (a.changes, &a.tree).cmp(&(b.changes, &b.tree)));
        states
    }
}

/// Crashes that are possible with the unsynced changes of `disk`, each with the files that the crash leaves.
fn of_disk(disk: &Disk) -> Vec<(Crash, Tree)> {
    let (names, contents) = (names(disk), contents(disk));
    let whole = |crash: Contents| matches!(crash, Contents::Kept | Contents::Lost);
    let mut crashes = Vec::new();
    for names in &names {
        for contents in &contents {
            // All combinations would be too many: the cut within a file does not depend on names.
            if *names == Names::Kept || whole(*contents) {
                crashes.push(Crash::PowerCut(*names, *contents));
            }
        }
    }
    // `Kill` is pushed last, because a crash state names the last of the crashes that leave the same files.
    crashes.push(Crash::Kill);
    let tree = |crash| match crash {
        Crash::Kill => disk.present(),
        Crash::PowerCut(names, contents) => disk
            .tree(&|id, dir| kept_names(names, id, dir), &|id, file| {
                kept_content(contents, id, file)
            }),
    };
    crashes.into_iter().map(|c| (c, tree(c))).collect()
}

fn names(disk: &Disk) -> Vec<Names> {
    let mut all = vec![Names::Kept, Names::Lost];
    for (id, node) in disk.nodes.iter().enumerate() {
        let pending = match node {
            Node::Dir(dir) => dir.pending.len(),
            Node::File(_) => 0,
        };
        if pending > 0 {
            all.push(Names::Only(id));
        }
        all.extend((0..pending).map(|n| Names::First(id, n)));
        all.extend((0..pending.saturating_sub(1)).map(|n| Names::AllBut(id, n)));
    }
    all
}

fn contents(disk: &Disk) -> Vec<Contents> {
    use Contents::{AllBut, Half, HalfOf, Kept, Lost, Zeros};
    let mut all = vec![Kept, Lost, Half, Zeros];
    for (id, node) in disk.nodes.iter().enumerate() {
        if matches!(node, Node::File(file) if file.data != file.durable) {
            all.extend([AllBut(id), HalfOf(id)]);
        }
    }
    all
}

fn kept_names(names: Names, id: NodeId, dir: &DirNode) -> Vec<bool> {
    let all = dir.pending.len();
    let kept = |n: usize| match names {
        Names::Kept => true,
        Names::Lost => false,
        Names::First(at, first) => at != id || n < first,
        Names::AllBut(at, lost) => at != id || n != lost,
        Names::Only(at) => at == id,
    };
    (0..all).map(kept).collect()
}

fn kept_content(contents: Contents, id: NodeId, file: &FileNode) -> Arc<Vec<u8>> {
    let half = || {
        let common = common_bytes(&file.durable, &file.data);
        let kept = common + (file.data.len() - common) / 2;
        Arc::new(file.data[..kept].to_vec())
    };
    match contents {
        Contents::Lost => file.durable.clone(),
        Contents::AllBut(lost) if lost == id => file.durable.clone(),
        Contents::Half if file.data != file.durable => half(),
        Contents::HalfOf(cut) if cut == id => half(),
        Contents::Zeros if file.data != file.durable => {
            let mut bytes = file.data.to_vec();
            bytes[common_bytes(&file.durable, &file.data)..].fill(0);
            Arc::new(bytes)
        }
        _ => file.data.clone(),
    }
}

/// Length of the common prefix of two contents.
fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
