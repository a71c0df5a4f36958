//! The launchers of the MPI libraries that there are tests for.

use std::process::Command;

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
        let name = plimsoll_ranks::mpi_library().unwrap();
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
        }
        command.args(["-n", &size.to_string()]);
        command
    }
}
