//! The test beds of a test: commands, loads, faults, and checks that the end of a bed leaves nothing.

use plimsoll_results::{Run, Verdict};
use plimsoll_testbed::study::StudyDir;
use plimsoll_testbed::{ProcessId, STATE_DIR_VARIABLE};
use plimsoll_testkit::bench::{Bench, Ended, tools_dir, wait_until};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// A directory with its own test beds. Dropping the directory ends the beds that are up.
pub struct Beds {
    pub bench: Bench,
}

impl Beds {
    pub fn new() -> Self {
        Self {
            bench: Bench::new(),
        }
    }

    /// `plimsoll` with arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.plimsoll(args);
        // `make setup` puts rclone and a kernel into the directory of tools.
        let tools = tools_dir();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(tools.clone()).chain(std::env::split_paths(&path));
        command
            .env(STATE_DIR_VARIABLE, self.dir())
            .env("PATH", std::env::join_paths(path).unwrap());
        // Machines without an installed kernel for User-Mode Linux use the kernel of `make setup`.
        if let Ok(kernel) = tools.join("kernel").canonicalize() {
            command.env("PLIMSOLL_KERNEL", kernel);
        }
        command
    }

    /// The directory of the states and the data of all beds.
    pub fn dir(&self) -> PathBuf {
        self.bench.path("beds")
    }

    /// Runs `plimsoll testbed` with arguments to its end.
    pub fn testbed(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(&[&["testbed"], args].concat()))
    }

    /// `plimsoll testbed on NAME` with a command of plimsoll.
    pub fn on(&self, name: &str, command: &[&str]) -> Command {
        self.command(&[&["testbed", "on", name, "--"], command].concat())
    }

    /// Standard output of a command that must succeed.
    pub fn done(&self, words: &[&str]) -> String {
        Ended::of(self.command(words)).expect_code(0).stdout
    }

    /// Runs a short load on a bed; asserts that the run is valid, and returns its `run.json`.
    pub fn load(&self, bed: &str) -> Run {
        let mut command = self.on(bed, &["run", "varmail"]);
        command.args(["--set", "nfiles=40", "--set", "nthreads=2", "--ops", "200"]);
        command.args(["--results", "results", "--format", "json"]);
        let run = Ended::of(command).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert!(run.summary.ops > 0);
        run
    }

    pub fn state(&self, name: &str) -> Value {
        let path = self.dir().join("states").join(name).join("state.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    pub fn keeper(&self, name: &str) -> ProcessId {
        serde_json::from_value(self.state(name)["owner"].clone()).unwrap()
    }

    /// The status of a bed, as JSON.
    pub fn status(&self, name: &str) -> Value {
        let text = self.done(&["testbed", "status", name, "--format=json"]);
        let all: Value = serde_json::from_str(&text).unwrap();
        all[0]["status"].clone()
    }

    /// Name and state of each node of a bed.
    pub fn nodes(&self, name: &str) -> Vec<(String, String)> {
        let status = self.status(name);
        let nodes = status["nodes"].as_array().unwrap().iter();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        nodes
            .map(|n| (text(&n["name"]), text(&n["state"])))
            .collect()
    }

    pub fn node(&self, bed: &str, node: &str) -> String {
        let found = self.nodes(bed).into_iter().find(|(name, _)| name == node);
        found.unwrap_or_else(|| panic!("{node} of {bed}")).1
    }

    /// Waits for the end of a keeper, and checks that the next command removes all beds.
    pub fn assert_gone_with(&self, keeper: ProcessId) {
        wait_until("the end of the keeper", || !keeper.is_running());
        self.testbed(&["list"]).expect_code(0);
        assert_eq!(self.left(), Vec::<PathBuf>::new());
    }

    /// Remaining files and directories of beds.
    pub fn left(&self) -> Vec<PathBuf> {
        let of = |dir: &str| std::fs::read_dir(self.dir().join(dir));
        let all = ["states", "data"].map(of).into_iter().flatten().flatten();
        all.map(|e| e.unwrap().path()).collect()
    }
}

impl Drop for Beds {
    fn drop(&mut self) {
        let _ = self.command(&["testbed", "down", "--all"]).output();
    }
}

/// The only study among the results of a test.
pub fn only_study(bench: &Bench) -> StudyDir {
    let mut entries = std::fs::read_dir(bench.path("results")).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    StudyDir::at(&path)
}

/// Name of the bed of a test.
pub const NAME: &str = "b";

/// Bed in a store of its own, which `drop` ends.
pub struct Bed {
    pub beds: Beds,
    /// Objects outside of the bed's directories that end with the bed.
    traces: RefCell<Traces>,
}

/// Namespaces and control groups of a bed on the machine.
#[derive(Default)]
struct Traces {
    /// Namespaces, such as `net:[4026532301]`.
    namespaces: Vec<PathBuf>,
    control_groups: Vec<PathBuf>,
}

impl Bed {
    /// A bed that is not started.
    pub fn new() -> Self {
        Self {
            beds: Beds::new(),
            traces: RefCell::default(),
        }
    }

    /// A bed that is up, or `None` with a printed note if this process lacks the rights that the kind needs.
    pub fn up(kind: &str, options: &[&str]) -> Option<Self> {
        let this = Self::new();
        let words = ["testbed", "up", kind, "--name", NAME, "--quiet"];
        let mut command = this.beds.command(&words);
        command.args(options);
        let ended = Ended::of(command);
        let is_machines = [
            "needs the rights of root on the machine",
            "/dev/fuse cannot",
        ];
        if ended.code != Some(0) && is_machines.iter().any(|m| ended.stderr.contains(m)) {
            eprintln!("SKIPPED: {}: `make test-root` runs it", ended.stderr.trim());
            return None;
        }
        assert_eq!(ended.expect_code(0).stdout, format!("{NAME}\n"));
        this.note_traces();
        Some(this)
    }

    /// Records the namespaces and control groups of the bed that is up.
    pub fn note_traces(&self) {
        let state = self.beds.state(NAME);
        let owner = &state["owner"]["pid"];
        let mut traces = self.traces.borrow_mut();
        for kind in ["net", "mnt", "pid"] {
            let link = std::fs::read_link(format!("/proc/{owner}/ns/{kind}")).unwrap();
            let own = std::fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
            assert_ne!(link, own, "a bed has a namespace of its own");
            traces.namespaces.push(link);
        }
        let group = state["control_group"].as_str();
        traces.control_groups.extend(group.map(PathBuf::from));
    }

    /// Mount point of the bed's file system.
    pub fn files(&self) -> PathBuf {
        self.beds.dir().join("states").join(NAME).join("mnt/files")
    }

    /// The directory in which the nodes keep their files.
    pub fn data(&self) -> PathBuf {
        self.beds.dir().join("data").join(NAME)
    }

    pub fn fault(&self, action: &str) {
        let mut words = vec!["testbed", "fault", NAME];
        words.extend(action.split(' '));
        self.beds.done(&words);
    }

    /// A shell script in the bed.
    pub fn script(&self, script: &str) -> Command {
        let words = ["testbed", "exec", NAME, "--", "sh", "-ec", script];
        let mut command = self.beds.command(&words);
        command.env("FILES", self.files());
        command.env("MNT", self.files().parent().unwrap());
        command
    }

    pub fn sh(&self, script: &str) -> String {
        Ended::of(self.script(script)).expect_code(0).stdout
    }

    pub fn status(&self) -> Value {
        self.beds.status(NAME)
    }

    /// The state of a node.
    pub fn state(&self, node: &str) -> String {
        self.beds.node(NAME, node)
    }

    /// The status lines of the bed's kind.
    pub fn lines(&self) -> Vec<String> {
        let status = self.status();
        let lines = status["lines"].as_array().unwrap().iter();
        lines.map(|l| l.as_str().unwrap().to_owned()).collect()
    }

    /// The option `--dir` for a directory on a bed: below the mount, or below the root of a URL.
    fn dir_option(&self, dir: &str) -> String {
        let is_mounted = self.beds.state(NAME)["targets"][0]["directory"].is_string();
        match is_mounted {
            true => format!("--dir={{}}/{dir}"),
            false => format!("--dir=/{dir}"),
        }
    }

    /// Runs a load that must be valid and without errors. The run ends after 100 operations, not after a time: an
    /// emulated machine may complete no operation within a second.
    pub fn load(&self) {
        let mut command = self.beds.on(NAME, &["run", "varmail", "--ops=100"]);
        command.args(["--set=nfiles=20", "--set=nthreads=2", "--format=json"]);
        command.args(["--results=results", &self.dir_option("w")]);
        let run = Ended::of(command).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert_eq!(run.summary.errors, 0);
        assert!(run.summary.ops > 0);
    }

    /// Runs a phase of MD-Workbench on the default target, and verifies what earlier phases have written.
    pub fn md(&self, phase: &str) {
        let mut command = self.beds.on(NAME, &["md", phase]);
        command.args(["-P=5", "-D=1", "-I=5", "-S=3000", "--verify-read"]);
        command.args([&self.dir_option("md"), "--results=results"]);
        command.arg("--format=json");
        assert_eq!(Ended::of(command).result(0).summary.errors, 0);
    }

    /// Runs a phase of MD-Workbench on one of the bed's targets, which has its own files.
    pub fn md_through(&self, target: &str, phase: &str) {
        let mut command = self.beds.on(NAME, &["md", phase]);
        command.args([format!("--target={{{target}}}"), format!("--dir=/{target}")]);
        // Each target has its own run-info file, because each target has its own objects.
        command.arg(format!("--run-info-file={target}.status"));
        command.args(["-P=5", "-D=1", "-I=5", "-S=3000", "--verify-read"]);
        command.args(["--results=results", "--format=json"]);
        assert_eq!(Ended::of(command).result(0).summary.errors, 0);
    }

    /// Stops, continues, kills and restarts each of the nodes.
    pub fn hurt(&self, nodes: &[&str]) {
        for node in nodes {
            self.fault(&format!("stop {node}"));
            assert_eq!(self.state(node), "stopped");
            self.fault(&format!("cont {node}"));
            assert_eq!(self.state(node), "running");
            self.fault(&format!("kill {node}"));
            let state = self.state(node);
            assert!(state.starts_with("ended (signal: 9"), "{node}: {state}");
            self.fault(&format!("restart {node}"));
            assert_eq!(self.state(node), "running");
        }
    }

    pub fn cut_and_heal(&self, node: &str) {
        self.fault(&format!("cut {node}"));
        let state = self.state(node);
        assert!(state.ends_with("cut"), "{node}: {state}");
        self.fault(&format!("heal {node}"));
        let state = self.state(node);
        assert!(!state.contains("cut"), "{node}: {state}");
    }

    pub fn fill_and_heal(&self, node: &str) {
        self.fault(&format!("fill {node}"));
        assert_eq!(self.state(node), "running, full");
        self.fault(&format!("heal {node}"));
        assert_eq!(self.state(node), "running");
    }

    /// Ends the bed, and checks that no process, mount, or file is left.
    pub fn down(self) {
        assert_eq!(
            self.beds.done(&["testbed", "down", NAME]),
            format!("{NAME} is down\n")
        );
        self.assert_gone();
    }

    pub fn assert_gone(&self) {
        self.beds.done(&["testbed", "list"]);
        assert_eq!(self.beds.left(), Vec::<PathBuf>::new());
        let root = self.beds.dir().to_string_lossy().into_owned();
        let traces = self.traces.borrow();
        wait_until("the end of its namespaces", || {
            namespaces().is_disjoint(&traces.namespaces.iter().cloned().collect())
        });
        for group in &traces.control_groups {
            assert!(!group.exists(), "{}", group.display());
        }
        // The kernel detaches the bed's loop devices only after the last mount namespace with a mount of them has
        // ended.
        wait_until("the end of its loop devices", || {
            !loop_devices().contains(&root)
        });
        wait_until("the end of its processes", || {
            processes_with(&root).is_empty()
        });
    }
}

/// The namespaces of all processes.
fn namespaces() -> BTreeSet<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let of = |entry: std::fs::DirEntry| {
        let kinds = ["net", "mnt", "pid"].into_iter();
        kinds.filter_map(move |kind| std::fs::read_link(entry.path().join("ns").join(kind)).ok())
    };
    processes.flat_map(of).collect()
}

/// The files behind the loop devices of the machine.
fn loop_devices() -> String {
    let devices = std::fs::read_dir("/sys/block")
        .into_iter()
        .flatten()
        .flatten();
    let file = |entry: std::fs::DirEntry| {
        std::fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default()
    };
    devices.map(file).collect()
}

/// Command lines of processes that name a path.
pub fn processes_with(path: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    lines.filter(|line| line.contains(path)).collect()
}
