//! Terminals that are closed, and pipes without a reader.

use super::{READS_AND_WRITES, written};
use crate::common::pty::VARIABLES;
use crate::common::{Bench, Ended, wait_until};
use nix::pty::{OpenptyResult, openpty};
use plimsoll_results::Verdict;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{PipeReader, PipeWriter, Read};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The terminal of a run is closed: its processes are told, and the run ends in order although nothing can be
/// written there any more.
#[test]
fn a_terminal_that_is_closed() {
    for live in [&[][..], &["--live"]] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(READS_AND_WRITES);
        let OpenptyResult { master, slave } = openpty(None, None).unwrap();
        for end in [&master, &slave] {
            fcntl_setfd(end, FdFlags::CLOEXEC).unwrap();
        }
        let plimsoll = bench.plimsoll(["run", &workload, "--dir=work", "--results=results"]);
        // With the terminal as that of its session, which gets the signal, also where these tests ignore it.
        let mut command = Command::new("setsid");
        command
            .args(["--ctty", "--wait", "env", "--default-signal=HUP"])
            .arg(plimsoll.get_program())
            .args(plimsoll.get_args())
            .args(live)
            .current_dir(bench.root());
        for name in VARIABLES {
            command.env_remove(name);
        }
        let end = || Stdio::from(slave.try_clone().unwrap());
        command
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end());
        let child = command.spawn().unwrap();
        drop(command);
        drop(slave);
        let mut ours = std::fs::File::from(master);
        let mut shown = String::new();
        wait_until("nothing is measured", || {
            let mut piece = [0; 4096];
            let n = ours.read(&mut piece).unwrap();
            shown.push_str(&String::from_utf8_lossy(&piece[..n]));
            // The first interval of the window, in either form.
            shown.contains("ops/s") || shown.contains("measuring")
        });
        drop(ours);
        let status = Ended::wait(child, Instant::now()).code;
        assert_eq!(status, Some(130), "{live:?}: {shown}");
        let run = written(&bench);
        assert_eq!(run.validity.verdict, Verdict::Interrupted, "{live:?}");
        assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0], "{live:?}");
    }
}

/// A pipe with not a byte of room.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let block = [b'.'; 4096];
    for size in [4096, 1] {
        while rustix::io::write(&writer, &block[..size]).is_ok() {}
    }
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

fn has_ended(bench: &Bench) -> bool {
    let is_done = |run: &plimsoll_results::RunDir| run.exists() && !is_hidden(run);
    bench.results().iter().any(is_done) && !bench.work().exists()
}

fn is_hidden(run: &plimsoll_results::RunDir) -> bool {
    run.name().starts_with('.')
}

/// A pipe on standard output that is full: the run is over, its results are written and its files removed
/// before the program waits for the reader. When that reads, it gets everything.
#[test]
fn a_full_pipe_on_standard_output() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let (mut reader, writer) = full_pipe();
    let mut command = bench.command_in_work(&workload, &["--time=300ms"]);
    command.stdout(writer).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    wait_until("the run is not over", || has_ended(&bench));
    assert!(
        child.try_wait().unwrap().is_none(),
        "it waits for its reader"
    );
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    Ended::wait(child, Instant::now()).expect_code(0);
    let json = text.trim_start_matches('.');
    let run: plimsoll_results::Run = serde_json::from_str(json).unwrap();
    assert_eq!(written(&bench), run);
}

/// Its pipe is never read: three interrupts end the program.
#[test]
fn a_full_pipe_that_is_never_read() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let (_reader, writer) = full_pipe();
    let mut command = bench.command_in_work(&workload, &["--time=300ms"]);
    command.stdout(writer).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    wait_until("the run is not over", || has_ended(&bench));
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    while child.try_wait().unwrap().is_none() {
        kill_process(pid, Signal::INT).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ended::wait(child, Instant::now()).expect_code(130);
    assert_eq!(written(&bench).validity.verdict, Verdict::Valid);
}

/// A pipe on standard error that is full holds the messages up, and not the workers: what is measured is the
/// window that was asked for.
#[test]
fn a_full_pipe_on_standard_error() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let (reader, writer) = full_pipe();
    let more = ["--time=500ms", "--interval=50ms"];
    let mut command = bench.command_in_work(&workload, &more);
    command.stdout(Stdio::piped()).stderr(writer);
    let child = command.spawn().unwrap();
    drop(command);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let drained = std::thread::spawn(move || std::io::copy(&mut { reader }, &mut std::io::sink()));
    let run = Ended::wait(child, Instant::now()).result(0);
    drained.join().unwrap().unwrap();
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert!((0.5..0.8).contains(&run.window_s), "{}", run.window_s);
    assert_eq!(written(&bench), run);
}
