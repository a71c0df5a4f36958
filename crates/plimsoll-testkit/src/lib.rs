//! Common parts of tests: temporary directories with the programs ([`bench`](mod@bench)), real NFS servers, and the
//! [crash points](crash_points) of a program.
//!
//! The servers are nfs-ganesha, the Linux kernel's server in User-Mode Linux, rclone's go-nfs, the server of the crate
//! `nfs3_server`, and Plimsoll's own server. [`table`] lists the expected results on each server.
//!
//! nfs-ganesha and the kernel's server each have a network namespace with addresses of their own, so many tests can run
//! at the same time, all at the usual ports and with a port mapper. Their files are in memory, in a mount namespace of
//! their own; [`Ganesha::seen`] and [`Knfsd::sh`] access the files. Namespaces need the rights of root, which a test
//! that begins with [`needs_root!`] has in new namespaces. The other servers listen at an address of the loopback, and
//! need no rights. [`Viewer`] accesses the files of all servers.
//!
//! Dropping a server stops the server, even if the test panics. When the process of the test dies, the system kills the
//! server, and the namespaces end with their last process: only a directory of temporary files of rclone remains.
//!
//! The servers are in the packages that `make setup` installs. Methods that return a [`TestServerError`] fail with the
//! missing program and package, or with the error of the server or of the system.
//!
//! # Modules
//! - the servers: `ganesha` and `knfsd` (in a `namespace`), `rclone`, `nfs3_server` and `serve_nfs` (at an address of
//!   the `loopback`); [`table`] lists the servers, and defines the trait that all servers implement;
//! - `process` runs a server's process and waits for its readiness;
//! - `relay` injects faults between a client and a server of version 4;
//! - [`user_mode_linux`] runs a test in another kernel;
//! - `machine` is a machine with its own network, whose line can be cut;
//! - `executable` writes programs of tests;
//! - `viewer` is an independent client, to check and change files;
//! - `page_cache` tells which pages of a file are in memory;
//! - `needs_root` and `root_access` run a test as root.
//!
//! # Design
//! Files of most servers are visible only through a client, so tests look at the files with an independent client
//! ([`Viewer`]). [`FaultRelay`] produces on request what servers do only by chance: the relay cuts a compound before an
//! operation and adds the status of the operation to the reply, so that the slots of client and server agree; or the
//! relay loses the reply, or sends garbage.
//!
//! Root of a user namespace may not open files by their handles, so nfs-ganesha loads a library that finds files by
//! handles (`preload` of `plimsoll-testbed`). `setpriv --no-new-privs` keeps set-user-ID programs such as `mount` from
//! changing the user. Test beds have a network of their own; servers of this crate are in the network of the test, and
//! tests control the servers through Rust types.

// The names of the helper functions in `bench` suffice as documentation.
#[allow(missing_docs)]
pub mod bench;
pub mod crash_points;
mod executable;
mod ganesha;
mod knfsd;
mod loopback;
mod machine;
mod namespace;
mod needs_root;
mod nfs3_server;
mod page_cache;
mod process;
mod rclone;
mod relay;
mod root_access;
mod serve_nfs;
pub mod table;
pub mod user_mode_linux;
mod viewer;

pub use executable::write_executable;
pub use ganesha::{Fsal, Ganesha, GaneshaOptions, MEM_FILE};
pub use knfsd::Knfsd;
pub use loopback::ClosedPort;
pub use machine::Machine;
#[doc(hidden)]
pub use needs_root::is_run_as_root;
pub use nfs3_server::Nfs3Server;
pub use page_cache::is_cached;
pub use rclone::Rclone;
pub use relay::{Fault, FaultRelay, Garbage};
pub use serve_nfs::ServeNfs;
pub use viewer::{Kind, Viewer};

use plimsoll_testbed::needs::Need;
use std::path::PathBuf;
use std::time::Duration;

/// Port 2049 of NFS (RFC 1813, 2.1 and RFC 7530, 3.1), used by nfs-ganesha and the kernel's server in their own
/// networks.
pub const NFS_PORT: u16 = 2049;

/// Port of the MOUNT protocol of nfs-ganesha and the kernel's server; no standard assigns the port.
pub const MOUNT_PORT: u16 = 20048;

/// Maximum time in which a server starts or stops. An idle machine takes 0.1 s, and 5 s for a server with its own
/// kernel; a busy machine takes ten times as long.
const SERVER_TIMEOUT: Duration = Duration::from_secs(90);

/// Reason why a test server cannot be started, restarted or accessed.
#[derive(Debug, thiserror::Error)]
pub enum TestServerError {
    /// A program is not installed.
    #[error("`{program}` is missing: run `make setup`, or install the package `{package}`")]
    Missing {
        /// Name of the program that the `PATH` lacks.
        program: &'static str,
        /// Debian package that contains the program.
        package: &'static str,
    },
    /// A program that `make setup` puts into the source tree is missing.
    #[error(
        "`.tools/{program}` is missing: run `make setup` (it is in the Python package `{package}`)"
    )]
    NotSetUp {
        /// Name of the program that the directory `.tools` of the source tree lacks.
        program: &'static str,
        /// Python package that contains the program.
        package: &'static str,
    },
    /// The user is not root, and can become root neither in namespaces nor by `sudo`; the field is the system's reason.
    #[error(
        "this needs the rights of root, which are available neither in a user namespace ({0}) nor by `sudo -n`: \
         run `make setup`, and then `sudo -v && make test`, or the tests as root"
    )]
    NotRoot(String),
    /// All addresses of test servers are in use; the field is the number of addresses.
    #[error("{0} servers run at the same time: there are no more addresses")]
    Full(usize),
    /// The start of a server, a command in its namespaces, or a request to the server has failed.
    #[error("{what}: {why}")]
    Failed {
        /// Action that failed, such as `starting nfs-ganesha`.
        what: String,
        /// Reason of the failure, from the system or the server.
        why: String,
    },
}

impl TestServerError {
    fn failed(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Failed {
            what: what.into(),
            why: why.to_string(),
        }
    }
}

impl From<plimsoll_testbed::BedError> for TestServerError {
    fn from(e: plimsoll_testbed::BedError) -> Self {
        Self::failed("a C library", e)
    }
}

/// Appends options to a URL.
fn with_options(url: &str, options: &str) -> String {
    match options {
        "" => url.to_owned(),
        options if url.contains('?') => format!("{url}&{options}"),
        options => format!("{url}?{options}"),
    }
}

/// Finds a program in `PATH` or in the administrator's directories.
fn program(program: &'static str, package: &'static str) -> Result<PathBuf, TestServerError> {
    let found = Need::debian(program, package).find();
    found.ok_or(TestServerError::Missing { program, package })
}

fn only_root() -> Result<(), TestServerError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(TestServerError::NotRoot(
            "the test does not begin with `needs_root!`".into(),
        )),
    }
}
