//! Files in a directory, through system calls relative to it.

mod aio;
mod session;

use crate::error::OpError;
use crate::registry::{Options, TargetError};
use crate::session::{SessionSpec, Space, Target};
use aio::Pool;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_plan::WorkPlace;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use session::PosixSession;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// A work directory.
pub(crate) struct Posix {
    root: Arc<OwnedFd>,
    path: std::path::PathBuf,
    aio: Arc<Pool>,
}

impl Posix {
    /// Opens the work directory, which is made if only its last component is missing.
    pub(crate) fn connect(rest: &str, place: &WorkPlace) -> Result<Self, TargetError> {
        Options::parse("posix", rest)?.finish("none: the place is given by --dir")?;
        let path = if place.dir.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &place.dir
        };
        let root = open_root(path)?;
        Ok(Self {
            root: Arc::new(root),
            path: path.into(),
            aio: Arc::default(),
        })
    }
}

fn open_root(path: &Path) -> Result<OwnedFd, TargetError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let place = |error: Errno| TargetError::Place {
        path: path.into(),
        error: error.into(),
    };
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR) => return Err(TargetError::NotDir(path.into())),
        other => return other.map_err(place),
    }
    // A whole missing path is most often a file system that is not mounted: making it would
    // measure the disk below.
    match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o777)) {
        Err(Errno::NOENT) => {
            return Err(TargetError::NoParent(path.parent().unwrap_or(path).into()));
        }
        other => other.map_err(place)?,
    }
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(place)
}

impl Target for Posix {
    type Session = PosixSession;

    fn describe(&self) -> String {
        format!("posix, {}", self.path.display())
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Blocking
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        let s = rustix::fs::fstatvfs(&*self.root)?;
        let block = if s.f_frsize > 0 {
            s.f_frsize
        } else {
            s.f_bsize
        };
        Ok(Some(Space {
            bytes: s.f_bavail.saturating_mul(block),
            inodes: (s.f_files > 0).then_some(s.f_favail),
            block,
        }))
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<PosixSession, OpError> {
        PosixSession::new(self.root.clone(), self.aio.clone(), lane, spec)
    }
}
