//! What the sessions of a lane share: connections and handles of directories.

use super::Config;
use crate::error::OpError;
use crate::nfs::cache::{CACHED_ATTRIBUTES, CACHED_DATA, Cache};
use crate::nfs::dirs::{Dirs, split};
use crate::nfs::once::Verifiers;
use crate::nfs::rows::{CONNECTED_AGAIN, Connections, SENT_AGAIN};
use crate::session::{RpcRows, SessionSpec};
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use plimsoll_nfs::rpc::{self, Channel};
use plimsoll_nfs::v3::{
    Client, Entry, FileType, GetAttr, Handle, Lookup, Name, NfsError, Observe, Proc, Status,
};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// What the sessions of a lane share.
pub(crate) struct Local {
    pub(super) lane: Lane,
    pub(super) client: Client,
    pub(super) config: Arc<Config>,
    pub(super) dirs: Dirs<Handle>,
    pub(super) cache: Cache,
    pub(super) verifiers: Verifiers,
    /// Symbolic links that are known to be there.
    pub(super) links: RefCell<HashSet<Box<[u8]>>>,
}

impl Local {
    pub(super) fn new(lane: &Lane, config: &Arc<Config>, spec: &SessionSpec) -> Rc<Self> {
        let rows = spec.rpc.clone().map(|rows| Rc::new(Recorded::of(&rows)));
        let tally = spec
            .rpc
            .clone()
            .map(|rows| -> Rc<dyn rpc::Tally> { Rc::new(Connections::of(&rows)) });
        let observe = rows.map(|r| -> Rc<dyn Observe> { r });
        let channel = Channel::new(lane, config.channel.clone(), tally);
        Rc::new(Self {
            lane: lane.clone(),
            client: Client::new(channel, observe),
            config: config.clone(),
            dirs: Dirs::default(),
            cache: Cache::new(config.cache.0, config.cache.1, spec.rpc.clone()),
            verifiers: Verifiers::default(),
            links: RefCell::default(),
        })
    }

    /// The handle of a directory of the work directory. A component that is no directory, a
    /// symbolic link also, is none.
    pub(super) async fn walk(&self, path: &[u8]) -> Result<Handle, NfsError> {
        if path.is_empty() {
            return Ok(self.config.root);
        }
        if let Some(known) = self.dirs.get(path) {
            return Ok(known);
        }
        let (mut begin, mut at) = self.dirs.nearest(path).unwrap_or((0, self.config.root));
        while begin < path.len() {
            let rest = &path[begin..];
            let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
            let name = &rest[..end];
            if !name.is_empty() {
                at = self.step(at, name).await?;
                self.dirs.remember(&path[..begin + end], at);
            }
            begin += end + 1;
        }
        Ok(at)
    }

    async fn step(&self, dir: Handle, name: &[u8]) -> Result<Handle, NfsError> {
        stays(name)?;
        let entry = Entry {
            dir,
            name: Name(name),
        };
        let found = self.client.call::<Lookup, _>(&entry, |f| f).await?;
        let kind = match found.attributes {
            Some(attributes) => attributes.kind,
            None => {
                let object = &found.object;
                self.client.call::<GetAttr, _>(object, |a| a.kind).await?
            }
        };
        match kind {
            FileType::Directory => Ok(found.object),
            _ => Err(NfsError::Status(Status::NotDir)),
        }
    }

    /// Does something to a name in a directory. A directory whose handle was kept and has become
    /// stale is looked for once more.
    pub(super) async fn with_entry<R>(
        &self,
        path: &[u8],
        work: impl AsyncFn(Entry<'_>) -> Result<R, NfsError>,
    ) -> Result<R, OpError> {
        let (dir, name) = split(path);
        stays(name).map_err(super::of_nfs)?;
        let name = Name(name);
        let done = match self.walk(dir).await {
            Ok(handle) => work(Entry { dir: handle, name }).await,
            Err(e) => Err(e),
        };
        let done = match done {
            Err(NfsError::Status(Status::Stale)) if !dir.is_empty() => {
                self.dirs.forget_way(dir);
                match self.walk(dir).await {
                    Ok(handle) => work(Entry { dir: handle, name }).await,
                    Err(e) => Err(e),
                }
            }
            done => done,
        };
        done.map_err(super::of_nfs)
    }

    /// The handle of what a path names, itself if that is a symbolic link.
    pub(super) async fn object(&self, path: &[u8]) -> Result<Handle, OpError> {
        if path.is_empty() {
            return Ok(self.config.root);
        }
        self.with_entry(path, async |entry| {
            self.client.call::<Lookup, _>(&entry, |f| f.object).await
        })
        .await
    }
}

/// Checks that a name does not lead to the directory above.
fn stays(name: &[u8]) -> Result<(), NfsError> {
    match name {
        b".." => Err(NfsError::Status(Status::Inval)),
        _ => Ok(()),
    }
}

/// Writes down what calls did, in the rows of the results.
struct Recorded {
    rows: RpcRows,
    procedures: Vec<Option<u32>>,
}

impl Recorded {
    fn of(rows: &RpcRows) -> Self {
        Self {
            procedures: Proc::ALL.iter().map(|p| rows.row(p.name())).collect(),
            rows: rows.clone(),
        }
    }
}

/// Names of all rows.
pub(crate) fn row_names() -> Vec<&'static str> {
    let procedures = Proc::ALL.iter().map(|p| p.name());
    procedures
        .chain([CACHED_ATTRIBUTES, CACHED_DATA])
        .chain([SENT_AGAIN, CONNECTED_AGAIN])
        .collect()
}

impl Observe for Recorded {
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        let Some(row) = self.procedures[procedure as usize] else {
            return;
        };
        match outcome {
            Ok(()) => self.rows.recorder.record(row, start, end, None, 0),
            Err(e) => self.rows.recorder.record_error(row, end, e.name()),
        }
    }
}
