//! The commands in the documents do what a reader is promised: they end well.

use crate::common::{Bench, Ended, signal};
use plimsoll_testkit::bench::{built_program, tools_dir};
use regex::Regex;
use rustix::process::Signal;
use std::cmp::Reverse;
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

/// What a page says at its top whose blocks build on each other: they are run in one directory.
const ONE_DIRECTORY: &str = "<!-- one directory -->";

/// What comes before a block that is the text of a file, around its name.
const FILE: (&str, &str) = ("<!-- file: ", " -->");

/// What comes before a block with lines that the call before it prints, in this order. Others may be
/// between them.
const PRINTED: &str = "<!-- printed -->";

/// What a reader does.
enum Step {
    /// Writes a file.
    Write { name: String, text: String },
    /// Calls a program, which prints these lines.
    Call { call: String, prints: Vec<String> },
}

/// What one block of a document shows, or all blocks of a page that build on each other.
struct Block {
    /// File and line.
    place: String,
    steps: Vec<Step>,
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

/// Languages of blocks that are not run here: texts, files that the page does not have written, and code that
/// other tests run.
const OTHER_LANGUAGES: [&str; 6] = ["", "text", "toml", "sql", "python", "yaml"];

/// A block of code as it stands.
struct Code<'t> {
    /// The line before it that is not empty, and its own first line.
    before: &'t str,
    fence: &'t str,
    place: String,
    lines: Vec<&'t str>,
}

fn codes<'t>(name: &str, text: &'t str) -> Vec<Code<'t>> {
    let mut found = Vec::new();
    let mut open: Option<Code> = None;
    let mut before = "";
    for (number, line) in (1..).zip(text.lines()) {
        match &mut open {
            Some(_) if line.trim() == "```" => found.extend(open.take()),
            Some(code) => code.lines.push(line),
            None if line.trim().starts_with("```") => {
                open = Some(Code {
                    before,
                    fence: line.trim(),
                    place: format!("{name}:{number}"),
                    lines: Vec::new(),
                });
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

/// The calls of a `sh` block. It has no other lines than those that are run.
fn calls(place: &str, lines: &[&str]) -> Vec<Step> {
    let mut calls: Vec<String> = Vec::new();
    for line in lines {
        let line = line.trim().trim_start_matches("$ ");
        match calls.last_mut() {
            Some(call) if call.ends_with('\\') => {
                call.pop();
                call.push_str(line);
            }
            _ if RUN.iter().any(|r| line.starts_with(r)) => calls.push(line.to_owned()),
            _ => assert!(
                line.is_empty(),
                "{place}: `{line}` is not run here: `{NOT_RUN}` before the block says so"
            ),
        }
    }
    let step = |call| {
        let prints = Vec::new();
        Step::Call { call, prints }
    };
    calls.into_iter().map(step).collect()
}

fn blocks(document: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(document).unwrap();
    let name = document.file_name().unwrap().to_string_lossy();
    let is_one = text.lines().any(|l| l == ONE_DIRECTORY);
    let mut found: Vec<Block> = Vec::new();
    for code in codes(&name, &text) {
        let file = code.before.strip_prefix(FILE.0);
        let file = file.and_then(|f| f.strip_suffix(FILE.1));
        let steps = if let Some(name) = file {
            let (name, text) = (name.to_owned(), code.lines.join("\n") + "\n");
            vec![Step::Write { name, text }]
        } else if code.before == PRINTED {
            let last = found.last_mut().and_then(|b| b.steps.last_mut());
            let Some(Step::Call { prints, .. }) = last else {
                panic!("{}: no call is before it", code.place)
            };
            let lines = code.lines.iter().map(|l| l.trim_end().to_owned());
            *prints = lines.filter(|l| !l.is_empty()).collect();
            continue;
        } else if code.fence == "```sh" && code.before != NOT_RUN {
            calls(&code.place, &code.lines)
        } else {
            let language = code.fence.trim_start_matches('`');
            let is_known = code.fence == "```sh" || OTHER_LANGUAGES.contains(&language);
            assert!(is_known, "{}: `{language}` blocks are not run", code.place);
            continue;
        };
        match found.last_mut().filter(|_| is_one) {
            Some(page) => page.steps.extend(steps),
            None => found.push(Block {
                place: code.place,
                steps,
            }),
        }
    }
    found
}

/// The first of these lines that is not printed after the ones before it.
fn missing<'l>(lines: &'l [String], printed: &str) -> Option<&'l String> {
    let mut printed = printed.lines();
    lines.iter().find(|l| !printed.any(|p| p.trim_end() == **l))
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
        // The documents call the companion program, and programs that `make setup` installs in the source tree.
        let (program, companion) = (built_program("plimsoll"), built_program("plimsoll-testbed"));
        assert_eq!(program.parent(), companion.parent());
        let path = std::env::var("PATH").unwrap_or_default();
        Self {
            bench: Bench::new(),
            path: format!(
                "{}:{}:{path}",
                program.parent().unwrap().display(),
                tools_dir().display()
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
            .env("PLIMSOLL_TESTBEDS", self.bench.path("beds"))
            .stdin(Stdio::null());
        shell
    }

    /// Does a step; what is wrong with that, if anything is.
    fn step(&mut self, step: &Step) -> Option<String> {
        match step {
            Step::Write { name, text } => {
                std::fs::write(self.bench.root().join(name), text).unwrap();
                None
            }
            Step::Call { call, prints } => self.run(call, prints),
        }
    }

    /// Runs a call to its end.
    fn run(&mut self, call: &str, prints: &[String]) -> Option<String> {
        let ports = self.ports.iter();
        let call = ports.fold(call.to_owned(), |call, (from, to)| call.replace(from, to));
        if let Some(server) = call.strip_suffix('&') {
            return self.start(server);
        }
        let ended = Ended::of(self.command(&call));
        let (code, said) = (ended.code, &ended.stderr);
        // Whether an outage is too long for a valid result depends on the machine.
        let has_outage = call.contains("testbed") && call.contains("--event");
        // So does whether a load of a disk is sustained.
        let is_model = call.contains("clock=virtual") || call.contains("sim:");
        let has_load = call.contains("--load ") || call.contains("--max-load ");
        let of_machine = has_load && !is_model;
        // A page may show an invalid result.
        let is_invalid = prints.iter().any(|line| line.ends_with(": invalid"));
        let ends_well = match is_invalid {
            true => code == Some(3),
            false => code == Some(0) || ((has_outage || of_machine) && code == Some(3)),
        };
        if !ends_well {
            return Some(format!("`{call}` ended with {code:?}\n{said}"));
        }
        let line = missing(prints, &ended.stdout)?;
        Some(format!(
            "`{call}` does not print `{line}` there:\n{}",
            ended.stdout
        ))
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

/// Does the steps of a block one after the other in a directory of their own.
fn check(block: &Block) -> Vec<String> {
    let mut shell = Shell::new();
    let mut wrong: Vec<String> = block.steps.iter().filter_map(|s| shell.step(s)).collect();
    wrong.extend(shell.end());
    let at = |wrong| format!("{}: {wrong}", block.place);
    wrong.into_iter().map(at).collect()
}

#[test]
fn every_command_in_the_documents_ends_well() {
    let mut blocks: Vec<Block> = documents().iter().flat_map(|d| blocks(d)).collect();
    // What takes longest begins first.
    blocks.sort_by_key(|b| Reverse(b.steps.len()));
    let calls: usize = blocks.iter().map(|b| b.steps.len()).sum();
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

/// The dry run that tells what a call of the tutorial needs, if that measures: for the highest load that it may
/// measure.
fn plan_of(call: &str) -> Option<String> {
    let words: Vec<&str> = call.split_whitespace().collect();
    let is_measured = ["run", "curve", "find"].contains(&words[1]);
    let mut plan = format!(
        "plimsoll run --dry-run {}",
        words.get(2).filter(|_| is_measured)?
    );
    for pair in words[3..].windows(2) {
        match pair[0] {
            "--set" | "--dir" => plan += &format!(" {} {}", pair[0], pair[1]),
            "--load" | "--max-load" => {
                let loads = pair[1].split(',').map(|l| l.parse::<u64>().unwrap());
                plan += &format!(" --load {}", loads.max().unwrap());
            }
            _ => {}
        }
    }
    Some(plan)
}

#[test]
fn the_tutorial_says_how_much_space_it_needs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let stated = Regex::new(r"needs (\d+) MB of free space").unwrap();
    let stated: f64 = stated.captures(&text).unwrap()[1].parse().unwrap();
    let mebibytes = Regex::new(r"([\d.]+) MiB (?:to populate|if every)").unwrap();
    let mut shell = Shell::new();
    let (mut most, mut plans) = (0.0_f64, 0);
    for step in blocks(&path).iter().flat_map(|b| &b.steps) {
        let Step::Call { call, .. } = step else {
            assert_eq!(shell.step(step), None);
            continue;
        };
        let Some(plan) = plan_of(call) else { continue };
        let said = Ended::of(shell.command(&plan)).expect_code(0).stdout;
        let space = said.lines().find(|l| l.trim().starts_with("space "));
        let space = space.unwrap_or_else(|| panic!("{plan}: no line of space"));
        let sizes = mebibytes.captures_iter(space);
        let sizes: Vec<f64> = sizes.map(|c| c[1].parse().unwrap()).collect();
        assert!(!sizes.is_empty(), "{space}");
        most = sizes.into_iter().fold(most, f64::max);
        plans += 1;
    }
    assert_eq!(plans, 6);
    // Each call removes its files. Reports and what a file system has besides take some space too.
    let needed = most * f64::from(1 << 20) / 1e6;
    assert!(
        stated >= 1.2 * needed && stated < 3.0 * needed,
        "{stated} MB, of which plans need {needed}"
    );
}

#[test]
#[should_panic(expected = "page.md:3: `sudo make-it-so` is not run here")]
fn a_line_that_is_not_run_is_not_passed_over() {
    let lines = ["plimsoll run x \\", "  --quiet", "", "sudo make-it-so"];
    assert_eq!(calls("page.md:2", &lines[..3]).len(), 1);
    calls("page.md:3", &lines);
}

#[test]
fn lines_are_printed_in_their_order() {
    let lines = ["a", "c"].map(String::from);
    assert_eq!(missing(&lines, "a\nb\nc  \n"), None);
    assert_eq!(missing(&lines, "c\na\n"), Some(&lines[1]));
    assert_eq!(missing(&lines, "a b\nc\n"), Some(&lines[0]));
}
