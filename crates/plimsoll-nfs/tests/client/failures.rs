//! Servers that are late, disconnect, or send invalid replies.

use super::*;

/// One of four replies never comes: the call is retransmitted, and all calls complete.
#[test]
fn calls_without_an_answer_are_sent_again() {
    let tree = tree();
    let server = serve(&tree, &["getattr=drop-reply:0.25"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), Duration::from_millis(300), 20);
    run(&on, async |c| {
        let sent: Vec<_> = (0..40).map(|_| c.send::<GetAttr>(&root)).collect();
        for sent in sent {
            assert_eq!(sent.done(|a| a.kind).await, Ok(FileType::Directory));
        }
    });
    let again = u64::from(on.told.sent_again.get());
    assert!(again >= 10, "{again}");
    assert_eq!(server.calls(Proc::GetAttr), 40 + again);
}

#[test]
fn a_server_that_never_answers_is_given_up() {
    let tree = tree();
    let server = serve(&tree, &["all=drop-reply:1"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), Duration::from_millis(100), 2);
    run(&on, async |c| {
        let gone = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(gone, Err(NfsError::Rpc(RpcError::TimedOut)));
    });
    // The client connects again after each timeout; a connection on which nothing arrives does not count as
    // re-established.
    assert_eq!(on.told.connected_again.get(), 0);
    assert!(server.calls(Proc::GetAttr) >= 2);
}

/// Connections that are accepted and closed, as by a relay whose server is down, count as one broken connection, until
/// data arrives on a new connection.
#[test]
fn connections_of_no_use_are_not_counted() {
    let tree = tree();
    let listener = TcpListener::bind(any_port()).unwrap();
    let address = listener.local_addr().unwrap();
    let files = tree.clone();
    let serving = std::thread::spawn(move || {
        for _ in 0..4 {
            drop(listener.accept().unwrap());
        }
        let memory = MemoryService::new(files, address.port(), 1);
        Server::serve(listener, memory, ServerOptions::default()).unwrap()
    });
    let root = tree.lock().unwrap().root();
    let on = client(address, PATIENCE, 1);
    run(&on, async |c| {
        c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
    });
    assert_eq!(on.told.connected_again.get(), 1);
    // The pauses between attempts are 10, 20, 40 and 80 ms.
    assert!(on.told.away.get() >= 150_000_000, "{}", on.told.away.get());
    drop(serving.join().unwrap());
}

/// Broken connections are re-established, and calls without a reply are retransmitted.
#[test]
fn broken_connections_are_reestablished() {
    let tree = tree();
    let server = serve(&tree, &["getattr=close:0.05"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 1);
    run(&on, async |c| {
        for _ in 0..100 {
            c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
        }
    });
    // The server counts retransmissions too.
    assert!(on.told.connected_again.get() >= 5);
    assert_eq!(on.told.sent_again.get(), on.told.connected_again.get());
}

/// A server restarts with the same files at the same port; calls in flight are retransmitted and complete.
#[test]
fn a_server_may_go_and_come_again() {
    let tree = tree();
    let server = serve(&tree, &[]);
    let address = server.address();
    let root = tree.lock().unwrap().root();
    let on = client(address, PATIENCE, 1);
    let server = RefCell::new(Some(server));
    run(&on, async |c| {
        c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
        drop(server.borrow_mut().take());
        let sent: Vec<_> = (0..10).map(|_| c.send::<GetAttr>(&root)).collect();
        let new = Server::start(address, tree.clone(), behaviour(&[]));
        *server.borrow_mut() = Some(new.expect("the port is free again"));
        for sent in sent {
            assert_eq!(sent.done(|_| ()).await, Ok(()));
        }
    });
    assert!(on.told.connected_again.get() >= 1);
}

#[test]
fn garbage_is_an_error_at_once() {
    let tree = tree();
    let server = serve(&tree, &["lookup=garbage:1"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 3);
    run(&on, async |c| {
        let strange = c.call::<Lookup, _>(&at(root, "x"), |_| ()).await;
        assert!(
            matches!(strange, Err(NfsError::Rpc(RpcError::NoReply(_)))),
            "{strange:?}"
        );
        // The client makes the next call on a new connection.
        c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
    });
}

#[test]
fn an_address_without_a_listener_is_given_up() {
    // Port 1 belongs to tcpmux, which no machine serves any more.
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let on = client(closed, Duration::from_millis(100), 1);
    let root = Handle::new(b"x").unwrap();
    run(&on, async |c| {
        let gone = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(gone, Err(NfsError::Rpc(RpcError::TimedOut)));
    });
    let refused = BlockingTransport::connect(closed, PATIENCE).unwrap_err();
    assert_eq!(refused.to_string(), "Connection refused");
}

/// A call received by a server: the number of its connection, the source, and the xid.
type NotedCall = (usize, SocketAddr, u32);

/// Notes the calls and replies to them, except to the first transmission of a call of procedure 7. Ends at a call of
/// procedure 9.
fn note_calls(listener: &TcpListener, noted: &Mutex<Vec<NotedCall>>) {
    use std::io::{Read, Write};
    for number in 0.. {
        let (mut stream, from) = listener.accept().unwrap();
        let mut mark = [0; 4];
        while stream.read_exact(&mut mark).is_ok() {
            let len = u32::from_be_bytes(mark) & !(1 << 31);
            let mut call = vec![0; len as usize];
            if stream.read_exact(&mut call).is_err() {
                break;
            }
            let called = plimsoll_nfs::rpc::called(&mut Decoder::new(&call)).unwrap();
            if called.target.procedure == 9 {
                return;
            }
            noted.lock().unwrap().push((number, from, called.xid));
            let again = noted
                .lock()
                .unwrap()
                .iter()
                .filter(|n| n.2 == called.xid)
                .count()
                > 1;
            if called.target.procedure != 7 || again {
                let mut answer = plimsoll_nfs::rpc::reply(called.xid, Accepted::Success);
                plimsoll_nfs::rpc::seal(&mut answer);
                // On a loaded machine, the client may have given up this connection.
                if stream.write_all(&answer).is_err() {
                    break;
                }
            }
        }
    }
}

/// A call without a reply is retransmitted: with version 3 on the same connection, as long as other calls get replies
/// on the connection, and with version 4 on a new connection. The new connection has the same source address, by which
/// servers recognise a retransmission.
#[test]
fn calls_are_sent_again_where_they_may_be() {
    for in_place in [true, false] {
        let listener = TcpListener::bind(any_port()).unwrap();
        let address = listener.local_addr().unwrap();
        let noted = Arc::new(Mutex::new(Vec::<NotedCall>::new()));
        let of_thread = noted.clone();
        let server = std::thread::spawn(move || note_calls(&listener, &of_thread));
        let lane = Lane::new(
            LaneKind::Reactor,
            Clock::real(),
            Arc::new(Deadline::default()),
        );
        let spec = ChannelSpec {
            address,
            relay: None,
            credentials: Credentials::none(),
            connections: 1,
            timeout: 2_000_000_000,
            retries: 100,
            may_retransmit_in_place: in_place,
            max_reply_bytes: 1 << 20,
            silence: None,
        };
        let told = Rc::new(RecordingObserver::default());
        let channel = Channel::new(&lane, spec, Some(told.clone()));
        let target = |procedure| Target {
            program: PROGRAM,
            version: 4,
            procedure,
        };
        let task: Task<'_> = Box::pin(async {
            let silent = channel.call(target(7), &());
            let answered = Cell::new(false);
            let mut silent = std::pin::pin!(async {
                silent.await.0.unwrap();
                answered.set(true);
            });
            let mut others = std::pin::pin!(async {
                while !answered.get() {
                    channel.call(target(0), &()).await.0.unwrap();
                    lane.uncancellable_sleep_until(lane.now() + 20_000_000)
                        .await;
                }
            });
            std::future::poll_fn(|context| {
                use std::future::Future;
                if !answered.get() {
                    let _ = silent.as_mut().poll(context);
                }
                others.as_mut().poll(context)
            })
            .await;
            drop(channel.call(target(9), &()));
            lane.uncancellable_sleep_until(lane.now() + 20_000_000)
                .await;
        });
        lane.run(vec![task]).unwrap();
        server.join().unwrap();
        let noted = noted.lock().unwrap();
        let first = noted[0];
        let again: Vec<_> = noted[1..].iter().filter(|n| n.2 == first.2).collect();
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].0, usize::from(!in_place), "its connection");
        assert_eq!(again[0].1, first.1, "where it comes from");
        assert_eq!(told.connected_again.get(), u32::from(!in_place));
        assert!(told.sent_again.get() >= 1);
    }
}

/// A call is repeated after a pause when the server requests a retry, and each attempt is counted.
#[test]
fn a_server_may_ask_for_time() {
    let tree = tree();
    let server = serve(&tree, &["getattr=jukebox:0.5"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| {
        for _ in 0..4 {
            let got = c.call::<GetAttr, _>(&root, |a| a.kind).await;
            assert_eq!(got, Ok(FileType::Directory));
        }
    });
    let outcomes = on.told.outcomes.borrow();
    let late = Err(NfsError::Status(Status::Jukebox));
    let refused = outcomes.iter().filter(|o| o.1 == late).count();
    assert!(refused >= 3, "{refused}");
    assert_eq!(outcomes.len(), 4 + refused);
    assert_eq!(server.calls(Proc::GetAttr) as usize, 4 + refused);
}

/// A fault rule with a status fails exactly its fraction of the calls.
#[test]
fn faults_are_named() {
    let tree = tree();
    let rule: FaultRule = "write=nospc:0.5".parse().unwrap();
    let behaviour = ServerOptions {
        faults: vec![rule],
        ..ServerOptions::default()
    };
    let server = Server::start(any_port(), tree.clone(), behaviour).unwrap();
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| {
        let file = made(c, root, "f", CreateHow::Unchecked(Setting::NOTHING))
            .await
            .unwrap();
        for _ in 0..10 {
            let args = WriteArgs {
                file,
                offset: 0,
                count: 1,
                stable: Stable::FileSync,
                data: Name(b"x"),
            };
            let _ = c.call::<Write, _>(&args, |_| ()).await;
        }
    });
    let outcomes = on.told.outcomes.borrow();
    let full = NfsError::Status(Status::NoSpc);
    let failed = outcomes
        .iter()
        .filter(|o| **o == (Proc::Write, Err(full)))
        .count();
    assert_eq!(failed, 5);
    assert_eq!(full.name(), "NFS3ERR_NOSPC");
}

/// Calls without a reply delay the end of the run by at most the grace period.
#[test]
fn the_end_of_a_run_ends_calls() {
    let tree = tree();
    let server = serve(&tree, &["all=drop-reply:1"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), Duration::from_secs(3600), 0);
    on.deadline.bring_forward(1);
    run(&on, async |c| {
        let gone = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(gone, Err(NfsError::Rpc(RpcError::Stopped)));
    });
}

/// Bytes after a result are ignored; the replies with such bytes are counted by procedure.
#[test]
fn replies_that_are_too_long_are_taken() {
    let tree = tree();
    let faults = [
        "fsstat=trailing-bytes:1",
        "getattr=trailing-bytes:0.5",
        "lookup=trailing-bytes:1",
    ];
    let server = serve(&tree, &faults);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| {
        for _ in 0..10 {
            let kind = c.call::<GetAttr, _>(&root, |a| a.kind).await;
            assert_eq!(kind, Ok(FileType::Directory));
        }
        let said = c.call::<FsStat, _>(&root, |s| s.total_bytes).await;
        assert_eq!(said, Ok(64 << 20));
        // A reply with an error status has a result, too.
        let missing = c.call::<Lookup, _>(&at(root, "none"), |_| ()).await;
        assert_eq!(missing, Err(NfsError::Status(Status::NoEnt)));
        let access = AccessArgs {
            object: root,
            wanted: access::READ,
        };
        c.call::<Access, _>(&access, |_| ()).await.unwrap();
    });
    let OnLane {
        client, deviations, ..
    } = on;
    drop(client);
    let mut long: Vec<_> = deviations.take_surplus();
    long.sort_by_key(|(p, _)| p.name);
    let long: Vec<_> = long.iter().map(|(p, s)| (p.name, *s)).collect();
    let of = |replies| TrailingBytes {
        replies,
        min_bytes: 4,
        max_bytes: 4,
    };
    assert_eq!(
        long,
        [("FSSTAT", of(1)), ("GETATTR", of(5)), ("LOOKUP", of(1))]
    );
    assert_eq!(deviations.malformed(), [""; 0]);
}

/// A truncated reply is an error with the procedure and the field.
#[test]
fn replies_that_are_too_short_are_named() {
    let tree = tree();
    let server = serve(&tree, &["fsstat=truncated:1", "getattr=truncated:1"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| {
        let short = NfsError::Rpc(RpcError::BadResult(XdrError::Short));
        let said = c.call::<FsStat, _>(&root, |_| ()).await;
        assert_eq!(said, Err(short));
        let said = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(said, Err(short));
    });
    assert_eq!(
        on.deviations.malformed(),
        [
            "the server's FSSTAT reply is too short: it ends in `invarsec` (RFC 1813)",
            "the server's GETATTR reply is too short: it ends in `ctime.nseconds` (RFC 1813)"
        ]
    );
}

/// A blocking caller also ignores and counts bytes after a result, and reports truncated replies.
#[test]
fn replies_before_a_run_are_looked_at_too() {
    let tree = tree();
    let server = serve(&tree, &["fsstat=trailing-bytes:1", "fsinfo=truncated:1"]);
    let root = tree.lock().unwrap().root();
    let who = Credentials::sys("test", 0, 0);
    let mut caller = BlockingTransport::connect(server.address(), PATIENCE).unwrap();
    let deviations = Deviations::default();
    call_blocking::<FsStat, _>(&mut caller, &who, &root, &deviations, |_| ()).unwrap();
    let info = call_blocking::<FsInfo, _>(&mut caller, &who, &root, &deviations, |_| ());
    assert_eq!(
        info,
        Err(NfsError::Rpc(RpcError::BadResult(XdrError::Short)))
    );
    let long = deviations.take_surplus();
    assert_eq!(long[0].0.name, "FSSTAT");
    assert_eq!(long[0].1.min_bytes, 4);
    assert_eq!(
        deviations.malformed(),
        ["the server's FSINFO reply is too short: it ends in `properties` (RFC 1813)"]
    );
}
