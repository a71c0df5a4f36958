//! User-Mode Linux: another kernel, for tests of features that the kernel of the machine lacks.

use crate::bench::{Bench, Ended};
use crate::write_executable;
use plimsoll_testbed::needs::Need;
use plimsoll_testbed::preload;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Path of an installed program.
///
/// # Panics
/// If the program is missing; the message names the package.
pub fn needed(program: &'static str, package: &'static str) -> PathBuf {
    let found = Need::debian(program, package).find();
    found.unwrap_or_else(|| {
        panic!("`{program}` is missing: run `make setup`, or install the package `{package}`")
    })
}

/// The first process of User-Mode Linux, with the root directory of the machine and file systems in memory for files
/// that tests write. The script runs the test `@TEST@` of `@PROGRAM@`, and powers the kernel off.
const INIT: &str = r#"#!/bin/sh
[ "$1" = again ] || exec setpriv --no-new-privs "$0" again
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs run /run || exit 1
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/shm; mount -t tmpfs shm /dev/shm || exit 1
ip link set lo up
mkdir -p /run/tmp /run/uml/lib /run/bin; ln -s /usr/lib/uml/modules /run/uml/lib/modules
printf '#!/bin/sh\nexec %s -d /run/uml "$@"\n' $(command -v modprobe) > /run/bin/modprobe
chmod 755 /run/bin/modprobe; export PATH=/run/bin:$PATH TMPDIR=/run/tmp
echo /run/bin/modprobe > /proc/sys/kernel/modprobe
@PROGRAM@ --exact @TEST@ --nocapture 2>&1
echo "the test has ended: $?"
echo o > /proc/sysrq-trigger; sleep 60
"#;

/// Runs a test of the running test program in User-Mode Linux.
///
/// # Panics
/// If the test fails or does not run.
pub fn in_another_kernel(test: &str) {
    needed("linux.uml", "user-mode-linux");
    needed("/usr/lib/uml/modules", "user-mode-linux");
    let bench = Bench::new();
    let library = bench.path("ptrace.so");
    std::fs::write(&library, preload::PTRACE.bytes().unwrap()).unwrap();
    let init = bench.path("init");
    let program = std::env::current_exe().unwrap();
    let text = INIT
        .replace("@PROGRAM@", &program.to_string_lossy())
        .replace("@TEST@", test);
    write_executable(&init, text);
    let ended = Ended::of(kernel(bench.root(), &init, &library));
    let out = &ended.stdout;
    let is_passed = out.contains("the test has ended: 0") && out.contains("1 passed");
    assert!(is_passed, "{}\n{out}", ended.stderr);
}

/// The command that starts User-Mode Linux, in a PID namespace: the end of the namespace ends all processes of the
/// kernel.
fn kernel(dir: &Path, init: &Path, library: &Path) -> Command {
    let mut command = Command::new("unshare");
    let path = plimsoll_testbed::needs::path_of_root();
    command
        .args(["--pid", "--fork", "--kill-child=KILL", "env"])
        .arg(preload::variable(&[library.to_owned()]))
        .args(["linux.uml", "mem=1G", "root=/dev/root"])
        .args(["rootfstype=hostfs", "rootflags=/", "rw", "quiet"])
        .arg(format!("init={}", init.display()))
        .arg(format!("uml_dir={}", dir.display()))
        .args(["con=null", "con0=null,fd:1"])
        .env("HOME", dir)
        .env("PATH", path)
        .stdin(Stdio::null());
    command
}
