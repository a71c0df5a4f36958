//! An NFS server in memory, and sessions on the server.

#[path = "../support/sessions.rs"]
#[allow(dead_code)] // the conformance suite uses more
mod sessions;

use plimsoll_lane::{Deadline, Lane, Task};
use plimsoll_measure::Clock;
use plimsoll_nfs::server::{MemoryService, Server, ServerOptions, Service, Tree};
use plimsoll_nfs::v3::{CreateHow, Handle, Proc, Setting, Status};
use plimsoll_target::{Purpose, Session, Target, TargetError, Visitor, connect};
pub use sessions::*;
use std::cell::Cell;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};

/// A server in memory; the targets use the work directory `/work`.
pub struct Bench {
    pub tree: Arc<Mutex<Tree>>,
    pub server: Server,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_faults(&[])
    }

    pub fn with_faults(faults: &[&str]) -> Self {
        let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
        let behaviour = ServerOptions {
            faults: faults.iter().map(|f| f.parse().unwrap()).collect(),
            ..ServerOptions::default()
        };
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = Server::start(listen, tree.clone(), behaviour).unwrap();
        Self { tree, server }
    }

    /// Starts a server with the service that `service` makes of the service in memory.
    pub fn serving<S: Service>(service: impl FnOnce(MemoryService) -> S) -> Self {
        let tree = Arc::new(Mutex::new(Tree::new(256 << 20)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = service(MemoryService::new(tree.clone(), port, 1));
        let server = Server::serve(listener, service, ServerOptions::default()).unwrap();
        Self { tree, server }
    }

    pub fn url(&self, more: &str) -> String {
        let at = self.server.address();
        format!("nfs3://{at}/?mountport={}{more}", at.port())
    }

    pub fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap()
    }

    pub fn find(&self, path: &str) -> Result<Handle, Status> {
        let tree = self.tree();
        let names = path.split('/').filter(|n| !n.is_empty());
        let mut at = tree.root();
        for name in names {
            at = tree.lookup(&at, name.as_bytes())?;
        }
        Ok(at)
    }

    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let file = self.find(path).unwrap();
        let tree = self.tree();
        tree.read(&file, 0, u32::MAX).unwrap().0.to_vec()
    }

    pub fn make(&self, dir: &str, name: &str, bytes: &[u8]) -> Handle {
        let dir = self.find(dir).unwrap();
        let mut tree = self.tree();
        let how = CreateHow::Guarded(Setting::NOTHING);
        let file = tree.create(&dir, name.as_bytes(), &how).unwrap();
        tree.write(&file, 0, bytes).unwrap();
        file
    }

    /// Number of calls since `before` of each procedure that was called since.
    pub fn calls(&self, before: &Calls) -> Vec<(&'static str, u64)> {
        let now = Calls::of(&self.server);
        let each = Proc::ALL.iter().zip(now.0.iter().zip(&before.0));
        each.filter(|(_, (now, before))| now > before)
            .map(|(p, (now, before))| (p.name(), now - before))
            .collect()
    }

    /// Runs a case on the target, in the work directory `/work`.
    pub fn run(&self, more: &str, case: impl Case) {
        self.try_run(more, case).unwrap();
    }

    pub fn try_run(&self, more: &str, case: impl Case) -> Result<(), TargetError> {
        connect(
            &self.url(more),
            &place("/work"),
            Purpose::Load,
            OnLane { case },
        )
    }
}

pub struct Calls(Vec<u64>);

impl Calls {
    pub fn of(server: &Server) -> Self {
        Self(Proc::ALL.iter().map(|p| server.calls(*p)).collect())
    }
}

pub trait Case {
    async fn run<S: Session>(self, session: S);
}

pub struct OnLane<C> {
    pub case: C,
}

impl<C: Case> Visitor for OnLane<C> {
    type Output = ();

    fn visit<T: Target>(self, target: T) {
        let lane = Lane::new(
            target.lane_kind(),
            Clock::real(),
            Arc::new(Deadline::default()),
        );
        let session = target.session(&lane, &spec()).unwrap();
        let ended = Cell::new(false);
        let task: Task<'_> = Box::pin(async {
            self.case.run(session).await;
            ended.set(true);
        });
        lane.run(vec![task]).unwrap();
        assert!(ended.get());
    }
}

/// Makes a case of a block, in which the given names stand for the bench and for the session.
#[macro_export]
macro_rules! case {
    ($bench:ident, $session:ident, $body:block) => {{
        struct This<'a>(&'a $crate::bench::Bench);
        impl $crate::bench::Case for This<'_> {
            #[allow(unused_mut, unused_variables)]
            async fn run<S: plimsoll_target::Session>(self, mut $session: S) {
                let $bench = self.0;
                $body
            }
        }
        This(&$bench)
    }};
}
