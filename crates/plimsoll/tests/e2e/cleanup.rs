//! Files that cannot be removed after a run: the result stays the same, and the remaining files are named and can be
//! removed later.

use crate::common::series::{self, FILES_PER_USER, TO_THE_END};
use crate::common::{Bench, Ended, MARKER, started, tree};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::{Handle, Proc};
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::needs_root;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Fault rule with which the server denies every REMOVE call.
const DENIED: &str = "remove=acces:1";

/// An NFSv3 server in the test's process, whose tree of files outlives the server.
struct Files {
    tree: Arc<Mutex<Tree>>,
    server: Server,
}

impl Files {
    fn with_fault(fault: &str) -> Self {
        let behaviour = ServerOptions {
            faults: vec![fault.parse().unwrap()],
            ..ServerOptions::default()
        };
        Self::serving(Arc::new(Mutex::new(Tree::new(256 << 20))), behaviour)
    }

    fn serving(tree: Arc<Mutex<Tree>>, behaviour: ServerOptions) -> Self {
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(listen, tree.clone(), behaviour).unwrap();
        Self { tree, server }
    }

    fn url(&self) -> String {
        let at = self.server.address();
        format!("nfs3://{at}/?mountport={}", at.port())
    }

    /// Paths of all files and directories on the server, relative to the export.
    fn names(&self) -> Vec<String> {
        let tree = self.tree.lock().unwrap();
        let mut names = Vec::new();
        let mut below: Vec<(String, Handle)> = vec![(String::new(), tree.root())];
        while let Some((path, dir)) = below.pop() {
            let mut here = Vec::new();
            // Listing a file fails, which counts as a directory without entries.
            let _ = tree.list(&dir, 2, |e| {
                here.push(e.name);
                true
            });
            for name in here {
                let handle = tree.lookup(&dir, &name).unwrap();
                let path = format!("{path}/{}", String::from_utf8(name).unwrap());
                names.push(path.clone());
                below.push((path, handle));
            }
        }
        names
    }

    /// Removes the files of a run with `plimsoll clean`, by way of a second server without faults on the same tree;
    /// returns the paths that remain.
    #[track_caller]
    fn clean(&self, bench: &Bench) -> Vec<String> {
        let names = self.names();
        let marker = names.iter().find_map(|n| n.strip_suffix(MARKER));
        let dir = marker.expect("the marker stays").trim_end_matches('/');
        let mended = Self::serving(self.tree.clone(), ServerOptions::default());
        let args = ["clean", "--target", &mended.url(), dir];
        let ended = Ended::of(bench.plimsoll(args)).expect_code(0);
        assert_eq!(ended.stdout, format!("cleaned {dir}\n"));
        self.names()
    }
}

/// Arguments for a short run of `webserver` on 60 files; the workload reads the files and appends to a log.
const SMALL: [&str; 3] = ["--time=200ms", "--set=nfiles=60", "--set=nthreads=2"];

fn command(bench: &Bench, url: &str, more: &[&str]) -> Command {
    let place = ["--dir=/w", "--target", url];
    bench.command("webserver", &[&SMALL[..], &place, more].concat())
}

/// Notes of a run on files that the clean-up could not remove.
fn left(run: &Run) -> Vec<&str> {
    let about = ["cannot ", "more could not be removed", "the clean-up "];
    let notes = run.notes.iter().map(|n| n.text.as_str());
    notes
        .filter(|n| about.iter().any(|a| n.contains(a)))
        .collect()
}

/// Joins the words of a report, which breaks lines at the width of the terminal.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The clean-up repeats an RMDIR that fails: a server with a cache may refuse the removal of an empty directory for a
/// moment.
#[test]
fn a_directory_that_was_emptied_is_tried_again() {
    for fault in ["rmdir=notempty:0.5", "rmdir=io:0.5", "rmdir=exist:0.7"] {
        let (bench, files) = (Bench::new(), Files::with_fault(fault));
        let run = Ended::of(command(&bench, &files.url(), &[])).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid, "{fault}");
        assert_eq!(left(&run), [""; 0], "{fault}");
        assert_eq!(files.names(), [""; 0], "{fault}");
        let dirs = run.filesets.iter().map(|p| p.dirs).sum::<u64>();
        assert!(files.server.calls(Proc::RmDir) > dirs, "{fault}");
    }
}

/// If REMOVE is denied, the run's notes name the remaining files, the marker stays, and the verdict is the verdict of
/// the measurement, also with two ranks, whose files rank 0 removes.
#[test]
fn what_cannot_be_removed_changes_no_verdict() {
    for more in [&[][..], &["--processes=2"]] {
        let (bench, files) = (Bench::new(), Files::with_fault(DENIED));
        let url = files.url();
        let ended = Ended::of(command(&bench, &url, more));
        let warned = ended.stderr.clone();
        let run = ended.result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert_eq!((run.failure.as_ref(), run.summary.errors), (None, 0));
        let notes = left(&run);
        let removed = notes.iter().filter(|n| n.starts_with("cannot remove `/w/"));
        assert_eq!((removed.count(), notes.len()), (8, 10), "{notes:?}");
        let denied = "`: Permission denied (EACCES)";
        assert!(notes[0].ends_with(denied), "{notes:?}");
        assert!(
            notes[8].ends_with(" more could not be removed"),
            "{notes:?}"
        );
        let later = format!(
            "the clean-up is not complete: `plimsoll clean --target '{url}' /w` removes what is left"
        );
        assert_eq!(notes[9], later);
        // With `--format json`, the notes on remaining files are warnings on standard error.
        let warning = format!("warning: {}\n", notes[0]);
        assert!(warned.contains(&warning), "{warned}");
        let cleaned = Ended::of(bench.plimsoll(["clean", "--target", &url, "/w"])).expect_code(1);
        assert_eq!(cleaned.stdout, "cleaned a part of /w\n");
        let first = "error: cannot remove `/w/";
        assert!(cleaned.stderr.starts_with(first), "{}", cleaned.stderr);
        assert_eq!(files.clean(&bench), [""; 0]);
    }
}

/// The text report of a run has the notes on files that remain, even with `--quiet`.
#[test]
fn a_report_names_what_was_left() {
    let (bench, files) = (Bench::new(), Files::with_fault(DENIED));
    let url = files.url();
    let place = ["run", "webserver", "--quiet", "--dir=/w", "--target", &url];
    let text = Ended::of(bench.plimsoll([&place[..], &SMALL].concat())).expect_code(0);
    let out = words(&text.stdout);
    for said in [
        "webserver: valid",
        "note: cannot remove `/w/",
        "note: the clean-up is not complete",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    assert!(!text.stderr.contains("warning: "), "{}", text.stderr);
}

/// Notes on remaining directories after a pattern of `md`, which removes its objects in a measured stage and leaves
/// only the directories above to the clean-up.
#[test]
fn md() {
    let bench = Bench::new();
    let md = |more: &str| {
        // The fault denies every second RMDIR: the first RMDIR is an operation of the pattern, the second RMDIR removes
        // the root directory in the clean-up.
        let files = Files::with_fault("rmdir=acces:0.5");
        let interface = format!("-i={}", files.url());
        let args = ["md", &interface, "-P=5", "-D=1", "-I=5", "--dir=/md", more];
        let ended = Ended::of(bench.plimsoll(args));
        // `clean` leaves the work directory `/md` of a pattern, because the marker does not state that the run created
        // it.
        assert_eq!(files.clean(&bench), ["/md"]);
        ended
    };
    let ended = md("--format=json");
    let warned = ended.stderr.clone();
    let run = ended.result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    let notes = left(&run);
    let out = "cannot remove directory `/md/out`: Permission denied (EACCES)";
    let above = "cannot remove directory `/md`: Directory not empty (ENOTEMPTY)";
    assert_eq!(notes[..2], [out, above]);
    assert!(
        notes[2].ends_with(" /md/out` removes what is left"),
        "{notes:?}"
    );
    // A valid `md` with `--quiet` prints no report, so that the notes on remaining files are warnings.
    let quiet = md("--quiet").expect_code(0);
    let warning = format!("warning: {out}");
    for said in [warned, quiet.stderr] {
        assert!(said.contains(&warning), "{said}");
    }
}

/// A series whose load points share files states the remaining files itself, because the series removes the files at its
/// end.
#[test]
fn curves_and_searches() {
    let curve = ["--load=1,2", TO_THE_END[0]];
    let search = ["--max-load=1", "--confirm-runs=1"];
    for (name, more) in [("curve", &curve[..]), ("find", &search)] {
        let (bench, files) = (Bench::on_tmpfs(), Files::with_fault(DENIED));
        let url = files.url();
        let place = ["--time=200ms", "--warmup=0s", "--dir=/w", "--target", &url];
        let ended = Ended::of(series::command(&bench, name, &[&place, more].concat()));
        // On a busy machine, a load point may miss its criteria, which makes the exit code 3.
        assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
        let unremoved = series::parsed(&ended).unremoved;
        assert!(
            unremoved[0].starts_with("cannot remove `/w/"),
            "{unremoved:?}"
        );
        assert!(
            unremoved[9].starts_with("the clean-up is not complete"),
            "{unremoved:?}"
        );
        assert_eq!(files.clean(&bench), [""; 0]);
    }
}

/// `--dir` with a relative path on an NFS server is a directory below the export, and a curve removes the directory.
#[test]
fn a_curve_in_a_relative_directory_leaves_nothing() {
    let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
    let (bench, files) = (
        Bench::on_tmpfs(),
        Files::serving(tree, ServerOptions::default()),
    );
    let url = files.url();
    let place = [
        "--time=200ms",
        "--warmup=0s",
        "--dir=here",
        "--target",
        &url,
    ];
    let more = [&place[..], &TO_THE_END, &["--load=1,2"]].concat();
    let ended = Ended::of(series::command(&bench, "curve", &more));
    let curve = series::parsed(&ended);
    assert_eq!(series::loads(&curve), [1, 2]);
    assert_eq!(curve.unremoved, [""; 0]);
    for (run, load) in series::runs_of(&series::only(&bench)).iter().zip([1, 2]) {
        let made = run.filesets[0].files;
        assert_eq!((run.summary.errors, made), (0, load * FILES_PER_USER));
    }
    assert_eq!(files.names(), [""; 0]);
}

/// The notes on remaining files in a profile's `series.json` name the run that left them.
#[test]
fn profiles() {
    let profile = "DEFAULTS {\n  runtime = 0.3;\n  dir = /tmp;\n  stats = stats;\n}\n\
        CONFIG looking {\n  function = generic;\n  personality = mine;\n  nfiles = 12;\n}\n";
    let mine = "set $dir=/tmp\nset $nfiles=3\n\
        define fileset name=s,path=$dir,entries=$nfiles,size=4k,dirwidth=8,prealloc\n\
        define process name=p { thread name=t,memsize=1m {\n\
          flowop statfile name=stat1,filesetname=s\n} }\n";
    let (bench, files) = (Bench::on_tmpfs(), Files::with_fault(DENIED));
    std::fs::write(bench.path("study.prof"), profile).unwrap();
    std::fs::write(bench.path("mine.f"), mine).unwrap();
    let on = format!("--filesystem=far={}", files.url());
    let args = [
        "profile",
        "study.prof",
        &on,
        "--format=json",
        "--results=results",
    ];
    let ended = Ended::of(bench.plimsoll(args)).expect_code(0);
    let profile = series::parsed(&ended);
    let note = &profile.notes[0].text;
    assert!(note.contains(" on far: cannot remove `/"), "{note}");
    assert!(profile.runs[0].is_valid());
    files.clean(&bench);
}

/// A mount point in the file tree of a run stays, with the directories above the mount point; everything else is
/// removed.
#[test]
fn on_a_local_file_system() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=200,size=1k,dirwidth=5,prealloc\n\
         define process name=p { thread name=t,memsize=1m {\n\
           flowop statfile name=stat1,filesetname=s\n} }\n",
    );
    let args = ["--time=1h", "--on-error=count"];
    let going = started(bench.command_in_work(&workload, &args), "measuring");
    let (_, dirs) = tree(&bench.work());
    let deepest = dirs.iter().max_by_key(|d| d.matches('/').count());
    let dir = bench.work().join(deepest.unwrap());
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", &dir, "tmpfs", flags, c"size=64k").unwrap();
    going.interrupt();
    let ended = going.end();
    unmount(&dir, UnmountFlags::DETACH).unwrap();
    let run = ended.result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    let (work, notes) = (bench.work(), left(&run));
    let (work, dir) = (work.display(), dir.display());
    let busy = format!("cannot remove directory `{dir}`: Device or resource busy (EBUSY)");
    assert_eq!(notes[0], busy);
    let later =
        format!("the clean-up is not complete: `plimsoll clean {work}` removes what is left");
    assert_eq!(notes[notes.len() - 1], later);
    // Of the run's files, only the files below the mount point remain.
    let (files, _) = tree(&bench.work());
    let root = format!("{}/", work);
    let dir = dir.to_string();
    let below = dir.strip_prefix(&root).unwrap();
    assert!(files.keys().all(|f| f.starts_with(below)), "{files:?}");
    let args = ["clean".to_owned(), work.to_string()];
    Ended::of(bench.plimsoll(args)).expect_code(0);
    assert!(!bench.work().exists());
}
