//! Clients of a lane against the server in memory, over real sockets.

use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_nfs::mount;
use plimsoll_nfs::rpc::{
    Accepted, Blocking, Channel, ChannelSpec, Credentials, RpcError, Tally, Target,
};
use plimsoll_nfs::server::{Behaviour, FaultRule, Memory, Server, Tree};
use plimsoll_nfs::v3::*;
use plimsoll_nfs::xdr::Decoder;
use std::cell::{Cell, RefCell};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn tree() -> Arc<Mutex<Tree>> {
    Arc::new(Mutex::new(Tree::new(64 << 20)))
}

fn behaviour(faults: &[&str]) -> Behaviour {
    Behaviour {
        delay: Duration::ZERO,
        faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
    }
}

fn serve(tree: &Arc<Mutex<Tree>>, faults: &[&str]) -> Server {
    Server::start(any_port(), tree.clone(), behaviour(faults)).unwrap()
}

/// What a channel told.
#[derive(Default)]
struct Told {
    sent_again: Cell<u32>,
    connected_again: Cell<u32>,
    /// Nanoseconds without a connection, the longest.
    away: Cell<Nanos>,
    outcomes: RefCell<Vec<(Proc, Result<(), NfsError>)>>,
}

impl Tally for Told {
    fn sent_again(&self, _: Target, first: Nanos, now: Nanos) {
        assert!(now > first);
        self.sent_again.set(self.sent_again.get() + 1);
    }

    fn connected_again(&self, since: Nanos, now: Nanos) {
        assert!(now > since);
        self.connected_again.set(self.connected_again.get() + 1);
        self.away.set(self.away.get().max(now - since));
    }
}

impl Observe for Told {
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        assert!(end >= start);
        self.outcomes.borrow_mut().push((procedure, outcome));
    }
}

struct OnLane {
    lane: Lane,
    deadline: Arc<Deadline>,
    client: Client,
    told: Rc<Told>,
}

/// A client on a lane of this thread.
fn client(address: SocketAddr, timeout: Duration, retries: u32) -> OnLane {
    let deadline = Arc::new(Deadline::default());
    let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline.clone());
    let spec = ChannelSpec {
        address,
        through: None,
        who: Credentials::sys("test", 0, 0),
        connections: 2,
        timeout: timeout.as_nanos() as u64,
        retries,
        again_in_place: true,
        longest: 2 << 20,
    };
    let told = Rc::new(Told::default());
    let channel = Channel::new(&lane, spec, Some(told.clone()));
    OnLane {
        lane,
        deadline,
        client: Client::new(channel, Some(told.clone())),
        told,
    }
}

/// Runs one worker to its end.
fn run(on: &OnLane, work: impl AsyncFnOnce(&Client)) {
    let ended = Cell::new(false);
    let task: Task<'_> = Box::pin(async {
        work(&on.client).await;
        ended.set(true);
    });
    on.lane.run(vec![task]).unwrap();
    assert!(ended.get());
}

#[test]
fn an_export_is_mounted_and_a_wrong_one_is_not() {
    let tree = tree();
    let server = serve(&tree, &[]);
    let who = Credentials::sys("test", 0, 0);
    let mut caller = Blocking::connect(server.address(), PATIENCE).unwrap();
    let root = mount::mount(&mut caller, &who, b"/").unwrap();
    assert_eq!(root, tree.lock().unwrap().root());
    assert_eq!(
        mount::mount(&mut caller, &who, b"/elsewhere"),
        Err(mount::MountError::Refused(mount::Status::NoEnt))
    );
    mount::unmount(&mut caller, &who, b"/").unwrap();
    let old = Target {
        program: PROGRAM,
        version: 2,
        procedure: 0,
    };
    let reply = caller.call(old, &who, &()).unwrap();
    assert_eq!(
        plimsoll_nfs::rpc::result(&reply).err(),
        Some(RpcError::ProgMismatch(3, 3))
    );
}

/// Every procedure does what the RFC says, and the tree shows it.
#[test]
fn all_procedures() {
    let tree = tree();
    let server = serve(&tree, &[]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| every_procedure(c, root).await);
    let called: Vec<Proc> = on.told.outcomes.borrow().iter().map(|o| o.0).collect();
    for proc in &Proc::ALL[1..] {
        assert!(called.contains(proc), "{proc} was not called");
        let here = called.iter().filter(|p| *p == proc).count() as u64;
        assert_eq!(server.calls(*proc), here, "{proc}");
    }
    assert_eq!(on.told.sent_again.get() + on.told.connected_again.get(), 0);
}

fn at(dir: Handle, name: &str) -> Entry<'_> {
    Entry {
        dir,
        name: Name(name.as_bytes()),
    }
}

async fn made(c: &Client, dir: Handle, name: &str, how: How) -> Result<Handle, NfsError> {
    let args = CreateArgs {
        at: at(dir, name),
        how,
    };
    c.call::<Create, _>(&args, |m| m.object.unwrap()).await
}

async fn every_procedure(c: &Client, root: Handle) {
    let set = Setting {
        mode: Some(0o640),
        ..Setting::NOTHING
    };
    let file = made(c, root, "f", How::Guarded(set)).await.unwrap();
    let again = made(c, root, "f", How::Guarded(set)).await;
    assert_eq!(again, Err(NfsError::Status(Status::Exist)));
    assert_eq!(made(c, root, "f", How::Unchecked(set)).await, Ok(file));
    let once = made(c, root, "x", How::Exclusive(*b"12345678"))
        .await
        .unwrap();
    assert_eq!(
        made(c, root, "x", How::Exclusive(*b"12345678")).await,
        Ok(once)
    );
    let other = made(c, root, "x", How::Exclusive(*b"87654321")).await;
    assert_eq!(other, Err(NfsError::Status(Status::Exist)));

    data(c, file).await;
    names(c, root, file).await;
    listings(c, root).await;

    let stat = c.call::<FsStat, _>(&root, |s| s).await.unwrap();
    assert_eq!(stat.total_bytes, 64 << 20);
    assert!(stat.free_bytes < stat.total_bytes);
    let info = c.call::<FsInfo, _>(&root, |i| i).await.unwrap();
    assert_eq!((info.read_max, info.write_max), (1 << 20, 1 << 20));
    let conf = c.call::<PathConf, _>(&root, |p| p).await.unwrap();
    assert_eq!(conf.longest_name, 255);
}

async fn data(c: &Client, file: Handle) {
    let write = |offset, bytes: &'static [u8], stable| WriteArgs {
        file,
        offset,
        count: bytes.len() as u32,
        stable,
        data: Data(bytes),
    };
    let unstable = write(3, b"hello", Stable::Unstable);
    let w = c.call::<Write, _>(&unstable, |w| w).await.unwrap();
    assert_eq!((w.count, w.committed), (5, Stable::Unstable));
    let args = CommitArgs {
        file,
        offset: 0,
        count: 0,
    };
    let verifier = c.call::<Commit, _>(&args, |d| d.verifier).await.unwrap();
    assert_eq!(verifier, w.verifier);
    let args = ReadArgs {
        file,
        offset: 1,
        count: 5,
    };
    let read = c
        .call::<Read, _>(&args, |r| (r.data.0.to_vec(), r.count, r.eof))
        .await;
    assert_eq!(read.unwrap(), (b"\0\0hel".to_vec(), 5, false));
    let args = SetAttrArgs {
        object: file,
        set: Setting {
            size: Some(4),
            mode: Some(0o600),
            ..Setting::NOTHING
        },
        guard: None,
    };
    c.call::<SetAttr, _>(&args, |_| ()).await.unwrap();
    let a = c.call::<GetAttr, _>(&file, |a| a).await.unwrap();
    assert_eq!((a.kind, a.size, a.mode), (FileType::Regular, 4, 0o600));
    let guarded = SetAttrArgs {
        guard: Some(Time {
            seconds: 1,
            nanoseconds: 1,
        }),
        ..args
    };
    let refused = c.call::<SetAttr, _>(&guarded, |_| ()).await;
    assert_eq!(refused, Err(NfsError::Status(Status::NotSync)));
    let args = AccessArgs {
        object: file,
        wanted: access::READ | access::MODIFY,
    };
    let granted = c.call::<Access, _>(&args, |a| a.granted).await.unwrap();
    assert_eq!(granted, access::READ | access::MODIFY);
}

async fn names(c: &Client, root: Handle, file: Handle) {
    let set = Setting::NOTHING;
    let args = MkDirArgs {
        at: at(root, "d"),
        set,
    };
    let dir = c
        .call::<MkDir, _>(&args, |m| m.object.unwrap())
        .await
        .unwrap();
    let args = SymLinkArgs {
        at: at(dir, "s"),
        set,
        path: Name(b"../f"),
    };
    let link = c
        .call::<SymLink, _>(&args, |m| m.object.unwrap())
        .await
        .unwrap();
    let path = c.call::<ReadLink, _>(&link, |l| l.path.0.to_vec()).await;
    assert_eq!(path.unwrap(), b"../f");
    let args = MkNodArgs {
        at: at(dir, "p"),
        what: Special::Pipe(FileType::Fifo, set),
    };
    c.call::<MkNod, _>(&args, |_| ()).await.unwrap();
    let args = LinkArgs {
        file,
        at: at(dir, "l"),
    };
    c.call::<Link, _>(&args, |_| ()).await.unwrap();
    let a = c.call::<GetAttr, _>(&file, |a| a.links).await;
    assert_eq!(a, Ok(2));
    let args = RenameArgs {
        from: at(dir, "l"),
        to: at(root, "moved"),
    };
    c.call::<Rename, _>(&args, |_| ()).await.unwrap();
    let found = c.call::<Lookup, _>(&at(root, "moved"), |f| f.object).await;
    assert_eq!(found, Ok(file));
    let full = c.call::<RmDir, _>(&at(root, "d"), |_| ()).await;
    assert_eq!(full, Err(NfsError::Status(Status::NotEmpty)));
    for name in ["s", "p"] {
        c.call::<Remove, _>(&at(dir, name), |_| ()).await.unwrap();
    }
    c.call::<RmDir, _>(&at(root, "d"), |_| ()).await.unwrap();
    let stale = c.call::<GetAttr, _>(&dir, |_| ()).await;
    assert_eq!(stale, Err(NfsError::Status(Status::Stale)));
    c.call::<Remove, _>(&at(root, "moved"), |_| ())
        .await
        .unwrap();
}

/// Listings in many small pieces, while names go, give each name once.
async fn listings(c: &Client, root: Handle) {
    let args = MkDirArgs {
        at: at(root, "many"),
        set: Setting::NOTHING,
    };
    let dir = c
        .call::<MkDir, _>(&args, |m| m.object.unwrap())
        .await
        .unwrap();
    for i in 0..100 {
        made(c, dir, &format!("{i:03}"), How::Guarded(Setting::NOTHING))
            .await
            .unwrap();
    }
    let mut seen: Vec<String> = Vec::new();
    let mut args = ReadDirArgs {
        dir,
        cookie: 0,
        verifier: [0; 8],
        count: 512,
    };
    loop {
        let (names, cookie, eof) = c
            .call::<ReadDir, _>(&args, |l| {
                let names = l
                    .entries
                    .iter()
                    .map(|e| String::from_utf8_lossy(e.name.0).into());
                let names: Vec<String> = names.collect();
                (names, l.entries.last().map(|e| e.cookie), l.eof)
            })
            .await
            .unwrap();
        seen.extend(names);
        if eof {
            break;
        }
        args.cookie = cookie.unwrap();
        // The last that was given goes; those after it are found all the same.
        let last = seen.last().unwrap().clone();
        if last.len() == 3 {
            c.call::<Remove, _>(&at(dir, &last), |_| ()).await.unwrap();
        }
    }
    let want = (0..100).map(|i| format!("{i:03}"));
    let want: Vec<String> = [".".into(), "..".into()].into_iter().chain(want).collect();
    assert_eq!(seen, want);
    let plus = ReadDirPlusArgs {
        dir,
        cookie: 0,
        verifier: [0; 8],
        dir_count: 8192,
        max_count: 65536,
    };
    let all = c.call::<ReadDirPlus, _>(&plus, |l| {
        assert!(l.eof);
        assert!(
            l.entries
                .iter()
                .all(|e| e.handle.is_some() && e.attributes.is_some())
        );
        l.entries.len()
    });
    assert!((70..102).contains(&all.await.unwrap()));
    let tight = ReadDirArgs { count: 100, ..args };
    let tight = ReadDirArgs { cookie: 0, ..tight };
    let small = c.call::<ReadDir, _>(&tight, |_| ()).await;
    assert_eq!(small, Err(NfsError::Status(Status::TooSmall)));
}

/// A thousand workers share two connections, and each gets the answers to its own calls.
#[test]
fn workers_share_connections() {
    let tree = tree();
    let server = serve(&tree, &[]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    let done = Cell::new(0);
    let worker = |number: u32| -> Task<'_> {
        let (client, done) = (&on.client, &done);
        Box::pin(async move {
            let name = format!("w{number}");
            let file = made(client, root, &name, How::Guarded(Setting::NOTHING))
                .await
                .unwrap();
            let bytes = number.to_be_bytes();
            let args = WriteArgs {
                file,
                offset: 0,
                count: 4,
                stable: Stable::FileSync,
                data: Data(&bytes),
            };
            client.call::<Write, _>(&args, |_| ()).await.unwrap();
            for _ in 0..3 {
                let args = ReadArgs {
                    file,
                    offset: 0,
                    count: 10,
                };
                let read = client.call::<Read, _>(&args, |r| r.data.0.to_vec()).await;
                assert_eq!(read.unwrap(), bytes);
            }
            done.set(done.get() + 1);
        })
    };
    on.lane.run((0..1000).map(worker).collect()).unwrap();
    assert_eq!(done.get(), 1000);
    assert_eq!(server.calls(Proc::Read), 3000);
}

/// Of four answers one never comes: the call is sent again, and all come to an end.
#[test]
fn calls_without_an_answer_are_sent_again() {
    let tree = tree();
    let server = serve(&tree, &["getattr=swallow:0.25"]);
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
    let server = serve(&tree, &["all=swallow:1"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), Duration::from_millis(100), 2);
    run(&on, async |c| {
        let gone = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(gone, Err(NfsError::Rpc(RpcError::TimedOut)));
    });
    // Each time nothing was heard, so each time there was another connection, of no more use.
    assert_eq!(on.told.connected_again.get(), 0);
    assert!(server.calls(Proc::GetAttr) >= 2);
}

/// Connections that are taken and closed, as by a relay whose server is gone, are one that broke,
/// from the first to when something came again.
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
        let memory = Memory::new(files, address.port(), 1);
        Server::serve(listener, memory, Behaviour::default()).unwrap()
    });
    let root = tree.lock().unwrap().root();
    let on = client(address, PATIENCE, 1);
    run(&on, async |c| {
        c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
    });
    assert_eq!(on.told.connected_again.get(), 1);
    // Between attempts are 10, 20, 40 and 80 ms.
    assert!(on.told.away.get() >= 150_000_000, "{}", on.told.away.get());
    drop(serving.join().unwrap());
}

/// Connections that break are made anew, and what was not answered is sent again.
#[test]
fn broken_connections_are_made_anew() {
    let tree = tree();
    let server = serve(&tree, &["getattr=close:0.05"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 1);
    run(&on, async |c| {
        for _ in 0..100 {
            c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
        }
    });
    // The calls that were sent again count as well.
    assert!(on.told.connected_again.get() >= 5);
    assert_eq!(on.told.sent_again.get(), on.told.connected_again.get());
}

/// A server goes and comes again with the same files at the same port.
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
        server.borrow_mut().take().unwrap().stop();
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
        // The next call has a new connection.
        c.call::<GetAttr, _>(&root, |_| ()).await.unwrap();
    });
}

#[test]
fn nobody_listening_is_given_up() {
    let free = TcpListener::bind(any_port()).unwrap().local_addr().unwrap();
    let on = client(free, Duration::from_millis(100), 1);
    let root = Handle::new(b"x").unwrap();
    run(&on, async |c| {
        let gone = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(gone, Err(NfsError::Rpc(RpcError::TimedOut)));
    });
    let refused = Blocking::connect(free, PATIENCE).unwrap_err();
    assert_eq!(refused.to_string(), "Connection refused");
}

/// What a server noted of a call: the connection that it came on, by its number, where that came
/// from, and the call's number.
type Noted = (usize, SocketAddr, u32);

/// Answers calls but those of procedure 7, which it leaves without an answer until the connection
/// is a second one.
fn note_calls(listener: &TcpListener, noted: &Mutex<Vec<Noted>>) {
    use std::io::{Read, Write};
    for number in 0.. {
        let (mut stream, from) = listener.accept().unwrap();
        let mut mark = [0; 4];
        while stream.read_exact(&mut mark).is_ok() {
            let len = u32::from_be_bytes(mark) & !(1 << 31);
            let mut call = vec![0; len as usize];
            stream.read_exact(&mut call).unwrap();
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
                stream.write_all(&answer).unwrap();
            }
        }
    }
}

/// A call without an answer is sent again: by version 3 on the connection that it was sent on, as
/// long as others are answered there, by version 4 only on another one. That begins where the first
/// did, which is how servers know that the call is the same.
#[test]
fn calls_are_sent_again_where_they_may_be() {
    for in_place in [true, false] {
        let listener = TcpListener::bind(any_port()).unwrap();
        let address = listener.local_addr().unwrap();
        let noted = Arc::new(Mutex::new(Vec::<Noted>::new()));
        let of_thread = noted.clone();
        let server = std::thread::spawn(move || note_calls(&listener, &of_thread));
        let lane = Lane::new(
            LaneKind::Reactor,
            Clock::real(),
            Arc::new(Deadline::default()),
        );
        let spec = ChannelSpec {
            address,
            through: None,
            who: Credentials::none(),
            connections: 1,
            timeout: 500_000_000,
            retries: 100,
            again_in_place: in_place,
            longest: 1 << 20,
        };
        let told = Rc::new(Told::default());
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
                    lane.timer(lane.now() + 20_000_000).await;
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
            lane.timer(lane.now() + 20_000_000).await;
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

/// A server that asks for it is asked later, and each call is counted.
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

/// Faults with a status are errors of exactly their share of the calls.
#[test]
fn faults_are_named() {
    let tree = tree();
    let rule: FaultRule = "write=nospc:0.5".parse().unwrap();
    let behaviour = Behaviour {
        faults: vec![rule],
        ..Behaviour::default()
    };
    let server = Server::start(any_port(), tree.clone(), behaviour).unwrap();
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), PATIENCE, 0);
    run(&on, async |c| {
        let file = made(c, root, "f", How::Unchecked(Setting::NOTHING))
            .await
            .unwrap();
        for _ in 0..10 {
            let args = WriteArgs {
                file,
                offset: 0,
                count: 1,
                stable: Stable::FileSync,
                data: Data(b"x"),
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

/// When the run is over, calls without an answer do not hold it up for long.
#[test]
fn the_end_of_a_run_ends_calls() {
    let tree = tree();
    let server = serve(&tree, &["all=swallow:1"]);
    let root = tree.lock().unwrap().root();
    let on = client(server.address(), Duration::from_secs(3600), 0);
    on.deadline.bring_forward(1);
    run(&on, async |c| {
        let gone = c.call::<GetAttr, _>(&root, |_| ()).await;
        assert_eq!(gone, Err(NfsError::Rpc(RpcError::Stopped)));
    });
}
