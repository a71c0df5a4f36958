//! The commands in the documents do what a reader is promised: they end well.

use crate::common::{Bench, Ended, signal};
use plimsoll_testbed::STATE_DIR_VARIABLE;
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// A `sh` block that says `<!-- not run -->` before it is not run here: it builds, or needs a
/// place that only the reader has.
const NOT_RUN: &str = "<!-- not run -->";

/// What the lines begin with that are run: the program, and what makes files for it.
const RUN: [&str; 3] = ["plimsoll ", "mkdir ", "echo "];

/// Calls of the program that one block of a document shows.
struct Block {
    /// File and line.
    place: String,
    calls: Vec<String>,
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for dir in ["docs", "docs/studies"] {
        for entry in std::fs::read_dir(root.join(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn blocks(document: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(document).unwrap();
    let name = document.file_name().unwrap().to_string_lossy();
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (number, line) in (1..).zip(text.lines()) {
        match &mut open {
            Some(_) if line.trim() == "```" => found.extend(open.take()),
            Some(block) => {
                let line = line.trim().trim_start_matches("$ ");
                match block.calls.last_mut() {
                    Some(call) if call.ends_with('\\') => {
                        call.pop();
                        call.push_str(line);
                    }
                    _ if RUN.iter().any(|r| line.starts_with(r)) => {
                        block.calls.push(line.to_owned())
                    }
                    _ => {}
                }
            }
            None if line.trim() == "```sh" && before != NOT_RUN => {
                let place = format!("{name}:{number}");
                let calls = Vec::new();
                open = Some(Block { place, calls });
            }
            None => {}
        }
        if !line.trim().is_empty() {
            before = line.trim();
        }
    }
    assert!(open.is_none(), "{name} has a block without an end");
    found
}

/// Where the calls of a block run, and the servers that they start.
struct Shell {
    bench: Bench,
    path: String,
    servers: Vec<(Child, Instant, String)>,
    /// Ports of the document, and those that the system chose instead.
    ports: Vec<(String, String)>,
}

impl Shell {
    fn new() -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
        let path = std::env::var("PATH").unwrap_or_default();
        Self {
            bench: Bench::new(),
            path: format!(
                "{}:{}:{path}",
                program.parent().unwrap().display(),
                Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("../../.tools")
                    .display()
            ),
            servers: Vec::new(),
            ports: Vec::new(),
        }
    }

    fn command(&self, call: &str) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", call])
            .current_dir(self.bench.root())
            .env("PATH", &self.path)
            .env("HOME", self.bench.root())
            .env("TMPDIR", self.bench.root())
            .env(STATE_DIR_VARIABLE, self.bench.path("beds"))
            .stdin(Stdio::null());
        shell
    }

    /// Runs a call to its end; what is wrong with that, if anything is.
    fn run(&mut self, call: &str) -> Option<String> {
        let ports = self.ports.iter();
        let call = ports.fold(call.to_owned(), |call, (from, to)| call.replace(from, to));
        if let Some(server) = call.strip_suffix('&') {
            return self.start(server);
        }
        let ended = Ended::of(self.command(&call));
        let (code, said) = (ended.code, ended.stderr);
        // Whether an outage is too long for a valid result depends on the machine.
        let has_outage = call.contains("testbed") && call.contains("--event");
        let ends_well = code == Some(0) || (has_outage && code == Some(3));
        (!ends_well).then(|| format!("`{call}` ended with {code:?}\n{said}"))
    }

    /// Starts a server that goes on until the block has ended, at a port that is free.
    fn start(&mut self, call: &str) -> Option<String> {
        let listen = "--listen 127.0.0.1:";
        let (_, after) = call.split_once(listen)?;
        let port = after.split(' ').next()?.to_owned();
        let free = call.replace(&format!("{listen}{port}"), &format!("{listen}0"));
        let mut command = self.command(&format!("exec {free}"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let begun = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut said).unwrap();
        // What it says in the end must find a reader.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        let chosen = said.split_once("127.0.0.1:").map(|(_, after)| {
            let digits = after.chars().take_while(char::is_ascii_digit);
            digits.collect::<String>()
        });
        self.servers.push((child, begun, free.clone()));
        let Some(chosen) = chosen else {
            return Some(format!("`{free}` does not say where it listens: {said}"));
        };
        self.ports.push((port, chosen));
        None
    }

    /// Ends the servers, the last first.
    fn end(mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.bench.path("beds").exists() {
            // A block that failed left its test beds.
            let _ = self.command("plimsoll testbed down --all").output();
        }
        while let Some((child, begun, call)) = self.servers.pop() {
            signal(child.id() as i32, Signal::INT);
            let ended = Ended::wait(child, begun);
            if ended.code != Some(0) {
                wrong.push(format!(
                    "`{call}` ended with {:?}\n{}",
                    ended.code, ended.stderr
                ));
            }
        }
        wrong
    }
}

/// Runs the calls of a block one after the other in a directory of their own.
fn check(block: &Block) -> Vec<String> {
    let mut shell = Shell::new();
    let mut wrong: Vec<String> = block.calls.iter().filter_map(|c| shell.run(c)).collect();
    wrong.extend(shell.end());
    let at = |wrong| format!("{}: {wrong}", block.place);
    wrong.into_iter().map(at).collect()
}

#[test]
fn every_command_in_the_documents_ends_well() {
    let blocks: Vec<Block> = documents().iter().flat_map(|d| blocks(d)).collect();
    let calls: usize = blocks.iter().map(|b| b.calls.len()).sum();
    assert!(calls > 10, "only {calls} commands were found");
    // Most of them wait for a time to pass.
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let some = || {
        while let Some(block) = blocks.get(next.fetch_add(1, Relaxed)) {
            wrong.lock().unwrap().extend(check(block));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(some);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
