//! Options of mdtest: arguments with defaults filled in and contradictions refused.

use super::Arguments;
use crate::md::lower::countable;
use crate::md::{Place, place_of};
use plimsoll_plan::SetTree;
use std::time::Duration;

/// The options of `plimsoll mdtest`, complete and without contradictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Number of files and directories of a task in each directory that holds files and directories, at least 1.
    pub per_dir: u64,
    /// Number of directories in a tree.
    pub dirs: u32,
    /// Shape of the trees; `None` for trees of one directory.
    pub tree: Option<SetTree>,
    /// Whether the phases on directories run.
    pub on_dirs: bool,
    /// Whether the phases on files run.
    pub on_files: bool,
    /// Operations of an iteration.
    pub phases: Phases,
    /// Number of iterations, at least 1.
    pub iterations: u32,
    /// Time limit of the creation of files; `None` without a limit.
    pub stonewall: Option<Duration>,
    /// Seed of the order of stat and read operations; `None` for the order of the creation.
    pub order: Option<u64>,
    /// Work directory, and the test directory.
    pub place: Place,
    /// The target's URL.
    pub target: String,
    /// Seed of the contents of the files.
    pub seed: u64,
    /// The parsed command line.
    pub arguments: Arguments,
}

/// Operations that the tasks do in an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Phases {
    /// Whether the tasks create the trees, files and directories.
    pub create: bool,
    /// Whether the tasks stat files and directories.
    pub stat: bool,
    /// Whether the tasks read files.
    pub read: bool,
    /// Whether the tasks rename directories.
    pub rename: bool,
    /// Whether the tasks remove files, directories and the trees.
    pub remove: bool,
}

/// Largest number of iterations.
const MAX_ITERATIONS: u32 = 1000;

/// Largest number of directories in a tree.
const MAX_DIRS: u64 = 1 << 24;

impl Options {
    /// Checks arguments and fills in defaults.
    ///
    /// # Errors
    /// One sentence that states the unsupported option or the contradiction.
    pub fn new(args: &Arguments) -> Result<Self, String> {
        if let Some(why) = args.refused.reason() {
            return Err(why);
        }
        let phases = phases(args);
        let (on_dirs, on_files) = match (args.dirs_only, args.files_only) {
            (false, false) => (true, true),
            given => given,
        };
        check(args, phases, on_files)?;
        let iterations = args.iterations.unwrap_or(1);
        if !(1..=MAX_ITERATIONS).contains(&iterations) {
            return Err(format!(
                "-i is {iterations}: expected 1 to {MAX_ITERATIONS}"
            ));
        }
        if iterations > 1 && !(phases.create && phases.remove) {
            return Err(
                "-i needs the phases of -C and -r: each iteration creates and removes the files"
                    .into(),
            );
        }
        let (dirs, tree) = tree(args)?;
        let used = u64::from(dirs - tree.map_or(0, |tree| tree.first_set));
        let per_dir = per_dir(args, used)?;
        let items = u128::from(per_dir) * u128::from(used);
        countable("the number of items (-n)", items)?;
        Ok(Self {
            per_dir,
            dirs,
            tree,
            on_dirs,
            on_files,
            phases,
            iterations,
            stonewall: args.stonewall.filter(|time| !time.is_zero()),
            order: args.random.then(|| args.random_seed.unwrap_or(1)),
            place: place_of(None, args.dir.as_deref().unwrap_or_else(|| "out".as_ref()))?,
            target: args.api.target()?,
            seed: args.signature.unwrap_or(1),
            arguments: args.clone(),
        })
    }

    /// Number of files, or of directories, of a task.
    #[must_use]
    pub fn items(&self) -> u64 {
        let first = self.tree.map_or(0, |tree| tree.first_set);
        self.per_dir * u64::from(self.dirs - first)
    }
}

fn phases(args: &Arguments) -> Phases {
    let all = !(args.create || args.stat || args.read || args.remove || args.rename);
    Phases {
        create: args.create || all,
        stat: args.stat || all,
        read: args.read || all,
        rename: args.rename || all,
        remove: args.remove || all,
    }
}

/// Refuses contradictions between options.
fn check(args: &Arguments, phases: Phases, on_files: bool) -> Result<(), String> {
    let (written, read) = (args.write_bytes.unwrap_or(0), args.read_bytes.unwrap_or(0));
    let refused = [
        (
            args.dir
                .as_ref()
                .is_some_and(|dir| dir.as_os_str().as_encoded_bytes().contains(&b'@')),
            "-d names several directories: one directory is supported",
        ),
        (
            phases.create && phases.read && read > written,
            "-e reads more bytes than -w writes",
        ),
        (
            args.verify_read && !(phases.read && read > 0 && on_files),
            "-X compares what is read: it needs the read phase and -e",
        ),
        (
            args.verify_read && read < written,
            "-X compares whole files: -e and -w must be equal",
        ),
        (
            args.random_seed.is_some() && !args.random,
            "--random-seed has an effect only with -R",
        ),
        (args.sync && written == 0, "-y has an effect only with -w"),
        (
            args.stonewall.is_some() && !(phases.create && on_files),
            "-W limits the creation of files",
        ),
        (
            args.stonewall.is_some() && args.depth.unwrap_or(0) > 0,
            "-W needs files in one directory: leave out -z",
        ),
    ];
    match refused.into_iter().find(|(is, _)| *is) {
        Some((_, why)) => Err(why.into()),
        None => Ok(()),
    }
}

/// Number of directories in a tree, and the shape of a tree with more than one directory.
fn tree(args: &Arguments) -> Result<(u32, Option<SetTree>), String> {
    let (branch, depth) = (args.branch.unwrap_or(1), args.depth.unwrap_or(0));
    if branch == 0 {
        return Err("-b 0: a directory of the tree has at least 1 child".into());
    }
    if depth == 0 {
        return Ok((1, None));
    }
    let (mut dirs, mut level) = (1u64, 1u64);
    for _ in 0..depth {
        level = level.saturating_mul(branch.into());
        dirs = dirs.saturating_add(level);
        if dirs > MAX_DIRS {
            return Err(format!(
                "-b {branch} -z {depth}: the tree would have more than {MAX_DIRS} directories"
            ));
        }
    }
    let first_set = if args.leaf_only { dirs - level } else { 0 };
    let tree = SetTree {
        branch,
        first_set: first_set as u32,
    };
    Ok((dirs as u32, Some(tree)))
}

/// Number of files and directories of a task in each of `dirs` directories.
fn per_dir(args: &Arguments, dirs: u64) -> Result<u64, String> {
    match (args.items, args.items_per_dir) {
        (Some(_), Some(_)) => Err(
            "-n and -I both set the number of files: choose one; several test directories are not \
             supported"
                .into(),
        ),
        (Some(items), None) if items < dirs || items == 0 => Err(format!(
            "-n {items} leaves directories of the tree empty: expected at least {dirs}"
        )),
        (Some(items), None) => Ok(items / dirs),
        (None, Some(0)) => Err("-I 0 leaves nothing to do: expected at least 1".into()),
        (None, Some(each)) => Ok(each),
        (None, None) => Err("the number of files is missing: expected -n or -I".into()),
    }
}
