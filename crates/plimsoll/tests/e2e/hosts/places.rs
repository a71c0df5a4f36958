//! Hosts that state a work directory (`dir=`) or a target (`target=`) of their own.

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
        let (ssh, dir) = (sshd.ssh(), dir.display());
        let servers = format!("server-[1-2] \"dir={dir}\" program={program} # both");
        let text = format!("# the server\nssh=\"{ssh}\"\n{servers}\n");
        std::fs::write(bench.path("hosts"), text).unwrap();
        let args = ["--hosts=@hosts", "--ops=1200"];
        let args = [&args[..], &SERVER].concat();
        bench.run_in_work("fileserver", &args)
    };
    let run = hosts(&elsewhere.join("work")).result(0);
    assert_eq!((run.ranks, run.summary.ops), (3, 1200));
    let names: Vec<&str> = run.hosts.iter().map(|h| h.host.as_str()).collect();
    assert_eq!(names[1..], ["server-1", "server-2"]);
    // `run`, `curve`, `find`, `profile` and `md` all use the host's own work directory.
    let (ssh, place) = (sshd.ssh(), elsewhere.join("work"));
    let at_place = format!(
        "ssh=\"{ssh}\"\nserver-1 dir={} program={program}\n",
        place.display()
    );
    std::fs::write(bench.path("hosts"), at_place).unwrap();
    let place = [
        "--hosts=@hosts",
        "--dir=work",
        "--results=others",
        "--format=json",
    ];
    std::fs::write(
        bench.path("one.prof"),
        "DEFAULTS { runtime = 1; dir = work; filesystem = n; nthreads = 2; stats = s; }\n\
         CONFIG one { personality = randomread; function = generic; filesize = 1m; }\n",
    )
    .unwrap();
    for command in [
        "md -P=20 -D=2 -I=10 -R=1 -S=3000",
        "curve --load=2 vda --scale=0.001 --warmup=0s --time=500ms",
        "find --max-load=2 --start-load=2 vda --scale=0.001 --warmup=0s --time=500ms",
        "profile one.prof",
    ] {
        let ended = Ended::of(bench.plimsoll(command.split(' ').chain(place)));
        // A busy machine may be too slow for a criterion, which is not what is tested.
        assert!(matches!(ended.code, Some(0 | 3)), "{command:?}: {ended:?}");
        let results: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(results["ranks"], 2, "{command}");
        assert!(!bench.work().exists(), "{command:?}");
    }
    let said = hosts(&bench.path("not-shared")).refusal();
    assert!(said.contains("host server-1: the work directory") && said.contains("all ranks share"));
}

#[test]
fn io_applies_to_hosts_with_their_own_target() {
    let bench = Bench::on_tmpfs();
    let sshd = Sshd::start(&bench);
    let run = |target: &str, more: &[&str]| {
        let (ssh, program) = (sshd.ssh(), env!("CARGO_BIN_EXE_plimsoll"));
        let text = format!("ssh=\"{ssh}\"\na target={target} program={program}\n");
        std::fs::write(bench.path("hosts"), text).unwrap();
        let args = [&["--hosts=@hosts", "--ops=600"], &SERVER[..], more];
        bench.run_in_work("fileserver", &args.concat())
    };
    let said = run("null:", &[]).refusal();
    let kind = "host a: its target null: is of another kind";
    assert!(said.contains(kind), "{said}");
    // An invalid `target=` of a host is refused before any connection to the host.
    let said = run("posix:?io=aio", &[]).refusal();
    assert!(
        said.contains("host a: ") && said.contains("io `aio`: expected sync, uring or auto"),
        "{said}"
    );
    let said = run("posix:?io=uring", &[]).refusal();
    let other =
        "its target posix:?io=uring and the run's target posix access files in different ways";
    assert!(said.contains(other), "{said}");
    if plimsoll_target::uring_unavailable().is_some() {
        // The host is this machine, so that without io_uring the rest of the test cannot be made.
        return;
    }
    let uring = ["--target=posix:?io=uring"];
    let said = run("posix", &uring).refusal();
    assert!(said.contains("access files in different ways"), "{said}");
    // First the targets of rank 0 and of the host both choose io_uring; then the host's `io=auto` leaves the choice to
    // rank 0.
    run("posix:?io=uring&depth=64", &uring).result(0);
    std::fs::remove_dir_all(bench.results()[0].path()).unwrap();
    run("posix:?io=auto&lanes=1", &uring).result(0);
    let dir = &bench.results()[0];
    for rank in 0..2 {
        let url = of_rank(dir, rank).target.url;
        assert!(url.starts_with("posix:?io=uring"), "rank {rank}: {url}");
    }
}
