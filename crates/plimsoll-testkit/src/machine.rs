//! A machine with its own network, for tests of connections between machines.

use crate::namespace::Namespace;
use crate::{TestServerError, program};
use std::net::IpAddr;
use std::process::Command;

/// A machine with an address of its own, in a network namespace. The machine has the files of this machine, except
/// `/run` and `/mnt`.
pub struct Machine {
    namespace: Namespace,
}

impl Machine {
    /// Creates the namespaces of a simulated machine, which requires the rights of root.
    ///
    /// # Errors
    /// If the rights of root, or a program such as `ip`, are missing.
    pub fn start() -> Result<Self, TestServerError> {
        let namespace = Namespace::new()?;
        Ok(Self { namespace })
    }

    /// Address at which the test's own process reaches the simulated machine.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.namespace.address()
    }

    /// A command that executes a shell script on the machine, and that is killed when this process dies.
    ///
    /// # Errors
    /// If a program is missing.
    pub fn shell(&self, script: &str) -> Result<Command, TestServerError> {
        let mut command = self.namespace.command(&program("sh", "dash")?)?;
        command.args(["-e", "-c", script]);
        Ok(command)
    }

    /// Cuts the line to the machine: packets of both sides are lost, and no connection ends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn cut(&self) -> Result<(), TestServerError> {
        self.namespace.sh("ip link set eth0 down").map(drop)
    }

    /// Restores the line to the machine.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn mend(&self) -> Result<(), TestServerError> {
        self.namespace.sh("ip link set eth0 up").map(drop)
    }
}
