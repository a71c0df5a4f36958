//! No path leads out of the work directory, and nothing follows a symbolic link.

use crate::support::{Bench, Case, check_in, error, making, name};
use plimsoll_target::{EntryKind, OpenHow, OpenMode, Session, Target};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// A directory beside the work directory, which no operation may change.
struct Outside {
    dir: tempfile::TempDir,
    before: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl Outside {
    /// Creates the directory beside the work directory if this machine sees the work directory, and otherwise in the
    /// directory for temporary files.
    fn new<T>(at: &Bench<'_, T>) -> Self {
        let beside = at.dir.parent().filter(|dir| dir.is_dir());
        let dir = match beside {
            Some(beside) => tempfile::tempdir_in(beside),
            None => tempfile::tempdir(),
        }
        .unwrap();
        std::fs::write(dir.path().join("f"), b"not ours").unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("d/g"), b"not ours either").unwrap();
        let before = tree(dir.path());
        Self { dir, before }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn name(&self) -> &str {
        self.path().file_name().unwrap().to_str().unwrap()
    }

    #[track_caller]
    fn untouched(&self) {
        assert_eq!(
            tree(self.path()),
            self.before,
            "something outside was touched"
        );
    }
}

/// All entries below a directory, sorted: for a file its contents, if they can be read, and for a directory `None`.
fn tree(dir: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path.clone());
                all.push((path, None));
            } else {
                all.push((path.clone(), std::fs::read(path).ok()));
            }
        }
    }
    all.sort();
    all
}

/// Asserts that each operation that opens `path` as a file or as a directory fails with one of `errors`.
async fn refuses<T: Target>(at: &Bench<'_, T>, path: &str, errors: &[Errno]) {
    let mut s = at.session();
    let mut opens = Vec::new();
    for mode in [OpenMode::Read, OpenMode::Write, OpenMode::ReadWrite] {
        for how in [OpenHow::plain(mode), making(mode)] {
            let direct = OpenHow {
                direct: true,
                ..how
            };
            opens.push(name(&mut s, path).open(how).await.map(drop));
            opens.push(name(&mut s, path).open(direct).await.map(drop));
        }
    }
    opens.push(name(&mut s, path).list().await.map(drop));
    opens.push(name(&mut s, path).entries().await.map(drop));
    opens.push(name(&mut s, path).get().await.map(drop));
    for (i, result) in opens.into_iter().enumerate() {
        match result {
            Ok(()) => panic!("{path}: operation {i} followed it"),
            Err(e) => assert!(errors.contains(&e.0), "{path}: operation {i}: {e}"),
        }
    }
}

/// Asserts that each operation that replaces or removes `path` fails with one of `errors`.
async fn refuses_changes<T: Target>(at: &Bench<'_, T>, path: &str, errors: &[Errno]) {
    let mut s = at.session();
    for (what, result) in [
        ("put", name(&mut s, path).put(b"ours").await),
        (
            "remove file",
            name(&mut s, path).remove(EntryKind::File).await,
        ),
        (
            "remove dir",
            name(&mut s, path).remove(EntryKind::Dir).await,
        ),
        (
            "remove other",
            name(&mut s, path).remove(EntryKind::Other).await,
        ),
    ] {
        let e = error(result);
        assert!(errors.contains(&e), "{path}: {what}: {e:?}");
    }
}

on_posix! {
    /// A symbolic link as the last component of a path is not opened, whatever its destination is.
    async fn a_link_at_the_end(at, s) {
        let outside = Outside::new(&at);
        at.file("inner", b"stays");
        at.dir("dir");
        at.link("to_file", outside.path().join("f"));
        at.link("to_dir", outside.path().join("d"));
        at.link("to_new", outside.path().join("new"));
        at.link("relative", format!("../{}/f", outside.name()));
        at.link("to_inner", "inner");
        at.link("to_inner_dir", "dir");
        at.link("loop", "loop");
        let inner = ["to_inner", "to_inner_dir", "loop"];
        for link in ["to_file", "to_dir", "to_new", "relative"].into_iter().chain(inner) {
            // A listing needs a directory, and returns `ENOTDIR` for a symbolic link.
            refuses(&at, link, &[Errno::LOOP, Errno::NOTDIR]).await;
            assert!(at.path(link).symlink_metadata().unwrap().is_symlink(), "{link} was replaced");
        }
        assert_eq!(at.bytes("inner"), b"stays");
        outside.untouched();
    }

    /// A symbolic link within a path is not followed, even if its destination lies in the work directory.
    async fn a_link_in_the_middle(at, s) {
        let outside = Outside::new(&at);
        at.dir("real/d");
        at.file("real/f", b"stays");
        at.file("real/d/g", b"stays");
        at.link("out", outside.path());
        at.link("in", "real");
        at.link("real/up", "..");
        let inner = ["in/f", "in/d", "in/d/g", "real/up/real/f"];
        for path in ["out/f", "out/d", "out/d/g", "out/new"].into_iter().chain(inner) {
            refuses(&at, path, &[Errno::LOOP]).await;
            refuses_changes(&at, path, &[Errno::LOOP, Errno::NOTDIR]).await;
        }
        assert_eq!(at.names("real"), ["d", "f", "up"]);
        assert_eq!(at.bytes("real/f"), b"stays");
        outside.untouched();
    }

    /// Nothing climbs out of the work directory by `..`.
    async fn dot_dot(at, s) {
        let outside = Outside::new(&at);
        at.dir("d");
        let there = outside.name();
        for path in [
            format!("../{there}/f"),
            format!("../{there}/new"),
            format!("../{there}/d"),
            format!("d/../../{there}/f"),
            format!("./../{there}/d/g"),
            format!("d/../../../{there}/f"),
        ] {
            refuses(&at, &path, &[Errno::XDEV]).await;
            refuses_changes(&at, &path, &[Errno::XDEV]).await;
        }
        for path in ["..", "d/../.."] {
            refuses(&at, path, &[Errno::XDEV, Errno::ISDIR]).await;
            let removed = name(&mut s, path).remove(EntryKind::Dir).await;
            assert!([Errno::XDEV, Errno::NOTEMPTY].contains(&error(removed)));
        }
        outside.untouched();
        assert_eq!(at.names(""), ["d"]);
    }

    /// An absolute path is refused, even if it leads into the work directory.
    async fn an_absolute_path(at, s) {
        let outside = Outside::new(&at);
        at.file("f", b"stays");
        for dir in [outside.path(), at.dir] {
            for file in ["f", "new"] {
                let path = dir.join(file);
                let path = path.to_str().unwrap();
                refuses(&at, path, &[Errno::XDEV]).await;
                refuses_changes(&at, path, &[Errno::XDEV]).await;
            }
        }
        // The parent of a name at the top is not checked.
        refuses_changes(&at, "/f", &[Errno::XDEV, Errno::NOENT]).await;
        refuses(&at, "/", &[Errno::XDEV, Errno::ISDIR]).await;
        assert_eq!(at.bytes("f"), b"stays");
        assert_eq!(at.names(""), ["f"]);
        outside.untouched();
    }
}

on_files! {
    /// `remove` removes a symbolic link itself, and never its destination.
    async fn removing_a_link(at, s) {
        let outside = Outside::new(&at);
        at.dir("empty");
        for (link, to) in [
            ("to_file", outside.path().join("f")),
            ("to_dir", outside.path().join("d")),
            ("to_empty", at.path("empty")),
            ("dangling", "nowhere".into()),
        ] {
            for kind in [EntryKind::Other, EntryKind::File] {
                at.link(link, &to);
                let as_dir = name(&mut s, link).remove(EntryKind::Dir).await;
                assert_eq!(error(as_dir), Errno::NOTDIR);
                assert!(at.there(link));
                name(&mut s, link).remove(kind).await.unwrap();
                assert!(!at.there(link));
            }
        }
        assert_eq!(at.names(""), ["empty"]);
        outside.untouched();
    }

    /// `put` replaces a symbolic link and does not write through it.
    async fn putting_on_a_link(at, s) {
        let outside = Outside::new(&at);
        at.link("m", outside.path().join("f"));
        name(&mut s, "m").put(b"ours").await.unwrap();
        assert_eq!(at.kind("m"), Some(EntryKind::File));
        assert_eq!(at.bytes("m"), b"ours");
        assert_eq!(at.names(""), ["m"]);
        outside.untouched();
    }

    /// The measured operations on names apply to a symbolic link itself at the end of a path.
    async fn measured_names(at, s) {
        let outside = Outside::new(&at);
        at.link("to_file", outside.path().join("f"));
        at.link("to_dir", outside.path().join("d"));
        for link in ["to_file", "to_dir"] {
            assert_eq!(name(&mut s, link).stat().await.unwrap().kind, EntryKind::Link);
            assert_eq!(error(name(&mut s, link).make_dir().await), Errno::EXIST);
            assert_eq!(error(name(&mut s, link).remove_dir().await), Errno::NOTDIR);
            name(&mut s, link).unlink().await.unwrap();
        }
        assert!(at.names("").is_empty());
        outside.untouched();
    }
}

on_posix! {
    /// A symbolic link may lead to the work directory itself, because the user chose the path.
    async fn a_link_to_the_work_directory(at, s) {
        use plimsoll_target::{Purpose, Visitor, connect};
        struct Describe;
        impl Visitor for Describe {
            type Output = (String, bool);
            fn visit<U: Target>(self, target: U) -> (String, bool) {
                (target.describe(), target.exists())
            }
        }
        at.dir("real");
        at.link("link", "real");
        let place = crate::support::place(at.path("link"));
        let (text, exists) = connect("posix", &place, Purpose::Inspect, Describe).unwrap();
        assert_eq!(text, format!("posix, {}", at.path("link").display()));
        assert!(exists);
    }
}

/// The links in `/proc` lead to files and not to names; they are refused too.
struct MagicLinks;

impl Case for MagicLinks {
    async fn run<T: Target>(self, at: Bench<'_, T>) {
        for path in ["root/etc", "cwd/Cargo.toml", "exe", "root", "cwd", "fd/0"] {
            refuses(&at, path, &[Errno::LOOP, Errno::NOTDIR]).await;
        }
        refuses_changes(&at, "root/tmp/new", &[Errno::LOOP, Errno::NOTDIR]).await;
    }
}

#[test]
fn magic_links() {
    check_in("posix", Path::new("/proc/self"), None, MagicLinks);
}
