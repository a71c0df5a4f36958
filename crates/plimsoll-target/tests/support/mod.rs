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

/// Maximum duration of a case; a case that takes longer fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Length in bytes of a session's buffer, unless a case chooses another.
pub const BUFFER: u64 = 64 << 10;

/// A case that must pass on every target for which a test runs it.
pub trait Case: Send + 'static {
    /// Runs the case; panics if the target does not behave as required.
    async fn run<T: Target>(self, at: Bench<'_, T>);
}

/// The environment of a case.
pub struct Bench<'a, T> {
    /// The target, connected to the work directory of the case.
    pub target: &'a T,
    /// The lane on which the case runs.
    pub lane: Lane,
    /// The lane's deadline; not set.
    pub deadline: Arc<Deadline>,
    /// The lane's clock.
    pub clock: Clock,
    /// The path of the work directory on this machine; a path that does not exist, if only NFS clients see the files.
    pub dir: &'a Path,
    /// Access to the files without the target under test.
    view: &'a View,
}

/// Ways to access the files without the target under test.
enum View {
    /// By the standard library, in [`Bench::dir`].
    Here,
    /// By an NFS client of another project, below a directory of the export.
    There(Box<RefCell<Viewer>>, String),
}

impl<T: Target> Bench<'_, T> {
    /// A session that writes random bytes.
    pub fn session(&self) -> T::Session {
        self.session_with(&pool(Content::Random), 0, BUFFER)
    }

    /// A session with the given number that writes bytes of `content` and has a buffer of `buffer` bytes.
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

    /// The path of a name in the work directory on this machine.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The work directory, if this machine sees it.
    pub fn local(&self) -> Option<&Path> {
        matches!(self.view, View::Here).then_some(self.dir)
    }

    /// Number of attempts to provoke a race; few, if another client must read all bytes.
    pub fn rounds(&self) -> usize {
        if self.local().is_some() { 20 } else { 2 }
    }

    /// Calls `here` with the path on this machine, or `there` with the other client and its path; panics on an error.
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

    /// Writes a file, without the target under test.
    #[track_caller]
    pub fn file(&self, name: impl AsRef<[u8]>, bytes: &[u8]) {
        self.look(name, |p| std::fs::write(p, bytes), |v, p| v.write(p, bytes));
    }

    /// Creates a directory and its missing parents, without the target under test.
    #[track_caller]
    pub fn dir(&self, name: &str) {
        self.look(name, |p| std::fs::create_dir_all(p), |v, p| v.make_dirs(p));
    }

    /// Creates a symbolic link `name` to `to`, without the target under test.
    #[track_caller]
    pub fn link(&self, name: &str, to: impl AsRef<Path>) {
        let to = to.as_ref();
        let there = |v: &mut Viewer, p: &[u8]| v.link(p, to.as_os_str().as_bytes());
        self.look(name, |p| std::os::unix::fs::symlink(to, p), there);
    }

    /// Gives the file `of` the second name `name`, without the target under test.
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

    /// Removes a file, without the target under test.
    #[track_caller]
    pub fn remove_file(&self, name: &str) {
        self.look(name, |p| std::fs::remove_file(p), |v, p| v.remove(p));
    }

    /// The mode bits of a name, read without the target under test; symbolic links are not followed.
    #[track_caller]
    pub fn mode(&self, name: &str) -> u32 {
        let here = |p: &Path| Ok(p.symlink_metadata()?.permissions().mode() & 0o7777);
        self.look(name, here, |v, p| v.mode(p))
    }

    /// Sets the mode bits of a file or a directory, without the target under test.
    #[track_caller]
    pub fn set_mode(&self, name: &str, mode: u32) {
        let here = |p: &Path| std::fs::set_permissions(p, Permissions::from_mode(mode));
        self.look(name, here, |v, p| v.set_mode(p, mode));
    }

    /// The contents of a file, read without the target under test.
    #[track_caller]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.look(name, |p| std::fs::read(p), |v, p| v.bytes(p))
    }

    /// Whether a name exists; a symbolic link at its end is not followed.
    pub fn there(&self, name: &str) -> bool {
        self.kind(name).is_some()
    }

    /// The kind of a name's entry, or `None` if the name does not exist; a symbolic link at its end is not followed.
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

    /// The sorted names in the directory `dir` of the work directory; `""` stands for the work directory itself.
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

/// Drops the capabilities of the calling thread that bypass permissions, so that permissions apply even to root.
pub fn obey_permissions() {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None).expect("the thread's capabilities");
    let above = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    sets.effective.remove(above);
    set_capabilities(None, sets).expect("whatever one has can be dropped");
}

/// Whether a directory lies on a tmpfs, where dropping the page cache has no effect.
pub fn in_memory(dir: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    rustix::fs::statfs(dir).expect("a file system").f_type as u64 == TMPFS_MAGIC
}

/// Whether `bytes` consist of pieces of the pool, each as long as the longest piece, except the last.
pub fn is_from(pool: &ContentPool, bytes: &[u8]) -> bool {
    bytes.chunks(pool.longest()).all(|chunk| {
        // The pool has fewer than 4096 pieces.
        (0..4096).any(|step| pool.piece(step, chunk.len()) == chunk)
    })
}

/// The way to open a file in `mode` that creates a missing file.
pub fn making(mode: OpenMode) -> OpenHow {
    how(mode, true)
}

/// Waits for all queued writes and takes them.
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
    /// In memory, on a tmpfs.
    Memory,
    /// In the directory for temporary files.
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

/// Runs a case through io_uring with more options of the URL; on a machine without io_uring, asserts that connecting
/// fails with the reason.
pub fn check_uring(options: &str, place: Place, case: impl Case) {
    let (url, dir) = (format!("posix:?io=uring{options}"), place.make());
    let Some(why) = plimsoll_target::uring_unavailable() else {
        // The kernel's threads and the pool's threads, which execute operations, get the rights that this thread has
        // when they start.
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

/// Runs a case on a target that keeps no files, and asserts that no files are left; without `kind`, on the target's
/// kind of lane.
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

/// Runs a case by NFS version 3 on nfs-ganesha with FSAL VFS.
pub fn check_nfs3(case: impl Case) {
    check_ganesha(|server| server.nfs3_url(""), case);
}

/// Runs a case by NFS version 4 on nfs-ganesha with FSAL VFS; `options` selects the minor version.
pub fn check_nfs4(options: &str, case: impl Case) {
    check_ganesha(|server| server.nfs4_url(options), case);
}

/// Runs a case in a directory of its own on nfs-ganesha; all cases of this process share one server.
fn check_ganesha(url: impl FnOnce(&Ganesha) -> String, case: impl Case) {
    static SERVER: OnceLock<Result<Ganesha, TestServerError>> = OnceLock::new();
    static CASES: AtomicU32 = AtomicU32::new(0);
    // The server ends with this process.
    let server = SERVER.get_or_init(Ganesha::start);
    let server = server.as_ref().unwrap_or_else(|e| panic!("{e}"));
    let name = format!("case{}", CASES.fetch_add(1, Ordering::Relaxed));
    let seen = server.seen().join(&name);
    std::fs::create_dir(&seen).expect("a directory for the test");
    let place = Path::new("/").join(name);
    check_at(&url(server), &place, &seen, None, case);
}

/// Runs a case by an NFS version on a server whose files only clients see; the error is the message of the case's
/// panic.
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
    // Frees the server's space for the next case.
    let removed = server.viewer().and_then(|mut v| v.remove_all(&name));
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        text.unwrap_or_else(|| "it panicked".into())
    })?;
    removed.map_err(|e| e.to_string())
}

/// A case of `on_files`, in the list of all such cases.
pub struct FileCase {
    /// Path of the case's module.
    pub path: &'static str,
    /// Runs the case by [`check_on`].
    pub run: fn(&dyn NfsServer, Version) -> Result<(), String>,
}

inventory::collect!(FileCase);

/// Runs a case in the directory that the target calls `place` and this machine calls `seen`; panics if the case panics.
fn check_at(url: &str, place: &Path, seen: &Path, kind: Option<LaneKind>, case: impl Case) {
    if let Err(panic) = runs(url, place, seen, kind, View::Here, case) {
        std::panic::resume_unwind(panic);
    }
}

/// Runs a case on a thread of its own; returns the panic of the case, or an error after [`PATIENCE`].
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

/// Defines the tests of cases on every target that keeps files, and adds the cases to the list of all `FileCase`s.
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

/// Defines the tests of cases about system calls, which run on `posix` only: the cases check errors of system calls,
/// open descriptors, and permissions, which a server does not deny to root.
#[macro_export]
macro_rules! on_posix {
    ($($(#[$about:meta])* async fn $case:ident($at:ident, $session:ident) $body:block)*) => {$(
        $crate::one_case! { $(#[$about])* $case $at $session $body }
    )*};
}

/// Defines the tests of a case on `posix`, by system calls and by io_uring, in memory and on disk, and the additional
/// tests.
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
