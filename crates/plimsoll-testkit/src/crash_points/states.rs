//! The directories that crashes leave.

use crate::crash_points::disk::{DirNode, Disk, FileNode, Node, NodeId, Tree};
use crate::crash_points::recorder::Recording;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Crash {
    /// The process is killed: everything that it did is there.
    Kill,
    /// The power fails: these changes of names and these contents are there.
    PowerCut(Names, Contents),
}

/// Which changes of names survive that were not made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// All.
    Kept,
    /// None.
    Lost,
    /// The first ones, up to this number, in one directory; all of them elsewhere.
    First(NodeId, usize),
    /// In one directory all but the one of this number, elsewhere all.
    AllBut(NodeId, usize),
    /// In one directory all, elsewhere none.
    Only(NodeId),
}

/// Which contents survive that were not made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Contents {
    /// All.
    Kept,
    /// None: files are as long as they were when they were last synced.
    Lost,
    /// Half of each.
    Half,
    /// The lengths, with zeros for bytes.
    Zeros,
    /// All but those of one file.
    AllBut(NodeId),
    /// All, but half of those of one file.
    HalfOf(NodeId),
}

/// A directory that crashes leave.
#[derive(Debug, Clone)]
pub struct CrashState {
    /// Number of changes that had been made, at most: several crashes leave the same.
    pub changes: usize,
    /// The crash.
    pub crash: Crash,
    /// What is there.
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
    /// Those of the file system.
    pub fn make(&self, dir: &Path) -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        // A directory comes before what is in it.
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
    /// Every different directory that a crash after one of the changes leaves, in the order of the changes.
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
                // The last: the more was done, the more has to be there.
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

/// The crashes that are possible in a state, and what they leave.
fn of_disk(disk: &Disk) -> Vec<(Crash, Tree)> {
    let (names, contents) = (names(disk), contents(disk));
    let whole = |crash: Contents| matches!(crash, Contents::Kept | Contents::Lost);
    let mut crashes = Vec::new();
    for names in &names {
        for contents in &contents {
            // Both in all combinations would be too many: what is cut within a file does not depend on names.
            if *names == Names::Kept || whole(*contents) {
                crashes.push(Crash::PowerCut(*names, *contents));
            }
        }
    }
    // Last, so that a state is named after it where both leave the same.
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

/// Number of bytes that two contents begin with.
fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
