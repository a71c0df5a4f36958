//! The durable part of a directory, and the part that a power cut may lose.

use crate::crash_points::Change;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files and directories below a directory: contents of files, `None` for directories.
pub type Tree = BTreeMap<PathBuf, Option<Arc<Vec<u8>>>>;

/// Number of a file or directory, independent of its names.
pub(crate) type NodeId = usize;

/// Node number of the recorded directory, the root of the model.
pub(crate) const ROOT: NodeId = 0;

/// Model of a directory on a file system with no more guarantees than POSIX gives: `fsync` of a file makes its content
/// durable but not its name, `fsync` of a directory makes names durable but not contents, and unsynced changes may be
/// lost in any order.
#[derive(Debug, Clone)]
pub struct Disk {
    pub(crate) nodes: Vec<Node>,
}

/// Inode of a [`Disk`]: a file or directory, without the names that link to the inode.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FileNode {
    pub(crate) data: Arc<Vec<u8>>,
    /// Content of the file at its last `fsync`; empty for a new file without an `fsync`.
    pub(crate) durable: Arc<Vec<u8>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct DirNode {
    entries: BTreeMap<OsString, NodeId>,
    durable: BTreeMap<OsString, NodeId>,
    /// Changes of names since the last `fsync`, in order.
    pub(crate) pending: Vec<NameChange>,
}

/// A change of names in one directory, which a journal makes entirely or not at all.
#[derive(Debug, Clone)]
pub(crate) struct NameChange {
    removed: Option<OsString>,
    added: Option<(OsString, NodeId)>,
}

impl NameChange {
    fn apply(&self, entries: &mut BTreeMap<OsString, NodeId>) {
        if let Some(name) = &self.removed {
            entries.remove(name);
        }
        if let Some((name, node)) = &self.added {
            entries.insert(name.clone(), *node);
        }
    }
}

impl DirNode {
    /// Names in the directory after a power cut that keeps only the changes marked in `kept`, of the changes since the
    /// last `fsync`.
    pub(crate) fn names(&self, kept: &[bool]) -> BTreeMap<OsString, NodeId> {
        let mut names = self.durable.clone();
        for (change, _) in self.pending.iter().zip(kept).filter(|(_, kept)| **kept) {
            change.apply(&mut names);
        }
        names
    }
}

impl Disk {
    /// Reads a directory from the machine's file system; everything in the directory counts as durable.
    ///
    /// # Errors
    /// If the directory cannot be read, or contains anything except files and directories.
    pub fn read(dir: &Path) -> io::Result<Self> {
        let mut disk = Self {
            nodes: vec![Node::Dir(DirNode::default())],
        };
        disk.read_into(ROOT, dir)?;
        Ok(disk)
    }

    fn read_into(&mut self, at: NodeId, dir: &Path) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let id = self.nodes.len();
            if kind.is_dir() {
                self.nodes.push(Node::Dir(DirNode::default()));
                self.read_into(id, &entry.path())?;
            } else if kind.is_file() {
                let data = Arc::new(std::fs::read(entry.path())?);
                let durable = data.clone();
                self.nodes.push(Node::File(FileNode { data, durable }));
            } else {
                let path = entry.path();
                return Err(io::Error::other(format!(
                    "{} is not a regular file",
                    path.display()
                )));
            }
            names.insert(entry.file_name(), id);
        }
        self.nodes[at] = Node::Dir(DirNode {
            durable: names.clone(),
            entries: names,
            pending: vec![],
        });
        Ok(())
    }

    /// Applies a change.
    ///
    /// # Errors
    /// If the change does not fit the present state: the changes are recorded in the wrong order, or a call was
    /// translated wrongly.
    pub fn apply(&mut self, change: &Change) -> io::Result<()> {
        match change {
            Change::MakeDir(path) => self.add(path, Node::Dir(DirNode::default())),
            Change::Create(path) => self.add(path, Node::File(FileNode::default())),
            Change::Resize(path, bytes) => {
                let data = self.data(path)?;
                data.resize(usize::try_from(*bytes).map_err(io::Error::other)?, 0);
                Ok(())
            }
            Change::Write {
                path,
                offset,
                bytes,
            } => {
                let from = usize::try_from(*offset).map_err(io::Error::other)?;
                let data = self.data(path)?;
                data.resize(data.len().max(from + bytes.len()), 0);
                data[from..from + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            Change::Rename { from, to } => self.rename(from, to),
            Change::Link { from, to } => {
                let node = self.find(from)?;
                self.rename_entry(to, None, Some(node))
            }
            Change::Remove(path) => self.rename_entry(path, Some(path), None),
            Change::Sync(path) => self.sync(path),
        }
    }

    fn sync(&mut self, path: &Path) -> io::Result<()> {
        let node = self.find(path)?;
        match &mut self.nodes[node] {
            Node::File(file) => file.durable = file.data.clone(),
            Node::Dir(dir) => {
                dir.durable = dir.entries.clone();
                dir.pending.clear();
            }
        }
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        if from.parent() == to.parent() {
            return self.rename_entry(to, Some(from), Some(node));
        }
        // POSIX does not promise that both directories become durable together.
        self.rename_entry(to, None, Some(node))?;
        self.rename_entry(from, Some(from), None)
    }

    fn add(&mut self, path: &Path, node: Node) -> io::Result<()> {
        if self.find(path).is_ok() {
            return Err(unfitting(path));
        }
        self.nodes.push(node);
        let id = self.nodes.len() - 1;
        self.rename_entry(path, None, Some(id))
    }

    /// Changes names in the directory of `path`; `removed` is another path in the same directory.
    fn rename_entry(
        &mut self,
        path: &Path,
        removed: Option<&Path>,
        added: Option<NodeId>,
    ) -> io::Result<()> {
        let name_of = |path: &Path| path.file_name().map(OsString::from);
        let name = name_of(path).ok_or_else(|| unfitting(path))?;
        let dir = self.find(path.parent().unwrap_or(Path::new("")))?;
        let change = NameChange {
            removed: removed.and_then(name_of),
            added: added.map(|node| (name, node)),
        };
        let Node::Dir(dir) = &mut self.nodes[dir] else {
            return Err(unfitting(path));
        };
        change.apply(&mut dir.entries);
        dir.pending.push(change);
        Ok(())
    }

    fn find(&self, path: &Path) -> io::Result<NodeId> {
        let mut at = ROOT;
        for part in path {
            at = match &self.nodes[at] {
                Node::Dir(dir) => *dir.entries.get(part).ok_or_else(|| unfitting(path))?,
                Node::File(_) => return Err(unfitting(path)),
            };
        }
        Ok(at)
    }

    fn data(&mut self, path: &Path) -> io::Result<&mut Vec<u8>> {
        let node = self.find(path)?;
        match &mut self.nodes[node] {
            Node::File(file) => Ok(Arc::make_mut(&mut file.data)),
            Node::Dir(_) => Err(unfitting(path)),
        }
    }

    /// The tree that running processes see.
    #[must_use]
    pub fn present(&self) -> Tree {
        self.tree(&|_, dir| vec![true; dir.pending.len()], &|_, file| {
            file.data.clone()
        })
    }

    /// The tree after the loss of some changes of names and some contents.
    pub(crate) fn tree(
        &self,
        kept: &dyn Fn(NodeId, &DirNode) -> Vec<bool>,
        content: &dyn Fn(NodeId, &FileNode) -> Arc<Vec<u8>>,
    ) -> Tree {
        let (mut tree, mut todo) = (Tree::new(), vec![(PathBuf::new(), ROOT)]);
        while let Some((path, id)) = todo.pop() {
            match &self.nodes[id] {
                Node::File(file) => _ = tree.insert(path, Some(content(id, file))),
                Node::Dir(dir) => {
                    for (name, node) in dir.names(&kept(id, dir)) {
                        todo.push((path.join(name), node));
                    }
                    if id != ROOT {
                        tree.insert(path, None);
                    }
                }
            }
        }
        tree
    }
}

fn unfitting(path: &Path) -> io::Error {
    io::Error::other(format!(
        "a change of {} does not fit what was recorded before",
        path.display()
    ))
}
