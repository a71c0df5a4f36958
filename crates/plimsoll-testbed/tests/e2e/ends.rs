//! A test bed that is down leaves no processes, files or devices, and a test bed that is up holds nothing of the shell
//! that started it.

use crate::common::Beds;
use plimsoll_testkit::bench::{Ended, signal, wait_until};
use rustix::process::Signal;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Processes in the network of a link below `/proc`.
fn in_network(of: &PathBuf) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let links = processes.map(|p| p.path().join("ns/net"));
    links
        .filter(|l| std::fs::read_link(l).is_ok_and(|n| n == *of))
        .collect()
}

/// A shell that runs a script and then executes a command.
fn behind(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{script}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(command.get_current_dir().unwrap());
    shell
}

/// If the bed held the pipe, the command would seem to run as long as the bed.
#[test]
fn a_bed_does_not_hold_what_its_shell_has_open() {
    let beds = Beds::new();
    let lock = beds.bench.path("lock");
    let up = beds.command(&["testbed", "up", "nfs", "-q"]);
    let script = format!("exec 8>&1 9>{}; flock -x 9", lock.display());
    let up = Ended::of(behind(&script, &up)).expect_code(0);
    assert_eq!(up.stdout, "nfs\n");
    File::open(&lock)
        .unwrap()
        .try_lock()
        .expect("nothing holds it");
    assert!(beds.keeper("nfs").is_running());
    beds.load("nfs");
    beds.testbed(&["down", "nfs"]).expect_code(0);
}

/// The files that a process has open.
fn open_files(pid: i32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    entries
        .filter_map(|e| std::fs::read_link(e.path()).ok())
        .collect()
}

fn parent(pid: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("PPid:"));
    line.unwrap().trim().parse().unwrap()
}

/// A bed started by `plimsoll testbed with` holds no descriptors of the shell open; the bed's keeper notices the end of
/// `with` by the end of the keeper's standard input.
#[test]
fn a_bed_for_one_command_holds_nothing_else_either() {
    let beds = Beds::new();
    let file = beds.bench.path("file");
    let words = ["testbed", "with", "nfs", "-q", "--", "run", "varmail"];
    let mut with = beds.command(&words);
    with.args(["--set=nfiles=40", "--time=1h", "--results=results"]);
    let script = format!("exec 9>{}", file.display());
    let mut with = behind(&script, &with)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let is_up = || {
        let state = beds.bench.path("beds/states/nfs/state.json");
        state.exists() && beds.state("nfs")["phase"] == "up"
    };
    wait_until("the start", is_up);
    let keeper = beds.keeper("nfs");
    let file = file.canonicalize().unwrap();
    assert!(open_files(with.id() as i32).contains(&file));
    for pid in [keeper.pid, parent(keeper.pid)] {
        let open = open_files(pid);
        assert!(!open.contains(&file), "{pid}: {open:?}");
    }
    signal(with.id() as i32, Signal::KILL);
    with.wait().unwrap();
    beds.assert_gone_with(keeper);
}

/// A program in a bed's network, once the program has written a line.
fn entered(beds: &Beds, script: &str) -> Child {
    let words = ["testbed", "exec", "nfs", "--", "sh", "-c", script];
    let mut child = beds.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert!(out.read_line(&mut line).unwrap() > 0, "{script} has ended");
    child
}

#[test]
fn what_has_entered_a_bed_ends_with_it() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    let keeper = beds.keeper("nfs");
    let network = std::fs::read_link(format!("/proc/{}/ns/net", keeper.pid)).unwrap();
    let ended = beds.bench.path("ended");
    let orderly = format!(
        "trap 'echo orderly > {}; exit 3' TERM; echo in; while :; do sleep 0.05; done",
        ended.display()
    );
    let mut orderly = entered(&beds, &orderly);
    let stubborn = "trap '' TERM; echo in; while :; do sleep 0.05; done";
    let mut stubborn = entered(&beds, stubborn);
    let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
    wait_until("the programs", || in_network(&network).len() >= 5);
    let down = beds.testbed(&["down", "nfs"]).expect_code(0);
    assert_eq!(down.stdout, "nfs is down\n");
    assert_eq!(in_network(&network), Vec::<PathBuf>::new());
    assert!(!keeper.is_running());
    assert_eq!(std::fs::read_to_string(ended).unwrap(), "orderly\n");
    assert_eq!(orderly.wait().unwrap().code(), Some(3));
    assert_eq!(stubborn.wait().unwrap().signal(), Some(9));
    assert_eq!(stranger.try_wait().unwrap(), None, "it is elsewhere");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

/// `down` called inside the bed's network ends neither its own process, nor its shell, nor processes that the shell
/// connects to `down` by pipes.
#[test]
fn a_bed_can_be_ended_into_a_pipe_from_its_own_network() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    let keeper = beds.keeper("nfs");
    let down = beds.command(&["testbed", "down", "nfs"]);
    let program = down.get_program().to_str().unwrap().to_owned();
    let log = beds.bench.path("log");
    // The reader of the pipe ends only after all writers have ended.
    let slow = "while read -r line; do sleep 0.2; echo \"$line\"; done";
    let script = format!(
        "{program} testbed down nfs | {{ {slow}; }} | tee {}; echo still here",
        log.display()
    );
    let ended = beds.testbed(&["exec", "nfs", "--", "sh", "-c", &script]);
    assert_eq!(ended.expect_code(0).stdout, "nfs is down\nstill here\n");
    assert_eq!(std::fs::read_to_string(log).unwrap(), "nfs is down\n");
    assert!(!keeper.is_running());
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}
