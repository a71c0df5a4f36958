//! The nfs3 target against the server in memory: what is on the server afterwards, and which
//! procedures an operation became.

use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, Recorder, RowSpec, WindowState};
use plimsoll_nfs::server::{Behaviour, Server, Tree};
use plimsoll_nfs::v3::{Handle, How, Proc, Setting, Status};
use plimsoll_plan::{Content, OpKind, Stream, WorkPlace};
use plimsoll_target::{
    ContentPool, EntryKind, OpError, OpenHow, OpenMode, Purpose, RpcRows, Session, SessionSpec,
    Target, TargetError, Visitor, connect, procedures,
};
use rustix::io::Errno;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

/// A server and the work directory `/work` on it.
struct Bench {
    tree: Arc<Mutex<Tree>>,
    server: Server,
}

impl Bench {
    fn new() -> Self {
        Self::with_faults(&[])
    }

    fn with_faults(faults: &[&str]) -> Self {
        let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
        let behaviour = Behaviour {
            faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
            ..Behaviour::default()
        };
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(listen, tree.clone(), behaviour).unwrap();
        Self { tree, server }
    }

    fn url(&self, more: &str) -> String {
        let at = self.server.address();
        format!("nfs3://{at}/?mountport={}{more}", at.port())
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap()
    }

    fn find(&self, path: &str) -> Result<Handle, Status> {
        let tree = self.tree();
        let names = path.split('/').filter(|n| !n.is_empty());
        let mut at = tree.root();
        for name in names {
            at = tree.lookup(&at, name.as_bytes())?;
        }
        Ok(at)
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        let file = self.find(path).unwrap();
        let tree = self.tree();
        tree.read(&file, 0, u32::MAX).unwrap().0.to_vec()
    }

    fn make(&self, dir: &str, name: &str, bytes: &[u8]) -> Handle {
        let dir = self.find(dir).unwrap();
        let mut tree = self.tree();
        let how = How::Guarded(Setting::NOTHING);
        let file = tree.create(&dir, name.as_bytes(), &how).unwrap();
        tree.write(&file, 0, bytes).unwrap();
        file
    }

    /// Calls since the last time, of each procedure that was called.
    fn calls(&self, before: &Calls) -> Vec<(&'static str, u64)> {
        let now = Calls::of(&self.server);
        let each = Proc::ALL.iter().zip(now.0.iter().zip(&before.0));
        each.filter(|(_, (now, before))| now > before)
            .map(|(p, (now, before))| (p.name(), now - before))
            .collect()
    }

    /// Runs a case on the target, in `/work`.
    fn run(&self, more: &str, case: impl Case) {
        self.try_run(more, case).unwrap();
    }

    fn try_run(&self, more: &str, case: impl Case) -> Result<(), TargetError> {
        let place = place("/work");
        let on = OnLane { case };
        connect(&self.url(more), &place, Purpose::Load, on)
    }
}

struct Calls(Vec<u64>);

impl Calls {
    fn of(server: &Server) -> Self {
        Self(Proc::ALL.iter().map(|p| server.calls(*p)).collect())
    }
}

fn place(dir: &str) -> WorkPlace {
    WorkPlace {
        dir: dir.into(),
        guards: Vec::new(),
        temporary: false,
    }
}

trait Case {
    async fn run<S: Session>(self, session: S);
}

struct OnLane<C> {
    case: C,
}

fn spec(rpc: Option<RpcRows>) -> SessionSpec {
    SessionSpec {
        buffer: 4096,
        content: ContentPool::new(Content::Random, Stream::new(5)).unwrap(),
        clock: Clock::real(),
        number: 0,
        process: 0,
        rpc,
    }
}

impl<C: Case> Visitor for OnLane<C> {
    type Output = ();

    fn visit<T: Target>(self, target: T) {
        let lane = Lane::new(
            target.lane_kind(),
            Clock::real(),
            Arc::new(Deadline::default()),
        );
        let session = target.session(&lane, &spec(None)).unwrap();
        let ended = Cell::new(false);
        let task: Task<'_> = Box::pin(async {
            self.case.run(session).await;
            ended.set(true);
        });
        lane.run(vec![task]).unwrap();
        assert!(ended.get());
    }
}

/// Makes a case of a block.
macro_rules! case {
    ($bench:ident, $session:ident, $body:block) => {{
        struct This<'a>(&'a Bench);
        impl Case for This<'_> {
            #[allow(unused_mut, unused_variables)]
            async fn run<S: Session>(self, mut $session: S) {
                let $bench = self.0;
                $body
            }
        }
        This(&$bench)
    }};
}

fn name<'a, S: Session>(session: &'a mut S, path: &str) -> &'a mut S {
    session.locate(|to| to.extend_from_slice(path.as_bytes()));
    session
}

fn second<S: Session>(session: &mut S, path: &str) {
    session.locate_second(|to| to.extend_from_slice(path.as_bytes()));
}

fn how(mode: OpenMode, create: bool) -> OpenHow {
    OpenHow {
        create,
        ..OpenHow::plain(mode)
    }
}

#[track_caller]
fn error<R>(result: Result<R, OpError>) -> Errno {
    result.err().expect("it must fail").0
}

#[test]
fn an_open_is_lookup_access_and_getattr() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let before = Calls::of(&bench.server);
            let h = name(&mut s, "f")
                .open(how(OpenMode::ReadWrite, false))
                .await
                .unwrap();
            assert_eq!(
                bench.calls(&before),
                [("GETATTR", 1), ("LOOKUP", 1), ("ACCESS", 1)]
            );
            let before = Calls::of(&bench.server);
            assert_eq!(s.read(&h, 1, 100).await.unwrap(), 4);
            s.write(&h, 0, 3).await.unwrap();
            s.close(h).await.unwrap();
            // What was written unstable is committed when the file is closed.
            assert_eq!(
                bench.calls(&before),
                [("READ", 1), ("WRITE", 1), ("COMMIT", 1)]
            );
            let before = Calls::of(&bench.server);
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
            assert_eq!(bench.calls(&before), [("LOOKUP", 1)]);
            let before = Calls::of(&bench.server);
            let h = name(&mut s, "g")
                .open(how(OpenMode::Write, true))
                .await
                .unwrap();
            s.close(h).await.unwrap();
            name(&mut s, "g").unlink().await.unwrap();
            assert_eq!(bench.calls(&before), [("CREATE", 1), ("REMOVE", 1)]);
        }),
    );
    assert!(bench.find("work/f").is_ok() && bench.find("work/g").is_err());
}

/// Transfers longer than a call are cut into pieces, and the bytes are in their places.
#[test]
fn long_transfers_are_cut() {
    let bench = Bench::new();
    bench.run(
        "&rsize=4k&wsize=8k",
        case!(bench, s, {
            let h = name(&mut s, "f")
                .open(how(OpenMode::ReadWrite, true))
                .await
                .unwrap();
            let bytes: Vec<u8> = (0..100_001u32).map(|i| (i / 7) as u8).collect();
            s.write_bytes(&h, 5, &bytes).await.unwrap();
            assert_eq!(bench.server.calls(Proc::Write), 13);
            assert_eq!(bench.bytes("work/f")[5..], bytes);
            let mut read = vec![1; 200_000];
            assert_eq!(s.read_bytes(&h, 4, &mut read).await.unwrap(), 100_002);
            assert_eq!(read[0], 0);
            assert_eq!(read[1..100_002], bytes);
            // More may be asked for than there is, and not all of that is answered for.
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
            let h = name(&mut s, "f")
                .open(how(OpenMode::Write, true))
                .await
                .unwrap();
            s.write(&h, 0, 10).await.unwrap();
            s.fsync(&h).await.unwrap();
            s.write(&h, 0, 10).await.unwrap();
            self.2.take().unwrap().stop();
            let new = Server::start(self.1, self.0.clone(), Behaviour::default()).unwrap();
            // What was not committed may have gone with the old server.
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
fn names_and_listings() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            for dir in ["d", "d/e"] {
                name(&mut s, dir).make_dir().await.unwrap();
            }
            assert_eq!(error(name(&mut s, "d").make_dir().await), Errno::EXIST);
            for i in 0..3000 {
                bench.make("work/d/e", &format!("{i:08}"), b"x");
            }
            let listed = name(&mut s, "d/e").list().await.unwrap();
            assert_eq!((listed.entries, listed.bytes), (3000, 96_000));
            assert!(
                bench.server.calls(Proc::ReadDir) > 1,
                "in one piece nothing goes on"
            );
            let before = Calls::of(&bench.server);
            let plus = name(&mut s, "d/e").list_plus().await.unwrap();
            assert_eq!(plus.entries, 3000);
            assert!(plus.bytes > listed.bytes);
            assert!(
                bench
                    .calls(&before)
                    .iter()
                    .any(|c| c.0 == "READDIRPLUS" && c.1 > 1)
            );
            let entries = name(&mut s, "d").entries().await.unwrap();
            assert_eq!(entries, [(b"e".to_vec(), EntryKind::Dir)]);
            name(&mut s, "d/e/00000007");
            s.locate_second(|to| to.extend_from_slice(b"d/seven"));
            s.rename().await.unwrap();
            assert!(bench.find("work/d/seven").is_ok());
            assert_eq!(
                error(name(&mut s, "d/e").remove_dir().await),
                Errno::NOTEMPTY
            );
            assert_eq!(error(name(&mut s, "d/none").unlink().await), Errno::NOENT);
            assert_eq!(error(name(&mut s, "d/seven/x").stat().await), Errno::NOTDIR);
            name(&mut s, "d/none").stat_missing().await.unwrap();
            assert_eq!(
                error(name(&mut s, "d/seven").stat_missing().await),
                Errno::EXIST
            );
            name(&mut s, "d/seven").chmod(0o600).await.unwrap();
            let seven = bench.find("work/d/seven").unwrap();
            assert_eq!(bench.tree().attributes(&seven).unwrap().mode, 0o600);
            name(&mut s, "d/seven").access().await.unwrap();
            s.statfs().await.unwrap();
            s.pathconf().await.unwrap();
        }),
    );
}

/// A directory that went and came again has another handle, which is found.
#[test]
fn stale_directories_are_found_anew() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            name(&mut s, "d").make_dir().await.unwrap();
            let h = name(&mut s, "d/f")
                .open(how(OpenMode::Write, true))
                .await
                .unwrap();
            {
                let work = bench.find("work").unwrap();
                let d = bench.find("work/d").unwrap();
                let mut tree = bench.tree();
                tree.remove(&d, b"f").unwrap();
                tree.remove_dir(&work, b"d").unwrap();
                tree.make_dir(&work, b"d", &Setting::NOTHING).unwrap();
            }
            assert_eq!(error(s.write(&h, 0, 1).await), Errno::STALE);
            let h = name(&mut s, "d/f")
                .open(how(OpenMode::Write, true))
                .await
                .unwrap();
            s.write(&h, 0, 7).await.unwrap();
            s.close(h).await.unwrap();
            assert_eq!(bench.bytes("work/d/f").len(), 7);
        }),
    );
}

/// A symbolic link is never followed: neither on the way nor at the end.
#[test]
fn links_are_not_followed() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            let root = bench.tree().root();
            let work = bench.find("work").unwrap();
            let outside = bench
                .tree()
                .make_dir(&root, b"outside", &Setting::NOTHING)
                .unwrap();
            bench.make("outside", "precious", b"keep");
            bench
                .tree()
                .make_link(&work, b"way", &Setting::NOTHING, b"../outside")
                .unwrap();
            bench
                .tree()
                .make_link(&work, b"end", &Setting::NOTHING, b"../outside/precious")
                .unwrap();
            let _ = outside;
            let open = name(&mut s, "way/precious")
                .open(how(OpenMode::Write, true))
                .await;
            assert_eq!(error(open), Errno::NOTDIR);
            assert_eq!(
                error(name(&mut s, "way/precious").unlink().await),
                Errno::NOTDIR
            );
            assert_eq!(error(name(&mut s, "way").entries().await), Errno::NOTDIR);
            let open = name(&mut s, "end").open(how(OpenMode::Write, false)).await;
            assert_eq!(error(open), Errno::LOOP);
            assert_eq!(error(name(&mut s, "end").get().await), Errno::LOOP);
            assert_eq!(
                name(&mut s, "end").stat().await.unwrap().kind,
                EntryKind::Link
            );
            name(&mut s, "end").read_link().await.unwrap();
            name(&mut s, "end").unlink().await.unwrap();
            let out = "../outside/precious";
            let open = name(&mut s, out).open(how(OpenMode::Read, false)).await;
            assert_eq!(error(open), Errno::INVAL);
            assert_eq!(error(name(&mut s, out).stat().await), Errno::INVAL);
            assert_eq!(error(name(&mut s, out).get().await), Errno::INVAL);
            assert_eq!(error(name(&mut s, "..").list().await), Errno::INVAL);
            for climbing in ["../outside/precious", "d/../../outside/precious", ".."] {
                assert_eq!(
                    error(name(&mut s, climbing).check_parent().await),
                    Errno::INVAL
                );
                assert_eq!(error(name(&mut s, climbing).put(b"x").await), Errno::INVAL);
                assert_eq!(
                    error(name(&mut s, climbing).remove(EntryKind::File).await),
                    Errno::INVAL
                );
            }
        }),
    );
    assert_eq!(bench.bytes("outside/precious"), b"keep");
}

#[test]
fn small_files_are_replaced_whole() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            name(&mut s, "m").put(b"one").await.unwrap();
            bench.make("work", "m.new", b"left by a crash");
            name(&mut s, "m").put(&[7; 100_000]).await.unwrap();
            assert_eq!(name(&mut s, "m").get().await.unwrap(), vec![7; 100_000]);
            assert_eq!(name(&mut s, "").entries().await.unwrap().len(), 1);
            assert_eq!(error(name(&mut s, "none").get().await), Errno::NOENT);
        }),
    );
}

/// Making a file that is there: unchecked opens it, and so do the others after they failed.
#[test]
fn ways_to_create() {
    for (option, calls) in [
        ("", vec![("CREATE", 1)]),
        ("&create=unchecked", vec![("CREATE", 1)]),
        ("&create=guarded", vec![("CREATE", 1)]),
        ("&create=exclusive", vec![("SETATTR", 1), ("CREATE", 1)]),
    ] {
        let bench = Bench::new();
        struct This<'a>(&'a Bench, Vec<(&'static str, u64)>);
        impl Case for This<'_> {
            async fn run<S: Session>(self, mut s: S) {
                let before = Calls::of(&self.0.server);
                let h = name(&mut s, "f")
                    .open(how(OpenMode::Write, true))
                    .await
                    .unwrap();
                assert_eq!(self.0.calls(&before), self.1);
                s.write_bytes(&h, 0, b"stays").await.unwrap();
                s.close(h).await.unwrap();
                let h = name(&mut s, "f")
                    .open(how(OpenMode::Write, true))
                    .await
                    .unwrap();
                s.close(h).await.unwrap();
                assert_eq!(self.0.bytes("work/f"), b"stays");
                let cut = OpenHow {
                    truncate: true,
                    ..how(OpenMode::Write, true)
                };
                let h = name(&mut s, "f").open(cut).await.unwrap();
                s.close(h).await.unwrap();
                assert_eq!(self.0.bytes("work/f"), b"");
            }
        }
        bench.run(option, This(&bench, calls));
    }
}

#[test]
fn ends_of_files() {
    let bench = Bench::new();
    bench.run(
        "",
        case!(bench, s, {
            let h = name(&mut s, "f")
                .open(how(OpenMode::ReadWrite, true))
                .await
                .unwrap();
            s.append(&h, 10).await.unwrap();
            s.append(&h, 20).await.unwrap();
            s.write_stable(&h, None, 5).await.unwrap();
            assert_eq!(s.stat_handle(&h).await.unwrap().size, 35);
            s.truncate(&h, 8).await.unwrap();
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 8);
            assert_eq!(s.read(&h, 8, 100).await.unwrap(), 0);
            let before = bench.bytes("work/f");
            assert_eq!(s.modify(&h, 0, 8).await.unwrap(), 16);
            let changed: Vec<u8> = before.iter().map(|b| b.wrapping_add(1)).collect();
            assert_eq!(bench.bytes("work/f"), changed);
            let to = name(&mut s, "g")
                .open(how(OpenMode::Write, true))
                .await
                .unwrap();
            assert_eq!(s.copy(&h, &to, 2, 100).await.unwrap(), 6);
            assert_eq!(bench.bytes("work/g")[2..], changed[2..]);
            let reading = name(&mut s, "f")
                .open(how(OpenMode::Read, false))
                .await
                .unwrap();
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
            let h = name(&mut s, "f")
                .open(how(OpenMode::Write, true))
                .await
                .unwrap();
            for tag in 0..10 {
                s.aio_write(&h, u64::from(tag) * 10_000, 10_000, tag)
                    .unwrap();
            }
            assert_eq!(s.aio_pending(), 10);
            let mut done = Vec::new();
            s.aio_take(4, &mut done).await.unwrap();
            assert!(done.len() >= 4 && done.len() + s.aio_pending() == 10);
            // Closing waits for the rest, which can be taken afterwards.
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

/// Attributes that are kept serve a stat until the file or the name is changed.
#[test]
fn attributes_are_kept_as_asked() {
    let bench = Bench::new();
    bench.run(
        "&cache=attr&actimeo=10m",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let looks = |before: &Calls| bench.calls(before);
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
            let before = Calls::of(&bench.server);
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
            assert_eq!(looks(&before), []);
            // An open asks anew, and every read goes to the server.
            let h = name(&mut s, "f")
                .open(how(OpenMode::ReadWrite, false))
                .await
                .unwrap();
            s.read(&h, 0, 5).await.unwrap();
            s.read(&h, 0, 5).await.unwrap();
            s.stat_handle(&h).await.unwrap();
            s.stat_handle(&h).await.unwrap();
            assert_eq!(
                looks(&before),
                [("GETATTR", 3), ("LOOKUP", 1), ("ACCESS", 1), ("READ", 2)]
            );
            s.write_bytes(&h, 5, b" there").await.unwrap();
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 11);
            s.truncate(&h, 2).await.unwrap();
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 2);
            s.close(h).await.unwrap();
            second(&mut s, "g");
            name(&mut s, "f").rename().await.unwrap();
            assert_eq!(error(name(&mut s, "f").stat().await), Errno::NOENT);
            assert_eq!(name(&mut s, "g").stat().await.unwrap().size, 2);
            name(&mut s, "g").unlink().await.unwrap();
            assert_eq!(error(name(&mut s, "g").stat().await), Errno::NOENT);
        }),
    );
    // After their time they are asked for again.
    bench.run(
        "&cache=attr&actimeo=0s",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let before = Calls::of(&bench.server);
            name(&mut s, "f").stat().await.unwrap();
            name(&mut s, "f").stat().await.unwrap();
            assert_eq!(bench.calls(&before), [("LOOKUP", 2)]);
        }),
    );
}

/// From open to close what was read or written is not read again, and is the same.
#[test]
fn data_are_kept_from_open_to_close() {
    let bench = Bench::new();
    bench.run(
        "&cache=open-to-close",
        case!(bench, s, {
            bench.make("work", "f", b"hello");
            let h = name(&mut s, "f")
                .open(how(OpenMode::ReadWrite, false))
                .await
                .unwrap();
            let before = Calls::of(&bench.server);
            assert_eq!(s.read(&h, 1, 100).await.unwrap(), 4);
            assert_eq!(bench.calls(&before), [("READ", 1)]);
            assert_eq!(s.read(&h, 2, 100).await.unwrap(), 3);
            assert_eq!(s.read(&h, 7, 100).await.unwrap(), 0);
            assert_eq!(s.stat_handle(&h).await.unwrap().size, 5);
            assert_eq!(bench.calls(&before), [("READ", 1)]);
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 5);
            assert_eq!(bench.calls(&before), [("READ", 2)]);
            // An append knows where the end is.
            s.append(&h, 10).await.unwrap();
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 15);
            assert_eq!(bench.calls(&before), [("READ", 2), ("WRITE", 1)]);
            // What is looked at comes from the server.
            let mut bytes = [0; 5];
            assert_eq!(s.read_bytes(&h, 0, &mut bytes).await.unwrap(), 5);
            assert_eq!((&bytes, bench.calls(&before)[0]), (b"hello", ("READ", 3)));
            s.truncate(&h, 3).await.unwrap();
            assert_eq!(s.read(&h, 0, 100).await.unwrap(), 3);
            s.close(h).await.unwrap();
            assert_eq!(bench.bytes("work/f"), b"hel");
            let before = Calls::of(&bench.server);
            let h = name(&mut s, "f")
                .open(how(OpenMode::Read, false))
                .await
                .unwrap();
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

/// What a run calls is counted in its row, with errors by the server's own names.
#[test]
fn procedures_are_recorded() {
    let bench = Bench::with_faults(&["write=nospc:1"]);
    struct Record;
    impl Visitor for Record {
        type Output = Vec<(String, u64, u64)>;

        fn visit<T: Target>(self, target: T) -> Self::Output {
            let names = procedures("nfs3://x");
            let window = Arc::new(WindowState::new(1_000_000_000));
            window.open(0, u64::MAX);
            let recorder = Rc::new(Recorder::new(
                window,
                &vec![RowSpec::default(); names.len()],
            ));
            let rows = names.iter().map(|n| n.to_string()).zip(0..);
            let rows = RpcRows {
                recorder: recorder.clone(),
                rows: rows.collect(),
            };
            let deadline = Arc::new(Deadline::default());
            let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline);
            let mut session = target.session(&lane, &spec(Some(rows))).unwrap();
            let task: Task<'_> = Box::pin(async {
                let s = &mut session;
                let h = name(s, "f").open(how(OpenMode::Write, true)).await.unwrap();
                assert_eq!(error(s.write(&h, 0, 5).await), Errno::NOSPC);
                assert_eq!(error(name(s, "none").stat().await), Errno::NOENT);
            });
            lane.run(vec![task]).unwrap();
            let progress = recorder.progress();
            let of = |(row, name): (usize, &&str)| {
                (
                    name.to_string(),
                    progress.ops(row),
                    recorder.recent(row as u32).0,
                )
            };
            let all = names.iter().enumerate().map(of);
            all.filter(|(_, ops, _)| *ops > 0).collect()
        }
    }
    let done = connect(&bench.url(""), &place("/work"), Purpose::Load, Record).unwrap();
    assert_eq!(done, [("CREATE".to_owned(), 1, 1)]);
}

struct Said;

impl Visitor for Said {
    type Output = (bool, bool, String);

    fn visit<T: Target>(self, target: T) -> Self::Output {
        for kind in [OpKind::Lock, OpKind::MmapRead, OpKind::MmapWrite] {
            assert!(target.cannot(kind).is_some());
        }
        for kind in [
            OpKind::Lookup,
            OpKind::ReadLink,
            OpKind::ListDirPlus,
            OpKind::Read,
        ] {
            assert_eq!(target.cannot(kind), None);
        }
        if target.exists() {
            target.writable().unwrap();
        }
        let space = target.space().unwrap().unwrap();
        assert!(space.bytes > 200 << 20 && space.inodes.is_some());
        if target.made_work_dir() {
            target.remove_work_dir().unwrap();
        }
        (target.exists(), target.made_work_dir(), target.describe())
    }
}

#[test]
fn work_directories() {
    let bench = Bench::new();
    let ask = |dir: &str, purpose| connect(&bench.url(""), &place(dir), purpose, Said);
    let (exists, made, _) = ask("/work", Purpose::Look).unwrap();
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
    // The export itself may be the place.
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
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let refused = says(&format!("nfs3://{nobody}/?mountport={}", at.port()));
    let want = format!(
        "target `nfs3`: NFS version 3 at {nobody}: Connection refused: nothing listens there"
    );
    assert_eq!(refused, want);
    let refused = says(&format!("nfs3://{at}/?mountport={}", nobody.port()));
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
    let silent = Bench::with_faults(&["fsinfo=swallow:1"]);
    let late = says(&silent.url("&timeo=200ms"));
    assert!(late.ends_with("no answer in time"), "{late}");
}
