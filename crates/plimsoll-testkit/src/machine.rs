//! A machine of a network of its own, for tests of what lies between machines.

use crate::namespace::Namespace;
use crate::{TestServerError, program};
use std::net::IpAddr;
use std::process::Command;

/// A machine with an address of its own, in a network namespace. It has the files of this one, but for `/run` and
/// `/mnt`, which are its own.
pub struct Machine {
    namespace: Namespace,
}

impl Machine {
    /// Starts one. Needs the rights of root.
    ///
    /// # Errors
    /// If they, or a program, are missing.
    pub fn start() -> Result<Self, TestServerError> {
        let namespace = Namespace::new()?;
        Ok(Self { namespace })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.namespace.address()
    }

    /// A command on it that executes a script of the shell, and is killed when this process dies.
    ///
    /// # Errors
    /// If a program is missing.
    pub fn shell(&self, script: &str) -> Result<Command, TestServerError> {
        let mut command = self.namespace.command(&program("sh", "dash")?)?;
        command.args(["-e", "-c", script]);
        Ok(command)
    }

    /// Cuts the line to it: what either side sends is lost, and no connection ends.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn cut(&self) -> Result<(), TestServerError> {
        self.namespace.sh("ip link set eth0 down").map(drop)
    }

    /// Mends the line.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn mend(&self) -> Result<(), TestServerError> {
        self.namespace.sh("ip link set eth0 up").map(drop)
    }
}
