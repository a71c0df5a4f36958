//! Profiles whose configurations run on other machines.

use super::to;
use crate::common::sshd::Sshd;
use crate::common::{Bench, Ended, series, tree};
use plimsoll_results::Run;

/// Runs `plimsoll profile old.prof` on the profile `text`, with `sshd` as the ssh server of every host.
fn run_profile(bench: &Bench, sshd: &Sshd, text: &str, hosts: &str, more: &[&str]) -> Ended {
    std::fs::write(bench.path("old.prof"), text).unwrap();
    let mut command = bench.plimsoll(["profile", "old.prof", "--results=results", "--time=300ms"]);
    command.args(["--set=nfiles=60", "--set=filesize=4k", "--set=nthreads=6"]);
    command.args(more).arg(to(bench, &sshd.ssh(), hosts));
    Ended::of(command)
}

/// Runs of the only profile in the bench's results, each with the names of its hosts.
fn hosts_of_cases(bench: &Bench) -> Vec<(Run, Vec<String>)> {
    let runs = series::runs_of(&series::only(bench)).into_iter();
    let with_hosts = runs.map(|run| {
        let hosts = run.hosts.iter().map(|h| h.host.clone()).collect();
        (run, hosts)
    });
    with_hosts.collect()
}

#[test]
fn configurations_run_on_the_clients_of_their_profile() {
    let configs =
        "CONFIG mail { personality = varmail; }\nCONFIG web { personality = webserver; }\n";
    // `targetpath` is the path of the work directory on the clients: here a path through a symbolic link.
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let elsewhere = bench.path("elsewhere");
    std::os::unix::fs::symlink(bench.root(), &elsewhere).unwrap();
    let theirs = elsewhere.join("work");
    let text = format!(
        "MULTICLIENT {{\n\ttargetpath = {};\n\tclients = one, client[08-09];\n}}\n\
         DEFAULTS {{\n\tdir = {};\n}}\n{configs}",
        theirs.display(),
        bench.work().file_name().unwrap().display()
    );
    run_profile(&bench, &sshd, &text, "", &[]).expect_code(0);
    let cases = hosts_of_cases(&bench);
    assert_eq!(cases.len(), 2);
    for (run, hosts) in cases {
        assert_eq!(hosts, ["one", "client08", "client09"]);
        assert_eq!((run.ranks, run.workers), (3, 6));
        let ops: u64 = run.hosts.iter().map(|host| host.ops).sum();
        assert_eq!(ops, run.summary.ops);
        assert!(run.hosts.iter().all(|host| host.ops > 0));
        assert_eq!(run.summary.errors, 0);
    }
    assert_eq!(tree(&bench.work()).0.len(), 0);
    sshd.await_ranks(0);
    // `--hosts` replaces the clients of MULTICLIENT; `targetpath` without `dir` is the work directory on every machine.
    std::fs::remove_dir_all(bench.path("results")).unwrap();
    let dir = bench.work();
    let text = format!(
        "MULTICLIENT {{ targetpath = {}; clients = one; }}\n{configs}",
        dir.display()
    );
    run_profile(&bench, &sshd, &text, "other", &["--only=mail"]).expect_code(0);
    let (run, hosts) = hosts_of_cases(&bench).remove(0);
    assert_eq!(run.ranks, 2);
    assert_eq!(hosts[1..], ["other"]);
    sshd.await_ranks(0);
}

#[test]
fn the_target_of_every_configuration_must_be_reachable() {
    let text = "CONFIG mail { personality = varmail; }\n";
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let two = ["--filesystem=one=null:", "--filesystem=two=null:"];
    let with_file =
        |line: &str, more: &[&str]| run_profile(&bench, &sshd, text, &format!("a {line}"), more);
    let of_all = "would be the place of all file systems: one, two";
    for (line, more, reason) in [
        ("target=posix", &two[..1], "of another kind than null:"),
        ("target=null:", &two, of_all),
        ("dir=/mnt", &two, of_all),
    ] {
        let said = with_file(line, more).refusal();
        assert!(said.contains(reason), "{said}");
        assert!(bench.results().is_empty());
    }
    // The target of the only file system is not the default one.
    with_file("target=null:", &two[..1]).expect_code(0);
    sshd.await_ranks(0);
}
