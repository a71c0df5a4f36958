//! Running cases of NFS targets on a lane, and reading the rows of the results.

#![allow(dead_code)] // each test binary uses its part

#[path = "sessions.rs"]
mod sessions;

use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::{Clock, Collector, Recorder, RowSpec, WindowState};
use plimsoll_target::{
    Purpose, RpcRows, Session, SessionSpec, Target, Visitor, connect, procedures,
};
use plimsoll_testkit::Ganesha;
pub use sessions::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Maximum time to wait for an event.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Length of the measured interval in nanoseconds, longer than any test.
const INTERVAL: u64 = 1 << 60;

/// Counts by name: the successful calls of each row, or the errors of one row.
pub type Counts = BTreeMap<String, u64>;

/// A case with several sessions of one lane.
pub trait Case {
    async fn run<S: Session>(self, sessions: Vec<S>, seen: &Seen);
}

/// The rows of the results while a case runs.
pub struct Seen {
    names: Vec<&'static str>,
    recorder: Rc<Recorder>,
    window: Arc<WindowState>,
    pub lane: Lane,
    pub deadline: Arc<Deadline>,
}

impl Seen {
    /// The number of successful calls of each row so far, without rows that have none.
    pub fn counts(&self) -> Counts {
        let progress = self.recorder.progress();
        let each = self.names.iter().enumerate();
        each.map(|(row, name)| ((*name).to_owned(), progress.ops(row)))
            .filter(|(_, n)| *n > 0)
            .collect()
    }

    pub fn count(&self, name: &str) -> u64 {
        assert!(self.names.contains(&name), "there is no row {name}");
        self.counts().get(name).copied().unwrap_or(0)
    }

    /// The number of errors of a row so far, by name of the error.
    pub fn errors(&self, name: &str) -> Counts {
        let row = self.names.iter().position(|n| *n == name);
        let row = row.unwrap_or_else(|| panic!("there is no row {name}"));
        let lanes = vec![self.recorder.progress()];
        let mut collector = Collector::new(self.window.clone(), lanes, self.names.len());
        let (_, totals) = collector.finish();
        totals.rows[row].errors.clone()
    }

    /// Lets the lane's other tasks run for 50 ms.
    pub async fn rest(&self) {
        self.lane
            .uncancellable_sleep_until(self.lane.now() + 50_000_000)
            .await;
    }
}

struct OnLane<'a, C> {
    url: &'a str,
    sessions: u64,
    case: C,
}

impl<C: Case> Visitor for OnLane<'_, C> {
    type Output = Counts;

    fn visit<T: Target>(self, target: T) -> Counts {
        let names = procedures(self.url);
        let window = Arc::new(WindowState::new(INTERVAL));
        window.open(0, u64::MAX);
        let specs = vec![RowSpec::default(); names.len()];
        let recorder = Rc::new(Recorder::new(window.clone(), &specs));
        let deadline = Arc::new(Deadline::default());
        let lane = Lane::new(LaneKind::Reactor, Clock::real(), deadline.clone());
        let seen = Seen {
            names: names.clone(),
            recorder: recorder.clone(),
            window,
            lane: lane.clone(),
            deadline,
        };
        let rows = names.iter().map(|n| (*n).to_owned()).zip(0..);
        let rows: Arc<[(String, u32)]> = rows.collect();
        let spec = |number| SessionSpec {
            number,
            process: number / 2,
            rpc: Some(RpcRows {
                recorder: recorder.clone(),
                rows: rows.clone(),
            }),
            ..spec()
        };
        let sessions = (0..self.sessions).map(|n| target.session(&lane, &spec(n)).unwrap());
        let sessions = sessions.collect();
        let ended = Cell::new(false);
        let task: Task<'_> = Box::pin(async {
            self.case.run(sessions, &seen).await;
            ended.set(true);
        });
        lane.run(vec![task]).unwrap();
        assert!(ended.get());
        seen.counts()
    }
}

pub fn run(url: &str, dir: &str, sessions: u64, case: impl Case) -> Counts {
    let on = OnLane {
        url,
        sessions,
        case,
    };
    connect(url, &place(dir), Purpose::Load, on).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs all futures concurrently until all are complete.
pub async fn all<'a>(futures: impl IntoIterator<Item = Task<'a>>) {
    let mut left: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>> = futures.into_iter().collect();
    poll_fn(|context| {
        left.retain_mut(|f| f.as_mut().poll(context).is_pending());
        match left.is_empty() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}

pub fn ganesha() -> Ganesha {
    Ganesha::start().unwrap_or_else(|e| panic!("{e}"))
}
