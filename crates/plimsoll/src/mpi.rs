//! Transport of frames as MPI messages, between processes started by a launcher. MPI is linked into the program instead
//! of `plimsoll-ranks`, so that the crates in between are compiled once for all MPI libraries.
//!
//! Only point-to-point messages are used: in an MPI collective, a rank can neither leave when another rank fails nor
//! wait without occupying a processor.

use mpi::Threading;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, MatchedReceiveVec, Source};
use mpi::request::{Request, StaticScope};
use mpi::topology::{Communicator, SimpleCommunicator};
use plimsoll_ranks::frame::MAX_SHORT_FRAME;
use plimsoll_ranks::link::{Incoming, Link, PollRate};
use plimsoll_ranks::{ConnectError, FAILURE_DRAIN_TIMEOUT, LaunchInfo, Ranks, TreePosition};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Delay between the last message of a rank and `MPI_Abort`, in which the launcher forwards the output of all ranks.
const ABORT_DELAY: Duration = Duration::from_millis(500);

/// Maximum number of children of a rank in the tree of ranks. A sleeping wait notices messages late, so a low tree
/// matters more than few children: a tree of 1000 ranks has four levels below rank 0.
const FAN_OUT: u32 = 8;
/// Time for which a wait for an MPI message spins before it sleeps. A message takes about a microsecond within a
/// machine, and a few microseconds between machines.
const SPIN_BEFORE_SLEEP: Duration = Duration::from_micros(50);
/// Minimum duration of a sleep between two checks for an MPI message.
const MIN_SLEEP: Duration = Duration::from_micros(20);

/// Initialises MPI and connects the processes.
///
/// # Errors
/// MPI reports another number of processes than the launcher, because the program is linked with another MPI library;
/// or MPI lacks the required thread support.
pub fn join(launch: &LaunchInfo, started: &str) -> Result<Ranks, ConnectError> {
    let Some((universe, threading)) = mpi::initialize_with_threading(Threading::Funneled) else {
        return Err(ConnectError::failed("MPI is initialised already".into()));
    };
    let world = universe.world();
    let (rank, size) = (world.rank() as u32, world.size() as u32);
    if launch.size.is_some_and(|n| n != size) {
        return Err(ConnectError::usage(format!(
            "{started}, but the MPI library of this plimsoll ({}) sees {size}; build plimsoll with \
             the MPI library of the launcher (MPICC=... cargo build --features mpi)",
            library()
        )));
    }
    if threading < Threading::Funneled {
        return Err(ConnectError::failed(
            "the MPI library cannot be used by a program with threads".into(),
        ));
    }
    let place = TreePosition::new(rank, size, FAN_OUT);
    let link = MpiLink {
        neighbours: place.neighbours(),
        world,
        posted: RefCell::default(),
        universe: RefCell::new(Some(universe)),
    };
    Ok(Ranks::new(place, link))
}

/// Name and version of the MPI library.
pub fn library() -> String {
    short_library_name(&mpi::environment::library_version().unwrap_or_default())
}

/// Extracts name and version from the library's version text: `Open MPI v4.1.4, package: ...`, or a table that begins
/// with `MPICH Version:` and `4.0.2`.
fn short_library_name(library: &str) -> String {
    let first = library.lines().next().unwrap_or_default();
    let name = first.split(',').next().unwrap_or_default();
    let name = name.replace("Version:", "");
    name.trim_end_matches('\0')
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Link to neighbours in MPI's world communicator.
struct MpiLink {
    neighbours: Vec<u32>,
    world: SimpleCommunicator,
    posted: RefCell<Vec<Request<'static, [u8], StaticScope>>>,
    /// Finalises MPI on drop; `None` after the link is closed.
    universe: RefCell<Option<Universe>>,
}

impl MpiLink {
    fn process(&self, neighbour: usize) -> mpi::topology::Process<'_> {
        self.world
            .process_at_rank(self.neighbours[neighbour] as i32)
    }
}

impl Link for MpiLink {
    /// True: ranks of MPI close their links together, because `MPI_Finalize` waits for all ranks, and the launcher of
    /// Open MPI 4.1 occasionally crashes or hangs if a rank calls `MPI_Abort` while other ranks are in `MPI_Finalize`.
    fn is_closed_collectively(&self) -> bool {
        true
    }

    fn post(&self, to: usize, frame: Vec<u8>) {
        // MPI may read the frame until the request completes, at an unknown time. The few posted frames (`MAX_POSTS`)
        // are therefore leaked.
        assert!(
            frame.len() <= MAX_SHORT_FRAME,
            "only short frames are posted"
        );
        let frame: &'static [u8] = frame.leak();
        let request = self.process(to).immediate_send(StaticScope, frame);
        self.posted.borrow_mut().push(request);
        self.flushed();
    }

    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut()) {
        let since = Instant::now();
        mpi::request::scope(|scope| {
            let mut request = self.process(to).immediate_send(scope, &frame[..]);
            while let Err(pending) = request.test() {
                request = pending;
                meanwhile();
                self.wait(since, PollRate::Fast);
            }
        });
    }

    fn receive(&self) -> Option<(usize, Incoming)> {
        let message = self.world.any_process().immediate_matched_probe()?;
        let (frame, status) = message.matched_receive_vec::<u8>();
        let sender = status.source_rank() as u32;
        let from = self.neighbours.iter().position(|&n| n == sender)?;
        Some((from, Incoming::Frame(frame)))
    }

    fn wait(&self, since: Instant, pace: PollRate) {
        let waited = since.elapsed();
        if waited < SPIN_BEFORE_SLEEP {
            std::thread::yield_now();
        } else {
            std::thread::sleep((waited / 8).clamp(MIN_SLEEP, pace.max_sleep()));
        }
    }

    fn flushed(&self) -> bool {
        let mut posted = self.posted.borrow_mut();
        let pending = posted.drain(..).filter_map(|r| r.test().err()).collect();
        *posted = pending;
        posted.is_empty()
    }

    fn close(&self, in_order: bool) {
        if !in_order {
            eprintln!(
                "rank {}: another rank has not ended within {} s of a failure; all ranks are aborted",
                self.world.rank(),
                FAILURE_DRAIN_TIMEOUT.as_secs()
            );
            // MPICH's launcher drops pending output when a rank aborts. Other ranks report their errors during the
            // delay.
            std::thread::sleep(ABORT_DELAY);
            self.world.abort(1);
        }
        self.universe.take();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn libraries_are_named_briefly() {
        let open = "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4\0";
        assert_eq!(super::short_library_name(open), "Open MPI v4.1.4");
        let mpich = "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n";
        assert_eq!(super::short_library_name(mpich), "MPICH 4.0.2");
        assert_eq!(super::short_library_name(""), "");
    }
}
