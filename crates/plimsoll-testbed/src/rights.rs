//! Tests that need the rights of root, run by whom they may.
//!
//! Mounting, making network devices and starting servers take rights that an ordinary user has only
//! in namespaces of their own. A test cannot move there: a process of several threads cannot change
//! its user namespace. So the test program is run once more, for that one test, as root of new
//! namespaces, and what comes of it is the result. Root needs none of that and stays where it is.

use crate::process::{bound_command, run};
use crate::{BedError, path_of_root, program};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Set where `sudo -n` may be used when there are no namespaces to be had; `make test` sets it.
const MAY_SUDO: &str = "PLIMSOLL_TEST_SUDO";

/// Looks whether one really has the rights: some systems let everybody make namespaces and forbid
/// everything in them.
const PROBE_SCRIPT: &str = "ip link set lo up && mount -t tmpfs look /mnt";

/// What runs before a test in its namespaces, whose network is empty at first.
const NAMESPACE_SETUP_SCRIPT: &str = r#"ip link set lo up && exec "$@""#;

/// Variables of the environment that root has of its own.
const USER_VARIABLES: [&str; 5] = ["HOME", "USER", "LOGNAME", "MAIL", "PATH"];

/// Begins a test that needs the rights of root. With them the test goes on; without, it is run to
/// its end as root of namespaces of its own, and the test returns.
///
/// The new network has nothing but `lo`. Files belong to the one who runs the test, and mounts are
/// seen by nobody else.
///
/// # Panics
/// If it fails there, with all that it printed, or if there is no such place, with how to get one.
#[macro_export]
macro_rules! needs_root {
    () => {
        if $crate::is_run_as_root({
            fn here() {}
            ::std::any::type_name_of_val(&here)
        }) {
            return;
        }
    };
}

/// The same for the test that a function `here` is in; returns whether it was run elsewhere.
#[doc(hidden)]
#[track_caller]
pub fn is_run_as_root(here: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return false;
    }
    let path = here.strip_suffix("::here").unwrap_or(here);
    // Names of tests are those below the crate.
    let test = path.split_once("::").map_or(path, |(_, test)| test);
    match RootAccess::found().and_then(|way| way.run(test)) {
        Ok(done) => assert!(has_passed(&done), "{}", report(&done)),
        Err(e) => panic!("{e}"),
    }
    true
}

/// Whether one test was run, and passed: by a wrong name none is run, and well.
fn has_passed(done: &Output) -> bool {
    let said = String::from_utf8_lossy(&done.stdout);
    done.status.success() && said.contains("test result: ok. 1 passed")
}

/// What a test printed that failed elsewhere, set apart from what this program prints.
fn report(done: &Output) -> String {
    let mut report = format!("as root, {}:", done.status);
    for text in [&done.stderr, &done.stdout] {
        for line in String::from_utf8_lossy(text).lines() {
            report.push_str("\n  ");
            report.push_str(line);
        }
    }
    report
}

/// How one comes to the rights of root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RootAccess {
    /// In namespaces of one's own.
    Namespaces,
    /// On the machine itself, by a `sudo` that asks nothing.
    Sudo,
}

impl RootAccess {
    /// The best there is. What the system allows does not change while a process runs.
    fn found() -> Result<Self, BedError> {
        static ROOT_ACCESS: OnceLock<Result<RootAccess, String>> = OnceLock::new();
        let found = ROOT_ACCESS.get_or_init(|| {
            let may_sudo = std::env::var_os(MAY_SUDO).is_some();
            Self::of(look_at_namespaces, || may_sudo && sudo_asks_nothing())
        });
        found.clone().map_err(BedError::NotRoot)
    }

    fn of(
        namespaces: impl FnOnce() -> Result<(), String>,
        sudo: impl FnOnce() -> bool,
    ) -> Result<Self, String> {
        match namespaces() {
            Ok(()) => Ok(Self::Namespaces),
            Err(_) if sudo() => Ok(Self::Sudo),
            // It may be a whole paragraph, and this is to be a line.
            Err(e) => Err(e
                .to_string()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")),
        }
    }

    /// Runs a test of this program, with all that it prints.
    fn run(self, test: &str) -> Result<Output, BedError> {
        let own = std::env::current_exe().map_err(|e| BedError::failed("this program", e))?;
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
        command.output().map_err(|e| BedError::failed(what, e))
    }
}

/// A script in namespaces of user, network and mounts; what it is given follows. One is root in
/// them, and owns the subordinate users and groups that one has been given: servers change to
/// users of their own.
fn in_namespaces(script: &str) -> Result<Command, BedError> {
    program("newuidmap", "uidmap")?;
    program("ip", "iproute2")?;
    let mut command = bound_command("unshare")?;
    command
        .env("PATH", path_of_root())
        .args(["--user", "--map-root-user", "--map-auto"])
        .args(["--net", "--mount", "--", "sh", "-c", script, "sh"]);
    Ok(command)
}

/// Whether there are any, and what was said if not.
fn look_at_namespaces() -> Result<(), String> {
    let mut command = in_namespaces(PROBE_SCRIPT).map_err(|e| e.to_string())?;
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&done.stderr);
    match (done.status.success(), said.trim()) {
        (true, _) => Ok(()),
        (false, "") => Err(done.status.to_string()),
        (false, said) => Err(said.to_owned()),
    }
}

fn sudo_asks_nothing() -> bool {
    run(Command::new("sudo").args(["-n", "true"])).is_ok()
}

/// A program as root of the machine, in the same environment; it follows.
fn as_root() -> Result<Command, BedError> {
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
        let said = BedError::NotRoot(why).to_string();
        assert!(said.contains("unshare: Operation not permitted"), "{said}");
        assert!(
            said.contains("make setup") && !said.contains('\n'),
            "{said}"
        );
    }
}
