//! Recorded calls, descriptions of targets, and servers that cannot be used.

use crate::bench::{Bench, Case, error, how, name, opened, place, spec};
use crate::case;
use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, Collector, NfsClients, Recorder, RowSpec, WindowState};
use plimsoll_nfs::v3::Proc;
use plimsoll_plan::OpKind;
use plimsoll_target::{
    OpenMode, Purpose, RpcRows, Session, SessionSpec, Target, TargetError, Visitor, connect,
    procedures,
};
use plimsoll_testkit::ClosedPort;
use rustix::io::Errno;
use std::rc::Rc;
use std::sync::Arc;

/// Runs a case and returns each row with calls: its name, its number of successful calls so far, and the same number in
/// the results.
fn recorded(bench: &Bench, more: &str, case: impl Case) -> Vec<(String, u64, u64)> {
    let url = bench.url(more);
    connect(&url, &place("/work"), Purpose::Load, Record(case)).unwrap()
}

struct Record<C>(C);

impl<C: Case> Visitor for Record<C> {
    type Output = Vec<(String, u64, u64)>;

    fn visit<T: Target>(self, target: T) -> Self::Output {
        let names = procedures("nfs3://x");
        let window = Arc::new(WindowState::new(1_000_000_000));
        window.open(0, u64::MAX);
        let recorder = Rc::new(Recorder::new(
            window.clone(),
            &vec![RowSpec::default(); names.len()],
        ));
        let rows = names.iter().map(|n| n.to_string()).zip(0..);
        let rows = RpcRows {
            recorder: recorder.clone(),
            rows: rows.collect(),
        };
        let deadline = Arc::new(Deadline::default());
        let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline);
        let session = target
            .session(
                &lane,
                &SessionSpec {
                    rpc: Some(rows),
                    ..spec()
                },
            )
            .unwrap();
        let task: Task<'_> = Box::pin(self.0.run(session));
        lane.run(vec![task]).unwrap();
        let progress = recorder.progress();
        let mut collector = Collector::new(window, vec![progress.clone()], names.len());
        recorder.finish();
        let measured = collector.finish().1.rows;
        let of =
            |(row, name): (usize, &&str)| (name.to_string(), progress.ops(row), measured[row].ops);
        let all = names.iter().enumerate().map(of);
        all.filter(|(_, ops, _)| *ops > 0).collect()
    }
}

/// Successful calls count in the row of their procedure; failed calls do not.
#[test]
fn procedures_are_recorded() {
    let bench = Bench::with_faults(&["write=nospc:1"]);
    let done = recorded(
        &bench,
        "",
        case!(bench, s, {
            let h = opened(&mut s, "f", how(OpenMode::Write, true)).await;
            assert_eq!(error(s.write(&h, 0, 5).await), Errno::NOSPC);
            assert_eq!(error(name(&mut s, "none").stat().await), Errno::NOENT);
        }),
    );
    assert_eq!(done, [("CREATE".to_owned(), 1, 1)]);
}

/// READ calls that are sent before a reply shows the end of the file count like any other call.
#[test]
fn reads_beyond_the_end_are_recorded() {
    let bench = Bench::new();
    let done = recorded(
        &bench,
        "&rsize=4k",
        case!(bench, s, {
            bench.make("work", "f", &[7; 10_000]);
            let h = opened(&mut s, "f", how(OpenMode::Read, false)).await;
            assert_eq!(s.read(&h, 0, 100_000).await.unwrap(), 10_000);
            s.close(h).await.unwrap();
        }),
    );
    let reads = bench.server.calls(Proc::Read);
    assert!(reads > 3, "{reads}");
    assert!(
        done.contains(&("READ".to_owned(), reads, reads)),
        "{done:?}"
    );
}

/// Two lanes of a target, each with a file, and a lane for work outside the load.
struct TwoClients;

impl Visitor for TwoClients {
    type Output = Option<NfsClients>;

    fn visit<T: Target>(self, target: T) -> Self::Output {
        assert_eq!(target.take_nfs_clients(), None);
        for (number, of_load) in [(0, true), (1, true), (2, false)] {
            let deadline = Arc::new(Deadline::default());
            let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline);
            let rows = RpcRows {
                recorder: Rc::new(Recorder::new(Arc::new(WindowState::new(1)), &[])),
                rows: Arc::new([]),
            };
            let spec = SessionSpec {
                number,
                rpc: of_load.then_some(rows),
                ..spec()
            };
            let mut session = target.session(&lane, &spec).unwrap();
            let task: Task<'_> = Box::pin(async move {
                let path = format!("f{number}");
                let h = opened(&mut session, &path, how(OpenMode::Write, true)).await;
                session.close(h).await.unwrap();
                for _ in 0..4 {
                    name(&mut session, &path).stat().await.unwrap();
                }
            });
            lane.run(vec![task]).unwrap();
        }
        let clients = target.take_nfs_clients();
        assert_eq!(target.take_nfs_clients(), None);
        clients
    }
}

/// Each client of the load has its own connections; a server in memory lowers `rsize` and `wsize` to 1 MiB.
#[test]
fn clients_and_connections_are_counted() {
    let bench = Bench::new();
    let url = bench.url("&nconnect=2&rsize=2m");
    let clients = connect(&url, &place("/work"), Purpose::Load, TwoClients);
    let clients = clients.unwrap().unwrap();
    assert_eq!((clients.clients, clients.connections), (2, 4));
    assert_eq!((clients.sessions, clients.client_ids), (None, None));
    let expected = "NFS 3 clients (4 connections, rsize 1 MiB instead of 2 MiB)";
    assert_eq!(clients.noun(), expected);
}

struct Said;

impl Visitor for Said {
    type Output = (bool, bool, String);

    fn visit<T: Target>(self, target: T) -> Self::Output {
        for kind in [OpKind::Lock, OpKind::MmapRead, OpKind::MmapWrite] {
            assert!(target.unsupported_reason(kind).is_some());
        }
        for kind in [
            OpKind::Lookup,
            OpKind::ReadLink,
            OpKind::ListDirPlus,
            OpKind::Read,
        ] {
            assert_eq!(target.unsupported_reason(kind), None);
        }
        if target.exists() {
            target.writable().unwrap();
        }
        let space = target.space().unwrap().unwrap();
        assert!(space.bytes > 200 << 20 && space.inodes.is_some());
        if target.created_work_dir() {
            target.remove_work_dir().unwrap();
        }
        (
            target.exists(),
            target.created_work_dir(),
            target.describe(),
        )
    }
}

#[test]
fn work_directories() {
    let bench = Bench::new();
    let ask = |dir: &str, purpose| connect(&bench.url(""), &place(dir), purpose, Said);
    let (exists, made, _) = ask("/work", Purpose::Inspect).unwrap();
    assert!(!exists && !made && bench.find("work").is_err());
    let (exists, made, said) = ask("/work", Purpose::Load).unwrap();
    assert!(exists && made && bench.find("work").is_err());
    let want = format!(
        "nfs3, {}, export /, work directory /work, rsize 1048576, wsize 1048576, nconnect 1",
        bench.server.address()
    );
    assert_eq!(said, want);
    let missing = ask("/none/work", Purpose::Load).unwrap_err();
    assert_eq!(missing, TargetError::NoParent("/none".into()));
    bench.make("", "file", b"");
    let file = ask("/file", Purpose::Load).unwrap_err();
    assert_eq!(file, TargetError::NotDir("/file".into()));
    let below = ask("/file/work", Purpose::Load).unwrap_err();
    assert_eq!(below, TargetError::NotDir("/file".into()));
    // The work directory may be the export itself.
    assert!(ask("/", Purpose::Load).unwrap().0);
}

#[test]
fn what_is_no_server_is_named() {
    let bench = Bench::new();
    let at = bench.server.address();
    let says = |url: &str| {
        let error = connect(url, &place("/work"), Purpose::Load, Said).unwrap_err();
        error.to_string()
    };
    let wrong = says(&format!("nfs3://{at}/elsewhere?mountport={}", at.port()));
    let want = "target `nfs3`: export `/elsewhere` of 127.0.0.1: the server refuses it \
                (MNT3ERR_NOENT)";
    assert_eq!(wrong, want);
    let closed = ClosedPort::reserve();
    let unused = closed.address();
    let refused = says(&format!("nfs3://{unused}/?mountport={}", at.port()));
    let want = format!(
        "target `nfs3`: NFS version 3 at {unused}: Connection refused: nothing listens there"
    );
    assert_eq!(refused, want);
    let refused = says(&format!("nfs3://{at}/?mountport={}", unused.port()));
    assert!(
        refused.starts_with("target `nfs3`: MOUNT version 3 at 127.0.0.1:"),
        "{refused}"
    );
    let unknown = says("nfs3://no.such.host.invalid/x?mountport=1&timeo=1s");
    assert!(
        unknown.contains("host `no.such.host.invalid` cannot be found"),
        "{unknown}"
    );
    let garbage = Bench::with_faults(&["fsinfo=garbage:1"]);
    let strange = says(&garbage.url(""));
    assert!(strange.ends_with(": is this its port?"), "{strange}");
    let silent = Bench::with_faults(&["fsinfo=drop-reply:1"]);
    let late = says(&silent.url("&timeo=200ms"));
    assert!(late.ends_with("no reply in time"), "{late}");
}
