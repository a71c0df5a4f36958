//! The tree of a fileset: its directories and files, and the size of each file.
//!
//! The name of an entry is its position in the parent directory, and paths are computed on demand. A tree with exact
//! widths and depth (all filesets of operation mixes, and Filebench's with `dirgamma=0`) is a formula: directory, name
//! and size of a file follow from its number. A formula takes no memory except a table of up to 2²⁰ sizes (8 MiB). A
//! tree with random widths is a table of a few numbers per directory and twelve bytes per file, because the position of
//! a directory depends on all earlier draws.
//!
//! | modules, each above the modules before it | contents |
//! | --- | --- |
//! | `names`, `letters`, `divisor` | names as text; division by constants |
//! | `initial`, `sizes` | entries that exist when a run starts; sizes and their summary |
//! | `formula`, `table` | the two kinds of trees |

mod divisor;
mod formula;
mod initial;
mod letters;
mod names;
mod sizes;
mod table;

pub use sizes::SizeSummary;

use crate::content::Content;
use crate::fileset::{Fileset, InitialData, Letters};
use crate::ids::FilesetId;
use crate::plan::Plan;
use crate::seed::Stream;
use crate::variable::Number;
use formula::FormulaTree;
use initial::InitialEntries;
use names::push_name;
use sizes::{MAX_SIZES_DRAWN, SizeDraws, Sizes};
use std::ops::Range;
use std::sync::OnceLock;
use table::TableTree;

/// Number of a file of a [`Layout`], 0 to entries − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Number of a directory of a [`Layout`]; 0 is the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirId(pub u32);

/// Maximum number of directory levels, which bounds the length of paths.
const MAX_LEVELS: usize = 64;

/// Maximum number of files, and of leaf directories, of a fileset.
const MAX_ENTRIES: u64 = u32::MAX as u64 - 1;

/// The tree of one fileset, laid out from the Plan's seed.
///
/// A tree is laid out by Filebench's rules: the mean depth is `ln(entries + leaf_dirs) / ln(width)`; each directory
/// draws a target depth and a width. A directory below the root that has reached its depth holds files, and any other
/// directory holds subdirectories. The root has as many subdirectories as the entries need.
///
/// The size of a file, and whether the file exists when the run starts, follow from the seed, the fileset's name and
/// definition, and the file's number, so a change of the tree's shape changes no size.
#[derive(Debug, Clone)]
pub struct Layout {
    root: Vec<u8>,
    tree: Tree,
    sizes: Sizes,
    letters: Option<Letters>,
    contents: (InitialData, Content),
    initial_files: InitialEntries,
    initial_leaf_dirs: InitialEntries,
    /// Fingerprint of the layout, computed at the first call of [`Layout::fingerprint`].
    fingerprint: OnceLock<u64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Formula(FormulaTree),
    Table(TableTree),
}

/// Reason why a fileset cannot be laid out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// The fileset has more than 4 294 967 294 files or leaf directories.
    #[error("fileset `{0}` has more than {MAX_ENTRIES} entries")]
    TooMany(String),
    /// The entries of the fileset need more than 4 294 967 294 directories.
    #[error(
        "fileset `{0}` has more than {MAX_ENTRIES} directories: more entries per directory or less \
         depth make them fewer"
    )]
    TooManyDirs(String),
    /// A random variable of the fileset has invalid parameters: name of the fileset, and the violated rule as a
    /// sentence.
    #[error("fileset `{0}`: {1}")]
    Variable(String, String),
    /// The path of the fileset leaves the work directory.
    #[error(transparent)]
    Name(#[from] crate::RelPathError),
}

impl Layout {
    /// Lays out a fileset of a Plan; the same Plan always gives the same tree.
    ///
    /// # Errors
    /// See [`LayoutError`].
    pub fn new(plan: &Plan, id: FilesetId) -> Result<Self, LayoutError> {
        let fileset = plan.fileset(id);
        let tree = |depth| match (fileset.width.gamma_shape, &depth) {
            (None, None) => formula(fileset, table::mean_depth(fileset) as usize),
            (None, Some(Number::Same(depth))) => formula(fileset, *depth as usize),
            _ => Ok(Tree::Table(table(plan, fileset, depth))),
        };
        Self::with_tree(plan, fileset, MAX_SIZES_DRAWN, tree)
    }

    /// Lays out a fileset as `Self::new` does, but draws random sizes of a formula on demand.
    #[cfg(test)]
    fn without_tables(plan: &Plan, id: FilesetId) -> Result<Self, LayoutError> {
        let layout = Self::new(plan, id)?;
        let fileset = plan.fileset(id);
        Self::with_tree(plan, fileset, 0, |_| Ok(layout.tree))
    }

    /// Lays out a fileset as a table, even if a formula is possible.
    #[cfg(test)]
    fn tabulated(plan: &Plan, id: FilesetId) -> Result<Self, LayoutError> {
        let fileset = plan.fileset(id);
        Self::with_tree(plan, fileset, u32::MAX, |depth| {
            Ok(Tree::Table(table(plan, fileset, depth)))
        })
    }

    /// Lays out a fileset with the tree that `tree` builds from the fileset's depth. Random sizes are drawn now, unless
    /// the tree is a formula with more than `most` files.
    fn with_tree(
        plan: &Plan,
        fileset: &Fileset,
        most: u32,
        tree: impl FnOnce(Option<Number>) -> Result<Tree, LayoutError>,
    ) -> Result<Self, LayoutError> {
        if fileset.entries > MAX_ENTRIES || fileset.leaf_dirs > MAX_ENTRIES {
            return Err(LayoutError::TooMany(fileset.name.clone()));
        }
        let (files, leaf_dirs) = (fileset.entries as u32, fileset.leaf_dirs as u32);
        let fail = |e| LayoutError::Variable(fileset.name.clone(), e);
        let number = |value| plan.number(value).map_err(fail);
        let tree = tree(fileset.depth.map(number).transpose()?)?;
        let stream = streams(plan, fileset);
        let sizes = match number(fileset.size)? {
            Number::Same(size) => Sizes::Same(size),
            Number::Drawn(sampler) => {
                let stream = stream.named("sizes");
                let draws = SizeDraws { sampler, stream };
                match tree {
                    Tree::Formula(_) if files > most => Sizes::Formula(draws),
                    _ => draws.table(files),
                }
            }
        };
        let initial = |entries, of: &str| {
            InitialEntries::new(entries, fileset.prealloc_percent, stream.named(of))
        };
        Ok(Self {
            root: fileset.root()?.as_str().as_bytes().to_vec(),
            initial_files: initial(files, "prealloc"),
            initial_leaf_dirs: initial(leaf_dirs, "prealloc dirs"),
            tree,
            letters: fileset.letters,
            contents: (fileset.initially, plan.content_of(fileset)),
            sizes,
            fingerprint: OnceLock::new(),
        })
    }

    /// Kind of content of the files at the start of the run.
    #[must_use]
    pub fn content(&self) -> Content {
        self.contents.1
    }

    /// Number of files of the tree, whether or not the files exist when the run starts.
    #[must_use]
    pub fn files(&self) -> u32 {
        self.initial_files.len()
    }

    /// Number of directories of the tree, including the root and without the leaf directories.
    #[must_use]
    pub fn dirs(&self) -> u32 {
        match &self.tree {
            Tree::Formula(tree) => tree.dirs(),
            Tree::Table(tree) => tree.dirs.len() as u32,
        }
    }

    /// Number of leaf directories of the tree, whether or not the leaf directories exist when the run starts.
    #[must_use]
    pub fn leaf_dirs(&self) -> u32 {
        self.initial_leaf_dirs.len()
    }

    /// Planned size of a file in bytes.
    #[inline]
    #[must_use]
    pub fn size(&self, file: FileId) -> u64 {
        debug_assert!(file.0 < self.files(), "{file:?} of {}", self.files());
        self.sizes.of(file.0)
    }

    /// Whether preallocation creates the file, so that the file exists when the run starts.
    #[must_use]
    pub fn starts_with(&self, file: FileId) -> bool {
        self.initial_files.contains(file.0)
    }

    /// Numbers of the files that exist when the run starts, in ascending order.
    pub fn initial_file_ids(&self) -> impl Iterator<Item = FileId> + '_ {
        self.initial_files.numbers(0..self.files()).map(FileId)
    }

    /// Whether preallocation creates the leaf directory, so that the leaf directory exists when the run starts.
    #[must_use]
    pub fn starts_with_leaf_dir(&self, dir: u32) -> bool {
        self.initial_leaf_dirs.contains(dir)
    }

    /// Bit mask of the files that exist when the run starts: bit `i` (0 to 63, lowest first) is file `64 · at + i`.
    #[must_use]
    pub fn initial_files(&self, at: u32) -> u64 {
        self.initial_files.word(at)
    }

    /// Bit mask of the leaf directories that exist when the run starts, as in [`Self::initial_files`].
    #[must_use]
    pub fn initial_leaf_dirs(&self, at: u32) -> u64 {
        self.initial_leaf_dirs.word(at)
    }

    /// Number of the leaf directories in `part` that exist when the run starts. Numbers beyond the last leaf directory
    /// are ignored.
    #[must_use]
    pub fn count_initial_leaf_dirs(&self, part: Range<u64>) -> u64 {
        let part = within(part, self.leaf_dirs());
        self.initial_leaf_dirs.count(part)
    }

    /// Number of the directory that holds a file of the tree.
    #[inline]
    #[must_use]
    pub fn dir_of(&self, file: FileId) -> DirId {
        DirId(match &self.tree {
            Tree::Formula(tree) => tree.dir_of(file.0),
            Tree::Table(tree) => tree.file_dir[file.0 as usize],
        })
    }

    /// Parent directory of a directory of the tree; `None` for the root.
    #[must_use]
    pub fn parent(&self, dir: DirId) -> Option<DirId> {
        let parent = |dir: u32| match &self.tree {
            Tree::Formula(tree) => tree.parent(dir),
            Tree::Table(tree) => tree.dirs[dir as usize].parent,
        };
        (dir.0 != 0).then(|| DirId(parent(dir.0)))
    }

    /// Level of a directory in the tree; the root has level 1.
    #[must_use]
    pub fn level(&self, dir: DirId) -> usize {
        match (&self.tree, dir.0) {
            (_, 0) => 1,
            (Tree::Formula(tree), dir) => tree.level(dir),
            (Tree::Table(tree), dir) => tree.level(dir),
        }
    }

    /// Appends the path of a directory to `out`, relative to the work directory.
    pub fn push_dir(&self, dir: DirId, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.root);
        match &self.tree {
            _ if dir.0 == 0 => {}
            Tree::Formula(tree) => tree.for_each_position(dir.0, |p| push_name(p, out)),
            Tree::Table(tree) => tree.for_each_position(dir.0, |p| push_name(p, out)),
        }
    }

    /// Appends the path of a file to `out`, relative to the work directory.
    pub fn push_file(&self, file: FileId, out: &mut Vec<u8>) {
        self.push_dir(self.dir_of(file), out);
        self.push_file_name(file, out);
    }

    /// Appends `/` and the name of a file to `out`, without the file's directory.
    #[inline]
    pub fn push_file_name(&self, file: FileId, out: &mut Vec<u8>) {
        let position = match &self.tree {
            Tree::Formula(tree) => tree.position_of(file.0),
            Tree::Table(tree) => tree.position_of(file.0),
        };
        match self.letters {
            None => push_name(position, out),
            Some(letters) => letters.push(position, out, |out| push_name(position, out)),
        }
    }

    /// Appends the path of a leaf directory to `out`, relative to the work directory.
    pub fn push_leaf_dir(&self, leaf: u32, out: &mut Vec<u8>) {
        let (parent, position) = match &self.tree {
            Tree::Formula(tree) => tree.leaf_dir(leaf),
            Tree::Table(tree) => tree.leaf_dirs[leaf as usize],
        };
        self.push_dir(DirId(parent), out);
        push_name(position, out);
    }

    /// Summary of the sizes of all files, or of the files that exist when the run starts, in bytes.
    #[must_use]
    pub fn size_summary(&self, initial_only: bool) -> SizeSummary {
        self.size_summary_of(0..u64::from(self.files()), initial_only)
    }

    /// Summary of the sizes of the files with the numbers `part`, or only of the initial files in `part`, in bytes.
    /// File numbers beyond the last file are ignored. The field [`SizeSummary::estimated`] tells whether the summary is
    /// an estimate from a sample.
    #[must_use]
    pub fn size_summary_of(&self, part: Range<u64>, initial_only: bool) -> SizeSummary {
        let all_exist = self.initial_files.is_all();
        let initial = (initial_only && !all_exist).then_some(&self.initial_files);
        self.sizes.summary(within(part, self.files()), initial)
    }

    /// Hash of everything that determines the layout: root, shape, sizes, letters, and entries that exist when the run
    /// starts, with the kind of the contents of these files.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.hash())
    }

    fn hash(&self) -> u64 {
        let mut s = Stream::new(u64::from(self.files())).branch(u64::from(self.leaf_dirs()));
        for b in &self.root {
            s = s.branch(u64::from(*b));
        }
        match &self.tree {
            Tree::Formula(tree) => s = tree.parameters().into_iter().fold(s, Stream::branch),
            Tree::Table(tree) => {
                for d in &tree.dirs {
                    s = s.branch(u64::from(d.parent) << 32 | u64::from(d.position));
                    s = s.branch(u64::from(d.first_file));
                }
                for (parent, position) in &tree.leaf_dirs {
                    s = s.branch(u64::from(*parent) << 32 | u64::from(*position));
                }
            }
        }
        for initial in [&self.initial_files, &self.initial_leaf_dirs] {
            let words = (0..initial.len().div_ceil(64)).map(|at| initial.word(at));
            s = words.fold(s, Stream::branch);
        }
        s = match &self.sizes {
            Sizes::Same(n) => s.branch(*n),
            sizes => (0..self.files()).fold(s, |s, file| s.branch(sizes.of(file))),
        };
        for letters in self.letters.iter().flat_map(|l| [l.before, l.after]) {
            s = s.branch(u64::from(letters[0]) << 8 | u64::from(letters[1]));
        }
        s = match self.contents {
            (InitialData::Written, Content::Random) => s,
            (InitialData::Written, content) => s.named(&content.to_string()),
            (initially, _) => s.branch(initially as u64),
        };
        use rand::Rng as _;
        s.rng().next_u64()
    }
}

/// Random stream of a fileset, from which the streams of the fileset's tree, sizes and preallocation branch.
fn streams(plan: &Plan, fileset: &Fileset) -> Stream {
    plan.stream("fileset").named(&fileset.name)
}

/// Tree of a fileset whose widths and depth are exact, as a formula.
fn formula(fileset: &Fileset, depth: usize) -> Result<Tree, LayoutError> {
    let (files, leaf_dirs) = (fileset.entries as u32, fileset.leaf_dirs as u32);
    FormulaTree::new(files, leaf_dirs, fileset.width.mean as u64, depth)
        .map(Tree::Formula)
        .ok_or_else(|| LayoutError::TooManyDirs(fileset.name.clone()))
}

fn table(plan: &Plan, fileset: &Fileset, depth: Option<Number>) -> TableTree {
    let rng = streams(plan, fileset).named("tree").rng();
    TableTree::new(fileset, depth, rng)
}

/// Numbers of files or leaf directories in `part` that are below the number `len` of entries.
fn within(part: Range<u64>, len: u32) -> Range<u32> {
    let end = part.end.min(u64::from(len)) as u32;
    part.start.min(u64::from(end)) as u32..end
}

#[cfg(test)]
mod tests;
