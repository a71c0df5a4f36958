//! Trees whose widths and depth are exact: directories and names are formulas of the numbers of entries.

use super::divisor::Divisor;
use super::{MAX_ENTRIES, MAX_LEVELS};

/// A tree in which every directory has the same number of entries, except the last ones, and all
/// entries are on the same level.
///
/// Directories are numbered from the root, each before those below it and those before the next one of
/// its parent (preorder), as [`TableTree`](super::table::TableTree) numbers them. A directory that is
/// full and its subdirectories therefore have as many numbers as its level says, and the path of a
/// directory is its number divided by these sums, level by level.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormulaTree {
    /// Entries of a directory.
    width: Divisor,
    /// For each level from that below the root to that of the entries' directories: number of
    /// directories of a full subtree, its root among them. Sums that exceed 32 bits are their maximum,
    /// since no tree has more: its first subtree of that level is not full.
    subtrees: Vec<Divisor>,
    files: Forest,
    leaf_dirs: Forest,
}

/// The subtrees of the root that hold files, or those that hold leaf directories.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Forest {
    entries: u32,
    /// Directories of the tree before the first one here, without the root.
    dirs_before: u32,
    dirs: u32,
    /// Entries of the root before the first one here.
    subtrees_before: u32,
}

/// A directory of a tree.
struct DirPlace {
    parent: u32,
    level: usize,
}

impl FormulaTree {
    /// The tree of some files and leaf directories; `None` if it has too many directories. Those of
    /// level `depth`, at least level 2, hold the entries; the root has level 1.
    pub(super) fn new(files: u32, leaf_dirs: u32, width: u64, depth: usize) -> Option<Self> {
        let width = width.clamp(1, u64::from(u32::MAX));
        let levels = depth.clamp(2, MAX_LEVELS) - 1;
        let above = |below: &u64| Some((1 + below * width).min(u64::from(u32::MAX)));
        let sums: Vec<u64> = std::iter::successors(Some(1), above).take(levels).collect();
        let subtrees = sums.iter().rev().map(|sum| Divisor::new(*sum as u32));
        let mut tree = Self {
            width: Divisor::new(width as u32),
            subtrees: subtrees.collect(),
            files: Forest::default(),
            leaf_dirs: Forest::default(),
        };
        let (dirs, subtrees) = tree.extent(files);
        tree.files = Forest {
            entries: files,
            dirs: u32::try_from(dirs).ok()?,
            ..Forest::default()
        };
        let (more, _) = tree.extent(leaf_dirs);
        if 1 + dirs + more > MAX_ENTRIES {
            return None;
        }
        tree.leaf_dirs = Forest {
            entries: leaf_dirs,
            dirs_before: dirs as u32,
            dirs: more as u32,
            subtrees_before: subtrees,
        };
        Some(tree)
    }

    /// Numbers of directories that `entries` entries need, and of those that the root has.
    fn extent(&self, entries: u32) -> (u64, u32) {
        match entries.checked_sub(1) {
            None => (0, 0),
            Some(last) => {
                let (number, subtree) = self.holder(self.width.divide(last).0);
                (number, subtree + 1)
            }
        }
    }

    /// Number, in its forest from 1, of the `n`-th directory that holds entries, and number of its
    /// subtree of the root from 0.
    #[inline]
    fn holder(&self, n: u32) -> (u64, u32) {
        // Itself and the directories on the path to it.
        let mut number = self.subtrees.len() as u64;
        let mut left = n;
        for subtree in self.subtrees[1..].iter().rev() {
            let (above, position) = self.width.divide(left);
            number += u64::from(position) * u64::from(subtree.get());
            left = above;
        }
        (
            number + u64::from(left) * u64::from(self.subtrees[0].get()),
            left,
        )
    }

    pub(super) fn dirs(&self) -> u32 {
        1 + self.files.dirs + self.leaf_dirs.dirs
    }

    /// Directory and position, from 1, of an entry of a forest.
    #[inline]
    fn place_of(&self, forest: &Forest, entry: u32) -> (u32, u32) {
        debug_assert!(
            entry < forest.entries,
            "entry {entry} of {}",
            forest.entries
        );
        let (holder, position) = self.width.divide(entry);
        let (number, _) = self.holder(holder);
        debug_assert!(
            number <= u64::from(forest.dirs),
            "entry {entry} in directory {number} of {}",
            forest.dirs
        );
        (forest.dirs_before + number as u32, position + 1)
    }

    #[inline]
    pub(super) fn dir_of(&self, file: u32) -> u32 {
        self.place_of(&self.files, file).0
    }

    /// Position of a file in its directory, from 1.
    #[inline]
    pub(super) fn position_of(&self, file: u32) -> u32 {
        self.width.divide(file).1 + 1
    }

    pub(super) fn leaf_dir(&self, leaf: u32) -> (u32, u32) {
        self.place_of(&self.leaf_dirs, leaf)
    }

    pub(super) fn parent(&self, dir: u32) -> u32 {
        self.walk(dir, |_| ()).parent
    }

    pub(super) fn level(&self, dir: u32) -> usize {
        self.walk(dir, |_| ()).level
    }

    /// Passes the position of each directory from the root's child to `dir`, which is not the root.
    #[inline]
    pub(super) fn for_each_position(&self, dir: u32, visit: impl FnMut(u32)) {
        self.walk(dir, visit);
    }

    #[inline]
    fn walk(&self, dir: u32, mut visit: impl FnMut(u32)) -> DirPlace {
        debug_assert!(0 < dir && dir < self.dirs(), "directory {dir}");
        let forest = match dir <= self.files.dirs {
            true => &self.files,
            false => &self.leaf_dirs,
        };
        let mut left = dir - forest.dirs_before - 1;
        let mut first = forest.subtrees_before;
        for (level, subtree) in (2..).zip(&self.subtrees) {
            let (position, rest) = subtree.divide(left);
            visit(first + position + 1);
            if rest == 0 {
                let parent = match level {
                    2 => 0,
                    _ => dir - 1 - position * subtree.get(),
                };
                return DirPlace { parent, level };
            }
            left = rest - 1;
            first = 0;
        }
        unreachable!("a subtree of the last level is one directory")
    }

    /// The numbers that determine the tree.
    pub(super) fn parameters(&self) -> [u64; 4] {
        [
            self.files.entries.into(),
            self.leaf_dirs.entries.into(),
            self.width.get().into(),
            self.subtrees.len() as u64,
        ]
    }
}
