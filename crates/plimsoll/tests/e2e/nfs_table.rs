//! What the table of servers in `docs/nfs.md` says of runs, on every server and by every version that it
//! speaks. What it says of the conformance suite is in the tests of `plimsoll-target`.

use crate::common::{Bench, Ended};
use crate::nfs_servers::{READS, calls, interrupted, wait_for_answers};
use plimsoll_results::{Run, Verdict};
use plimsoll_testbed::needs_root;
use plimsoll_testbed::table::{Files, NfsServer, Row, Version};

/// A run that is valid, without an error, and leaves nothing.
fn is_valid(run: &Run, server: &dyn NfsServer, what: &str) {
    assert_eq!(
        run.validity.verdict,
        Verdict::Valid,
        "{what}: {:?}",
        run.validity
    );
    assert_eq!(run.summary.errors, 0, "{what}: {:?}", run.operations);
    assert!(run.summary.ops > 0, "{what}: nothing was done");
    let left = server.viewer().and_then(|mut v| v.names(""));
    let left = left.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(
        left.is_empty(),
        "{what}: {left:?} are left, notes {:?}",
        run.notes
    );
}

fn workload(name: &str, server: &dyn NfsServer, version: Version) -> Run {
    let (bench, url) = (Bench::new(), server.url(version, ""));
    let mut more = vec!["--target", &url, "--time=300ms", "--set=nthreads=4"];
    more.extend(["--set=nfiles=60", "--set=filesize=16k"]);
    let ended = bench.run(name, &more);
    let failure = ended.parsed().and_then(|run| run.failure);
    assert!(failure.is_none(), "{name} by {url}: {failure:?}");
    let run = ended.result(0);
    is_valid(&run, server, &format!("{name} by {url}"));
    run
}

/// All phases of MD-Workbench, with what is read compared with what was written.
fn md(server: &dyn NfsServer, version: Version) -> Run {
    let (bench, url) = (Bench::new(), server.url(version, ""));
    let interface = format!("-i={url}");
    let args = [
        "md", &interface, "-X", "-P=10", "-D=2", "-I=5", "-R=2", "-S=3000",
    ];
    let mut command = bench.plimsoll(args);
    command.args(["--dir=/md", "--results=results", "--format=json"]);
    let run = Ended::of(command).result(0);
    is_valid(&run, server, &format!("md by {url}"));
    run
}

/// A server that is killed and started again while files are read: the run goes on where the server has
/// them still, without an error of an operation, and ends with the reason where they are gone.
fn killed(server: &mut dyn NfsServer, files: Files, version: Version) {
    let (bench, url) = (Bench::new(), server.url(version, "timeo=1s&retrans=60"));
    let workload = bench.workload(READS);
    let mut command = bench.command(&workload, &["--target", &url, "--dir=/w"]);
    command.args(["--lanes=1"]);
    let run = crate::common::started(command, "measuring");
    wait_for_answers(server.nfs_address());
    server.kill().unwrap_or_else(|e| panic!("{e}"));
    server.start_again().unwrap_or_else(|e| panic!("{e}"));
    match files {
        Files::Kept => {
            wait_for_answers(server.nfs_address());
            let run = interrupted(run);
            assert!(calls(&run, "connected again") >= 1, "{url}");
            let left = server.viewer().and_then(|mut v| v.names("")).unwrap();
            assert!(left.is_empty(), "{url}: {left:?} are left");
        }
        Files::Lost => {
            let ended = run.end();
            assert_eq!(ended.code, Some(1), "{url}: {ended:?}");
            let failure = ended.parsed().unwrap().failure.unwrap().error;
            let said = ["ESTALE", "ENOENT"].iter().any(|e| failure.contains(e));
            assert!(said, "{url}: {failure}");
        }
    }
}

/// Everything on one server; returns the runs.
fn all_on(server: &str) -> Vec<Run> {
    let row = Row::of(server);
    let mut server = row.start().unwrap_or_else(|e| panic!("{e}"));
    let mut runs = Vec::new();
    for version in row.versions {
        runs.push(workload("fileserver", &*server, *version));
        runs.push(workload("varmail", &*server, *version));
        runs.push(md(&*server, *version));
        killed(&mut *server, row.files, *version);
    }
    runs
}

#[test]
fn ganesha_vfs() {
    needs_root!();
    all_on("nfs-ganesha, FSAL VFS");
}

#[test]
fn ganesha_mem() {
    needs_root!();
    all_on("nfs-ganesha, FSAL MEM");
}

#[test]
fn the_kernels() {
    needs_root!();
    all_on("Linux kernel");
}

#[test]
fn nfs3_server() {
    all_on("nfs3_server");
}

/// What is odd about it is noted, and is no reason to distrust a result.
#[test]
fn rclone() {
    for run in all_on("rclone (go-nfs)") {
        let odd = "the server's FSSTAT replies are 4 bytes longer than RFC 1813 says";
        assert!(
            run.notes.iter().any(|n| n.text.starts_with(odd)),
            "{:?}",
            run.notes
        );
    }
}

#[test]
fn serve_nfs() {
    all_on("serve-nfs");
}
