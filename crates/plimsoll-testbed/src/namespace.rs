//! The processes of this process's PID namespace. `/proc` shows all processes of the machine.

use crate::process_id::ProcessId;
use procfs::process::Process;
use rustix::process::Pid;
use std::collections::BTreeMap;

/// Processes in the PID namespace of the calling process, a keeper, with their process numbers on the machine.
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

/// This process and its descendants, including processes in further namespaces, such as another kernel's.
pub(crate) fn descendants() -> Vec<Process> {
    let all: Vec<(Process, i32)> = procfs::process::all_processes()
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|p| {
            let parent = p.stat().ok()?.ppid;
            Some((p, parent))
        })
        .collect();
    let parents: BTreeMap<i32, i32> = all.iter().map(|(p, parent)| (p.pid, *parent)).collect();
    let own = ProcessId::own().pid;
    let is_below = |pid: i32| {
        let line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        // Parents are read at different times and might form a cycle.
        line.take(parents.len()).any(|pid| pid == own)
    };
    let mut found: Vec<Process> = all.into_iter().map(|(p, _)| p).collect();
    found.retain(|p| is_below(p.pid));
    found.sort_by_key(|p| p.pid);
    found
}

/// The process number in the innermost PID namespace.
pub(crate) fn inner_pid(process: &Process) -> Option<Pid> {
    let inner = process.status().ok()?.nspid?.last().copied()?;
    Pid::from_raw(inner)
}

/// Whether a process is a zombie: ended, but not reaped by its parent.
pub(crate) fn is_zombie(process: &Process) -> bool {
    process.stat().is_ok_and(|stat| stat.state == 'Z')
}

/// Command line of the process with number `pid` in the keeper's PID namespace; `None` if no such process runs.
pub(crate) fn command_line(pid: Pid) -> Option<Vec<String>> {
    let mut all = own_processes().into_iter();
    let words = all.find(|p| inner_pid(p) == Some(pid))?.cmdline().ok()?;
    (!words.is_empty()).then_some(words)
}
