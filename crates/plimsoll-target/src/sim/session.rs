//! A client of a simulated system.

use crate::error::OpError;
use crate::session_types::{AioDone, FilesetEntry, SessionSpec};
use crate::sim::lane_simulation::{InSystem, LaneSimulation};
use crate::timed_writes::wait_until;
use crate::unstored::{Answers, Step};
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{InFlight, Nanos};
use plimsoll_plan::hash::{FNV1A_BASIS, fnv1a};
use plimsoll_plan::{FilesetId, Layout};
use plimsoll_sim::{Operation, OperationClass};
use rustix::io::Errno;
use std::rc::Rc;
use std::sync::Arc;

/// A worker's session on the target `sim`: operations are requests to the simulated system of the lane.
pub(crate) struct SimSession {
    lane: Lane,
    simulation: Rc<LaneSimulation>,
    client: u32,
    /// The worker's current operation.
    in_flight: Arc<InFlight>,
    /// Path of a located name outside all filesets; a hash of the path serves as file number.
    path: Vec<u8>,
    located: SimPlace,
    /// Queued writes that the worker has not taken yet, in queue order.
    queued: Vec<QueuedWrite>,
}

/// A queued write that the worker has not taken yet.
struct QueuedWrite {
    tag: u32,
    start: Nanos,
    bytes: u64,
    in_system: InSystem,
}

/// The numbers of a file and of its directory, by which a simulated system selects servers and cache entries.
#[derive(Clone, Copy, Default)]
pub(crate) struct SimPlace {
    file: u64,
    directory: u64,
}

impl SimSession {
    pub(super) fn new(lane: Lane, simulation: Rc<LaneSimulation>, spec: &SessionSpec) -> Self {
        Self {
            lane,
            simulation,
            client: spec.process as u32,
            in_flight: spec.in_flight.clone(),
            path: Vec::new(),
            located: SimPlace::default(),
            queued: Vec::new(),
        }
    }

    fn submit(&self, (class, place, offset, bytes): Step<SimPlace>) -> InSystem {
        let operation = Operation {
            class,
            row: self.in_flight.row(),
            client: self.client,
            file: place.file,
            directory: place.directory,
            offset,
            bytes,
        };
        self.simulation
            .submit(self.lane.now(), operation, self.lane.current_task())
    }
}

/// The number of a path and the number of its directory: FNV-1a hashes of the bytes, the same on every machine.
fn place_of(path: &[u8]) -> SimPlace {
    let (mut file, mut directory) = (FNV1A_BASIS, 0);
    for &byte in path {
        if byte == b'/' {
            directory = file;
        }
        file = fnv1a(file, byte);
    }
    SimPlace { file, directory }
}

impl Answers for SimSession {
    const HAS_FAST_PATH: bool = false;
    type Place = SimPlace;

    fn locate_path(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.path.clear();
        push(&mut self.path);
        self.located = place_of(&self.path);
    }

    fn locate_in_fileset(&mut self, fileset: FilesetId, layout: &Layout, entry: FilesetEntry) {
        let number =
            |kind: u64, number: u32| kind << 62 | u64::from(fileset.0) << 32 | u64::from(number);
        let (file, directory) = match entry {
            FilesetEntry::File(file) => (number(0, file.0), number(1, layout.dir_of(file).0)),
            FilesetEntry::Dir(dir) => (number(1, dir.0), number(1, dir.0)),
            FilesetEntry::LeafDir(dir) => (number(2, dir), number(2, dir)),
        };
        self.located = SimPlace { file, directory };
    }

    fn located(&self) -> SimPlace {
        self.located
    }

    fn answers_at_once(&self) -> bool {
        false
    }

    async fn answer(&self, steps: &[Step<SimPlace>]) -> Result<(), OpError> {
        for step in steps {
            let (_, succeeded) = self.submit(*step).await;
            if !succeeded {
                return Err(OpError(Errno::IO));
            }
        }
        Ok(())
    }

    fn queue(&mut self, place: SimPlace, offset: u64, len: u64, tag: u32) {
        let in_system = self.submit((OperationClass::DataWrite, place, offset, len));
        self.queued.push(QueuedWrite {
            tag,
            start: self.lane.now(),
            bytes: len,
            in_system,
        });
    }

    fn queued(&self) -> usize {
        self.queued.len()
    }

    async fn take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        let queued = &mut self.queued;
        let waited = wait_until(&self.lane, |_| {
            let ended = queued.iter().filter(|w| w.in_system.ended().is_some());
            ended.count() >= count.min(queued.len())
        })
        .await;
        queued.retain(|write| {
            let Some((end, succeeded)) = write.in_system.ended() else {
                return true;
            };
            let result = if succeeded {
                Ok(write.bytes)
            } else {
                Err(OpError(Errno::IO))
            };
            done.push(AioDone {
                tag: write.tag,
                start: write.start,
                end,
                result,
            });
            false
        });
        waited
    }

    fn under_way(&self) -> Vec<(u32, Nanos)> {
        let writes = self.queued.iter();
        let under_way = writes.filter(|write| write.in_system.ended().is_none());
        under_way.map(|write| (write.tag, write.start)).collect()
    }
}
