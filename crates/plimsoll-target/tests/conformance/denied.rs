//! Denied permissions: each denied operation returns an error and changes nothing.

use crate::support::{error, making, name, obey_permissions, opened, place, take_all};
use plimsoll_target::{
    EntryKind, OpError, OpenHow, OpenMode, Purpose, Session, Target, TargetError, Visitor, connect,
};
use rustix::io::Errno;

struct Connects;

impl Visitor for Connects {
    type Output = ();

    fn visit<T: Target>(self, _: T) {}
}

on_posix! {
    /// An open fails with `EACCES` if the file's permissions deny the requested mode.
    async fn files(at, s) {
        obey_permissions();
        at.file("f", b"stays");
        for (mode, denied, allowed) in [
            (0o000, &[OpenMode::Read, OpenMode::Write, OpenMode::ReadWrite][..], None),
            (0o400, &[OpenMode::Write, OpenMode::ReadWrite], Some(OpenMode::Read)),
            (0o200, &[OpenMode::Read, OpenMode::ReadWrite], Some(OpenMode::Write)),
        ] {
            at.set_mode("f", mode);
            for open in denied {
                for how in [OpenHow::plain(*open), making(*open)] {
                    let opened = name(&mut s, "f").open(how).await;
                    assert_eq!(error(opened), Errno::ACCESS, "{mode:o} {open:?}");
                }
            }
            if let Some(open) = allowed {
                let h = opened(&mut s, "f", OpenHow::plain(open)).await;
                s.close(h).await.unwrap();
            }
            assert_eq!(name(&mut s, "f").stat().await.unwrap().size, 5);
        }
        assert_eq!(error(name(&mut s, "f").get().await), Errno::ACCESS);
        at.set_mode("f", 0o600);
        assert_eq!(at.bytes("f"), b"stays");
    }
}

on_files! {
    /// An open file stays usable after its permissions are removed: permissions are checked at the open only.
    async fn open_files(at, s) {
        obey_permissions();
        let h = opened(&mut s, "f", making(OpenMode::ReadWrite)).await;
        at.set_mode("f", 0o000);
        s.write(&h, 0, 100).await.unwrap();
        s.aio_write(&h, 100, 100, 1).unwrap();
        assert_eq!(take_all(&mut s).await[0].result, Ok(100));
        assert_eq!(s.read(&h, 0, 1000).await, Ok(200));
        s.close(h).await.unwrap();
        at.set_mode("f", 0o600);
        assert_eq!(at.bytes("f").len(), 200);
    }
}

on_posix! {
    /// No entry can be created in, replaced in or removed from a directory without write permission, and a directory
    /// without any permission can be neither listed nor searched.
    async fn directories(at, s) {
        obey_permissions();
        at.dir("d/e");
        at.file("d/f", b"stays");
        at.set_mode("d", 0o500);
        assert_eq!(error(name(&mut s, "d/new").open(making(OpenMode::Write)).await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/new").make_dir().await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/f").unlink().await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/e").remove_dir().await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/f").put(b"new").await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/f").remove(EntryKind::File).await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/e").remove(EntryKind::Dir).await), Errno::ACCESS);
        assert_eq!(name(&mut s, "d").list().await.unwrap().entries, 2);
        assert_eq!(name(&mut s, "d/f").get().await.unwrap(), b"stays");
        at.set_mode("d", 0o000);
        assert_eq!(error(name(&mut s, "d").list().await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d").entries().await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/f").stat().await), Errno::ACCESS);
        assert_eq!(error(name(&mut s, "d/f").get().await), Errno::ACCESS);
        let opened = name(&mut s, "d/f").open(OpenHow::plain(OpenMode::Read)).await;
        assert_eq!(error(opened), Errno::ACCESS);
        at.set_mode("d", 0o700);
        assert_eq!(at.names("d"), ["e", "f"]);
        assert_eq!(at.bytes("d/f"), b"stays");
    }

    /// The error about a work directory that permissions deny names its path.
    async fn work_directory(at, s) {
        obey_permissions();
        at.dir("d/work");
        at.set_mode("d", 0o000);
        for (path, purpose) in [
            ("d", Purpose::Load),
            ("d/work", Purpose::Load),
            ("d/work", Purpose::Inspect),
            ("d/new", Purpose::Load),
        ] {
            let path = at.path(path);
            let denied = connect("posix", &place(&path), purpose, Connects).unwrap_err();
            let text = format!("`{}`: Permission denied (EACCES)", path.display());
            assert_eq!(denied.to_string(), text);
            let error = OpError(Errno::ACCESS);
            assert_eq!(denied, TargetError::Place { path, error });
        }
        at.set_mode("d", 0o500);
        let new = place(at.path("d/new"));
        let denied = connect("posix", &new, Purpose::Load, Connects).unwrap_err();
        let error = OpError(Errno::ACCESS);
        assert_eq!(denied, TargetError::Place { path: new.dir, error });
        at.set_mode("d", 0o700);
        assert_eq!(at.names("d"), ["work"]);
    }
}
