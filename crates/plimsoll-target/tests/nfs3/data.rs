//! Reading and writing.

use crate::bench::{Bench, Calls, Case, OnLane, error, how, opened, place};
use crate::case;
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use plimsoll_nfs::v3::Proc;
use plimsoll_target::{FileOperation, OpenMode, Purpose, Session, connect};
use rustix::io::Errno;
use std::cell::Cell;
use std::sync::{Arc, Mutex};

/// A transfer that is longer than one call is split into calls, and each byte is at its offset.
#[test]
fn long_transfers_are_cut() {
    let bench = Bench::new();
    bench.run(
        "&rsize=4k&wsize=8k",
        case!(bench, s, {
            let h = opened(&mut s, "f", how(OpenMode::ReadWrite, true)).await;
            let bytes: Vec<u8> = (0..100_001u32).map(|i| (i / 7) as u8).collect();
            s.write_bytes(&h, 5, &bytes).await.unwrap();
            assert_eq!(bench.server.calls(Proc::Write), 13);
            assert_eq!(bench.bytes("work/f")[5..], bytes);
            let mut read = vec![1; 200_000];
            assert_eq!(s.read_bytes(&h, 4, &mut read).await.unwrap(), 100_002);
            assert_eq!(read[0], 0);
            assert_eq!(read[1..100_002], bytes);
            // A read beyond the end of the file sends up to seven calls more than its bytes need: the calls are sent
            // before the first reply shows the end.
            let reads = bench.server.calls(Proc::Read);
            assert!((25..25 + 8).contains(&reads), "{reads}");
            s.write(&h, 0, 50_000).await.unwrap();
            assert_eq!(bench.bytes("work/f")[50_000..], bytes[49_995..]);
            assert_ne!(bench.bytes("work/f")[..100], bytes[..100]);
            s.close(h).await.unwrap();
        }),
    );
}

#[test]
fn writes_are_committed_and_a_new_server_is_noticed() {
    let bench = Bench::new();
    let address = bench.server.address();
    let Bench { tree, server } = bench;
    let bench = Bench {
        tree: tree.clone(),
        server,
    };
    struct This(Arc<Mutex<Tree>>, std::net::SocketAddr, Cell<Option<Server>>);
    impl Case for This {
        async fn run<S: Session>(self, mut s: S) {
            let h = opened(&mut s, "f", how(OpenMode::Write, true)).await;
            s.write(&h, 0, 10).await.unwrap();
            s.fsync(&h).await.unwrap();
            s.write(&h, 0, 10).await.unwrap();
            drop(self.2.take());
            let new = Server::start(self.1, self.0.clone(), ServerOptions::default()).unwrap();
            // The old server may have lost data that was not committed.
            assert_eq!(error(s.fsync(&h).await), Errno::IO);
            s.write(&h, 0, 10).await.unwrap();
            s.fsync(&h).await.unwrap();
            s.close(h).await.unwrap();
            drop(new);
        }
    }
    let url = bench.url("");
    let Bench { tree, server } = bench;
    let on = OnLane {
        case: This(tree, address, Cell::new(Some(server))),
    };
    connect(&url, &place("/work"), Purpose::Load, on).unwrap();
}

#[test]
fn ends_of_files() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            let h = opened(&mut s, "f", how(OpenMode::ReadWrite, true)).await;
            s.append(&h, 10).await.unwrap();
            s.append(&h, 20).await.unwrap();
            s.on_file(
                &h,
                FileOperation::WriteStable {
                    offset: None,
                    len: 5,
                },
            )
            .await
            .unwrap();
            assert_eq!(s.stat_handle(&h).await.unwrap().size, 35);
            s.on_file(&h, FileOperation::Truncate(8)).await.unwrap();
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 8);
            assert_eq!(s.read(&h, 8, 100).await.unwrap(), 0);
            let before = bench.bytes("work/f");
            assert_eq!(
                s.on_file(&h, FileOperation::Modify { offset: 0, len: 8 })
                    .await
                    .unwrap(),
                16
            );
            let changed: Vec<u8> = before.iter().map(|b| b.wrapping_add(1)).collect();
            assert_eq!(bench.bytes("work/f"), changed);
            let to = opened(&mut s, "g", how(OpenMode::Write, true)).await;
            assert_eq!(s.copy(&h, &to, (2, 100)).await.unwrap(), 6);
            assert_eq!(bench.bytes("work/g")[2..], changed[2..]);
            let reading = opened(&mut s, "f", how(OpenMode::Read, false)).await;
            assert_eq!(error(s.write(&reading, 0, 1).await), Errno::BADF);
            assert_eq!(error(s.read(&to, 0, 1).await), Errno::BADF);
        }),
    );
}

#[test]
fn asynchronous_writes() {
    let bench = Bench::new();
    bench.run(
        "&wsize=4k",
        case!(bench, s, {
            let h = opened(&mut s, "f", how(OpenMode::Write, true)).await;
            for tag in 0..10 {
                s.aio_write(&h, u64::from(tag) * 10_000, 10_000, tag)
                    .unwrap();
            }
            assert_eq!(s.aio_pending(), 10);
            let mut done = Vec::new();
            s.aio_take(4, &mut done).await.unwrap();
            assert!(done.len() >= 4 && done.len() + s.aio_pending() == 10);
            // A close waits for the remaining writes, which can be taken afterwards.
            s.close(h).await.unwrap();
            s.aio_take(s.aio_pending(), &mut done).await.unwrap();
            let mut tags: Vec<u32> = done.iter().map(|d| d.tag).collect();
            tags.sort();
            assert_eq!(tags, (0..10).collect::<Vec<_>>());
            assert!(
                done.iter()
                    .all(|d| d.result == Ok(10_000) && d.end >= d.start)
            );
            assert_eq!(bench.bytes("work/f").len(), 100_000);
        }),
    );
}

/// With `cache=open-to-close`, data that an open file has read or written are not read from the server again.
#[test]
fn data_are_kept_from_open_to_close() {
    let bench = Bench::new();
    bench.run(
        "&cache=open-to-close",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let h = opened(&mut s, "f", how(OpenMode::ReadWrite, false)).await;
            let before = Calls::of(&bench.server);
            assert_eq!(s.read(&h, 1, 100).await.unwrap(), 4);
            assert_eq!(bench.calls(&before), [("READ", 1)]);
            assert_eq!(s.read(&h, 2, 100).await.unwrap(), 3);
            assert_eq!(s.read(&h, 7, 100).await.unwrap(), 0);
            assert_eq!(s.stat_handle(&h).await.unwrap().size, 5);
            assert_eq!(bench.calls(&before), [("READ", 1)]);
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 5);
            assert_eq!(bench.calls(&before), [("READ", 2)]);
            // The append needs no GETATTR: the size of the file is cached.
            s.append(&h, 10).await.unwrap();
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 15);
            assert_eq!(bench.calls(&before), [("READ", 2), ("WRITE", 1)]);
            // `read_bytes` always reads from the server, because the cache keeps no bytes.
            let mut bytes = [0; 5];
            assert_eq!(s.read_bytes(&h, 0, &mut bytes).await.unwrap(), 5);
            assert_eq!((&bytes, bench.calls(&before)[0]), (b"hello", ("READ", 3)));
            s.on_file(&h, FileOperation::Truncate(3)).await.unwrap();
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 3);
            s.close(h).await.unwrap();
            assert_eq!(bench.bytes("work/f"), b"hel");
            let before = Calls::of(&bench.server);
            let h = opened(&mut s, "f", how(OpenMode::Read, false)).await;
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 3);
            s.close(h).await.unwrap();
            let calls = bench.calls(&before);
            assert!(
                calls.contains(&("READ", 1)),
                "another open keeps nothing of the first"
            );
        }),
    );
}
