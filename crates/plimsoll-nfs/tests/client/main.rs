//! Clients of a lane, and the server in memory, over real sockets.

mod failures;
mod procedures;

use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_nfs::mount;
use plimsoll_nfs::rpc::{
    Accepted, BlockingTransport, Channel, ChannelObserver, ChannelSpec, Credentials, Deviations,
    RpcError, Target, TrailingBytes,
};
use plimsoll_nfs::server::{FaultRule, MemoryService, Server, ServerOptions, Tree};
use plimsoll_nfs::v3::*;
use plimsoll_nfs::xdr::{Decoder, XdrError};
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

fn behaviour(faults: &[&str]) -> ServerOptions {
    ServerOptions {
        delay: Duration::ZERO,
        faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
    }
}

fn serve(tree: &Arc<Mutex<Tree>>, faults: &[&str]) -> Server {
    Server::start(any_port(), tree.clone(), behaviour(faults)).unwrap()
}

/// The events of a channel.
#[derive(Default)]
struct RecordingObserver {
    sent_again: Cell<u32>,
    connected: Cell<u32>,
    connected_again: Cell<u32>,
    /// The maximum time without a connection, in nanoseconds.
    away: Cell<Nanos>,
    outcomes: RefCell<Vec<(Proc, Result<(), NfsError>)>>,
}

impl ChannelObserver for RecordingObserver {
    fn connected(&self) {
        self.connected.set(self.connected.get() + 1);
    }

    fn retransmitted(&self, _: Target, first: Nanos, now: Nanos) {
        assert!(now > first);
        self.sent_again.set(self.sent_again.get() + 1);
    }

    fn reconnected(&self, since: Nanos, now: Nanos) {
        assert!(now > since);
        self.connected_again.set(self.connected_again.get() + 1);
        self.away.set(self.away.get().max(now - since));
    }
}

impl RpcObserver for RecordingObserver {
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        assert!(end >= start);
        self.outcomes.borrow_mut().push((procedure, outcome));
    }
}

struct OnLane {
    lane: Lane,
    deadline: Arc<Deadline>,
    client: Client,
    told: Rc<RecordingObserver>,
    deviations: Arc<Deviations>,
}

/// Creates a client on a lane of this thread.
fn client(address: SocketAddr, timeout: Duration, retries: u32) -> OnLane {
    let deadline = Arc::new(Deadline::default());
    let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline.clone());
    let spec = ChannelSpec {
        address,
        relay: None,
        credentials: Credentials::sys("test", 0, 0),
        connections: 2,
        timeout: timeout.as_nanos() as u64,
        retries,
        may_retransmit_in_place: true,
        max_reply_bytes: 2 << 20,
        silence: None,
    };
    let told = Rc::new(RecordingObserver::default());
    let deviations = Arc::new(Deviations::default());
    let channel = Channel::new(&lane, spec, Some(told.clone()));
    OnLane {
        lane,
        deadline,
        client: Client::new(channel, Some(told.clone()), &deviations),
        told,
        deviations,
    }
}

/// Runs one worker on the client's lane.
fn run(on: &OnLane, work: impl AsyncFnOnce(&Client)) {
    let ended = Cell::new(false);
    let task: Task<'_> = Box::pin(async {
        work(&on.client).await;
        ended.set(true);
    });
    on.lane.run(vec![task]).unwrap();
    assert!(ended.get());
}

fn at(dir: Handle, name: &str) -> Entry<'_> {
    Entry {
        dir,
        name: Name(name.as_bytes()),
    }
}

async fn made(c: &Client, dir: Handle, name: &str, how: CreateHow) -> Result<Handle, NfsError> {
    let args = CreateArgs {
        at: at(dir, name),
        how,
    };
    c.call::<Create, _>(&args, |m| m.object.unwrap()).await
}

#[test]
fn an_export_is_mounted_and_a_wrong_one_is_not() {
    let tree = tree();
    let server = serve(&tree, &[]);
    let who = Credentials::sys("test", 0, 0);
    let deviations = Deviations::default();
    let mut caller = BlockingTransport::connect(server.address(), PATIENCE).unwrap();
    let root = mount::mount(&mut caller, &who, b"/", &deviations).unwrap();
    assert_eq!(root, tree.lock().unwrap().root());
    assert_eq!(
        mount::mount(&mut caller, &who, b"/elsewhere", &deviations),
        Err(mount::MountError::Refused(mount::Status::NoEnt))
    );
    let old = Target {
        program: PROGRAM,
        version: 2,
        procedure: 0,
    };
    assert_eq!(deviations.take_surplus(), []);
    let reply = caller.call(old, &who, &()).unwrap();
    assert_eq!(
        plimsoll_nfs::rpc::result(&reply).err(),
        Some(RpcError::ProgMismatch(3, 3))
    );
}

/// A thousand workers share two connections, and each gets the replies to its own calls.
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
            let file = made(client, root, &name, CreateHow::Guarded(Setting::NOTHING))
                .await
                .unwrap();
            let bytes = number.to_be_bytes();
            let args = WriteArgs {
                file,
                offset: 0,
                count: 4,
                stable: Stable::FileSync,
                data: Name(&bytes),
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
    assert_eq!((done.get(), on.told.connected.get()), (1000, 2));
    assert_eq!(server.calls(Proc::Read), 3000);
}
