//! A target for simulations of the whole program: files in the memory of this process, with injected faults. Only
//! [`SimulatedFiles::url`] gives the URL of the target, so users cannot select the target.

mod faults;
mod session;
mod store;

pub use faults::FileFaults;
pub use store::{Call, CallKind};

use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::session::Target;
use crate::session_types::SessionSpec;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_plan::WorkDirSpec;
use plimsoll_runtime::sync::lock;
use rustix::io::Errno;
use session::SimulatedSession;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::Store;

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "simulated",
    form: "",
    // Local paths have no meaning for simulated files.
    storage: FileStorage::Server,
    takes_events: false,
    options: &[],
    row_names: no_rows,
};

/// The simulated file systems of this process, by number.
static ALL: Mutex<BTreeMap<u64, Arc<Mutex<Store>>>> = Mutex::new(BTreeMap::new());

/// Time of the simulation in nanoseconds, without the clock drift of the simulated processes.
fn now() -> u64 {
    let clock = plimsoll_runtime::simulated_clock();
    let clock = clock.expect("simulated files are used in a simulation");
    clock.undrifted().read()
}

/// A simulated file system with injected faults. After the drop of a `SimulatedFiles`, no target has the URL of the
/// file system.
pub struct SimulatedFiles {
    number: u64,
    shared: Arc<Mutex<Store>>,
}

impl SimulatedFiles {
    /// Creates an empty file system; `seed` determines all random choices.
    #[must_use]
    pub fn new(faults: FileFaults, seed: u64) -> Self {
        let shared = Arc::new(Mutex::new(Store::new(faults, seed)));
        let mut all = lock(&ALL);
        let number = all.keys().next_back().map_or(0, |last| last + 1);
        all.insert(number, shared.clone());
        Self { number, shared }
    }

    /// The URL of a target with the simulated files, whose workers are driven by `lanes` lanes per rank.
    #[must_use]
    pub fn url(&self, lanes: usize) -> String {
        format!("{}:{}?lanes={lanes}", SCHEME.name, self.number)
    }

    /// Replaces the faults.
    pub fn set_faults(&self, faults: FileFaults) {
        lock(&self.shared).faults = faults;
    }

    /// Creates a file, and the directories of its path, without a call of a session.
    ///
    /// # Panics
    /// If another file or directory has the path.
    pub fn plant(&self, path: &str, bytes: &[u8]) {
        let (parent, _) = path.rsplit_once('/').expect("paths begin with a slash");
        self.plant_dir(parent);
        lock(&self.shared)
            .put(path.as_bytes(), bytes)
            .expect("nothing else is at the place of a planted file");
    }

    /// Creates a directory, and all directories of its path, without a call of a session.
    pub fn plant_dir(&self, path: &str) {
        let mut store = lock(&self.shared);
        let slashes = path.match_indices('/').map(|(at, _)| at);
        for end in slashes.chain([path.len()]).filter(|end| *end > 0) {
            store.dirs.insert(path.as_bytes()[..end].to_vec());
        }
    }

    /// The contents of all files by path, and all directories by path with a final `/`.
    #[must_use]
    pub fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let store = lock(&self.shared);
        let name = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        let dirs = store.dirs.iter().filter(|d| d.len() > 1);
        let dirs = dirs.map(|d| (name(d) + "/", vec![]));
        let files = store.files.keys().map(|path| {
            let bytes = store.get(path).expect("a file has contents");
            (name(path), bytes)
        });
        dirs.chain(files).collect()
    }

    /// All calls that have returned, in the order of their return. Asynchronous writes are not
    /// included.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.shared).calls.clone()
    }

    /// Paths outside the work directory that sessions used.
    #[must_use]
    pub fn strays(&self) -> Vec<String> {
        lock(&self.shared).strays.clone()
    }
}

impl Drop for SimulatedFiles {
    fn drop(&mut self) {
        lock(&ALL).remove(&self.number);
    }
}

/// The simulated file system that a URL names, and the text of the URL's options; `None` if no such file system exists.
fn found(url: &str) -> Option<(Arc<Mutex<Store>>, &str)> {
    let rest = url.strip_prefix(SCHEME.name)?.strip_prefix(':')?;
    let (number, options) = rest.split_once('?')?;
    let shared = lock(&ALL).get(&number.parse().ok()?)?.clone();
    Some((shared, options))
}

/// Whether a URL names a simulated file system of this process.
pub(crate) fn is_known(url: &str) -> bool {
    found(url).is_some()
}

pub(crate) struct SimulatedTarget {
    shared: Arc<Mutex<Store>>,
    root: Vec<u8>,
    /// Time limit of a call, from the URL's option `timeo`; `None` for calls without a limit.
    limit: Option<Duration>,
    lanes: Option<usize>,
    exists: bool,
    created: bool,
}

pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
) -> Result<SimulatedTarget, TargetError> {
    let (shared, options) = found(url).expect("the registry has asked whether it is known");
    let option = |name: &str| options.split('&').find_map(|o| o.strip_prefix(name));
    let limit = option("timeo=").and_then(|l| l.strip_suffix("ms")?.parse().ok());
    let root = place.dir.as_os_str().as_bytes().to_vec();
    let mut store = lock(&shared);
    let was_there = store.dirs.contains(&root);
    let mut created = false;
    if !was_there && purpose == Purpose::Load {
        store.make_dir(&root).map_err(|e| match e {
            Errno::NOENT => TargetError::NoParent(place.dir.clone()),
            _ => TargetError::NotDir(place.dir.clone()),
        })?;
        created = true;
    }
    drop(store);
    Ok(SimulatedTarget {
        shared,
        root,
        limit: limit.map(Duration::from_millis),
        lanes: option("lanes=").and_then(|n| n.parse().ok()),
        exists: was_there || created,
        created,
    })
}

impl Target for SimulatedTarget {
    type Session = SimulatedSession;

    fn describe(&self) -> String {
        "simulated files".into()
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Reactor
    }

    fn requested_lanes(&self) -> Option<usize> {
        self.lanes
    }

    fn exists(&self) -> bool {
        self.exists
    }

    fn created_work_dir(&self) -> bool {
        self.created
    }

    fn remove_work_dir(&self) -> Result<(), OpError> {
        Ok(lock(&self.shared).remove_dir(&self.root)?)
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some("simulated files are in no page cache")
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<SimulatedSession, OpError> {
        SimulatedSession::new(
            self.shared.clone(),
            self.root.clone(),
            lane,
            spec,
            self.limit,
        )
    }
}
