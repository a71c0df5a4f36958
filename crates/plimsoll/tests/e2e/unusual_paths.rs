//! Directories whose names are not UTF-8: every command works in them, and results name them.

use crate::common::{Bench, Ended};
use plimsoll_results::{RunDir, SeriesDir};
use plimsoll_testkit::needs_root;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `café` in Latin-1, with a backslash.
const NAME: &[u8] = b"caf\xe9\\";

/// The name [`NAME`] as results show the name: a byte that is not valid UTF-8 is `\x` and two digits, a backslash is
/// doubled.
const TEXT: &str = r"caf\xE9\\";

const WORKLOAD: &str = "\
define fileset name=s,path=files,entries=5,size=4k,prealloc
define process name=p { thread name=t,memsize=1m,instances=2 { flowop readwholefile name=r,filesetname=s,iters=1 } }
";

/// A place whose name is not UTF-8, in which the program runs.
struct Odd {
    bench: Bench,
    dir: PathBuf,
}

impl Odd {
    fn new() -> Self {
        let bench = Bench::on_tmpfs();
        let dir = bench.root().join(OsStr::from_bytes(NAME));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("w.f"), WORKLOAD).unwrap();
        Self { bench, dir }
    }

    fn call<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ended {
        let mut command = self.bench.plimsoll(args);
        command.current_dir(&self.dir).env("TMPDIR", &self.dir);
        Ended::of(command)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The only entry of a directory of results.
    fn only(&self, name: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.path(name)).unwrap();
        let mut entries: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }
}

fn args(words: &[&str], paths: &[&Path]) -> Vec<OsString> {
    let words = words.iter().map(OsString::from);
    words.chain(paths.iter().map(|p| p.into())).collect()
}

/// `--option=PATH`.
fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(format!("--{name}="));
    option.push(path);
    option
}

#[test]
fn a_run_in_such_a_directory_has_results_that_are_read_back() {
    let odd = Odd::new();
    // Current directory, temporary directory, work directory and results: all are such.
    odd.call(["run", "w.f", "--ops=20", "--results=r"])
        .expect_code(0);
    let place = odd.only("r");
    let run = RunDir::at(&place).read().unwrap();
    let dir = &run.plan.work_dir.dir;
    assert!(dir.starts_with(&odd.dir), "{dir:?}");
    let json = std::fs::read(place.join("run.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let dir = json["plan"]["work_dir"]["dir"].as_str().unwrap();
    assert!(dir.contains(TEXT), "{dir}");
    let absolute = odd.path("again");
    let more = [option("dir", &absolute), option("results", &odd.path("r2"))];
    let first = ["run", "w.f", "--ops=20", "--processes=2"].map(OsString::from);
    odd.call(first.into_iter().chain(more)).expect_code(0);
    let again = odd.only("r2");
    let run = RunDir::at(&again).read().unwrap();
    assert_eq!(run.plan.work_dir.dir, absolute);
    for format in ["text", "json", "csv", "markdown", "html"] {
        let format = format!("--format={format}");
        let shown = odd.call(args(&["report", &format], &[&place]));
        let shown = shown.expect_code(0);
        assert!(!shown.stdout.is_empty());
    }
    odd.call(args(&["compare"], &[&place, &again]))
        .expect_code(0);
    odd.call(args(&["results", "note"], &[&place, Path::new("a remark")]))
        .expect_code(0);
    let text = odd.call(args(&["report"], &[&place])).expect_code(0);
    assert!(text.stdout.contains("a remark"), "{}", text.stdout);
}

#[test]
fn every_command_that_measures_works_there() {
    let odd = Odd::new();
    let virtually = "--scale=0.05 --target=null:?latency=1ms&clock=virtual";
    let commands = [
        "md -D=2 -I=3 -P=4 -w=0",
        "md --pattern=mdtest-easy -n=10 -w=0",
        &format!("curve vda --load=1 {virtually}"),
        &format!("find vda --max-load=1 --confirm-runs=1 {virtually}"),
        "run varmail --set=nfiles=30 --ops=60",
    ];
    for (n, command) in commands.into_iter().enumerate() {
        let results = format!("r{n}");
        let more = [
            option("dir", &odd.path("work")),
            option("results", Path::new(&results)),
        ];
        let command_args = command.split(' ').map(OsString::from).chain(more);
        odd.call(command_args).expect_code(0);
        let place = odd.only(&results);
        odd.call(args(&["report"], &[&place])).expect_code(0);
    }
    let curve = SeriesDir::at(&odd.only("r2")).read().unwrap();
    assert!(curve.first_plan().work_dir.dir.starts_with(&odd.dir));
    let profile = "DEFAULTS {\n runtime = 1;\n dir = d;\n stats = s;\n}\nCONFIG one {\n function = generic;\n \
         personality = randomread;\n filesize = 64k;\n nthreads = 1;\n}\n";
    std::fs::write(odd.path("p.prof"), profile).unwrap();
    odd.call(["profile", "p.prof", "--warmup=0s", "--results=rp"])
        .expect_code(0);
    odd.call(args(&["report"], &[&odd.only("rp")]))
        .expect_code(0);
    // On a directory that is named.
    let mut on = OsString::from("--filesystem=a=");
    on.push(odd.path("u"));
    let first = ["profile", "p.prof", "--warmup=0s", "--results=ro"].map(OsString::from);
    std::fs::create_dir(odd.path("u")).unwrap();
    odd.call(first.into_iter().chain([on])).expect_code(0);
    // A workload whose own name is such.
    let odd_name = OsStr::from_bytes(b"\xe9.f");
    std::fs::write(odd.dir.join(odd_name), WORKLOAD).unwrap();
    odd.call([OsStr::new("run"), odd_name, OsStr::new("--ops=20")])
        .expect_code(0);
    for command in [["run", "--dry-run"], ["workloads", "show"]] {
        odd.call(command.map(OsStr::new).into_iter().chain([odd_name]))
            .expect_code(0);
    }
}

/// Two names for one directory are no comparison.
#[test]
fn one_directory_by_two_names_is_refused() {
    let bench = Bench::on_tmpfs();
    let text = "DEFAULTS { runtime = 1; stats = s; } CONFIG one { function = generic; personality = \
                randomread; filesize = 64k; nthreads = 1; }";
    std::fs::write(bench.path("p.prof"), text).unwrap();
    for dir in ["u", "y"] {
        std::fs::create_dir(bench.path(dir)).unwrap();
    }
    std::os::unix::fs::symlink(bench.path("u"), bench.path("link")).unwrap();
    let profile = |on: [&str; 2]| {
        let on = on.map(|o| format!("--filesystem={o}"));
        let first = ["profile", "p.prof", "--warmup=0s", "--results=r"];
        Ended::of(bench.plimsoll(first.into_iter().chain(on.each_ref().map(String::as_str))))
    };
    for (on, reason) in [
        (["a=./u", "b=./link"], "`a` and `b` are the same directory"),
        (
            ["a=./u/new", "b=link/new"],
            "`a` and `b` are the same directory",
        ),
        (["a=./u", "a=./y"], "two file systems are called `a"),
        (["a b=./u", "a-b=./y"], "two file systems are called `a"),
    ] {
        let refused = profile(on).refusal();
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(!bench.path("r").exists());
    profile(["a=./u", "b=./y"]).expect_code(0);
}

/// Two file systems of a profile must not be one directory, even if a bind mount gives the directory two paths.
#[test]
fn one_directory_by_a_bind_mount_is_refused() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let script = "mkdir u y && mount --bind u y && exec \"$0\" profile fileio --filesystem=a=u --filesystem=b=y";
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_plimsoll"));
    command.current_dir(bench.root());
    let refused = Ended::of(command).refusal();
    let reason = "`a` and `b` are the same directory";
    assert!(refused.contains(reason), "{refused}");
}

#[test]
fn what_is_left_there_is_cleaned_and_pruned() {
    let odd = Odd::new();
    let keep = "run w.f --ops=20 --keep --dir=kept --results=r";
    odd.call(keep.split(' ')).expect_code(0);
    assert!(odd.path("kept").join("s").exists());
    odd.call(args(&["clean"], &[&odd.path("kept")]))
        .expect_code(0);
    assert!(!odd.path("kept").join("s").exists());
    for _ in 0..2 {
        odd.call(["run", "w.f", "--ops=20", "--results=r"])
            .expect_code(0);
    }
    let old = ["results", "prune", "--older-than=0m", "--yes", "--results"];
    odd.call(args(&old, &[&odd.path("r")])).expect_code(0);
    assert_eq!(std::fs::read_dir(odd.path("r")).unwrap().count(), 0);
}
