//! Hosts with their own names of directories and targets.

use super::SERVER;
use crate::common::sshd::Sshd;
use crate::common::{Bench, Ended};
use crate::ranks::of_rank;
use std::path::Path;

#[test]
fn a_host_may_have_its_own_names_of_places() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let elsewhere = bench.path("elsewhere");
    std::os::unix::fs::symlink(bench.root(), &elsewhere).unwrap();
    let hosts = |dir: &Path| {
        let text = format!(
            "# the server\nssh=\"{}\"\nserver-[1-2] \"dir={}\" program={program} # both\n",
            sshd.ssh(),
            dir.display()
        );
        std::fs::write(bench.path("hosts"), text).unwrap();
        let args = ["--hosts=@hosts", "--ops=1200"];
        let args = [&args[..], &SERVER].concat();
        bench.run_in_work("fileserver", &args)
    };
    let run = hosts(&elsewhere.join("work")).result(0);
    assert_eq!((run.ranks, run.summary.ops), (3, 1200));
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(names[1..], ["server-1", "server-2"]);
    // The same place for each command that runs workloads.
    let at_place = format!(
        "ssh=\"{}\"\nserver-1 dir={} program={program}\n",
        sshd.ssh(),
        elsewhere.join("work").display()
    );
    std::fs::write(bench.path("hosts"), at_place).unwrap();
    let place = ["--hosts=@hosts", "--dir=work", "--results=others"];
    let vda = ["vda", "--scale=0.001", "--warmup=0s", "--time=500ms"];
    std::fs::write(
        bench.path("one.prof"),
        "DEFAULTS { runtime = 1; dir = work; filesystem = n; nthreads = 2; stats = s; }\n\
         CONFIG one { personality = randomread; function = generic; filesize = 1m; }\n",
    )
    .unwrap();
    let commands: [&[&str]; 4] = [
        &["md", "-P=20", "-D=2", "-I=10", "-R=1", "-S=3000"],
        &[&["curve", "--load=2"], &vda[..]].concat(),
        &[&["find", "--max-load=2", "--start-load=2"], &vda[..]].concat(),
        &["profile", "one.prof"],
    ];
    for command in commands {
        let ended = Ended::of(bench.plimsoll(command.iter().chain(&place)));
        // A busy machine may be too slow for a criterion, which is not what is tested.
        assert!(
            matches!(ended.code, Some(0 | 3)),
            "{command:?}: {}",
            ended.stderr
        );
        assert!(!bench.work().exists(), "{command:?}");
    }
    let said = hosts(&bench.path("not-shared")).refusal();
    assert!(said.contains("host server-1: the work directory") && said.contains("all ranks share"));
}

#[test]
fn io_applies_to_hosts_with_their_own_target() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let on = |target: &str| {
        let program = env!("CARGO_BIN_EXE_plimsoll");
        let text = format!(
            "ssh=\"{}\"\na target={target} program={program}\n",
            sshd.ssh()
        );
        std::fs::write(bench.path("hosts"), text).unwrap();
        let args = ["--hosts=@hosts", "--ops=600"];
        [&args[..], &SERVER]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let run = |target: &str, more: &[&str]| {
        let args = on(target);
        let args: Vec<&str> = args
            .iter()
            .map(String::as_str)
            .chain(more.iter().copied())
            .collect();
        bench.run_in_work("fileserver", &args)
    };
    let said = run("null:", &[]).refusal();
    assert!(
        said.contains("host a: its target null: is of another kind"),
        "{said}"
    );
    // What is wrong with it is said before the host is asked.
    let said = run("posix:?io=aio", &[]).refusal();
    assert!(
        said.contains("host a: ") && said.contains("unknown io `aio`"),
        "{said}"
    );
    let said = run("posix:?io=uring", &[]).refusal();
    assert!(said.contains("expected --io uring"), "{said}");
    if plimsoll_target::uring_unavailable().is_some() {
        // A host of the same kernel has none either: nothing more can be seen.
        return;
    }
    // The same choice in both places, with an option of the host's own; and another one.
    run("posix:?io=uring&depth=64", &["--io=uring"]).result(0);
    let said = run("posix:?io=sync", &["--io=uring"]).refusal();
    assert!(
        said.contains("its target posix:?io=sync uses system calls"),
        "{said}"
    );
    std::fs::remove_dir_all(bench.results()[0].path()).unwrap();
    run("posix", &["--io=uring"]).result(0);
    let dir = &bench.results()[0];
    for rank in 0..2 {
        let url = of_rank(dir, rank).target.url;
        assert!(url.starts_with("posix:?io=uring"), "rank {rank}: {url}");
    }
}
