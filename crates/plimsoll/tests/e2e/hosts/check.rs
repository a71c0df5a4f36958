//! `systems hosts`: work directory, clocks, bandwidth, and hosts that cannot be reached.

use super::to;
use crate::common::sshd::{Sshd, script};
use crate::common::{Bench, Ended, signal, wait_until};
use std::os::unix::fs::PermissionsExt;

#[test]
fn hosts_are_checked_one_by_one() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    std::fs::create_dir(bench.work()).unwrap();
    let check = |dir: &str, code: i32| {
        let program = env!("CARGO_BIN_EXE_plimsoll");
        let hosts = format!(
            "ssh=\"{}\" program={program}\na dir={dir}\nb\nc program=/none\n",
            sshd.ssh()
        );
        std::fs::write(bench.path("hosts"), hosts).unwrap();
        let command = bench.plimsoll(["systems", "hosts", "@hosts", "--dir=work"]);
        let ended = Ended::of(command).expect_code(code);
        let lines: Vec<String> = ended.stdout.lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        lines
    };
    let work = bench.work().display().to_string();
    let lines = check(&work, 1);
    for (line, host) in lines.iter().zip(["a", "b"]) {
        assert!(line.starts_with(&format!("host {host}: ")), "{line}");
        assert!(line.ends_with("; the same work directory"), "{line}");
        let has_times = line.contains("round trip") && line.contains("clock");
        assert!(has_times, "{line}");
    }
    let missing = "host c: `/none` was not found there";
    assert!(lines[2].contains(missing), "{}", lines[2]);
    let lines = check("/", 1);
    let other = "/ is not the same directory there";
    assert!(lines[0].contains(other), "{}", lines[0]);
    let same = "; the same work directory";
    assert!(lines[1].ends_with(same), "{}", lines[1]);
    assert_eq!(std::fs::read_dir(bench.work()).unwrap().count(), 0);
    sshd.await_ranks(0);
}

#[test]
fn an_interrupted_check_leaves_no_file() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.work()).unwrap();
    // A host that never answers.
    let ssh = script(&bench.path("ssh"), "exec cat >/dev/null");
    let mut command = bench.plimsoll(["systems", "hosts", "a", "--dir=work"]);
    let mut check = command.env("PLIMSOLL_SSH", &ssh).spawn().unwrap();
    let files = || {
        std::fs::read_dir(bench.work())
            .unwrap()
            .map(|e| e.unwrap().path())
    };
    wait_until("the check has made its file", || files().count() > 0);
    let file = files().next().unwrap();
    // The check file has mode 0644, so that other users can read it; the expectation holds for a umask without read
    // bits.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|l| l.strip_prefix("Umask:"));
    let umask = u32::from_str_radix(umask.unwrap().trim(), 8).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644 & !umask);
    signal(check.id() as i32, rustix::process::Signal::INT);
    assert_eq!(check.wait().unwrap().code(), Some(130));
    assert_eq!(files().count(), 0);
}

#[test]
fn what_cannot_be_checked_is_refused() {
    let bench = Bench::on_tmpfs();
    for (text, reason) in [
        ("ssh=/nowhere/ssh\na\nb", "`/nowhere/ssh`, the command that"),
        ("ssh=false\na program=~/bin/plimsoll", "`~` is not expanded"),
        ("ssh=false", "the hosts file hosts has no hosts"),
        ("a\nb dri=/x", "hosts:2:3"),
    ] {
        std::fs::write(bench.path("hosts"), text).unwrap();
        let said = Ended::of(bench.plimsoll(["systems", "hosts", "@hosts"])).refusal();
        assert!(said.contains(reason), "{said}");
    }
}

#[test]
fn bandwidth_is_measured_between_hosts_in_both_directions() {
    let bench = Bench::on_tmpfs();
    let (first, second) = (Sshd::start(&bench), Sshd::start(&bench));
    let config = [("one", &first), ("two", &second)].map(|(name, sshd)| {
        let text = std::fs::read_to_string(sshd.config()).unwrap();
        text.replace("Host *", &format!("Host {name}"))
    });
    std::fs::write(bench.path("both"), config.concat()).unwrap();
    let ssh = format!("ssh -F '{}'", bench.path("both").display());
    let check = |list: &str, ssh: &str| {
        let hosts = to(&bench, ssh, &list.replace(',', "\n"));
        let hosts = hosts.trim_start_matches("--hosts=");
        Ended::of(bench.plimsoll(["systems", "hosts", hosts, "--bandwidth"]))
    };
    let said = check("one,two", &ssh).expect_code(0).stdout;
    let mut pairs = Vec::new();
    for line in said.lines().filter(|l| l.starts_with("bandwidth ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["bandwidth", "from", from, "to", to, rate, "Mbit/s"] = words[..] else {
            panic!("{line}");
        };
        assert!(rate.parse::<u64>().unwrap() > 0, "{line}");
        pairs.push((from.to_owned(), to.trim_end_matches(':').to_owned()));
    }
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(pairs, [pair("one", "two"), pair("two", "one")]);
    // Nothing is left there, and no port stays open.
    first.await_ranks(0);
    second.await_ranks(0);
    let refusal = check("one", &ssh).refusal();
    let expected = "--bandwidth: there is one host";
    assert!(refusal.contains(expected), "{refusal}");
    // An ssh server that hides SSH_CONNECTION: the bandwidth cannot be measured, and the message has the reason.
    let blind = "ForceCommand unset SSH_CONNECTION; eval \"$SSH_ORIGINAL_COMMAND\"";
    let blind = Sshd::with(&bench, blind);
    let said = check("a,b", &blind.ssh()).expect_code(1).stdout;
    let expected = "bandwidth from a to b: the receiver does not know its address";
    assert!(said.contains(expected), "{said}");
    blind.await_ranks(0);
}
