//! The behaviour of targets on full and on read-only file systems. Creating the file systems needs the right to mount.

#[macro_use]
mod support;

use plimsoll_target::{
    EntryKind, OpError, OpenHow, OpenMode, Purpose, Session, Space, Target, TargetError, Visitor,
    connect,
};
use plimsoll_testkit::needs_root;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::path::Path;
use support::{Bench, Case, check_in, error, making, name, opened, place, take_all};

/// A small file system in memory; unmounted when dropped.
struct Small {
    dir: tempfile::TempDir,
}

impl Small {
    fn new(options: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = CString::new(options).unwrap();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, options.as_c_str())
            .unwrap_or_else(|e| panic!("{e}: mount(2)"));
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn make_read_only(&self) {
        rustix::mount::mount_remount(self.path(), MountFlags::RDONLY, c"")
            .expect("what was mounted can be remounted");
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Detaches the names at once, and the file system itself when the last descriptor is closed.
        let _ = rustix::mount::unmount(self.path(), UnmountFlags::DETACH);
    }
}

/// A file system of 1 MiB: operations that need more space fail with `ENOSPC` and leave no partial file.
struct NoSpace;

impl Case for NoSpace {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        at.file("m", b"old");
        let big = vec![7; 2 << 20];
        for file in ["m", "new"] {
            assert_eq!(error(name(&mut s, file).put(&big).await), Errno::NOSPC);
            assert_eq!(at.names(""), ["m"], "something half written stayed");
            assert_eq!(at.bytes("m"), b"old");
        }
        let h = opened(&mut s, "f", making(OpenMode::ReadWrite)).await;
        assert_eq!(error(s.write(&h, 0, 2 << 20).await), Errno::NOSPC);
        assert_eq!(error(s.append(&h, 2 << 20).await), Errno::NOSPC);
        s.aio_write(&h, 0, 2 << 20, 3).unwrap();
        s.aio_write(&h, 0, 4096, 4).unwrap();
        let mut done = take_all(&mut s).await;
        done.sort_by_key(|d| d.tag);
        assert_eq!(done[0].result, Err(OpError(Errno::NOSPC)));
        assert_eq!(done[1].result, Ok(4096), "room that the file already has");
        assert_eq!(s.read(&h, 0, 4096).await, Ok(4096));
        s.close(h).await.unwrap();
        name(&mut s, "f").unlink().await.unwrap();
        // After a file is removed, operations succeed again.
        name(&mut s, "m").put(b"new").await.unwrap();
        assert_eq!(at.bytes("m"), b"new");
    }
}

#[test]
fn no_space() {
    needs_root!();
    let small = Small::new("size=1m");
    check_in("posix", small.path(), None, NoSpace);
}

/// A file system with 20 inodes: operations that need one more fail with `ENOSPC`.
struct NoInodes;

impl Case for NoInodes {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        at.file("m", b"old");
        let mut made = 0;
        let full = loop {
            match name(&mut s, format!("f{made}"))
                .open(making(OpenMode::Write))
                .await
            {
                Ok(h) => s.close(h).await.unwrap(),
                Err(e) => break e.0,
            }
            made += 1;
            assert!(made < 100, "the file system has no limit");
        };
        assert_eq!(full, Errno::NOSPC);
        assert_eq!(error(name(&mut s, "d").make_dir().await), Errno::NOSPC);
        assert_eq!(error(name(&mut s, "m").put(b"new").await), Errno::NOSPC);
        assert_eq!(at.bytes("m"), b"old");
        assert_eq!(at.names("").len(), made + 1);
    }
}

#[test]
fn no_inodes() {
    needs_root!();
    let small = Small::new("size=1m,nr_inodes=20");
    check_in("posix", small.path(), None, NoInodes);
}

/// A file system that became read-only: operations that would change it fail with `EROFS`, and the other operations
/// succeed.
struct ReadOnly;

impl Case for ReadOnly {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        for mode in [OpenMode::Write, OpenMode::ReadWrite] {
            assert_eq!(
                error(name(&mut s, "f").open(OpenHow::plain(mode)).await),
                Errno::ROFS
            );
            assert_eq!(
                error(name(&mut s, "new").open(making(mode)).await),
                Errno::ROFS
            );
        }
        assert_eq!(
            error(name(&mut s, "new").open(making(OpenMode::Read)).await),
            Errno::ROFS
        );
        assert_eq!(error(name(&mut s, "f").unlink().await), Errno::ROFS);
        assert_eq!(error(name(&mut s, "new").make_dir().await), Errno::ROFS);
        assert_eq!(error(name(&mut s, "d").remove_dir().await), Errno::ROFS);
        assert_eq!(error(name(&mut s, "f").put(b"new").await), Errno::ROFS);
        assert_eq!(
            error(name(&mut s, "f").remove(EntryKind::File).await),
            Errno::ROFS
        );
        assert_eq!(
            error(name(&mut s, "d").remove(EntryKind::Dir).await),
            Errno::ROFS
        );
        let h = opened(&mut s, "f", making(OpenMode::Read)).await;
        assert_eq!(s.read(&h, 0, 100).await, Ok(5));
        s.aio_write(&h, 0, 5, 1).unwrap();
        assert_eq!(take_all(&mut s).await[0].result, Err(OpError(Errno::BADF)));
        s.close(h).await.unwrap();
        assert_eq!(name(&mut s, "f").get().await.unwrap(), b"stays");
        assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
        assert_eq!(name(&mut s, "").list().await.unwrap().entries, 2);
        assert_eq!(at.names(""), ["d", "f"]);
        assert_eq!(at.bytes("f"), b"stays");
    }
}

#[test]
fn read_only() {
    needs_root!();
    let small = Small::new("size=1m");
    std::fs::write(small.path().join("f"), b"stays").unwrap();
    std::fs::create_dir(small.path().join("d")).unwrap();
    small.make_read_only();
    check_in("posix", small.path(), None, ReadOnly);
    let work = small.path().join("work");
    let error = connect("posix", &place(&work), Purpose::Load, Ask).unwrap_err();
    let expected = TargetError::Place {
        path: work.clone(),
        error: OpError(Errno::ROFS),
    };
    assert_eq!(error, expected);
    let text = format!("`{}`: Read-only file system (EROFS)", work.display());
    assert_eq!(error.to_string(), text);
}

/// A directory on which a file system is mounted cannot be removed.
struct Busy;

impl Case for Busy {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        let mut s = at.session();
        let mounted = at.names("").pop().unwrap();
        assert_eq!(
            error(name(&mut s, &mounted).remove_dir().await),
            Errno::BUSY
        );
        assert_eq!(
            error(name(&mut s, &mounted).remove(EntryKind::Dir).await),
            Errno::BUSY
        );
        assert_eq!(at.names(""), [mounted]);
    }
}

#[test]
fn busy() {
    needs_root!();
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("mounted");
    std::fs::create_dir(&inner).unwrap();
    rustix::mount::mount("tmpfs", &inner, "tmpfs", MountFlags::NOSUID, c"size=64k")
        .unwrap_or_else(|e| panic!("{e}: mount(2)"));
    let dir = outer.path().to_path_buf();
    let checked = std::panic::catch_unwind(move || check_in("posix", &dir, None, Busy));
    rustix::mount::unmount(&inner, UnmountFlags::DETACH).unwrap();
    if let Err(panic) = checked {
        std::panic::resume_unwind(panic);
    }
}

struct Ask;

impl Visitor for Ask {
    type Output = Option<Space>;

    fn visit<T: Target>(self, target: T) -> Option<Space> {
        target.space().unwrap()
    }
}

fn space(dir: &Path) -> Space {
    let space = connect("posix", &place(dir), Purpose::Inspect, Ask).unwrap();
    space.expect("a file system has space")
}

#[test]
fn space_is_what_is_left() {
    needs_root!();
    let small = Small::new("size=8m,nr_inodes=100");
    let before = space(small.path());
    assert_eq!(before.bytes, 8 << 20);
    assert!(before.block.is_power_of_two());
    let inodes = before.inodes.expect("a limit was set");
    assert!((90..100).contains(&inodes), "{inodes} of 100 are free");
    std::fs::write(small.path().join("f"), vec![1; 3 << 20]).unwrap();
    std::fs::create_dir(small.path().join("d")).unwrap();
    let after = space(small.path());
    assert_eq!(before.bytes - after.bytes, 3 << 20);
    assert_eq!(after.inodes, Some(inodes - 2));
    assert_eq!(after.block, before.block);
    // The space is the same below the mount point, and where a work directory would be created.
    assert_eq!(space(&small.path().join("d")), after);
    assert_eq!(space(&small.path().join("work")), after);
}

#[test]
fn space_without_a_limit_of_inodes() {
    needs_root!();
    let small = Small::new("size=8m,nr_inodes=0");
    assert_eq!(space(small.path()).inodes, None);
}
