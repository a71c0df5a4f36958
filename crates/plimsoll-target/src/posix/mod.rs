//! Files in a directory, by system calls relative to the directory; a block device as the only file (`device`).

mod aio;
mod block_device;
mod calls;
pub(crate) mod device;
mod direct;
mod handle;
mod mix_syscalls;
mod names;
mod operations;
mod session;
mod thread_pool;
pub(crate) mod uring;

use crate::connect::{MAX_CREATIONS, Purpose, TargetError};
use crate::error::OpError;
use crate::scheme::{FileStorage, TargetScheme, no_rows};
use crate::session::{Target, without_procedures};
use crate::session_types::{Descriptors, DirectIo, SessionSpec, Space};
use aio::AioThreadPool;
pub use block_device::is_on_block_device;
use calls::SystemCalls;
use device::DeviceInfo;
use mix_syscalls::name_of_descriptor;
use names::LocatedPath;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_plan::{OpKind, WorkDirSpec};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use session::PosixSession;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uring::{IoMethod, IoOptions};

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "posix",
    form: "posix or posix:?io=uring",
    storage: FileStorage::Local,
    takes_events: false,
    options: &[&uring::OPTIONS],
    row_names: no_rows,
};

pub(crate) fn check_url(url: &str) -> Result<(), TargetError> {
    IoOptions::parse(url).map(drop)
}

/// A work directory, or a block device as the only file.
pub(crate) struct Posix {
    root: Arc<OwnedFd>,
    path: PathBuf,
    aio: Arc<AioThreadPool>,
    found: WorkDirOrigin,
    /// Block device to which `root` is open; `None` if `root` is a directory.
    device: Option<DeviceInfo>,
}

/// Whether the work directory existed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkDirOrigin {
    Existing,
    Created,
    Missing,
}

/// Opens the work directory. A missing last component is created if the purpose is load.
pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
) -> Result<Posix, TargetError> {
    let options = IoOptions::parse(url)?;
    debug_assert_ne!(options.method, IoMethod::Uring, "a ring is another target");
    open_work_dir(place, purpose)
}

/// Opens the work directory or the device of a URL, for plain system calls and for io_uring.
fn open(url: &str, place: &WorkDirSpec, purpose: Purpose) -> Result<Posix, TargetError> {
    match device::is_device(url) {
        true => device::open(url),
        false => open_work_dir(place, purpose),
    }
}

/// Options in the URL of a work directory or a device.
fn options(url: &str) -> Result<IoOptions, TargetError> {
    match device::is_device(url) {
        true => device::options(url),
        false => IoOptions::parse(url),
    }
}

fn open_work_dir(place: &WorkDirSpec, purpose: Purpose) -> Result<Posix, TargetError> {
    let path = match place.dir.as_os_str().is_empty() {
        true => Path::new("."),
        false => &place.dir,
    };
    let (root, found) = open_root(path, purpose)?;
    Ok(Posix {
        root: Arc::new(root),
        path: path.into(),
        aio: Arc::default(),
        found,
        device: None,
    })
}

/// Opens the work directory; opens the parent if the work directory does not exist and the purpose
/// is to inspect.
fn open_root(path: &Path, purpose: Purpose) -> Result<(OwnedFd, WorkDirOrigin), TargetError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |path: &Path| rustix::fs::openat(CWD, path, flags, Mode::empty());
    let place = |error: Errno| TargetError::Place {
        path: path.into(),
        error: error.into(),
    };
    match open(path) {
        Err(Errno::NOENT) => {}
        Err(Errno::NOTDIR) => {
            let file = |p: &&Path| p.metadata().is_ok_and(|m| !m.is_dir());
            let file = path.ancestors().find(file).unwrap_or(path);
            return Err(TargetError::NotDir(file.into()));
        }
        other => {
            let fd = other.map_err(place)?;
            check_owner(path, &fd)?;
            return Ok((fd, WorkDirOrigin::Existing));
        }
    }
    let parent = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    // If the parent is missing too, most likely a file system is not mounted: creating the path would measure the
    // underlying disk.
    let holder = open(parent).map_err(|e| match e {
        Errno::NOENT => TargetError::NoParent(parent.into()),
        e => place(e),
    })?;
    if purpose == Purpose::Inspect {
        return Ok((holder, WorkDirOrigin::Missing));
    }
    let mut error = Errno::NOENT;
    for _ in 0..MAX_CREATIONS {
        let origin = match rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o777)) {
            Ok(()) => WorkDirOrigin::Created,
            // Another process has created the directory first, or the name is a dangling symbolic
            // link.
            Err(Errno::EXIST) => {
                error = Errno::EXIST;
                WorkDirOrigin::Existing
            }
            Err(e) => return Err(place(e)),
        };
        match open(path) {
            // Another process has removed the directory.
            Err(Errno::NOENT) => {}
            opened => {
                let fd = opened.map_err(place)?;
                if origin == WorkDirOrigin::Existing {
                    check_owner(path, &fd)?;
                }
                return Ok((fd, origin));
            }
        }
    }
    Err(place(error))
}

/// Refuses a directory, or a symbolic link, that another user made in a directory like `/tmp`, where everyone may
/// create names: the other user may have guessed the name to have this user write files there. Trusts names that root
/// has made, and mount points.
fn check_owner(path: &Path, root: &OwnedFd) -> Result<(), TargetError> {
    let (Some(_), Some(parent)) = (path.file_name(), path.parent()) else {
        return Ok(());
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    let own = rustix::process::geteuid().as_raw();
    let is_trusted = |uid: u32| uid == own || uid == 0;
    // If a file cannot be examined, later uses report the error.
    let (Ok(above), Ok(named), Ok(opened)) = (
        rustix::fs::stat(parent),
        rustix::fs::lstat(path),
        rustix::fs::fstat(root),
    ) else {
        return Ok(());
    };
    let is_mounted = opened.st_dev != above.st_dev && named.st_dev != above.st_dev;
    // Without the sticky bit everyone may replace names in the directory, so the owner of a name
    // proves nothing.
    let shared = (Mode::WOTH | Mode::SVTX).as_raw_mode();
    if above.st_mode & shared != shared || is_mounted {
        return Ok(());
    }
    match [named.st_uid, opened.st_uid]
        .into_iter()
        .find(|uid| !is_trusted(*uid))
    {
        None => Ok(()),
        Some(uid) => Err(TargetError::OfAnother {
            path: path.into(),
            uid,
        }),
    }
}

impl Posix {
    /// The state of a worker that makes system calls.
    fn calls(&self, spec: &SessionSpec) -> Result<SystemCalls, OpError> {
        let name = match &self.device {
            None => LocatedPath::default(),
            Some(_) => LocatedPath::fixed(name_of_descriptor(&self.root)?),
        };
        SystemCalls::new(self.root.clone(), name, spec)
    }
}

impl Target for Posix {
    type Session = PosixSession;

    fn describe(&self) -> String {
        match &self.device {
            None => format!("posix, {}", self.path.display()),
            Some(device) => device.describe(&self.path),
        }
    }

    fn keeps_files(&self) -> bool {
        self.device.is_none()
    }

    fn block_device_bytes(&self) -> Option<u64> {
        self.device.as_ref().map(|device| device.bytes)
    }

    fn descriptors(&self) -> Descriptors {
        Descriptors {
            per_open_file: 1,
            per_lane: 0,
        }
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Blocking
    }

    fn exists(&self) -> bool {
        self.found != WorkDirOrigin::Missing
    }

    fn created_work_dir(&self) -> bool {
        self.found == WorkDirOrigin::Created
    }

    fn remove_work_dir(&self) -> Result<(), OpError> {
        // A directory with the same name may have replaced Plimsoll's directory.
        let named = rustix::fs::lstat(&self.path)?;
        let opened = rustix::fs::fstat(&*self.root)?;
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino) {
            let is_removed = opened.st_nlink == 0;
            return Err(if is_removed {
                Errno::NOENT
            } else {
                Errno::STALE
            }
            .into());
        }
        Ok(rustix::fs::unlinkat(CWD, &self.path, AtFlags::REMOVEDIR)?)
    }

    fn writable(&self) -> Result<(), OpError> {
        use rustix::fs::Access;
        let how = Access::WRITE_OK | Access::EXEC_OK;
        Ok(rustix::fs::accessat(
            &*self.root,
            ".",
            how,
            AtFlags::EACCESS,
        )?)
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        if self.device.is_some() {
            return Ok(None);
        }
        let s = rustix::fs::fstatvfs(&*self.root)?;
        let block = match s.f_frsize {
            0 => s.f_bsize,
            size => size,
        };
        Ok(Some(Space {
            bytes: s.f_bavail.saturating_mul(block),
            inodes: (s.f_files > 0).then_some(s.f_favail),
            block,
        }))
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        // File system types of linux/magic.h.
        const TMPFS: u64 = 0x0102_1994;
        const RAMFS: u64 = 0x8584_58f6;
        let of = rustix::fs::fstatfs(&self.root).ok()?.f_type as u64;
        // The kernel's file system type is 32 bits wide, and some processors sign-extend `f_type` to 64 bits.
        match of & 0xffff_ffff {
            TMPFS => Some("the files of tmpfs are in memory and nowhere else"),
            RAMFS => Some("the files of ramfs are in memory and nowhere else"),
            _ => None,
        }
    }

    fn direct_io(&self) -> DirectIo {
        match self.device {
            None => direct::probe_direct_io(&self.root),
            Some(_) => direct::alignment(&self.root),
        }
    }

    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        match self.device {
            None => without_procedures(kind),
            Some(_) => device::unsupported_reason(kind),
        }
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<PosixSession, OpError> {
        let calls = self.calls(spec)?;
        Ok(PosixSession::new(calls, self.aio.clone(), lane, spec))
    }
}
