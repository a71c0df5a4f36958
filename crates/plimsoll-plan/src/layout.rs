//! The tree of a fileset: its directories and files, and the size of each file.
//!
//! Names are positions in a parent, so a tree is a few numbers per directory and twelve bytes per
//! file; paths are computed when they are needed.

mod letters;

use crate::fileset::{Fileset, Letters};
use crate::ids::FilesetId;
use crate::plan::Plan;
use crate::seed::{Rng, Stream};
use crate::variable::{Sampler, Value};
use rand::RngExt;
use rand_distr::{Distribution as _, Gamma};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A file of a [`Layout`], 0 to entries − 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A directory of a [`Layout`]; 0 is the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirId(pub u32);

/// Maximum number of levels of directories, which bounds the length of paths.
const MAX_LEVELS: usize = 64;

/// Maximum number of files, and of leaf directories, of a fileset.
const MAX_ENTRIES: u64 = u32::MAX as u64 - 1;

/// A directory that is part of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dir {
    parent: u32,
    /// Position in the parent from 1, which is its name.
    position: u32,
    /// First file in it; its files are consecutive.
    first_file: u32,
}

/// The tree of one fileset, laid out from the Plan's seed.
///
/// The rules are Filebench's: the mean depth is `ln(entries + leaf_dirs) / ln(width)`; a directory
/// draws its target depth and its width; one that is not the root and has reached its depth holds
/// files, any other holds directories; the root has as many as all entries need.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    root: Vec<u8>,
    dirs: Vec<Dir>,
    file_dir: Vec<u32>,
    sizes: Sizes,
    /// Leaf directories: parent and position.
    leaf_dirs: Vec<(u32, u32)>,
    letters: Option<Letters>,
    /// One bit per file: whether it exists when the run starts.
    initial_files: Vec<u64>,
    initial_leaf_dirs: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq)]
enum Sizes {
    Same(u64),
    Each(Vec<u64>),
}

/// Distribution of the sizes of the files of a [`Layout`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeSummary {
    /// Number of files.
    pub files: u64,
    /// Sum in bytes.
    pub total: u64,
    /// Minimum in bytes.
    pub min: u64,
    /// Maximum in bytes.
    pub max: u64,
    /// Mean in bytes.
    pub mean: f64,
    /// Files by size: upper bound in bytes (a power of two, or 0) and number of files.
    pub buckets: Vec<(u64, u64)>,
}

/// Reason why a fileset cannot be laid out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LayoutError {
    /// It has too many entries.
    #[error("fileset `{0}` has more than {MAX_ENTRIES} entries")]
    TooMany(String),
    /// A random variable cannot be drawn from.
    #[error("fileset `{0}`: {1}")]
    Variable(String, String),
    /// Its name leaves the work directory.
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
        if fileset.entries > MAX_ENTRIES || fileset.leaf_dirs > MAX_ENTRIES {
            return Err(LayoutError::TooMany(fileset.name.clone()));
        }
        let stream = plan.stream("fileset").named(&fileset.name);
        let sampler = |value: Value| match value {
            Value::Const(n) => Ok((None, n)),
            Value::Draw(v) => {
                let fail = |e| LayoutError::Variable(fileset.name.clone(), e);
                plan.variable(v)
                    .sampler()
                    .map(|s| (Some(s), 0))
                    .map_err(fail)
            }
        };
        let depth = fileset.depth.map(sampler).transpose()?;
        let mut tree = Builder::new(fileset, depth, stream.named("tree").rng());
        tree.build();
        let sizes = match sampler(fileset.size)? {
            (None, n) => Sizes::Same(n),
            (Some(s), _) => {
                let mut rng = stream.named("sizes").rng();
                Sizes::Each((0..fileset.entries).map(|_| s.draw(&mut rng)).collect())
            }
        };
        let (files, leaf_dirs) = (tree.file_dir.len() as u64, tree.leaf_dirs.len() as u64);
        assert_eq!(files, fileset.entries, "files of {}", fileset.name);
        assert_eq!(
            leaf_dirs, fileset.leaf_dirs,
            "leaf directories of {}",
            fileset.name
        );
        let percent = fileset.prealloc_percent;
        Ok(Self {
            root: fileset.root()?.as_str().as_bytes().to_vec(),
            initial_files: choose(fileset.entries, percent, stream.named("prealloc")),
            initial_leaf_dirs: choose(fileset.leaf_dirs, percent, stream.named("prealloc dirs")),
            dirs: tree.dirs,
            file_dir: tree.file_dir,
            leaf_dirs: tree.leaf_dirs,
            letters: fileset.letters,
            sizes,
        })
    }

    /// Number of files, whether or not they exist when the run starts.
    #[must_use]
    pub fn files(&self) -> u32 {
        self.file_dir.len() as u32
    }

    /// Number of directories, including the root.
    #[must_use]
    pub fn dirs(&self) -> u32 {
        self.dirs.len() as u32
    }

    /// Number of leaf directories.
    #[must_use]
    pub fn leaf_dirs(&self) -> u32 {
        self.leaf_dirs.len() as u32
    }

    /// Planned size of a file in bytes.
    #[inline]
    #[must_use]
    pub fn size(&self, file: FileId) -> u64 {
        match &self.sizes {
            Sizes::Same(n) => *n,
            Sizes::Each(sizes) => sizes[file.0 as usize],
        }
    }

    /// Whether the file exists when the run starts.
    #[must_use]
    pub fn starts_with(&self, file: FileId) -> bool {
        bit(&self.initial_files, file.0)
    }

    /// Whether the leaf directory exists when the run starts.
    #[must_use]
    pub fn starts_with_leaf_dir(&self, dir: u32) -> bool {
        bit(&self.initial_leaf_dirs, dir)
    }

    /// Bits of the files that exist when the run starts, 64 per word, lowest first.
    #[must_use]
    pub fn initial_files(&self) -> &[u64] {
        &self.initial_files
    }

    /// Bits of the leaf directories that exist when the run starts, as of [`Self::initial_files`].
    #[must_use]
    pub fn initial_leaf_dirs(&self) -> &[u64] {
        &self.initial_leaf_dirs
    }

    /// Directory that holds the file.
    #[inline]
    #[must_use]
    pub fn dir_of(&self, file: FileId) -> DirId {
        DirId(self.file_dir[file.0 as usize])
    }

    /// Parent of a directory; `None` for the root.
    #[must_use]
    pub fn parent(&self, dir: DirId) -> Option<DirId> {
        (dir.0 != 0).then(|| DirId(self.dirs[dir.0 as usize].parent))
    }

    /// Levels from the root (1) to the directory.
    #[must_use]
    pub fn level(&self, dir: DirId) -> usize {
        1 + std::iter::successors(self.parent(dir), |d| self.parent(*d)).count()
    }

    /// Appends the path of a directory, relative to the work directory.
    pub fn push_dir(&self, dir: DirId, out: &mut Vec<u8>) {
        let mut names = [0u32; MAX_LEVELS];
        let mut count = 0;
        let mut at = dir.0;
        while at != 0 {
            let d = self.dirs[at as usize];
            debug_assert!(
                count < MAX_LEVELS && d.parent < at,
                "a parent before its child"
            );
            names[count] = d.position;
            count += 1;
            at = d.parent;
        }
        out.extend_from_slice(&self.root);
        for position in names[..count].iter().rev() {
            push_name(*position, out);
        }
    }

    /// Appends the path of a file, relative to the work directory.
    pub fn push_file(&self, file: FileId, out: &mut Vec<u8>) {
        self.push_dir(self.dir_of(file), out);
        self.push_file_name(file, out);
    }

    /// Appends `/` and the name of a file in its directory.
    #[inline]
    pub fn push_file_name(&self, file: FileId, out: &mut Vec<u8>) {
        let dir = self.file_dir[file.0 as usize];
        let first_file = self.dirs[dir as usize].first_file;
        debug_assert!(
            first_file <= file.0,
            "file {} before its directory's first",
            file.0
        );
        let position = file.0 - first_file + 1;
        match self.letters {
            None => push_name(position, out),
            Some(letters) => letters.push(position, out, |out| push_name(position, out)),
        }
    }

    /// Appends the path of a leaf directory, relative to the work directory.
    pub fn push_leaf_dir(&self, leaf: u32, out: &mut Vec<u8>) {
        let (parent, position) = self.leaf_dirs[leaf as usize];
        self.push_dir(DirId(parent), out);
        push_name(position, out);
    }

    /// Sizes of all files, or of those that exist when the run starts.
    #[must_use]
    pub fn size_summary(&self, initial_only: bool) -> SizeSummary {
        self.size_summary_of(0..u64::from(self.files()), initial_only)
    }

    /// Sizes of the files with the numbers `part`, or of those that exist when the run starts. Numbers
    /// beyond the last file are ignored.
    #[must_use]
    pub fn size_summary_of(&self, part: Range<u64>, initial_only: bool) -> SizeSummary {
        let end = part.end.min(u64::from(self.files())) as u32;
        let start = part.start.min(u64::from(end)) as u32;
        let mut s = SizeSummary {
            files: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            mean: 0.0,
            buckets: vec![],
        };
        // Bucket b > 0 holds sizes in (2^(b-2), 2^(b-1)].
        let bucket = |n: u64| match n {
            0 => 0,
            n => 65 - (n - 1).leading_zeros() as usize,
        };
        let bound = |bucket: u32| match bucket {
            0 => 0,
            b => 1u64.checked_shl(b - 1).unwrap_or(u64::MAX),
        };
        let mut buckets = [0u64; 66];
        let files = (start..end).map(FileId);
        for file in files.filter(|f| !initial_only || self.starts_with(*f)) {
            let n = self.size(file);
            s.files += 1;
            s.total = s.total.saturating_add(n);
            s.min = s.min.min(n);
            s.max = s.max.max(n);
            buckets[bucket(n)] += 1;
        }
        match s.files {
            0 => s.min = 0,
            files => s.mean = s.total as f64 / files as f64,
        }
        let filled = (0u32..).zip(buckets).filter(|(_, files)| *files > 0);
        s.buckets = filled.map(|(b, files)| (bound(b), files)).collect();
        s
    }

    /// Hash of the shape, the sizes and the initial files.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut s = Stream::new(u64::from(self.files())).branch(u64::from(self.leaf_dirs()));
        for b in &self.root {
            s = s.branch(u64::from(*b));
        }
        for d in &self.dirs {
            s = s.branch(u64::from(d.parent) << 32 | u64::from(d.position));
            s = s.branch(u64::from(d.first_file));
        }
        for (parent, position) in &self.leaf_dirs {
            s = s.branch(u64::from(*parent) << 32 | u64::from(*position));
        }
        for word in self.initial_files.iter().chain(&self.initial_leaf_dirs) {
            s = s.branch(*word);
        }
        match &self.sizes {
            Sizes::Same(n) => s = s.branch(*n),
            Sizes::Each(all) => all.iter().for_each(|n| s = s.branch(*n)),
        }
        for letters in self.letters.iter().flat_map(|l| [l.before, l.after]) {
            s = s.branch(u64::from(letters[0]) << 8 | u64::from(letters[1]));
        }
        use rand::Rng as _;
        s.rng().next_u64()
    }
}

fn bit(words: &[u64], index: u32) -> bool {
    words[index as usize / 64] >> (index % 64) & 1 == 1
}

/// Draws one bit per entry, set with a probability of `percent`.
fn choose(entries: u64, percent: u8, stream: Stream) -> Vec<u64> {
    let mut words = vec![0u64; entries.div_ceil(64) as usize];
    let mut rng = stream.rng();
    for i in 0..entries as usize {
        let chosen =
            percent >= 100 || (percent > 0 && rng.random::<f64>() * 100.0 < f64::from(percent));
        words[i / 64] |= u64::from(chosen) << (i % 64);
    }
    words
}

/// Appends `/` and a position as at least eight decimal digits.
#[inline]
fn push_name(position: u32, out: &mut Vec<u8>) {
    if position < 100_000_000 {
        let mut name = [b'/'; 9];
        name[1..].copy_from_slice(&eight_digits(position));
        out.extend_from_slice(&name);
    } else {
        push_long_name(position, out);
    }
}

#[cold]
fn push_long_name(position: u32, out: &mut Vec<u8>) {
    out.push(b'/');
    out.extend_from_slice(position.to_string().as_bytes());
}

/// Returns the eight decimal digits of a number below 10⁸. Every name of a path is made here before
/// each operation, so the digits are split in three steps, both halves in one word, instead of by
/// eight dependent divisions.
fn eight_digits(n: u32) -> [u8; 8] {
    debug_assert!(n < 100_000_000, "{n} has more than eight digits");
    let (high, low) = (u64::from(n / 10_000), u64::from(n % 10_000));
    let fours = high | low << 32;
    // x / 100 is x * 10486 >> 20 for x < 10 000, and x / 10 is x * 103 >> 10 for x < 100.
    let hundreds = (fours * 10_486) >> 20 & 0x7f_0000_007f;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = (pairs * 103) >> 10 & 0x000f_000f_000f_000f;
    let digits = tens | (pairs - tens * 10) << 8;
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// A directory while its contents are laid out.
struct Frame {
    dir: u32,
    level: usize,
    /// Entries still to be added; the root has no limit.
    left: u64,
    next_position: u32,
    holds_files: bool,
}

struct Builder<'a> {
    fileset: &'a Fileset,
    depth: Option<(Option<Sampler>, u64)>,
    mean_depth: f64,
    gamma: Option<(Gamma<f64>, Option<Gamma<f64>>)>,
    rng: Rng,
    dirs: Vec<Dir>,
    file_dir: Vec<u32>,
    leaf_dirs: Vec<(u32, u32)>,
}

impl<'a> Builder<'a> {
    fn new(fileset: &'a Fileset, depth: Option<(Option<Sampler>, u64)>, rng: Rng) -> Self {
        let all = fileset.entries + fileset.leaf_dirs;
        // ln 1000 / ln 10 is 2.9999999999999996: without the addend 1000 entries of width 10 would
        // be one level too high.
        let mean_depth = (all.max(1) as f64).ln() / fileset.width.mean.ln() + 1e-9;
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
            dirs: vec![root],
            file_dir: Vec::with_capacity(fileset.entries as usize),
            leaf_dirs: Vec::with_capacity(fileset.leaf_dirs as usize),
        }
    }

    fn draw_depth(&mut self) -> usize {
        let depth = match (&self.depth, &self.gamma) {
            (Some((Some(sampler), _)), _) => sampler.draw(&mut self.rng) as usize,
            (Some((None, n)), _) => *n as usize,
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
            |b| (b.file_dir.len() as u64) < b.fileset.entries,
            |b, dir, _| b.file_dir.push(dir),
        );
        self.fill(
            root_position,
            |b| (b.leaf_dirs.len() as u64) < b.fileset.leaf_dirs,
            |b, dir, position| b.leaf_dirs.push((dir, position)),
        );
    }

    /// Adds leaves to the tree while they are `wanted`; returns the root's next free position.
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
            let first_file = self.file_dir.len() as u32;
            self.dirs.push(Dir {
                parent: dir,
                position,
                first_file,
            });
            let holds_files = level >= self.draw_depth() || level == MAX_LEVELS;
            let left = self.draw_width();
            let dir = self.dirs.len() as u32 - 1;
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

#[cfg(test)]
mod tests;
