//! Executable programs written by tests.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Writes a program that can be executed at once; replaces an existing file.
///
/// Another process writes the file. If this process wrote the file, a child that another test forks at the same time
/// would hold the file open for writing until the child executes its own program, and the system executes no file that
/// is open for writing (`ETXTBSY`).
///
/// # Panics
/// If `path` cannot be written.
pub fn write_executable(path: &Path, contents: impl AsRef<[u8]>) {
    let mut install = Command::new("install")
        .args(["--mode=755", "/dev/stdin"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("`install` is a program of coreutils");
    let mut stdin = install.stdin.take().expect("it is a pipe");
    stdin
        .write_all(contents.as_ref())
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    drop(stdin);
    let status = install.wait().expect("it is a child of this process");
    assert!(status.success(), "{}: {status}", path.display());
}
