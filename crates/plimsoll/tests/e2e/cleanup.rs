//! Files that cannot be removed after a run: what was measured stays what it was, and what is left is
//! named and can be removed later.

use crate::common::{Bench, Ended, MARKER, series, started, tree};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::{Handle, Proc};
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::{Fault, FaultRelay, Ganesha, NFS_PORT, needs_root};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// No file may be removed.
const DENIED: &str = "remove=acces:1";

/// A server in this process.
struct Files {
    tree: Arc<Mutex<Tree>>,
    server: Server,
}

impl Files {
    fn with_faults(faults: &[&str]) -> Self {
        Self::late(Duration::ZERO, faults)
    }

    /// One that takes its time for each call.
    fn late(delay: Duration, faults: &[&str]) -> Self {
        let behaviour = ServerOptions {
            delay,
            faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
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

    /// Paths of all that is there.
    fn names(&self) -> Vec<String> {
        let tree = self.tree.lock().unwrap();
        let mut names = Vec::new();
        let mut below: Vec<(String, Handle)> = vec![(String::new(), tree.root())];
        while let Some((path, dir)) = below.pop() {
            let mut here = Vec::new();
            // What is no directory has nothing in it.
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

    /// Removes by `plimsoll clean` what a run left, when the server lets it; returns what is there
    /// then.
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

/// Files are read, and one is appended to.
const SMALL: [&str; 3] = ["--time=500ms", "--set=nfiles=60", "--set=nthreads=2"];

fn command(bench: &Bench, url: &str, more: &[&str]) -> Command {
    let place = ["--dir=/w", "--target", url];
    bench.command("webserver", &[&SMALL[..], &place, more].concat())
}

/// What the notes say of files that were left.
fn left(run: &Run) -> Vec<&str> {
    let about = ["cannot ", "more could not be removed", "the clean-up "];
    let notes = run.notes.iter().map(|n| n.text.as_str());
    notes
        .filter(|n| about.iter().any(|a| n.contains(a)))
        .collect()
}

/// A text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A server that removes behind a cache says for a moment that a directory is not empty, or fails.
#[test]
fn a_directory_that_was_emptied_is_tried_again() {
    for fault in ["rmdir=notempty:0.5", "rmdir=io:0.5", "rmdir=exist:0.7"] {
        let (bench, files) = (Bench::new(), Files::with_faults(&[fault]));
        let run = Ended::of(command(&bench, &files.url(), &[])).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid, "{fault}");
        assert_eq!(left(&run), [""; 0], "{fault}");
        assert_eq!(files.names(), [""; 0], "{fault}");
        let dirs = run.filesets.iter().map(|p| p.dirs).sum::<u64>();
        assert!(files.server.calls(Proc::RmDir) > dirs, "{fault}");
    }
}

/// What cannot be removed is named, the marker stays, and the verdict is that of the measurement.
#[test]
fn what_cannot_be_removed_changes_no_verdict() {
    let (bench, files) = (Bench::new(), Files::with_faults(&[DENIED]));
    let url = files.url();
    let ended = Ended::of(command(&bench, &url, &[]));
    let warned = ended.stderr.clone();
    let run = ended.result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert_eq!((run.failure.as_ref(), run.summary.errors), (None, 0));
    let notes = left(&run);
    let removed = notes.iter().filter(|n| n.starts_with("cannot remove `/w/"));
    assert_eq!(removed.count(), 8, "{notes:?}");
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
    // JSON alone is on standard output.
    assert!(
        warned.contains(&format!("warning: {}\n", notes[0])),
        "{warned}"
    );
    assert_eq!(files.clean(&bench), [""; 0]);
    // A person reads it in the report, also in that of a quiet run.
    for more in [&[][..], &["--quiet"]] {
        let files = Files::with_faults(&[DENIED]);
        let url = files.url();
        let place = ["run", "webserver", "--dir=/w", "--target", &url];
        let text = Ended::of(bench.plimsoll([&place[..], &SMALL, more].concat()));
        let (out, err) = (words(&text.stdout), text.stderr.clone());
        text.expect_code(0);
        assert!(out.contains("webserver: valid"), "{out}");
        assert!(out.contains("note: cannot remove `/w/"), "{out}");
        assert!(out.contains("note: the clean-up is not complete"), "{out}");
        assert!(!err.contains("warning: "), "{err}");
    }
}

/// An invalid result stays invalid, and one of several runs does as it does alone.
#[test]
fn invalid_and_repeated_runs() {
    let bench = Bench::new();
    // No user looks at files that often.
    let users = USERS.replace("rate = 50", "rate = 1000000");
    std::fs::write(bench.path("users.toml"), users).unwrap();
    let files = Files::with_faults(&[DENIED]);
    let url = files.url();
    let more = ["--dir=/w", "--target", &url];
    let run = Ended::of(bench.command("users.toml", &more)).result(3);
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert!(!left(&run).is_empty());
    assert_eq!(files.clean(&bench), [""; 0]);
    // Each run removes some more than 60 files: the hundredth is one of the second run's.
    let files = Files::with_faults(&["remove=acces:0.01"]);
    Ended::of(command(&bench, &files.url(), &["--repeat=2"])).expect_code(0);
    assert_eq!(files.clean(&bench), [""; 0]);
}

/// Rank 0 removes the files of all.
#[test]
fn ranks() {
    let bench = Bench::new();
    let files = Files::with_faults(&[DENIED]);
    let run = Ended::of(command(&bench, &files.url(), &["--processes=2"])).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert_eq!(left(&run).len(), 10, "{:?}", run.notes);
    assert_eq!(files.clean(&bench), [""; 0]);
}

/// A run that is interrupted before it measures anything says what it left, too.
#[test]
fn an_interrupted_run_names_what_it_left() {
    let bench = Bench::new();
    let files = Files::late(Duration::from_millis(5), &[DENIED]);
    let url = files.url();
    let many = ["--set=nfiles=50000", "--set=filesize=1k"];
    let going = started(command(&bench, &url, &many), "making");
    while files.server.calls(Proc::Create) < 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    going.interrupt();
    let run = going.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    let notes = left(&run);
    assert!(notes[0].starts_with("cannot remove `/w/"), "{notes:?}");
    assert_eq!(files.clean(&bench), [""; 0]);
}

/// Objects of a pattern are removed by the pattern itself, as it is measured; the directories around
/// them are not a part of that.
#[test]
fn md() {
    let bench = Bench::new();
    let md = |more: &[&str]| {
        // The first RMDIR is of the pattern, the second of the directory around it.
        let files = Files::with_faults(&["rmdir=acces:0.5"]);
        let interface = format!("-i={}", files.url());
        let args = ["md", &interface, "-P=5", "-D=1", "-I=5", "--dir=/md"];
        let results = ["--results=results"];
        let ended = Ended::of(bench.plimsoll([&args[..], &results, more].concat()));
        // The work directory was made for the run, and no marker says so.
        assert_eq!(files.clean(&bench), ["/md"]);
        ended
    };
    let ended = md(&["--format=json"]);
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
    assert!(warned.contains(out), "{warned}");
    // A quiet one that is valid prints no report.
    let quiet = md(&["-q"]).expect_code(0);
    assert!(
        quiet.stderr.contains(&format!("warning: {out}")),
        "{quiet:?}"
    );
    let text = words(&md(&[]).expect_code(0).stdout);
    assert!(text.contains("md-workbench: valid"), "{text}");
    assert!(text.contains(&format!("note: {out}")), "{text}");
}

/// Users that look at their files.
const USERS: &str = "[metric]\nname = \"users\"\n[run]\nwarmup = \"0s\"\ntime = \"300ms\"\n\
    [[component]]\nname = \"user\"\nprocesses = 2\nrate = 50\nmix = { stat = 100 }\n\
    files = { count = 20, size = \"4k\" }\n";

/// Load points leave their files to each other, and are cleaned up in the end.
#[test]
fn curves_and_searches() {
    let commands: [&[&str]; 2] = [
        &[
            "curve",
            "users.toml",
            "--load=1,2",
            "--continue-past-peak",
            "--stop-after-invalid=0",
        ],
        &["find", "users.toml", "--max-load=1", "--confirm-runs=1"],
    ];
    for command in commands {
        let (bench, files) = (Bench::on_tmpfs(), Files::with_faults(&[DENIED]));
        std::fs::write(bench.path("users.toml"), USERS).unwrap();
        let url = files.url();
        let place = ["--dir=/w", "--results=results", "--target", &url];
        let call = |more: &[&str]| Ended::of(bench.plimsoll([command, &place, more].concat()));
        let ended = call(&["--format=json"]);
        // A machine that is busy does not keep up with the load: that is invalid, and no failure.
        assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
        let json: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let notes = json["notes"].as_array().unwrap();
        let notes: Vec<&str> = notes.iter().map(|n| n["text"].as_str().unwrap()).collect();
        assert!(notes[0].starts_with("cannot remove `/w/"), "{notes:?}");
        assert!(
            notes[9].starts_with("the clean-up is not complete"),
            "{notes:?}"
        );
        assert_eq!(files.clean(&bench), [""; 0]);
        let text = words(&call(&[]).stdout);
        assert!(text.contains("cannot remove `/w/"), "{text}");
        assert_eq!(files.clean(&bench), [""; 0]);
    }
}

/// Of a profile each run that left something is named.
#[test]
fn profiles() {
    let profile = "DEFAULTS {\n  runtime = 0.3;\n  dir = /tmp;\n  stats = stats;\n}\n\
        CONFIG looking {\n  function = generic;\n  personality = mine;\n  nfiles = 12;\n}\n";
    let mine = "set $dir=/tmp\nset $nfiles=3\n\
        define fileset name=s,path=$dir,entries=$nfiles,size=4k,dirwidth=8,prealloc\n\
        define process name=p { thread name=t,memsize=1m {\n\
          flowop statfile name=stat1,filesetname=s\n} }\n";
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("study.prof"), profile).unwrap();
    std::fs::write(bench.path("mine.f"), mine).unwrap();
    let call = |more: &[&str]| {
        let files = Files::with_faults(&[DENIED]);
        let on = format!("--filesystem=far={}", files.url());
        let args = ["profile", "study.prof", &on, "--results=results"];
        let ended = Ended::of(bench.plimsoll([&args[..], more].concat()));
        files.clean(&bench);
        ended
    };
    let ended = call(&["--format=json"]).expect_code(0);
    let profile = series::parsed(&ended);
    let note = &profile.notes[0].text;
    assert!(note.contains(" on far: cannot remove `/"), "{note}");
    assert!(profile.runs[0].is_valid());
    let text = words(&call(&[]).expect_code(0).stdout);
    assert!(text.contains(" on far: cannot remove"), "{text}");
}

/// NFS version 4, where one operation removes files and directories.
#[test]
fn on_version_4() {
    use plimsoll_nfs::v4::operations::Op;
    use plimsoll_nfs::v4::types::Status;
    needs_root!();
    let bench = Bench::new();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let relay = FaultRelay::start(SocketAddr::new(server.address(), NFS_PORT)).unwrap();
    let url = relay.nfs4_url(Ganesha::PSEUDO, "");
    // The first attempts at directories, of which VERIFY makes sure that they are.
    for status in [Status::NotEmpty, Status::Io] {
        let before = relay.fallen();
        let fault = Fault::refuse(Op::Remove, status).of(Op::Verify).times(3);
        relay.inject(fault);
        let run = Ended::of(command(&bench, &url, &[])).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert_eq!((left(&run), relay.fallen()), (vec![], before + 3));
        assert_eq!(tree(&server.seen()), Default::default());
    }
    relay.inject(Fault::refuse(Op::Remove, Status::Access).times(u32::MAX));
    let run = Ended::of(command(&bench, &url, &[])).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert_eq!(left(&run).len(), 10, "{:?}", run.notes);
    relay.clear();
    assert!(server.seen().join("w").join(MARKER).exists());
    let args = ["clean", "--target", &url, "/w"];
    Ended::of(bench.plimsoll(args)).expect_code(0);
    assert_eq!(tree(&server.seen()), Default::default());
}

/// A directory of the tree that something is mounted on stays, with those above it, and nothing else.
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
    // What the mount hid is there.
    let (files, _) = tree(&bench.work());
    let root = format!("{}/", work);
    let dir = dir.to_string();
    let below = dir.strip_prefix(&root).unwrap();
    assert!(files.keys().all(|f| f.starts_with(below)), "{files:?}");
    let args = ["clean".to_owned(), work.to_string()];
    Ended::of(bench.plimsoll(args)).expect_code(0);
    assert!(!bench.work().exists());
}

/// `clean` itself fails by what it cannot remove, and says it.
#[test]
fn cleaning_that_fails() {
    let (bench, files) = (Bench::new(), Files::with_faults(&[DENIED]));
    let url = files.url();
    Ended::of(command(&bench, &url, &[])).result(0);
    let args = ["clean", "--target", &url, "/w"];
    let ended = Ended::of(bench.plimsoll(args)).expect_code(1);
    assert_eq!(ended.stdout, "cleaned a part of /w\n");
    let first = "error: cannot remove `/w/";
    assert!(ended.stderr.starts_with(first), "{}", ended.stderr);
    assert_eq!(files.clean(&bench), [""; 0]);
}
