//! The commands in the documents do what a reader is promised: they end well.

use crate::common::{Bench, Ended};
use std::path::{Path, PathBuf};

/// A `sh` block that says `<!-- not run -->` before it is not run here: it builds, or needs a
/// place that only the reader has.
const NOT_RUN: &str = "<!-- not run -->";

/// Calls of the program that one block of a document shows.
struct Block {
    /// File and line.
    place: String,
    calls: Vec<String>,
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
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
                if line.starts_with("plimsoll ") {
                    block.calls.push(line.to_owned());
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

/// Runs the calls of a block one after the other in a directory of their own.
fn check(block: &Block) -> Vec<String> {
    let bench = Bench::new();
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut wrong = Vec::new();
    for call in &block.calls {
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", call])
            .current_dir(bench.root())
            .env("PATH", &path)
            .env("HOME", bench.root())
            .env("TMPDIR", bench.root())
            .stdin(std::process::Stdio::null());
        let ended = Ended::of(shell);
        if ended.code != Some(0) {
            let (place, code) = (&block.place, ended.code);
            wrong.push(format!(
                "{place}: `{call}` ended with {code:?}\n{}",
                ended.stderr
            ));
        }
    }
    wrong
}

#[test]
fn every_command_in_the_documents_ends_well() {
    let blocks: Vec<Block> = documents().iter().flat_map(|d| blocks(d)).collect();
    let calls: usize = blocks.iter().map(|b| b.calls.len()).sum();
    assert!(calls > 10, "only {calls} commands were found");
    let wrong: Vec<String> = blocks.iter().flat_map(check).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
