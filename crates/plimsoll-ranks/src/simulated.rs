//! Ranks as processes of a simulation: frames take simulated time, connections can be cut, and processes can be killed
//! at any instant.

use crate::Ranks;
use crate::link::{Incoming, Link, PollRate};
use crate::tree::TreePosition;
use plimsoll_runtime::sync::lock;
use plimsoll_runtime::{ProcessId, SimulationHandle};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum time of a wait for frames.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// Time after which a rank declares the neighbour behind a cut connection lost, like missed heartbeats.
const SILENCE_LIMIT_NS: u64 = 5_000_000_000;

/// Simulated network between ranks.
#[derive(Clone)]
pub struct SimulatedNetwork {
    simulation: SimulationHandle,
    state: Arc<Mutex<NetworkState>>,
    /// Minimum and maximum additional transfer time of a frame, in nanoseconds.
    delay_ns: (u64, u64),
}

/// Arrival time in nanoseconds, and the frame.
type FrameInTransit = (u64, Vec<u8>);

#[derive(Default)]
struct NetworkState {
    /// The processes of the ranks.
    processes: BTreeMap<u32, ProcessId>,
    /// Frames in transit, by sender and receiver, in order of arrival.
    transit: BTreeMap<(u32, u32), VecDeque<FrameInTransit>>,
    /// Cut connections, with the time of the cut in nanoseconds.
    cuts: BTreeMap<(u32, u32), u64>,
    /// Number of frames sent so far, which determines their delays.
    frames: u64,
}

impl SimulatedNetwork {
    /// A network with transfer times from `delay` to `delay + jitter`.
    #[must_use]
    pub fn new(simulation: SimulationHandle, delay: Duration, jitter: Duration) -> Self {
        let ns = |time: Duration| time.as_nanos() as u64;
        Self {
            simulation,
            state: Arc::default(),
            delay_ns: (ns(delay), ns(jitter)),
        }
    }

    /// Registers the simulated process `process` as rank `rank`: if the process dies, the connections of the rank
    /// break.
    pub fn set_process(&self, rank: u32, process: ProcessId) {
        self.lock().processes.insert(rank, process);
    }

    /// Cuts the connection between two ranks in both directions: later frames are lost.
    pub fn cut(&self, one: u32, other: u32) {
        let now = self.simulation.now();
        let mut state = self.lock();
        state.cuts.entry((one, other)).or_insert(now);
        state.cuts.entry((other, one)).or_insert(now);
    }

    /// Cuts the connection between a rank and its parent, in the tree of [`join`](Self::join).
    ///
    /// # Panics
    /// If `rank` is not below `size`, or `fan_out` is 0.
    pub fn cut_from_parent(&self, rank: u32, size: u32, fan_out: u32) {
        if let Some(parent) = TreePosition::new(rank, size, fan_out).parent {
            self.cut(rank, parent);
        }
    }

    /// Connects the calling process as rank `rank` of `size`, in a tree with at most `fan_out` children per rank.
    ///
    /// # Panics
    /// If `rank` is not below `size`, or `fan_out` is 0.
    #[must_use]
    pub fn join(&self, rank: u32, size: u32, fan_out: u32) -> Ranks {
        let place = TreePosition::new(rank, size, fan_out);
        let neighbours = place.neighbours();
        let reported = std::cell::RefCell::new(vec![false; neighbours.len()]);
        let network = self.clone();
        let link = SimulatedLink {
            network,
            rank,
            neighbours,
            reported,
        };
        Ranks::new(place, link)
    }

    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        lock(&self.state)
    }

    fn key(&self) -> usize {
        Arc::as_ptr(&self.state).addr()
    }

    fn send(&self, from: u32, to: u32, frame: Vec<u8>) {
        let now = self.simulation.now();
        let mut state = self.lock();
        if state.cuts.contains_key(&(from, to)) {
            return;
        }
        state.frames += 1;
        let (least, jitter) = self.delay_ns;
        // Golden-ratio hash (Knuth, vol. 3, 6.4): deterministic delays without a shared generator.
        let spread = state.frames.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let delay = least + jitter.saturating_mul(spread) / (1 << 24);
        let transit = state.transit.entry((from, to)).or_default();
        let after = transit.back().map_or(0, |(at, _)| *at);
        transit.push_back(((now + delay).max(after), frame));
        drop(state);
        self.simulation.wake_all(self.key());
    }
}

/// The connections of one rank.
struct SimulatedLink {
    network: SimulatedNetwork,
    rank: u32,
    neighbours: Vec<u32>,
    /// Whether the end of each neighbour has been reported.
    reported: std::cell::RefCell<Vec<bool>>,
}

impl SimulatedLink {
    /// End of a neighbour from which no frame has arrived; `None` while the neighbour is connected and alive.
    fn end_of(&self, state: &NetworkState, neighbour: u32, now: u64) -> Option<Incoming> {
        let pair = (neighbour, self.rank);
        if let Some(since) = state.cuts.get(&pair) {
            let lost = now >= since + SILENCE_LIMIT_NS;
            return lost.then(|| Incoming::Lost("the connection is lost".into()));
        }
        let process = state.processes.get(&neighbour)?;
        let in_transit = state.transit.get(&pair).is_some_and(|t| !t.is_empty());
        let gone = !in_transit && !self.network.simulation.is_alive(*process);
        gone.then(|| Incoming::Gone("its process has ended".into()))
    }
}

impl Link for SimulatedLink {
    fn post(&self, to: usize, frame: Vec<u8>) {
        self.network.send(self.rank, self.neighbours[to], frame);
    }

    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut()) {
        meanwhile();
        self.network.send(self.rank, self.neighbours[to], frame);
    }

    fn receive(&self) -> Option<(usize, Incoming)> {
        let now = self.network.simulation.now();
        let mut state = self.network.lock();
        for (number, neighbour) in self.neighbours.iter().enumerate() {
            let transit = state.transit.entry((*neighbour, self.rank)).or_default();
            if let Some((at, _)) = transit.front()
                && *at <= now
            {
                let (_, frame) = transit.pop_front().expect("it is there");
                return Some((number, Incoming::Frame(frame)));
            }
            if !self.reported.borrow()[number]
                && let Some(end) = self.end_of(&state, *neighbour, now)
            {
                self.reported.borrow_mut()[number] = true;
                return Some((number, end));
            }
        }
        None
    }

    fn wait(&self, _since: Instant, _pace: PollRate) {
        let now = self.network.simulation.now();
        let next = {
            let state = self.network.lock();
            let mine = state.transit.iter().filter(|((_, to), _)| *to == self.rank);
            mine.filter_map(|(_, transit)| Some(transit.front()?.0))
                .min()
        };
        let left = next.map_or(MAX_WAIT, |at| {
            Duration::from_nanos(at.saturating_sub(now)).min(MAX_WAIT)
        });
        self.network.simulation.wait(self.network.key(), left);
    }

    fn flushed(&self) -> bool {
        true
    }

    fn close(&self, _in_order: bool) {}
}
