//! Operations as plain calls, and names in numbered directories.

use crate::support::{error, making, name};
use plimsoll_target::{EntryKind, OpenHow, OpenMode, Session};
use rustix::io::Errno;
use std::time::Duration;

/// Sets the name `dir{dir}{name}` in a numbered directory, as the engine does.
fn name_in<'a, S: Session>(session: &'a mut S, dir: u64, name: &str) -> &'a mut S {
    session.locate_in(
        dir,
        |path| path.extend_from_slice(format!("dir{dir}").as_bytes()),
        |path| path.extend_from_slice(name.as_bytes()),
    );
    session
}

on_files! {
    /// A plain call does the same as the awaited operation.
    async fn plain_calls(at, s) {
        if !s.is_immediate() {
            return;
        }
        let h = name(&mut s, "f").open_now(making(OpenMode::ReadWrite)).unwrap();
        s.write_now(&h, 0, 5000).unwrap();
        s.write_now(&h, 5000, 100).unwrap();
        assert_eq!(s.read_now(&h, 5000, 4096), Ok(100));
        assert_eq!(s.read_now(&h, 5100, 4096), Ok(0));
        s.close_now(h).unwrap();
        assert_eq!(at.bytes("f").len(), 5100);
        let found = name(&mut s, "f").stat_now().unwrap();
        assert_eq!((found.kind, found.size), (EntryKind::File, 5100));
        name(&mut s, "f").unlink_now().unwrap();
        assert!(!at.there("f"));
        assert_eq!(name(&mut s, "f").unlink_now(), Err(Errno::NOENT.into()));
        assert_eq!(name(&mut s, "f").stat_now(), Err(Errno::NOENT.into()));
        let how = OpenHow::plain(OpenMode::Read);
        assert_eq!(name(&mut s, "f").open_now(how).err(), Some(Errno::NOENT.into()));
    }

    /// Each name in a numbered directory leads to its own file, in any order of the names.
    async fn names_in_directories(at, s) {
        for dir in 0..3 {
            at.dir(&format!("dir{dir}"));
            at.file(format!("dir{dir}/a"), &[1; 10]);
            at.file(format!("dir{dir}/longer"), &vec![1; 20 + dir]);
        }
        for (dir, file, size) in [
            (0, "/a", 10), (0, "/longer", 20), (0, "/a", 10), (2, "/longer", 22), (1, "/a", 10),
            (1, "/longer", 21), (0, "/longer", 20),
        ] {
            let found = name_in(&mut s, dir, file).stat().await.unwrap();
            assert_eq!(found.size, size, "dir{dir}{file}");
        }
        assert_eq!(error(name(&mut s, "a").stat().await), Errno::NOENT);
        assert_eq!(name_in(&mut s, 0, "/a").stat().await.unwrap().size, 10);
    }
}

on_posix! {
    /// A check notices a directory that was replaced by a symbolic link, even after checks of many other directories.
    async fn replaced_directories(at, s) {
        let dirs = 40;
        for dir in 0..dirs {
            at.dir(&format!("dir{dir}"));
        }
        for dir in (0..dirs).chain(0..dirs) {
            name_in(&mut s, dir, "/f").check_parent().await.unwrap();
        }
        std::fs::rename(at.path("dir7"), at.path("elsewhere")).unwrap();
        at.link("dir7", "elsewhere");
        // A check stays valid for one millisecond.
        std::thread::sleep(Duration::from_millis(3));
        for dir in 0..dirs {
            let checked = name_in(&mut s, dir, "/f").check_parent().await;
            if dir == 7 {
                assert!(checked.is_err(), "dir7 is a link");
            } else {
                checked.unwrap();
            }
        }
        assert!(name(&mut s, "dir7/f").check_parent().await.is_err());
        name(&mut s, "f").check_parent().await.unwrap();
    }
}
