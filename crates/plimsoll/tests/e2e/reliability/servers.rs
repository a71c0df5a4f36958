//! NFS servers that answer with errors, and that forget.

use super::written;
use crate::common::{Bench, Ended, row};
use crate::nfs_servers::READS;
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v4::operations::Op;
use plimsoll_nfs::v4::types::Status;
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::{Fault, FaultRelay, Ganesha, NFS_PORT, needs_root};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// A run of [`READS`] on our own server with a fault.
fn with_fault(fault: &str, more: &[&str]) -> (Bench, Ended) {
    let bench = Bench::on_tmpfs();
    let behaviour = ServerOptions {
        faults: vec![fault.parse().unwrap()],
        ..ServerOptions::default()
    };
    let tree = Arc::new(Mutex::new(Tree::new(64 << 20)));
    let server = Server::start("127.0.0.1:0".parse().unwrap(), tree, behaviour).unwrap();
    let at = server.address();
    let url = format!("nfs3://{at}/?mountport={}", at.port());
    let workload = bench.workload(READS);
    let place = ["--target", &url, "--dir=/w"];
    let ended = bench.run(&workload, &[&place[..], more].concat());
    (bench, ended)
}

#[track_caller]
fn ends(fault: &str, error: &str) {
    let (bench, ended) = with_fault(fault, &[]);
    let run = ended.result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.as_ref().unwrap();
    assert_eq!(failure.operation, "read", "{failure:?}");
    assert!(failure.error.contains(error), "{failure:?}");
    let path = failure.path.as_ref().unwrap();
    assert!(path.starts_with("/w/s/"), "{failure:?}");
    assert_eq!(written(&bench), run);
}

/// Some reads fail: the first ends the run, or they are counted and make it invalid.
#[test]
fn reads_that_fail() {
    ends("read=io:0.01", "EIO");
    let counted = ["--on-error=count", "--time=500ms"];
    let run: Run = with_fault("read=io:0.1", &counted).1.result(3);
    let read = row(&run, "read");
    assert_eq!(read.error_codes.keys().collect::<Vec<_>>(), ["EIO"]);
    assert!(read.ops > 0 && run.summary.errors == read.errors);
    assert_eq!(run.validity.reasons[0].code, "errors");
    let procedures = run.procedures.iter().find(|p| p.name == "READ").unwrap();
    assert!(procedures.error_codes["NFS3ERR_IO"] >= read.errors);
}

/// A server that does not know a handle any more.
#[test]
fn handles_that_are_stale() {
    ends("read=stale:0.01", "ESTALE");
}

/// A server whose replies are none: each is an error of the operation.
#[test]
fn replies_that_are_garbage() {
    ends("read=garbage:0.01", "EBADMSG");
}

/// A server of version 4 that has thrown its clients' state away: what was open is opened again, and the
/// run goes on without an error.
#[test]
fn a_server_that_has_lost_its_state() {
    needs_root!();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let relay = FaultRelay::start(SocketAddr::new(server.address(), NFS_PORT)).unwrap();
    for (minor, statuses) in [
        ("minorversion=0", [Status::Expired, Status::BadStateId]),
        ("minorversion=1", [Status::BadSession, Status::BadStateId]),
    ] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(READS);
        let url = relay.nfs4_url(Ganesha::PSEUDO, minor);
        let before = relay.fallen();
        for status in statuses {
            // Far apart: one read is repeated for four of them only.
            relay.inject(Fault::refuse(Op::Read, status).after(20).every(50).times(3));
        }
        let more = ["--target", &url, "--dir=/w", "--ops=800"];
        let run = bench.run(&workload, &more).result(0);
        relay.clear();
        assert_eq!(run.summary.errors, 0, "{minor}: {:?}", run.operations);
        assert_eq!(run.summary.ops, 800, "{minor}");
        assert_eq!(relay.fallen() - before, 6, "{minor}");
        assert_eq!(run.validity.verdict, Verdict::Valid, "{minor}: {run:?}");
    }
}
