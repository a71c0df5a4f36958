//! The directories that crashes can leave.

use crate::crash_points::disk::{DirNode, Disk, FileNode, Node, NodeId, Tree};
use crate::crash_points::recorder::Recording;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Kinds of crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crash {
    /// The process is killed: all changes persist.
    Kill,
    /// Power loss: exactly these changes of names and these contents persist.
    PowerCut(Names, Contents),
}

/// The changes of names that persist although they were not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// All changes.
    Kept,
    /// No changes.
    Lost,
    /// In one directory the first changes, up to this number; in other directories all.
    First(NodeId, usize),
    /// In one directory all changes except the change of this number; in other directories all.
    AllBut(NodeId, usize),
    /// In one directory all changes; in other directories none.
    Only(NodeId),
}

/// The contents that persist although they were not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contents {
    /// All contents.
    Kept,
    /// No contents: files have the content of their last sync.
    Lost,
    /// In each file the prefix that equals the durable content, and half of the bytes after it.
    Half,
    /// All lengths, with zeros after the prefix that equals the durable content.
    Zeros,
    /// All contents except those of one file.
    AllBut(NodeId),
    /// All contents, but of one file only the prefix that equals the durable content, and half of the bytes after it.
    HalfOf(NodeId),
}

/// A directory that a crash can leave.
#[derive(Debug, Clone)]
pub struct CrashState {
    /// Maximum number of changes before the crash: several crashes can leave the same directory.
    pub changes: usize,
    /// A crash that leaves the directory.
    pub crash: Crash,
    /// Files and directories after the crash.
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
                // The last crash with this tree replaces earlier ones: more changes mean that more data must persist.
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

/// The possible crashes in a state, with the trees that they leave.
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
    // `Kill` comes last, so that it names a tree that several crashes leave.
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
