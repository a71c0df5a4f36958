//! Trees with exact widths and depth: directories and names are formulas of entry numbers.

use super::divisor::Divisor;
use super::{MAX_ENTRIES, MAX_LEVELS};

/// A tree in which every directory except the last directories has the same number of entries, and all entries are on
/// the same level.
///
/// Directories are numbered from the root in preorder, as [`TableTree`](super::table::TableTree) numbers directories. A
/// full subtree therefore has a number of directories that follows from its level, and the path of a directory is its
/// number divided by the sizes of full subtrees, level by level.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FormulaTree {
    /// Number of files, leaf directories or subdirectories of every full directory.
    width: Divisor,
    /// Number of directories of a full subtree, including its root, for each level from the root's children to the
    /// level of the entries' directories. Numbers beyond 32 bits are cut to the maximum: no tree has as many
    /// directories, so the first subtree of the level is not full.
    subtrees: Vec<Divisor>,
    files: Forest,
    leaf_dirs: Forest,
}

/// The subtrees of the root that hold files, or the subtrees that hold leaf directories.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Forest {
    entries: u32,
    /// Number of directories that precede the forest's first directory in preorder, without the root.
    dirs_before: u32,
    dirs: u32,
    /// Number of entries of the root before the forest's first subtree.
    subtrees_before: u32,
}

/// Place of a directory in the tree: number of the parent directory, and level, where the root has level 1.
struct DirPlace {
    parent: u32,
    level: usize,
}

impl FormulaTree {
    /// Builds the tree of `files` files and `leaf_dirs` leaf directories; `None` if the tree has too many directories.
    /// Directories of level `depth`, at least level 2, hold the entries; the root has level 1.
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

    /// Number of directories, and of children of the root, that `entries` entries need.
    fn extent(&self, entries: u32) -> (u64, u32) {
        match entries.checked_sub(1) {
            None => (0, 0),
            Some(last) => {
                let (number, subtree) = self.holder(self.width.divide(last).0);
                (number, subtree + 1)
            }
        }
    }

    /// Number (from 1, in the forest) of the `n`-th directory that holds entries, and number (from 0) of the root's
    /// subtree that contains the directory.
    #[inline]
    fn holder(&self, n: u32) -> (u64, u32) {
        // The path from the root to the `n`-th directory has one directory per level, the `n`-th directory included.
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

    /// Calls `visit` with the position of each directory from the root's child down to `dir`, which is not the root.
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

    /// Numbers that determine the tree: files, leaf directories, width and levels.
    pub(super) fn parameters(&self) -> [u64; 4] {
        [
            self.files.entries.into(),
            self.leaf_dirs.entries.into(),
            self.width.get().into(),
            self.subtrees.len() as u64,
        ]
    }
}
