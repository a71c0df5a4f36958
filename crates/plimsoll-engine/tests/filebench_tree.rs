//! The tree on disk follows Filebench's rules, and the engine's counts agree with the tree.

mod common;

use common::{plan, row, run_ok};
use plimsoll_plan::{OpsLimit, QuitMode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An independent implementation of the tree rules for exact widths: the names of directories and files.
struct Model {
    width: u64,
    depth: u32,
    left: u64,
    dirs: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Model {
    fn new(entries: u64, width: u64) -> Self {
        // Rounding must not reduce the logarithm of a whole power below its whole exponent.
        let depth = ((entries as f64).ln() / (width as f64).ln() + 1e-9) as u32;
        let mut model = Self {
            width,
            depth: depth.max(1),
            left: entries,
            dirs: BTreeSet::new(),
            files: BTreeSet::new(),
        };
        model.fill("s".into(), 1);
        model
    }

    /// Fills a directory at `level`; the root, at level 1, takes all remaining entries.
    fn fill(&mut self, path: String, level: u32) {
        self.dirs.insert(path.clone());
        let is_root = level == 1;
        for number in 1.. {
            if self.left == 0 || (number > self.width && !is_root) {
                return;
            }
            let entry = format!("{path}/{number:08}");
            if !is_root && level >= self.depth {
                self.files.insert(entry);
                self.left -= 1;
            } else {
                self.fill(entry, level + 1);
            }
        }
    }
}

/// Directories and files with their sizes below a directory, without the marker.
fn walk(dir: &Path) -> (BTreeSet<String>, BTreeMap<String, u64>) {
    let (mut dirs, mut files) = (BTreeSet::new(), BTreeMap::new());
    let mut todo = vec![dir.to_owned()];
    while let Some(next) = todo.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                dirs.insert(name);
                todo.push(path);
            } else if name != ".plimsoll" {
                files.insert(name, meta.len());
            }
        }
    }
    (dirs, files)
}

#[test]
fn a_tree_of_exact_widths_is_the_models() {
    for (entries, width) in [
        (1, 10),
        (7, 100),
        (16, 4),
        (17, 4),
        (64, 4),
        (65, 4),
        (1000, 10),
        (500, 3),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "define fileset name=s,path=/tmp,entries={entries},dirwidth={width},dirgamma=0,\
             size=10,prealloc
             define process name=p {{ thread name=t,memsize=1m {{
               flowop statfile name=look,filesetname=s
             }} }}
             run 1"
        );
        let plan = plan(&text, &dir.path().join("w"), |o| {
            o.options.keep = true;
            o.options.ops = Some(OpsLimit::Total(1));
        });
        run_ok(&plan);
        let (dirs, files) = walk(&dir.path().join("w"));
        let model = Model::new(entries, width);
        assert_eq!(model.files.len() as u64, entries);
        assert_eq!(
            files.keys().cloned().collect::<BTreeSet<_>>(),
            model.files,
            "{entries} {width}"
        );
        assert_eq!(dirs, model.dirs, "{entries} {width}");
        assert!(files.values().all(|size| *size == 10));
    }
}

/// Workers that create and delete files, and make and remove directories, concurrently.
const CHURN: &str = "\
define fileset name=s,path=/tmp,entries=200,dirwidth=20,size=1k,prealloc=50,leafdirs=40
define process name=p {
  thread name=makes,memsize=1m,instances=3 {
    flowop createfile name=create,filesetname=s,fd=1
    flowop writewholefile name=write,fd=1
    flowop closefile name=close,fd=1
    flowop makedir name=mkdir,filesetname=s
    flowop deletefile name=delete,filesetname=s
  }
  thread name=removes,memsize=1m,instances=2 {
    flowop deletefile name=delete2,filesetname=s
    flowop createfile name=create2,filesetname=s,fd=2
    flowop closefile name=close2,fd=2
    flowop removedir name=rmdir,filesetname=s
  }
}
run 5
";

#[test]
fn files_and_directories_add_up_after_a_churn() {
    for seed in 1..=4 {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("w");
        let plan = plan(CHURN, &work, |o| {
            o.options.keep = true;
            o.seed = Some(seed);
            // A worker that finds no directory to make or remove ends, and the run continues.
            o.quit = Some(QuitMode::AllDone);
            // An operation that the end of the time cuts off takes effect on the disk but is not counted.
            o.time = Some(std::time::Duration::from_secs(300));
            o.options.ops = Some(OpsLimit::Total(20_000));
        });
        let (outcome, _) = run_ok(&plan);
        let ops = |name: &str| row(&plan, &outcome, name).ops;
        let (dirs, files) = walk(&work);
        let made = ops("create") + ops("create2");
        let deleted = ops("delete") + ops("delete2");
        assert!(made > 20 && deleted > 20, "{made} made, {deleted} deleted");
        let before = outcome.populated[0].files;
        assert_eq!(files.len() as u64, before + made - deleted, "seed {seed}");
        let dirs_before = outcome.populated[0].dirs;
        assert_eq!(
            dirs.len() as u64,
            dirs_before + ops("mkdir") - ops("rmdir"),
            "seed {seed}"
        );
    }
}

#[test]
fn nothing_is_left_after_a_churn_that_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let plan = plan(CHURN, &dir.path().join("w"), |o| {
        o.quit = Some(QuitMode::AllDone);
    });
    let (outcome, _) = run_ok(&plan);
    assert_eq!(outcome.cleanup.foreign, [""; 0]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
