//! Trees with random widths or depths, as tables of directories and entries.

use super::MAX_LEVELS;
use crate::fileset::Fileset;
use crate::seed::Rng;
use crate::variable::Number;
use rand_distr::{Distribution as _, Gamma};

/// A directory of a tree in the form of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dir {
    pub(super) parent: u32,
    /// Position of the directory in its parent, from 1, which is the name of the directory.
    pub(super) position: u32,
    /// Number of the directory's first file; the files of a directory have consecutive numbers.
    pub(super) first_file: u32,
}

/// A tree in the form of tables, in the order in which the directories were laid out. Widths and depths are draws, so
/// the position of a directory depends on all directories before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TableTree {
    pub(super) dirs: Vec<Dir>,
    pub(super) file_dir: Vec<u32>,
    /// For each leaf directory, the number of the parent directory and the position in the parent directory, from 1.
    pub(super) leaf_dirs: Vec<(u32, u32)>,
}

impl TableTree {
    pub(super) fn new(fileset: &Fileset, depth: Option<Number>, rng: Rng) -> Self {
        let mut builder = Builder::new(fileset, depth, rng);
        builder.build();
        let tree = builder.tree;
        let (files, leaf_dirs) = (tree.file_dir.len() as u64, tree.leaf_dirs.len() as u64);
        assert_eq!(files, fileset.entries, "files of {}", fileset.name);
        assert_eq!(
            leaf_dirs, fileset.leaf_dirs,
            "leaf directories of {}",
            fileset.name
        );
        tree
    }

    /// Calls `visit` with the position of each directory from the root's child down to `dir`.
    #[inline]
    pub(super) fn for_each_position(&self, dir: u32, mut visit: impl FnMut(u32)) {
        let mut positions = [0u32; MAX_LEVELS];
        let mut count = 0;
        let mut at = dir;
        while at != 0 {
            let d = self.dirs[at as usize];
            debug_assert!(
                count < MAX_LEVELS && d.parent < at,
                "a parent before its child"
            );
            positions[count] = d.position;
            count += 1;
            at = d.parent;
        }
        positions[..count].iter().rev().for_each(|p| visit(*p));
    }

    /// Position of a file in its directory, from 1.
    #[inline]
    pub(super) fn position_of(&self, file: u32) -> u32 {
        let dir = self.file_dir[file as usize];
        let first_file = self.dirs[dir as usize].first_file;
        debug_assert!(
            first_file <= file,
            "file {file} before its directory's first"
        );
        file - first_file + 1
    }

    pub(super) fn level(&self, dir: u32) -> usize {
        let above = |d: &u32| (*d != 0).then(|| self.dirs[*d as usize].parent);
        std::iter::successors(Some(dir), above).count()
    }
}

/// Mean depth of a fileset's tree in levels.
pub(super) fn mean_depth(fileset: &Fileset) -> f64 {
    let all = fileset.entries + fileset.leaf_dirs;
    // ln 1000 / ln 10 is 2.9999999999999996; without the addend, 1000 entries of width 10 would have a level too few.
    (all.max(1) as f64).ln() / fileset.width.mean.ln() + 1e-9
}

/// A directory while its contents are laid out.
struct Frame {
    dir: u32,
    level: usize,
    /// Number of entries that may still be added; no limit for the root.
    left: u64,
    next_position: u32,
    holds_files: bool,
}

struct Builder<'a> {
    fileset: &'a Fileset,
    depth: Option<Number>,
    mean_depth: f64,
    gamma: Option<(Gamma<f64>, Option<Gamma<f64>>)>,
    rng: Rng,
    tree: TableTree,
}

impl<'a> Builder<'a> {
    fn new(fileset: &'a Fileset, depth: Option<Number>, rng: Rng) -> Self {
        let mean_depth = mean_depth(fileset);
        let gamma = fileset.width.gamma_shape.and_then(|shape| {
            let of_mean = |mean: f64| Gamma::new(shape, mean / shape).ok();
            Some((of_mean(fileset.width.mean)?, of_mean(mean_depth)))
        });
        let root = Dir {
            parent: u32::MAX,
            position: 0,
            first_file: 0,
        };
        Self {
            fileset,
            depth,
            mean_depth,
            gamma,
            rng,
            tree: TableTree {
                dirs: vec![root],
                file_dir: Vec::with_capacity(fileset.entries as usize),
                leaf_dirs: Vec::with_capacity(fileset.leaf_dirs as usize),
            },
        }
    }

    fn draw_depth(&mut self) -> usize {
        let depth = match (&self.depth, &self.gamma) {
            (Some(Number::Drawn(sampler)), _) => sampler.draw(&mut self.rng) as usize,
            (Some(Number::Same(n)), _) => *n as usize,
            (None, Some((_, Some(gamma)))) => gamma.sample(&mut self.rng) as usize,
            (None, _) => self.mean_depth as usize,
        };
        depth.clamp(1, MAX_LEVELS)
    }

    fn draw_width(&mut self) -> u64 {
        let width = match &self.gamma {
            Some((gamma, _)) => gamma.sample(&mut self.rng),
            None => self.fileset.width.mean,
        };
        (width as u64).max(1)
    }

    fn build(&mut self) {
        let root_position = self.fill(
            1,
            |b| (b.tree.file_dir.len() as u64) < b.fileset.entries,
            |b, dir, _| b.tree.file_dir.push(dir),
        );
        self.fill(
            root_position,
            |b| (b.tree.leaf_dirs.len() as u64) < b.fileset.leaf_dirs,
            |b, dir, position| b.tree.leaf_dirs.push((dir, position)),
        );
    }

    /// Adds leaves to the tree while `wanted` holds; returns the root's next free position.
    fn fill(
        &mut self,
        first_position: u32,
        wanted: impl Fn(&Self) -> bool,
        mut leaf: impl FnMut(&mut Self, u32, u32),
    ) -> u32 {
        let mut stack = vec![Frame {
            dir: 0,
            level: 1,
            left: u64::MAX,
            next_position: first_position,
            holds_files: false,
        }];
        let mut root_position = first_position;
        while let Some(frame) = stack.last_mut() {
            if frame.left == 0 || !wanted(self) {
                if frame.dir == 0 {
                    root_position = frame.next_position;
                }
                stack.pop();
                continue;
            }
            frame.left -= 1;
            let (dir, level, position) = (frame.dir, frame.level + 1, frame.next_position);
            debug_assert!(level <= MAX_LEVELS + 1, "level {level}");
            frame.next_position += 1;
            if frame.holds_files {
                leaf(self, dir, position);
                continue;
            }
            let first_file = self.tree.file_dir.len() as u32;
            self.tree.dirs.push(Dir {
                parent: dir,
                position,
                first_file,
            });
            let holds_files = level >= self.draw_depth() || level == MAX_LEVELS;
            let left = self.draw_width();
            let dir = self.tree.dirs.len() as u32 - 1;
            stack.push(Frame {
                dir,
                level,
                left,
                next_position: 1,
                holds_files,
            });
        }
        root_position
    }
}
