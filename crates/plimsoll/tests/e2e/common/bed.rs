//! A test bed of a test: its commands, its load, its faults, and what must not be left of it.

use super::{Bench, Ended, wait_until};
use plimsoll_results::Verdict;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the bed of a test.
pub const NAME: &str = "b";

/// A bed with directories of its own, which ends with the test.
pub struct Bed {
    pub bench: Bench,
    /// What is outside its directories and ends with it.
    traces: RefCell<Traces>,
}

/// What a bed has of the machine.
#[derive(Default)]
struct Traces {
    /// Namespaces, such as `net:[4026532301]`.
    namespaces: Vec<PathBuf>,
    control_groups: Vec<PathBuf>,
}

impl Bed {
    /// One that was not started.
    pub fn new() -> Self {
        Self {
            bench: Bench::new(),
            traces: RefCell::default(),
        }
    }

    /// One that is up, or `None` if this process does not have what its kind takes of the machine, which
    /// is said.
    pub fn up(kind: &str, options: &[&str]) -> Option<Self> {
        let this = Self::new();
        let mut command = this.plimsoll(&["testbed", "up", kind, "--name", NAME, "--quiet"]);
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
        assert_eq!(ended.expect_code(0).stdout, format!("testbed:{NAME}\n"));
        this.note_traces();
        Some(this)
    }

    /// Notes what the bed that is up has of the machine.
    pub fn note_traces(&self) {
        let state = self.beds().join("states").join(NAME).join("state.json");
        let state: Value = serde_json::from_slice(&std::fs::read(state).unwrap()).unwrap();
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

    pub fn beds(&self) -> PathBuf {
        self.bench.path("beds")
    }

    /// Where its file system is mounted.
    pub fn files(&self) -> PathBuf {
        self.beds().join("states").join(NAME).join("mnt/files")
    }

    pub fn plimsoll(&self, words: &[&str]) -> Command {
        let mut command = self.bench.plimsoll(words);
        command.env("PLIMSOLL_TESTBEDS", self.beds());
        // `make setup` puts rclone there.
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools");
        let mut path = OsString::from(tools.canonicalize().unwrap_or(tools));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path);
        // `make setup` puts it there too, for machines that have no other.
        let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/kernel");
        if let Ok(kernel) = kernel.canonicalize() {
            command.env("PLIMSOLL_KERNEL", kernel);
        }
        command
    }

    pub fn done(&self, words: &[&str]) -> String {
        Ended::of(self.plimsoll(words)).expect_code(0).stdout
    }

    pub fn fault(&self, action: &str) {
        let mut words = vec!["testbed", "fault", NAME];
        words.extend(action.split(' '));
        self.done(&words);
    }

    /// A script in the bed.
    pub fn script(&self, script: &str) -> Command {
        let mut command = self.plimsoll(&["testbed", "exec", NAME, "--", "sh", "-ec", script]);
        command.env("FILES", self.files());
        command.env("MNT", self.files().parent().unwrap());
        command
    }

    pub fn sh(&self, script: &str) -> String {
        Ended::of(self.script(script)).expect_code(0).stdout
    }

    pub fn status(&self) -> Value {
        let text = self.done(&["testbed", "status", NAME, "--format=json"]);
        let all: Value = serde_json::from_str(&text).unwrap();
        all[0]["status"].clone()
    }

    /// The state of a node.
    pub fn state(&self, node: &str) -> String {
        let status = self.status();
        let nodes = status["nodes"].as_array().unwrap();
        let found = nodes.iter().find(|n| n["name"] == node);
        let found = found.unwrap_or_else(|| panic!("{node} in {status}"));
        found["state"].as_str().unwrap().to_owned()
    }

    /// What its kind says of it.
    pub fn lines(&self) -> Vec<String> {
        let status = self.status();
        let lines = status["lines"].as_array().unwrap().iter();
        lines.map(|l| l.as_str().unwrap().to_owned()).collect()
    }

    /// A valid run without errors, of which each operation has come to the system. Its end is a number of
    /// operations: an emulated machine may do none within a second.
    pub fn load(&self) {
        let words = ["run", "varmail", "--target=testbed:b", "--ops=100"];
        let mut command = self.plimsoll(&words);
        command.args(["--set=nfiles=20", "--set=nthreads=2", "--format=json"]);
        command.args(["--results=results", "--dir=/w"]);
        let run = Ended::of(command).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert_eq!(run.summary.errors, 0);
        assert!(run.summary.ops > 0);
    }

    /// A phase of MD-Workbench on a bed, which checks what it reads against what an earlier phase wrote.
    pub fn md_on(&self, name: &str, phase: &str) -> Ended {
        let mut command = self.plimsoll(&["md", phase]);
        command.args([
            &format!("-i=testbed:{name}"),
            "-P=5",
            "-D=1",
            "-I=5",
            "-S=3000",
        ]);
        command.args(["--verify-read", "--dir=/md", "--results=results"]);
        command.arg("--format=json");
        Ended::of(command)
    }

    pub fn md(&self, phase: &str) {
        let run = self.md_on(NAME, phase).result(0);
        assert_eq!(run.summary.errors, 0);
    }

    /// Kills, stops and starts each of these nodes.
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

    /// Ends it: no process, mount, or file is left.
    pub fn down(self) {
        assert_eq!(
            self.done(&["testbed", "down", NAME]),
            format!("{NAME} is down\n")
        );
        self.is_gone();
    }

    pub fn is_gone(&self) {
        self.done(&["testbed", "list"]);
        for dir in ["states", "data"] {
            let left: Vec<_> = std::fs::read_dir(self.beds().join(dir)).unwrap().collect();
            assert!(left.is_empty(), "{left:?}");
        }
        let root = self.beds().to_string_lossy().into_owned();
        let traces = self.traces.borrow();
        wait_until("the end of its namespaces", || {
            namespaces().is_disjoint(&traces.namespaces.iter().cloned().collect())
        });
        for group in &traces.control_groups {
            assert!(!group.exists(), "{}", group.display());
        }
        // The kernel detaches them after the last namespace with a mount of them has ended.
        wait_until("the end of its loop devices", || {
            !loop_devices().contains(&root)
        });
        wait_until("the end of its processes", || {
            processes_with(&root).is_empty()
        });
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // A test that failed has left it.
        let _ = Ended::of(self.plimsoll(&["testbed", "down", "--all"]));
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
