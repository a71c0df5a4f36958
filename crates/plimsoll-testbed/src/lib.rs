//! Real NFS servers for tests: nfs-ganesha, the Linux kernel's under User-Mode Linux, go-nfs by rclone,
//! that of the crate `nfs3_server`, and our own. [`table`] says what is run on each.
//!
//! nfs-ganesha and the kernel's live in a network namespace each, with addresses that no other server
//! has: many tests, also of many processes, have theirs at the same time, all at the usual ports, with
//! a port mapper beside them. Their files are in memory, in a mount namespace of their own, and are
//! looked at by [`Ganesha::seen`] or [`Knfsd::sh`]. That needs the rights of root, which a test that
//! begins with [`needs_root!`] has in namespaces of its own. The others listen at an address of this
//! machine alone, and need nothing. [`Viewer`] looks at the files of all of them.
//!
//! A server is stopped when it is dropped, also by a test that panics. When the process of the test
//! dies, the system kills the server, and with its last process the namespaces go and what is in
//! them: nothing is left behind but, of rclone, a directory of temporary files.
//!
//! User-Mode Linux starts on any x86-64 processor: a library that is loaded before it, which is built
//! with the C compiler that Rust links with (`cc`, or that of the variable `CC`), copes with a state
//! of the processor that it does not know.
//!
//! [`FaultRelay`] stands before a server and brings about what a server does by chance: statuses,
//! answers that are lost, and garbage.
//!
//! The servers are in the packages that `make setup` installs; what is missing is named ([`BedError`]).

mod failure;
mod ganesha;
mod knfsd;
mod loopback;
mod namespace;
mod nfs3_server;
mod preload;
mod process;
mod rclone;
mod relay;
mod rights;
mod serve_nfs;
pub mod table;
mod viewer;

pub use ganesha::{Fsal, Ganesha, GaneshaOptions, MEM_FILE};
pub use knfsd::Knfsd;
pub use nfs3_server::Nfs3Server;
pub use rclone::Rclone;
pub use relay::{Fault, FaultRelay, Garbage};
#[doc(hidden)]
pub use rights::is_run_as_root;
pub use serve_nfs::ServeNfs;
pub use viewer::{Kind, Viewer};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Port of NFS, of all versions.
pub const NFS_PORT: u16 = 2049;

/// Port of MOUNT.
pub const MOUNT_PORT: u16 = 20048;

/// Longest that a server may take to start or to stop. On a busy machine they take ten times as
/// long as on an idle one, where they take 0.1 s, and with a kernel 5 s.
const SERVER_TIMEOUT: Duration = Duration::from_secs(90);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// A program that is not installed.
    #[error("`{program}` is missing: run `make setup`, or install the package `{package}`")]
    Missing {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// A program that `make setup` puts into the source tree.
    #[error(
        "`.tools/{program}` is missing: run `make setup` (it is in the Python package `{package}`)"
    )]
    NotSetUp {
        /// The program.
        program: &'static str,
        /// The Python package that has it.
        package: &'static str,
    },
    /// One is not root, and why one cannot be in a namespace.
    #[error(
        "this needs the rights of root, to be had here neither in a user namespace ({0}) nor by `sudo -n`: \
         run `make setup`, and then `sudo -v && make test`, or the tests as root"
    )]
    NotRoot(String),
    /// All addresses are taken.
    #[error("{0} servers run at the same time: there are no more addresses")]
    Full(usize),
    /// Something failed.
    #[error("{what}: {why}")]
    Failed {
        /// What was to be done.
        what: String,
        /// What was said of it.
        why: String,
    },
}

impl BedError {
    fn failed(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Failed {
            what: what.into(),
            why: why.to_string(),
        }
    }
}

/// Finds a program in `PATH` or where programs of the administrator are.
fn program(program: &'static str, package: &'static str) -> Result<PathBuf, BedError> {
    std::env::split_paths(&path_of_root())
        .map(|dir| dir.join(program))
        .find(|p| is_program(p))
        .ok_or(BedError::Missing { program, package })
}

/// `PATH`, and where programs of the administrator are: ordinary users have no way there.
fn path_of_root() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let admin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let all = std::env::split_paths(&own).chain(admin);
    // What came out of a list of paths goes into one.
    std::env::join_paths(all).unwrap_or(own)
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

fn only_root() -> Result<(), BedError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(BedError::NotRoot(
            "the test does not begin with `needs_root!`".into(),
        )),
    }
}
