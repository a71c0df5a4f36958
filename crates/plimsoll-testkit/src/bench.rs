//! Temporary directories in which tests run the programs of this workspace, and the ends of the programs.

use plimsoll_results::{OperationFigures, Run, RunDir};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The directory of the programs that cargo has built: the parent directory of the directory of the running test
/// program.
fn program_dir() -> PathBuf {
    let own = std::env::current_exe().expect("a test has a program");
    let dir = own
        .ancestors()
        .nth(2)
        .expect("cargo puts the programs of tests into a directory below the programs");
    dir.to_owned()
}

/// Path of a program of this workspace. Cargo builds the programs of a package before the tests of the package, and the
/// programs of all packages for `cargo test --workspace`.
///
/// # Panics
/// If the program was not built.
pub fn built_program(name: &str) -> PathBuf {
    let path = program_dir().join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `cargo build -p {name}`",
        path.display()
    );
    path
}

/// The directory `.tools` of the source tree, into which `make setup` puts programs.
pub fn tools_dir() -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
    dir.canonicalize().unwrap_or(dir)
}

/// Longest duration of a program before a test fails because the program hangs.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// A temporary directory for workloads, files and results, which the end of the test removes.
pub struct Bench {
    dir: TempDir,
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// A directory on tmpfs (`/dev/shm`), so that the test does not depend on a disk.
    pub fn on_tmpfs() -> Self {
        Self::below(Path::new("/dev/shm"))
    }

    /// A directory on the file system of temporary files.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A directory on a file system that keeps files on a disk, behind the page cache.
    pub fn on_disk() -> Self {
        let in_memory = |dir: &Path| {
            const TMPFS: i64 = 0x0102_1994;
            const RAMFS: i64 = 0x8584_58f6;
            let magic = rustix::fs::statfs(dir).unwrap().f_type as i64;
            [TMPFS, RAMFS].contains(&magic)
        };
        let target = program_dir().join("../tmp");
        std::fs::create_dir_all(&target).expect("cargo has a directory for files of tests");
        let places = [std::env::temp_dir(), target];
        let place = places.iter().find(|dir| !in_memory(dir));
        Self::below(place.expect("a directory on a disk: TMPDIR=/var/tmp names one"))
    }

    pub fn below(root: &Path) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("plimsoll-test-")
            .tempdir_in(root);
        Self {
            dir: dir.unwrap_or_else(|e| panic!("no directory below {}: {e}", root.display())),
        }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Path of the work directory that tests give as `--dir`; `Bench` does not create the directory.
    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Writes `w.f`; returns its path.
    pub fn workload(&self, text: &str) -> String {
        std::fs::write(self.path("w.f"), text).unwrap();
        self.path("w.f").to_str().unwrap().to_owned()
    }

    /// Command that runs the built `plimsoll` with `args`, without standard input; the bench's directory is the
    /// command's current directory and temporary directory.
    pub fn plimsoll<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(built_program("plimsoll"));
        command
            .args(args)
            .current_dir(self.root())
            .env("TMPDIR", self.root())
            .stdin(Stdio::null());
        command
    }

    /// Command `plimsoll run WORKLOAD` with JSON on standard output and results below the bench's directory `results`;
    /// `more` are further arguments.
    pub fn command(&self, workload: &str, more: &[&str]) -> Command {
        let results = self.path("results");
        let first = ["run", workload, "--format=json", "--results"];
        let mut command = self.plimsoll(first);
        command.arg(results).args(more);
        command
    }

    /// Command of [`Bench::command`] whose work directory is [`Bench::work`].
    pub fn command_in_work(&self, workload: &str, more: &[&str]) -> Command {
        let mut command = self.command(workload, more);
        command.arg("--dir").arg(self.work());
        command
    }

    pub fn run(&self, workload: &str, more: &[&str]) -> Ended {
        Ended::of(self.command(workload, more))
    }

    pub fn run_in_work(&self, workload: &str, more: &[&str]) -> Ended {
        Ended::of(self.command_in_work(workload, more))
    }

    /// Results directories below the bench's directory `results`, sorted by name; empty before the first run.
    pub fn results(&self) -> Vec<RunDir> {
        let Ok(entries) = std::fs::read_dir(self.path("results")) else {
            return vec![];
        };
        let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|p| RunDir::at(p)).collect()
    }

    /// Names of files and directories in the bench's directory, without the names in `known`.
    pub fn left_but(&self, known: &[&str]) -> Vec<String> {
        let entries = std::fs::read_dir(self.root()).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|n| !known.contains(&n.as_str())).collect()
    }
}

/// Exit code (`None` after a fatal signal), output and duration of a program that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ended {
    /// Runs a command to its end; kills a command that hangs, and fails the test.
    pub fn of(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let begun = Instant::now();
        let child = command.spawn().unwrap();
        Self::wait(child, begun)
    }

    /// Waits for a program whose standard output and standard error are pipes, or were taken by the caller. `begun` is
    /// the start of the program.
    pub fn wait(mut child: Child, begun: Instant) -> Self {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let out = std::thread::spawn(move || read_all(out));
        let err = std::thread::spawn(move || read_all(err));
        let status = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if begun.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    let (out, err) = (out.join().unwrap(), err.join().unwrap());
                    panic!("did not end within {PATIENCE:?}\n{out}\n{err}");
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let took = begun.elapsed();
        Self {
            code: status.code(),
            stdout: out.join().unwrap(),
            stderr: err.join().unwrap(),
            took,
        }
    }

    /// The run that the program printed as `run.json`; `None` for other output.
    pub fn parsed(&self) -> Option<Run> {
        serde_json::from_str(&self.stdout).ok()
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "standard error:\n{}\nstandard output begins:\n{}",
            self.stderr,
            self.stdout.chars().take(600).collect::<String>()
        );
        self
    }

    /// The printed run of a program that must end with `code`.
    #[track_caller]
    pub fn result(self, code: i32) -> Run {
        let ended = self.expect_code(code);
        let run = ended.parsed();
        run.unwrap_or_else(|| panic!("no run.json: {}{}", ended.stdout, ended.stderr))
    }

    /// The printed run of a program that must end with 0, or with 3 for the sole reason of a stall: writes of other
    /// programs can keep the disk busy.
    #[track_caller]
    pub fn result_on_disk(self) -> Run {
        let Some(3) = self.code else {
            return self.result(0);
        };
        let run = self.result(3);
        let codes: Vec<_> = run.validity.reasons.iter().map(|r| &*r.code).collect();
        assert_eq!(codes, ["stalled"], "{:?}", run.validity.reasons);
        run
    }

    /// Standard error of a program that must end with 2 and must not write to standard output.
    #[track_caller]
    pub fn refusal(self) -> String {
        let ended = self.expect_code(2);
        assert_eq!(ended.stdout, "", "a refused run prints no result");
        ended.stderr
    }
}

fn read_all(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes).unwrap();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The row `name`, or the row `name:kind` if several rows share the name.
#[track_caller]
pub fn row<'a>(run: &'a Run, name: &str) -> &'a OperationFigures {
    find_row(run, name).unwrap_or_else(|e| panic!("{e}"))
}

pub fn find_row<'a>(run: &'a Run, name: &str) -> Result<&'a OperationFigures, String> {
    let (name, kind) = match name.split_once(':') {
        Some((name, kind)) => (name, Some(kind)),
        None => (name, None),
    };
    let is_it = |o: &&OperationFigures| {
        let its = serde_json::to_value(o.kind).unwrap();
        o.name == name && kind.is_none_or(|k| its == k)
    };
    let found: Vec<_> = run.operations.iter().filter(is_it).collect();
    match found[..] {
        [row] => Ok(row),
        [] => Err(format!("no row {name}:{kind:?}")),
        _ => Err(format!("{} rows are named {name}", found.len())),
    }
}

/// A program that runs and has written an awaited line to standard error.
pub struct Started {
    pub child: Child,
    begun: Instant,
    rest: std::thread::JoinHandle<String>,
}

/// Starts a command and waits for a line on standard error that begins with `line_begin`.
#[track_caller]
pub fn started(mut command: Command, line_begin: &str) -> Started {
    let begun = Instant::now();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let from = said.len();
        let read = lines.read_line(&mut said).unwrap();
        assert!(read > 0, "ended before it said `{line_begin}`:\n{said}");
        if said[from..]
            .trim_start_matches('\r')
            .starts_with(line_begin)
        {
            break;
        }
    }
    // The program would block or fail if nobody read its later lines.
    let rest = std::thread::spawn(move || said + &read_all(Some(lines)));
    Started { child, begun, rest }
}

/// Starts the command of a series and waits until a run of the series has measured an interval, which the program writes
/// to a hidden directory below `results`.
#[track_caller]
pub fn started_series(mut command: Command, results: &Path) -> Started {
    let begun = Instant::now();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stderr = child.stderr.take();
    let rest = std::thread::spawn(move || read_all(stderr));
    let has_interval = |path: &String| {
        path.contains("/.plimsoll-")
            && path.ends_with("/intervals.csv")
            && std::fs::read_to_string(results.join(path))
                .is_ok_and(|text| text.lines().count() > 1)
    };
    wait_until("an interval of a run", || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "ended before an interval");
        tree(results).0.keys().any(has_interval)
    });
    Started { child, begun, rest }
}

impl Started {
    pub fn interrupt(&self) {
        signal(self.child.id().cast_signed(), Signal::INT);
    }

    pub fn terminate(&self) {
        signal(self.child.id().cast_signed(), Signal::TERM);
    }

    /// Waits for the end of the program.
    pub fn end(self) -> Ended {
        let mut ended = Ended::wait(self.child, self.begun);
        ended.stderr = self.rest.join().unwrap();
        ended
    }
}

/// Sends a signal to a process.
pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Waits until `is_so` is true; panics after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Name of the file that marks a directory of Plimsoll.
pub const MARKER: &str = ".plimsoll";

/// Name of the directory by which a run claims its work directory.
pub const CLAIM: &str = ".plimsoll.claim";

/// Regular files below a directory with their sizes in bytes, without markers; and sorted directories, without claims.
/// All paths are relative to `dir`.
pub fn tree(dir: &Path) -> (BTreeMap<String, u64>, Vec<String>) {
    let (mut files, mut dirs) = (BTreeMap::new(), Vec::new());
    let mut todo = vec![dir.to_owned()];
    while let Some(next) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&next) else {
            continue;
        };
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            let below = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
            // A run in progress may have removed the file since the directory was listed.
            let Ok(meta) = entry.metadata() else {
                continue;
            };
            if meta.is_dir() {
                if entry.file_name() != CLAIM {
                    dirs.push(below);
                    todo.push(path);
                }
            } else if entry.file_name() != MARKER {
                files.insert(below, meta.len());
            }
        }
    }
    dirs.sort();
    (files, dirs)
}

/// Small tmpfs mounted on [`Bench::work`], which tests fill to provoke ENOSPC.
pub struct Small {
    // `mounted` is declared before `bench`, so that the tmpfs is unmounted before the bench removes its directory.
    mounted: Mounted,
    pub bench: Bench,
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

impl Small {
    pub fn new(options: &str) -> Self {
        let bench = Bench::on_tmpfs();
        let dir = bench.work();
        std::fs::create_dir(&dir).unwrap();
        let options = CString::new(options).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", &dir, "tmpfs", flags, options.as_c_str())
            .unwrap_or_else(|e| panic!("{e}: mount(2)"));
        Self {
            mounted: Mounted(dir),
            bench,
        }
    }

    /// The directory of the file system.
    pub fn dir(&self) -> &Path {
        &self.mounted.0
    }

    /// Numbers of regular files and of directories on the file system.
    pub fn left(&self) -> (usize, usize) {
        let (files, dirs) = tree(&self.mounted.0);
        (files.len(), dirs.len())
    }
}
