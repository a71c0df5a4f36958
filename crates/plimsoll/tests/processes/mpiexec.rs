//! The launchers of the MPI libraries that there are tests for.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The MPI libraries there are tests for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

impl Library {
    /// The library this program is built with.
    pub fn built_with() -> Self {
        let name = ::mpi::environment::library_version().expect("every library has a version");
        if name.starts_with("Open MPI") {
            Self::OpenMpi
        } else {
            assert!(name.starts_with("MPICH"), "no tests for {name}");
            Self::Mpich
        }
    }

    /// The launcher, as Debian calls it where several libraries are installed.
    pub fn mpiexec(self, size: u32) -> Command {
        let (name, package) = match self {
            Self::OpenMpi => ("mpiexec.openmpi", "openmpi-bin"),
            Self::Mpich => ("mpiexec.mpich", "mpich"),
        };
        let mut command = Command::new(name);
        assert!(
            Command::new(name).arg("--version").output().is_ok(),
            "{name} is missing: install the package {package}, or run `make setup`"
        );
        if self == Self::OpenMpi {
            command.arg("--oversubscribe");
            // Tests may be run by root, in a container.
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
            command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            // Two launchers that make the same directory of a user at once end with an error.
            command.args(["--mca", "orte_tmpdir_base"]);
            command.arg(session_directory());
        }
        command.args(["-n", &size.to_string()]);
        command
    }
}

/// A directory of its own for the files of a launcher, with a short path: sockets lie below it. Those of
/// test programs that have ended are removed.
fn session_directory() -> PathBuf {
    const PREFIX: &str = "plimsoll-ompi-";
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let root = std::env::temp_dir();
    for entry in std::fs::read_dir(&root).unwrap().flatten() {
        let name = entry.file_name();
        let of = name
            .to_str()
            .and_then(|n| n.strip_prefix(PREFIX)?.split('-').next());
        if of.is_some_and(|pid| !PathBuf::from(format!("/proc/{pid}")).exists()) {
            // It may be another user's.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let number = NUMBER.fetch_add(1, Relaxed);
    let path = root.join(format!("{PREFIX}{}-{number}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}
