//! The processes of this process's namespace. `/proc` shows those of the machine.

use procfs::process::Process;
use rustix::process::Pid;

/// The processes of this namespace, by their numbers on the machine.
pub(crate) fn own_processes() -> Vec<Process> {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/pid"));
    let Ok(own) = namespace("self") else {
        return Vec::new();
    };
    let all = procfs::process::all_processes()
        .into_iter()
        .flatten()
        .flatten();
    let mut found: Vec<Process> = all
        .filter(|p| namespace(&p.pid.to_string()).is_ok_and(|n| n == own))
        .collect();
    found.sort_by_key(|p| p.pid);
    found
}

/// The number of a process in its innermost namespace.
pub(crate) fn inner_pid(process: &Process) -> Option<Pid> {
    let inner = process.status().ok()?.nspid?.last().copied()?;
    Pid::from_raw(inner)
}

/// Whether a process has ended, and its parent has not noticed yet.
pub(crate) fn is_zombie(process: &Process) -> bool {
    process.stat().is_ok_and(|stat| stat.state == 'Z')
}

/// The words with which a process of this namespace was started, by its number in it.
pub(crate) fn command_line(pid: Pid) -> Option<Vec<String>> {
    let mut all = own_processes().into_iter();
    let words = all.find(|p| inner_pid(p) == Some(pid))?.cmdline().ok()?;
    (!words.is_empty()).then_some(words)
}
