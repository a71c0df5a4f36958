//! The program is sent to hosts (`copy-program=yes`).

use super::{ENDLESS, SERVER};
use crate::common::sshd::{Sshd, script};
use crate::common::{Bench, Ended};
use plimsoll_testkit::write_executable;
use std::process::{Command, Stdio};

/// The option for hosts that are reached by this server, and to which the program is sent.
pub(super) fn copied_to(bench: &Bench, ssh: &str, hosts: &str) -> String {
    let text = format!("ssh=\"{ssh}\" copy-program=yes\n{hosts}\n");
    std::fs::write(bench.path("hosts"), text).unwrap();
    format!("--hosts=@{}", bench.path("hosts").display())
}

#[test]
fn the_program_is_sent_and_leaves_nothing() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let args = [&*copied_to(&bench, &sshd.ssh(), "a,b*2")];
    let args = [&args[..], &SERVER, &["--ops=1200"]].concat();
    let run = bench.run_in_work("fileserver", &args).result(0);
    assert_eq!((run.ranks, run.summary.ops), (4, 1200));
    sshd.await_ranks(0);
    let left = std::fs::read_dir(bench.path("remote-tmp")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_copied_program_that_does_not_start_is_not_sent_for_long() {
    let bench = Bench::on_tmpfs();
    let hangs = script(&bench.path("hangs"), "exec cat >/dev/null");
    let sshd = Sshd::with(&bench, &format!("ForceCommand {hangs}"));
    let workload = bench.workload(ENDLESS);
    let refused = |ssh: &str| {
        let hosts = copied_to(&bench, ssh, "a");
        let command = bench.command_in_work(&workload, &[&hosts]);
        Ended::of(command).expect_code(1).stderr
    };
    let said = refused(&sshd.ssh());
    assert!(
        said.contains("host a: plimsoll did not start there within 9 s"),
        "{said}"
    );
    // What has no shell: its account may only forward ports.
    let none = Sshd::with(&bench, "ForceCommand true");
    let said = refused(&none.ssh());
    let expected = "host a: the login shell there ended without starting the program";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_copied_program_that_arrives_damaged_is_refused_and_removed() {
    let bench = Bench::on_tmpfs();
    // One byte at the end of the file, which no program uses.
    let shell = script(
        &bench.path("shell"),
        r#"command=$(printf '%s' "$SSH_ORIGINAL_COMMAND" |
             sed 's/ && chmod/ \&\& printf x >>"$d\/plimsoll" \&\& chmod/')
           eval "$command""#,
    );
    let sshd = Sshd::with(&bench, &format!("ForceCommand {shell}"));
    let workload = bench.workload(ENDLESS);
    let hosts = copied_to(&bench, &sshd.ssh(), "a");
    let command = bench.command_in_work(&workload, &[&hosts]);
    let said = Ended::of(command).expect_code(1).stderr;
    assert!(
        said.contains("is not the one that was sent: its SHA-256 is "),
        "{said}"
    );
    sshd.await_ranks(0);
    assert_eq!(
        std::fs::read_dir(bench.path("remote-tmp")).unwrap().count(),
        0
    );
}

#[test]
fn a_program_that_was_not_sent_is_not_removed() {
    let bench = Bench::on_tmpfs();
    let id = "0123456789abcdef";
    let sent = format!("plimsoll-{id}-x");
    for (dir, given) in [
        ("plimsoll-1.2", "1.2"),
        ("plimsoll-1.2", id),
        (&*sent, "fedcba9876543210"),
        (&*sent, ""),
    ] {
        std::fs::create_dir_all(bench.path(dir)).unwrap();
        let program = bench.path(dir).join("plimsoll");
        let own = std::fs::read(env!("CARGO_BIN_EXE_plimsoll")).unwrap();
        write_executable(&program, own);
        let mut command = Command::new(&program);
        command
            .args(["rank", "--copied", given])
            .stdin(Stdio::null());
        let ended = Ended::of(command).expect_code(2);
        assert!(
            ended.stderr.contains("was not sent by another one"),
            "{}",
            ended.stderr
        );
        assert!(program.exists(), "{dir} {given}");
    }
}
