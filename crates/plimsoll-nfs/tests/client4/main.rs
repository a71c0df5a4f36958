//! A client of version 4, and a scripted server with rare behaviour.

mod delegations;
mod server;

use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, Nanos};
use plimsoll_nfs::rpc::{ChannelSpec, Credentials, RpcError};
use plimsoll_nfs::server::{Server, ServerOptions};
use plimsoll_nfs::v4::attributes::Attributes;
use plimsoll_nfs::v4::operations::{Create, CreateArgs, CreateType, GetAttr, Op, PutFh};
use plimsoll_nfs::v4::state::{CreateHow, sequence_status, share};
use plimsoll_nfs::v4::types::{FileType, Handle, Status, Text};
use plimsoll_nfs::v4::{
    Call, Client, ClientSpec, Event, FifoMutex, NfsError, OpenFile, OpenOwner, RetryState,
    RpcObserver, StatePart, attributes,
};
use server::{GUARDED, Script, Scripted};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The calls and events of a client.
#[derive(Default)]
struct RecordingObserver {
    calls: RefCell<Vec<(Call, Result<(), NfsError>)>>,
    events: RefCell<Vec<Event>>,
    established: RefCell<Vec<StatePart>>,
}

impl RpcObserver for RecordingObserver {
    fn done(&self, call: Call, _: Nanos, _: Nanos, outcome: Result<(), NfsError>) {
        self.calls.borrow_mut().push((call, outcome));
    }

    fn event(&self, event: Event, _: Nanos, _: Nanos) {
        self.events.borrow_mut().push(event);
    }

    fn established(&self, part: StatePart) {
        self.established.borrow_mut().push(part);
    }
}

impl RecordingObserver {
    /// The number of calls of a kind, including failed calls.
    fn calls_of(&self, call: Call) -> usize {
        self.calls.borrow().iter().filter(|c| c.0 == call).count()
    }

    fn count(&self, event: Event) -> usize {
        self.events.borrow().iter().filter(|e| **e == event).count()
    }
}

/// The configuration of a client.
struct With {
    minor: u32,
    delegations: bool,
    timeout: Duration,
    slots: u32,
    lease: Duration,
}

const PLAIN: With = With {
    minor: 1,
    delegations: false,
    timeout: Duration::from_secs(30),
    slots: 1,
    lease: Duration::from_secs(3600),
};

const DELEGATING: With = With {
    delegations: true,
    ..PLAIN
};

/// Runs a worker with a client that is connected to the server.
fn run(server: &Scripted, with: With, work: impl AsyncFnOnce(&Client, &RecordingObserver)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let serving = Server::serve(listener, server.clone(), ServerOptions::default()).unwrap();
    let lane = Lane::new(
        LaneKind::Reactor,
        Clock::real(),
        Arc::new(Deadline::default()),
    );
    let channel = ChannelSpec {
        address: serving.address(),
        relay: None,
        credentials: Credentials::sys("test", 0, 0),
        connections: 1,
        timeout: with.timeout.as_nanos() as u64,
        retries: 0,
        may_retransmit_in_place: false,
        max_reply_bytes: 1 << 20,
        silence: None,
    };
    let spec = ClientSpec {
        channel,
        minor: with.minor,
        id: "client".into(),
        slots: with.slots,
        max_message_bytes: 1 << 16,
        lease: with.lease.as_nanos() as u64,
        delegations: with.delegations,
        deviations: Arc::default(),
    };
    let told = Rc::new(RecordingObserver::default());
    let client = Client::new(&lane, spec, Some(told.clone()), None);
    let ended = Cell::new(false);
    let task: Task<'_> = Box::pin(async {
        work(&client, &told).await;
        ended.set(true);
    });
    lane.run(vec![task]).unwrap();
    assert!(ended.get());
}

fn scripted(script: Script) -> Scripted {
    let server = Scripted::default();
    server.known().script = script;
    server
}

/// A server that delegates files.
fn delegating() -> Scripted {
    scripted(Script {
        delegate: true,
        ..Script::default()
    })
}

fn dir() -> Handle {
    Handle::new(b"directory").unwrap()
}

async fn make_dir(client: &Client) -> Result<(), NfsError> {
    let args = CreateArgs {
        what: CreateType::Other(FileType::Directory),
        name: Text(b"d"),
        set: Attributes::default(),
    };
    let made = client.call(
        Call::Create,
        |c| {
            c.add::<PutFh>(&dir()).add::<Create>(&args);
        },
        |r| {
            r.skip::<PutFh>()?;
            r.skip::<Create>()
        },
    );
    made.await
}

async fn size(client: &Client) -> Result<Option<u64>, NfsError> {
    let wanted = attributes::Bitmap::of(&[attributes::number::SIZE]);
    let asked = client.call(
        Call::GetAttr,
        |c| {
            c.add::<PutFh>(&dir()).add::<GetAttr>(&wanted);
        },
        |r| {
            r.skip::<PutFh>()?;
            r.get::<GetAttr>()
        },
    );
    asked.await.map(|a| a.size)
}

async fn open(client: &Client, owner: &OpenOwner, access: u32) -> Result<OpenFile, NfsError> {
    let opened = client.open(owner, (dir(), b"f"), access, None);
    opened.await.map(|(file, _)| file)
}

/// A client reports its client id, its sessions and the first open of each open owner.
#[test]
fn established_state_is_reported() {
    for (minor, expected) in [
        (0, vec![StatePart::ClientId]),
        (
            1,
            vec![StatePart::ClientId, StatePart::Session { slots: 2 }],
        ),
    ] {
        let with = With {
            minor,
            slots: 2,
            ..PLAIN
        };
        let server = Scripted::default();
        run(&server, with, async |client, told| {
            let owners = [(); 2].map(|()| client.owner(FifoMutex::default()));
            let _unused = client.owner(FifoMutex::default());
            for owner in owners.iter().chain(&owners) {
                let file = open(client, owner, share::READ).await.unwrap();
                client.close(&file).await.unwrap();
            }
            let owners = [StatePart::OpenOwner; 2];
            let expected = [&expected[..], &owners].concat();
            assert_eq!(*told.established.borrow(), expected, "4.{minor}");
            if minor == 1 {
                server.forget_session();
                assert_eq!(size(client).await.unwrap(), Some(5));
                let again = [StatePart::Session { slots: 2 }];
                assert_eq!(told.established.borrow()[4..], again);
            }
        });
    }
}

/// A call that the server is still executing, sent on a connection that broke, is retransmitted in its slot and
/// executed once. Until the reply, no other call uses the slot, which would get the reply of the first call.
#[test]
fn a_call_that_the_server_is_busy_with_is_done_once() {
    let server = scripted(Script {
        busy: [(Op::Create, 2)].into(),
        ..Script::default()
    });
    let with = With { slots: 2, ..PLAIN };
    run(&server, with, async |client, told| {
        let made = Cell::new(false);
        let mut make = std::pin::pin!(async {
            make_dir(client).await.unwrap();
            made.set(true);
        });
        let mut others = std::pin::pin!(async {
            while !made.get() {
                assert_eq!(size(client).await.unwrap(), Some(5));
            }
        });
        std::future::poll_fn(|context| {
            if !made.get() {
                let _ = make.as_mut().poll(context);
            }
            others.as_mut().poll(context)
        })
        .await;
        assert_eq!(told.count(Event::Recovered), 0);
    });
    assert_eq!(server.count(Op::Create), 1);
    assert_eq!(server.known().script.busy[&Op::Create], 0);
}

/// The seqid of a slot is in doubt after a call without a reply: the client creates a new session, and destroys the old
/// session when it renews the lease.
#[test]
fn a_call_without_an_answer_leaves_its_session() {
    let server = scripted(Script {
        hang: [(Op::Create, true)].into(),
        ..Script::default()
    });
    let with = With {
        timeout: Duration::from_secs(1),
        lease: Duration::from_secs(2),
        ..PLAIN
    };
    run(&server, with, async |client, told| {
        let late = make_dir(client).await;
        assert_eq!(late, Err(NfsError::Rpc(RpcError::TimedOut)));
        server.known().script.go_on = true;
        until(client, || server.count(Op::Create) == 1).await;
        assert_eq!(size(client).await.unwrap(), Some(5));
        assert_eq!(told.count(Event::Recovered), 1);
        assert_eq!(server.count(Op::CreateSession), 2);
        assert_eq!(server.count(Op::ExchangeId), 1);
        until(client, || server.count(Op::DestroySession) == 1).await;
        assert_eq!(size(client).await.unwrap(), Some(5));
    });
}

/// If the server refuses the sequence number of CREATE_SESSION, the client gets the expected number from EXCHANGE_ID.
#[test]
fn an_unexpected_sequence_number_is_queried() {
    let server = Scripted::default();
    run(&server, PLAIN, async |client, _| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        server.forget_session();
        server.known().script.fail = [(Op::CreateSession, vec![Status::SeqMisordered])].into();
        assert_eq!(size(client).await.unwrap(), Some(5));
        assert_eq!(server.count(Op::ExchangeId), 2);
        assert_eq!(server.count(Op::CreateSession), 3);
        // The number of the first session, the next number, which is refused, and the number from EXCHANGE_ID.
        assert_eq!(server.numbers(Op::CreateSession), [7, 8, 9]);
        // The server still has the client and its open file.
        assert_eq!(
            (server.count(Op::ReclaimComplete), server.count(Op::Open)),
            (1, 1)
        );
        client.close(&file).await.unwrap();
        // A restarted server has lost the client and its open file.
        let file = open(client, &owner, share::READ).await.unwrap();
        server.start_anew();
        server.known().script.fail = [(Op::CreateSession, vec![Status::SeqMisordered])].into();
        assert_eq!(size(client).await.unwrap(), Some(5));
        assert_eq!(
            (server.count(Op::ReclaimComplete), server.count(Op::Open)),
            (2, 3)
        );
        client.close(&file).await.unwrap();
    });
}

/// If the server refuses the sequence number from EXCHANGE_ID, too, the client becomes a new client with a new
/// verifier.
#[test]
fn a_sequence_number_that_is_refused_twice_makes_another_client() {
    let server = Scripted::default();
    run(&server, PLAIN, async |client, _| {
        assert_eq!(size(client).await.unwrap(), Some(5));
        server.forget_session();
        let twice = vec![Status::SeqMisordered; 2];
        server.known().script.fail = [(Op::CreateSession, twice)].into();
        assert_eq!(size(client).await.unwrap(), Some(5));
        let verifiers = server.numbers(Op::ExchangeId);
        assert_eq!(verifiers.len(), 3);
        assert!(verifiers[0] == verifiers[1] && verifiers[1] != verifiers[2]);
        assert_eq!(server.count(Op::ReclaimComplete), 2);
    });
}

/// Reads and writes of 4.1 have the seqid 0, which selects the newest state of the open; reads and writes of 4.0 have
/// the open's current seqid.
#[test]
fn another_open_leaves_those_before_it_their_state() {
    for minor in [0, 1] {
        let server = Scripted::default();
        run(&server, With { minor, ..PLAIN }, async |client, _| {
            let owner = client.owner(FifoMutex::default());
            let first = open(client, &owner, share::READ).await.unwrap();
            let before = first.state().unwrap();
            let second = open(client, &owner, share::READ).await.unwrap();
            let after = first.state().unwrap();
            assert_eq!(before.other, after.other);
            let want = if minor == 0 { (1, 2) } else { (0, 0) };
            assert_eq!((before.seqid, after.seqid), want);
            // Only the last close of an open sends a call.
            assert!(!client.close(&first).await.unwrap());
            assert!(client.close(&second).await.unwrap());
            assert_eq!((server.count(Op::Open), server.count(Op::Close)), (2, 1));
        });
    }
}

/// OPEN_DOWNGRADE requests only an access with which the file was opened. A file that is reopened after a loss is
/// opened for all of its access at once.
#[test]
fn opens_for_less_are_of_what_was_opened() {
    let server = Scripted::default();
    run(&server, PLAIN, async |client, told| {
        let owner = client.owner(FifoMutex::default());
        let reads = open(client, &owner, share::READ).await.unwrap();
        let writes = open(client, &owner, share::WRITE).await.unwrap();
        client.close(&writes).await.unwrap();
        assert_eq!(server.numbers(Op::OpenDowngrade), [share::READ]);
        let writes = open(client, &owner, share::WRITE).await.unwrap();
        server.start_anew();
        size(client).await.unwrap();
        assert_eq!(told.count(Event::Recovered), 1);
        let again = *server.numbers(Op::Open).last().unwrap();
        assert_eq!(again, 3 | share::WANT_NO_DELEGATION);
        client.close(&writes).await.unwrap();
        assert_eq!(server.count(Op::OpenDowngrade), 1);
        client.close(&reads).await.unwrap();
        assert_eq!(server.count(Op::Close), 1);
    });
}

/// A file that could not be reopened after one loss can be reopened after the next loss.
#[test]
fn a_file_that_was_lost_can_come_back() {
    let server = Scripted::default();
    run(&server, PLAIN, async |client, _| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        server.start_anew();
        server.known().script.fail = [(Op::Open, vec![Status::Access])].into();
        size(client).await.unwrap();
        let lost = NfsError::Status(Some(Op::Open), Status::Access);
        assert_eq!(file.state(), Err(lost));
        server.start_anew();
        size(client).await.unwrap();
        assert!(file.state().is_ok());
        client.close(&file).await.unwrap();
        assert_eq!(server.count(Op::Close), 1);
    });
}

/// An open that the server loses, with the client, before the confirmation is repeated; the repetition accepts that the
/// file exists. The client is established once for each restart, up to the maximum number of recoveries.
#[test]
fn an_open_that_is_lost_before_its_confirmation_is_repeated() {
    for restarts in [1, 4, 5] {
        let server = scripted(Script {
            confirm: true,
            restart_after_open: restarts,
            ..Script::default()
        });
        run(&server, With { minor: 0, ..PLAIN }, async |client, _| {
            let owner = client.owner(FifoMutex::default());
            let how = Some(CreateHow::Guarded(Attributes::default()));
            let opened = client
                .open(&owner, (dir(), b"f"), share::READ, how)
                .await
                .map(|(file, _)| file);
            let mut opens = vec![share::READ | GUARDED];
            if restarts == 5 {
                let lost = NfsError::Status(Some(Op::OpenConfirm), Status::Expired);
                assert_eq!(opened.err(), Some(lost));
                opens.extend([share::READ; 4]);
                assert_eq!(server.count(Op::SetClientId), 5);
            } else {
                let file = opened.unwrap();
                assert!(file.state().is_ok());
                client.close(&file).await.unwrap();
                assert_eq!(server.count(Op::Close), 1);
                opens.extend(vec![share::READ; restarts as usize]);
                assert_eq!(server.count(Op::SetClientId), 1 + restarts as usize);
            }
            assert_eq!(server.numbers(Op::Open), opens);
        });
    }
}

/// A file that is closed while another worker re-establishes the client is closed by the loss: the client does not send
/// the old stateid, because the server's reply would look like another loss.
#[test]
fn a_close_that_waits_for_the_client_is_not_sent_after_the_loss() {
    let server = Scripted::default();
    run(&server, With { minor: 0, ..PLAIN }, async |client, told| {
        let owner = client.owner(FifoMutex::default());
        let file = open(client, &owner, share::READ).await.unwrap();
        server.start_anew();
        server.known().script.fail = [(Op::GetAttr, vec![Status::StaleClientId])].into();
        let mut sized = std::pin::pin!(async {
            assert_eq!(size(client).await.unwrap(), Some(5));
        });
        let mut closed = std::pin::pin!(client.close(&file));
        let (mut is_sized, mut is_closed) = (false, false);
        std::future::poll_fn(|context| {
            is_sized = is_sized || sized.as_mut().poll(context).is_ready();
            let is_lost = told.calls.borrow().iter().any(|(_, o)| o.is_err());
            if is_lost && !is_closed {
                is_closed = closed.as_mut().poll(context).map(Result::unwrap).is_ready();
            }
            match is_sized && is_closed {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
        assert_eq!(told.count(Event::Recovered), 1);
        assert_eq!(server.count(Op::SetClientId), 2);
        assert_eq!((server.count(Op::Open), server.count(Op::Close)), (1, 0));
    });
}

/// Waits until a condition is true.
async fn until(client: &Client, is: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is() {
            return;
        }
        client
            .lane()
            .uncancellable_sleep_until(client.lane().now() + 10_000_000)
            .await;
    }
    panic!("the condition does not become true");
}

/// Calls with the stateid of a file that is lost with the client and cannot be reopened are not repeated.
#[test]
fn a_file_that_is_gone_is_neither_locked_nor_downgraded() {
    let gone = NfsError::Status(Some(Op::Open), Status::NoEnt);
    for (op, call) in [
        (Op::Lock, Call::Lock),
        (Op::OpenDowngrade, Call::OpenDowngrade),
    ] {
        let server = Scripted::default();
        run(&server, With { minor: 0, ..PLAIN }, async |client, told| {
            let owner = client.owner(FifoMutex::default());
            let reader = open(client, &owner, share::READ).await.unwrap();
            let writer = open(client, &owner, share::WRITE).await.unwrap();
            server.start_anew();
            server.known().script.fail = [
                (op, vec![Status::StaleStateId]),
                (Op::Open, vec![Status::NoGrace, Status::NoEnt]),
            ]
            .into();
            let done = match op {
                Op::Lock => client.lock_and_unlock(&writer, 0, 10).await,
                _ => client.close(&writer).await.map(drop),
            };
            assert_eq!(done, Err(gone));
            assert_eq!(told.calls_of(call), 1);
            assert_eq!(reader.state(), Err(gone));
            assert_eq!(server.count(Op::SetClientId), 2);
        });
    }
}

/// The server may or may not have counted an owner's operation without a reply. In both cases, the next operation is
/// neither refused nor taken for a retransmission.
#[test]
fn numbers_in_doubt_are_found_out() {
    for does in [true, false] {
        let server = Scripted::default();
        let with = With {
            minor: 0,
            timeout: Duration::from_secs(1),
            ..PLAIN
        };
        run(&server, with, async |client, _| {
            let owner = client.owner(FifoMutex::default());
            let first = open(client, &owner, share::READ).await.unwrap();
            server.known().script.hang = [(Op::Close, does)].into();
            let late = client.close(&first).await;
            assert_eq!(late, Err(NfsError::Rpc(RpcError::TimedOut)));
            server.known().script.go_on = true;
            until(client, || server.known().script.hung).await;
            let again = open(client, &owner, share::READ).await.unwrap();
            client.close(&again).await.unwrap();
            let numbers = server.numbers(Op::Close);
            let want: &[u32] = if does { &[1, 3] } else { &[2] };
            assert_eq!(numbers, want, "{does}");
        });
    }
}
