//! What the table of servers in `docs/nfs.md` says of runs, on every server and by every version that it
//! speaks. What it says of the conformance suite is in the tests of `plimsoll-target`.

use crate::common::{Bench, Ended};
use crate::nfs_servers::{READS, calls, interrupted, wait_for_answers};
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::server_tests;
use plimsoll_testkit::table::{FilesAfterRestart, NfsServer, ROWS, ServerRow, Version, markdown};

/// Asserts that a run on the server is valid, had no errors, and has left no files on the server.
fn assert_valid(run: &Run, server: &dyn NfsServer, what: &str) {
    let validity = &run.validity;
    assert_eq!(validity.verdict, Verdict::Valid, "{what}: {validity:?}");
    assert_eq!(run.summary.errors, 0, "{what}: {:?}", run.operations);
    assert!(run.summary.ops > 0, "{what}: nothing was done");
    let left = server.viewer().and_then(|mut v| v.names(""));
    let left = left.unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(left.is_empty(), "{what}: {left:?}, notes {:?}", run.notes);
}

fn workload(name: &str, server: &dyn NfsServer, version: Version) -> Run {
    let (bench, url) = (Bench::new(), server.url(version, ""));
    let mut more = vec!["--target", &url, "--ops=200", "--set=nthreads=4"];
    more.extend(["--set=nfiles=60", "--set=filesize=16k"]);
    let ended = bench.run(name, &more);
    let failure = ended.parsed().and_then(|run| run.failure);
    assert!(failure.is_none(), "{name} by {url}: {failure:?}");
    let run = ended.result(0);
    assert_valid(&run, server, &format!("{name} by {url}"));
    run
}

/// Runs all phases of MD-Workbench on the server; `-X` compares the read contents with the written contents.
fn md(server: &dyn NfsServer, version: Version) -> Run {
    let (bench, url) = (Bench::new(), server.url(version, ""));
    let interface = format!("-i={url}");
    let args = ["md", &interface, "-X", "-P=10", "-D=2", "-I=5"];
    let mut command = bench.plimsoll(args);
    command.args([
        "-R=2",
        "-S=3000",
        "--dir=/md",
        "--results=results",
        "--format=json",
    ]);
    let run = Ended::of(command).result(0);
    assert_valid(&run, server, &format!("md by {url}"));
    run
}

/// A server that is killed and started again while files are read: the run goes on where the server has
/// them still, without an error of an operation, and ends with the reason where they are gone.
fn killed(server: &mut dyn NfsServer, files: FilesAfterRestart, version: Version) {
    let (bench, url) = (
        Bench::new(),
        server.url(version, "timeo=1s&retrans=60&clients=1"),
    );
    let workload = bench.workload(READS);
    let command = bench.command(&workload, &["--target", &url, "--dir=/w"]);
    let run = crate::common::started(command, "measuring");
    wait_for_answers(server.nfs_address());
    server.kill().unwrap_or_else(|e| panic!("{e}"));
    server.start_again().unwrap_or_else(|e| panic!("{e}"));
    match files {
        FilesAfterRestart::Kept => {
            wait_for_answers(server.nfs_address());
            let run = interrupted(run);
            assert!(calls(&run, "reconnects") >= 1, "{url}");
            let left = server.viewer().and_then(|mut v| v.names("")).unwrap();
            assert!(left.is_empty(), "{url}: {left:?} are left");
        }
        FilesAfterRestart::Lost => {
            let ended = run.end();
            assert_eq!(ended.code, Some(1), "{url}: {ended:?}");
            let failure = ended.parsed().unwrap().failure.unwrap().error;
            let said = ["ESTALE", "ENOENT"].iter().any(|e| failure.contains(e));
            assert!(said, "{url}: {failure}");
        }
    }
}

/// A server by which nothing can be run says why: the marker cannot be written.
fn cannot_run(server: &dyn NfsServer, version: Version) {
    let (bench, url) = (Bench::new(), server.url(version, ""));
    let ended = bench.run("fileserver", &["--target", &url, "--time=300ms"]);
    assert_eq!(ended.code, Some(1), "{url}: {ended:?}");
    let failure = ended.parsed().unwrap().failure.unwrap().error;
    let (says, why) = ("cannot write `/", "/.plimsoll`: Input/output error (EIO)");
    let is_said = failure.starts_with(says) && failure.contains(why);
    assert!(is_said, "{url}: {failure}");
}

/// Makes all runs of the table on the server named `server`, with each NFS version that the server supports.
fn all_on(server: &str) {
    let row = ServerRow::of(server);
    let mut server = row.start().unwrap_or_else(|e| panic!("{e}"));
    for version in row.versions {
        if !row.is_usable(*version) {
            cannot_run(&*server, *version);
            continue;
        }
        let runs = [
            workload("fileserver", &*server, *version),
            workload("varmail", &*server, *version),
            md(&*server, *version),
        ];
        for run in runs {
            let mut notes = run.notes.iter().map(|n| n.text.as_str());
            let odd = notes.find(|text| text.contains("longer than RFC"));
            let odd = odd.map(|text| text.split(" (").next().unwrap());
            assert_eq!(odd, row.noted, "{}", row.server);
        }
        killed(&mut *server, row.files, *version);
    }
}

server_tests! { all_on:
    ganesha_vfs = "nfs-ganesha, FSAL VFS",
    ganesha_mem = "nfs-ganesha, FSAL MEM",
    the_kernels = "Linux kernel",
    nfs3_server = "nfs3_server",
    rclone = "rclone (go-nfs)",
    serve_nfs = "serve-nfs",
}

#[test]
fn every_server_is_tested() {
    let all: Vec<_> = ROWS.iter().map(|row| row.server).collect();
    assert_eq!(TESTED, all);
}

/// The documentation has the table by which the tests go.
#[test]
fn the_table_is_documented() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/nfs.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let table = markdown();
    assert!(docs.contains(&table), "docs/nfs.md is to have:\n{table}");
}
