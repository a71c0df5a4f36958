//! The target, lane and directory of a conformance case.

#![allow(dead_code)] // each test binary uses its part

mod sessions;

pub use sessions::*;

use plimsoll_lane::{Deadline, Lane, LaneKind, Task};
use plimsoll_measure::Clock;
use plimsoll_plan::Content;
use plimsoll_target::{
    AioDone, ContentPool, EntryKind, OpenHow, OpenMode, Purpose, Session, SessionSpec, Target,
    Visitor, connect,
};
use plimsoll_testkit::table::{NfsServer, Version};
use plimsoll_testkit::{Ganesha, Kind, TestServerError, Viewer};
use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A case that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a session's buffer, unless a case asks for another.
pub const BUFFER: u64 = 64 << 10;

/// Something that every target must do.
pub trait Case: Send + 'static {
    /// Does it, and panics if the target does otherwise.
    async fn run<T: Target>(self, at: Bench<'_, T>);
}

/// The environment of a case.
pub struct Bench<'a, T> {
    /// The target, connected to `dir`.
    pub target: &'a T,
    /// The lane that the case runs on.
    pub lane: Lane,
    /// The lane's deadline; not set.
    pub deadline: Arc<Deadline>,
    /// The lane's clock.
    pub clock: Clock,
    /// The work directory, where this machine sees it.
    pub dir: &'a Path,
    /// The view of files without the target.
    view: &'a View,
}

/// Views of files without the target.
enum View {
    /// By the standard library.
    Here,
    /// By a client that others wrote, below a directory of the export.
    There(Box<RefCell<Viewer>>, String),
}

impl<T: Target> Bench<'_, T> {
    /// A session that writes random bytes.
    pub fn session(&self) -> T::Session {
        self.session_with(&pool(Content::Random), 0, BUFFER)
    }

    /// A session that writes from `content`.
    pub fn session_with(&self, content: &ContentPool, number: u64, buffer: u64) -> T::Session {
        let spec = SessionSpec {
            buffer,
            content: content.clone(),
            clock: self.clock.clone(),
            number,
            ..spec()
        };
        self.target.session(&self.lane, &spec).expect("a session")
    }

    /// Path of a name in the work directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The work directory, if this machine sees it.
    pub fn local(&self) -> Option<&Path> {
        matches!(self.view, View::Here).then_some(self.dir)
    }

    /// Number of attempts at a race: few where another client reads all bytes.
    pub fn rounds(&self) -> usize {
        if self.local().is_some() { 20 } else { 2 }
    }

    /// Does something to a name, with the standard library or with the other client.
    #[track_caller]
    fn look<R>(
        &self,
        name: impl AsRef<[u8]>,
        here: impl FnOnce(&Path) -> std::io::Result<R>,
        there: impl FnOnce(&mut Viewer, &[u8]) -> Result<R, TestServerError>,
    ) -> R {
        let name = name.as_ref();
        let done = match self.view {
            View::Here => here(&self.dir.join(OsStr::from_bytes(name))).map_err(|e| e.to_string()),
            View::There(viewer, dir) => {
                let path = match name {
                    b"" => dir.as_bytes().to_vec(),
                    _ => [dir.as_bytes(), b"/", name].concat(),
                };
                there(&mut viewer.borrow_mut(), &path).map_err(|e| e.to_string())
            }
        };
        done.unwrap_or_else(|e| panic!("{}: {e}", String::from_utf8_lossy(name)))
    }

    /// Makes a file without the target.
    #[track_caller]
    pub fn file(&self, name: impl AsRef<[u8]>, bytes: &[u8]) {
        self.look(name, |p| std::fs::write(p, bytes), |v, p| v.write(p, bytes));
    }

    /// Makes a directory without the target.
    #[track_caller]
    pub fn dir(&self, name: &str) {
        self.look(name, |p| std::fs::create_dir_all(p), |v, p| v.make_dirs(p));
    }

    /// Makes a symbolic link without the target.
    #[track_caller]
    pub fn link(&self, name: &str, to: impl AsRef<Path>) {
        let to = to.as_ref();
        let there = |v: &mut Viewer, p: &[u8]| v.link(p, to.as_os_str().as_bytes());
        self.look(name, |p| std::os::unix::fs::symlink(to, p), there);
    }

    /// Gives a file a second name without the target.
    #[track_caller]
    pub fn hard_link(&self, of: &str, name: &str) {
        let old = |p: &[u8]| [&p[..p.len() - name.len()], of.as_bytes()].concat();
        let here = |p: &Path| std::fs::hard_link(self.path(of), p);
        self.look(name, here, |v, p| v.hard_link(old(p), p));
    }

    /// The target of a symbolic link, read without the target under test.
    #[track_caller]
    pub fn read_link(&self, name: &str) -> PathBuf {
        let there =
            |v: &mut Viewer, p: &[u8]| v.read_link(p).map(|to| OsString::from_vec(to).into());
        self.look(name, |p| std::fs::read_link(p), there)
    }

    /// Removes a file without the target.
    #[track_caller]
    pub fn remove_file(&self, name: &str) {
        self.look(name, |p| std::fs::remove_file(p), |v, p| v.remove(p));
    }

    /// Permissions of a name, seen without the target.
    #[track_caller]
    pub fn mode(&self, name: &str) -> u32 {
        let here = |p: &Path| Ok(p.symlink_metadata()?.permissions().mode() & 0o7777);
        self.look(name, here, |v, p| v.mode(p))
    }

    /// Sets the permissions of a file without the target.
    #[track_caller]
    pub fn set_mode(&self, name: &str, mode: u32) {
        let here = |p: &Path| std::fs::set_permissions(p, Permissions::from_mode(mode));
        self.look(name, here, |v, p| v.set_mode(p, mode));
    }

    /// The contents of a file, read without the target.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.look(name, |p| std::fs::read(p), |v, p| v.bytes(p))
    }

    /// Whether a name is there, without following it.
    pub fn there(&self, name: &str) -> bool {
        self.kind(name).is_some()
    }

    /// The kind of a name, without following it.
    #[track_caller]
    pub fn kind(&self, name: &str) -> Option<EntryKind> {
        let of = |t: std::fs::FileType| match () {
            () if t.is_file() => EntryKind::File,
            () if t.is_dir() => EntryKind::Dir,
            () if t.is_symlink() => EntryKind::Link,
            () => EntryKind::Other,
        };
        let here = |p: &Path| Ok(p.symlink_metadata().ok().map(|m| of(m.file_type())));
        let there = |v: &mut Viewer, p: &[u8]| {
            Ok(v.kind(p)?.map(|kind| match kind {
                Kind::File => EntryKind::File,
                Kind::Dir => EntryKind::Dir,
                Kind::Link => EntryKind::Link,
                Kind::Other => EntryKind::Other,
            }))
        };
        self.look(name, here, there)
    }

    /// Names in the work directory, sorted.
    #[track_caller]
    pub fn names(&self, dir: &str) -> Vec<String> {
        let here = |p: &Path| {
            let entries = std::fs::read_dir(p)?;
            entries.map(|e| Ok(e?.file_name().into_vec())).collect()
        };
        let names: Vec<Vec<u8>> = self.look(dir, here, |v, p| v.names(p));
        let mut names: Vec<_> = names
            .into_iter()
            .map(|n| String::from_utf8(n).unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Makes the calling thread one that permissions apply to, even if it belongs to root.
pub fn obey_permissions() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).expect("the thread's capabilities");
    let above = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    sets.effective.remove(above);
    set_capabilities(None, sets).expect("whatever one has can be dropped");
}

/// Whether a directory lies in memory, where dropping the cache drops nothing.
pub fn in_memory(dir: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    rustix::fs::statfs(dir).expect("a file system").f_type as u64 == TMPFS_MAGIC
}

/// Whether `bytes` are one transfer from the pool: pieces of it, each as long as it gives.
pub fn is_from(pool: &ContentPool, bytes: &[u8]) -> bool {
    bytes.chunks(pool.longest()).all(|chunk| {
        // More steps than there are pieces.
        (0..4096).any(|step| pool.piece(step, chunk.len()) == chunk)
    })
}

/// Opens a file for this, and creates it if it does not exist.
pub fn making(mode: OpenMode) -> OpenHow {
    how(mode, true)
}

/// Takes all writes that are queued.
pub async fn take_all<S: Session>(session: &mut S) -> Vec<AioDone> {
    let mut done = Vec::new();
    let pending = session.aio_pending();
    session
        .aio_take(pending, &mut done)
        .await
        .expect("no deadline is set");
    assert_eq!(
        session.aio_pending(),
        0,
        "all were taken, and some still pend"
    );
    done
}

/// The location of a case's files.
#[derive(Clone, Copy)]
pub enum Place {
    /// In memory.
    Memory,
    /// Wherever temporary files are.
    Disk,
}

impl Place {
    fn make(self) -> tempfile::TempDir {
        match self {
            Place::Memory => tempfile::tempdir_in("/dev/shm"),
            Place::Disk => tempfile::tempdir(),
        }
        .expect("a directory for the test")
    }
}

/// Runs a case on the target of `url` in a directory of its own.
pub fn check(url: &'static str, place: Place, case: impl Case) {
    let dir = place.make();
    check_in(url, dir.path(), None, case);
}

/// Runs a case through io_uring with more options; on a machine without it, asserts that the target is
/// refused with the reason.
pub fn check_uring(options: &str, place: Place, case: impl Case) {
    let (url, dir) = (format!("posix:?io=uring{options}"), place.make());
    let Some(why) = plimsoll_target::uring_unavailable() else {
        // Threads of the kernel and of the pool, which execute operations, have the rights that this thread has when
        // they are started.
        obey_permissions();
        return check_in(&url, dir.path(), None, case);
    };
    struct Unreached;
    impl Visitor for Unreached {
        type Output = ();
        fn visit<T: Target>(self, _: T) {}
    }
    let place = self::place(dir.path());
    let refused = connect(&url, &place, Purpose::Load, Unreached).unwrap_err();
    let said = format!("target `posix`: io=uring: {why}; io=sync needs none");
    assert_eq!(refused.to_string(), said);
}

/// Runs a case on a target that keeps no files; without `kind`, on the lane it asks for.
pub fn check_null(url: &'static str, kind: Option<LaneKind>, case: impl Case) {
    let dir = Place::Memory.make();
    check_in(url, dir.path(), kind, case);
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "a target that keeps no files left some");
}

/// Runs a case on the target of `url` in `dir`.
pub fn check_in(url: &str, dir: &Path, kind: Option<LaneKind>, case: impl Case) {
    check_at(url, dir, dir, kind, case);
}

/// Runs a case by NFS version 3 on nfs-ganesha.
pub fn check_nfs3(case: impl Case) {
    check_ganesha(|server| server.nfs3_url(""), case);
}

/// Runs a case by NFS version 4 on nfs-ganesha.
pub fn check_nfs4(options: &str, case: impl Case) {
    check_ganesha(|server| server.nfs4_url(options), case);
}

/// Runs a case on nfs-ganesha, one server for all cases of this process.
fn check_ganesha(url: impl FnOnce(&Ganesha) -> String, case: impl Case) {
    static SERVER: OnceLock<Result<Ganesha, TestServerError>> = OnceLock::new();
    static CASES: AtomicU32 = AtomicU32::new(0);
    // It ends with this process.
    let server = SERVER.get_or_init(Ganesha::start);
    let server = server.as_ref().unwrap_or_else(|e| panic!("{e}"));
    let name = format!("case{}", CASES.fetch_add(1, Ordering::Relaxed));
    let seen = server.seen().join(&name);
    std::fs::create_dir(&seen).expect("a directory for the test");
    let place = Path::new("/").join(name);
    check_at(&url(server), &place, &seen, None, case);
}

/// Runs a case by a version of NFS on a server whose files only clients see; what it said if it failed.
pub fn check_on(server: &dyn NfsServer, version: Version, case: impl Case) -> Result<(), String> {
    static CASES: AtomicU32 = AtomicU32::new(0);
    let name = format!("case{}", CASES.fetch_add(1, Ordering::Relaxed));
    let mut viewer = server.viewer().map_err(|e| e.to_string())?;
    viewer.make_dirs(&name).map_err(|e| e.to_string())?;
    let place = Path::new("/").join(&name);
    let view = View::There(Box::new(RefCell::new(viewer)), name.clone());
    let url = server.url(version, "");
    let seen = Path::new("/nowhere/on/this/machine");
    let done = runs(&url, &place, seen, None, view, case);
    // The room is for the next.
    let removed = server.viewer().and_then(|mut v| v.remove_all(&name));
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        text.unwrap_or_else(|| "it panicked".into())
    })?;
    removed.map_err(|e| e.to_string())
}

/// A case that every target with files passes, in a list of all of them.
pub struct FileCase {
    /// Module and name.
    pub path: &'static str,
    /// [`check_on`] of it.
    pub run: fn(&dyn NfsServer, Version) -> Result<(), String>,
}

inventory::collect!(FileCase);

/// Runs a case in what the target calls `place` and the file system of this machine `seen`.
fn check_at(url: &str, place: &Path, seen: &Path, kind: Option<LaneKind>, case: impl Case) {
    if let Err(panic) = runs(url, place, seen, kind, View::Here, case) {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a case; what it panicked with if it did.
fn runs(
    url: &str,
    place: &Path,
    seen: &Path,
    kind: Option<LaneKind>,
    view: View,
    case: impl Case,
) -> std::thread::Result<()> {
    let (url, place, dir) = (url.to_owned(), self::place(place), seen.to_path_buf());
    let (ended, end) = channel();
    let runner = std::thread::spawn(move || {
        let on = OnLane {
            dir,
            kind,
            view,
            case,
        };
        connect(&url, &place, Purpose::Load, on).unwrap_or_else(|e| panic!("{e}"));
        let _ = ended.send(());
    });
    if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
        return Err(Box::new("the case hangs"));
    }
    runner.join()
}

struct OnLane<C> {
    dir: PathBuf,
    kind: Option<LaneKind>,
    view: View,
    case: C,
}

impl<C: Case> Visitor for OnLane<C> {
    type Output = ();

    fn visit<T: Target>(self, target: T) {
        let kind = self.kind.unwrap_or(target.lane_kind());
        let clock = if kind == LaneKind::Virtual {
            Clock::simulated()
        } else {
            Clock::real()
        };
        let deadline = Arc::new(Deadline::default());
        let lane = Lane::new(kind, clock.clone(), deadline.clone());
        let bench = Bench {
            target: &target,
            lane: lane.clone(),
            deadline,
            clock,
            dir: &self.dir,
            view: &self.view,
        };
        let ended = Cell::new(false);
        let (ended_at, case) = (&ended, self.case);
        let task: Task<'_> = Box::pin(async move {
            case.run(bench).await;
            ended_at.set(true);
        });
        lane.run(vec![task]).expect("the case can go on");
        assert!(ended.get(), "the lane ended before the case did");
    }
}

/// Makes tests of cases: on every target that keeps files.
#[macro_export]
macro_rules! on_files {
    ($($(#[$about:meta])* async fn $case:ident($at:ident, $session:ident) $body:block)*) => {$(
        $crate::one_case! {
            $(#[$about])* $case $at $session $body

            inventory::submit! {
                $crate::support::FileCase {
                    path: module_path!(),
                    run: |server, version| $crate::support::check_on(server, version, This),
                }
            }

            #[test]
            fn nfs3_on_ganesha() {
                plimsoll_testkit::needs_root!();
                $crate::support::check_nfs3(This);
            }

            #[test]
            fn nfs4_0_on_ganesha() {
                plimsoll_testkit::needs_root!();
                $crate::support::check_nfs4("minorversion=0", This);
            }

            #[test]
            fn nfs4_1_on_ganesha() {
                plimsoll_testkit::needs_root!();
                $crate::support::check_nfs4("minorversion=1", This);
            }
        }
    )*};
}

/// Makes tests of cases that are about system calls: which errors they give, what is open, and
/// permissions, which a server does not deny to root.
#[macro_export]
macro_rules! on_posix {
    ($($(#[$about:meta])* async fn $case:ident($at:ident, $session:ident) $body:block)*) => {$(
        $crate::one_case! { $(#[$about])* $case $at $session $body }
    )*};
}

/// Makes tests of a case: on `posix` in memory and on disk, and the given ones.
#[macro_export]
macro_rules! one_case {
    ($(#[$about:meta])* $case:ident $at:ident $session:ident $body:block $($more:item)*) => {
        $(#[$about])*
        mod $case {
            use super::*;

            struct This;

            impl $crate::support::Case for This {
                async fn run<T: plimsoll_target::Target>(self, $at: $crate::support::Bench<'_, T>) {
                    #[allow(unused_mut, unused_variables)] // not every case needs it
                    let mut $session = $at.session();
                    $body
                }
            }

            #[test]
            fn posix_in_memory() {
                $crate::support::check("posix", $crate::support::Place::Memory, This);
            }

            #[test]
            fn posix_on_disk() {
                $crate::support::check("posix", $crate::support::Place::Disk, This);
            }

            #[test]
            fn uring_in_memory() {
                $crate::support::check_uring("", $crate::support::Place::Memory, This);
            }

            #[test]
            fn uring_on_disk() {
                $crate::support::check_uring("&depth=2", $crate::support::Place::Disk, This);
            }

            #[test]
            fn uring_with_all_in_the_pool() {
                let all = "&pool=open+stat+delete+rename+mkdir+rmdir+truncate+fsync";
                $crate::support::check_uring(all, $crate::support::Place::Memory, This);
            }

            $($more)*
        }
    };
}
