//! The Python environment that `make setup` puts into the source tree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Root of the source tree.
pub fn source_tree() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the source tree is there")
}

/// Something that `make setup` puts into the source tree.
#[track_caller]
pub fn tool(name: &str) -> PathBuf {
    let path = source_tree().join(".tools").join(name);
    assert!(
        path.exists(),
        "{} is missing: `make setup` puts it there",
        path.display()
    );
    path
}

/// The environment's Python.
pub fn python() -> Command {
    let mut command = Command::new(tool("python/bin/python"));
    command.stdin(Stdio::null());
    command
}

/// What a command prints that ends well. It may take its time: others may have the processors.
#[track_caller]
pub fn printed(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}\n{err}");
    out
}
