//! The program is sent to hosts (`copy-program=yes`).

use super::SERVER;
use crate::common::sshd::Sshd;
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
