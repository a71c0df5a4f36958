//! Workload files of strangers whose numbers no machine has.

use crate::common::{Bench, Ended};
use std::process::Command;

/// Memory that the program may take for a file that it refuses, in bytes.
const MEMORY: u64 = 4 << 30;

/// Executes a dry run of a workload file that contains `text`, with at most [`MEMORY`] bytes of memory.
fn planned(name: &str, text: &str) -> Ended {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path(name), text).unwrap();
    let ended = bounded(&bench.plimsoll(["run", name, "--dry-run", "--dir=work"]));
    assert!(!bench.work().exists());
    ended
}

/// Executes a command with at most [`MEMORY`] bytes of memory, and returns how the command ends.
pub(super) fn bounded(plimsoll: &Command) -> Ended {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--as={MEMORY}"))
        .args(["--cpu=40", "--"]);
    command
        .arg(plimsoll.get_program())
        .args(plimsoll.get_args());
    command.current_dir(plimsoll.get_current_dir().unwrap());
    Ended::of(command)
}

#[track_caller]
fn refused(name: &str, text: &str) {
    let refusal = planned(name, text).expect_code(2).stderr;
    let begin: String = text.chars().take(300).collect();
    assert!(!refusal.contains("panicked"), "{begin}: {refusal}");
    assert!(refusal.len() < 20_000, "{begin}: {} bytes", refusal.len());
}

fn workload(fileset: &str, thread: &str, flowop: &str) -> String {
    format!(
        "define fileset name=s,path=files,{fileset}\n\
         define process name=p {{ thread name=t,{thread} {{ flowop {flowop} }} }}\nrun 1\n"
    )
}

#[test]
fn numbers_that_no_machine_has_are_refused() {
    let (files, thread) = ("entries=5,size=4k,prealloc", "memsize=1m");
    let reads = "readwholefile name=r,filesetname=s";
    for fileset in [
        "entries=1000000000000000000,size=4k,prealloc",
        "entries=18446744073709551615,size=18446744073709551615,prealloc",
        "entries=5,size=8000000t,prealloc",
        "entries=5,size=99999999999999999999999,prealloc",
    ] {
        refused("w.f", &workload(fileset, thread, reads));
    }
    for thread in [
        "memsize=1m,instances=1000000000000",
        "memsize=18446744073709551615",
    ] {
        refused("w.f", &workload(files, thread, reads));
    }
    for attribute in ["fd=99999999999", "iters=99999999999999999999999"] {
        let flowop = format!("{reads},{attribute}");
        refused("w.f", &workload(files, thread, &flowop));
    }
}

/// A variable that doubles with every line would be the whole memory after forty.
#[test]
fn texts_that_grow_without_bound_are_refused() {
    let mut doubles = "set $a0=abcdefgh\n".to_owned();
    for n in 1..64 {
        doubles += &format!("set $a{n}=\"$a{}$a{}\"\n", n - 1, n - 1);
    }
    let uses = workload(
        "entries=5,size=4k",
        "memsize=1m",
        "statfile name=x,filesetname=s",
    );
    let uses = uses.replace("path=files", "path=$a63");
    let refusal = planned("w.f", &format!("{doubles}{uses}")).refusal();
    let expected = "a text has at most 16384 bytes";
    assert!(refusal.contains(expected), "{refusal}");
    // In the description that is shown, variables have their defaults.
    let bench = Bench::on_tmpfs();
    let (long, many) = ("x".repeat(100_000), "$a".repeat(100_000));
    let usage = format!("set $a={long}\nusage \"{many}\"\n");
    std::fs::write(bench.path("w.f"), usage).unwrap();
    for call in [["workloads", "show", "w.f"], ["run", "--dry-run", "w.f"]] {
        let ended = bounded(&bench.plimsoll(call));
        assert!(
            matches!(ended.code, Some(0 | 2)),
            "{call:?}: {}",
            ended.stderr
        );
        let bytes = ended.stdout.len();
        assert!(bytes < 2_000_000, "{call:?}: {bytes} bytes");
    }
}

/// A file that loads itself, and one that is nested without end.
#[test]
fn files_without_an_end_are_refused() {
    refused("w.f", "load \"w.f\"\nrun 1\n");
    refused(
        "w.f",
        &"define process name=p { thread name=t,memsize=1m { ".repeat(20_000),
    );
    refused("w.f", &format!("set $a={}\nrun 1\n", "(".repeat(100_000)));
    refused("w.toml", &format!("a = {}", "[".repeat(100_000)));
    refused("w.toml", &format!("a = {}", "{a=".repeat(100_000)));
}
