//! Tests that need the rights of root.

use crate::root_access::{RootAccess, has_passed, report};

/// Begins a test that needs the rights of root. If the process has the rights, the test continues; otherwise the test
/// is run to its end as root of new namespaces, and the test returns.
///
/// The new network has only `lo`. Files belong to the user who runs the test, and mounts are private.
///
/// # Panics
/// If the test fails in the namespaces (with all of its output), or if no rights can be obtained (with a remedy).
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

/// Runs the test that contains the function `here` as root, unless this process is root; returns whether the test was
/// run.
#[doc(hidden)]
#[track_caller]
pub fn is_run_as_root(here: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return false;
    }
    let path = here.strip_suffix("::here").unwrap_or(here);
    // Names of tests are paths below the crate.
    let test = path.split_once("::").map_or(path, |(_, test)| test);
    match RootAccess::found().and_then(|access| access.run(test)) {
        Ok(output) => assert!(has_passed(&output), "{}", report(&output)),
        Err(e) => panic!("{e}"),
    }
    true
}
