//! Runs tests as root of new namespaces, or with `sudo`.
//!
//! Mounting, creating network devices and starting servers need rights that an ordinary user has only in namespaces of
//! their own. A process with several threads cannot change its user namespace, so the test program is run again, for a
//! single test, as root of new namespaces.

use crate::process::{bound_command, run};
use crate::{TestServerError, program};
use plimsoll_testbed::needs::path_of_root;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Environment variable that permits `sudo -n` where namespaces are not permitted; `make test` sets the variable.
const MAY_SUDO: &str = "PLIMSOLL_TEST_SUDO";

/// Shell commands that succeed only with the rights of root in new namespaces: some systems let every user create
/// namespaces, but forbid every use of them.
const PROBE_SCRIPT: &str = "ip link set lo up && mount -t tmpfs look /mnt";

/// Brings up the loopback device of a test's namespaces.
const NAMESPACE_SETUP_SCRIPT: &str = r#"ip link set lo up && exec "$@""#;

/// Environment variables that differ for root.
const USER_VARIABLES: [&str; 5] = ["HOME", "USER", "LOGNAME", "MAIL", "PATH"];

/// Whether one test was run and passed: a wrong name runs no test, and succeeds.
pub(crate) fn has_passed(output: &Output) -> bool {
    let printed = String::from_utf8_lossy(&output.stdout);
    output.status.success() && printed.contains("test result: ok. 1 passed")
}

/// The output of a test that failed as root, indented.
pub(crate) fn report(output: &Output) -> String {
    let mut report = format!("as root, {}:", output.status);
    for text in [&output.stderr, &output.stdout] {
        for line in String::from_utf8_lossy(text).lines() {
            report.push_str("\n  ");
            report.push_str(line);
        }
    }
    report
}

/// Way in which a test gets the rights of root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RootAccess {
    /// The test runs as root of new user, network and mount namespaces.
    Namespaces,
    /// The test runs as root of the machine itself, by a `sudo` that does not ask for a password.
    Sudo,
}

impl RootAccess {
    /// The preferred way that the system permits; found once for each process.
    pub(crate) fn found() -> Result<Self, TestServerError> {
        static ROOT_ACCESS: OnceLock<Result<RootAccess, String>> = OnceLock::new();
        let found = ROOT_ACCESS.get_or_init(|| {
            let may_sudo = std::env::var_os(MAY_SUDO).is_some();
            Self::of(probe_namespaces, || may_sudo && sudo_works())
        });
        found.clone().map_err(TestServerError::NotRoot)
    }

    fn of(
        namespaces: impl FnOnce() -> Result<(), String>,
        sudo: impl FnOnce() -> bool,
    ) -> Result<Self, String> {
        match namespaces() {
            Ok(()) => Ok(Self::Namespaces),
            Err(_) if sudo() => Ok(Self::Sudo),
            // The error may have several lines, which are joined.
            Err(e) => Err(e.split_whitespace().collect::<Vec<_>>().join(" ")),
        }
    }

    /// Runs a test of this test program; returns its output.
    pub(crate) fn run(self, test: &str) -> Result<Output, TestServerError> {
        let own =
            std::env::current_exe().map_err(|e| TestServerError::failed("this program", e))?;
        let mut command = match self {
            Self::Namespaces => in_namespaces(NAMESPACE_SETUP_SCRIPT)?,
            Self::Sudo => as_root()?,
        };
        command
            .arg(own)
            .args(["--exact", test, "--include-ignored", "--nocapture"])
            .args(["--test-threads=1", "--color=never"])
            .stdin(Stdio::null());
        let what = format!("{command:?}");
        command
            .output()
            .map_err(|e| TestServerError::failed(what, e))
    }
}

/// A command for a script in new user, network and mount namespaces, without the arguments of the script. The user is
/// root in the namespaces, and owns the subordinate users and groups that servers change to.
fn in_namespaces(script: &str) -> Result<Command, TestServerError> {
    program("newuidmap", "uidmap")?;
    program("ip", "iproute2")?;
    let mut command = bound_command("unshare")?;
    command
        .env("PATH", path_of_root())
        .args(["--user", "--map-root-user", "--map-auto"])
        .args(["--net", "--mount", "--", "sh", "-c", script, "sh"]);
    Ok(command)
}

/// Checks that this user can create and use namespaces; the error is what the failed command printed.
fn probe_namespaces() -> Result<(), String> {
    let mut command = in_namespaces(PROBE_SCRIPT).map_err(|e| e.to_string())?;
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| e.to_string())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    match (output.status.success(), errors.trim()) {
        (true, _) => Ok(()),
        (false, "") => Err(output.status.to_string()),
        (false, errors) => Err(errors.to_owned()),
    }
}

fn sudo_works() -> bool {
    run(Command::new("sudo").args(["-n", "true"])).is_ok()
}

/// A command as root of the machine in the same environment, without the program.
fn as_root() -> Result<Command, TestServerError> {
    let mut command = Command::new(program("sudo", "sudo")?);
    command.args(["-n", "--", "env"]);
    let kept =
        std::env::vars_os().filter(|(name, _)| !USER_VARIABLES.iter().any(|not| name == *not));
    for (name, value) in kept.chain([("PATH".into(), path_of_root())]) {
        let mut pair = name;
        pair.push("=");
        pair.push(value);
        command.arg(pair);
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn forbidden() -> Result<(), String> {
        Err("unshare: Operation\nnot permitted".into())
    }

    #[test]
    fn namespaces_are_preferred_and_sudo_is_next() {
        assert_eq!(
            RootAccess::of(|| Ok(()), || true),
            Ok(RootAccess::Namespaces)
        );
        assert_eq!(RootAccess::of(forbidden, || true), Ok(RootAccess::Sudo));
    }

    #[test]
    fn no_test_has_not_passed() {
        let ended = |code: i32, said: &str| Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: format!("\ntest result: {said}; finished in 0.10s\n").into(),
            stderr: b"one line\nand another\n".into(),
        };
        assert!(has_passed(&ended(0, "ok. 1 passed; 0 failed")));
        assert!(!has_passed(&ended(0, "ok. 0 passed; 0 failed")));
        let failed = ended(101, "FAILED. 0 passed; 1 failed");
        assert!(!has_passed(&failed));
        let report = report(&failed);
        assert!(report.contains("\n  and another\n"), "{report}");
        assert!(!report.contains("\ntest result"), "{report}");
    }

    #[test]
    fn without_any_way_a_line_says_what_to_do() {
        let why = RootAccess::of(forbidden, || false).unwrap_err();
        let said = TestServerError::NotRoot(why).to_string();
        assert!(said.contains("unshare: Operation not permitted"), "{said}");
        assert!(
            said.contains("make setup") && !said.contains('\n'),
            "{said}"
        );
    }
}
